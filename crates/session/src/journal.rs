//! What happened in a session lately, for people who watch it.
//!
//! A [`Journal`] keeps the last events of a session, up to a number of bytes. A [`SessionFollower`] reads them, then
//! those that come. Watching never holds up a cell: a reader that falls behind is told how many events it has missed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cellwright_cell::OutputChange;
use cellwright_kernel::{AboutKernel, StopReason};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::comm::Comm;
use crate::daemon::FollowedSession;
use crate::jobs::JobId;
use crate::notice::{Departure, Notice};
use crate::report::CellStatus;

/// What an event takes beside its content.
const EVENT: usize = 160;

/// Something that happened in a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum SessionEvent {
    /// Everything that was kept has been passed on; what follows is new.
    Present,
    /// Events that are not kept any more, or that were too large to be kept.
    Missed {
        /// How many.
        events: u64,
    },
    /// A call's turn has come.
    CallStarted {
        /// Which.
        call: JobId,
    },
    /// A kernel was started.
    KernelStarted(AboutKernel),
    /// A cell is run.
    CellStarted {
        /// In which call.
        call: JobId,
        /// Its place in the call.
        cell: usize,
        /// Its code.
        code: String,
        /// What it is called.
        title: Option<String>,
    },
    /// A cell shows something.
    Output {
        /// In which call. `None` for threads of earlier cells, between calls or during one.
        call: Option<JobId>,
        /// What.
        change: OutputChange,
    },
    /// A message on a comm that no running cell caused.
    Comm(Box<Comm>),
    /// A cell waits for a line from its caller.
    InputAsked {
        /// In which call.
        call: JobId,
        /// What it asks.
        prompt: String,
    },
    /// A cell is being stopped.
    Stopping {
        /// In which call.
        call: JobId,
        /// Why.
        reason: StopReason,
    },
    /// A cell is over.
    CellFinished {
        /// In which call.
        call: JobId,
        /// How it went.
        status: CellStatus,
        /// How long it ran.
        duration: Duration,
        /// The number that the kernel gave it.
        execution_count: Option<u64>,
    },
    /// A call is over.
    CallFinished {
        /// Which.
        call: JobId,
        /// Every cell completed, or raised as it may.
        succeeded: bool,
        /// Why it could not go on, when that was not a cell's doing.
        error: Option<String>,
    },
    /// Something to know.
    Notice(Notice),
    /// The session is over. This is the last event.
    Ended(Departure),
}

impl SessionEvent {
    /// About how many bytes it takes.
    fn weight(&self) -> usize {
        EVENT
            + match self {
                Self::Output { change, .. } => change.weight(),
                Self::CellStarted { code, title, .. } => code.len() + title.as_ref().map_or(0, String::len),
                Self::InputAsked { prompt, .. } => prompt.len(),
                Self::Comm(comm) => comm.weight(),
                Self::CellFinished { status: CellStatus::Error(exception), .. } => exception.weight(),
                Self::Present
                | Self::Missed { .. }
                | Self::CallStarted { .. }
                | Self::KernelStarted(_)
                | Self::CellFinished { .. }
                | Self::CallFinished { .. }
                | Self::Stopping { .. }
                | Self::Notice(_)
                | Self::Ended(_) => 0,
            }
    }
}

/// Where a follower begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FollowFrom {
    /// With everything that is kept.
    Beginning,
    /// With the call that runs, or the one that ran last.
    LastCall,
    /// With what comes.
    Now,
}

