//! Updates of agents for debugging: logged by name, and shown in the cell if this version does not
//! know them.

use agent_client_protocol_schema::v1::SessionNotification;
use serde::Deserialize;
use serde_json::Value;
use tracing::info;

use crate::agent::{AgentEvent, UnknownMessage};

/// Their log target, so that they can be filtered.
pub(crate) const TARGET: &str = "cellwright::updates";

/// Which updates to log and show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum UpdateFilter {
    #[default]
    None,
    All,
    /// By their names in the protocol, as [`spelt`] writes them.
    Named(Vec<String>),
}

impl UpdateFilter {
    /// Users write the protocol's names (`tool_call`) or those of the older kernel
    /// (`ToolCallStart`).
    pub(crate) fn named(names: &[String]) -> Self {
        match names {
            [] => Self::None,
            names if names.iter().any(|name| name.eq_ignore_ascii_case("all")) => Self::All,
            names => Self::Named(names.iter().map(|name| known_as(spelt(name))).collect()),
        }
    }

    /// Logs an update, if its name is in the filter.
    pub(crate) fn log(&self, event: &AgentEvent) {
        match event {
            _ if *self == Self::None => {}
            AgentEvent::Update(notification) => {
                let SessionNotification { session_id, update, .. } = &**notification;
                // Serializing is only paid for while debugging.
                let written = serde_json::to_string(update).unwrap_or_default();
                let UpdateName { name } = serde_json::from_str(&written).unwrap_or_default();
                if self.wants(&name) {
                    info!(target: TARGET, session = %session_id, update = name, "{written}");
                }
            }
            AgentEvent::Unknown(unknown) if self.shows(unknown) => {
                info!(target: TARGET, method = unknown.method, "{}", unknown.params);
            }
            AgentEvent::Unknown(_) | AgentEvent::Permission(_) | AgentEvent::Elicitation(_) => {}
        }
    }

    /// Whether to show an unknown message in the cell.
    pub(crate) fn shows(&self, unknown: &UnknownMessage) -> bool {
        let name = unknown.params["update"]["sessionUpdate"].as_str();
        self.wants(name.unwrap_or(&unknown.method))
    }

    fn wants(&self, name: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Named(names) => names.contains(&spelt(name)),
        }
    }
}

/// The name of an update, without the rest.
#[derive(Default, Deserialize)]
struct UpdateName {
    #[serde(rename = "sessionUpdate")]
    name: String,
}

/// A name without underscores and capitals.
fn spelt(name: &str) -> String {
    name.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect()
}

/// The protocol's name for a name of the older kernel.
fn known_as(name: String) -> String {
    match name.as_str() {
        "toolcallstart" => "toolcall".to_owned(),
        "toolcallprogress" => "toolcallupdate".to_owned(),
        "agentplanupdate" => "plan".to_owned(),
        _ => name,
    }
}

/// A title and the full text for an unknown message.
pub(crate) fn described(unknown: &UnknownMessage) -> (String, String) {
    let update = &unknown.params["update"];
    match update["sessionUpdate"].as_str() {
        Some(name) => (format!("{} {name}", unknown.method), update.to_string()),
        None => (unknown.method.clone(), Value::to_string(&unknown.params)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_are_named_as_in_the_protocol_or_as_in_the_older_kernel() {
        let named = |names: &[&str]| {
            UpdateFilter::named(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(named(&[]), UpdateFilter::None);
        assert_eq!(named(&["ToolCallStart", "ALL"]), UpdateFilter::All);
        let some = named(&["ToolCallStart", "agent_thought_chunk", "AgentPlanUpdate"]);
        for (name, wanted) in [
            ("tool_call", true),
            ("tool_call_update", false),
            ("agent_thought_chunk", true),
            ("agent_message_chunk", false),
            ("plan", true),
        ] {
            assert_eq!(some.wants(name), wanted, "{name}");
        }
    }
}
