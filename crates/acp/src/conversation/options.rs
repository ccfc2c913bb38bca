//! Setting the modes and options of an agent.

use agent_client_protocol_schema::v1::{
    CurrentModeUpdate, SessionConfigKind, SessionConfigOptionCategory, SessionConfigOptionValue,
    SessionUpdate, SetSessionConfigOptionRequest, SetSessionModeRequest,
};

use super::facts::select_values;
use super::{AgentConversation, AgentTurn, CellFailure, FailureKind, lock};

impl AgentConversation {
    pub(crate) async fn set_mode(&mut self, turn: &mut AgentTurn, mode: &str) -> Result<String, CellFailure> {
        self.ready(turn).await?;
        let facts = lock(&self.facts).clone();
        // Where an agent has both, options replace modes.
        let option =
            facts.options.iter().find(|option| option.category == Some(SessionConfigOptionCategory::Mode));
        if let Some(option) = option {
            return self.configure(turn, &option.id.0.clone(), mode).await;
        }
        let modes = facts.modes.map(|modes| modes.available_modes).unwrap_or_default();
        let Some(chosen) =
            modes.iter().find(|known| *known.id.0 == *mode || known.name.eq_ignore_ascii_case(mode))
        else {
            let names: Vec<String> = modes.iter().map(|known| known.id.to_string()).collect();
            return Err(CellFailure::new(FailureKind::NoSuchMode, format!("the agent has no mode `{mode}`"))
                .with(format!("It has: {}", names.join(", "))));
        };
        let session = self.session.clone().expect("it is open");
        self.request(SetSessionModeRequest::new(session, chosen.id.clone()), turn).await?;
        let update = CurrentModeUpdate::new(chosen.id.clone());
        lock(&self.facts).learn(&SessionUpdate::CurrentModeUpdate(update));
        Ok(format!("mode: {}", chosen.name))
    }

    pub(crate) async fn configure(
        &mut self,
        turn: &mut AgentTurn,
        option: &str,
        value: &str,
    ) -> Result<String, CellFailure> {
        self.ready(turn).await?;
        let options = lock(&self.facts).options.clone();
        let Some(chosen) =
            options.iter().find(|known| *known.id.0 == *option || known.name.eq_ignore_ascii_case(option))
        else {
            let names: Vec<String> = options.iter().map(|known| known.id.to_string()).collect();
            return Err(CellFailure::new(
                FailureKind::NoSuchOption,
                format!("the agent has no option `{option}`"),
            )
            .with(format!("It has: {}", names.join(", "))));
        };
        let new = match &chosen.kind {
            SessionConfigKind::Boolean(_) => match value {
                "on" | "true" | "yes" => SessionConfigOptionValue::Boolean { value: true },
                "off" | "false" | "no" => SessionConfigOptionValue::Boolean { value: false },
                _ => {
                    return Err(CellFailure::new(
                        FailureKind::NoSuchValue,
                        format!("`{option}` is `on` or `off`"),
                    ));
                }
            },
            SessionConfigKind::Select(select) => {
                let known = select_values(select);
                let Some(found) = known
                    .iter()
                    .find(|known| *known.value.0 == *value || known.name.eq_ignore_ascii_case(value))
                else {
                    let names: Vec<String> = known.iter().map(|known| known.value.to_string()).collect();
                    return Err(CellFailure::new(
                        FailureKind::NoSuchValue,
                        format!("`{option}` has no value `{value}`"),
                    )
                    .with(format!("It has: {}", names.join(", "))));
                };
                SessionConfigOptionValue::ValueId { value: found.value.clone() }
            }
            _ => {
                return Err(CellFailure::new(
                    FailureKind::NotSupported,
                    format!("`{option}` is of a kind that this version does not know"),
                ));
            }
        };
        let session = self.session.clone().expect("it is open");
        let request = SetSessionConfigOptionRequest::new(session, chosen.id.clone(), new);
        let set = self.request(request, turn).await?;
        lock(&self.facts).options = set.config_options;
        Ok(format!("{}: {value}", chosen.name))
    }
}
