//! A memory that outlives the process, for callers that start one for each command.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use cellwright_notebook::Fingerprint;
use cellwright_ownership::private_folder;

use super::ReadMemory;
use crate::knowledge::FileKnowledge;

/// How long a caller is remembered that has not come back.
const KEPT: Duration = Duration::from_hours(24 * 14);

/// What one caller knows, in a folder of files, one for each file it has read.
#[derive(Debug, Clone)]
pub struct DiskMemory {
    callers: PathBuf,
    folder: PathBuf,
}

impl DiskMemory {
    /// The memory of a caller, below `folder`. Callers with different names know nothing of each other.
    pub fn of_caller(folder: &Path, caller: &str) -> Self {
        let name = Fingerprint::of(caller.as_bytes()).to_string();
        Self { callers: folder.to_owned(), folder: folder.join(name) }
    }

    fn note(&self, file: &Path) -> PathBuf {
        self.folder.join(Fingerprint::of(file.as_os_str().as_encoded_bytes()).to_string())
    }

    /// Makes the caller's folder, and removes those of callers that did not come back.
    fn make_folder(&self) -> io::Result<()> {
        if self.folder.is_dir() {
            return Ok(());
        }
        private_folder(&self.folder)?;
        for entry in fs::read_dir(&self.callers)?.flatten() {
            let is_old = entry
                .metadata()
                .and_then(|metadata| metadata.modified())
                .is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > KEPT));
            if is_old {
                drop(fs::remove_dir_all(entry.path()).or_else(|_| fs::remove_file(entry.path()))); // next time, then
            }
        }
        Ok(())
    }
}

/// The first line of a note: the file that the caller has seen all of, if that is all it knows.
fn heading(knowledge: &FileKnowledge) -> String {
    let whole = match knowledge {
        FileKnowledge::Notebook(knowledge) => knowledge.whole(),
        FileKnowledge::Text(_) => None,
    };
    whole.map_or_else(|| "-\n".to_owned(), |whole| format!("{whole}\n"))
}

impl ReadMemory for DiskMemory {
    fn recall(&self, file: &Path) -> Option<FileKnowledge> {
        let note = fs::read(self.note(file)).ok()?;
        let heading = note.iter().position(|byte| *byte == b'\n')?;
        serde_json::from_slice(&note[heading + 1..]).ok()
    }

    /// By the first line, since most reads are of what was read before.
    fn knows_whole(&self, file: &Path, fingerprint: Fingerprint) -> bool {
        let heading = format!("{fingerprint}\n");
        let mut start = vec![0; heading.len()];
        let read = File::open(self.note(file)).and_then(|mut note| note.read_exact(&mut start));
        read.is_ok() && start == heading.as_bytes()
    }

    fn remember(&self, file: &Path, mut knowledge: FileKnowledge) -> io::Result<()> {
        if let FileKnowledge::Notebook(knowledge) = &mut knowledge {
            knowledge.compact();
        }
        self.make_folder()?;
        let note = self.note(file);
        // Whole or not at all: another command of the same caller may read it at this moment.
        let new = note.with_extension(format!("{}", std::process::id()));
        let mut text = heading(&knowledge).into_bytes();
        serde_json::to_writer(&mut text, &knowledge)?;
        let mut options = fs::OpenOptions::new();
        let mut out = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        let written = out.write_all(&text).and_then(|()| fs::rename(&new, note));
        written.inspect_err(|_| drop(fs::remove_file(&new)))
    }

    fn forget(&self, file: &Path) {
        drop(fs::remove_file(self.note(file))); // one that is not there is forgotten
    }

    /// A memory of its own on disk: the session may outlive this process.
    fn of_programs(&self, session: &str) -> Arc<dyn ReadMemory> {
        let caller = self.folder.file_name().unwrap_or_default().to_string_lossy();
        Arc::new(Self::of_caller(&self.callers, &format!("programs of {caller} in {session}")))
    }
}
