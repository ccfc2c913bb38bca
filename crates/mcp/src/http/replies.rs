//! Replies that outlive the connection they were meant for.
//!
//! A client whose connection breaks while a call runs comes back with the id of the last event that it saw. rmcp's own
//! sessions forget a stream as soon as its reply was sent, be it into a broken connection. Here each stream is read to its
//! end whether or not a client listens, and what came is kept for a while.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::Either;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt as _, Stream, StreamExt as _, stream};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{
    RestoreOutcome, ServerSseMessage, SessionId, SessionManager,
};
use tokio::sync::mpsc;

/// How long a reply waits for a client that is gone.
const KEPT: Duration = Duration::from_mins(1);

/// Replies of one session that wait. A client that comes back asks for one of the last.
const WAITING: usize = 32;

/// Events of one stream. Older ones are progress, which is worth nothing when it is old.
const EVENTS: usize = 64;

/// Events on their way to a client. One that does not take them is left; it can come back for the rest.
const ON_THE_WAY: usize = 2 * EVENTS;

/// The sessions of HTTP clients, whose replies wait for them.
pub(super) struct HttpSessions {
    pub(super) local: LocalSessionManager,
    streams: KeptStreams,
}

impl HttpSessions {
    pub(super) fn new(local: LocalSessionManager) -> Self {
        Self { local, streams: KeptStreams::default() }
    }
}

impl SessionManager for HttpSessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        self.local.create_session().await
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.local.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.local.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.streams.forget_session(id);
        self.local.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let events = self.local.create_stream(id, message).await?;
        let mut events = events.boxed();
        // It comes at once, and says which stream this is.
        let first = events.next().await;
        let number = first.as_ref().and_then(|event| EventNumber::of(event.event_id.as_deref()?));
        let key = number.map(|number| StreamKey { session: Arc::clone(id), stream: number.stream });
        Ok(self.streams.keep(key, stream::iter(first).chain(events).boxed()))
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.local.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        if let Some(EventNumber { stream, index }) = EventNumber::of(&last_event_id)
            && let Some(rest) = self.streams.rest(&StreamKey { session: Arc::clone(id), stream }, index)
        {
            return Ok(Either::Left(rest));
        }
        Ok(Either::Right(self.local.resume(id, last_event_id).await?))
    }

    async fn restore_session(&self, id: SessionId) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        self.local.restore_session(id).await
    }
}

/// `<index>/<stream>`, as rmcp numbers the events of the stream of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EventNumber {
    index: u64,
    stream: u64,
}

impl EventNumber {
    fn of(event_id: &str) -> Option<Self> {
        let (index, stream) = event_id.split_once('/')?;
        Some(Self { index: index.parse().ok()?, stream: stream.parse().ok()? })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct StreamKey {
    session: SessionId,
    stream: u64,
}

/// Streams that are being read, and those that ended a short while ago. Cheap to clone.
#[derive(Clone, Default)]
struct KeptStreams(Arc<Mutex<StreamTable>>);

#[derive(Default)]
struct StreamTable {
    streams: HashMap<StreamKey, Arc<Mutex<KeptStream>>>,
    /// Those of each session that are over, oldest first. They are at most [`WAITING`].
    over: HashMap<SessionId, VecDeque<u64>>,
}

impl StreamTable {
    /// Makes room for a stream that is over.
    fn end(&mut self, key: &StreamKey) {
        let over = self.over.entry(Arc::clone(&key.session)).or_default();
        over.push_back(key.stream);
        if over.len() > WAITING
            && let Some(oldest) = over.pop_front()
        {
            self.streams.remove(&StreamKey { session: Arc::clone(&key.session), stream: oldest });
        }
    }

    fn remove(&mut self, key: &StreamKey) {
        self.streams.remove(key);
        if let Some(over) = self.over.get_mut(&key.session) {
            over.retain(|stream| *stream != key.stream);
            if over.is_empty() {
                self.over.remove(&key.session);
            }
        }
    }
}

#[derive(Default)]
struct KeptStream {
    events: VecDeque<ServerSseMessage>,
    /// The client's connection, while there is one and more may come.
    client: Option<mpsc::Sender<ServerSseMessage>>,
    is_over: bool,
}

impl KeptStreams {
    /// Reads a stream to its end for the client, which may leave and come back.
    fn keep(
        &self,
        key: Option<StreamKey>,
        events: BoxStream<'static, ServerSseMessage>,
    ) -> impl Stream<Item = ServerSseMessage> + Send + Sync + 'static + use<> {
        let kept = Arc::new(Mutex::new(KeptStream::default()));
        let client = lock(&kept).attach(None);
        if let Some(key) = &key {
            lock(&self.0).streams.insert(key.clone(), Arc::clone(&kept));
        }
        let streams = self.clone();
        // Ends a while after the stream, which ends with its reply or its session.
        drop(tokio::spawn(
            async move {
                let mut events = events;
                while let Some(event) = events.next().await {
                    lock(&kept).push(event);
                }
                drop(events);
                lock(&kept).finish();
                drop(kept);
                if let Some(key) = key {
                    lock(&streams.0).end(&key);
                    tokio::time::sleep(KEPT).await;
                    lock(&streams.0).remove(&key);
                }
            }
            .boxed(),
        ));
        client
    }

    /// What came after an event, and what is still to come. `None` when the stream is not known any more.
    fn rest(
        &self,
        key: &StreamKey,
        after: u64,
    ) -> Option<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static + use<>> {
        let kept = Arc::clone(lock(&self.0).streams.get(key)?);
        let rest = lock(&kept).attach(Some(after));
        Some(rest)
    }

    /// A client that ended its session does not come back.
    fn forget_session(&self, id: &SessionId) {
        let mut table = lock(&self.0);
        table.over.remove(id);
        table.streams.retain(|key, _| key.session != *id);
    }
}

impl KeptStream {
    /// A connection of the client, which gets all that came after an event. It takes the place of an earlier one.
    fn attach(
        &mut self,
        after: Option<u64>,
    ) -> impl Stream<Item = ServerSseMessage> + Send + Sync + 'static + use<> {
        let (client, mut events) = mpsc::channel(ON_THE_WAY);
        let is_new = |event: &&ServerSseMessage| {
            let number = event.event_id.as_deref().and_then(EventNumber::of);
            after.is_none_or(|after| number.is_none_or(|number| number.index > after))
        };
        for event in self.events.iter().filter(is_new) {
            client.try_send(event.clone()).expect("it has room for all that are kept");
        }
        self.client = (!self.is_over).then_some(client);
        stream::poll_fn(move |context| events.poll_recv(context))
    }

