//! Putting content in a file's place, whole or not at all. Every file of a user that we write is written here, or in place
//! where that is impossible (see [`super::in_place`]).
//!
//! Owner, permissions, access lists and attributes are copied by hand, because a rename puts another file in place: without
//! that, a save would silently change the rights to read a notebook.

use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use nix::unistd::{AccessFlags, access};
use tempfile::{NamedTempFile, TempPath};
use xattr::FileExt as _;

use super::leftovers::{self, is_at};
use crate::both::{LARGE, both};

/// Why a file could not be replaced. It is then as it was.
#[derive(Debug, thiserror::Error)]
#[error("could not {attempt}")]
pub struct FileReplaceError {
    /// What was tried: `write it`, `keep its permissions`, …
    pub attempt: &'static str,
    /// Why it failed.
    #[source]
    pub source: io::Error,
}

/// A file's new content, beside the file and not yet in its place. Dropped, it is gone; readers see the old file or the new one, never a half.
#[derive(Debug)]
pub struct FileReplacement {
    temporary: NamedTempFile,
    target: PathBuf,
}

/// What became of a replacement that was meant for one file and no other.
pub(super) enum CommitResult {
    /// It is in that file's place.
    Done(File),
    /// Another file had the name, or that one was written: everything is as it was.
    Overtaken,
}

impl FileReplacement {
    /// For the file at `target`, whose owner, group and permissions stay. A link would be replaced, so resolve it first.
    pub fn of(target: &Path, content: &[u8]) -> Result<Self, FileReplaceError> {
        Self::of_pieces(target, &[content])
    }

    pub(super) fn of_pieces(target: &Path, content: &[&[u8]]) -> Result<Self, FileReplaceError> {
        // A rename needs no right to write the file, but its owner may have taken that right away for a reason.
        access(target, AccessFlags::W_OK).map_err(|error| failed("write it")(error.into()))?;
        let old = fs::metadata(target).map_err(failed("look at it"))?;
        leftovers::sweep_once(folder(target));
        let temporary = leftovers::temporary_in(folder(target), 0o600)
            .map_err(failed("make a temporary file beside it"))?;
        let file = temporary.as_file();
        // Before the content comes: nobody else is to read it meanwhile.
        keep_owner(file, &old).map_err(failed("keep its owner"))?;
        keep_attributes(file, target).map_err(failed("keep its access list"))?;
        // Last: they may take away the right to set attributes.
        file.set_permissions(old.permissions()).map_err(failed("keep its permissions"))?;
        write(file, content).map_err(failed("write its new content"))?;
        Ok(Self { temporary, target: target.to_owned() })
    }

    /// For a file that does not exist yet, with these permissions, reduced by the umask. Its folder must exist.
    pub fn new_file(target: &Path, mode: u32, content: &[u8]) -> Result<Self, FileReplaceError> {
        Self::new_file_of_pieces(target, mode, &[content])
    }

    pub(super) fn new_file_of_pieces(
        target: &Path,
        mode: u32,
        content: &[&[u8]],
    ) -> Result<Self, FileReplaceError> {
        leftovers::sweep_once(folder(target));
        let temporary = leftovers::temporary_in(folder(target), mode).map_err(failed("create it"))?;
        write(temporary.as_file(), content).map_err(failed("write it"))?;
        Ok(Self { temporary, target: target.to_owned() })
    }

    /// Puts it in the file's place, whatever is there. The file is locked until it is dropped.
    pub fn commit(self) -> Result<File, FileReplaceError> {
        let Self { temporary, target } = self;
        let file = temporary.persist(&target).map_err(|error| failed("replace it")(error.error))?;
        settle(&target)?;
        Ok(file)
    }

