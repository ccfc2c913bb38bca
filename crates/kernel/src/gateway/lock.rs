//! A lock between processes that says who holds it and that they live.
//!
//! The system frees the lock of a process that dies. One that is merely stopped holds it on; its heartbeat stops too,
//! and after a while the next one goes on without it.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, interval, sleep};
use tokio_util::task::AbortOnDropHandle;

const RETRY: Duration = Duration::from_millis(50);
const GIVE_UP: Duration = Duration::from_secs(35);
const HEARTBEAT: Duration = Duration::from_secs(5);
/// A heartbeat this old is none any more.
const STALE: Duration = Duration::from_mins(1);
/// For so long a waiting process watches a stale one, which may just have taken the lock.
const WATCHED: Duration = Duration::from_secs(1);

/// The lock, held until dropped.
pub(super) struct Lock {
    file: Arc<File>,
    path: PathBuf,
    _heartbeat: AbortOnDropHandle<()>,
}

/// The lock could not be taken.
#[derive(Debug)]
pub(super) enum LockError {
    Io(io::Error),
    /// The process of this number has it.
    Held(String),
}

impl Lock {
    pub(super) async fn take(path: &Path) -> Result<Self, LockError> {
        let deadline = Instant::now() + GIVE_UP;
        let mut watched: Option<(SystemTime, Instant)> = None;
        loop {
            let file = File::options().create(true).read(true).append(true).mode(0o600).open(path);
            let mut file = file.map_err(LockError::Io)?;
            match file.try_lock() {
                Ok(()) => {
                    // Beats at once: from here on it is not stale.
                    beat(&file);
                    if is_at(&file, path) {
                        file.set_len(0)
                            .and_then(|()| write!(file, "{}", std::process::id()))
                            .map_err(LockError::Io)?;
                        return Ok(Self::held(file, path));
                    }
                    continue; // taken for stale and replaced before we had it
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(LockError::Io(error)),
            }
            let beaten = file.metadata().and_then(|metadata| metadata.modified()).map_err(LockError::Io)?;
            let since = match watched {
                Some((same, since)) if same == beaten => since,
                Some(_) | None => watched.insert((beaten, Instant::now())).1,
            };
            if beaten.elapsed().is_ok_and(|age| age > STALE)
                && since.elapsed() > WATCHED
                && is_at(&file, path)
            {
                drop(fs::remove_file(path)); // another may have been faster
            } else if Instant::now() > deadline {
                let mut holder = String::new();
                drop(file.read_to_string(&mut holder)); // unknown is said as such
                return Err(LockError::Held(holder));
            } else {
                sleep(RETRY).await;
            }
        }
    }

    fn held(file: File, path: &Path) -> Self {
        let file = Arc::new(file);
        let beating = Arc::clone(&file);
        let heartbeat = tokio::spawn(async move {
            let mut beats = interval(HEARTBEAT);
            loop {
                beats.tick().await;
                beat(&beating);
            }
        });
        Self { file, path: path.to_owned(), _heartbeat: AbortOnDropHandle::new(heartbeat) }
    }

    /// Whether nobody went on without us.
    pub(super) fn is_ours(&self) -> bool {
        is_at(&self.file, &self.path)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        drop(self.file.unlock()); // the heartbeat may hold the file a moment longer
    }
}

fn beat(file: &File) {
    drop(file.set_modified(SystemTime::now())); // a beat that fails is one that is missing
}

/// Whether a path still leads to a file.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(held), Ok(there)) => (held.dev(), held.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_at_a_time_and_a_stopped_holder_is_overtaken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = Lock::take(&path).await.ok().unwrap();
        assert!(File::open(&path).unwrap().try_lock().is_err());
        drop(first);

        // A process that was stopped: it holds the lock, and its heart has not beaten for long.
        let stopped = File::options().append(true).open(&path).unwrap();
        stopped.lock().unwrap();
        stopped.set_modified(SystemTime::now() - STALE * 2).unwrap();
        let next = Lock::take(&path).await.ok().unwrap();
        assert!(next.is_ours() && !is_at(&stopped, &path));
    }
}
