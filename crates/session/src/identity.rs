//! What identifies sessions and their owners.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use cellwright_kernel::KernelChoice;
use serde::{Deserialize, Serialize};

/// The longest name of a session.
const LONGEST: usize = 128;

/// The name of a session: short, printable, on one line.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

/// The text cannot name a session.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` cannot name a session; use 1 to {LONGEST} printable characters", .0.escape_debug())]
pub struct InvalidSessionId(String);

impl SessionId {
    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SessionId {
    type Err = InvalidSessionId;

    fn from_str(text: &str) -> Result<Self, InvalidSessionId> {
        let fits = !text.trim().is_empty() && text.len() <= LONGEST && !text.contains(char::is_control);
        if fits { Ok(Self(text.to_owned())) } else { Err(InvalidSessionId(text.to_owned())) }
    }
}

impl TryFrom<String> for SessionId {
    type Error = InvalidSessionId;

    fn try_from(text: String) -> Result<Self, InvalidSessionId> {
        text.parse()
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What calls must have in common to share a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SessionKey {
    /// The session's name.
    pub session: SessionId,
    /// The folder its kernel was started in, without links.
    pub cwd: PathBuf,
    /// Which kernel.
    pub kernel: KernelChoice,
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` in {} ({})", self.session, self.cwd.display(), self.kernel)
    }
}
