//! Whose socket listens at a port of this machine.
//!
//! A port is anybody's once its process is gone, and while a new one starts. Our token goes to the process that we
//! started, or nowhere.

use std::fs;
use std::path::Path;

/// A process of ours that listens on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListeningProcess {
    pub(super) pid: u32,
    /// When the process started, as the system counts: another that got its number later has another.
    pub(super) started: Option<u64>,
}

impl ListeningProcess {
    /// Whether the socket that listens at this port of 127.0.0.1 is the user's, and this very process holds it.
    pub(super) fn listens_at(self, port: u16) -> bool {
        // Where the system does not show the owner of a listener, there is nothing to compare.
        let Ok(table) = fs::read_to_string("/proc/net/tcp") else { return true };
        if self.started.is_some() && started(self.pid) != self.started {
            return false;
        }
        let ourselves = rustix::process::geteuid().as_raw().to_string();
        let sockets = listening(&table, port);
        !sockets.is_empty() && sockets.iter().all(|(owner, inode)| *owner == ourselves && self.holds(inode))
    }

    fn holds(self, inode: &str) -> bool {
        let held = Path::new("/proc").join(self.pid.to_string()).join("fd");
        let socket = format!("socket:[{inode}]");
        let mut files = fs::read_dir(held).into_iter().flatten().flatten();
        files.any(|file| fs::read_link(file.path()).is_ok_and(|link| link.as_os_str() == socket.as_str()))
    }
}

/// Owner and inode of each socket that takes connections to this port of 127.0.0.1.
fn listening(table: &str, port: u16) -> Vec<(&str, &str)> {
    let places = ["0100007F", "00000000"].map(|ip| format!("{ip}:{port:04X}"));
    let rows = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let is_ours = places.iter().any(|place| fields.get(1) == Some(&place.as_str()));
        (is_ours && fields.get(3) == Some(&"0A")).then(|| Some((*fields.get(7)?, *fields.get(9)?)))?
    });
    rows.collect()
}

/// When a process started, in the system's ticks; `None` if there is no such process, or the system does not show it.
pub(super) fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    // The name, in parentheses, may contain anything. A zombie counts as gone.
    let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    (!["Z", "X"].contains(fields.first()?)).then(|| fields.get(19)?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_port_belongs_to_the_process_that_listens_there() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let here = std::process::id();
        let process = |pid| ListeningProcess { pid, started: started(pid) };
        assert!(process(here).listens_at(port));
        let mut other = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        assert!(!process(other.id()).listens_at(port));
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(!process(other.id()).listens_at(port));
        assert!(!ListeningProcess { pid: here, started: Some(1) }.listens_at(port));
        drop(listener);
        assert!(!process(here).listens_at(port));
    }
}
