//! Being a kernel.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cellwright_zmtp::{Endpoint, Rep, Router, RouterSender, SendError, SocketOptions, XPub, XPubSender};
use futures_util::FutureExt as _;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, warn};

use crate::Channel;
use crate::codec::{MessageDecoder, SigningKey};
use crate::connection::{ConnectionInfo, SocketTransport, UnsupportedConnection};
use crate::content::{ExecutionState, IopubWelcome, MessageContent, Status};
use crate::json::JsonText;
use crate::message::{JupyterMessage, MessageHeader, MessageSession};

/// A subscriber that takes nothing for this long is not waited for any more.
const PATIENCE: Duration = Duration::from_secs(10);

/// The largest message of a client that has not signed one rightly yet. A signed client may send 1 GiB.
const UNSIGNED: usize = 64 << 20;

/// The largest message on sockets whose messages are never signed: heartbeats and subscriptions.
const UNSIGNED_FOREVER: usize = 64 << 10;

/// A kernel's five sockets. Heartbeats and new subscribers are answered by tasks of its own, whatever its owner does.
pub struct KernelServer {
    info: ConnectionInfo,
    shell: Router,
    control: Router,
    stdin: Router,
    decoder: MessageDecoder,
    sender: ServerSender,
    closing: CancellationToken,
    welcomer: AbortOnDropHandle<u64>,
    heart: AbortOnDropHandle<u64>,
}

/// Why a kernel could not listen.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Not in a way we speak.
    #[error(transparent)]
    Unsupported(#[from] UnsupportedConnection),
    /// A socket could not be bound.
    #[error("could not listen on {endpoint}")]
    Bind {
        /// Where.
        endpoint: Endpoint,
        /// Why.
        source: io::Error,
    },
}

/// What came in.
#[derive(Debug)]
pub enum ClientMessage {
    /// On shell or control: wants a reply.
    Request(ClientRequest),
    /// On stdin: the answer to a question of ours.
    Input(JupyterMessage),
}

/// Answers and publishes for a [`KernelServer`]. Does not keep it open.
#[derive(Clone)]
pub struct ServerSender {
    session: Arc<MessageSession>,
    key: SigningKey,
    shell: RouterSender,
    control: RouterSender,
    stdin: RouterSender,
    iopub: XPubSender,
}

/// How much was left unsent when a server was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloseReport {
    /// Messages that some client did not take in time.
    pub unsent: u64,
}

impl KernelServer {
    /// Binds all sockets. [`Self::info`] then has the ports that were chosen where 0 was given.
    pub async fn bind(info: &ConnectionInfo, session: MessageSession) -> Result<Self, BindError> {
        info.check_supported()?;
        let mut info = info.clone();
        let requests = SocketOptions { max_unvouched: Some(UNSIGNED), ..SocketOptions::default() };
        let small = SocketOptions { max_message: UNSIGNED_FOREVER, ..SocketOptions::default() };
        let shell = bind!(Router, info.endpoint(Channel::Shell), requests)?;
        let control = bind!(Router, info.endpoint(Channel::Control), requests)?;
        let stdin = bind!(Router, info.endpoint(Channel::Stdin), requests)?;
        let iopub = bind!(XPub, info.endpoint(Channel::Iopub), small)?;
        let rep = bind!(Rep, info.heartbeat_endpoint(), small)?;
        let bound =
            [shell.endpoint(), control.endpoint(), stdin.endpoint(), iopub.endpoint(), rep.endpoint()];
        if let (SocketTransport::Tcp, [shell, control, stdin, iopub, hb]) = (info.transport, bound.map(port))
        {
            (info.shell_port, info.control_port, info.stdin_port) = (shell, control, stdin);
            (info.iopub_port, info.hb_port) = (iopub, hb);
        }
        let key = SigningKey::new(&info.key);
        let sender = ServerSender {
            session: Arc::new(session),
            key: key.clone(),
            shell: shell.sender(),
            control: control.sender(),
            stdin: stdin.sender(),
            iopub: iopub.sender(),
        };
        let closing = CancellationToken::new();
        let welcomer = tokio::spawn(welcome(iopub, sender.clone(), closing.clone()).boxed());
        let heart = tokio::spawn(beat(rep, closing.clone()).boxed());
        Ok(Self {
            info,
            shell,
            control,
            stdin,
            decoder: MessageDecoder::new(key).refusing_replays(),
            sender,
            closing,
            welcomer: AbortOnDropHandle::new(welcomer),
            heart: AbortOnDropHandle::new(heart),
        })
    }

