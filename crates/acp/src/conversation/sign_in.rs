//! Signing in with an agent.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::{AuthMethod, AuthenticateRequest};
use serde::Deserialize;

use super::open::UpdateUse;
use super::{AgentChoice, AgentConversation, AgentTurn, CellFailure};

impl AgentConversation {
    pub(crate) async fn sign_in(
        &mut self,
        turn: &mut AgentTurn,
        method: Option<String>,
    ) -> Result<String, CellFailure> {
        self.start(turn).await?;
        let methods = self.running().agent.auth_methods().to_vec();
        let wanted = |known: &&AuthMethod| match &method {
            Some(name) => *known.id().0 == **name || known.name().eq_ignore_ascii_case(name),
            None => at_a_terminal(known, self.choice.as_ref()).is_none(),
        };
        let Some(chosen) = methods.iter().find(wanted) else {
            let failure = CellFailure::new("AuthRequired", "there is no such way to sign in");
            return Err(sign_in_help(failure, &methods, self.choice.as_ref()));
        };
        if at_a_terminal(chosen, self.choice.as_ref()).is_some() {
            let failure = CellFailure::new("AuthRequired", format!("`{}` needs a terminal", chosen.name()));
            return Err(sign_in_help(failure, std::slice::from_ref(chosen), self.choice.as_ref()));
        }
        self.call(AuthenticateRequest::new(chosen.id().clone()), turn, UpdateUse::Facts)
            .await
            .map_err(|error| self.failed(&error))?;
        Ok(format!("signed in by {}", chosen.name()))
    }
}

/// What a user can do who is not signed in.
pub(crate) fn sign_in_help(
    failure: CellFailure,
    methods: &[AuthMethod],
    choice: Option<&AgentChoice>,
) -> CellFailure {
    if methods.is_empty() {
        return failure
            .with("The agent does not say how. Sign in with its own program, then run the cell again.");
    }
    methods.iter().fold(failure, |failure, method| {
        let about = method.description().map(|text| format!(": {text}")).unwrap_or_default();
        failure.with(match at_a_terminal(method, choice) {
            Some(line) => format!("{}{about}\n    run in a terminal: {line}", method.name()),
            None => format!("{}{about}\n    run in a cell: %agent login {}", method.name(), method.id()),
        })
    })
}

/// The command to be run in a terminal, where signing in is done there.
fn at_a_terminal(method: &AuthMethod, choice: Option<&AgentChoice>) -> Option<String> {
    let (mut words, mut environment) = (Vec::new(), BTreeMap::new());
    match method {
        AuthMethod::Terminal(terminal) => {
            let launch = choice.map(|choice| &choice.launch);
            let program =
                launch.into_iter().flat_map(|launch| [&launch.program].into_iter().chain(&launch.args));
            words.extend(program.map(|word| word.to_string_lossy().into_owned()));
            words.extend(terminal.args.iter().cloned());
            environment.extend(terminal.env.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        // Not of the protocol: agents wrote it so before the protocol had the kind.
        AuthMethod::Agent(agent) => {
            let extension: TerminalAuth =
                serde_json::from_value(agent.meta.as_ref()?.get("terminal-auth")?.clone()).ok()?;
            words.push(extension.command);
            words.extend(extension.args);
            environment = extension.env;
        }
        _ => return None,
    }
    let variables = environment.iter().map(|(name, value)| format!("{name}={}", shell_words::quote(value)));
    Some(variables.chain([shell_words::join(&words)]).collect::<Vec<_>>().join(" "))
}

#[derive(Deserialize)]
struct TerminalAuth {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}
