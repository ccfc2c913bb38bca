//! When the host's side of a runner wakes up. Waking up for everything a short cell writes would double its time.

use std::thread;
use std::time::{self, Duration};
use std::{future, pin::Pin};

use tokio::task;
use tokio::time::{Instant, Sleep, sleep_until};

use super::pipe::Pipe;

/// A short cell writes marks, then more marks and its frames. For this long only frames wake us; then the text pipes do
/// too.
const SHORT_CELL: Duration = Duration::from_millis(2);

/// For this long the end of a cell is waited for by looking again and again. A processor that has gone to sleep takes
/// longer to wake up than a short cell to run.
const LOOKED_AT: Duration = Duration::from_micros(250);

pub(super) struct Wakeups {
    /// Goes off when it is time to watch the text pipes. One timer for all cells, moved on before it goes off while they
    /// are short: setting one for each would cost more than such a cell.
    alarm: Pin<Box<Sleep>>,
    /// The alarm is set.
    watches_later: bool,
    /// Until when frames are looked for before anyone sleeps: set when a cell is sent.
    looks_until: Option<time::Instant>,
}

impl Wakeups {
    /// Watches the text pipes at once.
    pub(super) fn new() -> Self {
        Self { alarm: Box::pin(sleep_until(Instant::now())), watches_later: true, looks_until: None }
    }

    /// A cell was sent, which may be a short one.
    pub(super) fn cell_sent(&mut self) {
        self.watch_later();
        self.looks_until = Some(time::Instant::now() + LOOKED_AT);
    }

    /// Has the text pipes watched in a moment.
    pub(super) fn watch_later(&mut self) {
        self.alarm.as_mut().reset(Instant::now() + SHORT_CELL);
        self.watches_later = true;
    }

    /// Waits until it is time to watch the text pipes, forever if they are watched already. Cancel-safe.
    pub(super) async fn watch_is_due(&mut self) {
        if !self.watches_later {
            return future::pending().await;
        }
        self.alarm.as_mut().await;
        self.watches_later = false;
    }

    /// Whether to look for frames before anyone sleeps.
    pub(super) fn is_looking(&self) -> bool {
        self.looks_until.is_some()
    }

    /// Looks for frames until there are some, or the time for that is over. Cancel-safe.
    pub(super) async fn look(&mut self, frames: &Pipe) {
        while let Some(until) = self.looks_until {
            if frames.has_more() || time::Instant::now() >= until {
                self.looks_until = None;
                return;
            }
            thread::yield_now(); // the runner may need this processor
            task::yield_now().await; // as other tasks may this thread
        }
    }
}
