//! Notebook files: read whole, replaced whole or not at all.
//!
//! [`update`] and [`TrackedFile::update`] are the only ways a notebook changes on disk. They hold a lock on the file from
//! before reading until after replacing it, so no edit made through this crate is lost to another. Just before the rename they
//! compare the file with what was read, and just after it they look at what they have replaced: an edit made by any
//! other program, in place or by a rename, is noticed and wins.

mod in_place;
#[cfg(test)]
mod interleaving;
mod leftovers;
mod lock;
mod replacement;
mod save;
#[cfg(test)]
mod seams;
mod sources;
mod tracked;

pub use in_place::recover;
pub use replacement::{FileReplaceError, FileReplacement};
pub use save::{SaveMethod, SaveSettings, create};
pub use sources::skim;
pub use tracked::{FileMark, FileSince, TrackedFile};

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use self::lock::{FileAccess, LockedFile, notebook_in, open, unreadable, when_whole};
use self::save::{FileContent, FileStamp};
use crate::both::LARGE;
use crate::notebook::{Notebook, ParseError};
use crate::snapshot::Fingerprint;

/// Why a notebook file could not be read or written. The file is then as it was.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// No such file.
    #[error("{}: no such file", path.display())]
    Missing {
        /// The path asked for.
        path: PathBuf,
    },
    /// Not a file a notebook can be in.
    #[error("{}: {what}, not a notebook file", path.display())]
    NotAFile {
        /// The path asked for.
        path: PathBuf,
        /// `a directory`, `a named pipe`, …
        what: &'static str,
    },
    /// Not a notebook.
    #[error("{} is not a usable notebook", path.display())]
    Parse {
        /// The path asked for.
        path: PathBuf,
        /// What is wrong with it.
        source: ParseError,
    },
    /// Jupyter is saving it, or was stopped while it saved.
    #[error(
        "{} is not complete: Jupyter is saving it, or was stopped while it saved. {} holds the version before; \
         try again, or copy that over it",
        path.display(), copy.display()
    )]
    SaveInProgress {
        /// The path asked for.
        path: PathBuf,
        /// The version before, as Jupyter keeps it while it saves.
        copy: PathBuf,
    },
    /// Somebody else wrote the file meanwhile.
    #[error("{}: changed since it was read, so nothing was written ({what}); read it again", path.display())]
    Changed {
        /// The path asked for.
        path: PathBuf,
        /// What is different.
        what: String,
    },
    /// The system refused.
    #[error("{}: could not {attempt}", path.display())]
    Io {
        /// The path asked for.
        path: PathBuf,
        /// What was tried.
        attempt: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

impl FileError {
    /// The same, about a file that the caller calls by another name.
    #[must_use]
    pub fn called(mut self, name: &str) -> Self {
        match &mut self {
            Self::Missing { path }
            | Self::NotAFile { path, .. }
            | Self::Parse { path, .. }
            | Self::SaveInProgress { path, .. }
            | Self::Changed { path, .. }
            | Self::Io { path, .. } => *path = PathBuf::from(name),
        }
        self
    }
}

/// What to do when there is no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfMissing {
    /// That is an error.
    Fail,
    /// Start from an empty notebook.
    Create,
}

/// Reads a notebook.
pub fn read(path: &Path) -> Result<Notebook, FileError> {
    when_whole(path, || notebook_in(path, &mut open(path, path, FileAccess::Read)?))
}

/// What a notebook is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadNeed {
    /// Its sources. The outputs of a large one are not held, which makes it much faster: then the notebook is without them.
    Sources,
    /// All of it.
    All,
}

/// Reads a notebook, and the fingerprint of the file.
pub fn read_fingerprinted(path: &Path, need: ReadNeed) -> Result<(Notebook, Fingerprint), FileError> {
    if need == ReadNeed::Sources
        && let Some(seen) = large_sources(path, |file| skim(file, sources::CHUNK))?
    {
        return Ok(seen);
    }
    let notebook = read(path)?;
    let fingerprint = Fingerprint::of_file(&notebook);
    Ok((notebook, fingerprint))
}

/// Nothing for a file that is better read whole, or was written meanwhile: half of it would be old.
fn large_sources<T>(path: &Path, skim: impl FnOnce(&File) -> Option<T>) -> Result<Option<T>, FileError> {
    let file = open(path, path, FileAccess::Read)?;
    let stamp =
        || file.metadata().map(|metadata| FileStamp::of(&metadata)).map_err(|error| unreadable(path, error));
    let before = stamp()?;
    if before.length() < LARGE as u64 {
        return Ok(None);
    }
    let seen = skim(&file);
    Ok(seen.filter(|_| stamp().is_ok_and(|after| after.looks_like(&before))))
}

