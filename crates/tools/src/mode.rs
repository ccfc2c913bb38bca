//! Which of the tools that run code are offered.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Which of `eval` and `bash` are offered. File tools always are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunMode {
    /// Both.
    #[default]
    Both,
    /// `eval` alone, and `bash` only while Python does not work.
    #[serde(rename = "py-only", alias = "ipy-only")]
    PythonOnly,
    /// `bash` alone.
    BashOnly,
    /// Neither, and notebooks are not run: nothing runs code.
    EditOnly,
}

impl RunMode {
    /// What both permit.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Both, mode) | (mode, Self::Both) => mode,
            (Self::PythonOnly, Self::PythonOnly) => Self::PythonOnly,
            (Self::BashOnly, Self::BashOnly) => Self::BashOnly,
            (Self::PythonOnly, Self::BashOnly)
            | (Self::BashOnly, Self::PythonOnly)
            | (Self::EditOnly, _)
            | (_, Self::EditOnly) => Self::EditOnly,
        }
    }
}

/// A word that names no mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a tool mode; use both, py-only, bash-only or edit-only")]
pub struct UnknownMode(String);

impl FromStr for RunMode {
    type Err = UnknownMode;

    fn from_str(word: &str) -> Result<Self, UnknownMode> {
        match word {
            "both" | "mix" => Ok(Self::Both),
            "py-only" | "ipy-only" | "py" | "1" => Ok(Self::PythonOnly),
            "bash-only" | "bash" | "0" => Ok(Self::BashOnly),
            "edit-only" | "edit" => Ok(Self::EditOnly),
            other => Err(UnknownMode(other.to_owned())),
        }
    }
}

impl fmt::Display for RunMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Both => "both",
            Self::PythonOnly => "py-only",
            Self::BashOnly => "bash-only",
            Self::EditOnly => "edit-only",
        })
    }
}
