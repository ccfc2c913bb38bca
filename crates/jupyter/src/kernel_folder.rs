//! A folder for the files of one kernel.

use std::fs::{self, DirEntry, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use tempfile::TempDir;

use crate::connection::{SOCKET_PATH, make_private};

/// How folders are called: this in a folder of ours, that in one that is everyone's, and as many letters after it.
const PREFIX: &str = "k";
const PREFIX_AMONG_OTHERS: &str = "cellwright-k";
const LETTERS: usize = 6;

/// A folder for a kernel's sockets and connection file, for the user alone. Removed on drop; what a process that was
/// killed left behind is removed when the next folder is made.
#[derive(Debug)]
pub struct KernelFolder {
    folder: TempDir,
    /// Freed by the system when we are gone, however we go.
    _lock: File,
}

impl KernelFolder {
    /// Makes a folder in `parent`, which is made when missing, or among the system's temporary files when `parent` is too
    /// deep for Unix sockets.
    pub fn new_in(parent: &Path) -> io::Result<Self> {
        let temporary = std::env::temp_dir();
        let (parent, prefix) = match (fits(parent, PREFIX), fits(&temporary, PREFIX_AMONG_OTHERS)) {
            (false, true) => (temporary.as_path(), PREFIX_AMONG_OTHERS),
            (true, _) | (false, false) => (parent, PREFIX),
        };
        make_private(parent)?;
        sweep(parent, prefix);
        loop {
            let private = Permissions::from_mode(0o700);
            let folder = tempfile::Builder::new()
                .prefix(prefix)
                .rand_bytes(LETTERS)
                .permissions(private)
                .tempdir_in(parent)?;
            // Another may take it for a leftover before it is locked; then there is another one.
            let lock = match File::open(folder.path()) {
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

/// Whether sockets in a folder below have paths that the system takes.
fn fits(parent: &Path, prefix: &str) -> bool {
    parent.as_os_str().len() + prefix.len() + LETTERS + "//s".len() <= SOCKET_PATH
}

/// Whether a path leads to an open folder.
fn is_at(folder: &File, path: &Path) -> bool {
    match (folder.metadata(), fs::metadata(path)) {
        (Ok(held), Ok(there)) => (held.dev(), held.ino()) == (there.dev(), there.ino()),
        (Err(_), _) | (_, Err(_)) => false,
    }
}

/// Removes the folders of processes that are gone: those nobody holds the lock of. What cannot be removed stays.
fn sweep(parent: &Path, prefix: &str) {
    let is_ours = |entry: &DirEntry| {
        let name = entry.file_name();
        let named = name.to_str().and_then(|name| name.strip_prefix(prefix));
        named.is_some_and(|letters| letters.len() == LETTERS)
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
    };
    for entry in entries(parent).filter(is_ours) {
        if let Ok(folder) = File::open(entry.path())
            && folder.try_lock().is_ok()
        {
            let files = entries(&entry.path()).filter(is_of_a_kernel);
            files.for_each(|file| drop(fs::remove_file(file.path())));
            drop(fs::remove_dir(entry.path())); // not one that holds something else: it is not ours after all
        }
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

/// Whether it is a socket or a connection file, by its name.
fn is_of_a_kernel(file: &DirEntry) -> bool {
    let name = file.file_name();
    let name = name.to_string_lossy();
    name.starts_with("s-") || (name.starts_with("kernel-") && name.ends_with(".json"))
}