    /// Puts it in the place of the file that `is_expected` knows. The two change names, in one step, so what had the name can
    /// be looked at afterwards, and gets it back if it is something else. Where the file system cannot do that, whatever
    /// is there is replaced: look just before.
    pub(super) fn commit_over(
        self,
        is_expected: impl Fn(&Path) -> io::Result<bool>,
    ) -> Result<CommitResult, FileReplaceError> {
        let Self { temporary, target } = self;
        let (file, temporary) = temporary.into_parts();
        match exchange(&temporary, &target) {
            Ok(()) => {}
            Err(Errno::EINVAL | Errno::ENOSYS | Errno::EOPNOTSUPP) => {
                temporary.persist(&target).map_err(|error| failed("replace it")(error.error))?;
                settle(&target)?;
                return Ok(CommitResult::Done(file));
            }
            Err(error) => return Err(failed("replace it")(error.into())),
        }
        if !is_expected(&temporary).unwrap_or(false) {
            put_back(&file, temporary, &target)?;
            return Ok(CommitResult::Overtaken);
        }
        drop(temporary.close()); // the new file is in place; what cannot be removed now is swept later
        settle(&target)?;
        Ok(CommitResult::Done(file))
    }

    /// Puts it in the file's place unless there is a file by now; says whether it did.
    pub fn commit_new(self) -> Result<bool, FileReplaceError> {
        let Self { temporary, target } = self;
        match temporary.persist_noclobber(&target) {
            Ok(_) => settle(&target).map(|()| true),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(failed("create it")(error.error)),
        }
    }
}

fn exchange(one: &Path, other: &Path) -> Result<(), Errno> {
    renameat2(AT_FDCWD, one, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE)
}

/// Gives the name back to the file that had it, which has ours now.
fn put_back(ours: &File, temporary: TempPath, target: &Path) -> Result<(), FileReplaceError> {
    loop {
        let put_back = exchange(&temporary, target).map_err(io::Error::from);
        match put_back.and_then(|()| is_at(ours, &temporary)) {
            Ok(true) => return Ok(()),
            // Another program put a file there between the two steps: the newer one has our name now, and the older theirs.
            Ok(false) => {}
            Err(source) => {
                drop(temporary.keep()); // it is what others saved: better a file too many
                return Err(failed("give the name back to what others saved meanwhile")(source));
            }
        }
    }
}

fn failed(attempt: &'static str) -> impl Fn(io::Error) -> FileReplaceError {
    move |source| FileReplaceError { attempt, source }
}

/// Writes, and waits until it is on the disk: a file is renamed over the last good one only then. Some file systems (xfs, for
/// one) leave an empty file after a power cut otherwise.
fn write(file: &File, content: &[&[u8]]) -> io::Result<()> {
    let length: usize = content.iter().map(|piece| piece.len()).sum();
    if length < LARGE {
        write_all(file, content)?;
    } else {
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
    file.sync_all()
}

pub(super) fn write_all(file: &File, pieces: &[&[u8]]) -> io::Result<()> {
    let (nobody, _) = mpsc::channel();
    write_telling(file, pieces, &nobody)
}

/// Writes, and reports every few megabytes.
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
fn settle(target: &Path) -> Result<(), FileReplaceError> {
    let synced = File::open(folder(target)).and_then(|folder| folder.sync_all());
    synced.map_err(failed("write its folder"))
}

pub(super) fn folder(target: &Path) -> &Path {
    match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
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

/// Keeps what the system stores about a file beside its permissions: its access list, and those labels and notes that it lets us set. What the folder
/// gives to new files is taken away.
fn keep_attributes(file: &File, target: &Path) -> io::Result<()> {
    /// The access list: more detail than permissions have.
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
        drop(FileReplacement::of(&path, b"never").expect("made"));
        assert_eq!(
            (fs::read(&path).expect("there"), names(folder.path())),
            (b"old".to_vec(), vec!["a".into()])
        );
        FileReplacement::of(&path, b"new").expect("made").commit().expect("replaced");
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
            FileReplacement::of(&path, b"new").expect("made").commit().expect("replaced");
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
        let new = |content: &[u8]| FileReplacement::new_file(&path, 0o600, content).expect("made");
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
