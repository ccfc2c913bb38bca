//! Connections at a door where anybody on this machine can knock.
//!
//! Whoever has shown a token keeps a place of their own. Strangers share a few places, and the one who has been there
//! for longest makes room: half-sent requests keep nobody out.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The places at one door.
#[derive(Debug)]
pub struct Doorway {
    state: Mutex<DoorwayState>,
    strangers: usize,
    known: usize,
}

#[derive(Debug, Default)]
struct DoorwayState {
    last: u64,
    known: usize,
    /// The oldest first.
    strangers: VecDeque<(u64, oneshot::Sender<()>)>,
}

/// One connection. Dropping it frees its place.
#[derive(Debug)]
pub struct DoorVisitor {
    doorway: Arc<Doorway>,
    number: u64,
    /// Kept by a visitor who is known: nobody else ends the connection.
    known: Mutex<Option<oneshot::Sender<()>>>,
}

/// Resolves when the connection has to make room for another.
pub type TurnedAway = oneshot::Receiver<()>;

impl Doorway {
    /// A door with so many places for strangers, and so many for those who have shown a token.
    pub fn new(strangers: usize, known: usize) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), strangers, known })
    }

    /// Lets a stranger in. If there are too many, the oldest of them goes.
    pub fn enter(self: &Arc<Self>) -> (DoorVisitor, TurnedAway) {
        let (stays, turned_away) = oneshot::channel();
        let mut state = self.lock();
        state.last += 1;
        let number = state.last;
        while state.strangers.len() >= self.strangers {
            drop(state.strangers.pop_front()); // which its connection hears of
        }
        state.strangers.push_back((number, stays));
        drop(state);
        (DoorVisitor { doorway: Arc::clone(self), number, known: Mutex::default() }, turned_away)
    }

    fn lock(&self) -> MutexGuard<'_, DoorwayState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DoorVisitor {
    /// Notes that the visitor has shown a token. `false` if there is no place for one more.
    pub fn recognise(&self) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_some() {
            return true;
        }
        let mut state = self.doorway.lock();
        let Some(at) = state.strangers.iter().position(|(number, _)| *number == self.number) else {
            return false;
        };
        if state.known >= self.doorway.known {
            return false;
        }
        state.known += 1;
        *known = state.strangers.remove(at).map(|(_, stays)| stays);
        true
    }
}

impl Drop for DoorVisitor {
    fn drop(&mut self) {
        let is_known = self.known.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        let mut state = self.doorway.lock();
        if is_known {
            state.known -= 1;
        } else {
            state.strangers.retain(|(number, _)| *number != self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot::error::TryRecvError;

    #[test]
    fn the_oldest_stranger_makes_room_and_known_visitors_stay() {
        let door = Doorway::new(2, 1);
        let (known, mut stays) = door.enter();
        assert!(known.recognise() && known.recognise());
        let mut strangers: Vec<_> = (0..3).map(|_| door.enter()).collect();
        let mut is_out = |at: usize| strangers[at].1.try_recv() == Err(TryRecvError::Closed);
        assert_eq!([is_out(0), is_out(1), is_out(2)], [true, false, false]);
        assert_eq!(stays.try_recv(), Err(TryRecvError::Empty));
        assert!(!strangers[0].0.recognise(), "it is out");
        assert!(!strangers[1].0.recognise(), "there is a place for one");
        drop(known);
        assert!(strangers[1].0.recognise());
        assert_eq!(stays.try_recv(), Err(TryRecvError::Closed));
    }
}
