//! Sockets that connect to one endpoint and stay connected.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::FutureExt as _;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{sleep, timeout};
use tokio_util::sync::DropGuard;
use tracing::debug;

use crate::connection::{ConnectedPeer, ReceivedMessage, SocketCore, converse};
use crate::endpoint::{Endpoint, EndpointStream};
use crate::frame::FrameDecoder;
use crate::handshake::{ConnectionFault, PeerGreeting, SocketKind, shake_hands};
use crate::send_queue::{OutboxItem, SendQueue};
use crate::{SendError, SocketOptions, WireMessage};

struct PeerLink {
    core: SocketCore,
    endpoint: Endpoint,
    /// Outlives connections: what waits is sent when the endpoint is back.
    outbox: Arc<SendQueue>,
    state: Mutex<LinkState>,
}

#[derive(Default)]
struct LinkState {
    topics: BTreeSet<Bytes>,
    /// Why there is no connection; `None` while there is one.
    trouble: Option<String>,
}

struct ConnectedSocket {
    link: Arc<PeerLink>,
    inbox: UnboundedReceiver<ReceivedMessage>,
    _close: DropGuard,
}

impl ConnectedSocket {
    fn connect(kind: SocketKind, endpoint: &Endpoint, options: SocketOptions) -> Self {
        let outbox = Arc::new(SendQueue::new(options.send_queue));
        let (core, inbox) = SocketCore::new(kind, options);
        let close = core.closing.clone().drop_guard();
        let state = LinkState { trouble: Some("not connected yet".to_owned()), ..LinkState::default() };
        let link = Arc::new(PeerLink { core, endpoint: endpoint.clone(), outbox, state: Mutex::new(state) });
        link.core.tasks.spawn(stay_connected(Arc::clone(&link)).boxed());
        Self { link, inbox, _close: close }
    }

    async fn recv(&mut self) -> WireMessage {
        self.inbox.recv().await.expect("the link holds a sender").message
    }
}

async fn stay_connected(link: Arc<PeerLink>) {
    tokio::select! {
        () = link.attempts() => {}
        () = link.core.lingered() => {}
    }
    link.core.count_dropped(link.outbox.waiting());
}

impl PeerLink {
    fn state(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects again and again until the socket is closed and nothing is left to send.
    async fn attempts(&self) {
        let SocketOptions { reconnect, handshake, .. } = self.core.options;
        let mut pause = reconnect.first;
        loop {
            let fault = tokio::select! {
                reached = timeout(handshake, self.reach()) => match reached {
                    Ok(Ok((stream, decoder, introduction))) => {
                        pause = reconnect.first;
                        self.talk(stream, decoder, &introduction).await
                    }
                    Ok(Err(fault)) => fault,
                    Err(_) => ConnectionFault::HandshakeTimeout,
                },
                () = self.finished() => return,
            };
            debug!(endpoint = %self.endpoint, %fault, "not connected");
            self.state().trouble = Some(fault.to_string());
            tokio::select! {
                () = sleep(pause) => {}
                () = self.finished() => return,
            }
            pause = (pause * 2).min(reconnect.most);
        }
    }

    /// While there is no connection: ends when there is no more need for one.
    async fn finished(&self) {
        self.core.closing.cancelled().await;
        if self.outbox.waiting() > 0 {
            std::future::pending::<()>().await;
        }
    }

    async fn reach(&self) -> Result<(Box<dyn EndpointStream>, FrameDecoder, PeerGreeting), ConnectionFault> {
        let mut stream = self.endpoint.connect().await?;
        let mut decoder = FrameDecoder::for_handshake();
        let identity = &self.core.options.identity;
        let introduction = shake_hands(&mut stream, &mut decoder, self.core.kind, identity).await?;
        decoder.accept_messages(self.core.options.max_message);
        Ok((stream, decoder, introduction))
    }

    async fn talk(
        &self,
        stream: Box<dyn EndpointStream>,
        decoder: FrameDecoder,
        introduction: &PeerGreeting,
    ) -> ConnectionFault {
        {
            let mut state = self.state();
            state.trouble = None;
            if self.core.kind == SocketKind::Sub {
                self.outbox.restart_with(state.topics.iter().cloned().map(OutboxItem::Subscribe));
            }
        }
        let peer = ConnectedPeer::new(introduction.identity.clone(), Arc::clone(&self.outbox));
        converse(stream, decoder, introduction.minor, &peer, &self.core).await
    }

    async fn send(&self, message: WireMessage) -> Result<(), SendError> {
        tokio::select! {
            biased; // a closed socket takes nothing, even when there is room
            () = self.core.closing.cancelled() => Err(SendError::Closed),
            () = self.outbox.push(message) => Ok(()),
        }
    }
}

macro_rules! linked_socket {
    ($socket:ident) => {
        impl $socket {
            /// Starts to connect, and returns at once; the endpoint may come up later. Must be called in a runtime.
            pub fn connect(endpoint: &Endpoint, options: SocketOptions) -> Self {
                Self(ConnectedSocket::connect(SocketKind::$socket, endpoint, options))
            }

            /// Why there is no connection at the moment, for error messages. `None` while there is one.
            pub fn trouble(&self) -> Option<String> {
                self.0.link.state().trouble.clone()
            }

            /// How many bytes have come of a large frame that is not whole yet.
            pub fn arriving(&self) -> usize {
                self.0.link.core.arriving()
            }

            /// Sends what is queued, for up to [`SocketOptions::linger`]. Returns how many messages could not be sent.
            pub async fn close(self) -> u64 {
                self.0.link.core.close().await
            }
        }
    };
}

/// Exchanges messages with one peer, in any order.
pub struct Dealer(ConnectedSocket);
linked_socket!(Dealer);

impl Dealer {
    /// The next message. Cancel-safe.
    pub async fn recv(&mut self) -> WireMessage {
        self.0.recv().await
    }

