//! The event loop of a conversation: it listens to the agent until one of our requests is answered.
//!
//! A turn and every other request run through [`EventLoop::run`]. They differ in [`LoopPurpose`].

use std::path::PathBuf;
use std::sync::Mutex;

use agent_client_protocol_schema::v1::{NoticeSeverity, SessionId};
use cellwright_session::CallEvent;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::questions::{self, PendingQuestion, TurnGrants};
use super::{AgentConversation, AgentTurn, CellFailure, LateUpdates, RunningAgent, SessionFacts, lock};
use super::{elicitation, updates};
use crate::agent::{AgentCall, AgentEvent, AgentProcess, AnswerText, CallError, CallText};
use crate::kernel_state::KernelState;
use crate::permission::PermissionDecision;
use crate::tool_door::ToolEvent;

/// The most events that are taken at once.
const BATCH: usize = 256;

/// Why the loop listens.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum LoopPurpose {
    /// A turn of this session. It shows all that the agent reports, and it stops politely.
    Turn(SessionId),
    /// Another request. Its cell gives it up by dropping the loop.
    Request(UpdateUse),
}

/// What a request does with updates that come before its answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpdateUse {
    /// Remember the state of the session.
    Facts,
    /// Show the rest, too: the agent plays a conversation back.
    Show,
}

/// How the loop ended.
pub(crate) enum LoopEnd {
    Answered(Result<AnswerText, CallError>),
    /// The agent did not end its turn in time, or the user did not wait.
    Abandoned,
}

/// The loop and what it works on.
pub(crate) struct EventLoop<'a> {
    pub(crate) state: &'a KernelState,
    pub(crate) facts: &'a Mutex<SessionFacts>,
    pub(crate) agent: &'a AgentProcess,
    events: &'a mut mpsc::Receiver<AgentEvent>,
    /// What the calls of our tools do.
    tools: &'a mut mpsc::Receiver<ToolEvent>,
    pub(crate) turn: &'a mut AgentTurn,
    /// The turn before. The agent may still go on with its messages and tool calls.
    former: Option<&'a mut AgentTurn>,
    late: &'a mut LateUpdates,
    purpose: LoopPurpose,
    pub(crate) workspace: PathBuf,
    questions: FuturesUnordered<PendingQuestion<'a>>,
    pub(crate) grants: TurnGrants,
    /// Whether the cell has shown that the agent does not ask.
    pub(crate) bypass_shown: bool,
    /// Set when the turn was asked to stop.
    give_up_at: Option<Instant>,
}

impl EventLoop<'_> {
    /// Listens until `answer` comes. All that the agent reported before its answer is handled then.
    pub(crate) async fn run(mut self, mut answer: BoxFuture<'_, Result<AnswerText, CallError>>) -> LoopEnd {
        let in_turn = matches!(self.purpose, LoopPurpose::Turn(_));
        let mut answered = None;
        let (mut batch, mut calls) = (Vec::new(), Vec::new());
        loop {
            // Events that preceded the answer are in the channel by now. They may have come after
            // this `select!` looked at the channel and before it looked at the answer.
            if let Some(answered) = answered.take_if(|_| self.events.is_empty() && self.tools.is_empty()) {
                return LoopEnd::Answered(answered);
            }
            let more_events = !self.events.is_closed() || !self.events.is_empty();
            tokio::select! {
                biased; // stopping beats output; events come before the answer that they precede
                () = self.turn.stop.asked(), if in_turn && self.give_up_at.is_none() => self.cancel(),
                () = self.turn.stop.forced(), if in_turn => return LoopEnd::Abandoned,
                () = sleep_until(self.give_up_at.unwrap_or_else(Instant::now)), if self.give_up_at.is_some() => {
                    return LoopEnd::Abandoned;
                }
                _ = self.tools.recv_many(&mut calls, BATCH) => {
                    for event in calls.drain(..) {
                        self.take_tool(event).await;
                    }
                }
                _ = self.events.recv_many(&mut batch, BATCH), if more_events => {
                    // A command wrote its output before the agent reported on it.
                    self.show_terminals();
                    for event in batch.drain(..) {
                        self.take(event);
                    }
                }
                result = &mut answer, if answered.is_none() => answered = Some(result),
                Some(answer) = self.questions.next() => {
                    lock(self.facts).always_allowed.extend(answer.always_allows());
                    questions::settle(self.state, self.turn, &mut self.grants, &self.workspace, answer);
                }
                () = self.agent.terminal_changed(), if in_turn => self.show_terminals(),
                () = self.turn.due() => {}
            }
            self.turn.flush().await;
            if let Some(former) = &mut self.former {
                former.drain().await;
            }
        }
    }

    /// Asks the agent to end its turn.
    fn cancel(&mut self) {
        let LoopPurpose::Turn(session) = &self.purpose else { return };
        self.agent.cancel(session);
        for call in self.turn.calls.waiting() {
            lock(&self.state.policy).record(call, &PermissionDecision::cancelled());
        }
        self.turn.notebook.stop();
        self.questions.clear(); // a dropped question is answered: cancelled
        self.give_up_at = Some(Instant::now() + self.state.grace);
    }

    fn take(&mut self, event: AgentEvent) {
        self.state.updates.log(&event);
        let stopping = self.give_up_at.is_some();
        match event {
            AgentEvent::Update(notification) => match &self.purpose {
                LoopPurpose::Turn(session) if notification.session_id == *session => {
                    let update = notification.update;
                    let news = lock(self.facts).news(&update);
                    for line in &news {
                        self.turn.view.aside(line);
                    }
                    lock(self.facts).learn(&update);
                    let former = self.former.as_mut();
                    match former.filter(|former| former.knows(&update) && !self.turn.knows(&update)) {
                        Some(former) => drop(former.update(update)),
                        None => {
                            if let Some(call) = self.turn.update(update) {
                                self.note_bypass(&call);
                            }
                        }
                    }
                }
                LoopPurpose::Turn(_) => {} // of another session
                LoopPurpose::Request(updates) => {
                    if !lock(self.facts).learn(&notification.update) {
                        self.late.history_heard = true;
                        if *updates == UpdateUse::Show {
                            self.turn.update(notification.update);
                        }
                    }
                }
            },
            AgentEvent::Permission(question) if !stopping => self.questions.extend(questions::permission(
                self.state,
                self.turn,
                &mut self.grants,
                &self.workspace,
                question,
            )),
            AgentEvent::Elicitation(question) if !stopping => {
                self.questions.extend(elicitation::elicitation(self.state, self.turn, question));
            }
            AgentEvent::Unknown(unknown) => {
                if matches!(self.purpose, LoopPurpose::Turn(_)) && self.state.updates.shows(&unknown) {
                    let (title, text) = updates::described(&unknown);
                    self.turn.view.notice(&NoticeSeverity::Info, &title, Some(&text));
                }
            }
            // While stopping, questions are dropped, which answers them.
            AgentEvent::Permission(_) | AgentEvent::Elicitation(_) => {}
        }
    }

    /// Takes what a call of our tools does.
    async fn take_tool(&mut self, event: ToolEvent) {
        match event {
            ToolEvent::Question { number, mut question } if self.give_up_at.is_none() => {
                if let Some(card) = self.turn.notebook.card(number) {
                    question.request.tool_call.tool_call_id = card.clone();
                }
                self.questions.extend(questions::permission(
                    self.state,
                    self.turn,
                    &mut self.grants,
                    &self.workspace,
                    question,
                ));
            }
            ToolEvent::Question { .. } => {} // a dropped question is refused
            ToolEvent::Cell(event) => match *event {
                CallEvent::Input { request, .. } => {
                    self.questions.extend(questions::code_input(self.state, self.turn, request));
                }
                event => self.turn.code_event(self.state, event).await,
            },
            ToolEvent::Begun(begun) if self.give_up_at.is_some() => begun.stop.cancel(),
            ToolEvent::Begun(begun) => self.turn.begin_call(*begun),
            ToolEvent::Ended { number, failed } => self.turn.end_call(number, failed).await,
        }
    }

    /// Shows what the agent's commands wrote. Outside of a turn it stays for the next one.
    fn show_terminals(&mut self) {
        if matches!(self.purpose, LoopPurpose::Turn(_)) {
            self.turn.show_terminals(self.agent);
        }
    }
}