/// The last events of a session.
#[derive(Debug)]
pub(crate) struct Journal {
    /// Most bytes that are kept; 0 keeps nothing.
    limit: usize,
    kept: Mutex<KeptEvents>,
    /// How many events there have been.
    count: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct KeptEvents {
    events: VecDeque<Arc<SessionEvent>>,
    bytes: usize,
    /// The number of the first.
    first: u64,
}

impl Journal {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, kept: Mutex::default(), count: watch::Sender::new(0) })
    }

    /// Whether anything is kept, so that somebody may watch.
    pub(crate) fn is_kept(&self) -> bool {
        self.limit > 0
    }

    /// Keeps an event, and lets go of old ones for it. It is only made if it is kept.
    pub(crate) fn record(&self, event: impl FnOnce() -> SessionEvent) {
        if self.limit == 0 {
            return;
        }
        let mut event = event();
        if event.weight() > self.limit {
            event = SessionEvent::Missed { events: 1 };
        }
        let mut kept = self.lock();
        kept.bytes += event.weight();
        kept.events.push_back(Arc::new(event));
        while kept.bytes > self.limit && kept.events.len() > 1 {
            let dropped = kept.events.pop_front().map_or(0, |event| event.weight());
            kept.bytes -= dropped;
            kept.first += 1;
        }
        let count = kept.first + kept.events.len() as u64;
        drop(kept);
        self.count.send_replace(count);
    }

    pub(crate) fn read(self: &Arc<Self>, from: FollowFrom) -> JournalReader {
        let kept = self.lock();
        let end = kept.first + kept.events.len() as u64;
        let next = match from {
            FollowFrom::Beginning => 0,
            FollowFrom::LastCall => {
                let mut newest = kept.events.iter().rev();
                let back = newest.position(|event| matches!(**event, SessionEvent::CallStarted { .. }));
                back.map_or(kept.first, |back| end - 1 - back as u64)
            }
            FollowFrom::Now => end,
        };
        drop(kept);
        let count = self.count.subscribe();
        JournalReader { journal: Arc::clone(self), next, present: Some(end), count }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, KeptEvents> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a journal of this process.
pub(crate) struct JournalReader {
    journal: Arc<Journal>,
    /// The number of the next event.
    next: u64,
    /// How many events there were at the beginning, until they have been read.
    present: Option<u64>,
    count: watch::Receiver<u64>,
}

impl JournalReader {
    /// The next event. Nothing after the last. Cancel-safe.
    async fn next(&mut self) -> Option<Arc<SessionEvent>> {
        loop {
            if self.present.is_some_and(|present| self.next >= present) {
                self.present = None;
                return Some(Arc::new(SessionEvent::Present));
            }
            self.count.borrow_and_update();
            if let Some(event) = self.take() {
                return Some(event);
            }
            self.count.changed().await.ok()?; // never: the journal has the sender, and we have the journal
        }
    }

    fn take(&mut self) -> Option<Arc<SessionEvent>> {
        let kept = self.journal.lock();
        if self.next < kept.first {
            let events = kept.first - self.next;
            self.next = kept.first;
            return Some(Arc::new(SessionEvent::Missed { events }));
        }
        let at = usize::try_from(self.next - kept.first).expect("they are in memory");
        let event = Arc::clone(kept.events.get(at)?);
        self.next += 1;
        Some(event)
    }
}

/// Reads what happens in a session. Dropping it has no effect on the session, which it does not keep alive.
pub struct SessionFollower {
    place: FollowedPlace,
    is_over: bool,
}

enum FollowedPlace {
    Here(JournalReader),
    Daemon(FollowedSession),
}

impl SessionFollower {
    pub(crate) fn here(reader: JournalReader) -> Self {
        Self { place: FollowedPlace::Here(reader), is_over: false }
    }

    pub(crate) fn of_daemon(session: FollowedSession) -> Self {
        Self { place: FollowedPlace::Daemon(session), is_over: false }
    }

    /// The next event. Nothing after [`SessionEvent::Ended`], or when the daemon is gone. Cancel-safe.
    pub fn read(&mut self) -> BoxFuture<'_, Option<Arc<SessionEvent>>> {
        Box::pin(async move {
            if self.is_over {
                return None;
            }
            let event = match &mut self.place {
                FollowedPlace::Here(reader) => reader.next().await,
                FollowedPlace::Daemon(session) => session.next().await,
            };
            self.is_over = event.as_deref().is_none_or(|event| matches!(event, SessionEvent::Ended(_)));
            event
        })
    }
}

impl std::fmt::Debug for SessionFollower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionFollower").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use cellwright_cell::{Output, Stream};
    use futures_util::FutureExt as _;

    use super::*;

    fn printed(text: &str) -> SessionEvent {
        SessionEvent::Output { call: None, change: OutputChange::Added(Output::text(Stream::Stdout, text)) }
    }

    /// What a reader gets at once.
    fn read(reader: &mut JournalReader) -> Vec<String> {
        let mut read = Vec::new();
        while let Some(Some(event)) = reader.next().now_or_never() {
            read.push(match &*event {
                SessionEvent::Output { change: OutputChange::Added(Output::Text { text, .. }), .. } => {
                    text.chars().take(3).collect()
                }
                SessionEvent::Missed { events } => format!("missed {events}"),
                other => format!("{other:?}").split([' ', '(']).next().unwrap_or_default().to_owned(),
            });
        }
        read
    }

    #[test]
    fn a_reader_gets_what_is_kept_and_then_what_comes() {
        let journal = Journal::new(10_000);
        journal.record(|| printed("a"));
        journal.record(|| SessionEvent::CallStarted { call: JobId(1) });
        journal.record(|| printed("b"));
        let mut all = journal.read(FollowFrom::Beginning);
        let mut last = journal.read(FollowFrom::LastCall);
        let mut new = journal.read(FollowFrom::Now);
        assert_eq!(read(&mut all), ["a", "CallStarted", "b", "Present"]);
        assert_eq!(read(&mut last), ["CallStarted", "b", "Present"]);
        assert_eq!(read(&mut new), ["Present"]);
        journal.record(|| printed("c"));
        assert_eq!((read(&mut all), read(&mut new)), (vec!["c".to_owned()], vec!["c".to_owned()]));
    }

    #[test]
    fn a_reader_that_falls_behind_knows_what_it_missed() {
        let journal = Journal::new(3 * (EVENT + 100));
        let mut reader = journal.read(FollowFrom::Now);
        for index in 0..10 {
            journal.record(|| printed(&format!("{index}{}", ".".repeat(99))));
        }
        assert_eq!(read(&mut reader), ["Present", "missed 7", "7..", "8..", "9.."]);
        journal.record(|| printed(&"x".repeat(10_000)));
        assert_eq!(read(&mut reader), ["missed 1"]);
    }
}
