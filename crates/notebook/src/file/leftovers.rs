//! Temporary files that processes left behind when they were killed.
//!
//! Each temporary file has a name of its own and is locked while its writer lives. So one that nobody holds, and that is
//! not of this very moment, was left behind.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use nix::libc;
use tempfile::NamedTempFile;

use super::lock::has_no_locks;

const PREFIX: &str = ".cellwright-";
const SUFFIX: &str = ".tmp";
const RANDOM: usize = 12;

/// A writer locks its file at once, but not in the same instant.
const AGE: Duration = Duration::from_secs(10);

/// Where there are no locks, longer than any save.
const AGE_WITHOUT_LOCKS: Duration = Duration::from_hours(24);

/// Makes a temporary file in `folder` and locks it. Swept by others once this process is gone.
pub(super) fn temporary_in(folder: &Path, mode: u32) -> io::Result<NamedTempFile> {
    let create = |path: &Path| OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let mut builder = tempfile::Builder::new();
    let temporary = builder.prefix(PREFIX).suffix(SUFFIX).rand_bytes(RANDOM).make_in(folder, create)?;
    drop(temporary.as_file().try_lock()); // without locks it is known by its age
    Ok(temporary)
}

/// Removes what was left in `folder`, the first time this process saves there.
pub(super) fn sweep_once(folder: &Path) {
    static SWEPT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let is_new = SWEPT.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned());
    if is_new {
        sweep(folder, AGE, AGE_WITHOUT_LOCKS);
    }
}

fn sweep(folder: &Path, age: Duration, age_without_locks: Duration) {
    // A folder that cannot be listed, a file that is gone or not ours to remove: the next save may do better.
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if is_ours(&entry.file_name()) {
            drop(remove_if_left(&entry.path(), age, age_without_locks));
        }
    }
}

fn is_ours(name: &std::ffi::OsStr) -> bool {
    let random = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX));
    random.is_some_and(|random| {
        random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

fn remove_if_left(path: &Path, age: Duration, age_without_locks: Duration) -> io::Result<()> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(());
    }
    // When it was made, written or renamed last; a file that we have just replaced has our temporary name for a moment.
    let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(metadata.ctime().try_into().unwrap_or(0));
    let is_older = |limit: Duration| changed.elapsed().is_ok_and(|age| age >= limit);
    let is_left = match file.try_lock() {
        Ok(()) => is_older(age),
        Err(TryLockError::WouldBlock) => false,
        Err(TryLockError::Error(error)) => has_no_locks(&error) && is_older(age_without_locks),
    };
    if is_left && is_at(&file, path)? { fs::remove_file(path) } else { Ok(()) }
}

/// Whether the open file is the one that has this name.
pub(super) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let (open, there) = (file.metadata()?, fs::symlink_metadata(path)?);
    Ok((open.dev(), open.ino()) == (there.dev(), there.ino()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn leftovers_of_dead_processes_are_swept_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let ours = ".cellwright-abcdefghijk1.tmp";
        fs::write(at(ours), "left").unwrap();
        // As long as somebody writes it, and as long as that may begin.
        let alive = temporary_in(folder.path(), 0o600).unwrap();
        sweep(folder.path(), AGE, AGE_WITHOUT_LOCKS);
        assert_eq!(names(folder.path()).len(), 2, "it may be of this moment");
        let others = [
            "a.ipynb",
            ".cellwright-short.tmp",
            ".cellwright-abcdefghijkl.bak",
            ".cellwright-abcdefghij..tmp",
        ];
        for name in others {
            fs::write(at(name), "theirs").unwrap();
        }
        fs::create_dir(at(".cellwright-aaaaaaaaaaaa.tmp")).unwrap();
        symlink("a.ipynb", at(".cellwright-bbbbbbbbbbbb.tmp")).unwrap();
        nix::unistd::mkfifo(&at(".cellwright-cccccccccccc.tmp"), nix::sys::stat::Mode::S_IRUSR).unwrap();
        sweep(folder.path(), Duration::ZERO, Duration::ZERO);
        let kept = names(folder.path());
        assert_eq!(kept.len(), others.len() + 3 + 1, "{kept:?}");
        assert!(!kept.iter().any(|name| name == ours), "{kept:?}");
        let temporary = alive.path().to_owned();
        assert!(temporary.exists());
        // Its writer was killed: the lock is gone, the file is not.
        let (file, path) = alive.into_parts();
        drop(file);
        std::mem::forget(path);
        sweep(folder.path(), Duration::ZERO, Duration::ZERO);
        assert!(!temporary.exists());
    }

    #[test]
    fn a_folder_is_swept_once() {
        let folder = tempfile::tempdir().unwrap();
        sweep_once(folder.path());
        let left = folder.path().join(".cellwright-abcdefghijk1.tmp");
        fs::write(&left, "").unwrap();
        sweep_once(folder.path());
        assert!(left.exists());
    }
}
