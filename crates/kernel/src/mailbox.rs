//! Events on their way from the driver to a reader that may be slow.
//!
//! A mailbox never refuses an event, so nothing is lost. It says when it is full; the driver then
//! stops reading from the kernel, whose pipes fill, which slows the cell down to its reader's pace.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::event::Event;

/// Events, then one `End`.
pub(crate) struct Mailbox<End> {
    state: Mutex<MailboxState<End>>,
    arrived: Notify,
    made_room: Notify,
}

struct MailboxState<End> {
    events: VecDeque<Event>,
    /// The reader has not been woken for the last of them.
    unannounced: bool,
    weight: usize,
    end: Option<End>,
    reader: ReaderState,
}

/// What became of the reading side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReaderState {
    /// It reads, or will.
    Present,
    /// It left, and the events are nobody's.
    Gone,
    /// It left, and the events belong to the session.
    Detached,
}

impl<End: Clone> Mailbox<End> {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(MailboxState {
                events: VecDeque::new(),
                unannounced: false,
                weight: 0,
                end: None,
                reader: ReaderState::Present,
            }),
            arrived: Notify::new(),
            made_room: Notify::new(),
        }
    }

    /// Adds an event. [`Mailbox::announce`] follows when there are no more for now: waking the reader, often on
    /// another thread, costs more than a short cell.
    pub(crate) fn push(&self, event: Event) {
        let mut state = self.lock();
        state.weight += event.weight();
        state.events.push_back(event);
        state.unannounced = true;
    }

    /// Wakes the reader for what was pushed.
    pub(crate) fn announce(&self) {
        if std::mem::take(&mut self.lock().unannounced) {
            self.arrived.notify_one();
        }
    }

    pub(crate) fn close(&self, end: End) {
        let mut state = self.lock();
        state.end.get_or_insert(end);
        state.unannounced = false;
        drop(state);
        self.arrived.notify_one();
    }

    /// What waits to be read, roughly in bytes.
    pub(crate) fn weight(&self) -> usize {
        self.lock().weight
    }

    pub(crate) fn reader(&self) -> ReaderState {
        self.lock().reader
    }

    /// The reading side becomes this.
    pub(crate) fn leave(&self, reader: ReaderState) {
        self.lock().reader = reader;
        self.made_room.notify_one();
    }

    /// Everything that waits.
    pub(crate) fn take_all(&self) -> VecDeque<Event> {
        let mut state = self.lock();
        state.weight = 0;
        std::mem::take(&mut state.events)
    }

    /// Waits until the reader took something or left. Cancel-safe; may return early.
    pub(crate) async fn made_room(&self) {
        self.made_room.notified().await;
    }

    /// The next event, or the end once every event has been read. Cancel-safe.
    pub(crate) async fn next(&self) -> Result<Event, End> {
        loop {
            if let Some(next) = self.try_next() {
                return next;
            }
            self.arrived.notified().await;
        }
    }

    pub(crate) fn try_next(&self) -> Option<Result<Event, End>> {
        let mut state = self.lock();
        match state.events.pop_front() {
            Some(event) => {
                state.weight -= event.weight();
                drop(state);
                self.made_room.notify_one();
                Some(Ok(event))
            }
            None => state.end.clone().map(Err),
        }
    }

    fn lock(&self) -> MutexGuard<'_, MailboxState<End>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<End> fmt::Debug for Mailbox<End> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox").finish_non_exhaustive()
    }
}
