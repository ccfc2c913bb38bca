//! What a view sends, and when.

use std::time::Instant;

use agent_client_protocol_schema::v1::ToolCallStatus;
use cellwright_cell::Stream;
use serde_json::Value;

use super::content::RenderedContent;
use super::words::{TextRole, dim, thousands};
use super::{OutputData, OutputMessage, QUIET, TurnView, ViewPiece, ViewStyle};
use crate::plain::CODE_MIME;
use crate::tool_calls::ToolCalls;

impl TurnView {
    /// When `flush` will have something to send. `None` if nothing is left after the end.
    pub(crate) fn due(&self) -> Option<Instant> {
        let cost = match self.style {
            ViewStyle::Rich => (!self.displays.is_settled()).then_some(1.0),
            #[expect(clippy::cast_precision_loss, reason = "a few megabytes")]
            ViewStyle::Stream => {
                (self.printer.waiting() > 0).then(|| self.printer.waiting().min(4096) as f64)
            }
        };
        match cost {
            Some(cost) if self.ended => Some(self.pace.affordable_at(cost)),
            Some(cost) => Some(self.pace.ready_at(cost)),
            None if self.ended => None,
            None => Some(self.next_elapsed.max(self.active + QUIET)),
        }
    }

    /// The messages to send now: everything that changed, as far as the pace allows.
    pub(crate) fn flush(&mut self, calls: &ToolCalls, now: Instant) -> Vec<OutputMessage> {
        if !self.ended && !self.pace.is_time(now) {
            return Vec::new();
        }
        self.show_elapsed(calls, now);
        let room = self.pace.afford(now);
        let shown = match self.style {
            ViewStyle::Rich => self.flush_displays(calls, room),
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few megabytes")]
            ViewStyle::Stream => {
                self.displays.settle();
                self.printer.take(room.max(0.0) as usize, &self.turn)
            }
        };
        for show in &shown {
            #[expect(clippy::cast_precision_loss, reason = "a few megabytes")]
            self.pace.spend(match show {
                OutputMessage::Stream { text, .. } => text.len() as f64,
                OutputMessage::Display { .. } | OutputMessage::Update { .. } => 1.0,
            });
        }
        if !shown.is_empty() {
            self.pace.tick(now);
        }
        shown
    }

    /// All that waits, whatever the pace.
    pub(super) fn rest(&mut self, calls: &ToolCalls) -> Vec<OutputMessage> {
        match self.style {
            ViewStyle::Rich => self.flush_displays(calls, f64::MAX),
            ViewStyle::Stream => {
                self.displays.settle();
                self.printer.end_line();
                self.printer.take(usize::MAX, &self.turn)
            }
        }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the burst")]
    fn flush_displays(&mut self, calls: &ToolCalls, room: f64) -> Vec<OutputMessage> {
        let mut shown = Vec::new();
        while shown.len() < room.max(0.0) as usize {
            let Some(display) = self.displays.next() else { break };
            let data = self.together(calls, display);
            let id = format!("{}-{display}", self.turn);
            shown.push(if self.displays.send(display) {
                OutputMessage::Display { id, data }
            } else {
                OutputMessage::Update { id, data }
            });
        }
        shown
    }

    /// The current content of a display.
    fn together(&mut self, calls: &ToolCalls, display: usize) -> OutputData {
        let pieces = self.displays.pieces(display);
        if pieces.len() == 1 {
            let data = self.bundle(calls, pieces.start);
            let html = data.get("text/html").and_then(Value::as_str).unwrap_or_default();
            self.displays.weighs(display, html.len());
            return data;
        }
        let (mut html, mut plain, mut code) = (String::new(), Vec::new(), None);
        for at in pieces {
            let data = self.bundle(calls, at);
            html.push_str(data.get("text/html").and_then(Value::as_str).unwrap_or_default());
            code = code.or_else(|| data.get(CODE_MIME).cloned());
            plain.push(data.get("text/plain").and_then(Value::as_str).unwrap_or_default().to_owned());
        }
        self.displays.weighs(display, html.len());
        let mut data = RenderedContent { html, plain: plain.join("\n") }.bundle();
        data.extend(code.map(|code| (CODE_MIME.to_owned(), code)));
        data
    }

    /// The current content of a piece. The text of a frozen block is moved out, because it is never
    /// sent again, except with neighbours.
    fn bundle(&mut self, calls: &ToolCalls, at: usize) -> OutputData {
        match &mut self.pieces[at] {
            ViewPiece::Text(voice, text, most_headings) => {
                let (voice, most) = (*voice, *most_headings);
                match &self.open {
                    Some(open) if open.at == Some(at) => voice.bundle(open.blocks.open(), most),
                    _ if voice == TextRole::Thought && self.displays.is_crowded(at) => {
                        voice.bundle(text, most)
                    }
                    _ => voice.bundle(&std::mem::take(text), most),
                }
            }
            ViewPiece::Card(card) => {
                let entry = calls.get(&card.id).expect("a card is made of a call");
                let mut data = card.rendered(entry, &mut self.terminals).bundle();
                // What was refused or failed is not worth keeping.
                let ran = entry.code.as_ref().filter(|_| entry.call.status == ToolCallStatus::Completed);
                if let Some((language, source)) = ran {
                    let code = serde_json::json!({"language": language, "source": source});
                    data.insert(CODE_MIME.to_owned(), code);
                }
                data
            }
            ViewPiece::Fixed(data) => data.clone(),
        }
    }

    /// The bytes of text that wait for a console.
    pub(crate) fn unprinted(&self) -> usize {
        self.printer.waiting()
    }

    /// The user does not wait for the rest. Displays that were sent get their last state, and the
    /// rest is dropped with a note. Empty if nothing is left.
    pub(crate) fn cut_short(&mut self, calls: &ToolCalls) -> Vec<OutputMessage> {
        let (mut shown, mut dropped) = (Vec::new(), 0);
        while let Some(display) = self.displays.next().filter(|_| self.style == ViewStyle::Rich) {
            if self.displays.is_sent(display) {
                let data = self.together(calls, display);
                shown.push(OutputMessage::Update { id: format!("{}-{display}", self.turn), data });
            } else {
                dropped += 1;
            }
        }
        self.displays.settle();
        let unprinted = self.printer.clear();
        let note = match (dropped, unprinted) {
            (0, 0) => return shown,
            (0, bytes) => format!("interrupted: the last {} bytes are not shown", thousands(bytes as u64)),
            (outputs, _) => format!("interrupted: the last {outputs} outputs of this turn are not shown"),
        };
        shown.push(match self.style {
            ViewStyle::Stream => OutputMessage::Stream { name: Stream::Stderr, text: format!("\n{note}\n") },
            ViewStyle::Rich => {
                OutputMessage::Display { id: format!("{}-cut", self.turn), data: dim(&note).bundle() }
            }
        });
        shown
    }
}
