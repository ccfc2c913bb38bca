//! Names of work in the background.

use std::fmt;
use std::str::FromStr;

use cellwright_session::JobId;

/// Work in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BackgroundHandle {
    /// `py-3`
    Cells(JobId),
    /// `sh-3`
    Shell(u64),
}

/// A text that names no work in the background.
#[derive(Debug, thiserror::Error)]
#[error("`{0:.40}` is not a handle; one looks like py-3 or sh-3")]
pub(crate) struct NoSuchHandle(String);

impl fmt::Display for BackgroundHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cells(job) => write!(f, "py-{job}"),
            Self::Shell(number) => write!(f, "sh-{number}"),
        }
    }
}

impl FromStr for BackgroundHandle {
    type Err = NoSuchHandle;

    fn from_str(text: &str) -> Result<Self, NoSuchHandle> {
        let cells = text.strip_prefix("py-").and_then(|number| number.parse().ok()).map(Self::Cells);
        let shell = text.strip_prefix("sh-").and_then(|number| number.parse().ok()).map(Self::Shell);
        cells.or(shell).ok_or_else(|| NoSuchHandle(text.to_owned()))
    }
}
