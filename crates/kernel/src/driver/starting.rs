//! A cell that was sent and does not start: what the kernel is doing, and when it is given up.
//!
//! That a cell starts is the heartbeat of a kernel: asking for one before every cell would double the time of a short one.
//! The kernel is only examined if the start does not come. A busy kernel reports that itself, and the driver waits.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use super::Driver;
use super::running::{Phase, SentCell};
use crate::event::Event;
use crate::outcome::Exit;
use crate::transport::Pulse;

/// How many times [`Graces::answer`](super::Graces::answer) a kernel has that computes: what lets its interpreter not
/// answer may be work, and come to an end.
const PATIENCE: u32 = 4;

impl Driver {
    /// Examines a kernel that has not started its cell in time. `Some` if it is given up.
    pub(super) fn look_after(&mut self, now: Instant) -> Option<Exit> {
        let graces = self.graces;
        let Some(SentCell { awaited: Some(awaited), phase, .. }) = &mut self.running else { return None };
        if now < awaited.look_at {
            return None;
        }
        let is_late = now >= awaited.look_at + graces.start;
        awaited.look_at = now + graces.start;
        if is_late {
            // We did not run ourselves: what the kernel said meanwhile is still to be read.
            awaited.silent_since = now;
            return None;
        }
        let computes = match self.transport.pulse() {
            Pulse::Silent { computes } => computes,
            Pulse::Unknown => {
                awaited.silent_since = now;
                return None;
            }
            Pulse::Continued(text) => {
                awaited.silent_since = now;
                self.deliver(Event::Warning(text));
                return None;
            }
        };
        let silence = now - awaited.silent_since;
        let patience = if computes { graces.answer * PATIENCE } else { graces.answer };
        match phase {
            Phase::Running { .. } if silence >= patience => {
                return Some(Exit::Lost(format!(
                    "the kernel did not answer for {} and was ended",
                    Seconds(silence)
                )));
            }
            // A caller that stops a cell has decided how long the kernel has.
            Phase::Running { .. } | Phase::Interrupting { .. } | Phase::Ending { .. } => {}
        }
        // Not at the first look, which cannot show whether it computes.
        if silence >= 2 * graces.start {
            let what = if computes {
                "computes and does not answer: C code in one of its threads may let nothing else run"
            } else {
                "does not answer"
            };
            self.report_wait(format!(
                "the cell has not begun: for {} the kernel {what}; after {} it is replaced",
                Seconds(silence),
                Seconds(patience)
            ));
        }
        None
    }

    /// The kernel lives and does something else.
    pub(super) fn take_busy(&mut self, at: Option<&str>) {
        let Some(SentCell { awaited: Some(awaited), .. }) = &mut self.running else { return };
        awaited.silent_since = Instant::now();
        let what = at.map(|at| format!(" ({at})")).unwrap_or_default();
        self.report_wait(format!("the cell has not begun: something else keeps the kernel busy{what}"));
    }

    /// Tells it once.
    fn report_wait(&mut self, text: String) {
        if let Some(SentCell { awaited: Some(awaited), .. }) = &mut self.running
            && !std::mem::replace(&mut awaited.is_reported, true)
        {
            self.deliver(Event::Warning(text));
        }
    }
}

struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tenths: looks are late by as much as the system is busy.
        let tenths = self.0.as_millis() / 100;
        match (tenths / 10, tenths % 10) {
            (1, 0) => f.write_str("a second"),
            (whole, 0) => write!(f, "{whole} seconds"),
            (whole, tenth) => write!(f, "{whole}.{tenth} seconds"),
        }
    }
}
