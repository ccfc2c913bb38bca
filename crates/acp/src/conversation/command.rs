//! What magics do with an agent and its sessions.

use agent_client_protocol_schema::v1::{
    CloseSessionRequest, DeleteSessionRequest, ForkSessionRequest, ForkSessionResponse, ListSessionsRequest,
    SessionId, SessionInfo,
};

use super::listen::UpdateUse;
use super::opening::{ReopenMethod, SessionOpening};
use super::{
    AgentChoice, AgentConversation, AgentTurn, CellFailure, ConversationMemory, FailureKind, RunningAgent,
    SessionFacts, lock,
};
use crate::agent::CallError;

/// Which stored sessions to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionScope {
    /// Those of the folder in which the agent works.
    Folder,
    All,
}

/// A command to a conversation, besides prompts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AgentCommand {
    /// Starts the agent and opens its session, as the first prompt would.
    Ready,
    /// Starts the agent again. The conversation continues if the agent supports it.
    Restart,
    /// Forgets the conversation and begins another.
    Renew,
    /// Lists the sessions that the agent has stored.
    List(SessionScope),
    /// Continues an old session and shows its conversation.
    Load(String),
    Resume(String),
    /// Continues the last other session of this folder.
    ResumeLast,
    /// Continues in a copy of the session.
    Fork,
    /// Copies the session and returns the id of the copy.
    Copy,
    /// Ends the session. The next prompt begins another.
    Close,
    /// Makes the agent delete a stored session.
    Delete(String),
    /// Sets the mode, by id or name.
    Mode(String),
    /// Sets an option, by ids or names.
    Configure {
        option: String,
        value: String,
    },
    /// Offers other MCP servers to the agent. The conversation continues if the agent supports it.
    Servers,
    /// Signs in with a method, or with the first that needs no terminal.
    SignIn(Option<String>),
    /// Lists the methods to sign in.
    SignInMethods,
    Use(AgentChoice),
    /// Starts the same agent differently. The conversation continues if the agent supports it.
    Relaunch(AgentChoice),
}

impl AgentConversation {
    /// Carries out a command. Returns what the cell shows.
    pub(crate) async fn perform(
        &mut self,
        command: AgentCommand,
        turn: &mut AgentTurn,
    ) -> Result<String, CellFailure> {
        let shown = match command {
            AgentCommand::Ready => {
                self.ready(turn).await?;
                String::new()
            }
            AgentCommand::SignInMethods => {
                self.start(turn).await?;
                self.sign_in_help(self.running().agent.auth_methods()).join("\n")
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
                "a new session was started".to_owned()
            }
            AgentCommand::List(scope) => self.list(turn, scope).await?,
            AgentCommand::Load(session) => {
                turn.replay();
                let opened = self.change_to(session, ReopenMethod::Load, turn, UpdateUse::Show).await;
                turn.drain_now().await;
                opened?;
                "the session was loaded".to_owned()
            }
            AgentCommand::Resume(session) => {
                self.change_to(session, ReopenMethod::Resume, turn, UpdateUse::Facts).await?;
                "the session continues".to_owned()
            }
            AgentCommand::ResumeLast => {
                let session = self.last_stored(turn).await?;
                self.change_to(session.clone(), ReopenMethod::Resume, turn, UpdateUse::Facts).await?;
                format!("the session `{session}` continues")
            }
            AgentCommand::Fork => {
                self.ready(turn).await?;
                let forked = self.fork(turn).await?;
                self.set_session(forked.session_id, forked.modes, forked.config_options);
                self.remember();
                "the conversation continues in a copy".to_owned()
            }
            AgentCommand::Close => {
                self.close(turn).await;
                self.stop().await;
                "the session was closed; the next prompt starts another".to_owned()
            }
            AgentCommand::Delete(session) => self.delete(turn, session).await?,
            AgentCommand::Mode(mode) => self.set_mode(turn, &mode).await?,
            AgentCommand::Configure { option, value } if option == "mode" => {
                self.set_mode(turn, &value).await?
            }
            AgentCommand::Configure { option, value } => self.configure(turn, &option, &value).await?,
            AgentCommand::Servers if self.session.is_none() => String::new(),
            AgentCommand::Servers => match self.ready(turn).await? {
                SessionOpening::Now => "the session was opened again with these servers".to_owned(),
                SessionOpening::Before => String::new(), // the cell has shown why
            },
            AgentCommand::SignIn(method) => self.sign_in(turn, method).await?,
            AgentCommand::Use(choice) => {
                self.close(turn).await;
                self.stop().await;
                let shown = format!("the agent is now `{}`", choice.name);
                *lock(&self.facts) = SessionFacts { choice: Some(choice.clone()), ..SessionFacts::default() };
                self.choice = Some(choice);
                shown
            }
        };
        Ok(shown)
    }

