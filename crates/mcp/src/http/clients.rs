//! The clients that are connected over HTTP, and how long each has been silent.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use cellwright_tools::CallLine;
use hyper::body::{Body, Frame, SizeHint};

/// Clients by the id of their session. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct HttpClients(Arc<Mutex<HashMap<Arc<str>, HttpClient>>>);

struct HttpClient {
    /// Requests and streams that are open.
    open: usize,
    heard: Instant,
    /// Its calls, in the order they arrived.
    calls: CallLine,
}

impl HttpClients {
    /// Notes that a client has made a request. It counts as present for as long as the visit lasts.
    pub(super) fn visit(&self, id: &str) -> ClientVisit {
        let id: Arc<str> = id.into();
        let mut guests = self.lock();
        let guest = guests.entry(Arc::clone(&id)).or_insert_with(|| HttpClient {
            open: 0,
            heard: Instant::now(),
            calls: CallLine::default(),
        });
        guest.open += 1;
        let calls = guest.calls.clone();
        drop(guests);
        ClientVisit { guests: self.clone(), id, calls }
    }

    /// The client among these that has been silent for longest and has nothing open. All others are forgotten.
    pub(super) fn longest_silent<'a>(&self, ids: impl Iterator<Item = &'a Arc<str>>) -> Option<Arc<str>> {
        let mut guests = self.lock();
        let ids: Vec<_> = ids.collect();
        guests.retain(|id, guest| guest.open > 0 || ids.contains(&id));
        let silent = guests.iter().filter(|(_, guest)| guest.open == 0);
        silent.min_by_key(|(_, guest)| guest.heard).map(|(id, _)| Arc::clone(id))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, HttpClient>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request of a client, or the stream that answers it.
pub(super) struct ClientVisit {
    guests: HttpClients,
    id: Arc<str>,
    calls: CallLine,
}

impl ClientVisit {
    /// The client's calls, in the order they arrived.
    pub(super) fn calls(&self) -> &CallLine {
        &self.calls
    }

    /// Lasts until the answer has been sent.
    pub(super) fn until_sent<B>(self, body: B) -> AnswerBody<B> {
        AnswerBody { body, _visit: self }
    }
}

impl Drop for ClientVisit {
    fn drop(&mut self) {
        if let Some(guest) = self.guests.lock().get_mut(&self.id) {
            guest.open -= 1;
            guest.heard = Instant::now();
        }
    }
}

/// The body of an answer, with the visit that asked for it.
pub(super) struct AnswerBody<B> {
    body: B,
    _visit: ClientVisit,
}

impl<B: Body + Unpin> Body for AnswerBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_that_was_silent_longest_and_has_nothing_open_goes_first() {
        let guests = HttpClients::default();
        let ids: Vec<Arc<str>> = ["a", "b", "c"].map(Arc::from).to_vec();
        let streaming = guests.visit("a");
        drop(guests.visit("b"));
        drop(guests.visit("c"));
        drop(guests.visit("gone"));
        let silent = || guests.longest_silent(ids.iter()).as_deref().map(str::to_owned);
        assert_eq!(silent().as_deref(), Some("b"));
        drop(guests.visit("b"));
        assert_eq!(silent().as_deref(), Some("c"));
        drop(streaming);
        let _busy = (guests.visit("b"), guests.visit("c"));
        assert_eq!(silent().as_deref(), Some("a"));
    }
}
