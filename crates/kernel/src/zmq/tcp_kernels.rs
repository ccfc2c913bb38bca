//! Kernels that cannot use Unix sockets, found out once.
//!
//! Some end at once when asked, some bind other names than Jupyter's, and some wait for ever.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cellwright_jupyter::KernelSpec;
use tokio::time::{Instant, sleep};

/// How long a kernel may take to bind its first socket before it is tried over TCP.
const FIRST_SOCKET: Duration = Duration::from_secs(30);

const LOOK: Duration = Duration::from_millis(50);

/// Which kernels are known to need TCP: a file of the folders of their kernelspecs, one a line.
pub(super) struct TcpKernels(PathBuf);

impl TcpKernels {
    pub(super) fn in_folder(runtime: &Path) -> Self {
        Self(runtime.join("tcp-kernels"))
    }

    pub(super) fn has(&self, spec: &KernelSpec) -> bool {
        let folder = spec.resource_dir.to_string_lossy();
        fs::read_to_string(&self.0).is_ok_and(|known| known.lines().any(|line| *line == *folder))
    }

    /// What cannot be remembered is found out again.
    pub(super) fn add(&self, spec: &KernelSpec) {
        let line = format!("{}\n", spec.resource_dir.display());
        let added = fs::OpenOptions::new().append(true).create(true).open(&self.0);
        if let Err(error) = added.and_then(|mut file| file.write_all(line.as_bytes())) {
            tracing::debug!(%error, "not noted that a kernel needs TCP");
        }
    }
}

/// Returns when a kernel whose sockets belong into this folder does not bind them there.
pub(super) async fn binds_elsewhere(folder: &Path) {
    let until = Instant::now() + FIRST_SOCKET;
    loop {
        let sockets: Vec<_> = fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()))
            .map(|entry| entry.file_name())
            .collect();
        let is_ours = |name: &std::ffi::OsString| name.to_string_lossy().starts_with("s-");
        if sockets.iter().any(is_ours) {
            return std::future::pending().await;
        }
        if !sockets.is_empty() || Instant::now() >= until {
            return;
        }
        sleep(LOOK).await;
    }
}
