//! A notebook file that one writer changes again and again, while others may write it too.

use std::fs::{self, File, Metadata};
use std::io::{Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use super::save::{self, Stamp};
use super::{
    Access, Durability, FileError, Guard, contents, open, parse, unreadable, wait_for, when_written,
};
use crate::notebook::Notebook;

/// How often to begin anew when others write all the time.
const PATIENCE: usize = 100;

/// A notebook file that is changed again and again. Between two changes it is not locked, and what it holds is remembered, so
/// that it is read again only when somebody else wrote it.
#[derive(Debug)]
pub struct Again {
    path: PathBuf,
    target: PathBuf,
    notebook: Notebook,
    stamp: Stamp,
    /// The file that our last change replaced, and what it looked like then: a program that had it open may write to it still.
    displaced: Option<Displaced>,
}

type Displaced = (File, Look);

/// What a file looked like when it was last read or saved.
#[derive(Debug, Clone)]
pub struct Mark {
    target: PathBuf,
    stamp: Stamp,
}

impl Mark {
    /// The file, links resolved.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Whether the file looks as it did then. Cheap, and all but certain: a write in the same instant that leaves the length
    /// as it was is not seen.
    pub fn is_current(&self) -> bool {
        fs::metadata(&self.target).is_ok_and(|now| Stamp::of(&now).looks_like(&self.stamp))
    }
}

/// Whether a file is as its writer left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// It is.
    Unchanged,
    /// Somebody else wrote it.
    Changed,
}

type Look = (u64, i64, i64);

fn look(metadata: &Metadata) -> Look {
    (metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

impl Again {
    /// Reads the notebook, which must be one that can be saved: better to know it before there is something to save.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let target = fs::canonicalize(path).map_err(|error| unreadable(path, error))?;
        let (notebook, stamp) = when_written(path, || {
            let mut file = open(path, &target, Access::Read)?;
            let metadata = file.metadata().map_err(|error| unreadable(path, error))?;
            Ok((parse(path, contents(path, &mut file, &metadata)?)?, Stamp::of(&metadata)))
        })?;
        let folder = target.parent().expect("a canonical file path has a folder");
        for (place, attempt) in [(&*target, "write it"), (folder, "write into its folder")] {
            access(place, AccessFlags::W_OK).map_err(|error| {
                let source = error.into();
                FileError::Io { path: path.into(), attempt, source }
            })?;
        }
        Ok(Self { path: path.into(), target, notebook, stamp, displaced: None })
    }

    /// The notebook as it was when it was last read or saved.
    pub fn notebook(&self) -> &Notebook {
        &self.notebook
    }

    /// What the file looked like then.
    pub fn mark(&self) -> Mark {
        Mark { target: self.target.clone(), stamp: self.stamp.clone() }
    }

    /// Where it is, links resolved.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Saves what `change` makes of the notebook. What others wrote meanwhile is handed to it first, and so is what one of
    /// them wrote at the very moment we saved.
    pub fn update<E: From<FileError>>(
        &mut self,
        durability: Durability,
        mut change: impl FnMut(&Notebook, Since) -> Result<Notebook, E>,
    ) -> Result<(), E> {
        // What others wrote and our file does not hold: it went to the file we replaced.
        let mut lost = self.written_to_displaced()?;
        let mut trusted = true;
        for _ in 0..PATIENCE {
            let Some((lock, guard, now)) = self.lock()? else { continue };
            let stamp = Stamp::of(&now);
            let theirs = if trusted && stamp.looks_like(&self.stamp) { None } else { Some(self.read()?) };
            let original = match &theirs {
                Some(theirs) => (theirs, &stamp),
                None => (&self.notebook, &self.stamp),
            };
            let changed = match (&lost, &theirs) {
                (Some(theirs), _) | (None, Some(theirs)) => change(theirs, Since::Changed)?,
                (None, None) => change(&self.notebook, Since::Unchanged)?,
            };
            match save::replace(&self.path, &self.target, guard, original, &changed, durability) {
                Ok(file) => {
                    let metadata = file.metadata().map_err(|error| unreadable(&self.path, error))?;
                    let (found, displaced) = self.written_meanwhile(lock, original.0)?;
                    (self.notebook, self.stamp, self.displaced) = (changed, Stamp::of(&metadata), displaced);
                    (lost, trusted) = (found, true);
                    if lost.is_none() {
                        return Ok(());
                    }
                }
                // The stamp did not tell, the content did.
                Err(FileError::Changed { .. }) => trusted = false,
                Err(error) => return Err(error.into()),
            }
        }
        let what = "others write it all the time".to_owned();
        Err(FileError::Changed { path: self.path.clone(), what }.into())
    }

    fn read(&self) -> Result<Notebook, FileError> {
        when_written(&self.path, || {
            let mut file = open(&self.path, &self.target, Access::Read)?;
            let metadata = file.metadata().map_err(|error| unreadable(&self.path, error))?;
            parse(&self.path, contents(&self.path, &mut file, &metadata)?)
        })
    }

    /// Locks the file. `None` when it was replaced while we waited for it.
    fn lock(&self) -> Result<Option<(File, Guard, Metadata)>, FileError> {
        let path = &self.path;
        let file = open(path, &self.target, Access::Lock)?;
        let guard = wait_for(&file);
        let guard =
            guard.map_err(|source| FileError::Io { path: path.clone(), attempt: "lock it", source })?;
        let locked = file.metadata().map_err(|error| unreadable(path, error))?;
        match fs::metadata(&self.target) {
            Ok(seen) if (seen.dev(), seen.ino()) == (locked.dev(), locked.ino()) => {
                Ok(Some((file, guard, locked)))
            }
            Ok(_) => Ok(None),
            Err(error) => Err(unreadable(path, error)),
        }
    }

    /// What a program that writes in place put into the file we replaced, between our last look and the rename; else the file.
    fn written_meanwhile(
        &self,
        mut replaced: File,
        held: &Notebook,
    ) -> Result<(Option<Notebook>, Option<Displaced>), FileError> {
        let failed = |source| FileError::Io { path: self.path.clone(), attempt: "read it again", source };
        let seen = look(&replaced.metadata().map_err(failed)?);
        replaced.seek(SeekFrom::Start(0)).map_err(failed)?;
        if save::holds(&mut replaced, held).map_err(failed)? {
            return Ok((None, Some((replaced, seen))));
        }
        Ok((self.notebook_in(replaced)?, None))
    }

    /// The same, of a program that was not done yet when we saved.
    fn written_to_displaced(&mut self) -> Result<Option<Notebook>, FileError> {
        let failed = |source| FileError::Io { path: self.path.clone(), attempt: "read it again", source };
        match self.displaced.take() {
            Some((file, seen)) if look(&file.metadata().map_err(failed)?) != seen => self.notebook_in(file),
            Some(_) | None => Ok(None),
        }
    }

    fn notebook_in(&self, file: File) -> Result<Option<Notebook>, FileError> {
        let deadline = std::time::Instant::now() + super::WRITE_WAIT;
        let mut file = file;
        loop {
            let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.metadata());
            let metadata = read.map_err(|error| unreadable(&self.path, error))?;
            match parse(&self.path, contents(&self.path, &mut file, &metadata)?) {
                Ok(notebook) => return Ok(Some(notebook)),
                Err(_) if std::time::Instant::now() < deadline => {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                // Given up half-way, as by a program that was killed: there is nothing to keep.
                Err(_) => return Ok(None),
            }
        }
    }
}
