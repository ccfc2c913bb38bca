//! A turn: from the prompt to its answer.

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::v1::{NoticeSeverity, PromptRequest, StopReason};
use tokio::time::Instant;

use super::listen::{LoopEnd, LoopPurpose};
use super::prompt::PromptBlocks;
use super::{AgentConversation, AgentTurn, CellFailure, UserPrompt, lock};
use crate::agent::{CallError, CallText, PromptAnswer};
use crate::turn::{TurnOutput, TurnPlace};
use crate::view::TurnEnding;

/// How long an agent must be silent before the next prompt, if it was interrupted or sends late
/// updates.
const SILENCE: Duration = Duration::from_millis(250);

/// The longest such silence. An agent that was silent for long before a late update needs more than
/// [`SILENCE`].
const LONG_SILENCE: Duration = Duration::from_secs(2);

/// How long an agent may take to begin to play a conversation back.
const REPLAY_BEGINS: Duration = Duration::from_secs(1);

/// The longest wait for silence.
const MOST_SILENCE: Duration = Duration::from_secs(5);

impl AgentConversation {
    /// Runs a turn to its end. Everything it shows is published when this returns.
    pub(crate) async fn talk(
        &mut self,
        turn: &mut AgentTurn,
        prompt: &UserPrompt,
    ) -> Result<(), CellFailure> {
        let _registration = turn.registration.take(); // until this returns
        lock(&self.facts).last_turn = Some(Arc::clone(turn.cell.record()));
        let result = self.converse(turn, prompt).await;
        if turn.stop.is_asked() {
            self.state.stdin.interrupted();
        }
        let ending = match &result {
            // The cell reports it.
            Ok(StopReason::Cancelled) if turn.place == TurnPlace::Foreground => TurnEnding::Failed,
            Ok(reason) => TurnEnding::Stopped(*reason),
            Err(_) => TurnEnding::Failed,
        };
        let output = turn.finish(&ending).await;
        match result {
            Ok(reason) if reason == StopReason::Cancelled || output == TurnOutput::CutShort => {
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
                // An agent whose start was cut short cannot be used.
                self.running.take_if(|running| !running.open);
                return Ok(StopReason::Cancelled);
            }
            ready = self.get_ready(turn) => ready?,
        }
        match self.prompt(turn, prompt).await {
            Some(Ok(reason)) => Ok(reason),
            // Some agents answer a cancelled prompt with an error.
            Some(Err(_)) if turn.stop.is_asked() && !self.running().agent.has_ended() => {
                Ok(StopReason::Cancelled)
            }
            Some(Err(error)) => Err(self.failed(&error)),
            None => {
                self.running = None;
                let notice = "the agent did not stop and was ended; the next cell starts it again";
                turn.view.notice(&NoticeSeverity::Warning, notice, None);
                Ok(StopReason::Cancelled)
            }
        }
    }

    async fn get_ready(&mut self, turn: &mut AgentTurn) -> Result<(), CellFailure> {
        let ready = self.ready(turn).await;
        turn.flush().await;
        ready?;
        self.await_tools(turn).await;
        turn.flush().await;
        if self.late.expected || self.late.replayed {
            self.await_silence().await;
            self.late.replayed = false;
        }
        Ok(())
    }

    /// Waits until the agent is silent. What it reports meanwhile belongs to the turn before.
    async fn await_silence(&mut self) {
        let from = self.late.last_heard.unwrap_or_else(Instant::now);
        let give_up = Instant::now() + MOST_SILENCE;
        let silence = (2 * self.late.longest_gap).clamp(SILENCE, LONG_SILENCE);
        let begins = if self.late.replayed && !self.late.history_heard { REPLAY_BEGINS } else { silence };
        let mut silent_at = from + begins.max(silence);
        while let Ok(event) = {
            let until = silent_at.min(give_up);
            tokio::time::timeout_at(until, super::next_event(&mut self.running)).await
        } {
            if event.is_none() {
                return;
            }
            silent_at = Instant::now() + silence;
            self.hear_between_turns(event).await;
        }
    }

    /// Sends the prompt and listens until its answer. `None` if the agent did not stop when asked
    /// to.
    async fn prompt(
        &mut self,
        turn: &mut AgentTurn,
        prompt: &UserPrompt,
    ) -> Option<Result<StopReason, CallError>> {
        self.take_early_events().await;
        let session = self.session.clone().expect("it was made ready");
        self.remember(); // now, so that a kernel that is killed in this turn has not forgotten it
        let can = &self.running().agent.can().prompt_capabilities;
        let PromptBlocks { mut blocks, remarks } = prompt.blocks(&self.workspace(), can);
        if let Some(introduction) = self.introduction() {
            blocks.insert(0, introduction);
        }
        for remark in &remarks {
            turn.view.aside(remark);
        }
        let call = match CallText::new(&PromptRequest::new(session.clone(), blocks)) {
            Ok(call) => call,
            Err(error) => return Some(Err(error)),
        };
        let (events, agent) = self.event_loop(turn, LoopPurpose::Turn(session));
        let end = events.run(agent.call_text(call)).await;
        let answer = match end {
            LoopEnd::Answered(answer) => Some(answer.and_then(|answer| PromptAnswer::read(&answer))),
            LoopEnd::Abandoned => None,
        };
        if let Some(Ok(PromptAnswer { response, unknown_reason })) = &answer {
            response.usage.iter().for_each(|usage| turn.view.spent(usage.clone()));
            if let Some(reason) = unknown_reason {
                let remark =
                    format!("the agent stopped for a reason that this version does not know: {reason}");
                turn.view.aside(&remark);
            }
        }
        tokio::select! {
            () = self.state.stdin.answered_by(turn.cell.header().session()) => {}
            () = turn.stop.asked() => {}
        }
        turn.show_terminals(&self.running().agent);
        self.late.expected |= turn.stop.is_asked();
        self.late.last_heard = Some(Instant::now());
        self.late.replayed = false;
        answer.map(|answer| answer.map(|answer| answer.response.stop_reason))
    }

    /// Takes the events that came before the prompt. They belong to the turn before.
    async fn take_early_events(&mut self) {
        while let Some(event) = self.running.as_mut().and_then(|running| running.events.try_recv().ok()) {
            self.hear_between_turns(Some(event)).await;
        }
    }
}
