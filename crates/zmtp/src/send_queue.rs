//! What waits to be sent to one peer, bounded by bytes.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::WireMessage;
use crate::frame::FRAME_COST;

/// One thing to put on the wire.
#[derive(Debug)]
pub(crate) enum OutboxItem {
    Message(WireMessage),
    Subscribe(Bytes),
    Cancel(Bytes),
    Pong(Bytes),
}

/// A queue that accepts while it holds less than its limit: it holds at most the limit and one message more,
/// so a message of any size can pass.
#[derive(Debug)]
pub(crate) struct SendQueue {
    queue: Mutex<QueuedItems>,
    limit: usize,
    /// Something to send. One waiter: the connection.
    filled: Notify,
    /// Something was sent.
    drained: Notify,
}

#[derive(Debug, Default)]
struct QueuedItems {
    items: VecDeque<OutboxItem>,
    bytes: usize,
    /// The newest unanswered PING. A peer that does not read gets one PONG for all of them.
    pong: Option<Bytes>,
    /// Nothing was sent for as long as a caller was willing to wait. Until something is, no caller waits.
    stalled: bool,
}

impl SendQueue {
    pub(crate) fn new(limit: usize) -> Self {
        Self { queue: Mutex::default(), limit, filled: Notify::new(), drained: Notify::new() }
    }

    fn queue(&self) -> MutexGuard<'_, QueuedItems> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a message, or hands it back when there is no room.
    pub(crate) fn offer(&self, message: WireMessage) -> Result<(), WireMessage> {
        let mut queue = self.queue();
        if queue.bytes >= self.limit {
            return Err(message);
        }
        queue.bytes += cost(&message);
        queue.items.push_back(OutboxItem::Message(message));
        drop(queue);
        self.filled.notify_one();
        Ok(())
    }

    /// Waits for room, then queues. Cancel-safe: the message is queued when this returns, and not before.
    pub(crate) async fn push(&self, mut message: WireMessage) {
        loop {
            let drained = self.drained.notified();
            match self.offer(message) {
                Ok(()) => return,
                Err(back) => message = back,
            }
            drained.await;
        }
    }

    /// Waits for room; gives up on a peer that takes nothing at all for `patience`.
    pub(crate) async fn room(&self, patience: Duration) {
        loop {
            let drained = self.drained.notified();
            let worth_waiting = {
                let queue = self.queue();
                queue.bytes >= self.limit && !queue.stalled
            };
            if !worth_waiting {
                return;
            }
            if timeout(patience, drained).await.is_err() {
                self.queue().stalled = true;
            }
        }
    }

    /// Queues a subscription change. Not bounded here: the caller keeps the set of topics anyway.
    pub(crate) fn push_subscription(&self, item: OutboxItem) {
        self.queue().items.push_back(item);
        self.filled.notify_one();
    }

    /// Replaces everything queued, for a new connection.
    pub(crate) fn restart_with(&self, items: impl Iterator<Item = OutboxItem>) {
        let mut queue = self.queue();
        queue.items = items.collect();
        queue.bytes = 0;
    }

    pub(crate) fn set_pong(&self, context: Bytes) {
        self.queue().pong = Some(context);
        self.filled.notify_one();
    }

    pub(crate) fn pop(&self) -> Option<OutboxItem> {
        let mut queue = self.queue();
        if let Some(context) = queue.pong.take() {
            return Some(OutboxItem::Pong(context));
        }
        let item = queue.items.pop_front()?;
        if let OutboxItem::Message(message) = &item {
            queue.bytes -= cost(message);
        }
        queue.stalled = false;
        drop(queue);
        self.drained.notify_waiters();
        Some(item)
    }

    /// Waits until something may be there to pop. Cancel-safe.
    pub(crate) async fn filled(&self) {
        self.filled.notified().await;
    }

    /// Messages not handed to the system yet.
    pub(crate) fn waiting(&self) -> usize {
        self.queue().items.iter().filter(|item| matches!(item, OutboxItem::Message(_))).count()
    }
}

/// What a message is charged against a queue's limit.
pub(crate) fn cost(message: &WireMessage) -> usize {
    message.iter().map(|frame| FRAME_COST + frame.len()).sum()
}
