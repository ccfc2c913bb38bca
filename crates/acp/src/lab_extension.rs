//! The extension for JupyterLab and Notebook 7 that lets a kernel reach the notebook in the page.
//!
//! It is one file of JavaScript without a build step, so any version of JupyterLab from 4.0 on loads it. Servers let
//! browsers keep it for a year: its name holds a hash of its content.

use std::io;
use std::path::{Path, PathBuf};

use cellwright_notebook::Fingerprint;
use serde_json::{Value, json};

/// The page's end of the bridge.
const PAGE: &str = include_str!("../labext/page.js");

const INJECTED: &str = include_str!("../labext/injected.js");

const EXTENSION: &str = include_str!("../labext/extension.js");

/// The name of the extension and of its folder.
const NAME: &str = "cellwright";

/// Why the extension could not be installed or removed.
#[derive(Debug, thiserror::Error)]
pub enum LabExtensionError {
    /// Another program's extension has our name.
    #[error("the extension in `{}` is not ours and is left alone", folder.display())]
    Foreign {
        /// Its folder.
        folder: PathBuf,
    },
    /// Writing or removing failed.
    #[error("could not write to `{}`", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// An extension of ours that is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledLabExtension {
    /// Its folder.
    pub folder: PathBuf,
    /// The version of cellwright that installed it.
    pub version: String,
    /// Whether it is the one that this program would install.
    pub is_current: bool,
}

/// The JavaScript of the extension.
fn script() -> String {
    format!("(() => {{\n{PAGE}{EXTENSION}}})();\n")
}

/// The same as a script that an output of a cell runs.
pub(crate) fn injected() -> String {
    format!("(() => {{\n{PAGE}{INJECTED}}})();\n")
}

/// The name of its file.
fn script_name(script: &str) -> String {
    let hash = Fingerprint::of(script.as_bytes()).to_string();
    format!("remoteEntry.{}.js", &hash[..20])
}

/// Installs the extension into a folder of extensions (`share/jupyter/labextensions`), in place of an earlier one of
/// ours. Returns its folder.
pub fn install(extensions: &Path) -> Result<PathBuf, LabExtensionError> {
    let folder = extensions.join(NAME);
    if is_there(&folder) && installed(extensions).is_none() {
        return Err(LabExtensionError::Foreign { folder });
    }
    let fixed = folder.join("static");
    std::fs::create_dir_all(&fixed)
        .map_err(|source| LabExtensionError::Write { path: fixed.clone(), source })?;
    let write = |path: PathBuf, text: &str| {
        std::fs::write(&path, text).map_err(|source| LabExtensionError::Write { path, source })
    };
    let script = script();
    let name = script_name(&script);
    // Pages may be loaded meanwhile: what `package.json` names is always there.
    write(fixed.join(&name), &script)?;
    let package = json!({
        "name": NAME,
        "version": env!("CARGO_PKG_VERSION"),
        "description": "Lets the agent of a notebook change it where the person sees it",
        "license": "MIT OR Apache-2.0",
        "jupyterlab": {
            "extension": true,
            "_build": { "load": format!("static/{name}"), "extension": "./extension" },
        },
    });
    let origin = json!({
        "packageManager": NAME,
        "packageName": NAME,
        "uninstallInstructions": "Run `cellwright lab uninstall`",
    });
    write(folder.join("install.json"), &format!("{origin:#}\n"))?;
    write(folder.join("package.json"), &format!("{package:#}\n"))?;
    for old in std::fs::read_dir(&fixed).into_iter().flatten().flatten() {
        if *old.file_name() != *name {
            drop(std::fs::remove_file(old.path())); // it is named by nothing now
        }
    }
    Ok(folder)
}

/// The extension of ours in a folder of extensions.
pub fn installed(extensions: &Path) -> Option<InstalledLabExtension> {
    let folder = extensions.join(NAME);
    let described = |name| -> Option<Value> {
        serde_json::from_str(&std::fs::read_to_string(folder.join(name)).ok()?).ok()
    };
    let (package, origin) = (described("package.json")?, described("install.json")?);
    if origin["packageManager"] != NAME {
        return None;
    }
    let loads = package["jupyterlab"]["_build"]["load"].as_str()?;
    let script = script();
    let is_current = loads == format!("static/{}", script_name(&script))
        && std::fs::read_to_string(folder.join(loads)).is_ok_and(|installed| installed == script);
    let version = package["version"].as_str().unwrap_or_default().to_owned();
    Some(InstalledLabExtension { folder, version, is_current })
}

/// Removes the extension from a folder of extensions. False if there was none.
pub fn remove(extensions: &Path) -> Result<bool, LabExtensionError> {
    let folder = extensions.join(NAME);
    if !is_there(&folder) {
        return Ok(false);
    }
    if installed(extensions).is_none() {
        return Err(LabExtensionError::Foreign { folder });
    }
    std::fs::remove_dir_all(&folder).map_err(|source| LabExtensionError::Write { path: folder, source })?;
    drop(std::fs::remove_dir(extensions)); // others' extensions keep it
    Ok(true)
}

/// Also a link, for example one that a developer's build of another extension made.
fn is_there(folder: &Path) -> bool {
    folder.symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_is_installed_replaced_and_removed_without_a_trace() {
        let share = tempfile::tempdir().unwrap();
        let extensions = share.path().join("labextensions");
        assert!(!remove(&extensions).unwrap());
        let folder = install(&extensions).unwrap();
        assert!(installed(&extensions).unwrap().is_current);
        std::fs::write(folder.join("static/remoteEntry.old.js"), "").unwrap();
        install(&extensions).unwrap();
        assert_eq!(std::fs::read_dir(folder.join("static")).unwrap().count(), 1);
        let package = std::fs::read_to_string(folder.join("package.json")).unwrap();
        std::fs::write(folder.join("package.json"), package.replace("remoteEntry.", "other.")).unwrap();
        assert!(!installed(&extensions).unwrap().is_current);
        assert!(remove(&extensions).unwrap());
        assert!(!extensions.exists());
    }

    #[test]
    fn an_extension_of_our_name_that_is_not_ours_is_left_alone() {
        let extensions = tempfile::tempdir().unwrap();
        std::fs::create_dir(extensions.path().join(NAME)).unwrap();
        assert!(matches!(install(extensions.path()), Err(LabExtensionError::Foreign { .. })));
        assert!(matches!(remove(extensions.path()), Err(LabExtensionError::Foreign { .. })));
    }
}
