//! A lock between processes that names its holder.
//!
//! It is a lock of the system, which frees it when its process dies: none is ever stale.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};

const RETRY: Duration = Duration::from_millis(50);
/// Longer than the gateway may take to start.
const GIVE_UP: Duration = Duration::from_secs(35);

/// The lock, held until dropped.
#[derive(Debug)]
pub(super) struct GatewayLock {
    _file: File,
}

/// The lock could not be taken.
#[derive(Debug)]
pub(super) enum LockError {
    Io(io::Error),
    /// The process of this number has it.
    Held(String),
}

impl GatewayLock {
    pub(super) async fn take(path: &Path) -> Result<Self, LockError> {
        let file = File::options().create(true).read(true).append(true).mode(0o600).open(path);
        let mut file = file.map_err(LockError::Io)?;
        let deadline = Instant::now() + GIVE_UP;
        while let Err(error) = file.try_lock() {
            match error {
                TryLockError::WouldBlock if Instant::now() < deadline => sleep(RETRY).await,
                TryLockError::WouldBlock => {
                    let mut holder = String::new();
                    drop(file.read_to_string(&mut holder)); // unknown is said as such
                    return Err(LockError::Held(holder));
                }
                TryLockError::Error(error) => return Err(LockError::Io(error)),
            }
        }
        file.set_len(0).and_then(|()| write!(file, "{}", std::process::id())).map_err(LockError::Io)?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lock_is_held_by_one_at_a_time_and_its_holder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = GatewayLock::take(&path).await.unwrap();
        let refused = GatewayLock::take(&path).await.unwrap_err();
        assert!(matches!(refused, LockError::Held(holder) if holder == std::process::id().to_string()));
        drop(first);
        GatewayLock::take(&path).await.unwrap();
    }
}
