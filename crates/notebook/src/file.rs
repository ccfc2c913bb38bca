//! Notebook files: read whole, replaced whole or not at all.
//!
//! [`update`] is the only way a notebook changes on disk. It holds a lock on the file from before reading until after
//! replacing it, so no edit made through this crate is lost to another; and it compares the file with what was read
//! just before replacing it, so an edit made by any other program is noticed and wins.

mod again;
mod replacement;
mod save;
mod sources;

pub use again::{Again, Mark, Since};
pub use replacement::{Durability, ReplaceError, Replacement};
pub use save::create;
pub use sources::skim;

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::libc;

use self::save::Stamp;
use crate::both::{LARGE, both};
use crate::notebook::{Notebook, ParseError};
use crate::snapshot::{Fingerprint, Snapshot};

/// How long to wait for another program's edit of the same notebook.
const LOCK_WAIT: Duration = Duration::from_mins(1);

/// How long a file that was just written may take to become a notebook: some programs save in place.
const WRITE_WAIT: Duration = Duration::from_millis(300);

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

/// What the caller believes is in the file.
#[derive(Debug, Clone)]
pub enum Expected {
    /// Whatever is there.
    Anything,
    /// What it once read.
    Fingerprint(Fingerprint),
    /// What it once read, known well enough to tell what changed.
    Snapshot(Box<Snapshot>),
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
    when_written(path, || {
        let mut file = open(path, path, Access::Read)?;
        let metadata = file.metadata().map_err(|error| unreadable(path, error))?;
        parse(path, contents(path, &mut file, &metadata)?)
    })
}

/// What a notebook is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Its sources. The outputs of a large one are not held, which makes it much faster: then the notebook is without them.
    Sources,
    /// All of it.
    All,
}

/// Reads a notebook, and what the file is.
pub fn read_for(path: &Path, need: Need) -> Result<(Notebook, Snapshot), FileError> {
    if need == Need::Sources
        && let Some(seen) = large_sources(path, |file| skim(file, sources::CHUNK))?
    {
        return Ok(seen);
    }
    let notebook = read(path)?;
    let snapshot = Snapshot::of(&notebook);
    Ok((notebook, snapshot))
}

/// Nothing for a file that is better read whole, or was written meanwhile: half of it would be old.
fn large_sources<T>(path: &Path, skim: impl FnOnce(&File) -> Option<T>) -> Result<Option<T>, FileError> {
    let file = open(path, path, Access::Read)?;
    let stamp =
        || file.metadata().map(|metadata| Stamp::of(&metadata)).map_err(|error| unreadable(path, error));
    let before = stamp()?;
    if before.length() < LARGE as u64 {
        return Ok(None);
    }
    let seen = skim(&file);
    Ok(seen.filter(|_| stamp().is_ok_and(|after| after.looks_like(&before))))
}

/// Whether there was a file to update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// There was.
    File,
    /// There was none, and this update created it.
    Nothing,
}

/// Reads a notebook, changes it, and saves what `change` returns; `None` leaves the file alone.
///
/// Blocks while another process updates the same notebook. A symlink is followed, not replaced.
pub fn update<T, E: From<FileError>>(
    path: &Path,
    if_missing: IfMissing,
    expected: &Expected,
    change: impl Fn(&Notebook) -> Result<(Option<Notebook>, T), E>,
) -> Result<T, E> {
    update_or_create(path, if_missing, expected, change).map(|(told, _)| told)
}

/// As [`update`], and tells which of several that find no file is the one that created it.
pub fn update_or_create<T, E: From<FileError>>(
    path: &Path,
    if_missing: IfMissing,
    expected: &Expected,
    change: impl Fn(&Notebook) -> Result<(Option<Notebook>, T), E>,
) -> Result<(T, Found), E> {
    loop {
        match fs::canonicalize(path) {
            Ok(target) => {
                let Some(Held { lock: _lock, guard, notebook, stamp }) =
                    when_written(path, || lock(path, &target))?
                else {
                    continue; // replaced by another writer while we waited for it
                };
                check_expected(path, expected, &notebook)?;
                let (changed, told) = change(&notebook)?;
                if let Some(changed) = changed {
                    save::replace(path, &target, guard, (&notebook, &stamp), &changed, Durability::Now)?;
                }
                return Ok((told, Found::File));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && if_missing == IfMissing::Create => {
                if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
                    let what = "a symlink to a file that is not there";
                    return Err(FileError::NotAFile { path: path.into(), what }.into());
                }
                if let Expected::Fingerprint(_) | Expected::Snapshot(_) = expected {
                    let what = "it is gone".to_owned();
                    return Err(FileError::Changed { path: path.into(), what }.into());
                }
                let empty = Notebook::empty();
                let (changed, told) = change(&empty)?;
                if create(path, changed.as_ref().unwrap_or(&empty))? {
                    return Ok((told, Found::Nothing));
                }
                // Another process created it first: its notebook is the one to change.
            }
            Err(error) => return Err(unreadable(path, error).into()),
        }
    }
}

/// Tries again for a moment when what was just written is no notebook yet.
fn when_written<T>(path: &Path, attempt: impl Fn() -> Result<T, FileError>) -> Result<T, FileError> {
    let deadline = Instant::now() + WRITE_WAIT;
    loop {
        let written = || fs::metadata(path).and_then(|metadata| metadata.modified());
        let is_fresh = || written().is_ok_and(|at| at.elapsed().is_ok_and(|age| age < WRITE_WAIT));
        match attempt() {
            Err(FileError::Parse { .. }) if Instant::now() < deadline && is_fresh() => {
                thread::sleep(Duration::from_millis(10));
            }
            done => return done,
        }
    }
}

