//! Two things at once.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Work on this many bytes is worth a thread.
pub(crate) const LARGE: usize = 8 << 20;

/// Does two things at once, `first` on a thread of its own. If the system has no more threads, does one after the other.
pub(crate) fn both<A: Send, B>(first: impl FnOnce() -> A + Send, second: impl FnOnce() -> B) -> (A, B) {
    let first = Mutex::new(Some(first));
    let run_first = || {
        let first = first.lock().unwrap_or_else(PoisonError::into_inner).take();
        first.expect("it is run by one of two, never by both")()
    };
    thread::scope(|scope| match thread::Builder::new().spawn_scoped(scope, run_first) {
        Ok(running) => {
            let second = second();
            (running.join().unwrap_or_else(|panic| resume_unwind(panic)), second)
        }
        Err(_) => (run_first(), second()),
    })
}

#[cfg(test)]
mod tests {
    use super::both;

    #[test]
    fn both_are_done() {
        let mut bytes = [0; 4];
        let (left, right) = bytes.split_at_mut(2);
        assert_eq!(both(|| left.fill(1), || right.fill(2)), ((), ()));
        assert_eq!(bytes, [1, 1, 2, 2]);
    }
}
