//! Starting the agent and opening its session.

use agent_client_protocol_schema::v1::{
    LoadSessionRequest, McpServer, NewSessionRequest, NoticeSeverity, ResumeSessionRequest,
    SessionConfigOption, SessionId, SessionModeState,
};

use tokio::time::Instant;

use super::listen::UpdateUse;
use super::{AgentConversation, AgentTurn, CellFailure, FailureKind, RunningAgent, lock};
use crate::agent::{AgentLog, AgentProcess};
use crate::kernel_state::server_name;

/// How the agent opens an old session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReopenMethod {
    /// The agent plays the conversation back.
    Load,
    /// The agent continues without playing it back.
    Resume,
}

/// When the session was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionOpening {
    Before,
    Now,
}

impl AgentConversation {
    /// Makes sure that the agent runs and its session is open. Reports in the cell what was lost.
    pub(crate) async fn ready(&mut self, turn: &mut AgentTurn) -> Result<SessionOpening, CellFailure> {
        if self.running.as_ref().is_some_and(|running| running.agent.has_ended()) {
            self.running = None;
            self.crashed = true;
        }
        let had_crashed = std::mem::take(&mut self.crashed);
        self.start(turn).await?;
        let was_open = self.running().open;
        let offer = self.state.offer();
        if offer.version != self.offer.version {
            self.offer = offer;
            self.running.iter_mut().for_each(|running| running.open = false);
        }
        if self.running().open {
            return Ok(SessionOpening::Before);
        }
        for server in self.offer.servers.iter().filter(|server| !self.running().agent.supports(server)) {
            let notice = format!(
                "the agent does not support MCP servers of this kind, so it does not get `{}`",
                server_name(server)
            );
            turn.view.notice(&NoticeSeverity::Warning, &notice, None);
        }
        let Some(session) = self.session.clone() else {
            self.open_new(turn).await?;
            return Ok(SessionOpening::Now);
        };
        let failure = match self.reopen(session, turn).await {
            Ok(()) => {
                let continues = std::mem::take(&mut self.continues);
                if had_crashed {
                    let notice = "the agent had ended and was started again; the conversation continues";
                    turn.view.notice(&NoticeSeverity::Info, notice, None);
                } else if continues {
                    let notice = "the conversation of this notebook continues; `%session new` begins another";
                    turn.view.aside(notice);
                }
                return Ok(SessionOpening::Now);
            }
            Err(failure) => failure,
        };
        let continues = std::mem::take(&mut self.continues);
        if failure.kind == FailureKind::AuthRequired {
            self.continues = continues;
            return Err(failure);
        }
        if failure.kind == FailureKind::AgentEnded && continues {
            // An agent that cannot bear its old session would end again each time.
            self.forget();
            return Err(failure.with("The next cell starts a new conversation.".to_owned()));
        }
        if failure.kind == FailureKind::AgentEnded {
            return Err(failure);
        }
        if was_open {
            // The agent still has the session, with the servers from before.
            let notice = format!(
                "the agent gets the MCP servers with the next session (`%session new`): {}",
                failure.message
            );
            turn.view.notice(&NoticeSeverity::Warning, &notice, None);
            self.running.iter_mut().for_each(|running| running.open = true);
            return Ok(SessionOpening::Before);
        }
        let what = if continues {
            "the agent starts afresh and does not know the conversation of this notebook"
        } else {
            "the agent was started again and has forgotten the conversation"
        };
        turn.view.notice(&NoticeSeverity::Warning, &format!("{what}: {}", failure.message), None);
        self.open_new(turn).await?;
        Ok(SessionOpening::Now)
    }

    /// Starts the agent if it does not run.
    pub(crate) async fn start(&mut self, turn: &mut AgentTurn) -> Result<(), CellFailure> {
        if self.running.is_some() {
            return Ok(());
        }
        let Some(choice) = &self.choice else {
            return Err(self.state.no_agent.clone());
        };
        // `%agent log` is most useful when the start fails or never ends.
        let log = AgentLog::default();
        lock(&self.facts).log = Some(log.clone());
        let mut started = Box::pin(AgentProcess::start(&choice.launch, log, self.state.page.clone()));
        // A start can take long. The cell shows that it is alive.
        let started = loop {
            tokio::select! {
                started = &mut started => break started,
                () = turn.due() => turn.flush().await,
            }
        };
        let (agent, events) = started.map_err(|error| CellFailure::of_start(&choice.name, &error))?;
        lock(&self.facts).started(&agent);
        self.running = Some(RunningAgent { agent, events, open: false });
        Ok(())
    }

    /// Stops the agent. Its session can be opened again.
    pub(crate) async fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.agent.stop().await;
        }
    }

    /// The servers that the agent supports.
    pub(crate) fn servers(&self) -> Vec<McpServer> {
        let agent = &self.running().agent;
        self.offer.servers.iter().filter(|server| agent.supports(server)).cloned().collect()
    }

    async fn open_new(&mut self, turn: &mut AgentTurn) -> Result<(), CellFailure> {
        let request = NewSessionRequest::new(self.workspace()).mcp_servers(self.session_servers());
        let opened = self.request(request, turn).await?;
        self.set_session(opened.session_id, opened.modes, opened.config_options);
        Ok(())
    }

    /// Opens the session again, in the way that the agent supports.
    async fn reopen(&mut self, session: SessionId, turn: &mut AgentTurn) -> Result<(), CellFailure> {
        let can = self.running().agent.can();
        let method = match (can.session_capabilities.resume.is_some(), can.load_session) {
            (true, _) => ReopenMethod::Resume,
            (false, true) => ReopenMethod::Load,
            (false, false) => {
                let reason = "it cannot continue an old session";
                return Err(CellFailure::new(FailureKind::NotSupported, reason));
            }
        };
        self.open_old(session, method, turn, UpdateUse::Facts).await
    }

    pub(crate) async fn open_old(
        &mut self,
        session: SessionId,
        method: ReopenMethod,
        turn: &mut AgentTurn,
        updates: UpdateUse,
    ) -> Result<(), CellFailure> {
        let (workspace, servers) = (self.workspace(), self.session_servers());
        let (modes, options) = match method {
            ReopenMethod::Load => {
                let request = LoadSessionRequest::new(session.clone(), workspace).mcp_servers(servers);
                let opened = self.request_with(request, turn, updates).await?;
                self.late.replayed = true;
                self.late.last_heard = Some(Instant::now());
                (opened.modes, opened.config_options)
            }
            ReopenMethod::Resume => {
                let request = ResumeSessionRequest::new(session.clone(), workspace).mcp_servers(servers);
                let opened = self.request_with(request, turn, updates).await?;
                (opened.modes, opened.config_options)
            }
        };
        self.set_session(session, modes, options);
        Ok(())
    }

    /// Makes an open session the current one.
    pub(crate) fn set_session(
        &mut self,
        session: SessionId,
        modes: Option<SessionModeState>,
        options: Option<Vec<SessionConfigOption>>,
    ) {
        lock(&self.facts).opened(session.clone(), modes, options);
        self.session = Some(session);
        if let Some(running) = &mut self.running {
            running.open = true;
        }
    }
}
