//! A turn: from the prompt to its answer, whatever happens between.

use std::time::Duration;

use agent_client_protocol_schema::v1::{NoticeSeverity, PromptRequest, StopReason};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, sleep_until};

use super::prompt::PromptBlocks;
use super::questions::{self, PendingQuestion, TurnGrants};
use super::updates;
use super::{AgentConversation, AgentTurn, CellFailure, LateUpdates, UserPrompt, lock};
use crate::agent::{AgentEvent, CallError};
use crate::permission::PermissionDecision;
use crate::turn::TurnOutput;
use crate::view::TurnEnding;

/// Events taken at once.
const BATCH: usize = 256;

/// An agent that was interrupted, or that talks after its turns, is quiet for so long before the next prompt.
const SILENCE: Duration = Duration::from_millis(250);

/// Silence that never comes is not waited for longer.
const MOST_SILENCE: Duration = Duration::from_secs(5);

/// How the prompt was left.
enum PromptEnd {
    Answered(Result<StopReason, CallError>),
    /// The agent did not end its turn in time, or the user would not wait.
    Abandoned,
}

impl AgentConversation {
    /// Runs a turn to its end. All it shows is published when this returns.
    pub(crate) async fn talk(
        &mut self,
        turn: &mut AgentTurn,
        prompt: &UserPrompt,
    ) -> Result<(), CellFailure> {
        let shared = std::sync::Arc::clone(&self.shared);
        let _registered = turn.registered.take(); // until the end of this
        let result = self.converse(turn, prompt).await;
        if turn.stop.is_asked() {
            shared.stdin.interrupted();
        }
        let ending = match &result {
            Ok(reason) => TurnEnding::Stopped(*reason),
            Err(_) => TurnEnding::Failed,
        };
        let shown = turn.finish(&ending).await;
        match result {
            Ok(reason) if reason == StopReason::Cancelled || shown == TurnOutput::CutShort => {
                Err(CellFailure::interrupted())
            }
            Ok(_) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    async fn converse(
        &mut self,
        turn: &mut AgentTurn,
        prompt: &UserPrompt,
    ) -> Result<StopReason, CellFailure> {
        let stop = turn.stop.clone();
        tokio::select! {
            biased;
            () = stop.asked() => {
                // Half a start is no state to go on from.
                self.running.take_if(|running| !running.open);
                return Ok(StopReason::Cancelled);
            }
            ready = self.get_ready(turn) => ready?,
        }
        match self.prompt(turn, prompt).await {
            PromptEnd::Answered(Ok(reason)) => Ok(reason),
            PromptEnd::Answered(Err(_)) if turn.stop.is_asked() && !self.running().agent.has_ended() => {
                // Some agents answer a cancelled prompt with an error.
                Ok(StopReason::Cancelled)
            }
            PromptEnd::Answered(Err(error)) => Err(self.failed(&error)),
            PromptEnd::Abandoned => {
                self.running = None;
                let told = "the agent did not stop and was ended; it starts again with the next cell";
                turn.view.notice(&NoticeSeverity::Warning, told, None);
                Ok(StopReason::Cancelled)
            }
        }
    }

    async fn get_ready(&mut self, turn: &mut AgentTurn) -> Result<(), CellFailure> {
        let ready = self.ready(turn).await;
        turn.flush().await;
        ready?;
        if self.stragglers.expected {
            self.hear_stragglers().await;
        }
        Ok(())
    }

    /// Waits until the agent is silent. What it says meanwhile belongs to the turn before.
    async fn hear_stragglers(&mut self) {
        let from = self.stragglers.last_heard.unwrap_or_else(Instant::now);
        let give_up = Instant::now() + MOST_SILENCE;
        let mut silent_at = from + SILENCE;
        while let Ok(event) = {
            let until = silent_at.min(give_up);
            tokio::time::timeout_at(until, super::next_event(&mut self.running)).await
        } {
            if event.is_none() {
                return;
            }
            silent_at = Instant::now() + SILENCE;
            // Boxed: hearing may show, and showing is where this came from.
            Box::pin(self.hear_between_turns(event)).await;
        }
    }

    async fn prompt(&mut self, turn: &mut AgentTurn, prompt: &UserPrompt) -> PromptEnd {
        let session = self.session.clone().expect("it was made ready");
        let workspace = self.workspace();
        let Self { shared, facts, running, stragglers, last, .. } = self;
        let super::RunningAgent { agent, events, .. } = running.as_mut().expect("it was made ready");
        // What is here already was said before this prompt: it is of the turn before.
        while let Ok(event) = events.try_recv() {
            shared.updates.log(&event);
            if let AgentEvent::Update(notification) = event
                && notification.session_id == session
                && !lock(facts).learn(&notification.update)
                && let Some(last) = last
            {
                stragglers.expected = true;
                last.update(notification.update);
                last.drain().await;
            }
        }
        let PromptBlocks { blocks, remarks } = prompt.blocks(&workspace, &agent.can().prompt_capabilities);
        for remark in &remarks {
            turn.view.aside(remark);
        }
        let mut answer = agent.prompt(&PromptRequest::new(session.clone(), blocks));
        let mut waiting: FuturesUnordered<PendingQuestion<'_>> = FuturesUnordered::new();
        let mut granted = TurnGrants::default();
        let mut batch = Vec::new();
        let mut give_up_at: Option<Instant> = None;
        let mut answered = None;
        let left = loop {
            // All that the agent said before its answer is among the events by now. It may have come between the two looks
            // of one `select!`.
            if let Some(answered) = answered.take_if(|_| events.is_empty()) {
                break PromptEnd::Answered(answered);
            }
            tokio::select! {
                biased; // stopping beats output; what came before the answer counts to it
                () = turn.stop.asked(), if give_up_at.is_none() => {
                    agent.cancel(&session);
                    for call in turn.calls.waiting() {
                        lock(&shared.policy).record(call, &PermissionDecision::cancelled());
                    }
                    waiting.clear(); // a question that is dropped is answered: cancelled
                    give_up_at = Some(Instant::now() + shared.grace);
                }
                () = turn.stop.forced() => break PromptEnd::Abandoned,
                () = sleep_until(give_up_at.unwrap_or_else(Instant::now)), if give_up_at.is_some() => {
                    break PromptEnd::Abandoned;
                }
                _ = events.recv_many(&mut batch, BATCH), if !events.is_closed() || !events.is_empty() => {
                    let stopping = give_up_at.is_some();
                    // What a command wrote came before what the agent says of it.
                    for news in agent.terminal_news() {
                        turn.terminal(&news);
                    }
                    for event in batch.drain(..) {
                        shared.updates.log(&event);
                        match event {
                            AgentEvent::Update(notification) if notification.session_id == session => {
                                lock(facts).learn(&notification.update);
                                turn.update(notification.update);
                            }
                            AgentEvent::Permission(question) if !stopping => {
                                waiting.extend(questions::permission(
                                    shared, turn, &mut granted, &workspace, question,
                                ));
                            }
                            AgentEvent::Elicitation(question) if !stopping => {
                                waiting.extend(questions::elicitation(shared, turn, question));
                            }
                            AgentEvent::Unknown(unknown) if shared.updates.shows(&unknown) => {
                                let (title, text) = updates::told(&unknown);
                                turn.view.notice(&NoticeSeverity::Info, &title, Some(&text));
                            }
                            // Of another session; or a question while stopping, which its drop answers.
                            AgentEvent::Update(_) | AgentEvent::Permission(_) | AgentEvent::Elicitation(_) | AgentEvent::Unknown(_) => {}
                        }
                    }
                    turn.flush().await;
                }
                result = &mut answer, if answered.is_none() => answered = Some(result.map(|(answer, unknown)| {
                    answer.usage.into_iter().for_each(|usage| turn.view.spent(usage));
                    if let Some(reason) = unknown {
                        turn.view.aside(&format!("the agent stopped for a reason that is not known here: {reason}"));
                    }
                    answer.stop_reason
                })),
                Some(answered) = waiting.next() => {
                    questions::settle(shared, turn, &mut granted, answered);
                    turn.flush().await;
                }
                () = agent.terminal_changed() => {
                    for news in agent.terminal_news() {
                        turn.terminal(&news);
                    }
                    turn.flush().await;
                }
                () = turn.due() => turn.flush().await,
            }
        };
        waiting.clear();
        tokio::select! {
            () = shared.stdin.answered_by(turn.cell.header().session()) => {}
            () = turn.stop.asked() => {}
        }
        for news in agent.terminal_news() {
            turn.terminal(&news);
        }
        *stragglers = LateUpdates {
            expected: stragglers.expected || turn.stop.is_asked(),
            last_heard: Some(Instant::now()),
        };
        left
    }
}
