//! pyenv's choice, without running pyenv.
//!
//! A shim is a shell script that takes a tenth of a second to find a file whose place is written in
//! two small files. We read them.

use std::fs;
use std::path::{Path, PathBuf};

use cellwright_ownership::{is_reliable_entry, reliable_above};

use super::{PythonOrigin, PythonSearch};

/// The Python pyenv chose for this folder in particular.
pub(super) fn local(search: &PythonSearch) -> Option<PathBuf> {
    python(&root(search)?, &local_versions(search)?, "python")
}

/// The Python of a version that pyenv has, chosen for the folder or not.
pub(super) fn version(search: &PythonSearch, version: &str) -> Option<PathBuf> {
    python(&root(search)?, &[version.to_owned()], "python")
}

/// The program behind `program` if that is a shim of pyenv's, and how it was found; `None` when there
/// is nothing behind it.
pub(super) fn behind_shim(
    search: &PythonSearch,
    program: PathBuf,
    otherwise: PythonOrigin,
) -> Option<(PathBuf, PythonOrigin)> {
    let shims = program.parent()?;
    let Some(root) = shims.parent().filter(|root| shims.ends_with("shims") && root.join("versions").is_dir())
    else {
        return Some((program, otherwise));
    };
    let versions = local_versions(search)
        .or_else(|| read_versions(&root.join("version")))
        .unwrap_or_else(|| vec!["system".into()]);
    Some((python(root, &versions, program.file_name()?.to_str()?)?, PythonOrigin::Pyenv))
}

fn root(search: &PythonSearch) -> Option<PathBuf> {
    let root = match search.variable("PYENV_ROOT") {
        Some(root) => PathBuf::from(root),
        None => Path::new(search.variable("HOME")?).join(".pyenv"),
    };
    root.join("versions").is_dir().then_some(root)
}

fn local_versions(search: &PythonSearch) -> Option<Vec<String>> {
    if let Some(versions) = search.variable("PYENV_VERSION").and_then(|versions| versions.to_str()) {
        return Some(versions.split(':').map(Into::into).collect());
    }
    let files = reliable_above(&search.cwd).map(|folder| folder.join(".python-version"));
    files.filter(|file| is_reliable_entry(file)).find_map(|file| read_versions(&file))
}

fn read_versions(file: &Path) -> Option<Vec<String>> {
    let text = fs::read_to_string(file).ok()?;
    let versions: Vec<String> = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default())
        .flat_map(str::split_whitespace)
        .filter(|version| is_version(version))
        .map(Into::into)
        .collect();
    (!versions.is_empty()).then_some(versions)
}

/// Whether it names a version of pyenv's, not a folder elsewhere.
fn is_version(name: &str) -> bool {
    !name.contains('/') && !name.starts_with('.')
}

/// The first of the chosen versions that is there. `system` means the rest of `PATH`, which is looked
/// at anyway.
fn python(root: &Path, versions: &[String], name: &str) -> Option<PathBuf> {
    versions.iter().filter(|version| is_version(version)).find_map(|version| {
        let exact = root.join("versions").join(version).join("bin").join(name);
        if exact.exists() {
            return Some(exact);
        }
        // `3.12` means the newest 3.12.
        let newest = fs::read_dir(root.join("versions"))
            .ok()?
            .flatten()
            .filter_map(|entry| {
                let patch = entry
                    .file_name()
                    .to_str()?
                    .strip_prefix(version.as_str())?
                    .strip_prefix('.')?
                    .parse::<u32>()
                    .ok()?;
                Some((patch, entry.path().join("bin").join(name)))
            })
            .filter(|(_, python)| python.exists())
            .max()?;
        Some(newest.1)
    })
}
