//! Sockets that bind and serve many peers.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{sleep, timeout};
use tokio_util::sync::DropGuard;
use tracing::{debug, warn};

use crate::connection::{ConnectedPeer, ReceivedMessage, SocketCore, converse};
use crate::endpoint::{Endpoint, EndpointListener, EndpointStream};
use crate::frame::FrameDecoder;
use crate::handshake::{ConnectionFault, SocketKind, shake_hands};
use crate::send_queue::SendQueue;
use crate::{SendError, SocketOptions, WireMessage};

/// The peers of a bound socket.
struct PeerHub {
    core: SocketCore,
    peers: Mutex<HashMap<Bytes, Arc<ConnectedPeer>>>,
    newcomers: AtomicU32,
}

struct BoundSocket {
    hub: Arc<PeerHub>,
    inbox: UnboundedReceiver<ReceivedMessage>,
    endpoint: Endpoint,
    _close: DropGuard,
}

impl BoundSocket {
    async fn bind(kind: SocketKind, endpoint: &Endpoint, options: SocketOptions) -> io::Result<Self> {
        let (listener, endpoint) = EndpointListener::bind(endpoint).await?;
        let (core, inbox) = SocketCore::new(kind, options);
        let close = core.closing.clone().drop_guard();
        let hub = Arc::new(PeerHub { core, peers: Mutex::default(), newcomers: AtomicU32::new(0) });
        hub.core.tasks.spawn(accept(Arc::clone(&hub), listener).boxed());
        Ok(Self { hub, inbox, endpoint, _close: close })
    }

    async fn recv(&mut self) -> ReceivedMessage {
        self.inbox.recv().await.expect("the hub holds a sender")
    }
}

