//! ZeroMQ's wire protocol, ZMTP 3.1, for the socket kinds Jupyter uses.
//!
//! [`Router`], [`Rep`] and [`XPub`] bind an endpoint and serve many peers; [`Dealer`], [`Req`] and [`Sub`] connect
//! to one and stay connected: they try again with growing pauses, and a [`Sub`] subscribes again. Endpoints are tcp
//! or Unix sockets, the mechanism is NULL, peers may speak 3.0 or 3.1.
//!
//! ```
//! use cellwright_zmtp::{Dealer, Router, SocketOptions};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut router = Router::bind(&"tcp://127.0.0.1:0".parse()?, SocketOptions::default()).await?;
//! let mut dealer = Dealer::connect(router.endpoint(), SocketOptions::default());
//! dealer.sender().send(vec!["ping".into()]).await?;
//!
//! let (peer, message) = router.recv().await;
//! assert_eq!(message, ["ping"]);
//! router.sender().send(&peer, vec!["pong".into()])?;
//! assert_eq!(dealer.recv().await, ["pong"]);
//! # Ok(())
//! # }
//! ```
//!
//! Promises:
//! - Everything is bounded, see [`SocketOptions`]: frames, messages, the handshake's time, what waits for a peer, what a peer may
//!   have waiting for us. Memory follows the bytes that arrive, never a size that a peer claims.
//! - A peer that stalls, floods or sends garbage costs the others nothing. What had to be dropped is counted.
//! - `close` waits until the system has taken and the peer has seen the last message, up to [`SocketOptions::linger`].
//!   Dropping a socket does the same in the background, as long as the runtime lives.
//! - Every `recv` is cancel-safe: a message is either returned or stays queued. So is every `send`: what was not
//!   queued when the future is dropped is not sent.
//!
//! Messages handed to the system when a connection breaks may or may not have arrived. They are not sent twice.

mod bound;
mod connection;
mod endpoint;
pub mod frame;
mod handshake;
mod linked;
mod send_queue;
mod topics;

use std::time::Duration;

use bytes::Bytes;

pub use bound::{Rep, ReplyTo, Router, RouterSender, SubscriptionChange, XPub, XPubSender};
pub use endpoint::{Endpoint, EndpointError};
pub use linked::{Dealer, DealerSender, Req, Sub};

/// The frames of a message: at least one to be seen on the wire. Cloning shares the bytes.
pub type WireMessage = Vec<Bytes>;

/// The limits and habits of a socket.
#[derive(Debug, Clone)]
pub struct SocketOptions {
    /// How a [`Dealer`] is known to a [`Router`], up to 255 bytes, not starting with zero. Empty: the router makes one up.
    pub identity: Bytes,
    /// The largest message taken from a peer; a larger one ends the connection before it is read.
    pub max_message: usize,
    /// For a [`Router`]: the largest message taken from a peer before [`RouterSender::vouch`]. A larger one is not
    /// read until then, and ends the connection if that takes longer than [`SocketOptions::handshake`]. Without it
    /// every peer may send [`SocketOptions::max_message`].
    pub max_unvouched: Option<usize>,
    /// How many bytes may wait for one peer. A queue takes messages while it holds less.
    pub send_queue: usize,
    /// How many bytes of one peer may wait to be received. Then we stop reading from it.
    pub receive_queue: usize,
    /// How long a peer may take to introduce itself.
    pub handshake: Duration,
    /// Whether to ask peers for signs of life. Their own asking is always answered.
    pub heartbeat: Option<Heartbeat>,
    /// How long a closed socket goes on to send what was queued.
    pub linger: Duration,
    /// Pauses between attempts to connect.
    pub reconnect: Backoff,
}

/// A peer that sends nothing at all for `interval + timeout` counts as dead.
#[derive(Debug, Clone, Copy)]
pub struct Heartbeat {
    /// How often to send a PING.
    pub interval: Duration,
    /// How long to wait for a sign of life after one.
    pub timeout: Duration,
}

/// Pauses that double from `first` to `most`.
#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    /// After the first failure, and again after each connection that worked.
    pub first: Duration,
    /// Never longer than this.
    pub most: Duration,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            identity: Bytes::new(),
            max_message: 1 << 30,
            max_unvouched: None,
            send_queue: 64 << 20,
            receive_queue: 64 << 20,
            handshake: Duration::from_secs(10),
            heartbeat: None,
            linger: Duration::from_secs(1),
            reconnect: Backoff { first: Duration::from_millis(10), most: Duration::from_secs(1) },
        }
    }
}

impl SocketOptions {
    /// The largest message of a peer that nobody has vouched for.
    fn limit_of_strangers(&self) -> usize {
        self.max_unvouched.unwrap_or(self.max_message)
    }

    /// Whether a message that is too large for a stranger may be read later.
    fn may_wait_to_send(&self, size: u64) -> bool {
        self.max_unvouched.is_some() && usize::try_from(size).is_ok_and(|size| size <= self.max_message)
    }
}

/// Why a message could not be queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// No peer has this identity (any more).
    #[error("no such peer is connected")]
    Unroutable,
    /// The peer reads slower than we write; the message was dropped and counted.
    #[error("the peer's queue is full")]
    Full,
    /// The socket was closed.
    #[error("the socket is closed")]
    Closed,
}
