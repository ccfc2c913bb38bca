//! Kernels behind a Jupyter Kernel Gateway, Jupyter Server or Enterprise Gateway.
//!
//! A kernel is made and ended by REST and talks through a websocket. A connection that breaks is made again under the
//! same session, for which servers keep what was missed; what may be missing anyway is reported.
//!
//! This is much code for the transport that is used least. It stays because founding document 001 asks for gateways, also
//! for one that all processes share, and because a link that breaks without it loses outputs in silence.

mod address;
mod connect;
mod launch;
mod link;
mod listener;
mod lock;
mod rest;
mod seen;
mod shared;
mod socket;

use std::sync::Arc;

use cellwright_jupyter::{Channel, JupyterMessage, MessageSession};
use tokio::task::JoinSet;

pub use address::{Address, InvalidAddress, without_secrets};
pub use launch::{GatewayKernel, GatewayLaunch};
pub use rest::GatewayError;
pub use shared::{GatewayStatus, SharedError, SharedGateway};

use crate::comm::{CommRequest, Comms};
use crate::conversation::Conversation;
use crate::outcome::Exit;
use crate::request::AskError;
use crate::transport::{BoxFuture, Incoming, KernelRequest, QuestionId, StopFailed, StopStep, Transport};
use link::{GatewayLink, LinkNews};
use rest::RestClient;
use seen::SeenMessages;

/// Our side of a kernel behind a server. Dropping it ends a kernel that we started.
struct GatewayTransport {
    rest: Arc<RestClient>,
    kernel: String,
    session: MessageSession,
    link: GatewayLink,
    conversation: Conversation,
    seen: SeenMessages,
    /// Requests to the server that are under way.
    chores: JoinSet<DoneRequest>,
    life: GatewayLife,
    /// It is not ours to end: the server has ended it, or others started it.
    stays: bool,
    owner: KernelOwner,
}

/// Which side started a kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KernelOwner {
    Us,
    Others,
}

enum GatewayLife {
    Alive,
    /// It was asked to end.
    Ending,
    Over(Exit),
}

/// A request to the server that was answered.
enum DoneRequest {
    Interrupt(Result<(), GatewayError>),
    Delete(StopStep, Result<(), GatewayError>),
}

impl GatewayTransport {
    fn new(
        rest: Arc<RestClient>,
        kernel: String,
        session: MessageSession,
        link: GatewayLink,
        owner: KernelOwner,
    ) -> Self {
        Self {
            owner,
            rest,
            kernel,
            session,
            link,
            conversation: Conversation::default(),
            seen: SeenMessages::default(),
            chores: JoinSet::new(),
            life: GatewayLife::Alive,
            stays: owner == KernelOwner::Others,
        }
    }

    async fn wait(&mut self) {
        tokio::select! {
            Some(done) = self.chores.join_next() => {
                self.take_done(done.expect("a request to a server does not panic"));
            }
            news = self.link.recv() => self.take_news(news),
        }
    }

    fn take_news(&mut self, news: LinkNews) {
        match news {
            LinkNews::Message(channel, message) => self.take_message(channel, &message),
            LinkNews::Unreadable(why) => {
                self.conversation.warn(format!("a message of the server was skipped: {why}"));
            }
            LinkNews::Restored => {
                self.seen.expect_repetitions();
                if let Some(probe) = self.conversation.restored(&self.session) {
                    self.link.send(probe);
                }
            }
            LinkNews::Lost(why) => self.end(Exit::Lost(why)),
            LinkNews::OutOfReach(why) => self.end(Exit::OutOfReach(why)),
        }
    }

    fn take_message(&mut self, channel: Channel, message: &JupyterMessage) {
        if self.seen.before(message.header.msg_id()) {
            return;
        }
        self.conversation.hear(&self.session, channel, message);
        if let Some(limit) = seen::rate_limit(channel, message) {
            self.conversation.warn(limit);
        }
        if let (Some(why), GatewayLife::Alive) = (self.conversation.gone(), &self.life) {
            self.end(Exit::Lost(why));
        }
    }

