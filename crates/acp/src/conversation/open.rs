//! Starting the agent, opening sessions, and what else is done besides talking.

use agent_client_protocol_schema::v1::{
    CloseSessionRequest, DeleteSessionRequest, ForkSessionRequest, ForkSessionResponse, ListSessionsRequest,
    LoadSessionRequest, McpServer, NewSessionRequest, NoticeSeverity, ResumeSessionRequest,
    SessionConfigOption, SessionId,
};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use super::questions::{self, PendingQuestion, TurnGrants};
use super::sign_in::sign_in_help;
use super::{AgentCommand, AgentConversation, AgentTurn, CellFailure, RunningAgent, lock};
use crate::agent::{AgentCall, AgentEvent, AgentLog, AgentProcess, AnswerText, CallError, CallText};
use crate::kernel_state::name_of;
use crate::view::TurnEnding;

/// How the agent comes to an old session.
enum ReopenMethod {
    /// It plays back what was said.
    Load,
    /// It goes on.
    Resume,
}

/// When the session was opened that there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionOpening {
    Before,
    Now,
}

/// What is made of updates that come before an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpdateUse {
    /// The state of the session is remembered.
    Facts,
    /// The rest is shown, too: the conversation is played back.
    All,
}

impl AgentConversation {
    /// Makes the agent run and the session open, and says in the cell what was lost.
    pub(crate) async fn ready(&mut self, turn: &mut AgentTurn) -> Result<SessionOpening, CellFailure> {
        if self.running.as_ref().is_some_and(|running| running.agent.has_ended()) {
            self.running = None;
            self.crashed = true;
        }
        let died = std::mem::take(&mut self.crashed);
        self.start(turn).await?;
        let was_open = self.running().open;
        let offered = self.shared.offered();
        if offered.version != self.offered.version {
            self.offered = offered;
            self.running.iter_mut().for_each(|running| running.open = false);
        }
        if self.running().open {
            return Ok(SessionOpening::Before);
        }
        for server in self.offered.servers.iter().filter(|server| !self.takes(server)) {
            let told = format!(
                "the agent takes no MCP servers of this kind, so it is not told of `{}`",
                name_of(server)
            );
            turn.view.notice(&NoticeSeverity::Warning, &told, None);
        }
        let Some(session) = self.session.clone() else {
            self.open_new(turn).await?;
            return Ok(SessionOpening::Now);
        };
        let can = self.running().agent.can();
        let (resume, load) = (can.session_capabilities.resume.is_some(), can.load_session);
        let way = if resume { Some(ReopenMethod::Resume) } else { load.then_some(ReopenMethod::Load) };
        let reopened = match way {
            Some(way) => self.open_old(session, way, turn, UpdateUse::Facts).await,
            None => Err(CellFailure::new("NotSupported", "it can not go on with an old session")),
        };
        match reopened {
            Ok(()) => {
                if died {
                    let told = "the agent had ended and was started again; the conversation goes on";
                    turn.view.notice(&NoticeSeverity::Info, told, None);
                }
                Ok(SessionOpening::Now)
            }
            Err(failure) if failure.name == "AuthRequired" || failure.name == "AgentEnded" => Err(failure),
            // It still has the session, with the servers from before.
            Err(failure) if was_open => {
                let told = format!(
                    "the agent is told of the MCP servers from the next session on (`%session new`): {}",
                    failure.message
                );
                turn.view.notice(&NoticeSeverity::Warning, &told, None);
                self.running.iter_mut().for_each(|running| running.open = true);
                Ok(SessionOpening::Before)
            }
            Err(failure) => {
                let lost = format!(
                    "the agent was started again and has forgotten the conversation: {}",
                    failure.message
                );
                turn.view.notice(&NoticeSeverity::Warning, &lost, None);
                self.open_new(turn).await?;
                Ok(SessionOpening::Now)
            }
        }
    }

