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
    /// Nothing was heard yet: the kernel may be starting.
    Unknown,
    /// The kernel answered.
    Beating,
    /// It did not answer in time. It may be stopped, gone, or out of reach; an answer makes it beating again.
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
                    (Err(_), HeartbeatState::Beating) => HeartbeatState::Silent { since: asked },
                    (Err(_), unchanged) => unchanged,
                };
                states.send_if_modified(|pulse| std::mem::replace(pulse, next) != next);
                sleep(INTERVAL).await;
            }
        }
        .boxed(),
    );
    (pulse, AbortOnDropHandle::new(task))
}
