//! What a connection that broke may have brought twice, and what a server threw away.

use std::collections::{HashSet, VecDeque};

use cellwright_jupyter::content::{MessageContent, StreamOutput};
use cellwright_jupyter::{Channel, JupyterMessage, StreamPieces};

/// How many messages back a repetition is recognised: as many as servers keep for a connection that broke.
const REMEMBERED: usize = 4096;

/// Which messages have come.
#[derive(Default)]
pub(super) struct SeenMessages {
    ids: HashSet<String>,
    order: VecDeque<String>,
    /// The connection has broken at least once, so a server may bring again what has come.
    restored: bool,
}

impl SeenMessages {
    /// Whether a server brings a message again. On a connection that never broke nothing does, whatever a kernel
    /// takes for an id.
    pub(super) fn before(&mut self, id: &str) -> bool {
        if !self.ids.insert(id.to_owned()) {
            return self.restored && !id.is_empty();
        }
        self.order.push_back(id.to_owned());
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        false
    }

    /// The connection broke here.
    pub(super) fn expect_repetitions(&mut self) {
        self.restored = true;
    }
}

/// What to say when a message is a server's word that it throws output away.
pub(super) fn rate_limit(channel: Channel, message: &JupyterMessage) -> Option<String> {
    if channel != Channel::Iopub || message.header.msg_type() != StreamOutput::TYPE {
        return None;
    }
    let beginning = StreamPieces::parse(&message.content).ok()?.next()?;
    let beginning = beginning.trim_start();
    let exceeded = beginning.starts_with("IOPub data rate exceeded")
        || beginning.starts_with("IOPub message rate exceeded");
    exceeded.then(|| {
        "the server threw output away, by its rate limit; start it with --ZMQChannelsWebsocketConnection.limit_rate=False to keep all".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_uses_an_id_twice_loses_no_output() {
        let mut seen = SeenMessages::default();
        assert_eq!(["a", "a", "", ""].map(|id| seen.before(id)), [false; 4]);
        seen.expect_repetitions();
        assert_eq!(["a", "b", "b", "", ""].map(|id| seen.before(id)), [true, false, true, false, false]);
    }
}
