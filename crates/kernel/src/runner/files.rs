//! The runner's Python files on disk.
//!
//! They lie in a folder named by their content, so versions do not meet and bytecode is cached. A
//! sweeper may have removed them since the last start: each start looks.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

include!(concat!(env!("OUT_DIR"), "/runner_files.rs"));

/// The runner's script, under `cache`; writes what is missing there.
pub(super) fn script(cache: &Path) -> io::Result<PathBuf> {
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
