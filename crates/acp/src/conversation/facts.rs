//! The facts about a conversation, which can be read while it is busy.

use agent_client_protocol_schema::v1::{
    AuthMethod, AvailableCommand, SessionConfigOption, SessionId, SessionModeState, SessionUpdate, ToolKind,
    UsageUpdate,
};

use super::AgentChoice;
use crate::agent::{AgentLog, AgentProcess};
use crate::cell_record::SharedRecord;

/// A conversation at a glance.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionFacts {
    /// The agent, as the user chose it.
    pub(crate) choice: Option<AgentChoice>,
    /// The name and version that the agent reports.
    pub(crate) version: Option<String>,
    pub(crate) session: Option<SessionId>,
    pub(crate) title: Option<String>,
    /// The ids and titles of the sessions that the agent last listed.
    pub(crate) stored: Vec<(String, String)>,
    pub(crate) modes: Option<SessionModeState>,
    pub(crate) options: Vec<SessionConfigOption>,
    pub(crate) commands: Vec<AvailableCommand>,
    pub(crate) usage: Option<UsageUpdate>,
    pub(crate) auth_methods: Vec<AuthMethod>,
    pub(crate) log: Option<AgentLog>,
    /// What the cell of the last prompt has shown.
    pub(crate) last_turn: Option<SharedRecord>,
    /// How many calls the agent ran without asking, although the permissions required it.
    pub(crate) bypassed: usize,
    /// The kinds of calls that the user allowed for good. The agent need not ask about them again.
    pub(crate) always_allowed: Vec<ToolKind>,
}

impl SessionFacts {
    /// Notes what a new process reports about itself.
    pub(crate) fn started(&mut self, agent: &AgentProcess) {
        self.version = agent.info().map(|info| format!("{} {}", info.name, info.version));
        self.auth_methods = agent.auth_methods().to_vec();
    }

    /// Notes that a session is open.
    pub(crate) fn opened(
        &mut self,
        session: SessionId,
        modes: Option<SessionModeState>,
        options: Option<Vec<SessionConfigOption>>,
    ) {
        self.session = Some(session);
        self.modes = modes;
        self.options = options.unwrap_or_default();
    }

    pub(crate) fn closed(&mut self) {
        *self = Self {
            choice: self.choice.take(),
            version: self.version.take(),
            auth_methods: std::mem::take(&mut self.auth_methods),
            log: self.log.take(),
            last_turn: self.last_turn.take(),
            stored: std::mem::take(&mut self.stored),
            ..Self::default()
        };
    }

    /// Takes in an update about the session's state. False if the update is about something else.
    pub(crate) fn learn(&mut self, update: &SessionUpdate) -> bool {
        match update {
            SessionUpdate::AvailableCommandsUpdate(update) => {
                self.commands.clone_from(&update.available_commands);
            }
            SessionUpdate::CurrentModeUpdate(update) => {
                if let Some(modes) = &mut self.modes {
                    modes.current_mode_id = update.current_mode_id.clone();
                }
            }
            SessionUpdate::ConfigOptionUpdate(update) => self.options.clone_from(&update.config_options),
            SessionUpdate::SessionInfoUpdate(update) => {
                if let Some(title) = update.title.value() {
                    self.title = Some(title.clone());
                }
            }
            SessionUpdate::UsageUpdate(update) => self.usage = Some(update.clone()),
            _ => return false,
        }
        true
    }
}
