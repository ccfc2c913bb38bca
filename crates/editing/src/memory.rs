//! Where it is kept what callers know.

mod disk;
mod process;

use std::io;
use std::path::Path;
use std::sync::Arc;

use cellwright_notebook::Fingerprint;

pub use disk::DiskMemory;
pub use process::ProcessMemory;

use crate::knowledge::FileKnowledge;

/// What one caller knows of files. Files are named by their real path.
pub trait ReadMemory: Send + Sync {
    /// What the caller knows of a file; `None` if it has not read it.
    fn recall(&self, file: &Path) -> Option<FileKnowledge>;

    /// Whether the caller knows all of a file as it is, and nothing else of it: then a read of all teaches it nothing.
    fn knows_whole(&self, file: &Path, fingerprint: Fingerprint) -> bool {
        match self.recall(file) {
            Some(FileKnowledge::Notebook(knowledge)) => knowledge.whole() == Some(fingerprint),
            Some(FileKnowledge::Text(_)) | None => false,
        }
    }

    /// Keeps what the caller knows of a file now. If that fails, a later change may be refused.
    fn remember(&self, file: &Path, knowledge: FileKnowledge) -> io::Result<()>;

    /// Forgets a file.
    fn forget(&self, file: &Path);

    /// The memory of programs that the caller runs in `session`. What such a program reads, the caller has not seen, so
    /// neither memory vouches for the other.
    fn of_programs(&self, session: &str) -> Arc<dyn ReadMemory>;
}