    /// Where it listens, for a connection file.
    pub fn info(&self) -> &ConnectionInfo {
        &self.info
    }

    /// The next request, or answer to a question of ours. Control comes first, so that an interrupt does not wait
    /// behind a queue of cells. Messages that are malformed, wrongly signed or repeated are skipped. Cancel-safe.
    pub async fn recv(&mut self) -> ClientMessage {
        loop {
            let (channel, (identity, frames)) = tokio::select! {
                biased;
                received = self.control.recv() => (Channel::Control, received),
                received = self.stdin.recv() => (Channel::Stdin, received),
                received = self.shell.recv() => (Channel::Shell, received),
            };
            let frames = [vec![identity.clone()], frames].concat();
            let decoded = self.decoder.decode(frames);
            if decoded.is_ok() {
                self.sender.router(channel).vouch(&identity);
            }
            match decoded {
                Ok(message) if channel == Channel::Stdin => return ClientMessage::Input(message),
                Ok(message) => {
                    return ClientMessage::Request(ClientRequest::new(self.sender.clone(), channel, message));
                }
                Err(error) => warn!(channel = channel.name(), %error, "skipped a message"),
            }
        }
    }

    /// A handle for answering and publishing.
    pub fn sender(&self) -> &ServerSender {
        &self.sender
    }

    /// Sends what is queued, for up to a second, and frees the endpoints. So the reply to a shutdown request and the last
    /// status reach every client that reads.
    pub async fn close(self) -> CloseReport {
        self.closing.cancel();
        let (shell, control, stdin, iopub, _) = tokio::join!(
            self.shell.close(),
            self.control.close(),
            self.stdin.close(),
            self.welcomer,
            self.heart
        );
        CloseReport {
            unsent: shell + control + stdin + iopub.expect("the welcomer neither panics nor is aborted"),
        }
    }
}

macro_rules! bind {
    ($socket:ident, $endpoint:expr, $options:expr) => {{
        let endpoint = $endpoint;
        $socket::bind(&endpoint, $options.clone())
            .await
            .map_err(|source| BindError::Bind { endpoint, source })
    }};
}
use bind;

fn port(endpoint: &Endpoint) -> u16 {
    match endpoint {
        Endpoint::Tcp { port, .. } => *port,
        Endpoint::Ipc(_) => 0,
    }
}

/// Tells each new subscriber that its subscription is in force, and nobody else.
/// <https://jupyter.org/enhancement-proposals/65-jupyter-xpub/jupyter-xpub.html>
async fn welcome(mut iopub: XPub, sender: ServerSender, closing: CancellationToken) -> u64 {
    loop {
        let subscription = tokio::select! {
            subscription = iopub.recv() => subscription,
            () = closing.cancelled() => return iopub.close().await,
        };
        if !subscription.active {
            continue;
        }
        let topic = String::from_utf8_lossy(&subscription.topic).into_owned();
        let mut message = sender.session.message(&IopubWelcome { subscription: topic, ..Default::default() });
        message.identities.push(subscription.topic);
        if let Err(error) = sender.iopub.send_to(&subscription.peer, sender.key.encode(&message)) {
            debug!(%error, "could not welcome a subscriber");
        }
    }
}

async fn beat(mut rep: Rep, closing: CancellationToken) -> u64 {
    loop {
        let (to, beat) = tokio::select! {
            received = rep.recv() => received,
            () = closing.cancelled() => return rep.close().await,
        };
        if let Err(error) = rep.send(to, beat) {
            debug!(%error, "could not answer a heartbeat");
        }
    }
}

impl ServerSender {
    /// Makes messages of this kernel's session.
    pub fn session(&self) -> &MessageSession {
        &self.session
    }

    /// Publishes a message to everyone. Never waits: a client that lags by more than its queue of 64 MiB misses it. Meant
    /// for status and other messages that a slow reader must not delay.
    pub fn publish(&self, message: JupyterMessage) {
        let topic = Bytes::copy_from_slice(message.header.msg_type().as_bytes());
        let message = JupyterMessage { identities: vec![topic], ..message };
        if let Err(error) = self.iopub.send(&self.key.encode(&message)) {
            debug!(%error, msg_type = message.header.msg_type(), "not published: the kernel is shutting down");
        }
    }