    /// Changes to another session. The current one is left only when the other is open.
    async fn change_to(
        &mut self,
        session: String,
        method: ReopenMethod,
        turn: &mut AgentTurn,
        updates: UpdateUse,
    ) -> Result<(), CellFailure> {
        self.start(turn).await?;
        let can = self.running().agent.can();
        let (able, name) = match method {
            ReopenMethod::Load => (can.load_session, "session/load"),
            ReopenMethod::Resume => (can.session_capabilities.resume.is_some(), "session/resume"),
        };
        if !able {
            return Err(CellFailure::of_call(&CallError::Unsupported { method: name.to_owned() }));
        }
        self.previous = Some((self.offer.clone(), lock(&self.facts).clone()));
        lock(&self.facts).closed();
        self.offer = self.state.offer();
        let session = SessionId::new(session);
        let before = self.session.clone().filter(|before| *before != session);
        self.open_old(session, method, turn, updates).await?;
        self.previous = None;
        self.last_turn = None;
        self.continues = false;
        self.remember();
        if let Some(before) = before {
            self.close_session(before, turn).await;
        }
        Ok(())
    }

    /// Undoes a change to another session that failed.
    pub(crate) fn restore_previous(&mut self) {
        if let Some((offer, facts)) = self.previous.take() {
            self.offer = offer;
            *lock(&self.facts) = facts;
        }
    }

    async fn fork(&mut self, turn: &mut AgentTurn) -> Result<ForkSessionResponse, CellFailure> {
        let session = self.session.clone().expect("it is open");
        let request = ForkSessionRequest::new(session, self.workspace()).mcp_servers(self.session_servers());
        self.request(request, turn).await
    }

    async fn delete(&mut self, turn: &mut AgentTurn, session: String) -> Result<String, CellFailure> {
        self.start(turn).await?;
        self.request(DeleteSessionRequest::new(SessionId::new(session.clone())), turn).await?;
        if self.session.as_ref().is_some_and(|current| *current.0 == *session) {
            self.forget();
        }
        Ok(format!("the session `{session}` was deleted"))
    }

    /// Ends the session. The agent closes it, if it supports that.
    async fn close(&mut self, turn: &mut AgentTurn) {
        if let (Some(session), Some(RunningAgent { open: true, .. })) = (self.session.clone(), &self.running)
        {
            self.close_session(session, turn).await;
        }
        self.forget();
    }

    async fn close_session(&mut self, session: SessionId, turn: &mut AgentTurn) {
        if self.running().agent.can().session_capabilities.close.is_some()
            && let Err(failure) = self.request(CloseSessionRequest::new(session), turn).await
        {
            tracing::debug!(error = failure.message, "a session was not closed");
        }
    }

    pub(crate) fn forget(&mut self) {
        self.session = None;
        self.continues = false;
        self.memory.iter_mut().for_each(ConversationMemory::forget);
        self.last_turn = None;
        lock(&self.facts).closed();
        if let Some(running) = &mut self.running {
            running.open = false;
        }
    }

    async fn list(&mut self, turn: &mut AgentTurn, scope: SessionScope) -> Result<String, CellFailure> {
        let sessions = self.stored_sessions(turn, scope).await?;
        let mut text = String::new();
        let mut stored = Vec::new();
        for session in &sessions {
            let current = if self.session.as_ref() == Some(&session.session_id) { "*" } else { " " };
            let title = session.title.as_deref().unwrap_or("");
            let time = session.updated_at.as_deref().unwrap_or("");
            let folder = match scope {
                SessionScope::Folder => String::new(),
                SessionScope::All => session.cwd.display().to_string(),
            };
            text.push_str(format!("{current} {}  {time}  {title}  {folder}", session.session_id).trim_end());
            text.push('\n');
            stored.push((session.session_id.to_string(), title.to_owned()));
        }
        lock(&self.facts).stored = stored;
        Ok(match (text.is_empty(), scope) {
            (false, _) => text,
            (true, SessionScope::All) => "the agent has no sessions".to_owned(),
            (true, SessionScope::Folder) => "the agent has no sessions in this folder".to_owned(),
        })
    }

    /// The last session of this folder besides the current one.
    async fn last_stored(&mut self, turn: &mut AgentTurn) -> Result<String, CellFailure> {
        let mut sessions = self.stored_sessions(turn, SessionScope::Folder).await?;
        sessions.retain(|session| self.session.as_ref() != Some(&session.session_id));
        // Agents list the newest first, if they report no times. The sort keeps their order then.
        sessions.sort_by(|one, other| other.updated_at.cmp(&one.updated_at));
        let last = sessions.first().map(|session| session.session_id.to_string());
        last.ok_or_else(|| {
            let reason = "the agent has no other session in this folder";
            CellFailure::new(FailureKind::NoSuchSession, reason)
                .with("`%session list --all` shows those of other folders.".to_owned())
        })
    }

    async fn stored_sessions(
        &mut self,
        turn: &mut AgentTurn,
        scope: SessionScope,
    ) -> Result<Vec<SessionInfo>, CellFailure> {
        self.start(turn).await?;
        let folder = Some(self.workspace()).filter(|_| scope == SessionScope::Folder);
        let mut sessions = Vec::new();
        let mut cursor = None;
        loop {
            let page = ListSessionsRequest::new().cwd(folder.clone()).cursor(cursor);
            let page = self.request(page, turn).await?;
            // Some agents list all sessions, whatever the folder.
            let here = |session: &SessionInfo| folder.as_ref().is_none_or(|folder| session.cwd == *folder);
            sessions.extend(page.sessions.into_iter().filter(here));
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(sessions);
            }
        }
    }
}
