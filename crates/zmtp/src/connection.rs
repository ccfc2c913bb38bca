//! One conversation with one peer, after the handshake: reading, writing and heartbeats side by side.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::frame::{FrameDecoder, FrameError, IncomingFrames, put_command, put_part_header, split_command};
use crate::handshake::{ConnectionFault, SocketKind};
use crate::send_queue::{OutboxItem, SendQueue, cost};
use crate::topics::TopicPrefixes;
use crate::{SocketOptions, WireMessage};

/// Frames up to this size are copied into one write; larger ones are written from where they are.
const COALESCE: usize = 16 * 1024;
const WRITE: usize = 64 * 1024;

/// What every connection of a socket shares.
pub(crate) struct SocketCore {
    pub(crate) kind: SocketKind,
    pub(crate) options: SocketOptions,
    pub(crate) closing: CancellationToken,
    pub(crate) tasks: TaskTracker,
    dropped: AtomicU64,
    /// Of a socket with one connection: what has come of a large frame.
    arriving: AtomicUsize,
    deliveries: UnboundedSender<ReceivedMessage>,
}

/// A message on its way to the socket's owner. Its permit returns to the peer's budget when it is taken, which is
/// what bounds the channel.
pub(crate) struct ReceivedMessage {
    pub(crate) peer: Bytes,
    pub(crate) message: WireMessage,
    _permit: OwnedSemaphorePermit,
}

impl SocketCore {
    pub(crate) fn new(
        kind: SocketKind,
        options: SocketOptions,
    ) -> (Self, UnboundedReceiver<ReceivedMessage>) {
        let (deliveries, inbox) = unbounded_channel();
        let core = Self {
            kind,
            options,
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
            dropped: AtomicU64::new(0),
            arriving: AtomicUsize::new(0),
            deliveries,
        };
        (core, inbox)
    }

