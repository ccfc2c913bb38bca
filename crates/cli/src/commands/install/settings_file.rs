//! Files of other programs: read whole, replaced whole or not at all.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::Path;

use anyhow::Context as _;
use nix::unistd::{AccessFlags, access};

use super::Scope;

/// The text of a file; none when there is no file.
pub(super) fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("could not read {}", path.display())),
    }
}

/// Puts `after` in the place of a file that still says `before`. A link stays one; permissions stay.
pub(super) fn replace(path: &Path, before: Option<&str>, after: &str, scope: Scope) -> anyhow::Result<()> {
    let attempt = || format!("could not write {}", path.display());
    // Dotfiles are often links into a repository: the file behind the link is the one to replace.
    let target = match before {
        Some(_) => path.canonicalize().with_context(attempt)?,
        None => path.to_owned(),
    };
    let folder = target.parent().expect("a file is in a folder");
    let permissions = match (before, scope) {
        (Some(_), _) => fs::metadata(&target).with_context(attempt)?.permissions(),
        (None, Scope::Project) => Permissions::from_mode(0o666), // as far as the umask lets it
        (None, Scope::User) => Permissions::from_mode(0o600),    // clients keep secrets in there
    };
    if before.is_some() {
        // A rename needs no right to write the file, but its owner may have taken that right away for a reason.
        access(&target, AccessFlags::W_OK).with_context(attempt)?;
    }
    fs::create_dir_all(folder).with_context(attempt)?;
    let mut new = tempfile::Builder::new()
        .permissions(permissions.clone())
        .tempfile_in(folder)
        .with_context(attempt)?;
    new.write_all(after.as_bytes()).with_context(attempt)?;
    if before.is_some() {
        let old = fs::metadata(&target).with_context(attempt)?;
        // A file of the user's stays so when root edits it for them.
        if old.uid() != new.as_file().metadata().with_context(attempt)?.uid() {
            fchown(new.as_file(), Some(old.uid()), Some(old.gid())).with_context(attempt)?;
        }
        new.as_file().set_permissions(permissions).with_context(attempt)?;
    }
    new.as_file().sync_all().with_context(attempt)?;
    let changed = || format!("{} changed meanwhile, so nothing was written; try again", path.display());
    match before {
        Some(before) => {
            anyhow::ensure!(read(&target)?.as_deref() == Some(before), changed());
            new.persist(&target).map_err(|error| error.error).with_context(attempt)?;
        }
        None => match new.persist_noclobber(&target) {
            Ok(_) => {}
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => anyhow::bail!(changed()),
            Err(error) => return Err(error.error).with_context(attempt),
        },
    }
    Ok(())
}
