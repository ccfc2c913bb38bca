//! Which of the kernel's messages did not come.
//!
//! Kernels made from ipykernel number their messages at the end of the ids, `SESSION_PROCESS_NUMBER`, over all channels. So it
//! shows when a publisher dropped messages for a slow reader, or a connection that broke lost some.

use std::collections::BTreeMap;

use cellwright_jupyter::JupyterMessage;
use cellwright_jupyter::content::{MessageContent as _, Status};

/// The numbers that have come.
#[derive(Default)]
pub(super) struct MessageNumbers {
    /// The part of the ids before the number.
    kernel: Option<String>,
    session: Option<String>,
    /// Ranges of numbers that have come and are not settled, first to last.
    heard: BTreeMap<u64, u64>,
    /// Everything up to this number is settled.
    settled: u64,
    /// Messages that went to other clients.
    elsewhere: Vec<u64>,
}

impl MessageNumbers {
    /// The number of a message, if its kernel counts.
    pub(super) fn of(message: &JupyterMessage) -> Option<u64> {
        Self::split(message.header.msg_id()).map(|(_, number)| number)
    }

    /// Notes a message.
    pub(super) fn hear(&mut self, message: &JupyterMessage) {
        let Some((kernel, number)) = Self::split(message.header.msg_id()) else { return };
        // A server's own word about a kernel answers nothing, and is numbered by the server.
        if self.kernel.is_none() && message.parent.is_some() {
            self.kernel = Some(kernel.to_owned());
            self.session = Some(message.header.session().to_owned());
            self.settled = number.saturating_sub(1);
        }
        // A forked child counts for itself.
        if self.kernel.as_deref() == Some(kernel) && number > self.settled {
            self.add(number);
        }
    }

    /// Whether a report of the kernel's state is not from the kernel that reported first: one that was started in its place.
    pub(super) fn is_of_another_kernel(&self, message: &JupyterMessage) -> bool {
        // A server's own word about a kernel answers nothing. A forked child keeps the session.
        let reports = message.header.msg_type() == Status::TYPE && message.parent.is_some();
        let is_counted = Self::split(message.header.msg_id()).is_some();
        reports && is_counted && self.session.as_deref().is_some_and(|it| it != message.header.session())
    }

    /// Notes that the reply to a request of another client was made just before this number.
    pub(super) fn reply_elsewhere(&mut self, number: u64) {
        self.elsewhere.push(number);
    }

    /// The last number that has come.
    pub(super) fn last(&self) -> u64 {
        self.heard.last_key_value().map_or(self.settled, |(_, last)| *last)
    }

    /// How many after `first`, up to `last`, did not come and were not for others. They are settled then.
    pub(super) fn missing(&mut self, first: u64, last: u64) -> u64 {
        let first = first.max(self.settled);
        let heard = self.heard.iter().map(|(from, to)| {
            let (from, to) = ((*from).max(first + 1), (*to).min(last));
            (to + 1).saturating_sub(from)
        });
        let heard: u64 = heard.sum();
        let elsewhere = self.elsewhere.iter().filter(|number| (first..=last).contains(number)).count();
        let elsewhere = u64::try_from(elsewhere).unwrap_or(u64::MAX);
        self.settle(last);
        last.saturating_sub(first).saturating_sub(heard).saturating_sub(elsewhere)
    }

    fn settle(&mut self, last: u64) {
        self.settled = self.settled.max(last);
        self.elsewhere.retain(|number| *number > last);
        while let Some(range) = self.heard.first_entry()
            && *range.key() <= last
        {
            let to = range.remove();
            if to > last {
                self.heard.insert(last + 1, to);
            }
        }
    }

    /// The sender and the number in the id of a message, if its kernel is made from ipykernel.
    pub(super) fn split(id: &str) -> Option<(&str, u64)> {
        let (sender, number) = id.rsplit_once('_')?;
        sender.contains('_').then_some(())?;
        Some((sender, number.parse().ok()?))
    }

    fn add(&mut self, number: u64) {
        let before = self.heard.range(..=number).next_back().map(|(from, to)| (*from, *to));
        let (from, mut to) = match before {
            Some((_, to)) if to >= number => return,
            Some((from, to)) if to + 1 == number => (from, number),
            Some(_) | None => (number, number),
        };
        if let Some(next) = self.heard.remove(&(number + 1)) {
            to = next;
        }
        self.heard.insert(from, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_of_ipykernel_have_a_number() {
        assert_eq!(MessageNumbers::split("6c1a-77_4021_12"), Some(("6c1a-77_4021", 12)));
        for id in ["", "12", "a_12", "6c1a_4021_x", "6c1a77"] {
            assert_eq!(MessageNumbers::split(id), None, "{id}");
        }
    }

    /// Against a plain set, for many sequences.
    #[test]
    fn what_did_not_come_is_counted() {
        let mut seed = 1_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..2000 {
            let numbers: Vec<_> = (0..random(80)).map(|_| 1 + random(60)).collect();
            let first = random(60);
            let last = first + random(30);
            let mut counted = MessageNumbers::default();
            for number in &numbers {
                counted.add(*number);
            }
            let absent = |from: u64, to: u64| (from..=to).filter(|it| !numbers.contains(it)).count() as u64;
            assert_eq!(counted.missing(first, last), absent(first + 1, last), "{numbers:?} {first} {last}");
            // What is settled is not counted again; what comes after it is.
            assert_eq!(counted.missing(0, 100), absent(last + 1, 100), "{numbers:?} {first} {last}");
        }
    }
}
