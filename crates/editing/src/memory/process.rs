//! A memory that ends with the process, for callers that stay connected.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::ReadMemory;
use crate::knowledge::FileKnowledge;

/// How many files are remembered. The one that was used longest ago is forgotten first, and must be read again before
/// it is overwritten.
const FILES: usize = 256;

/// How many sessions' programs are remembered, by the same rule.
const SESSIONS: usize = 64;

/// What one caller of this process knows.
#[derive(Debug, Default)]
pub struct ProcessMemory {
    /// The latest last.
    files: Mutex<Vec<(PathBuf, FileKnowledge)>>,
    /// What the programs of its sessions know, the latest last.
    programs: Mutex<Vec<(String, Arc<Self>)>>,
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

    fn of_programs(&self, session: &str) -> Arc<dyn ReadMemory> {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        let memory = match programs.iter().position(|(name, _)| name == session) {
            Some(at) => programs.remove(at).1,
            None => Arc::default(),
        };
        if programs.len() >= SESSIONS {
            programs.remove(0);
        }
        programs.push((session.to_owned(), Arc::clone(&memory)));
        memory
    }
}
