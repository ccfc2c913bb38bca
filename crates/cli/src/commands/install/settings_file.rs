//! Files of other programs: read whole, replaced whole or not at all.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::Context as _;
use cellwright_notebook::file::{FileReplaceError, FileReplacement};

use super::InstallScope;

/// The text of a file. `None` if it does not exist.
pub(super) fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("could not read {}", path.display())),
    }
}

/// Puts `after` in the place of a file that still says `before`. A link stays one; permissions stay.
pub(super) fn replace(
    path: &Path,
    before: Option<&str>,
    after: &str,
    scope: InstallScope,
) -> anyhow::Result<()> {
    let attempt = || format!("could not write {}", path.display());
    let cause = |error: FileReplaceError| error.source;
    // Dotfiles are often links into a repository: the file behind the link is the one to replace.
    let target = match before {
        Some(_) => path.canonicalize().with_context(attempt)?,
        None => path.to_owned(),
    };
    let changed = || format!("{} changed meanwhile, so nothing was written; try again", path.display());
    if let Some(before) = before {
        let new = FileReplacement::of(&target, after.as_bytes()).map_err(cause).with_context(attempt)?;
        anyhow::ensure!(read(&target)?.as_deref() == Some(before), changed());
        new.commit().map_err(cause).with_context(attempt)?;
        return Ok(());
    }
    let mode = match scope {
        InstallScope::Project => 0o666,
        InstallScope::User => 0o600, // clients keep secrets in there
    };
    fs::create_dir_all(target.parent().expect("a file is in a folder")).with_context(attempt)?;
    let new =
        FileReplacement::new_file(&target, mode, after.as_bytes()).map_err(cause).with_context(attempt)?;
    anyhow::ensure!(new.commit_new().map_err(cause).with_context(attempt)?, changed());
    Ok(())
}
