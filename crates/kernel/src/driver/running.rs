//! The cell that runs, and how it ends.

use std::sync::Arc;
use std::time::Duration;

use cellwright_cell::Exception;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::event::InputAnswer;
use crate::execution::Stdin;
use crate::mailbox::Mailbox;
use crate::outcome::{Death, Exit, Fate, FinishedCell, Outcome, StopReason};
use crate::transport::{CellId, Verdict};

/// The cell that was sent to the kernel.
pub(super) struct SentCell {
    pub(super) id: CellId,
    pub(super) mailbox: Arc<Mailbox<FinishedCell>>,
    pub(super) stop: CancellationToken,
    pub(super) timeout: Option<Duration>,
    pub(super) started: bool,
    /// Until it has started.
    pub(super) awaited: Option<StartWait>,
    /// An interrupt was asked for before the cell had started.
    pub(super) interrupt_at_start: bool,
    pub(super) phase: Phase,
    pub(super) exception: Option<Exception>,
    pub(super) reply: Option<(Verdict, Option<u64>)>,
    pub(super) idle: bool,
    /// When half of the end has come: the deadline after which silence counts as the other half.
    pub(super) settled_by: Option<Instant>,
    /// How much had come of an unfinished message when that was looked at last.
    pub(super) arriving: usize,
    pub(super) input: Option<oneshot::Receiver<InputAnswer>>,
    /// Where its requests for input are answered.
    pub(super) stdin: Stdin,
    /// What was left of its time when it asked a person.
    pub(super) time_left: Option<Duration>,
}

/// How the start of a cell is waited for.
#[derive(Clone, Copy)]
pub(super) struct StartWait {
    /// When the kernel is looked at.
    pub(super) look_at: Instant,
    /// Since when nothing has shown that the kernel lives.
    pub(super) silent_since: Instant,
    /// That it takes its time, and why, has been reported.
    pub(super) is_reported: bool,
}

/// How far the stopping of a cell has come.
#[derive(Clone, Copy)]
pub(super) enum Phase {
    Running {
        deadline: Option<Instant>,
    },
    /// At `again` the interrupt is repeated once: code that swallowed the first may heed the second.
    Interrupting {
        reason: StopReason,
        again: Option<Instant>,
        until: Instant,
    },
    Ending {
        reason: StopReason,
    },
}

impl SentCell {
    pub(super) fn new(
        id: CellId,
        mailbox: Arc<Mailbox<FinishedCell>>,
        stop: CancellationToken,
        timeout: Option<Duration>,
        start: Duration,
    ) -> Self {
        let timeout = timeout.filter(|timeout| !timeout.is_zero());
        let now = Instant::now();
        // A deadline beyond the range of the clock means no deadline.
        let deadline = timeout.and_then(|timeout| now.checked_add(timeout));
        Self {
            id,
            mailbox,
            stop,
            timeout,
            started: false,
            awaited: now.checked_add(start).map(|look_at| StartWait {
                look_at,
                silent_since: now,
                is_reported: false,
            }),
            interrupt_at_start: false,
            phase: Phase::Running { deadline },
            exception: None,
            reply: None,
            idle: false,
            settled_by: None,
            arriving: 0,
            input: None,
            stdin: Stdin::Refused,
            time_left: None,
        }
    }

    /// It asks for input. Its time limit does not run while a person thinks.
    pub(super) fn ask(&mut self, input: oneshot::Receiver<InputAnswer>) {
        self.input = Some(input);
        if self.stdin == Stdin::Person
            && let Phase::Running { deadline: deadline @ Some(_) } = &mut self.phase
        {
            self.time_left =
                deadline.take().map(|deadline| deadline.saturating_duration_since(Instant::now()));
        }
    }

    /// It has its answer.
    pub(super) fn resume(&mut self) {
        self.input = None;
        if let (Phase::Running { deadline }, Some(left)) = (&mut self.phase, self.time_left.take()) {
            *deadline = Some(Instant::now() + left);
        }
    }

    /// How the cell ended, by what the kernel said of it.
    pub(super) fn finished(&self, kernel: Fate) -> FinishedCell {
        let (verdict, execution_count) = match self.reply {
            Some((verdict, count)) => (verdict, count),
            // Only the idle came: the cell is over. No exception was shown, which proves nothing: some are only in the reply.
            None => (Verdict::Unknown, None),
        };
        let verdict = match verdict {
            Verdict::Unknown if self.exception.is_some() => Verdict::Error,
            known => known,
        };
        let outcome = match (verdict, self.phase) {
            (_, Phase::Ending { reason })
            | (
                Verdict::Error | Verdict::Interrupted | Verdict::Unknown,
                Phase::Interrupting { reason, .. },
            ) => Outcome::Stopped { reason, kernel },
            (Verdict::Ok, Phase::Interrupting { reason, .. }) if self.ran_on() => {
                Outcome::Stopped { reason, kernel }
            }
            (Verdict::Interrupted, Phase::Running { .. }) => {
                Outcome::Stopped { reason: StopReason::Interrupted, kernel }
            }
            (Verdict::Ok, Phase::Running { .. } | Phase::Interrupting { .. }) => Outcome::Completed,
            (Verdict::Error, Phase::Running { .. }) => {
                Outcome::Raised(self.exception.clone().unwrap_or_default())
            }
            (Verdict::Unknown, Phase::Running { .. }) => Outcome::Unknown,
        };
        FinishedCell { outcome, execution_count }
    }

    /// Whether it ran to its end against its caller's will: beyond its time, or though it was stopped before it started.
    pub(super) fn ran_on(&self) -> bool {
        let is_ok = matches!(self.reply, Some((Verdict::Ok, _)));
        match self.phase {
            Phase::Interrupting { reason: StopReason::TimedOut(_), .. } => is_ok,
            Phase::Interrupting { .. } => is_ok && self.interrupt_at_start,
            Phase::Running { .. } | Phase::Ending { .. } => false,
        }
    }

    fn was_only_interrupted(&self) -> bool {
        matches!(self.phase, Phase::Interrupting { reason, .. } if reason != StopReason::Shutdown)
    }

    /// How the cell ended when the kernel did.
    pub(super) fn buried(&self, exit: &Exit) -> FinishedCell {
        let kernel = match exit {
            Exit::Process(_) | Exit::Lost(_) if self.was_only_interrupted() => Fate::Ended,
            Exit::Process(_) | Exit::Lost(_) => Fate::Killed,
            Exit::Left(_) => Fate::Left,
            Exit::OutOfReach(_) => Fate::OutOfReach,
        };
        let outcome = match self.phase {
            // It had replied: what it did is done.
            _ if self.reply.is_some() => return self.finished(kernel),
            Phase::Running { .. } => Outcome::Died(Death { exit: exit.clone(), started: self.started }),
            Phase::Interrupting { reason, .. } | Phase::Ending { reason } => {
                Outcome::Stopped { reason, kernel }
            }
        };
        FinishedCell { outcome, execution_count: None }
    }
}

/// The end of a cell that was not run because the kernel was shut down.
pub(super) fn shut_down() -> FinishedCell {
    let outcome = Outcome::Stopped { reason: StopReason::Shutdown, kernel: Fate::Killed };
    FinishedCell { outcome, execution_count: None }
}

/// The end of a cell whose caller did not wait for its turn.
pub(super) fn cancelled_in_the_queue() -> FinishedCell {
    let outcome = Outcome::Stopped { reason: StopReason::Cancelled, kernel: Fate::Survived };
    FinishedCell { outcome, execution_count: None }
}
