//! What a client has read of the files it now wants to change.

use std::path::{Path, PathBuf};

use cellwright_notebook::{Fingerprint, Snapshot};

/// Files remembered; the one read longest ago is forgotten first, and then written without question.
const REMEMBERED: usize = 256;

/// What each file was when the client last read or wrote it.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The latest last.
    files: Vec<(PathBuf, Memory)>,
}

/// What a file was.
#[derive(Debug, Clone)]
pub(crate) enum Memory {
    Notebook {
        /// When the client last saw some of it.
        now: Box<Snapshot>,
        /// When it last saw all of it: a text of all its cells speaks of that.
        whole: Option<Box<Snapshot>>,
    },
    Text(Fingerprint),
}

/// How much of a notebook a client saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    All,
    Some,
    /// What it changed itself: it knows the rest as well as before.
    OwnChange,
}

impl Seen {
    pub(crate) fn remember(&mut self, path: &Path, memory: Memory) {
        self.forget(path);
        if self.files.len() == REMEMBERED {
            self.files.remove(0);
        }
        self.files.push((path.to_owned(), memory));
    }

    pub(crate) fn remember_notebook(&mut self, path: &Path, snapshot: Snapshot, sight: Sight) {
        let (before, known) = match self.memory(path) {
            Some(Memory::Notebook { now, whole }) => (Some(now.fingerprint()), whole),
            Some(Memory::Text(_)) | None => (None, None),
        };
        let now = Box::new(snapshot);
        let whole = match sight {
            Sight::All => Some(now.clone()),
            Sight::OwnChange if known.as_ref().map(|known| known.fingerprint()) == before => {
                before.map(|_| now.clone())
            }
            Sight::Some | Sight::OwnChange => known,
        };
        self.remember(path, Memory::Notebook { now, whole });
    }

    pub(crate) fn forget(&mut self, path: &Path) {
        self.files.retain(|(seen, _)| seen != path);
    }

    pub(crate) fn memory(&self, path: &Path) -> Option<Memory> {
        self.files.iter().find(|(seen, _)| seen == path).map(|(_, memory)| memory.clone())
    }
}
