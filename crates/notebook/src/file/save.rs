//! Putting a notebook on disk, whole or not at all.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::Path;
use std::time::{Duration, SystemTime};

use nix::unistd::{AccessFlags, access};
use tempfile::NamedTempFile;

use super::{FileError, read};
use crate::notebook::Notebook;
use crate::snapshot::Snapshot;

/// How long a saved file may take to be safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// It survives a power cut from now on.
    Now,
    /// It survives our end from now on, and a power cut once the system has written it.
    Soon,
}

/// Puts `changed` in the place of the file, if that still holds `original`. Its lock must be held.
pub(super) fn replace(
    path: &Path,
    target: &Path,
    original: &Notebook,
    stamp: &Stamp,
    changed: &Notebook,
    durability: Durability,
) -> Result<File, FileError> {
    let failed = |attempt| move |source| FileError::Io { path: path.into(), attempt, source };
    // A rename needs no right to write the file, but its owner may have taken that right away for a reason.
    access(target, AccessFlags::W_OK).map_err(|error| failed("write it")(error.into()))?;
    let metadata = fs::metadata(target).map_err(failed("look at it"))?;
    let folder = target.parent().expect("a canonical file path has a folder");
    let mut temporary = beside(target).map_err(failed("make a temporary file beside it"))?;
    let file = temporary.as_file_mut();
    // Before the content comes: nobody else is to read it meanwhile.
    keep_owner(file, &metadata).map_err(failed("keep its group"))?;
    file.set_permissions(metadata.permissions()).map_err(failed("keep its permissions"))?;
    file.write_all(changed.text().as_bytes()).map_err(failed("write its new content"))?;
    if durability == Durability::Now {
        file.sync_all().map_err(failed("write its new content"))?;
    }
    if !still_holds(target, stamp, original.text().as_bytes()).map_err(failed("read it again"))? {
        let what = match read(target) {
            Ok(now) => Snapshot::of(original).changes_to(&now),
            Err(_) => "it is not a notebook any more".to_owned(),
        };
        return Err(FileError::Changed { path: path.into(), what });
    }
    let file = temporary.persist(target).map_err(|error| failed("replace it")(error.error))?;
    if durability == Durability::Now {
        sync_folder(folder).map_err(failed("write its folder"))?;
    }
    Ok(file)
}

/// Writes a new file; false when there is one already.
pub fn create(path: &Path, notebook: &Notebook) -> Result<bool, FileError> {
    let failed = |attempt| move |source| FileError::Io { path: path.into(), attempt, source };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // With the permissions any new file has.
    let new = |path: &Path| OpenOptions::new().write(true).create_new(true).open(path);
    let temporary = tempfile::Builder::new().prefix(".cellwright-").suffix(".tmp").make_in(folder, new);
    let mut temporary = temporary.map_err(failed("create it"))?;
    let file = temporary.as_file_mut();
    file.write_all(notebook.text().as_bytes()).map_err(failed("write it"))?;
    file.sync_all().map_err(failed("write it"))?;
    match temporary.persist_noclobber(path) {
        Ok(_) => sync_folder(folder).map_err(failed("write its folder")).map(|()| true),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(failed("create it")(error.error)),
    }
}

/// A private file that removes itself unless it is persisted. Its name is the notebook's own: whoever holds the lock may remove
/// what a process that was killed left there, so there is never more than one.
fn beside(target: &Path) -> io::Result<NamedTempFile> {
    let folder = target.parent().expect("a canonical file path has a folder");
    let name = target.file_name().expect("a canonical file path has a name").to_string_lossy().into_owned();
    let new = |path: &Path| OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let prefix = format!(".{name}.cellwright");
    let left = folder.join(&prefix);
    if let Err(error) = fs::remove_file(&left)
        && error.kind() != io::ErrorKind::NotFound
    {
        // Someone else's, in a folder where that cannot be removed.
        return tempfile::Builder::new().prefix(&prefix).make_in(folder, new);
    }
    tempfile::Builder::new().prefix(&prefix).rand_bytes(0).make_in(folder, new)
}

/// Keeps owner and group; only the group where the system does not let us give files away, as in folders a group shares.
fn keep_owner(file: &File, metadata: &Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) == (metadata.uid(), metadata.gid()) {
        return Ok(());
    }
    match fchown(file, Some(metadata.uid()), Some(metadata.gid())) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            fchown(file, None, Some(metadata.gid()))
        }
        done => done,
    }
}

/// What the system notes of a file: another one, or another time, means that it was written.
#[derive(Debug)]
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

/// Whether the file's bytes are these. Read only when its stamp cannot tell, and then without holding them twice.
fn still_holds(target: &Path, stamp: &Stamp, bytes: &[u8]) -> io::Result<bool> {
    let mut file = File::open(target)?;
    if stamp.settled && Stamp::of(&file.metadata()?).looks_like(stamp) {
        return Ok(true);
    }
    holds(&mut file, bytes)
}

/// Whether the rest of the file is these bytes.
pub(super) fn holds(file: &mut File, bytes: &[u8]) -> io::Result<bool> {
    let mut rest = bytes;
    let mut chunk = vec![0; 1 << 16];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(rest.is_empty()),
            length => match rest.strip_prefix(&chunk[..length]) {
                Some(after) => rest = after,
                None => return Ok(false),
            },
        }
    }
}

/// Makes the rename survive a power cut.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
