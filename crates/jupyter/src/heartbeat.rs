//! Whether a kernel is alive, asked of its heartbeat channel.

use std::time::Duration;

use bytes::Bytes;
use cellwright_zmtp::{Endpoint, Req, SocketOptions};
use futures_util::FutureExt as _;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

const INTERVAL: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(3);

/// What the heartbeat channel last showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeartbeatState {
    /// The first question is not answered yet.
    Unknown,
    /// The kernel answered.
    Beating,
    /// It did not answer in time. It may be starting, stopped, gone, or out of reach; an answer makes it beating again.
    Silent {
        /// When the unanswered question was asked.
        since: Instant,
    },
}

/// Asks once a second until dropped.
pub(crate) fn watch_pulse(
    endpoint: &Endpoint,
    options: SocketOptions,
) -> (watch::Receiver<HeartbeatState>, AbortOnDropHandle<()>) {
    let (states, pulse) = watch::channel(HeartbeatState::Unknown);
    let mut req = Req::connect(endpoint, options);
    let task = tokio::spawn(
        async move {
            loop {
                let asked = Instant::now();
                let answered = timeout(PATIENCE, req.request(vec![Bytes::from_static(b"ping")])).await;
                let next = match (answered, *states.borrow()) {
                    (Ok(Ok(_)), _) => HeartbeatState::Beating,
                    (Ok(Err(_)), _) => return, // closed
                    (Err(_), HeartbeatState::Unknown | HeartbeatState::Beating) => {
                        HeartbeatState::Silent { since: asked }
                    }
                    (Err(_), silent @ HeartbeatState::Silent { .. }) => silent,
                };
                states.send_if_modified(|pulse| std::mem::replace(pulse, next) != next);
                sleep(INTERVAL).await;
            }
        }
        .boxed(),
    );
    (pulse, AbortOnDropHandle::new(task))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_kernel_that_stops_before_its_first_heartbeat_is_silent() {
        let nobody = Endpoint::Ipc("/nowhere/heartbeat".into());
        let (mut pulse, _task) = watch_pulse(&nobody, SocketOptions::default());
        let asked = Instant::now();
        let silent = pulse.wait_for(|pulse| matches!(pulse, HeartbeatState::Silent { .. }));
        let silent = timeout(10 * PATIENCE, silent).await.expect("nobody answers").expect("watched");
        assert!(matches!(*silent, HeartbeatState::Silent { since } if since <= asked + INTERVAL));
    }
}
