//! What a kernel of any transport finds when its first cell runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[cfg(test)]
use serde::Deserialize;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// What a kernel finds when its first cell runs.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(Deserialize, PartialEq))]
pub struct Setup {
    /// Variables of the environment to set, or to unset.
    pub env: BTreeMap<String, Option<String>>,
    /// Put in front of `sys.path`.
    #[serde(serialize_with = "lossy_paths")]
    pub path: Vec<PathBuf>,
    /// What every session finds predefined.
    pub prelude: Prelude,
    /// Extension modules to import into the namespace.
    pub modules: Vec<Module>,
    /// The script that cells come from, if one does: their `__file__`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What that script finds in `sys.argv` after its own name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, serde(default))]
    pub arguments: Vec<String>,
    /// What the runner may keep; its own defaults when none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<RunnerLimits>,
}

/// What every session finds predefined.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(into = "Value")]
#[cfg_attr(test, derive(Deserialize, PartialEq))]
#[cfg_attr(test, serde(from = "Value"))]
pub enum Prelude {
    /// Nothing.
    #[default]
    None,
    /// The prelude that comes with the runner.
    Standard,
    /// The names this source defines.
    Source(String),
}

impl From<Prelude> for Value {
    fn from(prelude: Prelude) -> Self {
        match prelude {
            Prelude::None => Value::Null,
            Prelude::Standard => Value::Bool(true),
            Prelude::Source(source) => Value::String(source),
        }
    }
}

#[cfg(test)]
impl From<Value> for Prelude {
    fn from(value: Value) -> Self {
        match value {
            Value::String(source) => Prelude::Source(source),
            Value::Bool(true) => Prelude::Standard,
            _ => Prelude::None,
        }
    }
}

/// An extension module.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(Deserialize, PartialEq))]
pub struct Module {
    /// Under which name it is imported.
    pub name: String,
    /// Its file.
    #[serde(serialize_with = "lossy_path")]
    pub path: PathBuf,
}

/// What the runner may keep.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(Deserialize, PartialEq))]
pub struct RunnerLimits {
    /// How many results `Out` keeps.
    pub outputs: u64,
    /// How many bytes of cell sources stay known to tracebacks.
    pub sources: u64,
}

/// JSON cannot say a path that is not UTF-8; nothing will be found under what it says instead.
fn lossy_path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

fn lossy_paths<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}