async fn accept(hub: Arc<PeerHub>, listener: EndpointListener) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = hub.core.closing.cancelled() => return,
        };
        match accepted {
            Ok(stream) => drop(hub.core.tasks.spawn(serve(Arc::clone(&hub), stream).boxed())),
            Err(error) => {
                // Out of descriptors, most likely: it passes, and spinning would not help.
                warn!(%error, "could not accept a connection");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn serve(hub: Arc<PeerHub>, mut stream: Box<dyn EndpointStream>) {
    let core = &hub.core;
    let mut decoder = FrameDecoder::for_handshake();
    let shaken = tokio::select! {
        shaken = timeout(core.options.handshake, shake_hands(&mut stream, &mut decoder, core.kind, &[])) => shaken,
        () = core.closing.cancelled() => return, // nothing can have been queued for it
    };
    let introduction = match shaken.unwrap_or(Err(ConnectionFault::HandshakeTimeout)) {
        Ok(introduction) => introduction,
        Err(fault) => return debug!(kind = ?core.kind, %fault, "handshake failed"),
    };
    decoder.accept_messages(core.options.limit_of_strangers());
    let peer = hub.admit(introduction.identity);
    let fault = converse(stream, decoder, introduction.minor, &peer, core).await;
    debug!(kind = ?core.kind, peer = ?peer.identity, %fault, "connection ended");
    hub.dismiss(&peer);
}

impl PeerHub {
    fn peers(&self) -> MutexGuard<'_, HashMap<Bytes, Arc<ConnectedPeer>>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a peer. A peer that claims the identity of another replaces it and gets its queue: it is the same
    /// client, and we have not noticed yet that its old connection is dead.
    fn admit(&self, claimed: Bytes) -> Arc<ConnectedPeer> {
        let number = self.newcomers.fetch_add(1, Ordering::Relaxed);
        let routed = self.core.kind == SocketKind::Router && !claimed.is_empty();
        let identity = if routed { claimed } else { [&[0], &number.to_be_bytes()[..]].concat().into() };
        let mut peers = self.peers();
        let outbox = match peers.get(&identity) {
            Some(former) => {
                former.gone.cancel();
                Arc::clone(&former.outbox)
            }
            None => Arc::new(SendQueue::new(self.core.options.send_queue)),
        };
        let peer = Arc::new(ConnectedPeer::new(identity.clone(), outbox));
        peers.insert(identity, Arc::clone(&peer));
        peer
    }

    fn dismiss(&self, peer: &Arc<ConnectedPeer>) {
        peer.gone.cancel();
        let mut peers = self.peers();
        if peers.get(&peer.identity).is_some_and(|current| Arc::ptr_eq(current, peer)) {
            peers.remove(&peer.identity);
            self.core.count_dropped(peer.outbox.waiting());
        }
    }

    fn send(&self, identity: &[u8], message: WireMessage) -> Result<(), SendError> {
        if self.core.closing.is_cancelled() {
            return Err(SendError::Closed);
        }
        let peer = self.peers().get(identity).cloned().ok_or(SendError::Unroutable)?;
        peer.outbox.offer(message).map_err(|_| {
            self.core.count_dropped(1);
            SendError::Full
        })
    }
}

macro_rules! bound_socket {
    ($socket:ident) => {
        impl $socket {
            /// Binds. Afterwards [`Self::endpoint`] has the chosen port.
            pub async fn bind(endpoint: &Endpoint, options: SocketOptions) -> io::Result<Self> {
                BoundSocket::bind(SocketKind::$socket, endpoint, options).await.map(Self)
            }

            /// Where the socket listens.
            pub fn endpoint(&self) -> &Endpoint {
                &self.0.endpoint
            }

            /// How many messages were dropped because a peer read too slowly or left.
            pub fn dropped(&self) -> u64 {
                self.0.hub.core.dropped()
            }

            /// Sends what is queued, for up to [`SocketOptions::linger`], and frees the endpoint. Returns how many
            /// messages could not be sent.
            pub async fn close(self) -> u64 {
                self.0.hub.core.close().await
            }
        }
    };
}

/// Takes messages of many peers and answers each by its identity.
pub struct Router(BoundSocket);
bound_socket!(Router);

impl Router {
    /// The next message and the identity of its sender. Cancel-safe.
    pub async fn recv(&mut self) -> (Bytes, WireMessage) {
        let delivery = self.0.recv().await;
        (delivery.peer, delivery.message)
    }

    /// A handle for sending, to be used wherever answers are made.
    pub fn sender(&self) -> RouterSender {
        RouterSender(Arc::clone(&self.0.hub))
    }
}

/// Sends for a [`Router`]. Does not keep it open.
#[derive(Clone)]
pub struct RouterSender(Arc<PeerHub>);

impl RouterSender {
    /// Queues a message for the peer known as `identity`. Never waits.
    pub fn send(&self, identity: &[u8], message: WireMessage) -> Result<(), SendError> {
        self.0.send(identity, message)
    }

    /// Notes that the peer known as `identity` has proved its identity. It may send messages of up to
    /// [`SocketOptions::max_message`] from now on.
    pub fn vouch(&self, identity: &[u8]) {
        if let Some(peer) = self.0.peers().get(identity) {
            peer.vouched.cancel();
        }
    }
}

/// Takes requests and answers each once.
pub struct Rep(BoundSocket);
bound_socket!(Rep);

/// Where the reply to a request goes.
#[derive(Debug)]
pub struct ReplyTo {
    peer: Bytes,
    envelope: WireMessage,
}

impl Rep {
    /// The next request. Messages without the empty frame that every request starts with are skipped. Cancel-safe.
    pub async fn recv(&mut self) -> (ReplyTo, WireMessage) {
        loop {
            let ReceivedMessage { peer, mut message, .. } = self.0.recv().await;
            if let Some(delimiter) = message.iter().position(Bytes::is_empty) {
                let body = message.split_off(delimiter + 1);
                return (ReplyTo { peer, envelope: message }, body);
            }
        }
    }

    /// Queues the reply. Never waits.
    pub fn send(&self, to: ReplyTo, reply: WireMessage) -> Result<(), SendError> {
        self.0.hub.send(&to.peer, [to.envelope, reply].concat())
    }
}

/// Publishes to all subscribers, and reports their subscriptions.
pub struct XPub(BoundSocket);
bound_socket!(XPub);

/// A change in what a subscriber wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionChange {
    /// For [`XPubSender::send_to`].
    pub peer: Bytes,
    /// The subscription covers messages whose first frame starts with this.
    pub topic: Bytes,
    /// False if the subscription was cancelled.
    pub active: bool,
}

impl XPub {
    /// The next change of a subscription, which already applies. Cancel-safe.
    pub async fn recv(&mut self) -> SubscriptionChange {
        let ReceivedMessage { peer, message, .. } = self.0.recv().await;
        let change = &message[0];
        SubscriptionChange { peer, topic: change.slice(1..), active: change[0] == 1 }
    }

    /// A handle for sending.
    pub fn sender(&self) -> XPubSender {
        XPubSender(Arc::clone(&self.0.hub))
    }
}

/// Sends for an [`XPub`]. Does not keep it open.
#[derive(Clone)]
pub struct XPubSender(Arc<PeerHub>);

impl XPubSender {
    /// Queues a message for every subscriber that wants it. Never waits: if a subscriber's queue is full, it misses
    /// the message, and the miss is counted.
    pub fn send(&self, message: &WireMessage) -> Result<(), SendError> {
        let hub = &self.0;
        if hub.core.closing.is_cancelled() {
            return Err(SendError::Closed);
        }
        let topic = message.first().map_or(&[][..], |frame| frame);
        for peer in hub.peers().values().filter(|peer| peer.topics.want(topic)) {
            if peer.outbox.offer(message.clone()).is_err() {
                hub.core.count_dropped(1);
            }
        }
        Ok(())
    }

    /// Queues a message for one subscriber, whatever it subscribed to. Never waits.
    pub fn send_to(&self, peer: &[u8], message: WireMessage) -> Result<(), SendError> {
        self.0.send(peer, message)
    }

    /// Waits until every subscriber's queue has room, so that the next message is lost to none of them. A
    /// subscriber that takes nothing at all for `patience` is not waited for until it moves again. Cancel-safe.
    pub async fn room(&self, patience: Duration) {
        let peers: Vec<_> = self.0.peers().values().cloned().collect();
        for peer in peers {
            tokio::select! {
                () = peer.outbox.room(patience) => {}
                () = peer.gone.cancelled() => {}
            }
        }
    }
}
