//! Calls that an agent ran without asking, although the permissions required a question.
//!
//! The mode and the rules decide when an agent asks. Some agents do not ask in their usual mode. The
//! cell then shows that the permissions were not in force, and how to make the agent ask.

use agent_client_protocol_schema::v1::{
    NoticeSeverity, SessionConfigKind, SessionConfigOptionCategory, SessionConfigSelectOptions, ToolCall,
    ToolCallContent, ToolCallId, ToolKind,
};

use super::listen::EventLoop;
use super::{SessionFacts, lock};

/// The modes in which known agents ask before they run or change something, best first.
const ASKING_MODES: [&str; 5] = ["default", "ask", "manual", "read-only", "workspace-write"];

/// How an agent can be made to ask.
#[derive(Debug, PartialEq, Eq)]
enum AskingMode {
    /// By this mode.
    Known(String),
    /// It is in this mode, and did not ask all the same.
    Current(String),
    Unknown,
}

impl EventLoop<'_> {
    /// Shows that the agent ran or changed something without asking, if it should have asked.
    pub(crate) fn note_bypass(&mut self, id: &ToolCallId) {
        let Some(entry) = self.turn.calls.get(id).filter(|entry| entry.ran_unasked()) else { return };
        let call = &entry.call;
        if self.grants.include(call, &self.workspace)
            || self.runs_through_us(call)
            || lock(self.facts).always_allowed.contains(&call.kind)
        {
            return;
        }
        let Some(broken) = lock(&self.state.policy).bypassed_by(call, &self.workspace) else { return };
        let did = if call.kind == ToolKind::Execute { "ran this" } else { "changed this" };
        self.turn.permission_bypassed(id);
        let mut facts = lock(self.facts);
        facts.bypassed += 1;
        if !std::mem::replace(&mut self.bypass_shown, true) {
            let title = format!("{broken} was not in force: the agent {did} without asking");
            self.turn.view.notice(&NoticeSeverity::Warning, &title, Some(&advice(&facts)));
        }
    }

    /// Whether a call shows a command that the agent runs through us. We have asked about it.
    fn runs_through_us(&self, call: &ToolCall) -> bool {
        call.content.iter().any(|content| match content {
            ToolCallContent::Terminal(terminal) => self.agent.made_terminal(&terminal.terminal_id),
            _ => false,
        })
    }
}

/// How to make the agent of a session ask.
pub(crate) fn advice(facts: &SessionFacts) -> String {
    match asking_mode(facts) {
        AskingMode::Known(mode) => format!("Run `%agent mode {mode}` to make it ask from now on."),
        AskingMode::Current(mode) => format!(
            "Its mode is `{mode}`, in which most agents ask. It may have a permission of its own from before; \
             see its own settings."
        ),
        AskingMode::Unknown => {
            "None of its modes is known to make it ask. `%agent mode` lists them; its own \
                                settings may have a way."
                .to_owned()
        }
    }
}

fn asking_mode(facts: &SessionFacts) -> AskingMode {
    let (modes, current) = modes(facts);
    let spelt = |mode: &str| mode.to_lowercase().replace(['_', ' '], "-");
    let known = ASKING_MODES.iter().find_map(|asking| modes.iter().find(|mode| spelt(mode) == *asking));
    match known {
        Some(mode) if current.as_ref() == Some(mode) => AskingMode::Current(mode.clone()),
        Some(mode) => AskingMode::Known(mode.clone()),
        None => AskingMode::Unknown,
    }
}

/// The modes that an agent offers, and the current one. Where it has both, options replace modes.
fn modes(facts: &SessionFacts) -> (Vec<String>, Option<String>) {
    let option = facts.options.iter().find(|it| it.category == Some(SessionConfigOptionCategory::Mode));
    if let Some(SessionConfigKind::Select(select)) = option.map(|option| &option.kind) {
        let values: Vec<_> = match &select.options {
            SessionConfigSelectOptions::Ungrouped(values) => values.iter().collect(),
            SessionConfigSelectOptions::Grouped(groups) => groups.iter().flat_map(|it| &it.options).collect(),
            _ => Vec::new(),
        };
        let named = values.iter().map(|value| value.value.to_string()).collect();
        return (named, Some(select.current_value.to_string()));
    }
    let Some(modes) = &facts.modes else { return (Vec::new(), None) };
    let named = modes.available_modes.iter().map(|mode| mode.id.to_string()).collect();
    (named, Some(modes.current_mode_id.to_string()))
}

#[cfg(test)]
mod tests {
    use agent_client_protocol_schema::v1::{SessionMode, SessionModeState};

    use super::*;

    #[test]
    fn the_mode_in_which_a_known_agent_asks_is_found() {
        for (agent, ids, expected) in [
            ("codex", &["agent", "read-only", "full-access"][..], AskingMode::Known("read-only".to_owned())),
            ("qwen", &["auto", "plan", "default", "yolo"], AskingMode::Known("default".to_owned())),
            ("oh-my-pi", &["default", "plan"], AskingMode::Current("default".to_owned())),
            ("opencode", &["build", "plan"], AskingMode::Unknown),
            ("none", &[], AskingMode::Unknown),
        ] {
            let modes = ids.iter().map(|id| SessionMode::new(*id, *id)).collect::<Vec<_>>();
            let modes = ids.first().map(|current| SessionModeState::new(*current, modes));
            let facts = SessionFacts { modes, ..SessionFacts::default() };
            assert_eq!(asking_mode(&facts), expected, "{agent}");
        }
    }
}
