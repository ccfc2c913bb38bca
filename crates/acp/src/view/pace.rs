//! The pace of output: how often and how much may be sent.
//!
//! Jupyter Server drops output for good above 1,000 messages a second, or 1 MB a second of stream
//! text, measured over three seconds. It restarts counting when a cell ends, so each turn may begin
//! with a burst.

use std::time::{Duration, Instant};

/// The time between two updates. More than 30 a second are no better to the eye.
const TICK: Duration = Duration::from_millis(33);

/// A bucket that refills, and a clock that ticks.
#[derive(Debug)]
pub(super) struct OutputPace {
    next: Instant,
    filled: Instant,
    left: f64,
    burst: f64,
    per_second: f64,
}

impl OutputPace {
    /// Display messages: at most 2,250 in any three seconds, which leaves room for what others
    /// send.
    pub(super) fn messages(now: Instant) -> Self {
        Self::new(now, 1_500.0, 250.0)
    }

    /// Bytes of stream text: at most 2.4 MB in any three seconds.
    pub(super) fn bytes(now: Instant) -> Self {
        Self::new(now, 1_200_000.0, 400_000.0)
    }

    /// Everything at the next tick, for a client that no server stands before.
    pub(super) fn unlimited(now: Instant) -> Self {
        const ALL: f64 = 1e12;
        Self::new(now, ALL, ALL)
    }

    fn new(now: Instant, burst: f64, per_second: f64) -> Self {
        Self { next: now, filled: now, left: burst, burst, per_second }
    }

    /// Whether the next update may be sent.
    pub(super) fn is_time(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// Notes that an update is sent now.
    pub(super) fn tick(&mut self, now: Instant) {
        self.next = now + TICK;
    }

    /// When this much may be sent, regardless of the tick.
    pub(super) fn affordable_at(&self, cost: f64) -> Instant {
        let missing = (cost.min(self.burst) - self.left).max(0.0);
        self.filled + Duration::from_secs_f64(missing / self.per_second)
    }

    /// When this much may be sent at the next tick.
    pub(super) fn ready_at(&self, cost: f64) -> Instant {
        self.next.max(self.affordable_at(cost))
    }

    /// What may be spent now.
    pub(super) fn afford(&mut self, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.left = (self.left + passed * self.per_second).min(self.burst);
        self.filled = self.filled.max(now);
        self.left
    }

    pub(super) fn spend(&mut self, cost: f64) {
        self.left -= cost;
    }
}