    fn push(&mut self, event: ServerSseMessage) {
        if self.client.as_ref().is_some_and(|client| client.try_send(event.clone()).is_err()) {
            self.client = None; // it left, or reads too slowly; what it missed is here
        }
        self.events.push_back(event);
        if self.events.len() > EVENTS {
            self.events.pop_front();
        }
    }

    fn finish(&mut self) {
        self.is_over = true;
        self.client = None;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(index: u64) -> ServerSseMessage {
        ServerSseMessage::priming(format!("{index}/3"), Duration::ZERO)
    }

    fn ids(events: Vec<ServerSseMessage>) -> Vec<String> {
        events.into_iter().filter_map(|event| event.event_id).collect()
    }

    fn key() -> StreamKey {
        StreamKey { session: Arc::from("s"), stream: 3 }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reply_waits_a_minute_for_a_client_whose_connection_broke() {
        let streams = KeptStreams::default();
        let (sender, receiver) = mpsc::channel(8);
        let mut receiver: mpsc::Receiver<ServerSseMessage> = receiver;
        let events = stream::poll_fn(move |context| receiver.poll_recv(context));
        let mut client = Box::pin(streams.keep(Some(key()), events.boxed()));
        sender.send(event(0)).await.unwrap();
        assert_eq!(client.next().await.unwrap().event_id.as_deref(), Some("0/3"));
        drop(client);
        sender.send(event(1)).await.unwrap();
        // It comes back while the call runs, and is cut off again.
        let mut back = Box::pin(streams.rest(&key(), 0).unwrap());
        assert_eq!(back.next().await.unwrap().event_id.as_deref(), Some("1/3"));
        drop(back);
        sender.send(event(2)).await.unwrap();
        drop(sender);
        tokio::time::sleep(KEPT / 2).await;
        // It comes back after the end, twice: nothing says that the first answer arrived.
        for _ in 0..2 {
            assert_eq!(ids(streams.rest(&key(), 1).unwrap().collect().await), ["2/3"]);
        }
        tokio::time::sleep(KEPT).await;
        assert!(streams.rest(&key(), 1).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_last_replies_of_a_session_wait() {
        let streams = KeptStreams::default();
        let of = |stream: u64| StreamKey { session: Arc::from("s"), stream };
        let count = u64::try_from(WAITING).unwrap() + 5;
        for stream in 0..count {
            let client = streams.keep(Some(of(stream)), stream::iter([event(0)]).boxed());
            assert_eq!(client.count().await, 1);
            tokio::task::yield_now().await;
        }
        let waiting = (0..count).filter(|stream| streams.rest(&of(*stream), 0).is_some()).count();
        assert_eq!(waiting, WAITING);
        streams.forget_session(&Arc::from("s"));
        assert!(streams.rest(&of(count - 1), 0).is_none());
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_gets_the_latest_events_when_it_is_back() {
        let streams = KeptStreams::default();
        let many = stream::iter((0..1_000).map(event));
        let client = streams.keep(Some(key()), many.boxed());
        let seen = ids(client.collect().await);
        assert!(seen.len() <= ON_THE_WAY);
        let last: u64 = seen.last().map_or(0, |id| EventNumber::of(id).unwrap().index);
        let rest = ids(streams.rest(&key(), last).unwrap().collect().await);
        assert_eq!(rest.last().map_or(last, |id| EventNumber::of(id).unwrap().index), 999);
    }
}
