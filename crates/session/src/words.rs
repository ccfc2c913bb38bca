//! The words for how a cell ended, the same at every door.

use std::time::Duration;

use cellwright_kernel::{Fate, StopReason};

use crate::report::{CellStatus, NotRun};
use crate::sessions::InterruptResult;

/// What becomes of a kernel when its cells have been reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelFate {
    /// It keeps its variables.
    Stays,
    /// It ends with its caller, and so do they.
    Ends,
}

impl CellStatus {
    /// How the cell went, in a word or two.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Ok => "ok",
            Self::Error(_) => "error",
            Self::Stopped { .. } => "stopped",
            Self::Died(_) => "died",
            Self::Unknown => "unknown",
            Self::NotRun(_) => "not run",
        }
    }

    /// How the cell ended and what is left of its kernel, to stand after the cell's name.
    pub fn ending(&self, then: KernelFate) -> String {
        match self {
            Self::Ok => "ok".to_owned(),
            Self::Error(exception) => format!("raised {}", exception.name),
            Self::Stopped { reason, kernel } => {
                let why = stopped(*reason);
                match kernel {
                    Fate::Survived if then == KernelFate::Ends => why,
                    Fate::Survived => format!("{why}; the kernel and its variables are there"),
                    Fate::Ended => format!("{why}; the interrupt ended its kernel, the variables are gone"),
                    Fate::Killed => format!("{why}; the kernel had to be killed, its variables are gone"),
                    Fate::Left => {
                        format!("{why}, but the kernel belongs to others: it continues, and so may the cell")
                    }
                    Fate::OutOfReach => {
                        format!("{why}, but the kernel is out of reach: what became of it is not known")
                    }
                }
            }
            Self::Died(death) => format!("did not end: {death}; {}", death.exit.variables()),
            Self::Unknown => {
                "ended, but whether it raised an exception is not known: the kernel's reply was lost"
                    .to_owned()
            }
            Self::Waiting | Self::Running => "has not ended".to_owned(),
            Self::NotRun(NotRun::Stopped) => "was not run, because the call was stopped first".to_owned(),
            Self::NotRun(NotRun::AfterFailure | NotRun::Error | NotRun::Withdrawn) => {
                "was not run".to_owned()
            }
        }
    }
}

fn stopped(reason: StopReason) -> String {
    match reason {
        StopReason::Cancelled => "was cancelled".to_owned(),
        StopReason::TimedOut(limit) => format!("took longer than {} and was stopped", duration_words(limit)),
        StopReason::Interrupted => "was interrupted".to_owned(),
        StopReason::Shutdown => "was ended with its kernel".to_owned(),
    }
}

impl InterruptResult {
    /// What became of an interrupt in this session.
    pub fn in_words(&self, session: &str) -> String {
        match self {
            Self::NothingRan => format!("nothing runs in session {session}"),
            Self::Ended(CellStatus::Stopped { reason: StopReason::Interrupted, kernel: Fate::Survived }) => {
                format!("interrupted the cell in session {session}; its variables are there")
            }
            Self::Ended(CellStatus::Ok) => format!(
                "the cell in session {session} ran to its end: it caught the interrupt, or was just finishing"
            ),
            Self::Ended(status) => {
                format!("the cell in session {session} {}", status.ending(KernelFate::Stays))
            }
            Self::GoesOn(why) => format!(
                "the interrupt was sent, but the cell in session {session} goes on: {why}; a restart would end its kernel"
            ),
        }
    }
}

/// `0.25 s`, `12 s`, `3 min 20 s`
pub fn duration_words(duration: Duration) -> String {
    match duration.as_secs() {
        0..10 => {
            let text = format!("{:.2}", duration.as_secs_f64());
            format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
        }
        seconds @ 10..60 => format!("{seconds} s"),
        seconds if seconds % 60 == 0 => format!("{} min", seconds / 60),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}
