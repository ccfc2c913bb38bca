//! Kernels that run on this machine, by their connection files.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cellwright_jupyter::{ConnectionInfo, SocketTransport};

/// How long a kernel's port may take to accept a connection.
const ACCEPT: Duration = Duration::from_millis(500);

/// Means the kernel that was started last.
pub(super) const NEWEST: &str = "newest";

/// The connection files of the kernels that a name means and that run, newest first: all of them for [`NEWEST`], else the one
/// of the kernel with this id, or those whose ids begin with it. The file of a kernel that was killed stays behind.
pub(super) fn running(folder: &Path, name: &str) -> Vec<PathBuf> {
    let mut files = connection_files(folder, name);
    files.retain(|file| ConnectionInfo::read(file).is_ok_and(|info| listens(&info)));
    files
}

fn listens(info: &ConnectionInfo) -> bool {
    match info.transport {
        SocketTransport::Ipc => UnixStream::connect(format!("{}-{}", info.ip, info.shell_port)).is_ok(),
        SocketTransport::Tcp => {
            // A kernel that listens on every interface is found on this machine.
            let ip = if ["*", "localhost"].contains(&info.ip.as_str()) { "127.0.0.1" } else { &info.ip };
            ip.parse().is_ok_and(|ip| {
                TcpStream::connect_timeout(&SocketAddr::new(ip, info.shell_port), ACCEPT).is_ok()
            })
        }
    }
}

fn connection_files(folder: &Path, name: &str) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let file = entry.file_name();
            let id = file.to_str()?.strip_prefix("kernel-")?.strip_suffix(".json")?.to_owned();
            (name == NEWEST || id.starts_with(name))
                .then_some(())
                .and_then(|()| Some((entry.metadata().ok()?.modified().ok()?, id, entry.path())))
        })
        .collect();
    if let Some(exact) = found.iter().position(|(_, id, _)| id == name) {
        return vec![found.swap_remove(exact).2];
    }
    found.sort_unstable_by(|one, other| other.cmp(one));
    found.into_iter().map(|(_, _, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn kernels_are_found_by_their_ids_or_as_the_newest() {
        let folder = tempfile::tempdir().unwrap();
        for (age, name) in
            [(30, "kernel-abc1.json"), (10, "kernel-abd2.json"), (20, "kernel-ab.json"), (0, "other.json")]
        {
            let file = fs::File::create(folder.path().join(name)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
        }
        let names = |name: &str| -> Vec<String> {
            let files = connection_files(folder.path(), name);
            files.iter().map(|file| file.file_name().unwrap().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(names("newest"), ["kernel-abd2.json", "kernel-ab.json", "kernel-abc1.json"]);
        assert_eq!(names("abc"), ["kernel-abc1.json"]);
        assert_eq!(names("ab"), ["kernel-ab.json"], "the whole id comes before the beginning of one");
        assert_eq!(names("x"), Vec::<String>::new());
        // Nothing listens where these say.
        assert_eq!(running(folder.path(), "newest"), Vec::<PathBuf>::new());
    }
}
