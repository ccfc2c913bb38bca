//! The connection to a kernel behind a server, made again when it breaks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cellwright_jupyter::{Channel, JupyterMessage};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at, sleep, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use super::rest::{GatewayError, RestClient};
use super::socket::{Arrival, ServerDialect, Socket};

/// Messages wait here for a reader that is slow; when it is full nothing more is read from the server.
const ROOM: usize = 64;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How often a server is asked for a sign of life, and how long it may go without one.
const PING: Duration = Duration::from_secs(20);
const SILENCE: Duration = Duration::from_mins(1);

/// Carries messages both ways. Dropping it disconnects.
pub(super) struct GatewayLink {
    outgoing: mpsc::UnboundedSender<(Channel, JupyterMessage)>,
    news: mpsc::Receiver<LinkNews>,
    arriving: Arc<AtomicUsize>,
    _task: AbortOnDropHandle<()>,
}

/// What the connection brings.
pub(super) enum LinkNews {
    Message(Channel, Box<JupyterMessage>),
    /// Something came that cannot be read.
    Unreadable(String),
    /// The connection broke, and is there again: what was under way may be lost, or come twice.
    Restored,
    /// It broke, and the kernel is gone.
    Lost(String),
    /// It broke and cannot be made again. The kernel may go on.
    OutOfReach(String),
}

impl GatewayLink {
    /// A server may be out of reach for `away` before its kernel counts as such too.
    pub(super) fn new(rest: Arc<RestClient>, kernel: String, socket: Socket, away: Duration) -> Self {
        // Bounded by what the driver asks for: one cell, its answers, and what callers wait for at a time.
        let (outgoing, orders) = mpsc::unbounded_channel();
        let (teller, news) = mpsc::channel(ROOM);
        let arriving = Arc::clone(&socket.way.arriving);
        let keeper = LinkKeeper { rest, kernel, way: socket.way.clone(), away, orders, news: teller };
        Self { outgoing, news, arriving, _task: AbortOnDropHandle::new(tokio::spawn(keeper.keep(socket))) }
    }

    /// Sends a message, also while the connection is being made again.
    pub(super) fn send(&self, message: (Channel, JupyterMessage)) {
        drop(self.outgoing.send(message)); // a lost link has reported it
    }

    /// How many bytes have come of a message that is not whole yet.
    pub(super) fn arriving(&self) -> usize {
        self.arriving.load(Ordering::Relaxed)
    }

    /// What comes next. Cancel-safe. After [`LinkNews::Lost`] and [`LinkNews::OutOfReach`] nothing comes.
    pub(super) async fn recv(&mut self) -> LinkNews {
        self.news.recv().await.unwrap_or_else(|| LinkNews::OutOfReach("the connection was closed".to_owned()))
    }
}

struct LinkKeeper {
    rest: Arc<RestClient>,
    kernel: String,
    way: ServerDialect,
    away: Duration,
    orders: mpsc::UnboundedReceiver<(Channel, JupyterMessage)>,
    news: mpsc::Sender<LinkNews>,
}

impl LinkKeeper {
    async fn keep(mut self, mut socket: Socket) {
        let mut unsent = None;
        loop {
            let Some(broken) = self.talk(&mut socket, &mut unsent).await else { return socket.close().await };
            tracing::debug!(kernel = self.kernel, broken, "the connection to a kernel broke");
            socket = match self.open_again(&broken).await {
                Ok(socket) => socket,
                Err(end) => return drop(self.news.send(end).await), // the reader may have left
            };
            if self.news.send(LinkNews::Restored).await.is_err() {
                return;
            }
        }
    }

    /// Carries messages until the connection breaks, and says why; `None` when nobody is left to carry for.
    async fn talk(
        &mut self,
        socket: &mut Socket,
        unsent: &mut Option<(Channel, JupyterMessage)>,
    ) -> Option<String> {
        let mut pings = interval_at(Instant::now() + PING, PING);
        let mut heard = Instant::now();
        loop {
            if let Some((channel, message)) = unsent {
                if let Err(broken) = socket.send(*channel, message).await {
                    return Some(broken.why());
                }
                *unsent = None;
            }
            // Room first: what is read must not be lost when something else happens.
            let arrival = async {
                let room = self.news.reserve().await.ok()?;
                Some((room, socket.recv().await))
            };
            tokio::select! {
                order = self.orders.recv() => *unsent = Some(order?),
                arrival = arrival => {
                    let (room, arrival) = arrival?;
                    heard = Instant::now();
                    match arrival {
                        Ok(Arrival::Message(channel, message)) => room.send(LinkNews::Message(channel, message)),
                        Ok(Arrival::Other(Some(error))) => room.send(LinkNews::Unreadable(error.to_string())),
                        Ok(Arrival::Other(None)) => {}
                        Err(broken) => return Some(broken.why()),
                    }
                }
                _ = pings.tick() => {
                    if let Err(broken) = socket.ping().await {
                        return Some(broken.why());
                    }
                }
                () = sleep_until(heard + SILENCE), if self.news.capacity() > 0 => {
                    return Some(format!("the server was silent for {SILENCE:?}"));
                }
            }
        }
    }

    /// The new connection, or what to report instead.
    async fn open_again(&self, broken: &str) -> Result<Socket, LinkNews> {
        let deadline = Instant::now() + self.away;
        let mut pause = FIRST_PAUSE;
        loop {
            match Socket::again(&self.rest.address, &self.kernel, self.way.clone()).await {
                Ok(socket) => return Ok(socket),
                Err(GatewayError::NotFound { .. }) => {
                    return Err(LinkNews::Lost(format!(
                        "the connection broke ({broken}), and the server no longer knows the kernel"
                    )));
                }
                Err(error @ GatewayError::Refused { .. }) => {
                    return Err(LinkNews::OutOfReach(error.to_string()));
                }
                Err(error) if Instant::now() + pause > deadline => {
                    return Err(LinkNews::OutOfReach(format!(
                        "the connection broke ({broken}), and {error}"
                    )));
                }
                Err(_) => sleep(pause).await,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
