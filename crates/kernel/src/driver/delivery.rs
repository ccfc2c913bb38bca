//! Which reader gets an event, and which is too full for more.

use std::future::pending;
use std::sync::Arc;

use super::Driver;
use super::running::{Phase, SentCell};
use super::stopping::{EndingStep, KernelEnding};
use crate::event::Event;
use crate::mailbox::{Mailbox, ReaderState};
use crate::outcome::{Exit, FinishedCell};

/// How much may wait for a reader before the kernel is held up.
const ROOM: usize = 1 << 20;

/// How much more is taken in while a cell is being stopped: enough for a cell that obeys to say its
/// last words, and a bound for one that goes on printing until it is killed.
const ROOM_TO_STOP: usize = 8 << 20;

impl Driver {
    /// Hands an event of the running cell to its reader.
    pub(super) fn deliver(&self, event: Event) {
        let Some(running) = &self.running else { return self.put_aside(event) };
        match running.mailbox.reader() {
            ReaderState::Present => running.mailbox.push(event),
            ReaderState::Gone => {}
            ReaderState::Detached => {
                running.mailbox.take_all().into_iter().for_each(|unread| self.put_aside(unread));
                self.put_aside(event);
            }
        }
    }

    /// Keeps an event that belongs to no cell for the session.
    pub(super) fn put_aside(&self, event: Event) {
        match self.background.reader() {
            ReaderState::Present => self.background.push(event),
            ReaderState::Gone | ReaderState::Detached => {}
        }
    }

    pub(super) fn close(&self, mailbox: &Mailbox<FinishedCell>, finished: FinishedCell) {
        if mailbox.reader() == ReaderState::Detached {
            mailbox.take_all().into_iter().for_each(|unread| self.put_aside(unread));
        }
        mailbox.close(finished);
    }

    /// The reader that the kernel has to wait for.
    pub(super) fn full_mailbox(&self) -> Option<FullMailbox> {
        if let Some(KernelEnding { then: EndingStep::GiveUp, .. }) = self.ending {
            return None; // it is killed: what is left is what its pipes hold
        }
        let room = match &self.running {
            Some(SentCell { phase: Phase::Interrupting { .. } | Phase::Ending { .. }, .. }) => {
                ROOM + ROOM_TO_STOP
            }
            Some(SentCell { phase: Phase::Running { .. }, .. }) | None => ROOM,
        };
        match &self.running {
            Some(running) if running.mailbox.reader() == ReaderState::Present => {
                (running.mailbox.weight() >= room).then(|| FullMailbox::Cell(Arc::clone(&running.mailbox)))
            }
            // Background output that waits to be read must not keep a cell from starting.
            Some(running) if !running.started => None,
            Some(_) | None => (self.background.weight() >= room)
                .then(|| FullMailbox::Background(Arc::clone(&self.background))),
        }
    }
}

/// Someone the kernel has to wait for.
pub(super) enum FullMailbox {
    Cell(Arc<Mailbox<FinishedCell>>),
    Background(Arc<Mailbox<Exit>>),
}

/// Waits until its reader took something or left. Cancel-safe.
pub(super) async fn made_room(full: Option<&FullMailbox>) {
    match full {
        Some(FullMailbox::Cell(mailbox)) => mailbox.made_room().await,
        Some(FullMailbox::Background(mailbox)) => mailbox.made_room().await,
        None => pending().await,
    }
}
