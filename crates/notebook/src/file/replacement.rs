//! Putting content in a file's place, whole or not at all. Every file of a user that we write is written here.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};

use nix::unistd::{AccessFlags, access};
use tempfile::NamedTempFile;
use xattr::FileExt as _;

use crate::both::{LARGE, both};
use crate::snapshot::Fingerprint;

/// How long a saved file may take to be safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// It survives a power cut from now on.
    Now,
    /// It survives our end from now on, and a power cut once the system has written it.
    Soon,
}

/// Why a file could not be replaced. It is then as it was.
#[derive(Debug, thiserror::Error)]
#[error("could not {attempt}")]
pub struct ReplaceError {
    /// What was tried: `write it`, `keep its permissions`, …
    pub attempt: &'static str,
    /// Why it failed.
    #[source]
    pub source: io::Error,
}

/// What a temporary file is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    /// As no other is.
    Random,
    /// After the file. Only for those who hold its lock: what has that name is left from a process that was killed, and goes, so
    /// there is never more than one.
    OfTheFile,
}

/// A file's new content, beside the file and not yet in its place. Dropped, it is gone; readers see the old file or the new one, never a half.
#[derive(Debug)]
pub struct Replacement {
    temporary: NamedTempFile,
    target: PathBuf,
    durability: Durability,
}

impl Replacement {
    /// For the file at `target`, of which owner, group and permissions stay. A link would be replaced: resolve it before.
    pub fn of(target: &Path, content: &[u8]) -> Result<Self, ReplaceError> {
        Self::made(target, &[content], Name::Random, Durability::Now)
    }

    pub(super) fn made(
        target: &Path,
        content: &[&[u8]],
        name: Name,
        durability: Durability,
    ) -> Result<Self, ReplaceError> {
        // A rename needs no right to write the file, but its owner may have taken that right away for a reason.
        access(target, AccessFlags::W_OK).map_err(|error| failed("write it")(error.into()))?;
        let old = fs::metadata(target).map_err(failed("look at it"))?;
        let temporary = match name {
            Name::Random => beside(target, 0o600),
            Name::OfTheFile => beside_by_name(target),
        }
        .map_err(failed("make a temporary file beside it"))?;
        let file = temporary.as_file();
        // Before the content comes: nobody else is to read it meanwhile.
        keep_owner(file, &old).map_err(failed("keep its owner"))?;
        keep_attributes(file, target).map_err(failed("keep its access list"))?;
        // Last: they may take away the right to set attributes.
        file.set_permissions(old.permissions()).map_err(failed("keep its permissions"))?;
        write(file, content, durability).map_err(failed("write its new content"))?;
        Ok(Self { temporary, target: target.to_owned(), durability })
    }

    /// For a file that is not there yet, with these permissions as far as the umask lets them; its folder must be there.
    pub fn new_file(target: &Path, mode: u32, content: &[u8]) -> Result<Self, ReplaceError> {
        let temporary = beside(target, mode).map_err(failed("create it"))?;
        write(temporary.as_file(), &[content], Durability::Now).map_err(failed("write it"))?;
        Ok(Self { temporary, target: target.to_owned(), durability: Durability::Now })
    }

    /// Puts it in the file's place, whatever is there.
    pub fn commit(self) -> Result<File, ReplaceError> {
        let Self { temporary, target, durability } = self;
        let file = temporary.persist(&target).map_err(|error| failed("replace it")(error.error))?;
        settle(&target, durability)?;
        Ok(file)
    }

    /// Puts it in the file's place unless there is a file by now; says whether it did.
    pub fn commit_new(self) -> Result<bool, ReplaceError> {
        let Self { temporary, target, durability } = self;
        match temporary.persist_noclobber(&target) {
            Ok(_) => settle(&target, durability).map(|()| true),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(failed("create it")(error.error)),
        }
    }
}

fn failed(attempt: &'static str) -> impl Fn(io::Error) -> ReplaceError {
    move |source| ReplaceError { attempt, source }
}

fn write(file: &File, content: &[&[u8]], durability: Durability) -> io::Result<()> {
    let length: usize = content.iter().map(|piece| piece.len()).sum();
    match durability {
        Durability::Soon => return write_all(file, content),
        Durability::Now if length < LARGE => write_all(file, content)?,
        Durability::Now => {
            // What the system has taken goes to the disk while it takes more.
            let (taken, more) = mpsc::channel();
            let write = move || write_telling(file, content, &taken);
            let sync = || {
                while more.recv().is_ok() {
                    while more.try_recv().is_ok() {}
                    file.sync_data()?;
                }
                Ok(())
            };
            let (written, synced) = both(write, sync);
            written.and(synced)?;
        }
    }
    file.sync_all()
}

fn write_all(file: &File, pieces: &[&[u8]]) -> io::Result<()> {
    let (nobody, _) = mpsc::channel();
    write_telling(file, pieces, &nobody)
}

/// Writes, and tells of every few megabytes.
fn write_telling(file: &File, pieces: &[&[u8]], taken: &Sender<()>) -> io::Result<()> {
    // Small pieces together; large ones pass by the buffer.
    let mut out = BufWriter::with_capacity(1 << 16, file);
    let mut untold = 0;
    for part in pieces.iter().flat_map(|piece| piece.chunks(LARGE)) {
        out.write_all(part)?;
        untold += part.len();
        if untold >= LARGE {
            untold = 0;
            let _ = taken.send(()); // nobody may listen
        }
    }
    out.flush()
}

