//! Folders that nobody else can look into, write into or exchange.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::owner::{is_relied_on_above, others_write, ourselves};

/// A folder is not private, or cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PrivateFolderError {
    /// The system refused.
    #[error("could not {attempt} `{}`", path.display())]
    Io {
        /// What was tried.
        attempt: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// It, or a folder or link on the way to it, is another user's.
    #[error("`{}` belongs to another user (number {owner}); remove it, or use another folder", path.display())]
    Foreign {
        /// What belongs to them.
        path: PathBuf,
        /// Their number.
        owner: u32,
    },
    /// Others can put things into it, or exchange what is in it.
    #[error("other users can write into `{}`; run `chmod go-w` on it if you rely on what is in it", path.display())]
    Open {
        /// The folder.
        path: PathBuf,
    },
    /// It is a link, or a file.
    #[error("`{}` is not a folder, or a link to one; remove it", path.display())]
    NoFolder {
        /// The path.
        path: PathBuf,
    },
}

impl PrivateFolderError {
    /// Whether the folder cannot be written at all, and another place will do: nobody has tampered with it.
    pub fn is_unwritable(&self) -> bool {
        match self {
            Self::Io { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::ReadOnlyFilesystem
                    | io::ErrorKind::PermissionDenied
                    | io::ErrorKind::NotADirectory
                    | io::ErrorKind::NotFound
                    | io::ErrorKind::StorageFull
            ),
            Self::Foreign { .. } | Self::Open { .. } | Self::NoFolder { .. } => false,
        }
    }
}

impl From<PrivateFolderError> for io::Error {
    fn from(error: PrivateFolderError) -> Self {
        match error {
            PrivateFolderError::Io { attempt, path, source } => {
                Self::new(source.kind(), format!("could not {attempt} `{}`: {source}", path.display()))
            }
            refused => Self::new(io::ErrorKind::PermissionDenied, refused),
        }
    }
}

/// Makes a folder for the user alone, with what leads to it, or makes sure that the one there is such a folder.
///
/// One of ours that others can read is closed to them. One that is another's, that others can write, or that others
/// could exchange for theirs is refused: what is in it may be theirs.
pub fn private_folder(path: &Path) -> Result<(), PrivateFolderError> {
    let failed = |attempt, path: &Path| {
        let path = path.to_owned();
        move |source| PrivateFolderError::Io { attempt, path, source }
    };
    let path = std::path::absolute(path).map_err(failed("find", path))?;
    match fs::DirBuilder::new().recursive(true).mode(0o700).create(&path) {
        Err(error) if fs::symlink_metadata(&path).is_err() => return Err(failed("create", &path)(error)),
        Ok(()) | Err(_) => {} // what is there is looked at below
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = match rustix::fs::open(&path, flags, Mode::empty()) {
        Ok(folder) => File::from(folder),
        Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) => {
            return Err(PrivateFolderError::NoFolder { path });
        }
        Err(error) => {
            // One that we may not even open is another's, as a rule.
            let owner = fs::symlink_metadata(&path).map_or(ourselves(), |found| found.uid());
            return Err(if owner == ourselves() {
                failed("open", &path)(error.into())
            } else {
                PrivateFolderError::Foreign { path, owner }
            });
        }
    };
    let found = folder.metadata().map_err(failed("look at", &path))?;
    if found.uid() != ourselves() {
        return Err(PrivateFolderError::Foreign { path, owner: found.uid() });
    }
    if others_write(&found) {
        return Err(PrivateFolderError::Open { path });
    }
    if found.mode() & 0o077 != 0 {
        folder.set_permissions(Permissions::from_mode(0o700)).map_err(failed("make private", &path))?;
    }
    path.parent().map_or(Ok(()), is_safe_way)
}

/// Whether a folder that exists can hold private folders of ours: it is ours, and nobody else writes into it.
pub fn is_usable_parent(path: &Path) -> bool {
    let is_ours = |found: fs::Metadata| found.is_dir() && found.uid() == ourselves() && !others_write(&found);
    fs::metadata(path).is_ok_and(is_ours) && path.parent().is_none_or(|parent| is_safe_way(parent).is_ok())
}

/// Refuses a way to a folder on which others could put theirs in its place.
fn is_safe_way(parent: &Path) -> Result<(), PrivateFolderError> {
    for above in parent.ancestors() {
        // Links are somebody's, and what they lead to is checked as it is.
        if let Ok(found) = fs::symlink_metadata(above)
            && found.is_symlink()
            && !is_relied_on_above(found.uid())
        {
            return Err(PrivateFolderError::Foreign { path: above.into(), owner: found.uid() });
        }
        let found = |path: &Path| {
            fs::metadata(path).map_err(|source| PrivateFolderError::Io {
                attempt: "look at",
                path: path.into(),
                source,
            })
        };
        check_step(above, &found(above)?)?;
        let real = above.canonicalize().ok().filter(|real| real != above);
        for above in real.iter().flat_map(|real| real.ancestors()) {
            check_step(above, &found(above)?)?;
        }
    }
    Ok(())
}

/// In a folder with the sticky bit only the owner of a file can exchange it, and that is checked too.
fn check_step(path: &Path, found: &fs::Metadata) -> Result<(), PrivateFolderError> {
    if !is_relied_on_above(found.uid()) {
        return Err(PrivateFolderError::Foreign { path: path.into(), owner: found.uid() });
    }
    if others_write(found) && found.mode() & 0o1000 == 0 {
        return Err(PrivateFolderError::Open { path: path.into() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn mode_of(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_folder_is_made_private_with_what_leads_to_it() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b");
        private_folder(&folder).unwrap();
        private_folder(&folder).unwrap();
        assert_eq!((mode_of(&folder), mode_of(&root.path().join("a"))), (0o700, 0o700));
        set_mode(&folder, 0o755);
        private_folder(&folder).unwrap();
        assert_eq!(mode_of(&folder), 0o700);
    }

    #[test]
    fn a_folder_that_others_can_write_or_exchange_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("ours");
        private_folder(&folder).unwrap();
        set_mode(&folder, 0o777);
        assert!(matches!(private_folder(&folder), Err(PrivateFolderError::Open { path }) if path == folder));
        assert_eq!(mode_of(&folder), 0o777, "it is left as it is");
        set_mode(&folder, 0o700);
        set_mode(root.path(), 0o777);
        assert!(
            matches!(private_folder(&folder), Err(PrivateFolderError::Open { path }) if path == root.path())
        );
        set_mode(root.path(), 0o1777);
        private_folder(&folder).unwrap();
        assert!(!is_usable_parent(root.path()) && is_usable_parent(&folder));
    }

    #[test]
    fn links_and_files_are_refused_and_links_on_the_way_are_followed() {
        let root = tempfile::tempdir().unwrap();
        let [real, link, file] = ["real", "link", "file"].map(|name| root.path().join(name));
        private_folder(&real).unwrap();
        symlink(&real, &link).unwrap();
        fs::write(&file, "").unwrap();
        for path in [&link, &file] {
            assert!(matches!(private_folder(path), Err(PrivateFolderError::NoFolder { .. })), "{path:?}");
        }
        private_folder(&link.join("inside")).unwrap();
        set_mode(&real, 0o777);
        assert!(matches!(private_folder(&link.join("inside")), Err(PrivateFolderError::Open { .. })));
    }

    #[test]
    fn a_missing_place_is_told_from_a_foreign_one() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(private_folder(&file.join("folder")).unwrap_err().is_unwritable());
        set_mode(root.path(), 0o777);
        assert!(!private_folder(&root.path().join("folder")).unwrap_err().is_unwritable());
    }
}