    /// A handle for sending.
    pub fn sender(&self) -> DealerSender {
        DealerSender(Arc::clone(&self.0.link))
    }
}

/// Sends for a [`Dealer`]. Does not keep it open.
#[derive(Clone)]
pub struct DealerSender(Arc<PeerLink>);

impl DealerSender {
    /// Queues a message, also while there is no connection; waits while the queue is full. Cancel-safe.
    pub async fn send(&self, message: WireMessage) -> Result<(), SendError> {
        self.0.send(message).await
    }
}

/// Sends a request, waits for its reply.
pub struct Req(ConnectedSocket);
linked_socket!(Req);

impl Req {
    /// Sends a request and waits for its reply, for as long as it takes. If this is dropped, the reply may still
    /// come. It is discarded if it has arrived when the next request is made; if it arrives later, it is taken for
    /// the reply to that request. A caller that gives up should therefore mark its requests. An abandoned request
    /// that was not sent yet is never sent.
    pub async fn request(&mut self, request: WireMessage) -> Result<WireMessage, SendError> {
        while self.0.inbox.try_recv().is_ok() {}
        self.0.link.outbox.restart_with(std::iter::empty());
        self.0.link.send([vec![Bytes::new()], request].concat()).await?;
        loop {
            let mut reply = self.0.recv().await;
            if reply.first().is_some_and(Bytes::is_empty) {
                reply.remove(0);
                return Ok(reply);
            }
        }
    }
}

/// Receives what it subscribed to.
pub struct Sub(ConnectedSocket);
linked_socket!(Sub);

impl Sub {
    /// Asks for messages whose first frame starts with `topic`, now and after every reconnect.
    pub fn subscribe(&self, topic: &[u8]) {
        let topic = Bytes::copy_from_slice(topic);
        let mut state = self.0.link.state();
        if state.topics.insert(topic.clone()) {
            self.0.link.outbox.push_subscription(OutboxItem::Subscribe(topic));
        }
    }

    /// Cancels a subscription. Messages that are already on their way still arrive.
    pub fn unsubscribe(&self, topic: &[u8]) {
        let mut state = self.0.link.state();
        if let Some(topic) = state.topics.take(topic) {
            self.0.link.outbox.push_subscription(OutboxItem::Cancel(topic));
        }
    }

    /// The next message. Cancel-safe.
    pub async fn recv(&mut self) -> WireMessage {
        self.0.recv().await
    }
}
