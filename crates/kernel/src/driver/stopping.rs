//! From polite to firm: the steps of stopping a cell and of ending a kernel.

use std::time::Duration;

use tokio::time::Instant;

use super::Driver;
use super::running::{self, Phase, SentCell};
use crate::event::{CellStage, Event};
use crate::outcome::{Exit, StopReason};
use crate::transport::{KernelRequest, StopFailed, StopStep};

/// How long each step may take before the next one follows.
#[derive(Clone, Copy, Debug)]
pub struct Graces {
    /// For a cell to end after an interrupt.
    pub interrupt: Duration,
    /// For a cell to start, before the kernel is looked at; and between two looks.
    pub start: Duration,
    /// How long a kernel that does not start a cell may stay silent before it is given up. One that computes
    /// has four times as long.
    pub answer: Duration,
    /// For a kernel to leave after it was asked to.
    pub shutdown: Duration,
    /// For a kernel to end after it was asked to.
    pub terminate: Duration,
    /// For the system to end a kernel that was killed.
    pub kill: Duration,
    /// How long to wait in silence for the idle after the reply, or for the reply after the idle.
    pub settle: Duration,
}

impl Default for Graces {
    fn default() -> Self {
        Self {
            interrupt: Duration::from_secs(5),
            start: Duration::from_secs(5),
            answer: Duration::from_secs(15),
            shutdown: Duration::from_secs(2),
            terminate: Duration::from_secs(1),
            kill: Duration::from_secs(5),
            settle: Duration::from_secs(5),
        }
    }
}

/// How far the end of the kernel has come, and what happens at `until`.
#[derive(Clone, Copy)]
pub(super) struct KernelEnding {
    pub(super) then: EndingStep,
    pub(super) until: Instant,
}

#[derive(Clone, Copy)]
pub(super) enum EndingStep {
    Terminate,
    Kill,
    GiveUp,
}

impl Driver {
    /// Stops the cells whose callers asked for it: one that waits is taken off the queue, and only the
    /// one that runs is interrupted.
    pub(super) fn stop_cells(&mut self) {
        self.waiting.retain(|waiting| {
            let wanted = !waiting.cell.stop.is_cancelled();
            if !wanted {
                waiting.mailbox.close(running::cancelled_in_the_queue());
            }
            wanted
        });
        if let Some(SentCell { phase: Phase::Running { .. }, stop, .. }) = &self.running
            && stop.is_cancelled()
        {
            self.begin_stop(StopReason::Cancelled);
        }
    }

    fn begin_stop(&mut self, reason: StopReason) {
        let now = Instant::now();
        let (again, until) = (Some(now + self.graces.interrupt / 2), now + self.graces.interrupt);
        if let Some(running) = &mut self.running {
            running.phase = Phase::Interrupting { reason, again, until };
            running.interrupt_at_start = !running.started;
            self.deliver(Event::Status(CellStage::Stopping(reason)));
            self.interrupt_if_started();
        }
    }

    /// Interrupts the code that runs. A cell that has replied has none: its output is on its way.
    pub(super) fn interrupt_if_started(&mut self) {
        if self.running.as_ref().is_some_and(|running| running.started && running.reply.is_none())
            && let Err(failed) = self.transport.stop(StopStep::Interrupt)
        {
            self.take_failure(&failed);
        }
    }

    /// A kernel that cannot be interrupted is not worth the grace.
    pub(super) fn take_failure(&mut self, failed: &StopFailed) {
        self.deliver(Event::Warning(failed.to_string()));
        if let Some(SentCell { phase: Phase::Interrupting { reason, .. }, .. }) = self.running
            && failed.step == StopStep::Interrupt
        {
            self.end_kernel(reason);
        }
    }

    fn end_kernel(&mut self, reason: StopReason) {
        if let Some(running) = &mut self.running {
            running.phase = Phase::Ending { reason };
            if !running.started {
                self.deliver(Event::Warning("the cell had not begun".into()));
            }
        }
        self.escalate(EndingStep::Terminate);
    }

    pub(super) fn shut_down(&mut self) {
        if self.ending.is_some() {
            return;
        }
        for waiting in self.waiting.drain(..) {
            waiting.mailbox.close(running::shut_down());
        }
        self.transport.send(KernelRequest::Shutdown);
        let mut grace = self.graces.shutdown;
        if self.running.is_some() {
            grace += self.graces.interrupt;
        }
        self.ending = Some(KernelEnding { then: EndingStep::Terminate, until: Instant::now() + grace });
        if let Some(SentCell { phase: Phase::Running { .. }, .. }) = self.running {
            self.begin_stop(StopReason::Shutdown);
        }
    }

    /// Takes one step towards the kernel's end. `Some` if no step is left.
    fn escalate(&mut self, then: EndingStep) -> Option<Exit> {
        let (step, next, grace) = match then {
            EndingStep::Terminate => (StopStep::Terminate, EndingStep::Kill, self.graces.terminate),
            EndingStep::Kill => (StopStep::Kill, EndingStep::GiveUp, self.graces.kill),
            EndingStep::GiveUp => return Some(Exit::Lost("the kernel was killed and does not end".into())),
        };
        let taken = self.transport.stop(step);
        // A step that failed leaves nothing to wait for.
        let grace = if taken.is_ok() { grace } else { Duration::ZERO };
        self.ending = Some(KernelEnding { then: next, until: Instant::now() + grace });
        None
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let running = self.running.as_ref().and_then(|running| {
            let phase = match running.phase {
                // What it did is done, within its time: reading the rest of its output costs the kernel nothing.
                _ if running.reply.is_some() => None,
                Phase::Running { deadline } => deadline,
                Phase::Interrupting { again, until, .. } => again.or(Some(until)),
                Phase::Ending { .. } => None,
            };
            [phase, running.awaited.map(|awaited| awaited.look_at)].into_iter().flatten().min()
        });
        [running, self.ending.map(|ending| ending.until)].into_iter().flatten().min()
    }

    /// Does what is due. `Some` if the kernel is given up.
    pub(super) fn pass_deadlines(&mut self) -> Option<Exit> {
        let now = Instant::now();
        if let Some(exit) = self.look_after(now) {
            return Some(exit);
        }
        if let Some(running) = &mut self.running {
            let timeout = running.timeout;
            match running.phase {
                _ if running.reply.is_some() => {}
                Phase::Running { deadline: Some(deadline) } if deadline <= now => {
                    self.begin_stop(StopReason::TimedOut(timeout.unwrap_or_default()));
                }
                Phase::Interrupting { reason, until, .. } if until <= now => self.end_kernel(reason),
                Phase::Interrupting { reason, again: Some(again), until } if again <= now => {
                    running.phase = Phase::Interrupting { reason, again: None, until };
                    if running.started {
                        self.interrupt_if_started();
                    } else {
                        self.transport.make_way();
                    }
                }
                Phase::Running { .. } | Phase::Interrupting { .. } | Phase::Ending { .. } => {}
            }
        }
        match self.ending {
            Some(KernelEnding { then, until }) if until <= now => self.escalate(then),
            Some(_) | None => None,
        }
    }
}
