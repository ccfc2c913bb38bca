//! The runner's Python files on disk.
//!
//! They are in a folder that is named after their content, so versions stay apart and bytecode is cached. A
//! sweeper may have removed them since the last start: each start looks.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

include!(concat!(env!("OUT_DIR"), "/runner_files.rs"));

/// The runner's script: in the cache, or in a temporary folder if the cache cannot be written. The error is about the
/// cache.
pub(super) fn script(cache: &Path) -> io::Result<PathBuf> {
    script_in(cache).or_else(|error| {
        let temporary = temporary();
        private(&temporary).and_then(|()| script_in(&temporary)).map_err(|_| error)
    })
}

/// The runner's folder if the cache cannot be written, as with a read-only or missing home.
pub(super) fn temporary() -> PathBuf {
    std::env::temp_dir().join(format!("cellwright-{}", rustix::process::getuid().as_raw()))
}

/// Makes a folder that is ours alone. Everyone may write beside it, and what is in it will be run.
fn private(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let found = fs::symlink_metadata(folder)?;
    let is_ours = found.uid() == rustix::process::getuid().as_raw();
    if found.is_dir() && is_ours && found.mode().trailing_zeros() >= 6 {
        Ok(())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// The runner's script, under `cache`; writes what is missing there.
fn script_in(cache: &Path) -> io::Result<PathBuf> {
    let folder = cache.join("runner").join(HASH);
    for (name, content) in FILES {
        let path = folder.join(name);
        // The folder's name vouches for the content; a length that differs is a write cut short.
        if !fs::metadata(&path).is_ok_and(|found| found.len() == content.len() as u64) {
            write(&path, content)?;
        }
    }
    Ok(folder.join("runner.py"))
}

/// Writes a file whole or not at all, even if others write it at the same time.
fn write(path: &Path, content: &str) -> io::Result<()> {
    let folder = path.parent().expect("below the cache folder");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(content.as_bytes())?;
    file.as_file().set_permissions(fs::Permissions::from_mode(0o600))?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_others_can_write_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let ours = folder.path().join("ours");
        private(&ours).unwrap();
        private(&ours).unwrap();
        fs::set_permissions(&ours, fs::Permissions::from_mode(0o770)).unwrap();
        assert_eq!(private(&ours).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        assert_eq!(private(&link).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
}