    pub(crate) async fn start(&mut self, turn: &mut AgentTurn) -> Result<(), CellFailure> {
        if self.running.is_some() {
            return Ok(());
        }
        let Some(choice) = &self.choice else {
            return Err(self.shared.no_agent.clone());
        };
        // It is most wanted when the start fails, or never comes to an end.
        let log = AgentLog::default();
        lock(&self.facts).log = Some(log.clone());
        let mut started = Box::pin(AgentProcess::start(&choice.launch, log));
        // A start can take its time: let the cell show that it lives.
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

    pub(crate) fn running(&self) -> &RunningAgent {
        self.running.as_ref().expect("it was started")
    }

    /// Sends a request, and listens to the agent until the answer comes. What it asks meanwhile is asked in the cell.
    pub(crate) async fn call<R: AgentCall>(
        &mut self,
        request: R,
        turn: &mut AgentTurn,
        heard: UpdateUse,
    ) -> Result<R::Response, CallError> {
        self.exchange(CallText::new(&request)?, turn, heard).await?.read()
    }

    /// [`AgentConversation::call`], once for all requests.
    async fn exchange(
        &mut self,
        call: CallText,
        turn: &mut AgentTurn,
        heard: UpdateUse,
    ) -> Result<AnswerText, CallError> {
        let workspace = self.workspace();
        let Self { shared, running, facts, .. } = self;
        let RunningAgent { agent, events, .. } = running.as_mut().expect("it was started");
        let mut answer = agent.call_text(call);
        let mut waiting: FuturesUnordered<PendingQuestion<'_>> = FuturesUnordered::new();
        let mut granted = TurnGrants::default();
        let mut answered = None;
        let answer = loop {
            // As in a turn: what was said before the answer may have come between the two looks of one `select!`.
            if let Some(answered) = answered.take_if(|_| events.is_empty()) {
                break answered;
            }
            tokio::select! {
                biased; // what came before the answer belongs to it
                Some(event) = events.recv() => {
                    shared.updates.log(&event);
                    match event {
                        AgentEvent::Update(notification) => {
                            if !lock(facts).learn(&notification.update) && heard == UpdateUse::All {
                                turn.update(notification.update);
                            }
                        }
                        AgentEvent::Permission(question) => waiting.extend(questions::permission(
                            shared, turn, &mut granted, &workspace, question,
                        )),
                        AgentEvent::Elicitation(question) => {
                            waiting.extend(questions::elicitation(shared, turn, question));
                        }
                        AgentEvent::Unknown(_) => {}
                    }
                }
                result = &mut answer, if answered.is_none() => answered = Some(result),
                Some(answered) = waiting.next() => questions::settle(shared, turn, &mut granted, answered),
                () = turn.due() => {}
            }
            turn.flush().await;
        };
        waiting.clear();
        shared.stdin.answered_by(turn.cell.header().session()).await;
        answer
    }

    /// Whether the agent can use a server of this kind.
    fn takes(&self, server: &McpServer) -> bool {
        let can = &self.running().agent.can().mcp_capabilities;
        match server {
            McpServer::Http(_) => can.http,
            McpServer::Sse(_) => can.sse,
            _ => true,
        }
    }

    /// The servers that the agent is told of.
    fn servers(&self) -> Vec<McpServer> {
        self.offered.servers.iter().filter(|server| self.takes(server)).cloned().collect()
    }

    async fn open_new(&mut self, turn: &mut AgentTurn) -> Result<(), CellFailure> {
        let request = NewSessionRequest::new(self.workspace()).mcp_servers(self.servers());
        let opened = self.call(request, turn, UpdateUse::Facts).await.map_err(|error| self.failed(&error))?;
        self.opened(opened.session_id, opened.modes, opened.config_options);
        Ok(())
    }

    async fn open_old(
        &mut self,
        session: SessionId,
        way: ReopenMethod,
        turn: &mut AgentTurn,
        heard: UpdateUse,
    ) -> Result<(), CellFailure> {
        let (workspace, servers) = (self.workspace(), self.servers());
        let (modes, options) = match way {
            ReopenMethod::Load => {
                let request = LoadSessionRequest::new(session.clone(), workspace).mcp_servers(servers);
                let opened = self.call(request, turn, heard).await.map_err(|error| self.failed(&error))?;
                (opened.modes, opened.config_options)
            }
            ReopenMethod::Resume => {
                let request = ResumeSessionRequest::new(session.clone(), workspace).mcp_servers(servers);
                let opened = self.call(request, turn, heard).await.map_err(|error| self.failed(&error))?;
                (opened.modes, opened.config_options)
            }
        };
        self.opened(session, modes, options);
        Ok(())
    }

    fn opened(
        &mut self,
        session: SessionId,
        modes: Option<agent_client_protocol_schema::v1::SessionModeState>,
        options: Option<Vec<SessionConfigOption>>,
    ) {
        lock(&self.facts).opened(session.clone(), modes, options);
        self.session = Some(session);
        if let Some(running) = &mut self.running {
            running.open = true;
        }
    }

    /// A failed request in words, with what helps.
    pub(crate) fn failed(&mut self, error: &CallError) -> CellFailure {
        if matches!(error, CallError::Ended { .. }) {
            self.running = None;
            self.crashed = true;
        }
        let failure = CellFailure::of_call(error);
        match error {
            CallError::AuthRequired => {
                sign_in_help(failure, &lock(&self.facts).auth_methods, self.choice.as_ref())
            }
            CallError::Unsupported { .. } | CallError::Refused { .. } | CallError::Ended { .. } => failure,
        }
    }

    /// Stops the agent. Its session may be opened again.
    pub(crate) async fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.agent.stop().await;
        }
    }

    pub(crate) async fn perform(
        &mut self,
        deed: AgentCommand,
        turn: &mut AgentTurn,
    ) -> Result<String, CellFailure> {
        let told = match deed {
            AgentCommand::Ready => {
                self.ready(turn).await?;
                String::new()
            }
            AgentCommand::SignInMethods => {
                self.start(turn).await?;
                let methods = self.running().agent.auth_methods();
                let help = CellFailure::new("", "");
                sign_in_help(help, methods, self.choice.as_ref()).details.join("\n")
            }
            AgentCommand::Relaunch(choice) => {
                self.stop().await;
                lock(&self.facts).choice = Some(choice.clone());
                self.choice = Some(choice);
                String::new()
            }
            AgentCommand::Copy => {
                self.ready(turn).await?;
                self.fork(turn).await?.session_id.to_string()
            }
            AgentCommand::Restart => {
                self.stop().await;
                self.ready(turn).await?;
                "the agent was started again".to_owned()
            }
            AgentCommand::Renew => {
                self.close(turn).await;
                self.ready(turn).await?;
                "a new session was begun".to_owned()
            }
            AgentCommand::List => self.list(turn).await?,
            AgentCommand::Load(session) => {
                turn.replay(&session);
                let opened = self.change_to(session, ReopenMethod::Load, turn, UpdateUse::All).await;
                turn.finish(&TurnEnding::Failed).await;
                opened?;
                "the session was loaded".to_owned()
            }
            AgentCommand::Resume(session) => {
                self.change_to(session, ReopenMethod::Resume, turn, UpdateUse::Facts).await?;
                "the session goes on".to_owned()
            }
            AgentCommand::Fork => {
                self.ready(turn).await?;
                let forked = self.fork(turn).await?;
                self.opened(forked.session_id, forked.modes, forked.config_options);
                "the conversation goes on in a copy".to_owned()
            }
            AgentCommand::Close => {
                self.close(turn).await;
                self.stop().await;
                "the session was closed; the next prompt begins another".to_owned()
            }
            AgentCommand::Delete(session) => {
                self.start(turn).await?;
                let request = DeleteSessionRequest::new(SessionId::new(session.clone()));
                self.call(request, turn, UpdateUse::Facts).await.map_err(|error| self.failed(&error))?;
                if self.session.as_ref().is_some_and(|current| *current.0 == *session) {
                    self.forget();
                }
                format!("the session `{session}` was deleted")
            }
            AgentCommand::Mode(mode) => self.set_mode(turn, &mode).await?,
            AgentCommand::Configure { option, value } => self.configure(turn, &option, &value).await?,
            AgentCommand::Servers if self.session.is_none() => String::new(),
            AgentCommand::Servers => {
                match self.ready(turn).await? {
                    SessionOpening::Now => "the session was opened again with these servers".to_owned(),
                    SessionOpening::Before => String::new(), // the cell has said why
                }
            }
            AgentCommand::SignIn(method) => self.sign_in(turn, method).await?,
            AgentCommand::Use(choice) => {
                self.close(turn).await;
                self.stop().await;
                let told = format!("the agent is now `{}`", choice.name);
                *lock(&self.facts) =
                    super::SessionFacts { choice: Some(choice.clone()), ..super::SessionFacts::default() };
                self.choice = Some(choice);
                told
            }
        };
        turn.drain_now().await;
        Ok(told)
    }

    /// Goes on with another session. The one before is left when the other is open, and not before.
    async fn change_to(
        &mut self,
        session: String,
        way: ReopenMethod,
        turn: &mut AgentTurn,
        heard: UpdateUse,
    ) -> Result<(), CellFailure> {
        self.start(turn).await?;
        let can = self.running().agent.can();
        let (able, method) = match way {
            ReopenMethod::Load => (can.load_session, "session/load"),
            ReopenMethod::Resume => (can.session_capabilities.resume.is_some(), "session/resume"),
        };
        if !able {
            return Err(CellFailure::of_call(&CallError::Unsupported { method: method.to_owned() }));
        }
        self.leaving = Some((self.offered.clone(), lock(&self.facts).clone()));
        lock(&self.facts).closed();
        self.offered = self.shared.offered();
        let session = SessionId::new(session);
        let before = self.session.clone().filter(|before| *before != session);
        self.open_old(session, way, turn, heard).await?;
        self.leaving = None;
        self.last = None;
        if let Some(before) = before {
            self.close_session(before, turn).await;
        }
        Ok(())
    }

    /// Undoes a change to another session that came to nothing.
    pub(crate) fn stay(&mut self) {
        if let Some((offered, facts)) = self.leaving.take() {
            self.offered = offered;
            *lock(&self.facts) = facts;
        }
    }

    async fn fork(&mut self, turn: &mut AgentTurn) -> Result<ForkSessionResponse, CellFailure> {
        let session = self.session.clone().expect("it is open");
        let request = ForkSessionRequest::new(session, self.workspace()).mcp_servers(self.servers());
        self.call(request, turn, UpdateUse::Facts).await.map_err(|error| self.failed(&error))
    }

    /// Ends the session, when the agent has a way to be told.
    async fn close(&mut self, turn: &mut AgentTurn) {
        if let (Some(session), Some(RunningAgent { open: true, .. })) = (self.session.clone(), &self.running)
        {
            self.close_session(session, turn).await;
        }
        self.forget();
    }

    async fn close_session(&mut self, session: SessionId, turn: &mut AgentTurn) {
        if self.running().agent.can().session_capabilities.close.is_some()
            && let Err(error) = self.call(CloseSessionRequest::new(session), turn, UpdateUse::Facts).await
        {
            tracing::debug!(%error, "a session was not closed");
        }
    }

    fn forget(&mut self) {
        self.session = None;
        self.last = None;
        lock(&self.facts).closed();
        if let Some(running) = &mut self.running {
            running.open = false;
        }
    }

    async fn list(&mut self, turn: &mut AgentTurn) -> Result<String, CellFailure> {
        self.start(turn).await?;
        let mut text = String::new();
        let mut stored = Vec::new();
        let mut cursor = None;
        loop {
            let request = ListSessionsRequest::new().cursor(cursor);
            let page =
                self.call(request, turn, UpdateUse::Facts).await.map_err(|error| self.failed(&error))?;
            for session in &page.sessions {
                let current = if self.session.as_ref() == Some(&session.session_id) { "*" } else { " " };
                let (title, at) =
                    (session.title.as_deref().unwrap_or(""), session.updated_at.as_deref().unwrap_or(""));
                text.push_str(format!("{current} {}  {at}  {title}", session.session_id).trim_end());
                text.push('\n');
                stored.push((session.session_id.to_string(), title.to_owned()));
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        lock(&self.facts).stored = stored;
        Ok(if text.is_empty() { "the agent has no sessions".to_owned() } else { text })
    }
}