/// Makes the rename survive a power cut.
fn settle(target: &Path, durability: Durability) -> Result<(), ReplaceError> {
    match durability {
        Durability::Now => File::open(folder(target)).and_then(|folder| folder.sync_all()),
        Durability::Soon => Ok(()),
    }
    .map_err(failed("write its folder"))
}

fn folder(target: &Path) -> &Path {
    match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn create(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

fn beside(target: &Path, mode: u32) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".cellwright-").suffix(".tmp").make_in(folder(target), |path| create(path, mode))
}

fn beside_by_name(target: &Path) -> io::Result<NamedTempFile> {
    /// A name has at most 255 bytes, and ours adds some.
    const LONGEST: usize = 200;
    let folder = folder(target);
    let name = target.file_name().unwrap_or_default();
    let mut prefix = OsString::from(".");
    if name.len() <= LONGEST {
        prefix.push(name);
    } else {
        prefix.push(Fingerprint::of(name.as_encoded_bytes()).to_string());
    }
    prefix.push(".cellwright");
    let left = folder.join(&prefix);
    let private = |path: &Path| create(path, 0o600);
    if let Err(error) = fs::remove_file(&left)
        && error.kind() != io::ErrorKind::NotFound
    {
        // Someone else's, in a folder where that cannot be removed.
        return tempfile::Builder::new().prefix(&prefix).make_in(folder, private);
    }
    tempfile::Builder::new().prefix(&prefix).rand_bytes(0).make_in(folder, private)
}

/// Keeps owner and group; only the group where the system does not let us give files away, as in folders a group shares.
fn keep_owner(file: &File, old: &Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) == (old.uid(), old.gid()) {
        return Ok(());
    }
    match fchown(file, Some(old.uid()), Some(old.gid())) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => fchown(file, None, Some(old.gid())),
        done => done,
    }
}

/// Keeps what the system knows of a file beside its permissions: its access list, and labels and notes as far as it lets us. What the folder
/// gives to new files is taken away.
fn keep_attributes(file: &File, target: &Path) -> io::Result<()> {
    /// Who may do what, in more detail than permissions tell.
    const ACCESS: &str = "system.posix_acl_access";
    /// They sign the content that was there.
    const SIGNATURES: [&str; 2] = ["security.ima", "security.evm"];
    let access = xattr::get(target, ACCESS).ok().flatten();
    if access.is_none() && file.get_xattr(ACCESS).is_ok_and(|inherited| inherited.is_some()) {
        file.remove_xattr(ACCESS)?;
    }
    for name in xattr::list(target).into_iter().flatten() {
        if name != ACCESS
            && SIGNATURES.iter().all(|signature| name != *signature)
            && let Ok(Some(value)) = xattr::get(target, &name)
        {
            // Some are the system's own, and some file systems list what they do not let us set.
            drop(file.set_xattr(&name, &value));
        }
    }
    access.map_or(Ok(()), |access| file.set_xattr(ACCESS, &access))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_whole_with_its_permissions_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        fs::write(&path, "old").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("set");
        drop(Replacement::of(&path, b"never").expect("made"));
        assert_eq!(
            (fs::read(&path).expect("there"), names(folder.path())),
            (b"old".to_vec(), vec!["a".into()])
        );
        Replacement::of(&path, b"new").expect("made").commit().expect("replaced");
        assert_eq!(
            (fs::read(&path).expect("there"), names(folder.path())),
            (b"new".to_vec(), vec!["a".into()])
        );
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn access_lists_and_attributes_stay_and_those_of_the_folder_do_not_come() {
        /// As the kernel has them: a version, then tag, permissions and id of each entry.
        fn list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
            let entries = entries.iter().flat_map(|(tag, may, id)| {
                [&tag.to_le_bytes()[..], &may.to_le_bytes(), &id.to_le_bytes()].concat()
            });
            2u32.to_le_bytes().into_iter().chain(entries).collect()
        }
        const NOBODY: u32 = u32::MAX;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        fs::write(&path, "old").expect("written");
        let replaced = || {
            Replacement::of(&path, b"new").expect("made").commit().expect("replaced");
            let mode = fs::metadata(&path).expect("there").permissions().mode() & 0o777;
            (xattr::get(&path, "system.posix_acl_access").expect("asked"), mode)
        };
        // The owner and user 65534 may write, the group may read; what `ls` shows as the group's is the most any of them may.
        let access = list(&[(1, 6, NOBODY), (2, 6, 65534), (4, 4, NOBODY), (16, 6, NOBODY), (32, 0, NOBODY)]);
        xattr::set(&path, "system.posix_acl_access", &access).expect("set");
        xattr::set(&path, "user.note", b"mine").expect("set");
        assert_eq!(replaced(), (Some(access.clone()), 0o660));
        assert_eq!(xattr::get(&path, "user.note").expect("asked"), Some(b"mine".to_vec()));

        xattr::remove(&path, "system.posix_acl_access").expect("removed");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("set");
        xattr::set(folder.path(), "system.posix_acl_default", &access).expect("set");
        assert_eq!(replaced(), (None, 0o640));
    }

    #[test]
    fn a_new_file_does_not_replace_one_that_came_meanwhile() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        let new = |content: &[u8]| Replacement::new_file(&path, 0o600, content).expect("made");
        let (first, second) = (new(b"first"), new(b"second"));
        assert!(first.commit_new().expect("created"));
        assert!(!second.commit_new().expect("told"));
        assert_eq!(
            (fs::read(&path).expect("there"), names(folder.path())),
            (b"first".to_vec(), vec!["a".into()])
        );
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    }
}
