//! Where things live on this machine, by the rules of XDG. `etcetera` does the same but reads the environment of this
//! process; the daemon needs the folders of its callers, and the runtime folder must be private.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use cellwright_editing::HistoryStore;
use cellwright_notebook::file::SaveSettings;
use cellwright_ownership::{TrustRecords, is_usable_parent};
use serde::{Deserialize, Serialize};

/// The folders and files of one user, seen from one folder.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct UserFolders {
    /// Settings and extension modules of the user.
    pub(crate) config: PathBuf,
    /// What lasts: the managed Python.
    pub(crate) data: PathBuf,
    /// What can be made again: the unpacked runner.
    pub(crate) cache: PathBuf,
    /// What a run leaves for later: artifacts.
    pub(crate) state: PathBuf,
    /// Sockets; gone after a restart.
    pub(crate) runtime: PathBuf,
    /// `.cellwright` of the project, when there is one above the folder that the user trusts.
    pub(crate) project: Option<PathBuf>,
}

/// The user's home folder: the one that the system knows, where the environment has none.
pub(crate) fn home_folder(environment: &HashMap<OsString, OsString>) -> PathBuf {
    absolute_path(environment, "HOME").or_else(std::env::home_dir).unwrap_or_else(|| PathBuf::from("/"))
}

/// The path that a variable holds. XDG: relative ones are ignored.
pub(crate) fn absolute_path(environment: &HashMap<OsString, OsString>, name: &str) -> Option<PathBuf> {
    environment.get(OsStr::new(name)).map(PathBuf::from).filter(|path| path.is_absolute())
}

impl UserFolders {
    /// As the environment says, by the XDG rules. Which project they are seen from is another question.
    pub(crate) fn from(environment: &HashMap<OsString, OsString>) -> Self {
        let path = |name: &str| absolute_path(environment, name);
        let home = home_folder(environment);
        let base = |name: &str, otherwise: &str| {
            path(name).unwrap_or_else(|| home.join(otherwise)).join("cellwright")
        };
        let state = base("XDG_STATE_HOME", ".local/state");
        // Another user's, as after `su`, counts as none.
        let is_ours = |runtime: &PathBuf| match runtime.try_exists() {
            Ok(false) => runtime.parent().is_some_and(is_usable_parent),
            Ok(true) | Err(_) => is_usable_parent(runtime),
        };
        let runtime = match path("XDG_RUNTIME_DIR").filter(is_ours) {
            Some(runtime) => runtime.join("cellwright"),
            None => state.join(format!("run-{}", host_name())),
        };
        Self {
            config: base("XDG_CONFIG_HOME", ".config"),
            data: base("XDG_DATA_HOME", ".local/share"),
            cache: base("XDG_CACHE_HOME", ".cache"),
            state,
            runtime,
            project: None,
        }
    }

    /// What the user has answered about the folders of projects.
    pub(crate) fn trust_records(&self) -> TrustRecords {
        TrustRecords::new(self.state.join("trust.json"))
    }

    /// How notebooks are saved.
    pub(crate) fn save_settings(&self) -> SaveSettings {
        SaveSettings { journal: Some(self.state.join("journal")) }
    }

    /// Where what changes take away is kept for undo.
    pub(crate) fn history(&self) -> HistoryStore {
        HistoryStore::new(self.state.join("history"))
    }

    pub(crate) fn user_settings(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    pub(crate) fn project_settings(&self) -> Option<PathBuf> {
        self.project.as_ref().map(|project| project.join("config.toml"))
    }

    pub(crate) fn managed_python(&self) -> PathBuf {
        self.data.join("python-env")
    }

    /// Folders with extension modules, the project's last: it wins by name.
    pub(crate) fn modules(&self) -> Vec<PathBuf> {
        let project = self.project.as_ref().map(|project| project.join("modules"));
        std::iter::once(self.config.join("modules")).chain(project).collect()
    }
}

/// The name of this machine: machines of a cluster share a home folder, and no sockets.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim().replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_");
    if name.is_empty() { "local".to_owned() } else { name }
}
