//! Why a cell failed, and how clients see it.

use cellwright_jupyter::content::{ErrorOutput, ExceptionContent};

use crate::agent::{AgentStartError, CallError};
use crate::kernel::KernelSetup;
use cellwright_output::visible;

/// The most lines of an agent's standard error that a failure shows.
const STDERR_LINES: usize = 20;

/// The most bytes of these lines.
const STDERR_BYTES: usize = 8 * 1024;

/// Why a cell failed, for its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CellFailure {
    pub(crate) kind: FailureKind,
    /// What happened.
    pub(crate) message: String,
    /// What helps, and what the agent wrote.
    pub(crate) details: Vec<String>,
}

/// Why a cell ended with an error.
#[derive(Debug)]
pub(crate) enum CellError {
    /// The kernel reports it.
    Failure(CellFailure),
    /// Its code raised this, which the cell shows already.
    Raised(ExceptionContent),
}

impl From<CellFailure> for CellError {
    fn from(failure: CellFailure) -> Self {
        Self::Failure(failure)
    }
}

/// The kinds of failure. Jupyter's clients get them as `ename`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// The agent answered a request with an error.
    AgentError,
    AgentEnded,
    /// The agent's program does not exist.
    AgentNotFound,
    AgentNotStarted,
    /// The user has to sign in first.
    AuthRequired,
    /// The request of the client could not be read.
    BadRequest,
    ConversationEnded,
    Interrupted,
    /// The kernel of code cells died, or could not go on.
    KernelError,
    MagicError,
    /// No agent was chosen or found.
    NoAgent,
    NoSuchAgent,
    NoSuchMode,
    NoSuchOption,
    NoSuchServer,
    NoSuchSession,
    NoSuchValue,
    /// The agent cannot do this.
    NotSupported,
    /// The agent ran no code that could be kept.
    NothingToKeep,
    SessionExists,
}

impl FailureKind {
    /// The name that clients get.
    fn ename(self) -> &'static str {
        match self {
            Self::AgentError => "AgentError",
            Self::AgentEnded => "AgentEnded",
            Self::AgentNotFound => "AgentNotFound",
            Self::AgentNotStarted => "AgentNotStarted",
            Self::AuthRequired => "AuthRequired",
            Self::BadRequest => "BadRequest",
            Self::ConversationEnded => "ConversationEnded",
            Self::Interrupted => "Interrupted",
            Self::KernelError => "KernelError",
            Self::MagicError => "MagicError",
            Self::NoAgent => "NoAgent",
            Self::NoSuchAgent => "NoSuchAgent",
            Self::NoSuchMode => "NoSuchMode",
            Self::NoSuchOption => "NoSuchOption",
            Self::NoSuchServer => "NoSuchServer",
            Self::NoSuchSession => "NoSuchSession",
            Self::NoSuchValue => "NoSuchValue",
            Self::NotSupported => "NotSupported",
            Self::NothingToKeep => "NothingToKeep",
            Self::SessionExists => "SessionExists",
        }
    }
}

impl CellFailure {
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), details: Vec::new() }
    }

    #[must_use]
    pub(crate) fn with(mut self, detail: impl Into<String>) -> Self {
        self.details.push(detail.into());
        self
    }

    #[must_use]
    pub(crate) fn with_all(mut self, details: Vec<String>) -> Self {
        self.details.extend(details);
        self
    }

    pub(crate) fn interrupted() -> Self {
        Self::new(FailureKind::Interrupted, "the cell was interrupted")
    }

    /// The agent of this name does not exist.
    pub(crate) fn no_such_agent(name: &str, setup: &KernelSetup) -> Self {
        let names: Vec<&str> = setup.agents.iter().map(|(name, _)| name.as_str()).collect();
        let failure = Self::new(FailureKind::NoSuchAgent, format!("there is no agent `{name}`"));
        match names.as_slice() {
            [] => failure.with(setup.guidance.clone()),
            names => failure.with(format!("There are: {}. `%agent use NAME` chooses one.", names.join(", "))),
        }
    }

    /// The agent did not answer a request with a result.
    pub(crate) fn of_call(error: &CallError) -> Self {
        match error {
            CallError::AuthRequired => Self::new(FailureKind::AuthRequired, error.to_string()),
            CallError::Unsupported { .. } => Self::new(FailureKind::NotSupported, error.to_string()),
            CallError::Refused { .. } => Self::new(FailureKind::AgentError, error.to_string()),
            CallError::Ended { stderr, .. } => {
                Self::new(FailureKind::AgentEnded, error.to_string()).with_stderr(stderr)
            }
        }
    }

    pub(crate) fn of_start(agent: &str, error: &AgentStartError) -> Self {
        match error {
            AgentStartError::Spawn(spawn) if spawn.source.kind() == std::io::ErrorKind::NotFound => {
                Self::new(
                    FailureKind::AgentNotFound,
                    format!("there is no program `{}` for the agent `{agent}`", spawn.program),
                )
                .with("Install it, or choose another: `%agent use NAME`.")
            }
            AgentStartError::Spawn(spawn) => {
                Self::new(FailureKind::AgentNotStarted, format!("{spawn}: {}", spawn.source))
            }
            AgentStartError::NoFolder(_) => Self::new(FailureKind::AgentNotStarted, error.to_string()),
            AgentStartError::Initialize(call) => {
                let mut failure = Self::of_call(call);
                failure.kind = FailureKind::AgentNotStarted;
                failure.message = format!("the agent `{agent}` did not start: {}", failure.message);
                failure
            }
        }
    }

    fn with_stderr(self, stderr: &str) -> Self {
        let lines: Vec<&str> = stderr.trim_end().lines().collect();
        if lines.is_empty() {
            return self;
        }
        let last = lines[lines.len().saturating_sub(STDERR_LINES)..].join("\n");
        let last = match last.len().checked_sub(STDERR_BYTES) {
            Some(surplus @ 1..) => format!("…{}", &last[last.ceil_char_boundary(surplus)..]),
            Some(0) | None => last,
        };
        self.with(format!("The end of its log (`%agent log` shows more):\n{last}"))
    }

    pub(crate) fn exception(&self) -> ExceptionContent {
        let ename = self.kind.ename().to_owned();
        let message = visible(&self.message).into_owned();
        let mut traceback = vec![format!("\x1b[31m{ename}\x1b[0m: {message}")];
        traceback.extend(self.details.iter().map(|line| visible(line).into_owned()));
        ExceptionContent { ename, evalue: message, traceback }
    }

    pub(crate) fn output(&self) -> ErrorOutput {
        let ExceptionContent { ename, evalue, traceback } = self.exception();
        ErrorOutput { ename, evalue, traceback, ..ErrorOutput::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_a_long_agent_log_is_shown() {
        let log = format!("{}\nout of memory\n", "é".repeat(500_000));
        let failure = CellFailure::new(FailureKind::AgentEnded, "it ended").with_stderr(&log);
        let shown = failure.exception().traceback.concat();
        assert!(shown.len() < 9_000 && shown.ends_with("éé\nout of memory"), "{} bytes", shown.len());
    }
}
