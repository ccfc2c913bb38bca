//! Opening and locking notebook files, and waiting for programs that write them in place.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use nix::libc;

use super::FileError;
use super::save::FileStamp;
use crate::both::{LARGE, both};
use crate::notebook::{Notebook, ParseError};

/// How long to wait for another program's edit of the same notebook.
const LOCK_WAIT: Duration = Duration::from_mins(1);

/// How long a file that was just written may take to become a notebook: some programs save in place.
pub(super) const WRITE_WAIT: Duration = Duration::from_millis(300);

/// How long Jupyter may take to save: longer than that, and it was stopped while it saved.
const JUPYTER_WAIT: Duration = Duration::from_secs(2);

/// A notebook file that is locked, as it was when the lock was taken. Given back when dropped.
///
/// The lock is on the file itself, not on its name. A process that wants to replace the file must hold the lock of the file
/// that has the name *now*: [`LockedFile::acquire`] makes sure of that when it begins, and saving does once more just
/// before it renames.
#[derive(Debug)]
pub(super) struct LockedFile<'a> {
    /// The name the caller knows it by, for errors.
    pub(super) path: &'a Path,
    /// The same, links resolved.
    pub(super) target: &'a Path,
    pub(super) file: File,
    pub(super) stamp: FileStamp,
}

impl<'a> LockedFile<'a> {
    /// Waits for the lock. `None` when the file was replaced or removed meanwhile: the lock is then on a file that nobody
    /// sees, so begin again. On a file system without locks there is nothing to wait for; there the comparison before
    /// the rename has to do.
    pub(super) fn acquire(path: &'a Path, target: &'a Path) -> Result<Option<Self>, FileError> {
        wait_for_jupyter(target);
        let file = open(path, target, FileAccess::Lock)?;
        wait_for(&file).map_err(|source| FileError::Io { path: path.into(), attempt: "lock it", source })?;
        let locked = file.metadata().map_err(|error| unreadable(path, error))?;
        match fs::metadata(target) {
            Ok(seen) if (seen.dev(), seen.ino()) == (locked.dev(), locked.ino()) => {}
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(path, error)),
        }
        Ok(Some(Self { path, target, file, stamp: FileStamp::of(&locked) }))
    }

    /// What it holds.
    pub(super) fn read(&mut self) -> Result<Notebook, FileError> {
        notebook_in(self.path, &mut self.file)
    }

    /// The same, whatever it is.
    pub(super) fn bytes(&mut self) -> Result<Vec<u8>, FileError> {
        let metadata = self.file.metadata().map_err(|error| unreadable(self.path, error))?;
        contents(self.path, &mut self.file, &metadata)
    }
}

/// Reads a notebook from the start of an open file.
pub(super) fn notebook_in(path: &Path, file: &mut File) -> Result<Notebook, FileError> {
    let metadata = file.metadata().map_err(|error| unreadable(path, error))?;
    let bytes = contents(path, file, &metadata)?;
    Notebook::parse(bytes).map_err(|mut source| {
        if let ParseError::OldFormat { file, .. } = &mut source {
            *file = Some(path.into());
        }
        FileError::Parse { path: path.into(), source }
    })
}

/// Tries again for a moment when what was just written is no notebook yet, and for longer when Jupyter is saving it:
/// Jupyter copies `NAME` to `.~NAME`, empties and writes `NAME`, and removes the copy.
pub(super) fn when_whole<T>(
    path: &Path,
    mut attempt: impl FnMut() -> Result<T, FileError>,
) -> Result<T, FileError> {
    let began = Instant::now();
    loop {
        let error = match attempt() {
            Err(FileError::Parse { path, source }) => (path, source),
            done => return done,
        };
        let (_, source) = &error;
        let may_be_begun = matches!(source, ParseError::Empty | ParseError::CutOff { .. });
        let copy = jupyter_copy(path).filter(|copy| may_be_begun && fs::symlink_metadata(copy).is_ok());
        let written = fs::metadata(path).and_then(|metadata| metadata.modified());
        let is_fresh = written.is_ok_and(|at| at.elapsed().is_ok_and(|age| age < WRITE_WAIT));
        match copy {
            Some(copy) if began.elapsed() >= JUPYTER_WAIT => {
                return Err(FileError::SaveInProgress { path: path.into(), copy });
            }
            Some(_) => {}
            None if is_fresh && began.elapsed() < JUPYTER_WAIT => {}
            None => {
                let (path, source) = error;
                return Err(FileError::Parse { path, source });
            }
        }
        #[cfg(test)]
        super::seams::reach(super::seams::Seam::BeforeNextLook);
        thread::sleep(Duration::from_millis(10));
    }
}

