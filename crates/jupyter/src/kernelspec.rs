//! Installed kernels: finding them, and the command that starts one.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::content::null_as_default;

/// An installed kernel, as its `kernel.json` describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelSpec {
    /// What it is asked for by: its folder's name in lower case.
    pub name: String,
    /// The folder of `kernel.json`, which may also hold logos.
    pub resource_dir: PathBuf,
    /// The rest of what we know about it.
    pub description: KernelJson,
}

/// The fields of a `kernel.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelJson {
    /// The command, with placeholders.
    #[serde(deserialize_with = "null_as_default")]
    pub argv: Vec<String>,
    /// What people call it.
    #[serde(deserialize_with = "null_as_default")]
    pub display_name: String,
    /// What its code is written in.
    #[serde(deserialize_with = "null_as_default")]
    pub language: String,
    /// Additions to the environment, with `${NAME}` for what is there.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// How to stop a running cell.
    #[serde(deserialize_with = "null_as_default")]
    pub interrupt_mode: InterruptMode,
    /// For programs that know it, such as provisioners or `supported_encryption`.
    #[serde(deserialize_with = "null_as_default")]
    pub metadata: Map<String, Value>,
    /// Fields we do not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// How a kernel is interrupted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterruptMode {
    /// SIGINT to its process group.
    #[default]
    #[serde(alias = "SIGNAL", alias = "Signal")]
    Signal,
    /// An `interrupt_request` on the control channel.
    #[serde(alias = "MESSAGE", alias = "Message")]
    Message,
}

/// Why a kernel cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// No folder has it.
    #[error("no kernel named `{name}`; installed: {}", list(installed))]
    NotFound {
        /// As asked for.
        name: String,
        /// What there is.
        installed: Vec<String>,
    },
    /// Its file cannot be read.
    #[error("could not read `{}`", path.display())]
    Read {
        /// The `kernel.json`.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Its file is not a kernelspec.
    #[error("`{}` is not a valid kernelspec", path.display())]
    Malformed {
        /// The `kernel.json`.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

impl KernelSpec {
    /// Reads the kernelspec in a folder.
    pub fn load(resource_dir: &Path) -> Result<Self, SpecError> {
        let path = resource_dir.join("kernel.json");
        let text = std::fs::read(&path).map_err(|source| SpecError::Read { path: path.clone(), source })?;
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
        let description =
            serde_json::from_slice(text).map_err(|source| SpecError::Malformed { path, source })?;
        let name = resource_dir.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        Ok(Self { name, resource_dir: resource_dir.to_owned(), description })
    }

    /// The kernel called `name`, in whatever case, from the first folder that has it.
    pub fn find(kernel_path: &[PathBuf], name: &str) -> Result<Self, SpecError> {
        let mut installed = installed(kernel_path);
        match installed.remove(&name.to_lowercase()) {
            Some(folder) => Self::load(&folder),
            None => {
                Err(SpecError::NotFound { name: name.to_owned(), installed: installed.into_keys().collect() })
            }
        }
    }

    /// Every installed kernel by name, and for those that are broken, why.
    pub fn all(kernel_path: &[PathBuf]) -> BTreeMap<String, Result<Self, SpecError>> {
        installed(kernel_path).into_iter().map(|(name, folder)| (name, Self::load(&folder))).collect()
    }

    /// The command line. Placeholders other than those of Jupyter stay as they are. A bare `python` is the one of
    /// `prefix`, where the kernel is installed: that of `PATH` may be another.
    pub fn command(&self, connection_file: &Path, prefix: Option<&Path>) -> Vec<String> {
        let mut values =
            vec![("{connection_file}", connection_file), ("{resource_dir}", self.resource_dir.as_path())];
        values.extend(prefix.map(|prefix| ("{prefix}", prefix)));
        let mut command: Vec<_> =
            self.description.argv.iter().map(|argument| fill_in(argument, &values)).collect();
        let python = prefix.map(|prefix| prefix.join("bin/python")).filter(|python| python.is_file());
        if let (Some(program), Some(python)) =
            (command.first_mut().filter(|program| is_python(program)), python)
        {
            *program = python.to_string_lossy().into_owned();
        }
        command
    }

    /// What the kernel adds to an environment, its references filled in from `current`.
    pub fn environment(&self, current: impl Fn(&str) -> Option<String>) -> BTreeMap<String, String> {
        let fill = |(name, value): (&String, &String)| (name.clone(), expand(value, &current));
        self.description.env.iter().map(fill).collect()
    }

    /// What it says about encrypted connections.
    pub fn supported_encryption(&self) -> Option<&Value> {
        self.description.metadata.get("supported_encryption")
    }
}

/// `python`, `python3`, `python3.11`.
fn is_python(program: &str) -> bool {
    let version = program.strip_prefix("python");
    version.is_some_and(|version| version.is_empty() || version == "3" || version.starts_with("3."))
}

fn installed(kernel_path: &[PathBuf]) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    let entries = kernel_path.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    for folder in entries.map(|entry| entry.path()).filter(|folder| folder.join("kernel.json").is_file()) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        found.entry(name).or_insert(folder);
    }
    found
}

/// Replaces placeholders in one pass: a value that holds another's name is not filled in again.
fn fill_in(argument: &str, values: &[(&str, &Path)]) -> String {
    let mut out = String::new();
    let mut rest = argument;
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let known = values.iter().find(|(name, _)| rest.starts_with(name));
        match known {
            Some((_, value)) => out.push_str(&value.to_string_lossy()),
            None => out.push('{'),
        }
        rest = &rest[known.map_or(1, |(name, _)| name.len())..];
    }
    out + rest
}

/// `$NAME`, `${NAME}` and `$$` as in Python's `string.Template`; unknown names stay.
fn expand(value: &str, current: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut rest = value;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (name, taken) = match after.strip_prefix('{') {
            Some(braced) => {
                let name = identifier(braced);
                let closed = braced[name.len()..].starts_with('}');
                (if closed { name } else { "" }, name.len() + 2)
            }
            None => (identifier(after), identifier(after).len()),
        };
        if let Some(literal) = after.strip_prefix('$') {
            out.push('$');
            rest = literal;
        } else if name.is_empty() {
            out.push('$');
            rest = after;
        } else {
            out.push_str(&current(name).unwrap_or_else(|| rest[at..=at + taken].to_owned()));
            rest = &after[taken..];
        }
    }
    out + rest
}

fn identifier(text: &str) -> &str {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = text.find(|c| !word(c)).unwrap_or(text.len());
    if text.starts_with(|c: char| c.is_ascii_digit()) { "" } else { &text[..end] }
}