/// What a file is opened for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    /// Network file systems lock only what is open for writing.
    Lock,
}

/// Opens `target`; errors speak of `path`, the name the caller knows it by.
fn open(path: &Path, target: &Path, for_what: Access) -> Result<File, FileError> {
    // Without waiting: a named pipe would wait for a writer that may never come.
    let open = |write| OpenOptions::new().read(true).write(write).custom_flags(libc::O_NONBLOCK).open(target);
    let refuse = |kind: fs::FileType| {
        let what = match () {
            () if kind.is_file() => return Ok(()),
            () if kind.is_dir() => "a directory",
            () if kind.is_fifo() => "a named pipe",
            () if kind.is_socket() => "a socket",
            () => "a device",
        };
        Err(FileError::NotAFile { path: path.into(), what })
    };
    let failed = |error| unreadable(path, error);
    refuse(fs::metadata(target).map_err(failed)?.file_type())?;
    let file = match for_what {
        Access::Read => open(false),
        Access::Lock => open(true).or_else(|_| open(false)),
    };
    let file = file.map_err(failed)?;
    // Once more: it may have become something else before it was opened.
    refuse(file.metadata().map_err(failed)?.file_type())?;
    Ok(file)
}

fn contents(path: &Path, file: &mut File, metadata: &Metadata) -> Result<Vec<u8>, FileError> {
    let length = usize::try_from(metadata.len()).unwrap_or(0);
    let mut bytes = if length < LARGE { Vec::with_capacity(length + 1) } else { at_once(file, length) };
    let read = file.seek(SeekFrom::Start(bytes.len() as u64)).and_then(|_| file.read_to_end(&mut bytes));
    read.map_err(|source| FileError::Io { path: path.into(), attempt: "read it", source })?;
    Ok(bytes)
}

/// The first `length` bytes of a file, its two halves read at once: memory for a large file takes the system longer than its content.
/// Nothing when that fails.
fn at_once(file: &File, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let (first, second) = bytes.split_at_mut(length / 2);
    let start = first.len() as u64;
    match both(|| file.read_exact_at(first, 0), || file.read_exact_at(second, start)) {
        (Ok(()), Ok(())) => bytes,
        _ => Vec::new(),
    }
}

fn parse(path: &Path, bytes: Vec<u8>) -> Result<Notebook, FileError> {
    Notebook::parse(bytes).map_err(|mut source| {
        if let ParseError::OldFormat { file, .. } = &mut source {
            *file = Some(path.into());
        }
        FileError::Parse { path: path.into(), source }
    })
}

fn unreadable(path: &Path, source: io::Error) -> FileError {
    match source.kind() {
        io::ErrorKind::NotFound => FileError::Missing { path: path.into() },
        _ => FileError::Io { path: path.into(), attempt: "open it", source },
    }
}

/// A notebook read under its lock.
struct Held {
    /// Given back when dropped.
    lock: File,
    guard: Guard,
    notebook: Notebook,
    stamp: Stamp,
}

/// What keeps other writers away while a file is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Guard {
    /// The lock.
    Lock,
    /// Nothing, on a file system without locks. The comparison before replacing notices all but those who replace the file between it and
    /// the rename.
    Nothing,
}

/// Locks and reads the file. `None` when it was replaced while we waited: the lock is then on a file nobody sees.
fn lock(path: &Path, target: &Path) -> Result<Option<Held>, FileError> {
    let mut file = open(path, target, Access::Lock)?;
    let guard = wait_for(&file);
    let guard = guard.map_err(|source| FileError::Io { path: path.into(), attempt: "lock it", source })?;
    let locked = file.metadata().map_err(|error| unreadable(path, error))?;
    match fs::metadata(target) {
        Ok(seen) if (seen.dev(), seen.ino()) == (locked.dev(), locked.ino()) => {}
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(path, error)),
    }
    let notebook = parse(path, contents(path, &mut file, &locked)?)?;
    Ok(Some(Held { lock: file, guard, notebook, stamp: Stamp::of(&locked) }))
}

/// Waits for the lock, but not for ever: its holder may be stopped in a debugger.
fn wait_for(file: &File) -> io::Result<Guard> {
    let deadline = Instant::now() + LOCK_WAIT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Guard::Lock),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(2));
            }
            Err(TryLockError::WouldBlock) => {
                let held = format!("another program has held it for {} s", LOCK_WAIT.as_secs());
                return Err(io::Error::new(io::ErrorKind::WouldBlock, held));
            }
            Err(TryLockError::Error(error)) if has_no_locks(&error) => return Ok(Guard::Nothing),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Whether the file system is one without locks.
fn has_no_locks(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOLCK | libc::EBADF | libc::ENOSYS | libc::EOPNOTSUPP))
}

fn check_expected(path: &Path, expected: &Expected, notebook: &Notebook) -> Result<(), FileError> {
    let now = || Fingerprint::of_file(notebook);
    let what = match expected {
        Expected::Anything => return Ok(()),
        Expected::Fingerprint(fingerprint) if *fingerprint == now() => return Ok(()),
        Expected::Fingerprint(_) => format!("its fingerprint is {} now", now()),
        Expected::Snapshot(snapshot) => match snapshot.changes_to(notebook) {
            nothing if nothing.is_empty() => return Ok(()),
            changes => changes,
        },
    };
    Err(FileError::Changed { path: path.into(), what })
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
