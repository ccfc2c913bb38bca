//! Kernels that run on this machine, by their connection files.

use std::ffi::OsStr;
use std::fs;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cellwright_jupyter::{ConnectionInfo, JupyterEnvironment, SocketTransport};

use crate::environment::EnvVars;

/// How long a kernel's port may take to accept a connection.
const ACCEPT: Duration = Duration::from_millis(500);

/// Connection files looked at for the list, the newest first. Kernels that crashed leave theirs behind.
const LISTED: usize = 50;

/// Means the kernel that was started last.
pub(super) const NEWEST: &str = "newest";

/// A Jupyter kernel that another program started on this machine and that can be joined.
#[derive(Debug, PartialEq, Eq)]
pub struct ExistingKernel {
    /// Its connection file.
    pub file: PathBuf,
    /// The name of its kernelspec, if the file has it.
    pub name: Option<String>,
    /// How long ago it was started.
    pub age: Duration,
}

impl ExistingKernel {
    /// The kernels that run, newest first. Blocks on files and connections.
    pub fn all(variables: &EnvVars) -> Vec<Self> {
        Self::in_folder(&runtime_folder(variables))
    }

    fn in_folder(folder: &Path) -> Vec<Self> {
        let running =
            connection_files(folder, NEWEST).into_iter().take(LISTED).filter_map(|(started, file)| {
                let info = ConnectionInfo::read(&file).ok()?;
                // Only kernels that the caller names are tried on other machines.
                let is_here = info.transport == SocketTransport::Ipc || ip(&info)?.is_loopback();
                let age = SystemTime::now().duration_since(started).unwrap_or_default();
                let name = info.kernel_name.clone().filter(|name| !name.is_empty());
                (is_here && listens(&info)).then_some(Self { file, name, age })
            });
        running.collect()
    }
}

/// Where Jupyter keeps the connection files of running kernels.
pub(super) fn runtime_folder(variables: &EnvVars) -> PathBuf {
    let variable = |name: &str| variables.get(OsStr::new(name)).cloned();
    JupyterEnvironment::new(&variable, Vec::new()).runtime_dir()
}

/// The connection files of the kernels that a name means and that run, newest first: all of them for [`NEWEST`], or else the one
/// of the kernel with this id, or those whose ids begin with it. The file of a kernel that was killed stays behind.
pub(super) fn running(folder: &Path, name: &str) -> Vec<PathBuf> {
    let files = connection_files(folder, name).into_iter().map(|(_, file)| file);
    files.filter(|file| ConnectionInfo::read(file).is_ok_and(|info| listens(&info))).collect()
}

fn listens(info: &ConnectionInfo) -> bool {
    match info.transport {
        SocketTransport::Ipc => UnixStream::connect(format!("{}-{}", info.ip, info.shell_port)).is_ok(),
        SocketTransport::Tcp => ip(info).is_some_and(|ip| {
            TcpStream::connect_timeout(&SocketAddr::new(ip, info.shell_port), ACCEPT).is_ok()
        }),
    }
}

/// A kernel that listens on every interface is found on this machine.
fn ip(info: &ConnectionInfo) -> Option<IpAddr> {
    if ["*", "localhost"].contains(&info.ip.as_str()) { "127.0.0.1" } else { &info.ip }.parse().ok()
}

fn connection_files(folder: &Path, name: &str) -> Vec<(SystemTime, PathBuf)> {
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
        found = vec![found.swap_remove(exact)];
    }
    found.sort_unstable_by(|one, other| other.cmp(one));
    found.into_iter().map(|(started, _, path)| (started, path)).collect()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

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
            files.iter().map(|(_, file)| file.file_name().unwrap().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(names("newest"), ["kernel-abd2.json", "kernel-ab.json", "kernel-abc1.json"]);
        assert_eq!(names("abc"), ["kernel-abc1.json"]);
        assert_eq!(names("ab"), ["kernel-ab.json"], "the whole id comes before the beginning of one");
        assert_eq!(names("x"), Vec::<String>::new());
        // Nothing listens where these say.
        assert_eq!(running(folder.path(), "newest"), Vec::<PathBuf>::new());
    }

    #[test]
    fn only_kernels_that_run_are_joinable() {
        let runtime = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let put = |name: &str, ip: &str, port: u16| {
            let mut info = ConnectionInfo::local(SocketTransport::Tcp, ip.to_owned(), [port, 1, 2, 3, 4]);
            info.kernel_name = Some("python3".to_owned());
            fs::write(runtime.path().join(name), serde_json::to_vec(&info).unwrap()).unwrap();
        };
        put("kernel-runs.json", "127.0.0.1", port);
        put("kernel-crashed.json", "127.0.0.1", closed);
        put("kernel-elsewhere.json", "192.0.2.1", port);
        put("jpserver-1.json", "127.0.0.1", port);
        fs::write(runtime.path().join("kernel-odd.json"), "{").unwrap();
        let found = ExistingKernel::in_folder(runtime.path());
        let files: Vec<_> = found.iter().map(|kernel| kernel.file.file_name().unwrap()).collect();
        assert_eq!(files, ["kernel-runs.json"]);
        assert_eq!(found[0].name.as_deref(), Some("python3"));
        assert_eq!(ExistingKernel::in_folder(&runtime.path().join("none")), []);
    }
}
