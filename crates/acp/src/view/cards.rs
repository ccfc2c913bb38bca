//! The tool calls of a view: their cards, the buttons beside them, the terminals in them.

use std::time::Instant;

use agent_client_protocol_schema::v1::{TerminalId, ToolCallId};

use super::card::{self, ToolCard, line};
use super::displays::DisplaySharing;
use super::forms::widget_view;
use super::printer::PrintSection;
use super::{TurnView, ViewPiece, ViewStyle};
use crate::permission::PermissionDecision;
use crate::tool_calls::{ToolCallChange, ToolCalls};

impl TurnView {
    /// Shows a change to a tool call, whose card is made if there is none.
    pub(crate) fn tool_call(&mut self, change: &ToolCallChange, calls: &ToolCalls, now: Instant) {
        self.stir(now);
        self.card(&change.id, Some(change), calls);
    }

    /// Shows the buttons that answer a question: the widget with this model id. The decision
    /// removes them.
    pub(crate) fn buttons(&mut self, call: &ToolCallId, model_id: &str) {
        self.close();
        let at = self.add(ViewPiece::Fixed(widget_view(model_id, "[buttons: allow or refuse]")));
        self.buttons.insert(call.clone(), at);
    }

    /// Shows how a permission was decided.
    pub(crate) fn permission_decided(
        &mut self,
        call: &ToolCallId,
        decision: &PermissionDecision,
        calls: &ToolCalls,
        now: Instant,
    ) {
        self.stir(now);
        if let Some(at) = self.buttons.remove(call) {
            self.retire(at, &decision.to_string());
            if at + 1 == self.pieces.len() {
                // The card shows it too.
                self.passing = Some(at);
            }
        }
        self.card(call, None, calls);
    }

    /// Shows that nobody was asked about a call.
    pub(crate) fn permission_bypassed(&mut self, call: &ToolCallId, calls: &ToolCalls, now: Instant) {
        self.stir(now);
        self.card(call, None, calls);
    }

    /// Shows more output of a command that we run for the agent.
    pub(crate) fn terminal_output(
        &mut self,
        id: &TerminalId,
        output: &[u8],
        calls: &ToolCalls,
        now: Instant,
    ) {
        self.stir(now);
        self.terminals.entry(id.0.to_string()).or_default().write(output);
        self.terminal_changed(&id.0, calls);
    }

    /// Shows that a command that we run for the agent has ended.
    pub(crate) fn terminal_exited(
        &mut self,
        id: &TerminalId,
        code: Option<i64>,
        signal: Option<&str>,
        calls: &ToolCalls,
        now: Instant,
    ) {
        self.stir(now);
        self.terminals.entry(id.0.to_string()).or_default().exited(code, signal);
        self.terminal_changed(&id.0, calls);
    }

    /// Shows that these calls did not end with the turn.
    pub(super) fn leave_open(&mut self, left_open: &[ToolCallId], calls: &ToolCalls) {
        for id in left_open {
            self.card(id, None, calls);
        }
    }

    fn card(&mut self, id: &ToolCallId, change: Option<&ToolCallChange>, calls: &ToolCalls) {
        let Some(entry) = calls.get(id) else { return };
        let known = self.cards.get(id).copied();
        let at = known.unwrap_or_else(|| {
            self.close();
            // The code beside a card belongs to this display.
            let company =
                if entry.code.is_some() { DisplaySharing::Unwanted } else { DisplaySharing::Welcome };
            let at = self.put(ViewPiece::Card(Box::new(ToolCard::new(id.clone()))), company);
            self.cards.insert(id.clone(), at);
            at
        });
        let ViewPiece::Card(card) = &mut self.pieces[at] else { return };
        if let Some(change) = change {
            card.change(change, entry, &mut self.terminals);
        }
        self.displays.touch(at);
        let has_just_ended = card.note_end(entry);
        if self.style == ViewStyle::Stream {
            if has_just_ended {
                let details = card.details(entry, &mut self.terminals);
                self.printer.print(PrintSection::Aside, &format!("{}{details}\n", line(entry)));
                card::pictures(&entry.call).for_each(|picture| self.printer.picture(picture));
            } else if known.is_none() {
                self.printer.print(PrintSection::Aside, &format!("{}\n", line(entry)));
            }
        }
    }

    fn terminal_changed(&mut self, id: &str, calls: &ToolCalls) {
        let pieces = &self.pieces;
        let shows = |at: &usize| match &pieces[*at] {
            ViewPiece::Card(card) => {
                calls.get(&card.id).is_some_and(|entry| card.shows_terminal(&entry.call, id))
            }
            ViewPiece::Text(..) | ViewPiece::Fixed(_) => false,
        };
        for at in self.cards.values().copied().filter(shows) {
            self.displays.touch(at);
        }
    }
}
