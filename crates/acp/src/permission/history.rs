//! The history of decisions.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;

use agent_client_protocol_schema::v1::ToolCall;

use super::{PermissionDecision, hidden_command, paths};

/// The most decisions that are kept.
const KEPT: usize = 1_000;

/// The last decisions, oldest first. `%agent permissions list` shows it.
#[derive(Debug, Clone, Default)]
pub(crate) struct DecisionHistory {
    records: VecDeque<DecisionRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DecisionRecord {
    /// The tool call's title.
    pub(crate) tool: String,
    /// The command, if the title does not show it.
    pub(crate) command: Option<String>,
    /// The files it named.
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) allowed: bool,
    /// Who decided, and how.
    pub(crate) decision: String,
}

impl DecisionRecord {
    pub(super) fn of(call: &ToolCall, decision: &PermissionDecision) -> Self {
        let tool = call.title.lines().next().unwrap_or_default().to_owned();
        Self {
            command: hidden_command(call, &tool),
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
