//! What a kernel finds when its first cell runs.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use cellwright_kernel::{Module, Setup};

use crate::bridge::BridgeAccess;
use crate::settings::SessionSettings;

/// The setup of a kernel in `cwd`, and warnings about it.
pub(crate) fn setup(
    settings: &SessionSettings,
    cwd: &Path,
    bridge: Option<&BridgeAccess>,
) -> (Setup, Vec<String>) {
    let (modules, warnings) = modules(&settings.modules, cwd);
    let mut path = vec![cwd.to_path_buf()];
    path.extend(settings.path.iter().cloned());
    let setup = Setup {
        env: environment(settings, bridge),
        path,
        prelude: settings.prelude.clone(),
        modules,
        file: settings.script.as_ref().map(|script| script.path.to_string_lossy().into_owned()),
        arguments: settings.script.as_ref().map(|script| script.arguments.clone()).unwrap_or_default(),
        ..Setup::default()
    };
    (setup, warnings)
}

/// Each of our variables also under the name it had before.
fn environment(
    settings: &SessionSettings,
    bridge: Option<&BridgeAccess>,
) -> BTreeMap<String, Option<String>> {
    let mut env = settings.env.clone();
    let mut set = |name: &str, value: Option<String>| {
        for prefix in ["CELLWRIGHT", "PI"] {
            if let Some(value) = &value {
                env.insert(format!("{prefix}_{name}"), Some(value.clone()));
            }
        }
    };
    let text = |path: &Path| path.to_string_lossy().into_owned();
    set("TOOL_BRIDGE_URL", bridge.map(|bridge| bridge.url.clone()));
    set("TOOL_BRIDGE_TOKEN", bridge.map(|bridge| bridge.token.clone()));
    set("TOOL_BRIDGE_SESSION", bridge.map(|bridge| bridge.scope.clone()));
    set("ARTIFACTS_DIR", settings.output.artifacts.as_ref().map(|artifacts| text(artifacts.directory())));
    set("SESSION_FILE", settings.session_file.as_deref().map(text));
    if let Some(artifacts) = &settings.output.artifacts {
        env.insert("ARTIFACTS".into(), Some(text(artifacts.directory())));
    }
    env
}

/// The extension modules of all folders, by name; the last folder wins.
fn modules(folders: &[PathBuf], cwd: &Path) -> (Vec<Module>, Vec<String>) {
    let mut found = BTreeMap::new();
    let mut warnings = Vec::new();
    for folder in folders {
        let folder = cwd.join(folder);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            // Also if the home folder is missing.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => continue,
            Err(error) => {
                warnings.push(format!("modules in {} were not loaded: {error}", folder.display()));
                continue;
            }
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.extension().is_some_and(|extension| extension == "py")
                && let Some(name) = path.file_stem().and_then(|stem| stem.to_str())
            {
                found.insert(name.to_owned(), path);
            }
        }
    }
    (found.into_iter().map(|(name, path)| Module { name, path }).collect(), warnings)
}
