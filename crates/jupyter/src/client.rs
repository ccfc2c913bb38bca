//! Talking to a kernel.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cellwright_zmtp::{Backoff, Dealer, DealerSender, SendError, SocketOptions, Sub};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use crate::Channel;
use crate::codec::{MessageDecoder, SigningKey};
use crate::connection::{ConnectionInfo, UnsupportedConnection};
use crate::content::{KernelInfoReply, KernelInfoRequest, MessageContent};
use crate::heartbeat::{HeartbeatState, watch_pulse};
use crate::message::{JupyterMessage, MessageContentError, MessageHeader, MessageSession};

/// After the kernel has answered, how long its iopub may take before it is asked again.
const PROOF: Duration = Duration::from_millis(250);
/// How often it is asked while iopub is connected: by then every subscription is in force.
const GIVE_UP_PROOF: u32 = 20;
/// A kernel's sockets come up some tenths of a second after its start; looking often costs little.
const RECONNECT: Backoff = Backoff { first: Duration::from_millis(5), most: Duration::from_millis(50) };

/// The five channels to one kernel. They connect by themselves, also to a kernel that is still starting, and again when
/// the connection breaks.
pub struct KernelClient {
    sender: ClientSender,
    shell: Dealer,
    control: Dealer,
    stdin: Dealer,
    iopub: Sub,
    decoder: MessageDecoder,
    rejected: Option<String>,
    pulse: watch::Receiver<HeartbeatState>,
    _heartbeat: AbortOnDropHandle<()>,
}

/// Sends for a [`KernelClient`]. Does not keep it open.
#[derive(Clone)]
pub struct ClientSender {
    session: Arc<MessageSession>,
    key: SigningKey,
    shell: DealerSender,
    control: DealerSender,
    stdin: DealerSender,
}

impl KernelClient {
    /// Starts to connect, and returns at once. Must be called in a runtime.
    pub fn connect(info: &ConnectionInfo, session: MessageSession) -> Result<Self, UnsupportedConnection> {
        info.check_supported()?;
        // A kernel that listens on every interface is found on this machine.
        let ip = if info.ip == "*" { "127.0.0.1".to_owned() } else { info.ip.clone() };
        let local = ConnectionInfo { ip, ..info.clone() };
        // One identity for all: the kernel asks the sender of the request on shell for input on stdin.
        let identity = Bytes::copy_from_slice(session.id().as_bytes());
        let options = SocketOptions { identity, reconnect: RECONNECT, ..SocketOptions::default() };
        let dealer = |channel| Dealer::connect(&local.endpoint(channel), options.clone());
        let (shell, control, stdin) =
            (dealer(Channel::Shell), dealer(Channel::Control), dealer(Channel::Stdin));
        let iopub = Sub::connect(&local.endpoint(Channel::Iopub), options.clone());
        iopub.subscribe(b"");
        let (pulse, heartbeat) = watch_pulse(&local.heartbeat_endpoint(), options);
        let key = SigningKey::new(&info.key);
        let sender = ClientSender {
            session: Arc::new(session),
            key: key.clone(),
            shell: shell.sender(),
            control: control.sender(),
            stdin: stdin.sender(),
        };
        let decoder = MessageDecoder::new(key);
        Ok(Self {
            sender,
            shell,
            control,
            stdin,
            iopub,
            decoder,
            rejected: None,
            pulse,
            _heartbeat: heartbeat,
        })
    }

    /// Waits until the kernel answers and its outputs reach us, however long that takes: the caller sets the deadline,
    /// and finds in [`Self::trouble`] what was missing.
    ///
    /// A subscription takes effect some time after the connection is made, and what is published before is lost. It
    /// is proven by `iopub_welcome`, or by any message at all, such as the status around our own request. So call this
    /// before the first request: whatever arrives meanwhile is dropped. May be cancelled and called again.
    pub async fn ready(&mut self) -> Result<KernelInfoReply, MessageContentError> {
        self.ready_on(&[Channel::Shell]).await
    }

    /// The same for a kernel that may be running a cell of another client: most then answer on control.
    pub async fn ready_though_busy(&mut self) -> Result<KernelInfoReply, MessageContentError> {
        self.ready_on(&[Channel::Shell, Channel::Control]).await
    }

