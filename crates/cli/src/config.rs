//! Settings: defaults, then the user's file, the project's file, the environment, flags; each later one wins.
//!
//! Every value knows its origin, which `cellwright config` shows. An unknown key is an error with a
//! suggestion. So is a key that a project may not set.
//!
//! The layers are merged here and not by `figment`, which tracks origins too but knows no keys that only the user may set,
//! and whose messages name neither the variable nor the right spelling.

#[cfg(test)]
mod document;
pub(crate) mod env;
mod keys;
mod layers;
mod places;
mod restriction;

use std::collections::BTreeMap;
use std::path::PathBuf;

use cellwright_tools::RunMode;
use serde::{Deserialize, Serialize};

pub(crate) use env::asks_for_startup_times;
pub(crate) use keys::KEYS;
pub(crate) use layers::LoadedConfig;
pub(crate) use places::{UserFolders, absolute_path, home_folder};

/// What can be set. A field's path is its key: `kernel.timeout`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct UserSettings {
    pub(crate) tools: ToolSection,
    pub(crate) python: PythonSection,
    pub(crate) environment: EnvironmentSection,
    pub(crate) kernel: KernelSection,
    pub(crate) session: SessionSection,
    pub(crate) output: OutputSection,
    pub(crate) files: FileSection,
    pub(crate) trust: TrustSection,
    pub(crate) gateway: GatewaySection,
    pub(crate) agent: AgentKernel,
    /// `[agents.NAME]`: the only keys that users name themselves.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) agents: BTreeMap<String, DeclaredAgent>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ToolSection {
    pub(crate) mode: RunMode,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PythonSection {
    pub(crate) path: Option<PathBuf>,
    pub(crate) skip_check: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct EnvironmentSection {
    pub(crate) allow: Vec<String>,
    pub(crate) deny: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct KernelSection {
    pub(crate) default: String,
    pub(crate) link: KernelLink,
    pub(crate) mode: KernelMode,
    pub(crate) timeout: u64,
    pub(crate) retry: RetryMode,
    pub(crate) trace: bool,
}

impl Default for KernelSection {
    fn default() -> Self {
        let (mode, retry) = (KernelMode::Session, RetryMode::Never);
        Self { default: "runner".to_owned(), link: KernelLink::Auto, mode, timeout: 30, retry, trace: false }
    }
}

/// How to talk to Jupyter kernels on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum KernelLink {
    Auto,
    Ipc,
    Tcp,
}

/// Whether calls share a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum KernelMode {
    Session,
    PerCall,
}

/// Whether a cell whose kernel died half-way is run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RetryMode {
    Never,
    Once,
}

/// What happens to a reset while another one is in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SimultaneousResets {
    Refuse,
    Join,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SessionSection {
    pub(crate) limit: usize,
    pub(crate) idle: u64,
    pub(crate) named_idle: u64,
    pub(crate) shared: bool,
    pub(crate) memory: u64,
    pub(crate) linger: u64,
    pub(crate) reset: SimultaneousResets,
}

impl Default for SessionSection {
    fn default() -> Self {
        Self {
            limit: 4,
            idle: 300,
            named_idle: 8 * 3600,
            shared: false,
            memory: 0,
            linger: 60,
            reset: SimultaneousResets::Refuse,
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct OutputSection {
    pub(crate) budget: usize,
    pub(crate) columns: usize,
    pub(crate) artifacts: Option<PathBuf>,
    pub(crate) background_after: u64,
}

impl Default for OutputSection {
    fn default() -> Self {
        Self { budget: 16 * 1024, columns: 768, artifacts: None, background_after: 50 }
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct FileSection {
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) allow_outside: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TrustSection {
    pub(crate) folders: Vec<PathBuf>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct GatewaySection {
    pub(crate) url: Option<String>,
    pub(crate) token: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AgentKernel {
    pub(crate) default: Option<String>,
    pub(crate) command: Option<String>,
    pub(crate) args: Vec<String>,
    pub(crate) permissions: PermissionMode,
    pub(crate) files: bool,
    pub(crate) tools: NotebookTools,
    pub(crate) log: LogLevel,
    pub(crate) debug_updates: Vec<String>,
}

/// What of the notebook an agent gets tools for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NotebookTools {
    /// Its kernel and its cells.
    #[default]
    Notebook,
    /// Nothing.
    None,
}

/// What happens when an agent asks for permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PermissionMode {
    #[default]
    Ask,
    Auto,
    Deny,
}

/// What the agent kernel logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LogLevel {
    Error,
    #[default]
    Warn,
    Info,
    Debug,
}

/// How an agent is started.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeclaredAgent {
    pub(crate) command: String,
    #[serde(default)]
    pub(crate) args: Vec<String>,
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
}