    pub(crate) fn count_dropped(&self, messages: usize) {
        self.dropped.fetch_add(messages as u64, Ordering::Relaxed);
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(crate) fn arriving(&self) -> usize {
        self.arriving.load(Ordering::Relaxed)
    }

    /// Stops taking part, waits for the last bytes to leave, and says how many messages did not.
    pub(crate) async fn close(&self) -> u64 {
        let before = self.dropped();
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.dropped() - before
    }

    /// Ends when a closed socket has had its time to flush.
    pub(crate) async fn lingered(&self) {
        self.closing.cancelled().await;
        sleep(self.options.linger).await;
    }
}

/// The other end of a connection.
pub(crate) struct ConnectedPeer {
    pub(crate) identity: Bytes,
    pub(crate) outbox: Arc<SendQueue>,
    pub(crate) topics: TopicPrefixes,
    /// The conversation is over, or must be: another connection took over its identity.
    pub(crate) gone: CancellationToken,
    /// The peer has proved its identity. Until then it may send less.
    pub(crate) vouched: CancellationToken,
}

impl ConnectedPeer {
    pub(crate) fn new(identity: Bytes, outbox: Arc<SendQueue>) -> Self {
        let [gone, vouched] = [(); 2].map(|()| CancellationToken::new());
        Self { identity, outbox, topics: TopicPrefixes::default(), gone, vouched }
    }
}

/// Talks until either side ends it, and says why it ended.
pub(crate) async fn converse(
    stream: impl AsyncRead + AsyncWrite,
    decoder: FrameDecoder,
    minor: u8,
    peer: &ConnectedPeer,
    core: &SocketCore,
) -> ConnectionFault {
    let (reader, writer) = tokio::io::split(stream);
    let ended = tokio::select! {
        ended = read(reader, decoder, minor, peer, core) => ended,
        ended = write(writer, minor, &peer.outbox, core) => ended.map_err(ConnectionFault::Io),
        () = peer.gone.cancelled() => return ConnectionFault::Closed,
        () = core.lingered() => return ConnectionFault::Closed,
    };
    let Err(fault) = ended;
    fault
}

async fn read(
    mut reader: impl AsyncRead + Unpin,
    mut decoder: FrameDecoder,
    minor: u8,
    peer: &ConnectedPeer,
    core: &SocketCore,
) -> Result<Infallible, ConnectionFault> {
    let budget = Arc::new(Semaphore::new(core.options.receive_queue));
    let heartbeat = core.options.heartbeat.filter(|_| minor >= 1);
    let mut silence = heartbeat.map(|heartbeat| heartbeat.interval + heartbeat.timeout);
    loop {
        while let Some(incoming) = next_incoming(&mut decoder, peer, core).await? {
            let message = match incoming {
                IncomingFrames::Message(message) => message,
                IncomingFrames::Command(command) => match obey(&command, peer, &mut silence)? {
                    Some(subscription) if core.kind == SocketKind::XPub => vec![subscription],
                    _ => continue,
                },
            };
            if core.kind == SocketKind::XPub && !peer.topics.apply(&message)? {
                continue;
            }
            let charge = cost(&message).min(core.options.receive_queue);
            let charge = u32::try_from(charge).unwrap_or(u32::MAX);
            // Waits while the owner is behind. Others are not held up: each peer has its own budget.
            let permit = tokio::select! {
                permit = Arc::clone(&budget).acquire_many_owned(charge) => permit,
                () = core.closing.cancelled() => continue,
            };
            let permit = permit.expect("the budget is never closed");
            let delivery = ReceivedMessage { peer: peer.identity.clone(), message, _permit: permit };
            drop(core.deliveries.send(delivery)); // the owner may have gone; the peer then sees the end of the stream
        }
        core.arriving.store(decoder.unfinished(), Ordering::Relaxed);
        // Silence is counted while we listen, not while the owner keeps us from listening.
        let filled = decoder.fill(&mut reader);
        let read = match silence {
            Some(limit) => timeout(limit, filled).await.map_err(|_| ConnectionFault::Silent)??,
            None => filled.await?,
        };
        if read == 0 {
            return Err(ConnectionFault::Closed);
        }
    }
}

/// The next message or command. A stranger's message that is too large for strangers stays unread until the owner
/// vouches for the peer: the message that proves its identity may still wait there.
async fn next_incoming(
    decoder: &mut FrameDecoder,
    peer: &ConnectedPeer,
    core: &SocketCore,
) -> Result<Option<IncomingFrames>, ConnectionFault> {
    match decoder.next_incoming() {
        Err(FrameError::TooLarge { size, .. }) if core.options.may_wait_to_send(size) => {
            let vouched = timeout(core.options.handshake, peer.vouched.cancelled());
            vouched.await.map_err(|_| ConnectionFault::Stranger { size })?;
            decoder.accept_messages(core.options.max_message);
            Ok(decoder.next_incoming()?)
        }
        incoming => Ok(incoming?),
    }
}

/// Acts on a command; a subscription comes back in the form it has as a message.
fn obey(
    command: &Bytes,
    peer: &ConnectedPeer,
    silence: &mut Option<Duration>,
) -> Result<Option<Bytes>, ConnectionFault> {
    let (name, mut body) = split_command(command).ok_or(ConnectionFault::Malformed("command"))?;
    let subscription = |flag: u8, topic: &[u8]| Some([&[flag], topic].concat().into());
    match name {
        b"PING" => {
            let tenths = body.try_get_u16().map_err(|_| ConnectionFault::Malformed("PING"))?;
            if tenths > 0 {
                let promised = Duration::from_millis(u64::from(tenths) * 100);
                *silence = Some(silence.map_or(promised, |limit| limit.min(promised)));
            }
            peer.outbox.set_pong(Bytes::copy_from_slice(body.get(..16).unwrap_or(&body)));
            Ok(None)
        }
        b"SUBSCRIBE" => Ok(subscription(1, &body)),
        b"CANCEL" => Ok(subscription(0, &body)),
        b"ERROR" => Err(ConnectionFault::Refused(
            String::from_utf8_lossy(body.get(1..).unwrap_or_default()).into_owned(),
        )),
        _ => Ok(None), // a PONG needs no answer; unknown commands belong to later versions
    }
}

async fn write(
    mut writer: impl AsyncWrite + Unpin,
    minor: u8,
    outbox: &SendQueue,
    core: &SocketCore,
) -> io::Result<Infallible> {
    let heartbeat = core.options.heartbeat.filter(|_| minor >= 1);
    let mut pings = heartbeat.map(|heartbeat| {
        let mut ticks = interval_at(Instant::now() + heartbeat.interval, heartbeat.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let patience = heartbeat.interval + heartbeat.timeout;
        (ticks, u16::try_from(patience.as_millis() / 100).unwrap_or(u16::MAX))
    });
    let mut out = BytesMut::new();
    loop {
        let closing = core.closing.is_cancelled();
        while let Some(item) = outbox.pop() {
            put(&mut writer, &mut out, item, minor).await?;
        }
        if !out.is_empty() {
            writer.write_all(&out).await?;
            out.clear();
        }
        if closing {
            // Closing with unread input would reset the connection and take our last bytes with it:
            // say that we are done and let the reader wait for the peer to hang up.
            writer.shutdown().await?;
            pending::<()>().await;
        }
        tokio::select! {
            () = outbox.filled() => {}
            () = core.closing.cancelled() => {}
            ttl = ping_due(&mut pings) => put_command(&mut out, "PING", &ttl.to_be_bytes()),
        }
    }
}

async fn ping_due(pings: &mut Option<(tokio::time::Interval, u16)>) -> u16 {
    match pings {
        Some((ticks, ttl)) => {
            ticks.tick().await;
            *ttl
        }
        None => pending().await,
    }
}

async fn put(
    writer: &mut (impl AsyncWrite + Unpin),
    out: &mut BytesMut,
    item: OutboxItem,
    minor: u8,
) -> io::Result<()> {
    match item {
        OutboxItem::Message(message) => {
            let mut frames = message.into_iter().peekable();
            while let Some(frame) = frames.next() {
                put_part_header(out, frame.len(), frames.peek().is_some());
                if frame.len() <= COALESCE {
                    out.put_slice(&frame);
                }
                if frame.len() > COALESCE || out.len() >= WRITE {
                    writer.write_all(out).await?;
                    out.clear();
                }
                if frame.len() > COALESCE {
                    writer.write_all(&frame).await?;
                }
            }
        }
        OutboxItem::Subscribe(topic) => put_subscription(out, minor, ("SUBSCRIBE", 1), &topic),
        OutboxItem::Cancel(topic) => put_subscription(out, minor, ("CANCEL", 0), &topic),
        OutboxItem::Pong(context) => put_command(out, "PONG", &context),
    }
    Ok(())
}

fn put_subscription(out: &mut BytesMut, minor: u8, (command, flag): (&str, u8), topic: &[u8]) {
    if minor >= 1 {
        put_command(out, command, topic);
    } else {
        put_part_header(out, 1 + topic.len(), false);
        out.put_u8(flag);
        out.put_slice(topic);
    }
}
