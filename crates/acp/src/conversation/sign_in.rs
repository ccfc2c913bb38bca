//! Signing in with an agent.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::{AuthMethod, AuthenticateRequest};
use serde::Deserialize;

use super::{AgentChoice, AgentConversation, AgentTurn, CellFailure, FailureKind, lock};

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
            None => terminal_command(known, self.choice.as_ref()).is_none(),
        };
        let Some(chosen) = methods.iter().find(wanted) else {
            let failure = CellFailure::new(FailureKind::AuthRequired, "there is no such way to sign in");
            return Err(failure.with_all(self.sign_in_help(&methods)));
        };
        if terminal_command(chosen, self.choice.as_ref()).is_some() {
            let message = format!("`{}` needs a terminal", chosen.name());
            let failure = CellFailure::new(FailureKind::AuthRequired, message);
            return Err(failure.with_all(self.sign_in_help(std::slice::from_ref(chosen))));
        }
        self.request(AuthenticateRequest::new(chosen.id().clone()), turn).await?;
        Ok(format!("signed in by {}", chosen.name()))
    }

    /// Adds to a failure how the user can sign in.
    pub(crate) fn with_sign_in_help(&self, failure: CellFailure) -> CellFailure {
        let methods = lock(&self.facts).auth_methods.clone();
        failure.with_all(self.sign_in_help(&methods))
    }

    /// How the user can sign in: one text for each method.
    pub(crate) fn sign_in_help(&self, methods: &[AuthMethod]) -> Vec<String> {
        if methods.is_empty() {
            let help = "The agent does not say how. Sign in with its own program, then run the cell again.";
            return vec![help.to_owned()];
        }
        let help = methods.iter().map(|method| {
            let about = method.description().map(|text| format!(": {text}")).unwrap_or_default();
            match terminal_command(method, self.choice.as_ref()) {
                Some(line) => format!("{}{about}\n    run in a terminal: {line}", method.name()),
                None => format!("{}{about}\n    run in a cell: %agent login {}", method.name(), method.id()),
            }
        });
        help.collect()
    }
}

/// The command to run in a terminal, if the method needs one.
fn terminal_command(method: &AuthMethod, choice: Option<&AgentChoice>) -> Option<String> {
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
        // An extension that agents used before the protocol had terminal methods.
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
