//! The tools of the notebook, as a conversation offers them to its agent.

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::v1::{ContentBlock, McpServer, NoticeSeverity, TextContent};
use cellwright_session::CallEvent;
use tokio::time::timeout;

use super::{AgentConversation, AgentTurn, questions};
use crate::kernel_state::lock;
use crate::tool_door::{DoorPass, INTRODUCES, NAME, OTHER_NAME, ServedSession, ToolEvent, introduction};

/// How long the first prompt waits for the agent to read the list of tools.
const LISTED_WITHIN: Duration = Duration::from_secs(3);

/// The right of an open session to the tools.
pub(crate) struct SessionPass {
    session: Arc<ServedSession>,
    /// Valid as long as it is here.
    _pass: DoorPass,
    /// What the server is called.
    name: &'static str,
    /// The agent has had its time to read the list.
    is_awaited: bool,
}

impl AgentConversation {
    /// The servers for a session that is about to be opened: those that the agent supports, and our own.
    pub(crate) fn session_servers(&mut self) -> Vec<McpServer> {
        let mut servers = self.servers();
        self.pass = None;
        let Some(door) = self.state.companion.as_ref().and_then(|companion| companion.door.as_ref()) else {
            return servers;
        };
        let name = self.server_name();
        let session = ServedSession::new(&self.state, self.calls.clone(), name);
        match door.admit(Arc::clone(&session), name) {
            Ok(pass) => {
                servers.push(pass.server.clone());
                self.pass = Some(SessionPass { session, _pass: pass, name, is_awaited: false });
                self.introduced = false;
            }
            Err(error) => tracing::warn!(%error, "the agent does not get the tools of the notebook"),
        }
        servers
    }

    /// What our server is called. Codex prefers a server of its user with the same name.
    fn server_name(&self) -> &'static str {
        let Some(choice) = &self.choice else { return NAME };
        let program = choice.launch.program.to_string_lossy();
        let is_codex = program.contains("codex") || choice.name.contains("codex");
        let own = if is_codex { self.state.own_servers.of(&choice.launch) } else { Vec::new() };
        if own.iter().any(|server| server.name == NAME) { OTHER_NAME } else { NAME }
    }

    /// Waits until the agent has read the list of tools, and says so if it does not.
    pub(crate) async fn await_tools(&mut self, turn: &mut AgentTurn) {
        let Some(pass) = self.pass.as_mut().filter(|pass| !pass.is_awaited) else { return };
        pass.is_awaited = true;
        if pass.name == OTHER_NAME {
            let text = "the agent knows the tools of this notebook as `cellwrightnotebook`: its settings have another `cellwright`";
            turn.view.aside(text);
        }
        if timeout(LISTED_WITHIN, pass.session.was_listed()).await.is_ok() {
            return;
        }
        let is_gemini = self.choice.as_ref().is_some_and(|choice| choice.name.contains("gemini"));
        let reason = if is_gemini {
            "; Gemini CLI starts no MCP server in a folder that it does not trust: run `gemini` there once and trust it"
        } else {
            ""
        };
        let notice = format!(
            "the agent has not read the list of this notebook's tools, so it may not run code here{reason}"
        );
        turn.view.notice(&NoticeSeverity::Warning, &notice, None);
    }

    /// The introduction that goes with the first prompt of a session.
    pub(crate) fn introduction(&mut self) -> Option<ContentBlock> {
        let pass = self.pass.as_ref().filter(|pass| !self.introduced && pass.session.is_listed())?;
        self.introduced = true;
        let text = introduction(lock(&self.state.notebook).as_deref(), pass.name);
        Some(ContentBlock::Text(TextContent::new(format!("{INTRODUCES}\n{text}\n</cellwright>\n\n"))))
    }

    /// Takes what a call does between two turns: it may run on from the last one.
    pub(crate) async fn hear_tool(&mut self, event: ToolEvent) {
        let workspace = self.workspace();
        let turn = self.last_turn.as_mut();
        match (event, turn) {
            (ToolEvent::Question { question, .. }, _) => {
                questions::permission_between_turns(&self.state, &workspace, question);
            }
            (ToolEvent::Cell(event), turn) => match (*event, turn) {
                (CallEvent::Input { request, .. }, _) => {
                    request.refuse("nobody is asked between two prompts; pass the value in the code");
                }
                (event, Some(turn)) => {
                    turn.code_event(&self.state, event).await;
                    turn.flush_code().await;
                }
                (_, None) => {}
            },
            (ToolEvent::Begun(begun), Some(turn)) => turn.begin_call(*begun),
            (ToolEvent::Ended { number, failed }, Some(turn)) => turn.end_call(number, failed).await,
            (ToolEvent::Begun(_) | ToolEvent::Ended { .. }, None) => {}
        }
        if let Some(turn) = &mut self.last_turn {
            turn.drain().await;
        }
    }
}
