//! The history of decisions.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;

use agent_client_protocol_schema::v1::ToolCall;

use super::{PermissionDecision, changes, hidden_command, hidden_folder, paths};

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
    /// The folder of the command, if the title does not show it.
    pub(crate) folder: Option<PathBuf>,
    /// The files it named, and what it would change in them.
    pub(crate) paths: Vec<String>,
    pub(crate) allowed: bool,
    /// What decided (the user, a rule or a default), and how.
    pub(crate) decision: String,
}

impl DecisionRecord {
    pub(super) fn of(call: &ToolCall, decision: &PermissionDecision) -> Self {
        let changes: Vec<_> =
            changes(call).map(|change| (PathBuf::from(change.path()), change.heading())).collect();
        let unchanged =
            paths(call).into_iter().filter(|path| !changes.iter().any(|(changed, _)| changed == path));
        let named = unchanged.map(|path| path.display().to_string()).collect::<Vec<_>>();
        let named = named.into_iter().chain(changes.iter().map(|(_, heading)| heading.clone())).collect();
        let tool = call.title.lines().next().unwrap_or_default().to_owned();
        Self {
            command: hidden_command(call, &tool),
            folder: hidden_folder(call, &tool),
            tool,
            paths: named,
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
            if let Some(folder) = &record.folder {
                write!(f, "\n    in {}", folder.display())?;
            }
            for path in &record.paths {
                write!(f, "\n    {path}")?;
            }
        }
        Ok(())
    }
}
