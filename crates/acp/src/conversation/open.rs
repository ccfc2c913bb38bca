//! Starting the agent, opening sessions, and what else is done besides talking.

use agent_client_protocol_schema::v1::{
    CloseSessionRequest, DeleteSessionRequest, ForkSessionRequest, ForkSessionResponse, ListSessionsRequest,
    LoadSessionRequest, McpServer, NewSessionRequest, NoticeSeverity, ResumeSessionRequest,
    SessionConfigOption, SessionId,
};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use super::questions::{self, Granted, Waiting};
use super::sign_in::sign_in_help;
use super::{Conversation, Deed, Failure, Running, Turn, lock};
use crate::agent::{Agent, AgentCall, AnswerText, CallError, CallText, Event, Log};
use crate::kernel_state::name_of;
use crate::view::Ending;

/// How the agent comes to an old session.
enum Old {
    /// It plays back what was said.
    Load,
    /// It goes on.
    Resume,
}

/// When the session was opened that there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opened {
    Before,
    Now,
}

/// What is made of updates that come before an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// The state of the session is remembered.
    Facts,
    /// The rest is shown, too: the conversation is played back.
    All,
}

impl Conversation {
    /// Makes the agent run and the session open, and says in the cell what was lost.
    pub(crate) async fn ready(&mut self, turn: &mut Turn) -> Result<Opened, Failure> {
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
            return Ok(Opened::Before);
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
            return Ok(Opened::Now);
        };
        let can = self.running().agent.can();
        let (resume, load) = (can.session_capabilities.resume.is_some(), can.load_session);
        let way = if resume { Some(Old::Resume) } else { load.then_some(Old::Load) };
        let reopened = match way {
            Some(way) => self.open_old(session, way, turn, Heard::Facts).await,
            None => Err(Failure::new("NotSupported", "it can not go on with an old session")),
        };
        match reopened {
            Ok(()) => {
                if died {
                    let told = "the agent had ended and was started again; the conversation goes on";
                    turn.view.notice(&NoticeSeverity::Info, told, None);
                }
                Ok(Opened::Now)
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
                Ok(Opened::Before)
            }
            Err(failure) => {
                let lost = format!(
                    "the agent was started again and has forgotten the conversation: {}",
                    failure.message
                );
                turn.view.notice(&NoticeSeverity::Warning, &lost, None);
                self.open_new(turn).await?;
                Ok(Opened::Now)
            }
        }
    }

    pub(crate) async fn start(&mut self, turn: &mut Turn) -> Result<(), Failure> {
        if self.running.is_some() {
            return Ok(());
        }
        let Some(choice) = &self.choice else {
            return Err(self.shared.no_agent.clone());
        };
        // It is most wanted when the start fails, or never comes to an end.
        let log = Log::default();
        lock(&self.facts).log = Some(log.clone());
        let mut started = Box::pin(Agent::start(&choice.launch, log));
        // A start can take its time: let the cell show that it lives.
        let started = loop {
            tokio::select! {
                started = &mut started => break started,
                () = turn.due() => turn.flush().await,
            }
        };
        let (agent, events) = started.map_err(|error| Failure::of_start(&choice.name, &error))?;
        lock(&self.facts).started(&agent);
        self.running = Some(Running { agent, events, open: false });
        Ok(())
    }

    pub(crate) fn running(&self) -> &Running {
        self.running.as_ref().expect("it was started")
    }

    /// Sends a request, and listens to the agent until the answer comes. What it asks meanwhile is asked in the cell.
    pub(crate) async fn call<R: AgentCall>(
        &mut self,
        request: R,
        turn: &mut Turn,
        heard: Heard,
    ) -> Result<R::Response, CallError> {
        self.exchange(CallText::new(&request)?, turn, heard).await?.read()
    }

    /// [`Conversation::call`], once for all requests.
    async fn exchange(
        &mut self,
        call: CallText,
        turn: &mut Turn,
        heard: Heard,
    ) -> Result<AnswerText, CallError> {
        let workspace = self.workspace();
        let Self { shared, running, facts, .. } = self;
        let Running { agent, events, .. } = running.as_mut().expect("it was started");
        let mut answer = agent.call_text(call);
        let mut waiting: FuturesUnordered<Waiting<'_>> = FuturesUnordered::new();
        let mut granted = Granted::default();
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
                        Event::Update(notification) => {
                            if !lock(facts).learn(&notification.update) && heard == Heard::All {
                                turn.view.update(notification.update, std::time::Instant::now());
                            }
                        }
                        Event::Permission(question) => waiting.extend(questions::permission(
                            shared, turn, &mut granted, &workspace, question,
                        )),
                        Event::Elicitation(question) => {
                            waiting.extend(questions::elicitation(shared, turn, question));
                        }
                        Event::Unknown(_) => {}
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

    async fn open_new(&mut self, turn: &mut Turn) -> Result<(), Failure> {
        let request = NewSessionRequest::new(self.workspace()).mcp_servers(self.servers());
        let opened = self.call(request, turn, Heard::Facts).await.map_err(|error| self.failed(&error))?;
        self.opened(opened.session_id, opened.modes, opened.config_options);
        Ok(())
    }

    async fn open_old(
        &mut self,
        session: SessionId,
        way: Old,
        turn: &mut Turn,
        heard: Heard,
    ) -> Result<(), Failure> {
        let (workspace, servers) = (self.workspace(), self.servers());
        let (modes, options) = match way {
            Old::Load => {
                let request = LoadSessionRequest::new(session.clone(), workspace).mcp_servers(servers);
                let opened = self.call(request, turn, heard).await.map_err(|error| self.failed(&error))?;
                (opened.modes, opened.config_options)
            }
            Old::Resume => {
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
    pub(crate) fn failed(&mut self, error: &CallError) -> Failure {
        if matches!(error, CallError::Ended { .. }) {
            self.running = None;
            self.crashed = true;
        }
        let failure = Failure::of_call(error);
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

    pub(crate) async fn perform(&mut self, deed: Deed, turn: &mut Turn) -> Result<String, Failure> {
        let told = match deed {
            Deed::Ready => {
                self.ready(turn).await?;
                String::new()
            }
            Deed::SignInMethods => {
                self.start(turn).await?;
                let methods = self.running().agent.auth_methods();
                let help = Failure::new("", "");
                sign_in_help(help, methods, self.choice.as_ref()).details.join("\n")
            }
            Deed::Relaunch(choice) => {
                self.stop().await;
                lock(&self.facts).choice = Some(choice.clone());
                self.choice = Some(choice);
                String::new()
            }
            Deed::Copy => {
                self.ready(turn).await?;
                self.fork(turn).await?.session_id.to_string()
            }
            Deed::Restart => {
                self.stop().await;
                self.ready(turn).await?;
                "the agent was started again".to_owned()
            }
            Deed::Renew => {
                self.close(turn).await;
                self.ready(turn).await?;
                "a new session was begun".to_owned()
            }
            Deed::List => self.list(turn).await?,
            Deed::Load(session) => {
                turn.view = crate::view::View::new(turn.style, session.clone(), std::time::Instant::now())
                    .replaying();
                let opened = self.change_to(session, Old::Load, turn, Heard::All).await;
                turn.finish(&Ending::Failed).await;
                opened?;
                "the session was loaded".to_owned()
            }
            Deed::Resume(session) => {
                self.change_to(session, Old::Resume, turn, Heard::Facts).await?;
                "the session goes on".to_owned()
            }
            Deed::Fork => {
                self.ready(turn).await?;
                let forked = self.fork(turn).await?;
                self.opened(forked.session_id, forked.modes, forked.config_options);
                "the conversation goes on in a copy".to_owned()
            }
            Deed::Close => {
                self.close(turn).await;
                self.stop().await;
                "the session was closed; the next prompt begins another".to_owned()
            }
            Deed::Delete(session) => {
                self.start(turn).await?;
                let request = DeleteSessionRequest::new(SessionId::new(session.clone()));
                self.call(request, turn, Heard::Facts).await.map_err(|error| self.failed(&error))?;
                if self.session.as_ref().is_some_and(|current| *current.0 == *session) {
                    self.forget();
                }
                format!("the session `{session}` was deleted")
            }
            Deed::Mode(mode) => self.set_mode(turn, &mode).await?,
            Deed::Configure { option, value } => self.configure(turn, &option, &value).await?,
            Deed::Servers if self.session.is_none() => String::new(),
            Deed::Servers => {
                match self.ready(turn).await? {
                    Opened::Now => "the session was opened again with these servers".to_owned(),
                    Opened::Before => String::new(), // the cell has said why
                }
            }
            Deed::SignIn(method) => self.sign_in(turn, method).await?,
            Deed::Use(choice) => {
                self.close(turn).await;
                self.stop().await;
                let told = format!("the agent is now `{}`", choice.name);
                *lock(&self.facts) = super::Facts { choice: Some(choice.clone()), ..super::Facts::default() };
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
        way: Old,
        turn: &mut Turn,
        heard: Heard,
    ) -> Result<(), Failure> {
        self.start(turn).await?;
        let can = self.running().agent.can();
        let (able, method) = match way {
            Old::Load => (can.load_session, "session/load"),
            Old::Resume => (can.session_capabilities.resume.is_some(), "session/resume"),
        };
        if !able {
            return Err(Failure::of_call(&CallError::Unsupported { method: method.to_owned() }));
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

    async fn fork(&mut self, turn: &mut Turn) -> Result<ForkSessionResponse, Failure> {
        let session = self.session.clone().expect("it is open");
        let request = ForkSessionRequest::new(session, self.workspace()).mcp_servers(self.servers());
        self.call(request, turn, Heard::Facts).await.map_err(|error| self.failed(&error))
    }

    /// Ends the session, when the agent has a way to be told.
    async fn close(&mut self, turn: &mut Turn) {
        if let (Some(session), Some(Running { open: true, .. })) = (self.session.clone(), &self.running) {
            self.close_session(session, turn).await;
        }
        self.forget();
    }

    async fn close_session(&mut self, session: SessionId, turn: &mut Turn) {
        if self.running().agent.can().session_capabilities.close.is_some()
            && let Err(error) = self.call(CloseSessionRequest::new(session), turn, Heard::Facts).await
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

    async fn list(&mut self, turn: &mut Turn) -> Result<String, Failure> {
        self.start(turn).await?;
        let mut text = String::new();
        let mut stored = Vec::new();
        let mut cursor = None;
        loop {
            let request = ListSessionsRequest::new().cursor(cursor);
            let page = self.call(request, turn, Heard::Facts).await.map_err(|error| self.failed(&error))?;
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
