//! The facts about a conversation, which can be read while it is busy.

use agent_client_protocol_schema::v1::{
    AuthMethod, AvailableCommand, SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory,
    SessionConfigSelect, SessionConfigSelectOption, SessionConfigSelectOptions, SessionId, SessionModeState,
    SessionUpdate, ToolKind, UsageUpdate,
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

    /// What an update changes in the session that the cell should show: options and the title. The view
    /// shows the mode itself.
    pub(crate) fn news(&self, update: &SessionUpdate) -> Vec<String> {
        match update {
            SessionUpdate::ConfigOptionUpdate(update) => {
                let is_mode = |option: &SessionConfigOption| {
                    self.modes.is_some() && option.category == Some(SessionConfigOptionCategory::Mode)
                };
                let changed = update.config_options.iter().filter(|option| !is_mode(option));
                let changed = changed.filter_map(|option| {
                    let before = self.options.iter().find(|before| before.id == option.id)?;
                    let value = current_value(option)?;
                    (current_value(before)? != value).then(|| format!("{}: {value}", option.name))
                });
                changed.collect()
            }
            SessionUpdate::SessionInfoUpdate(update) => {
                let title = update.title.value().filter(|title| self.title.as_ref() != Some(title));
                title.map(|title| format!("session title: {title}")).into_iter().collect()
            }
            _ => Vec::new(),
        }
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

/// The current value of an option, by its name for people.
fn current_value(option: &SessionConfigOption) -> Option<String> {
    match &option.kind {
        SessionConfigKind::Boolean(flag) => Some(if flag.current_value { "on" } else { "off" }.to_owned()),
        SessionConfigKind::Select(select) => {
            let known = select_values(select).into_iter().find(|value| value.value == select.current_value);
            Some(known.map_or_else(|| select.current_value.to_string(), |value| value.name.clone()))
        }
        _ => None,
    }
}

/// The values of an option, without their groups.
pub(crate) fn select_values(select: &SessionConfigSelect) -> Vec<&SessionConfigSelectOption> {
    match &select.options {
        SessionConfigSelectOptions::Ungrouped(values) => values.iter().collect(),
        SessionConfigSelectOptions::Grouped(groups) => {
            groups.iter().flat_map(|group| &group.options).collect()
        }
        _ => Vec::new(),
    }
}
