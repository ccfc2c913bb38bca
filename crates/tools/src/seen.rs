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
    Notebook(Box<Snapshot>),
    Text(Fingerprint),
}

impl Seen {
    pub(crate) fn remember(&mut self, path: &Path, memory: Memory) {
        self.forget(path);
        if self.files.len() == REMEMBERED {
            self.files.remove(0);
        }
        self.files.push((path.to_owned(), memory));
    }

    pub(crate) fn forget(&mut self, path: &Path) {
        self.files.retain(|(seen, _)| seen != path);
    }

    pub(crate) fn memory(&self, path: &Path) -> Option<Memory> {
        self.files.iter().find(|(seen, _)| seen == path).map(|(_, memory)| memory.clone())
    }
}