    fn take_done(&mut self, done: DoneRequest) {
        match done {
            DoneRequest::Interrupt(Ok(())) => self.link.send(Conversation::nudge(&self.session)),
            DoneRequest::Interrupt(Err(error)) => {
                tracing::debug!(%error, "the server did not interrupt the kernel; asking the kernel itself");
                let message = self.conversation.interrupt(&self.session);
                self.link.send(message);
            }
            DoneRequest::Delete(_, Ok(())) => {
                self.stays = true;
                self.end(Exit::Lost("the server ended the kernel".to_owned()));
            }
            DoneRequest::Delete(step, Err(error)) => self.conversation.stop_failed(step, error.to_string()),
        }
    }

    fn end(&mut self, exit: Exit) {
        if !matches!(self.life, GatewayLife::Over(_)) {
            self.conversation.bury();
            self.life = GatewayLife::Over(exit);
        }
    }

    fn delete(&mut self, step: StopStep) {
        if self.owner == KernelOwner::Others {
            return self.end(Exit::Left("left the kernel, which continues".to_owned()));
        }
        if matches!(self.life, GatewayLife::Alive) {
            self.life = GatewayLife::Ending;
            let (rest, kernel) = (Arc::clone(&self.rest), self.kernel.clone());
            self.chores.spawn(async move { DoneRequest::Delete(step, rest.delete(&kernel).await) });
        }
    }
}

impl Transport for GatewayTransport {
    fn send(&mut self, request: KernelRequest) {
        if let KernelRequest::Shutdown = request {
            return self.delete(StopStep::Terminate);
        }
        if let Some(message) = self.conversation.say(&self.session, request) {
            self.link.send(message);
        }
    }

    fn recv(&mut self) -> BoxFuture<'_, Incoming> {
        Box::pin(async move {
            loop {
                match (self.conversation.next(), &self.life) {
                    (Some(incoming), _) => return incoming,
                    (None, GatewayLife::Over(exit)) => return Incoming::Closed(exit.clone()),
                    (None, GatewayLife::Alive | GatewayLife::Ending) => self.wait().await,
                }
            }
        })
    }

    fn pass_comms(&mut self, comms: Comms) {
        self.conversation.pass_comms(comms);
    }

    fn ask_comms(&mut self, id: QuestionId, request: CommRequest) -> Result<(), AskError> {
        let message = self.conversation.say_on_comms(&self.session, id, request);
        self.link.send(message);
        Ok(())
    }

    fn arriving(&self) -> usize {
        self.link.arriving()
    }

    fn stop(&mut self, step: StopStep) -> Result<(), StopFailed> {
        self.conversation.interrupting();
        match step {
            StopStep::Interrupt => {
                let (rest, kernel) = (Arc::clone(&self.rest), self.kernel.clone());
                self.chores.spawn(async move { DoneRequest::Interrupt(rest.interrupt(&kernel).await) });
            }
            StopStep::Terminate | StopStep::Kill if self.owner == KernelOwner::Others => {
                self.conversation
                    .warn("the kernel belongs to others: it continues, and so may the cell".to_owned());
                self.end(Exit::Left("left the kernel, which did not stop".to_owned()));
            }
            StopStep::Terminate | StopStep::Kill => self.delete(step),
        }
        Ok(())
    }
}

impl Drop for GatewayTransport {
    fn drop(&mut self) {
        // Also a kernel whose connection was lost, or that its server has just restarted, would stay for ever.
        if let (false, Ok(runtime)) = (self.stays, tokio::runtime::Handle::try_current()) {
            let (rest, kernel) = (Arc::clone(&self.rest), self.kernel.clone());
            // Ends by itself: each request has its time.
            drop(runtime.spawn(async move { rest.delete(&kernel).await }));
        }
    }
}
