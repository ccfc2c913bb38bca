//! The order in which the calls of a client arrived.
//!
//! Servers hand each request to a task of its own, so two calls that arrived one after the other may start in any order.
//! A [`CallPlace`] is taken when a call arrives, before that. The call waits for its turn, and lets the next one pass
//! once its own order is fixed: when its cells are queued in their session, or when it is over.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::toolbox::CallContext;

/// The calls of one client, in the order they arrived. Cheap to clone.
#[derive(Clone, Default)]
pub struct CallLine {
    shared: Arc<LineState>,
}

#[derive(Default)]
struct LineState {
    open: Mutex<OpenPlaces>,
    /// No call with a smaller number is in the line.
    first: watch::Sender<u64>,
}

#[derive(Default)]
struct OpenPlaces {
    last: u64,
    numbers: BTreeSet<u64>,
}

/// A call's place in the line. Cheap to clone; given up by `pass`, or when the last clone is dropped.
#[derive(Clone)]
pub struct CallPlace {
    place: Arc<PlaceInLine>,
}

struct PlaceInLine {
    line: Arc<LineState>,
    number: u64,
}

impl CallLine {
    /// Takes the place of a call that has just arrived.
    pub fn arrive(&self) -> CallPlace {
        let mut open = self.shared.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.last += 1;
        let number = open.last;
        open.numbers.insert(number);
        self.shared.first.send_replace(*open.numbers.first().expect("one was just added"));
        CallPlace { place: Arc::new(PlaceInLine { line: Arc::clone(&self.shared), number }) }
    }
}

impl CallPlace {
    /// Waits until all calls that arrived before have passed. Cancel-safe.
    pub(crate) async fn turn(&self) {
        let mut first = self.place.line.first.subscribe();
        // The sender lives in the line, which the place holds.
        drop(first.wait_for(|first| *first >= self.place.number).await);
    }

    /// Lets the next call go. Calling it again changes nothing.
    pub(crate) fn pass(&self) {
        self.place.pass();
    }
}

impl CallContext {
    /// Waits until the calls that arrived before have their order. A call that is stopped waits no longer.
    pub(crate) async fn turn(&self) {
        if let Some(place) = &self.arrival {
            tokio::select! {
                () = place.turn() => {}
                () = self.stop.cancelled() => {}
            }
        }
    }

    /// Lets the next call of the client go: whatever it does comes after this one.
    pub(crate) fn let_next_pass(&self) {
        if let Some(place) = &self.arrival {
            place.pass();
        }
    }
}

impl PlaceInLine {
    fn pass(&self) {
        let mut open = self.line.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.numbers.remove(&self.number) {
            // Under the lock, so that it only grows.
            self.line.first.send_replace(open.numbers.first().copied().unwrap_or(open.last + 1));
        }
    }
}

impl Drop for PlaceInLine {
    fn drop(&mut self) {
        self.pass();
    }
}

impl fmt::Debug for CallPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallPlace").field(&self.place.number).finish()
    }
}

impl fmt::Debug for CallLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallLine").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_call_waits_for_those_that_arrived_before_it_and_for_no_other() {
        let line = CallLine::default();
        let [first, second, third] = [line.arrive(), line.arrive(), line.arrive()];
        let is_due = |place: &CallPlace| place.turn().now_or_never().is_some();
        assert!(is_due(&first) && !is_due(&second) && !is_due(&third));
        // One that leaves out of order lets nobody overtake the first.
        drop(second.clone());
        second.pass();
        assert!(is_due(&first) && !is_due(&third));
        drop(first);
        assert!(is_due(&third));
        third.pass();
        third.pass();
        assert!(is_due(&line.arrive()));
    }
}
