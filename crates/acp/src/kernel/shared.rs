//! What all cells of a kernel share.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::comms::Comms;
use super::history::History;
use super::stdin::Stdin;
use super::turn::{Place, Stop};
use crate::permission::Policy;

/// Small data behind locks that are never held across an await.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) comms: Comms,
    pub(super) stdin: Stdin,
    pub(super) policy: Mutex<Policy>,
    pub(super) history: Mutex<History>,
    /// Where agents work.
    pub(super) workspace: PathBuf,
    /// How long an agent may take to end a turn it was asked to end.
    pub(super) grace: Duration,
    /// Updates we do not know are shown.
    pub(super) debug: bool,
    running: Mutex<Vec<(u64, Place, Stop)>>,
}

/// A cell at work, as long as this lives.
pub(super) struct Running<'a> {
    shared: &'a Shared,
    number: u64,
}

impl Shared {
    pub(super) fn new(workspace: PathBuf, policy: Policy, grace: Duration, debug: bool) -> Self {
        Self {
            comms: Comms::default(),
            stdin: Stdin::default(),
            policy: Mutex::new(policy),
            history: Mutex::default(),
            workspace,
            grace,
            debug,
            running: Mutex::default(),
        }
    }

    /// Registers a cell for interrupts.
    pub(super) fn begin(&self, place: Place, stop: &Stop) -> Running<'_> {
        let mut running = lock(&self.running);
        let number = running.last().map_or(0, |(number, ..)| number + 1);
        running.push((number, place, stop.clone()));
        Running { shared: self, number }
    }

    /// Stops the cells that a user waits for; where nobody waits for any, those in the background.
    pub(super) fn interrupt(&self) {
        let running = lock(&self.running);
        let waited_for = running.iter().any(|(_, place, _)| *place == Place::Foreground);
        let chosen = if waited_for { Place::Foreground } else { Place::Background };
        running.iter().filter(|(_, place, _)| *place == chosen).for_each(|(.., stop)| stop.interrupt());
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        lock(&self.shared.running).retain(|(number, ..)| *number != self.number);
    }
}

/// Data behind a lock stays usable when somebody panicked with it: each change to it is whole.
pub(super) fn lock<T>(data: &Mutex<T>) -> MutexGuard<'_, T> {
    data.lock().unwrap_or_else(PoisonError::into_inner)
}
