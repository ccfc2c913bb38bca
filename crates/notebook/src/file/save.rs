//! Putting a notebook on disk, if nobody else did meanwhile.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::libc;

use super::in_place;
use super::lock::{FolderTurn, LockedFile, jupyter_saves};
use super::replacement::{CommitResult, FileReplaceError, FileReplacement, folder};
use super::{FileError, read};
use crate::notebook::Notebook;
use crate::snapshot::Snapshot;

/// How notebooks are saved. This crate knows no environment: the caller names the folders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SaveSettings {
    /// A folder for the journals of saves in place, made when it is needed. A file that cannot be replaced by a rename (a single
    /// file that is mounted, or one in a folder that cannot be written) is written in place, and a journal here makes
    /// sure that a crash meanwhile costs nothing. Without a folder such a save is refused.
    pub journal: Option<PathBuf>,
}

/// How a notebook got into its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaveMethod {
    /// A new file was renamed over the old one.
    Renamed,
    /// The file was written in place, with a journal: renaming was impossible. Worth a word: programs that read it at that
    /// moment may have seen half of it.
    InPlace,
}

/// A notebook that was saved.
#[derive(Debug)]
pub(super) struct SavedFile {
    pub(super) method: SaveMethod,
    /// What the file looks like now.
    pub(super) stamp: FileStamp,
    /// The file, locked until this is dropped.
    pub(super) _file: Option<File>,
}

/// What a file holds, or is to hold.
#[derive(Debug, Clone, Copy)]
pub(super) enum FileContent<'a> {
    Notebook(&'a Notebook),
    /// Anything.
    Bytes(&'a [u8]),
}

impl<'a> FileContent<'a> {
    pub(super) fn pieces(self) -> Vec<&'a [u8]> {
        match self {
            Self::Notebook(notebook) => notebook.pieces().map(str::as_bytes).collect(),
            Self::Bytes(bytes) => vec![bytes],
        }
    }
}

/// Puts `changed` in the place of the locked file, if that still holds `original` and still has its name. `None` when another
/// file with the same content has the name now: lock that one, and begin again.
pub(super) fn replace(
    locked: &LockedFile<'_>,
    original: FileContent<'_>,
    changed: FileContent<'_>,
    settings: &SaveSettings,
) -> Result<Option<SavedFile>, FileError> {
    let LockedFile { path, target, .. } = locked;
    let failed =
        |FileReplaceError { attempt, source }| FileError::Io { path: (*path).into(), attempt, source };
    let new = match FileReplacement::of_pieces(target, &changed.pieces()) {
        Ok(new) => new,
        Err(error) if error.attempt.starts_with("make") && is_about_the_folder(&error.source) => {
            return in_place::save(locked, original, changed, settings, error.source);
        }
        Err(error) => return Err(failed(error)),
    };
    // From here on no other process of ours renames in this folder, whatever file it has locked.
    let turn = FolderTurn::take(folder(target));
    match compare(locked, original)? {
        NameHolder::Original => {}
        NameHolder::SameElsewhere => return Ok(None),
        NameHolder::Other => return Err(changed_since(locked, original)),
    }
    #[cfg(test)]
    super::seams::reach(super::seams::Seam::BeforeRename);
    let committed = new.commit_over(|displaced| {
        Ok(FileStamp::of(&fs::metadata(displaced)?).is_same_content_as(&locked.stamp))
    });
    drop(turn);
    match committed {
        Ok(CommitResult::Done(file)) => {
            let metadata = file.metadata().map_err(|source| FileError::Io {
                path: (*path).into(),
                attempt: "look at it",
                source,
            })?;
            Ok(Some(SavedFile {
                method: SaveMethod::Renamed,
                stamp: FileStamp::of(&metadata),
                _file: Some(file),
            }))
        }
        Ok(CommitResult::Overtaken) => Err(changed_since(locked, original)),
        Err(error) if error.attempt == "replace it" && is_about_the_folder(&error.source) => {
            in_place::save(locked, original, changed, settings, error.source)
        }
        Err(error) => Err(failed(error)),
    }
}

/// Whether a rename failed for where the file is, not for want of space or of the file.
fn is_about_the_folder(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EACCES | libc::EPERM | libc::EROFS))
}

