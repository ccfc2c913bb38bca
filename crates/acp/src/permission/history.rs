//! What was asked and decided.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;

use agent_client_protocol_schema::v1::ToolCall;

use super::{PermissionDecision, paths, untold_command};

/// Older decisions than these are forgotten.
const KEPT: usize = 1_000;

/// The last decisions, oldest first. Its `Display` is what `%agent permissions list` shows.
#[derive(Debug, Clone, Default)]
pub(crate) struct DecisionHistory {
    records: VecDeque<DecisionRecord>,
}

/// One decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DecisionRecord {
    /// The tool call's title.
    pub(crate) tool: String,
    /// The command it would run, where the title does not tell it.
    pub(crate) command: Option<String>,
    /// The files it named.
    pub(crate) paths: Vec<PathBuf>,
    /// Whether it was allowed.
    pub(crate) allowed: bool,
    /// By whom, and how.
    pub(crate) decision: String,
}

impl DecisionRecord {
    pub(super) fn of(call: &ToolCall, decision: &PermissionDecision) -> Self {
        let tool = call.title.lines().next().unwrap_or_default().to_owned();
        Self {
            command: untold_command(call, &tool),
            tool,
            paths: paths(call),
            allowed: decision.allowed(),
            decision: decision.to_string(),
        }
    }
}

impl DecisionHistory {
    pub(super) fn push(&mut self, record: DecisionRecord) {
        if self.records.len() == KEPT {
            self.records.pop_front();
        }
        self.records.push_back(record);
    }
}

impl fmt::Display for DecisionHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.records.is_empty() {
            return f.write_str("no permission was asked for yet");
        }
        for (n, record) in self.records.iter().enumerate() {
            if n > 0 {
                f.write_str("\n")?;
            }
            let mark = if record.allowed { '✓' } else { '✗' };
            write!(f, "{mark} {}: {}", record.tool, record.decision)?;
            for line in record.command.iter().flat_map(|command| command.lines()) {
                write!(f, "\n    {line}")?;
            }
            for path in &record.paths {
                write!(f, "\n    {}", path.display())?;
            }
        }
        Ok(())
    }
}
