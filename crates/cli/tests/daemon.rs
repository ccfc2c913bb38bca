//! The session daemons of tests.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Ends the daemon of a runtime folder when the test is over, passed or not.
pub(crate) struct DaemonEnd {
    runtime: PathBuf,
}

impl DaemonEnd {
    pub(crate) fn of(runtime: &Path) -> Self {
        Self { runtime: runtime.to_owned() }
    }
}

impl Drop for DaemonEnd {
    fn drop(&mut self) {
        if let Some(daemon) = daemon_of(&self.runtime) {
            // Its kernels notice that it is gone.
            drop(Command::new("kill").args(["-9", &daemon.to_string()]).status());
        }
    }
}

/// The daemon's process, if there is one.
pub(crate) fn daemon_of(runtime: &Path) -> Option<u32> {
    let held = fs::read_to_string("/proc/locks").unwrap();
    let lock = fs::metadata(runtime.join("cellwright/sessions.lock")).ok()?;
    let inode = format!(":{}", lock.ino());
    let line = held.lines().find(|line| line.split(' ').any(|word| word.ends_with(&inode)))?;
    line.split_whitespace().nth(4)?.parse().ok()
}
