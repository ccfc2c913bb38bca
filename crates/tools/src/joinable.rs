//! Jupyter kernels of others that run on this machine and can be joined.

use std::fs;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Deserialize;

/// Connection files looked at, the newest first. Kernels that crashed leave theirs behind.
const LOOKED_AT: usize = 50;

/// How long a kernel on this machine may take to accept a connection.
const ACCEPTS: Duration = Duration::from_millis(100);

/// A kernel that somebody else started.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct JoinableKernel {
    /// Its connection file.
    pub(crate) file: PathBuf,
    /// The name of its kernelspec, if the file has it.
    pub(crate) name: Option<String>,
    /// How long ago it was started.
    pub(crate) age: Duration,
}

/// What of a connection file shows whether its kernel runs.
#[derive(Deserialize)]
struct Connection {
    ip: String,
    #[serde(default)]
    transport: String,
    shell_port: u16,
    #[serde(default)]
    kernel_name: String,
}

/// The kernels whose connection files are in Jupyter's runtime folder, and which run. Blocks on files and connections.
pub(crate) fn joinable(runtime: &Path) -> Vec<JoinableKernel> {
    let Ok(entries) = fs::read_dir(runtime) else { return Vec::new() };
    let mut files: Vec<_> = entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("kernel-") && name.ends_with(".json")
        })
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    files.sort_unstable_by(|one, other| other.cmp(one));
    files.truncate(LOOKED_AT);
    let now = SystemTime::now();
    let running = files.into_iter().filter_map(|(started, file)| {
        let connection: Connection = serde_json::from_slice(&fs::read(&file).ok()?).ok()?;
        let name = Some(&connection.kernel_name).filter(|name| !name.is_empty()).cloned();
        let age = now.duration_since(started).unwrap_or_default();
        connection.is_open().then_some(JoinableKernel { file, name, age })
    });
    running.collect()
}

impl Connection {
    fn is_open(&self) -> bool {
        if self.transport == "ipc" {
            return Path::new(&format!("{}-{}", self.ip, self.shell_port)).exists();
        }
        // Others' machines are not ours to try.
        let here = self.ip.parse::<IpAddr>().ok().filter(IpAddr::is_loopback);
        here.is_some_and(|ip| {
            TcpStream::connect_timeout(&SocketAddr::new(ip, self.shell_port), ACCEPTS).is_ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn only_kernels_that_run_are_joinable() {
        let runtime = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let put = |name: &str, ip: &str, port: u16| {
            let text = format!(
                r#"{{"ip": "{ip}", "transport": "tcp", "shell_port": {port}, "kernel_name": "python3", "key": "x"}}"#
            );
            fs::write(runtime.path().join(name), text).unwrap();
        };
        put("kernel-runs.json", "127.0.0.1", port);
        put("kernel-crashed.json", "127.0.0.1", closed);
        put("kernel-elsewhere.json", "192.0.2.1", port);
        put("jpserver-1.json", "127.0.0.1", port);
        fs::write(runtime.path().join("kernel-odd.json"), "{").unwrap();
        let found = joinable(runtime.path());
        let files: Vec<_> = found.iter().map(|kernel| kernel.file.file_name().unwrap()).collect();
        assert_eq!(files, ["kernel-runs.json"]);
        assert_eq!(found[0].name.as_deref(), Some("python3"));
        assert_eq!(joinable(&runtime.path().join("none")), []);
    }
}