/// Somebody else wrote the file: what they did to it, for the caller.
fn changed_since(locked: &LockedFile<'_>, original: FileContent<'_>) -> FileError {
    let what = match (original, read(locked.target)) {
        (FileContent::Notebook(original), Ok(now)) => Snapshot::of(original).changes_to(&now),
        (FileContent::Notebook(_), Err(_)) => "it is not a notebook any more".to_owned(),
        (FileContent::Bytes(_), _) => String::new(),
    };
    let what = if what.is_empty() { "it was written at the same moment".to_owned() } else { what };
    FileError::Changed { path: locked.path.into(), what }
}

/// Writes a new file; false when there is one already.
pub fn create(path: &Path, notebook: &Notebook) -> Result<bool, FileError> {
    // With the permissions any new file has.
    let new = FileReplacement::new_file_of_pieces(path, 0o666, &FileContent::Notebook(notebook).pieces());
    let created = new.and_then(FileReplacement::commit_new);
    created.map_err(|FileReplaceError { attempt, source }| FileError::Io {
        path: path.into(),
        attempt,
        source,
    })
}

/// What the system notes of a file: another one, or another time, means that it was written.
#[derive(Debug, Clone)]
pub(super) struct FileStamp {
    identity: (u64, u64),
    length: u64,
    written: (i64, i64),
    changed: (i64, i64),
    /// The last change was long enough before we read it that one after it has another time.
    settled: bool,
}

impl FileStamp {
    /// Whether nothing shows that the file was written. It may have been written anyway, just after this was taken.
    pub(super) fn looks_like(&self, now: &Self) -> bool {
        let Self { identity, length, written, changed, settled: _ } = self;
        (identity, length, written, changed) == (&now.identity, &now.length, &now.written, &now.changed)
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Whether it is the same file, and nothing shows that it was written. It may have been renamed.
    fn is_same_content_as(&self, other: &Self) -> bool {
        let Self { identity, length, written, changed: _, settled: _ } = self;
        (identity, length, written) == (&other.identity, &other.length, &other.written)
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

/// What has the name of a locked file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameHolder {
    /// That file, with what was read from it.
    Original,
    /// Another file with the same content, whose lock we do not hold; or Jupyter is about to write it.
    SameElsewhere,
    /// Something else.
    Other,
}

/// Looks at the file once more. It is read only when its stamp says too little, and then without holding it twice.
pub(super) fn compare(locked: &LockedFile<'_>, original: FileContent<'_>) -> Result<NameHolder, FileError> {
    let LockedFile { path, target, stamp, .. } = locked;
    let compared = || {
        if jupyter_saves(target) {
            return Ok(NameHolder::SameElsewhere);
        }
        let mut file = File::open(target)?;
        let now = FileStamp::of(&file.metadata()?);
        if stamp.settled && now.looks_like(stamp) {
            return Ok(NameHolder::Original);
        }
        Ok(match holds(&mut file, original)? {
            true if now.identity == stamp.identity => NameHolder::Original,
            true => NameHolder::SameElsewhere,
            false => NameHolder::Other,
        })
    };
    compared().map_err(|source| FileError::Io { path: (*path).into(), attempt: "read it again", source })
}

/// Whether this is the rest of the file.
pub(super) fn holds(file: &mut File, content: FileContent<'_>) -> io::Result<bool> {
    let mut chunk = vec![0; 1 << 16];
    for mut piece in content.pieces() {
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
    use crate::{Action, CellRef, OutputsAfterEdit};

    #[test]
    fn a_file_holds_a_notebook_to_the_last_byte_and_no_more() {
        let cell = r#"{"cell_type":"raw","source":"x"}"#;
        let text = format!(r#"{{"cells":[{cell},{cell},{cell}],"nbformat":4}}"#);
        let edit = Action::Edit { cell: CellRef::Index(1), source: "yy".to_owned() };
        let edited = Notebook::parse(text.into()).expect("a notebook").act(&edit, OutputsAfterEdit::Clear);
        let edited = edited.expect("there is a cell 1").notebook.expect("it changed");
        assert!(edited.pieces().count() > 2);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        let held = |content: &str| {
            fs::write(&path, content).expect("written");
            holds(&mut File::open(&path).expect("there"), FileContent::Notebook(&edited)).expect("read")
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
