//! Time and cost of a turn.

use std::time::{Duration, Instant};

use super::displays::DisplaySharing;
use super::printer::PrintSection;
use super::words::{dim, duration, thousands};
use super::{QUIET, TurnView, ViewPiece, ViewStyle};
use crate::tool_calls::ToolCalls;

impl TurnView {
    /// Shows how long a quiet turn has been running.
    pub(super) fn show_elapsed(&mut self, calls: &ToolCalls, now: Instant) {
        let quiet = now.saturating_duration_since(self.active);
        if self.ended || quiet < QUIET || now < self.next_elapsed {
            return;
        }
        if calls.waiting().next().is_some() {
            self.next_elapsed = now + QUIET;
            return;
        }
        let took = now.saturating_duration_since(self.started);
        let hint = if quiet >= 6 * QUIET { "; `%agent log` shows what the agent reports" } else { "" };
        let line = format!("working for {}{hint}", duration(took));
        match self.style {
            ViewStyle::Rich => {
                self.next_elapsed = now + Duration::from_secs(1);
                self.close();
                self.passing =
                    Some(self.put(ViewPiece::Fixed(dim(&line).bundle()), DisplaySharing::Unwanted));
            }
            ViewStyle::Stream => {
                // Lines cannot be removed, so each comes after twice the time.
                self.next_elapsed = now + took;
                self.printer.print(PrintSection::Aside, &format!("[{line}]\n"));
            }
        }
    }

    /// The last line, if there is something to show.
    pub(super) fn footer(&self, took: Duration) -> Option<String> {
        let mut parts = Vec::new();
        if took >= QUIET {
            parts.push(duration(took));
        }
        // Running reports contain more. Both together would look like two different things.
        if let (Some(spent), None) = (&self.spent, &self.usage) {
            let (read, written) = (thousands(spent.input_tokens), thousands(spent.output_tokens));
            parts.push(format!("{read} tokens in, {written} out"));
        }
        if let Some(usage) = &self.usage {
            let percent = (usage.used * 100).checked_div(usage.size).unwrap_or_default();
            parts.push(format!(
                "{} of {} tokens ({percent} %)",
                thousands(usage.used),
                thousands(usage.size)
            ));
            parts.extend(usage.cost.as_ref().map(|cost| format!("{:.2} {}", cost.amount, cost.currency)));
        }
        (!parts.is_empty()).then(|| parts.join(" · "))
    }
}
