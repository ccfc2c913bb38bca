//! The runner's Python files on disk.
//!
//! They are in a folder that is named after their content, so versions stay apart and bytecode is cached. What is in
//! that folder will be run as the user: each start looks whose it is, and compares every file.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use cellwright_ownership::{Leftovers, LockedFolder, is_reliable_entry, private_folder};

include!(concat!(env!("OUT_DIR"), "/runner_files.rs"));

/// How the folders of runners among the temporary files begin.
const PREFIX: &str = "cellwright-runner-";

/// The runner's script. Its files stay as long as this does.
#[derive(Clone, Debug)]
pub(super) struct RunnerScript {
    pub(super) path: PathBuf,
    /// Where the cache could not be used.
    _own: Option<Arc<LockedFolder>>,
}

impl RunnerScript {
    /// The script in the cache. If the cache cannot be written, or others can write it, it is in a temporary folder of
    /// this runner's own. The error is about the cache.
    pub(super) fn unpack(cache: &Path) -> io::Result<Self> {
        let why = match unpack_in(&cache.join("runner").join(HASH)) {
            Ok(path) => return Ok(Self { path, _own: None }),
            Err(why) => why,
        };
        tracing::debug!(error = %why, cache = %cache.display(), "the runner is not in the cache");
        let unpack = || {
            let own = LockedFolder::new_in(&std::env::temp_dir(), PREFIX, Leftovers::Everything)?;
            let path = unpack_in(&own.path().join(HASH))?;
            io::Result::Ok(Self { path, _own: Some(Arc::new(own)) })
        };
        unpack().map_err(|_| why)
    }
}

/// Where the runner is if the cache cannot be used.
pub(super) fn temporary() -> PathBuf {
    std::env::temp_dir()
}

/// The runner's script, in `folder`; writes there what is missing or differs.
fn unpack_in(folder: &Path) -> io::Result<PathBuf> {
    private_folder(folder)?;
    let mut checked = folder.to_path_buf(); // files of one folder come one after the other
    for (name, content) in FILES {
        let path = folder.join(name);
        let within = path.parent().expect("it is in the folder");
        if within != folder && within != checked {
            private_folder(within)?;
            private_folder(&within.join("__pycache__"))?;
            checked = within.to_path_buf();
        }
        // Bytecode is trusted for being in a private folder; a source costs nothing to compare.
        if !is_reliable_entry(&path) || fs::read(&path).ok().as_deref() != Some(content.as_bytes()) {
            write(&path, content)?;
        }
    }
    Ok(folder.join("runner.py"))
}

/// Writes a file whole or not at all, even if others write it at the same time.
fn write(path: &Path, content: &str) -> io::Result<()> {
    let folder = path.parent().expect("below the cache folder");
    let mut file = tempfile::NamedTempFile::new_in(folder)?; // 0600 from the start
    file.write_all(content.as_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_file_of_the_same_length_with_other_code_is_written_again() {
        let cache = tempfile::tempdir().unwrap();
        let script = RunnerScript::unpack(cache.path()).unwrap().path;
        let whole = fs::read(&script).unwrap();
        let mut changed = whole.clone();
        changed[0] ^= 1;
        fs::write(&script, &changed).unwrap();
        assert_eq!(RunnerScript::unpack(cache.path()).unwrap().path, script);
        assert_eq!(fs::read(&script).unwrap(), whole);
    }

    #[test]
    fn a_cache_that_others_can_write_is_not_used() {
        let cache = tempfile::tempdir().unwrap();
        let script = RunnerScript::unpack(cache.path()).unwrap();
        assert!(script.path.starts_with(cache.path()));
        for folder in [script.path.parent().unwrap(), cache.path()] {
            let before = fs::metadata(folder).unwrap().permissions();
            fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
            let own = RunnerScript::unpack(cache.path()).unwrap();
            assert!(!own.path.starts_with(cache.path()) && own.path.exists());
            let path = own.path.clone();
            drop(own);
            assert!(!path.exists(), "it goes with the runner");
            fs::set_permissions(folder, before).unwrap();
        }
    }
}
