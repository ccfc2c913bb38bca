//! Putting a notebook on disk, if nobody else did meanwhile.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::replacement::{Durability, Name, ReplaceError, Replacement};
use super::{FileError, Guard, read};
use crate::notebook::Notebook;
use crate::snapshot::Snapshot;

/// Puts `changed` in the place of the file, if that still holds `original`. Its lock must be held, if it can be.
pub(super) fn replace(
    path: &Path,
    target: &Path,
    guard: Guard,
    (original, stamp): (&Notebook, &Stamp),
    changed: &Notebook,
    durability: Durability,
) -> Result<File, FileError> {
    let failed = |ReplaceError { attempt, source }| FileError::Io { path: path.into(), attempt, source };
    let name = match guard {
        Guard::Lock => Name::OfTheFile,
        // The name of the file could be that of another writer's new content.
        Guard::Nothing => Name::Random,
    };
    let new = Replacement::made(target, &bytes(changed), name, durability);
    let new = new.map_err(failed)?;
    let holds = still_holds(target, stamp, original);
    if !holds.map_err(|source| FileError::Io { path: path.into(), attempt: "read it again", source })? {
        let what = match read(target) {
            Ok(now) => Snapshot::of(original).changes_to(&now),
            Err(_) => "it is not a notebook any more".to_owned(),
        };
        return Err(FileError::Changed { path: path.into(), what });
    }
    new.commit().map_err(failed)
}

/// Writes a new file; false when there is one already.
pub fn create(path: &Path, notebook: &Notebook) -> Result<bool, FileError> {
    // With the permissions any new file has.
    let new = Replacement::new_file(path, 0o666, notebook.text().as_bytes());
    let created = new.and_then(Replacement::commit_new);
    created.map_err(|ReplaceError { attempt, source }| FileError::Io { path: path.into(), attempt, source })
}

/// What the system notes of a file: another one, or another time, means that it was written.
#[derive(Debug, Clone)]
pub(super) struct Stamp {
    identity: (u64, u64),
    length: u64,
    written: (i64, i64),
    changed: (i64, i64),
    /// The last change was long enough before we read it that one after it has another time.
    settled: bool,
}

impl Stamp {
    /// Whether nothing tells that the file was written; it may have been all the same, a moment after this was taken.
    pub(super) fn looks_like(&self, now: &Self) -> bool {
        let Self { identity, length, written, changed, settled: _ } = self;
        (identity, length, written, changed) == (&now.identity, &now.length, &now.written, &now.changed)
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Must be taken before the content is read.
    pub(super) fn of(metadata: &Metadata) -> Self {
        /// Coarser than any clock a file system keeps.
        const TICK: Duration = Duration::from_secs(5);
        let changed_at =
            SystemTime::UNIX_EPOCH + Duration::from_secs(metadata.ctime().try_into().unwrap_or(0));
        Self {
            identity: (metadata.dev(), metadata.ino()),
            length: metadata.len(),
            written: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            settled: changed_at.elapsed().is_ok_and(|age| age > TICK),
        }
    }
}

fn bytes(notebook: &Notebook) -> Vec<&[u8]> {
    notebook.pieces().map(str::as_bytes).collect()
}

/// Whether the file holds this notebook. Read only when its stamp cannot tell, and then without holding it twice.
fn still_holds(target: &Path, stamp: &Stamp, notebook: &Notebook) -> io::Result<bool> {
    let mut file = File::open(target)?;
    if stamp.settled && Stamp::of(&file.metadata()?).looks_like(stamp) {
        return Ok(true);
    }
    holds(&mut file, notebook)
}

/// Whether the rest of the file is this notebook.
pub(super) fn holds(file: &mut File, notebook: &Notebook) -> io::Result<bool> {
    let mut chunk = vec![0; 1 << 16];
    for mut piece in bytes(notebook) {
        while !piece.is_empty() {
            let wanted = piece.len().min(chunk.len());
            match file.read(&mut chunk[..wanted])? {
                0 => return Ok(false),
                length => match piece.strip_prefix(&chunk[..length]) {
                    Some(after) => piece = after,
                    None => return Ok(false),
                },
            }
        }
    }
    Ok(file.read(&mut chunk[..1])? == 0)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{Action, CellRef, Outputs};

    #[test]
    fn a_file_holds_a_notebook_to_the_last_byte_and_no_more() {
        let cell = r#"{"cell_type":"raw","source":"x"}"#;
        let text = format!(r#"{{"cells":[{cell},{cell},{cell}],"nbformat":4}}"#);
        let edit = Action::Edit { cell: CellRef::Index(1), source: "yy".to_owned() };
        let edited = Notebook::parse(text.into()).expect("a notebook").act(&edit, Outputs::Clear);
        let edited = edited.expect("there is a cell 1").notebook.expect("it changed");
        assert!(edited.pieces().count() > 2);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        let held = |content: &str| {
            fs::write(&path, content).expect("written");
            holds(&mut File::open(&path).expect("there"), &edited).expect("read")
        };
        let text = edited.text();
        assert!(held(text));
        for other in [&format!("{text} "), &text.replace("yy", "yz"), &text.replace('4', "5"), &text[1..], ""]
        {
            assert!(!held(other), "{other}");
        }
        for end in 0..text.len() {
            assert!(!held(&text[..end]), "{end}");
        }
    }
}
