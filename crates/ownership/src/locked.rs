//! Folders that last as long as their process.

use std::fs::{self, DirEntry, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use tempfile::TempDir;

use crate::owner::ourselves;

/// How many letters follow the prefix in the name of a folder.
const LETTERS: usize = 6;

/// A new folder for the user alone, with a name nobody can guess. Removed on drop; what a process that was killed left
/// behind is removed when the next folder with the same prefix is made beside it.
#[derive(Debug)]
pub struct LockedFolder {
    folder: TempDir,
    /// Freed by the system when we are gone, however we go.
    _lock: File,
}

/// What a sweep may remove of a dead process's folder.
#[derive(Clone, Copy, Debug)]
pub enum Leftovers {
    /// All of it. For prefixes that no one else uses.
    Everything,
    /// Files with these names, and then the folder if nothing else is in it.
    Named(fn(&str) -> bool),
}

impl LockedFolder {
    /// How much longer the folder's path is than its parent's.
    pub const fn name_length(prefix: &str) -> usize {
        prefix.len() + LETTERS + "/".len()
    }

    /// Makes a folder in `parent`, and removes what dead processes left there.
    pub fn new_in(parent: &Path, prefix: &str, leftovers: Leftovers) -> io::Result<Self> {
        sweep(parent, prefix, leftovers);
        loop {
            let private = Permissions::from_mode(0o700);
            let folder = tempfile::Builder::new()
                .prefix(prefix)
                .rand_bytes(LETTERS)
                .permissions(private)
                .tempdir_in(parent)?;
            // Another may take it for a leftover before it is locked; then there is another one.
            let lock = match opened(folder.path()) {
                Ok(lock) => lock,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            match lock.try_lock() {
                Err(TryLockError::WouldBlock) => {}
                // Where nothing can be locked nothing is swept either.
                Ok(()) | Err(TryLockError::Error(_)) => {
                    if is_at(&lock, folder.path()) {
                        return Ok(Self { folder, _lock: lock });
                    }
                }
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn opened(folder: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(folder, flags, Mode::empty())?.into())
}

/// Whether a path leads to an open folder.
fn is_at(folder: &File, path: &Path) -> bool {
    match (folder.metadata(), fs::symlink_metadata(path)) {
        (Ok(held), Ok(there)) => (held.dev(), held.ino()) == (there.dev(), there.ino()),
        (Err(_), _) | (_, Err(_)) => false,
    }
}

/// Removes the folders of processes that are gone: those nobody holds the lock of. What cannot be removed stays.
fn sweep(parent: &Path, prefix: &str, leftovers: Leftovers) {
    let is_named = |entry: &DirEntry| {
        let name = entry.file_name();
        let letters = name.to_str().and_then(|name| name.strip_prefix(prefix));
        letters.is_some_and(|letters| letters.len() == LETTERS)
    };
    for entry in entries(parent).filter(is_named) {
        if let Ok(folder) = opened(&entry.path())
            && folder.metadata().is_ok_and(|found| found.uid() == ourselves())
            && folder.try_lock().is_ok()
        {
            match leftovers {
                Leftovers::Everything => drop(fs::remove_dir_all(entry.path())),
                Leftovers::Named(is_ours) => {
                    let files =
                        entries(&entry.path()).filter(|file| is_ours(&file.file_name().to_string_lossy()));
                    files.for_each(|file| drop(fs::remove_file(file.path())));
                    drop(fs::remove_dir(entry.path())); // not one that holds something else
                }
            }
        }
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_dead_process_left_is_removed_and_what_a_live_one_uses_is_not() {
        let root = tempfile::tempdir().unwrap();
        let held = LockedFolder::new_in(root.path(), "shell-", Leftovers::Everything).unwrap();
        assert_eq!(fs::metadata(held.path()).unwrap().mode() & 0o777, 0o700);
        let [left, other] = ["shell-AbC123", "shell-AbC12"].map(|name| root.path().join(name));
        for folder in [&left, &other] {
            fs::create_dir_all(folder.join("deep")).unwrap();
            fs::write(folder.join("deep/state.sh"), "export SECRET=1").unwrap();
        }
        let next = LockedFolder::new_in(root.path(), "shell-", Leftovers::Everything).unwrap();
        assert!(!left.exists() && other.exists() && held.path().exists());
        let path = next.path().to_owned();
        drop(next);
        assert!(!path.exists());
    }
}
