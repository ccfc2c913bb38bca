//! A notebook file that one writer changes again and again, while others may write it too.

use std::fs::{self, File, Metadata};
use std::io::{Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use super::FileError;
use super::in_place::{self, recover};
use super::lock::{FileAccess, LockedFile, WRITE_WAIT, notebook_in, open, unreadable, when_whole};
use super::save::{self, FileContent, FileStamp, SaveMethod, SaveSettings, SavedFile};
use crate::notebook::Notebook;

/// How often to start over while others write all the time.
const PATIENCE: usize = 100;

/// A notebook file that is changed again and again. Between two changes it is not locked, and what it holds is remembered, so
/// that it is read again only when somebody else wrote it.
#[derive(Debug)]
pub struct TrackedFile {
    path: PathBuf,
    target: PathBuf,
    settings: SaveSettings,
    notebook: Notebook,
    stamp: FileStamp,
    /// The file that our last change replaced, and what it looked like then: a program that had it open may write to it still.
    displaced: Option<DisplacedFile>,
}

type DisplacedFile = (File, FileLook);

/// What a file looked like when it was last read or saved.
#[derive(Debug, Clone)]
pub struct FileMark {
    target: PathBuf,
    stamp: FileStamp,
}

impl FileMark {
    /// The file, links resolved.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Whether the file looks as it did then. Cheap, and all but certain: a write in the same instant that leaves the length
    /// as it was is not seen.
    pub fn is_current(&self) -> bool {
        fs::metadata(&self.target).is_ok_and(|now| FileStamp::of(&now).looks_like(&self.stamp))
    }
}

/// Whether a file is as its writer left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSince {
    /// It is.
    Unchanged,
    /// Somebody else wrote it.
    Changed,
}

type FileLook = (u64, i64, i64);

fn look(metadata: &Metadata) -> FileLook {
    (metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

impl TrackedFile {
    /// Reads the notebook, which must be one that can be saved: better to know it before there is something to save.
    pub fn open(path: &Path, settings: &SaveSettings) -> Result<Self, FileError> {
        let target = fs::canonicalize(path).map_err(|error| unreadable(path, error))?;
        recover(path, settings)?;
        let (notebook, stamp) = when_whole(path, || {
            let mut file = open(path, &target, FileAccess::Read)?;
            let metadata = file.metadata().map_err(|error| unreadable(path, error))?;
            Ok((notebook_in(path, &mut file)?, FileStamp::of(&metadata)))
        })?;
        let folder = target.parent().expect("a canonical file path has a folder");
        let refused = |attempt| {
            move |error: nix::Error| FileError::Io { path: path.into(), attempt, source: error.into() }
        };
        access(&target, AccessFlags::W_OK).map_err(refused("write it"))?;
        // With a journal the folder need not be one that can be written.
        let can_be_in_place = || settings.journal.as_deref().is_some_and(in_place::is_usable);
        access(folder, AccessFlags::W_OK)
            .or_else(|error| if can_be_in_place() { Ok(()) } else { Err(error) })
            .map_err(refused("write into its folder"))?;
        let (path, settings) = (path.into(), settings.clone());
        Ok(Self { path, target, settings, notebook, stamp, displaced: None })
    }

    /// The notebook as it was when it was last read or saved.
    pub fn notebook(&self) -> &Notebook {
        &self.notebook
    }

    /// What the file looked like then.
    pub fn mark(&self) -> FileMark {
        FileMark { target: self.target.clone(), stamp: self.stamp.clone() }
    }

    /// Where it is, links resolved.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// How it is saved.
    pub fn settings(&self) -> &SaveSettings {
        &self.settings
    }

    /// Saves what `change` makes of the notebook. It first gets what others wrote meanwhile, and also what one of
    /// them wrote at the very moment we saved.
    pub fn update<E: From<FileError>>(
        &mut self,
        mut change: impl FnMut(&Notebook, FileSince) -> Result<Notebook, E>,
    ) -> Result<SaveMethod, E> {
        // What others wrote and our file does not hold: it went to the file we replaced.
        let mut lost = self.written_to_displaced()?;
        let mut trusted = true;
        for _ in 0..PATIENCE {
            let Some(locked) = LockedFile::acquire(&self.path, &self.target)? else { continue };
            let theirs =
                if trusted && locked.stamp.looks_like(&self.stamp) { None } else { Some(self.read()?) };
            let original = theirs.as_ref().unwrap_or(&self.notebook);
            let changed = match (&lost, &theirs) {
                (Some(theirs), _) | (None, Some(theirs)) => change(theirs, FileSince::Changed)?,
                (None, None) => change(&self.notebook, FileSince::Unchanged)?,
            };
            let (old, new) = (FileContent::Notebook(original), FileContent::Notebook(&changed));
            match save::replace(&locked, old, new, &self.settings) {
                Ok(Some(SavedFile { method, stamp, _file })) => {
                    let (found, displaced) = match method {
                        SaveMethod::Renamed => self.written_meanwhile(locked.file, original)?,
                        SaveMethod::InPlace => (None, None),
                    };
                    (self.notebook, self.stamp, self.displaced) = (changed, stamp, displaced);
                    (lost, trusted) = (found, true);
                    if lost.is_none() {
                        return Ok(method);
                    }
                }
                // The stamp did not show it but the content does; or the content is the same in another file.
                Ok(None) | Err(FileError::Changed { .. }) => trusted = false,
                Err(error) => return Err(error.into()),
            }
        }
        let what = "others write it all the time".to_owned();
        Err(FileError::Changed { path: self.path.clone(), what }.into())
    }

    fn read(&self) -> Result<Notebook, FileError> {
        when_whole(&self.path, || {
            notebook_in(&self.path, &mut open(&self.path, &self.target, FileAccess::Read)?)
        })
    }

    /// What a program that writes in place put into the file we replaced, between our last look and the rename; else the file.
    ///
    /// Kept, although the time is short: editors and sync programs do write in place, and nobody's bytes may be lost.
    fn written_meanwhile(
        &self,
        mut replaced: File,
        held: &Notebook,
    ) -> Result<(Option<Notebook>, Option<DisplacedFile>), FileError> {
        let failed = |source| FileError::Io { path: self.path.clone(), attempt: "read it again", source };
        let seen = look(&replaced.metadata().map_err(failed)?);
        replaced.seek(SeekFrom::Start(0)).map_err(failed)?;
        if save::holds(&mut replaced, FileContent::Notebook(held)).map_err(failed)? {
            return Ok((None, Some((replaced, seen))));
        }
        Ok((self.notebook_of(replaced)?, None))
    }

    /// The same, of a program that was not done yet when we saved.
    fn written_to_displaced(&mut self) -> Result<Option<Notebook>, FileError> {
        let failed = |source| FileError::Io { path: self.path.clone(), attempt: "read it again", source };
        match self.displaced.take() {
            Some((file, seen)) if look(&file.metadata().map_err(failed)?) != seen => self.notebook_of(file),
            Some(_) | None => Ok(None),
        }
    }

    fn notebook_of(&self, mut file: File) -> Result<Option<Notebook>, FileError> {
        let deadline = std::time::Instant::now() + WRITE_WAIT;
        loop {
            match notebook_in(&self.path, &mut file) {
                Ok(notebook) => return Ok(Some(notebook)),
                Err(FileError::Parse { .. }) if std::time::Instant::now() < deadline => {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                // Given up half-way, as by a program that was killed: there is nothing to keep.
                Err(FileError::Parse { .. }) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}