/// Whether there was a file to update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundFile {
    /// There was.
    File,
    /// There was none, and this update created it.
    Nothing,
}

/// The result of an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdatedFile<T> {
    /// What `change` returned beside the notebook.
    pub outcome: T,
    /// Whether there was a file.
    pub found: FoundFile,
    /// How it was saved; `None` when it was left alone.
    pub saved: Option<SaveMethod>,
}

/// Reads a notebook, changes it, and saves what `change` returns; `None` leaves the file alone.
///
/// Blocks while another process updates the same notebook. A symlink is followed, not replaced.
pub fn update<T, E: From<FileError>>(
    path: &Path,
    if_missing: IfMissing,
    change: impl Fn(&Notebook) -> Result<(Option<Notebook>, T), E>,
) -> Result<T, E> {
    update_with(&SaveSettings::default(), path, if_missing, change).map(|updated| updated.outcome)
}

/// As [`update`], saved as `settings` say. Finishes first what an earlier save in place could not.
pub fn update_with<T, E: From<FileError>>(
    settings: &SaveSettings,
    path: &Path,
    if_missing: IfMissing,
    change: impl Fn(&Notebook) -> Result<(Option<Notebook>, T), E>,
) -> Result<UpdatedFile<T>, E> {
    recover(path, settings)?;
    loop {
        match fs::canonicalize(path) {
            Ok(target) => {
                let read = when_whole(path, || {
                    let Some(mut locked) = LockedFile::acquire(path, &target)? else { return Ok(None) };
                    let notebook = locked.read()?;
                    Ok(Some((locked, notebook)))
                })?;
                let Some((locked, notebook)) = read else {
                    continue; // replaced by another writer while we waited for it
                };
                let (changed, outcome) = change(&notebook)?;
                let saved = match changed {
                    Some(changed) => {
                        let (old, new) = (FileContent::Notebook(&notebook), FileContent::Notebook(&changed));
                        match save::replace(&locked, old, new, settings)? {
                            Some(saved) => Some(saved.method),
                            None => continue, // another file has the name now
                        }
                    }
                    None => None,
                };
                return Ok(UpdatedFile { outcome, found: FoundFile::File, saved });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && if_missing == IfMissing::Create => {
                if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
                    let what = "a symlink to a file that is not there";
                    return Err(FileError::NotAFile { path: path.into(), what }.into());
                }
                let empty = Notebook::empty();
                let (changed, outcome) = change(&empty)?;
                if create(path, changed.as_ref().unwrap_or(&empty))? {
                    let saved = Some(SaveMethod::Renamed);
                    return Ok(UpdatedFile { outcome, found: FoundFile::Nothing, saved });
                }
                // Another process created it first: its notebook is the one to change.
            }
            Err(error) => return Err(unreadable(path, error).into()),
        }
    }
}

/// As [`update_with`], for a file that need not be a notebook, nor become one.
pub fn update_bytes<T, E: From<FileError>>(
    settings: &SaveSettings,
    path: &Path,
    change: impl Fn(&[u8]) -> Result<(Option<Vec<u8>>, T), E>,
) -> Result<UpdatedFile<T>, E> {
    recover(path, settings)?;
    loop {
        let target = fs::canonicalize(path).map_err(|error| unreadable(path, error))?;
        let Some(mut locked) = LockedFile::acquire(path, &target)? else { continue };
        let bytes = locked.bytes()?;
        let (changed, outcome) = change(&bytes)?;
        let saved = match changed {
            Some(changed) => {
                let (old, new) = (FileContent::Bytes(&bytes), FileContent::Bytes(&changed));
                match save::replace(&locked, old, new, settings)? {
                    Some(saved) => Some(saved.method),
                    None => continue, // another file has the name now
                }
            }
            None => None,
        };
        return Ok(UpdatedFile { outcome, found: FoundFile::File, saved });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_file_that_is_written_while_it_is_skimmed_is_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        let write = |length: usize| fs::write(&path, "a".repeat(length)).expect("written");
        write(LARGE);
        assert_eq!(large_sources(&path, |_| Some(1)).expect("there"), Some(1));
        let torn = large_sources(&path, |_| {
            write(LARGE + 1);
            Some(1)
        });
        assert_eq!(torn.expect("there"), None);
        write(1);
        assert_eq!(large_sources(&path, |_| Some(1)).expect("there"), None);
    }
}
