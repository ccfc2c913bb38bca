//! A memory that ends with the process, for callers that stay connected.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::ReadMemory;
use crate::knowledge::FileKnowledge;

/// How many files are remembered. The one that was used longest ago is forgotten first, and must be read again before
/// it is overwritten.
const FILES: usize = 256;

/// What one caller of this process knows.
#[derive(Debug, Default)]
pub struct ProcessMemory {
    /// The latest last.
    files: Mutex<Vec<(PathBuf, FileKnowledge)>>,
}

impl ProcessMemory {
    fn files(&self) -> MutexGuard<'_, Vec<(PathBuf, FileKnowledge)>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReadMemory for ProcessMemory {
    fn recall(&self, file: &Path) -> Option<FileKnowledge> {
        self.files().iter().find(|(path, _)| path == file).map(|(_, knowledge)| knowledge.clone())
    }

    fn remember(&self, file: &Path, knowledge: FileKnowledge) -> io::Result<()> {
        let mut files = self.files();
        files.retain(|(path, _)| path != file);
        if files.len() >= FILES {
            files.remove(0);
        }
        files.push((file.to_owned(), knowledge));
        Ok(())
    }

    fn forget(&self, file: &Path) {
        self.files().retain(|(path, _)| path != file);
    }
}
