//! What a daemon remembers beyond its own life, in one small file: the sessions it had, why earlier ones ended, and which
//! names of background calls were given. So the next daemon can report that variables are gone, and why.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use cellwright_ownership::private_folder;
use serde::{Deserialize, Serialize};

use crate::identity::SessionKey;
use crate::notice::Departure;

/// What the file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionRecord {
    /// Sessions that have a kernel.
    pub(crate) live: Vec<SessionKey>,
    /// Sessions that have ended, the oldest first.
    pub(crate) ended: Vec<(SessionKey, Departure)>,
    /// No number above this was given.
    pub(crate) numbers: u64,
}

/// The file, which one daemon writes at a time.
#[derive(Debug)]
pub(crate) struct SessionLedger {
    path: PathBuf,
    written: Mutex<SessionRecord>,
}

impl SessionLedger {
    /// Opens the file, and returns what an earlier daemon left in it.
    pub(crate) fn open(path: &Path) -> (Self, SessionRecord) {
        let left = match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                tracing::warn!(%error, path = %path.display(), "what earlier sessions left cannot be read");
                SessionRecord::default()
            }),
            Err(_) => SessionRecord::default(), // the first daemon, most likely
        };
        (Self { path: path.to_owned(), written: Mutex::default() }, left)
    }

    /// Writes what `now` returns, if it is new.
    pub(crate) fn write(&self, now: impl FnOnce() -> SessionRecord) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let now = now(); // under the lock, so that the last one written is the latest
        if *written == now {
            return;
        }
        match self.replace(&now) {
            Ok(()) => *written = now,
            Err(error) => {
                tracing::warn!(%error, path = %self.path.display(), "what sessions leave cannot be written");
            }
        }
    }

    fn replace(&self, record: &SessionRecord) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            private_folder(folder)?;
        }
        let new = self.path.with_extension("new");
        let mut file = fs::File::options().create(true).write(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(&serde_json::to_vec(record)?)?;
        fs::rename(new, &self.path)
    }
}
