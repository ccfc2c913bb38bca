//! What a subscriber asked for.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::WireMessage;
use crate::handshake::ConnectionFault;

/// Topics of one subscriber take no more memory than this.
const LIMIT: usize = 64 * 1024;

/// The prefixes that a subscriber wants, each with how often it asked. It takes as many cancels to remove one.
#[derive(Debug, Default)]
pub(crate) struct TopicPrefixes(Mutex<BTreeMap<Bytes, usize>>);

impl TopicPrefixes {
    fn prefixes(&self) -> MutexGuard<'_, BTreeMap<Bytes, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies a subscription in its message form: 1 or 0, then the topic. Returns false if the message was not a
    /// subscription, or changed nothing.
    pub(crate) fn apply(&self, message: &WireMessage) -> Result<bool, ConnectionFault> {
        let [change] = message.as_slice() else { return Ok(false) };
        let mut prefixes = self.prefixes();
        match change.split_first() {
            Some((1, topic)) => {
                let held: usize = prefixes.keys().map(Bytes::len).sum::<usize>() + prefixes.len() * 64;
                if held + topic.len() > LIMIT {
                    return Err(ConnectionFault::Malformed("subscriptions: too many"));
                }
                // Copied: kept for long, and a slice would hold on to the whole read buffer.
                let count = prefixes.entry(Bytes::copy_from_slice(topic)).or_default();
                *count += 1;
                Ok(*count == 1)
            }
            Some((0, topic)) => match prefixes.get_mut(topic) {
                Some(1) => Ok(prefixes.remove(topic).is_some()),
                Some(count) => {
                    *count -= 1;
                    Ok(false)
                }
                None => Ok(false),
            },
            _ => Ok(false),
        }
    }

    /// Whether a message with this first frame is wanted.
    pub(crate) fn want(&self, topic: &[u8]) -> bool {
        self.prefixes().keys().any(|prefix| topic.starts_with(prefix))
    }
}