    async fn ready_on(&mut self, channels: &[Channel]) -> Result<KernelInfoReply, MessageContentError> {
        let (mut subscribed, mut unproven) = (false, 0);
        loop {
            let mut asked = Vec::new();
            for channel in channels {
                let question = self.sender.request(*channel, &KernelInfoRequest::default()).await;
                asked.push(question.expect("a socket that we hold is open"));
            }
            let info = loop {
                let (channel, message) = self.recv().await;
                subscribed |= channel == Channel::Iopub;
                if channels.contains(&channel) && asked.iter().any(|asked| message.answers(asked)) {
                    break message;
                }
            };
            let proven = async {
                while !subscribed {
                    subscribed = self.recv().await.0 == Channel::Iopub;
                }
            };
            if timeout(PROOF, proven).await.is_ok() {
                return info.parse();
            }
            // A kernel that publishes no status is against the protocol, and yet of use.
            unproven += u32::from(self.iopub.trouble().is_none());
            if unproven == GIVE_UP_PROOF {
                warn!("the kernel answers but publishes nothing");
                return info.parse();
            }
        }
    }

    /// The next message on any channel. Frames that are not messages, or have a wrong signature, are skipped and
    /// reported by [`Self::trouble`]. Cancel-safe.
    pub async fn recv(&mut self) -> (Channel, JupyterMessage) {
        loop {
            let (channel, frames) = tokio::select! {
                frames = self.iopub.recv() => (Channel::Iopub, frames),
                frames = self.shell.recv() => (Channel::Shell, frames),
                frames = self.stdin.recv() => (Channel::Stdin, frames),
                frames = self.control.recv() => (Channel::Control, frames),
            };
            match self.decoder.decode(frames) {
                Ok(message) => return (channel, message),
                Err(error) => {
                    warn!(channel = channel.name(), %error, "skipped a message");
                    self.rejected = Some(format!("skipped a message on {}: {error}", channel.name()));
                }
            }
        }
    }

    /// A handle for sending.
    pub fn sender(&self) -> &ClientSender {
        &self.sender
    }

    /// How many bytes have come of an output that is not whole yet.
    pub fn arriving(&self) -> usize {
        self.iopub.arriving()
    }

    /// Whether the kernel answers its heartbeat, to be watched.
    pub fn pulse(&self) -> watch::Receiver<HeartbeatState> {
        self.pulse.clone()
    }

    /// What keeps us from talking, for error messages: channels without a connection, the last message skipped.
    pub fn trouble(&self) -> Option<String> {
        let unconnected = [
            ("shell", self.shell.trouble()),
            ("iopub", self.iopub.trouble()),
            ("control", self.control.trouble()),
            ("stdin", self.stdin.trouble()),
        ];
        let unconnected = unconnected.into_iter().filter_map(|(name, why)| Some(format!("{name}: {}", why?)));
        let troubles: Vec<_> = unconnected.chain(self.rejected.clone()).collect();
        (!troubles.is_empty()).then(|| troubles.join("; "))
    }

    /// Whether no channel has a connection. What came before a connection was lost may still wait in [`Self::recv`].
    pub fn is_disconnected(&self) -> bool {
        let troubles =
            [self.shell.trouble(), self.iopub.trouble(), self.control.trouble(), self.stdin.trouble()];
        troubles.iter().all(Option::is_some)
    }

    /// Sends what is queued, for up to a second, then disconnects.
    pub async fn close(self) {
        tokio::join!(self.shell.close(), self.control.close(), self.stdin.close(), self.iopub.close());
    }
}

impl ClientSender {
    /// Makes messages of this client's session.
    pub fn session(&self) -> &MessageSession {
        &self.session
    }

    /// Sends a message. Waits while much is queued. Cancel-safe.
    pub async fn send(&self, channel: Channel, message: &JupyterMessage) -> Result<(), SendError> {
        let sender = match channel {
            Channel::Shell => &self.shell,
            Channel::Control => &self.control,
            Channel::Stdin => &self.stdin,
            Channel::Iopub => return Err(SendError::Unroutable), // one way
        };
        sender.send(self.key.encode(message)).await
    }

    /// Sends a request. Answers and outputs that belong to it have its header as their parent.
    pub async fn request<C: MessageContent>(
        &self,
        channel: Channel,
        content: &C,
    ) -> Result<MessageHeader, SendError> {
        let message = self.session.message(content);
        self.send(channel, &message).await?;
        Ok(message.header)
    }
}