    /// Waits while a reader lags, unless it has stopped reading altogether, then publishes. Meant for output, so that no
    /// reader loses any. Call it where only the code that makes the output waits, not where requests are received: a client
    /// that waits for its reply does not always read iopub. Cancel-safe: a dropped call publishes nothing.
    pub async fn publish_when_read(&self, message: JupyterMessage) {
        self.iopub.room(PATIENCE).await;
        self.publish(message);
    }

    /// Asks the user of the client that sent `request`; the answer arrives as [`ClientMessage::Input`]. False when that
    /// client has no stdin channel open.
    pub fn ask(&self, request: &JupyterMessage, question: &crate::content::InputRequest) -> bool {
        let message = self.session.reply(request, question);
        self.deliver(&self.stdin, &message)
    }

    /// The socket for answers on a channel.
    fn router(&self, channel: Channel) -> &RouterSender {
        match channel {
            Channel::Control => &self.control,
            Channel::Stdin => &self.stdin,
            Channel::Shell | Channel::Iopub => &self.shell, // nothing is received on iopub
        }
    }

    fn deliver(&self, router: &RouterSender, message: &JupyterMessage) -> bool {
        let mut frames = self.key.encode(message);
        let identity = frames.remove(0);
        match router.send(&identity, frames) {
            Ok(()) => true,
            Err(SendError::Unroutable | SendError::Closed) => false, // the client has gone, or we are going
            Err(error @ SendError::Full) => {
                warn!(%error, msg_type = message.header.msg_type(), "a client does not read its replies");
                false
            }
        }
    }
}

/// A request on its way to its reply. Whatever happens to it, the client gets one: dropping it replies with an error.
/// The reply is sent before the kernel says that it is idle.
#[must_use = "dropping a request replies with an error"]
pub struct ClientRequest {
    sender: ServerSender,
    channel: Channel,
    message: JupyterMessage,
    begun: bool,
    replied: bool,
}

impl ClientRequest {
    fn new(sender: ServerSender, channel: Channel, message: JupyterMessage) -> Self {
        Self { sender, channel, message, begun: false, replied: false }
    }

    /// What was asked.
    pub fn message(&self) -> &JupyterMessage {
        &self.message
    }

    /// Shell or control.
    pub fn channel(&self) -> Channel {
        self.channel
    }

    /// For publishing outputs.
    pub fn sender(&self) -> &ServerSender {
        &self.sender
    }

    /// What outputs of this request have as their parent.
    pub fn header(&self) -> &MessageHeader {
        &self.message.header
    }

    /// Announces to all clients that the kernel works on this request.
    pub fn begin(&mut self) {
        if !self.begun {
            self.begun = true;
            self.publish_state(ExecutionState::Busy);
        }
    }

    /// A message caused by this request, to be published.
    pub fn output<C: MessageContent>(&self, content: &C) -> JupyterMessage {
        self.sender.session.message(content).with_parent(self.header())
    }

    /// Replies, then publishes that the work is done.
    pub fn reply<C: MessageContent>(self, content: &C) {
        let reply = self.sender.session.reply(&self.message, content);
        self.reply_with(&reply);
    }

    /// Replies with a message made by [`MessageSession::reply`], for those with metadata or buffers.
    pub fn reply_with(mut self, reply: &JupyterMessage) {
        self.finish(reply);
    }

    /// Ends the work on a message that has no reply, such as those of comms.
    pub fn done(mut self) {
        self.replied = true;
        self.begin();
        self.publish_state(ExecutionState::Idle);
    }

    fn finish(&mut self, reply: &JupyterMessage) {
        self.replied = true;
        self.begin();
        self.sender.deliver(self.sender.router(self.channel), reply);
        self.publish_state(ExecutionState::Idle);
    }

    fn publish_state(&self, execution_state: ExecutionState) {
        self.sender.publish(self.output(&Status { execution_state, ..Status::default() }));
    }
}

impl Drop for ClientRequest {
    fn drop(&mut self) {
        if self.replied {
            return;
        }
        let asked = self.message.header.msg_type();
        let msg_type = format!("{}_reply", asked.strip_suffix("_request").unwrap_or(asked));
        let content = json!({
            "status": "error",
            "ename": "RequestDropped",
            "evalue": format!("the kernel did not answer {asked}"),
            "traceback": [],
        });
        let mut reply = self.sender.session.message_of_type(&msg_type, JsonText::of(&content));
        reply.identities.clone_from(&self.message.identities);
        let reply = reply.with_parent(&self.message.header);
        self.finish(&reply);
    }
}

impl std::fmt::Debug for ClientRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request")
            .field("channel", &self.channel)
            .field("message", &self.message)
            .finish_non_exhaustive()
    }
}