impl AgentConversation {
    /// Sends a request and listens to the agent until it answers. Its questions appear in the cell.
    pub(crate) async fn request<R: AgentCall>(
        &mut self,
        request: R,
        turn: &mut AgentTurn,
    ) -> Result<R::Response, CellFailure> {
        self.request_with(request, turn, UpdateUse::Facts).await
    }

    /// [`AgentConversation::request`] that may show the updates which come before the answer.
    pub(crate) async fn request_with<R: AgentCall>(
        &mut self,
        request: R,
        turn: &mut AgentTurn,
        updates: UpdateUse,
    ) -> Result<R::Response, CellFailure> {
        let answer = match CallText::new(&request) {
            Ok(call) => self.exchange(call, turn, updates).await,
            Err(error) => Err(error),
        };
        answer.and_then(|answer| answer.read()).map_err(|error| self.failed(&error))
    }

    /// The part of a request that is compiled once for all requests.
    async fn exchange(
        &mut self,
        call: CallText,
        turn: &mut AgentTurn,
        updates: UpdateUse,
    ) -> Result<AnswerText, CallError> {
        let (events, agent) = self.event_loop(turn, LoopPurpose::Request(updates));
        let LoopEnd::Answered(answer) = events.run(agent.call_text(call)).await else {
            unreachable!("only turns are abandoned")
        };
        self.state.stdin.answered_by(turn.cell.header().session()).await;
        answer
    }

    /// The loop for a request to the agent, which is returned beside it.
    pub(crate) fn event_loop<'a>(
        &'a mut self,
        turn: &'a mut AgentTurn,
        purpose: LoopPurpose,
    ) -> (EventLoop<'a>, &'a AgentProcess) {
        let workspace = self.workspace();
        let RunningAgent { agent, events, .. } = self.running.as_mut().expect("it was started");
        self.late.history_heard = false;
        let event_loop = EventLoop {
            state: &self.state,
            facts: &self.facts,
            agent,
            events,
            tools: &mut self.tools,
            turn,
            former: self.last_turn.as_deref_mut(),
            late: &mut self.late,
            purpose,
            workspace,
            questions: FuturesUnordered::new(),
            grants: TurnGrants::default(),
            bypass_shown: false,
            give_up_at: None,
        };
        (event_loop, agent)
    }

    /// Turns a failed request into a failure of the cell, with what helps.
    pub(crate) fn failed(&mut self, error: &CallError) -> CellFailure {
        if matches!(error, CallError::Ended { .. }) {
            self.running = None;
            self.crashed = true;
        }
        let failure = CellFailure::of_call(error);
        match error {
            CallError::AuthRequired => self.with_sign_in_help(failure),
            CallError::Unsupported { .. } | CallError::Refused { .. } | CallError::Ended { .. } => failure,
        }
    }
}