/// Where Jupyter keeps the version before while it saves.
/// <https://github.com/jupyter-server/jupyter_server/blob/main/jupyter_server/services/contents/fileio.py>
fn jupyter_copy(path: &Path) -> Option<PathBuf> {
    let target = fs::canonicalize(path).ok()?;
    let mut name = std::ffi::OsString::from(".~");
    name.push(target.file_name()?);
    Some(target.with_file_name(name))
}

/// Whether Jupyter is about to write the file, or is doing it. A copy that is older was left behind.
pub(super) fn jupyter_saves(target: &Path) -> bool {
    let Some(copy) = jupyter_copy(target) else { return false };
    let Ok(metadata) = fs::symlink_metadata(copy) else { return false };
    // Not when it was modified: the copy has that of the original.
    let changed = Duration::from_secs(metadata.ctime().try_into().unwrap_or(0))
        + Duration::from_nanos(metadata.ctime_nsec().try_into().unwrap_or(0));
    (SystemTime::UNIX_EPOCH + changed).elapsed().is_ok_and(|age| age < JUPYTER_WAIT)
}

fn wait_for_jupyter(target: &Path) {
    let began = Instant::now();
    while began.elapsed() < JUPYTER_WAIT && jupyter_saves(target) {
        thread::sleep(Duration::from_millis(10));
    }
}

/// What a file is opened for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FileAccess {
    Read,
    /// Network file systems lock only what is open for writing.
    Lock,
}

/// Opens `target`. Errors name `path`, which the caller knows.
pub(super) fn open(path: &Path, target: &Path, for_what: FileAccess) -> Result<File, FileError> {
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
        FileAccess::Read => open(false),
        FileAccess::Lock => open(true).or_else(|_| open(false)),
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

/// The first `length` bytes of a file, its two halves read at once: memory for a large file takes the system longer than
/// its content. Nothing when that fails.
fn at_once(file: &File, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let (first, second) = bytes.split_at_mut(length / 2);
    let start = first.len() as u64;
    match both(|| file.read_exact_at(first, 0), || file.read_exact_at(second, start)) {
        (Ok(()), Ok(())) => bytes,
        _ => Vec::new(),
    }
}

pub(super) fn unreadable(path: &Path, source: io::Error) -> FileError {
    match source.kind() {
        io::ErrorKind::NotFound => FileError::Missing { path: path.into() },
        _ => FileError::Io { path: path.into(), attempt: "open it", source },
    }
}

/// Waits for the lock, but not for ever: its holder may be stopped in a debugger.
fn wait_for(file: &File) -> io::Result<()> {
    let deadline = Instant::now() + LOCK_WAIT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(2));
            }
            Err(TryLockError::WouldBlock) => {
                let held = format!("another program has held it for {} s", LOCK_WAIT.as_secs());
                return Err(io::Error::new(io::ErrorKind::WouldBlock, held));
            }
            Err(TryLockError::Error(error)) if has_no_locks(&error) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Whether the file system is one without locks.
pub(super) fn has_no_locks(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOLCK | libc::EBADF | libc::ENOSYS | libc::EOPNOTSUPP))
}

/// A turn at renaming in a folder: two processes of ours never compare and rename there at the same time, also when each holds
/// the lock of a different file because a third program has put another file in the place of the first.
#[derive(Debug)]
pub(super) struct FolderTurn {
    /// Locked, where the file system can do that, until this is dropped.
    _folder: Option<File>,
}

impl FolderTurn {
    /// Others hold it for the moment of a rename. One that holds it for longer is not one of ours.
    pub(super) fn take(folder: &Path) -> Self {
        const WAIT: Duration = Duration::from_secs(1);
        let Ok(file) = File::open(folder) else { return Self { _folder: None } };
        let began = Instant::now();
        while let Err(TryLockError::WouldBlock) = file.try_lock()
            && began.elapsed() < WAIT
        {
            thread::sleep(Duration::from_millis(1));
        }
        Self { _folder: Some(file) }
    }
}
