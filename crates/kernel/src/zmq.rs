//! Kernels on this machine over ZeroMQ: any installed kernelspec, or one that runs already.
//!
//! A kernel we start is ours to end; one we attach to is left as we found it.

mod last_words;
mod launch;
mod tcp_kernels;

use std::collections::VecDeque;
use std::future;
use std::time::Duration;

use cellwright_jupyter::{
    Channel, ClientSender, ConnectionFile, HeartbeatState, InterruptMode, JupyterMessage, KernelClient,
    KernelFolder, ReservedAddresses,
};
use cellwright_process::{ChildProcess, Signal};
use futures_util::FutureExt as _;
use tokio::sync::watch;
use tokio::task::unconstrained;
use tokio::time::{Instant, sleep, sleep_until};

pub use launch::{ZmqAttach, ZmqKernel, ZmqLaunch, ZmqLink, ZmqStartError};

use crate::comm::{CommRequest, Comms};
use crate::conversation::Conversation;
use crate::outcome::Exit;
use crate::request::AskError;
use crate::transport::{BoxFuture, Incoming, KernelRequest, QuestionId, StopFailed, StopStep, Transport};
use last_words::last_words;

/// How long nothing may come of the last words of a kernel that has ended. They are in the system's hands by then.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How often it is looked whether they all have.
const LOOK: Duration = Duration::from_millis(5);

/// How often the connections to a kernel of others are looked at.
const LOOK_AT_CONNECTION: Duration = Duration::from_millis(100);

/// Our side of a kernel's five channels.
struct ZmqTransport {
    client: KernelClient,
    sender: ClientSender,
    conversation: Conversation,
    /// What the sockets did not take at once.
    outbox: VecDeque<(Channel, JupyterMessage)>,
    process: KernelProcess,
    life: ZmqLife,
}

/// Which side owns the kernel.
enum KernelProcess {
    Ours(Box<OwnedKernel>),
    Theirs {
        pulse: watch::Receiver<HeartbeatState>,
        /// For how long its heartbeat may stay unanswered.
        silence: Duration,
        /// When it answered for the first time.
        attached: Instant,
        /// Whether the connections were lost when they were looked at last.
        is_lost: bool,
    },
}

/// A kernel that we started.
struct OwnedKernel {
    child: ChildProcess,
    interrupt_mode: InterruptMode,
    /// It was asked or made to end.
    ending: bool,
    _file: ConnectionFile,
    _reserved: ReservedAddresses,
    folder: KernelFolder,
}

enum ZmqLife {
    Alive,
    /// Its process has ended; what it said may be on its way until then.
    Ended {
        exit: Exit,
        until: Instant,
    },
    Over(Exit),
}

impl ZmqTransport {
    fn new(client: KernelClient, process: KernelProcess) -> Self {
        Self {
            sender: client.sender().clone(),
            client,
            conversation: Conversation::default(),
            outbox: VecDeque::new(),
            process,
            life: ZmqLife::Alive,
        }
    }

    fn post(&mut self, message: (Channel, JupyterMessage)) {
        self.outbox.push_back(message);
        self.flush();
    }

    /// Sends what the sockets take now: while a reader is slow, nobody polls [`Transport::recv`].
    fn flush(&mut self) {
        while let Some((channel, message)) = self.outbox.front() {
            let sent = unconstrained(self.sender.send(*channel, message)).now_or_never();
            match sent {
                Some(_) => drop(self.outbox.pop_front()), // fails only for a client that is closed
                None => return,
            }
        }
    }

    /// Waits for something to happen. Cancel-safe: what was received is taken in before the next wait.
    async fn wait(&mut self) {
        let Self { client, sender, outbox, process, .. } = self;
        let is_theirs = matches!(process, KernelProcess::Theirs { .. });
        tokio::select! {
            (channel, message) = client.recv() => {
                self.conversation.hear(sender.session(), channel, &message);
                self.take_gone();
            }
            () = send_first(sender, outbox) => drop(outbox.pop_front()),
            exit = process.ended() => self.end(exit),
            () = sleep(LOOK_AT_CONNECTION), if is_theirs => self.look_at_connection(),
        }
    }

    /// A kernel of others was ended or restarted. For our own kernels the process shows it.
    fn take_gone(&mut self) {
        if let (Some(why), KernelProcess::Theirs { .. }) = (self.conversation.gone(), &self.process) {
            self.conversation.bury();
            self.life = ZmqLife::Over(Exit::Lost(why));
        }
    }

    /// A connection to a kernel of others that was lost and is there again may lead to another kernel: its answer shows it.
    fn look_at_connection(&mut self) {
        let KernelProcess::Theirs { is_lost, .. } = &mut self.process else { return };
        let was_lost = std::mem::replace(is_lost, self.client.is_disconnected());
        if was_lost
            && !*is_lost
            && let Some(message) = self.conversation.restored(self.sender.session())
        {
            self.post(message);
        }
    }

    /// Takes in what is left of a kernel that has ended.
    async fn drain(&mut self, until: Instant) {
        // Looked at first: what comes before the connections are lost is received before that is known.
        let cut_off = self.client.is_disconnected();
        let next = tokio::select! {
            biased; // what is there comes before the end
            next = self.client.recv() => Some(next),
            () = future::ready(()), if cut_off => None,
            () = sleep_until(until) => None,
            () = sleep(LOOK) => return,
        };
        match next {
            Some((channel, message)) => {
                if let ZmqLife::Ended { until, .. } = &mut self.life {
                    *until = Instant::now() + LAST_WORDS; // much may wait, for a reader that is slow
                }
                self.conversation.hear(self.sender.session(), channel, &message);
            }
            None => self.bury(),
        }
    }

    /// The kernel's process has ended, or an attached kernel is out of reach.
    fn end(&mut self, exit: Exit) {
        self.life = ZmqLife::Ended { exit, until: Instant::now() + LAST_WORDS };
    }

    /// Nothing more will come.
    fn bury(&mut self) {
        if let ZmqLife::Ended { exit, .. } = &self.life {
            let exit = exit.clone();
            if let KernelProcess::Ours(owned) = &self.process {
                let said = last_words(&owned.child);
                if !owned.ending && !said.is_empty() {
                    self.conversation.warn(format!("the kernel's last words: {said}"));
                }
            }
            self.conversation.bury();
            self.life = ZmqLife::Over(exit);
        }
    }
}

impl Transport for ZmqTransport {
    fn send(&mut self, request: KernelRequest) {
        if let (KernelProcess::Ours(owned), KernelRequest::Execute { .. }) = (&mut self.process, &request)
            && owned.child.try_wait().is_some()
        {
            return; // it cannot have begun, which its death will show
        }
        if let KernelRequest::Shutdown = request {
            match &mut self.process {
                KernelProcess::Ours(owned) => owned.ending = true,
                KernelProcess::Theirs { .. } => return self.leave("left the kernel, which continues"),
            }
        }
        if let Some(message) = self.conversation.say(self.sender.session(), request) {
            self.post(message);
        }
    }

    fn recv(&mut self) -> BoxFuture<'_, Incoming> {
        Box::pin(async move {
            loop {
                if let Some(incoming) = self.conversation.next() {
                    return incoming;
                }
                match &self.life {
                    ZmqLife::Alive => self.wait().await,
                    ZmqLife::Ended { until, .. } => self.drain(*until).await,
                    ZmqLife::Over(exit) => return Incoming::Closed(exit.clone()),
                }
            }
        })
    }

    fn pass_comms(&mut self, comms: Comms) {
        self.conversation.pass_comms(comms);
    }

    fn ask_comms(&mut self, id: QuestionId, request: CommRequest) -> Result<(), AskError> {
        let message = self.conversation.say_on_comms(self.sender.session(), id, request);
        self.post(message);
        Ok(())
    }

    fn arriving(&self) -> usize {
        self.client.arriving()
    }

    fn stop(&mut self, step: StopStep) -> Result<(), StopFailed> {
        self.conversation.interrupting();
        match (&mut self.process, step) {
            (KernelProcess::Ours(owned), StopStep::Interrupt)
                if owned.interrupt_mode == InterruptMode::Message =>
            {
                self.interrupt_by_message();
                Ok(())
            }
            (KernelProcess::Theirs { .. }, StopStep::Interrupt) => {
                self.interrupt_by_message();
                Ok(())
            }
            (KernelProcess::Ours(owned), _) => {
                let signal = match step {
                    StopStep::Interrupt => Signal::SIGINT,
                    StopStep::Terminate => Signal::SIGTERM,
                    StopStep::Kill => Signal::SIGKILL,
                };
                owned.ending |= step != StopStep::Interrupt;
                owned.child.signal(signal).map_err(|error| StopFailed { step, why: error.to_string() })?;
                if step == StopStep::Interrupt {
                    self.post(Conversation::nudge(self.sender.session()));
                }
                Ok(())
            }
            (KernelProcess::Theirs { .. }, StopStep::Terminate | StopStep::Kill) => {
                self.conversation
                    .warn("the kernel belongs to others: it continues, and so may the cell".to_owned());
                self.leave("left the kernel, which did not stop");
                Ok(())
            }
        }
    }
}

impl ZmqTransport {
    fn interrupt_by_message(&mut self) {
        let message = self.conversation.interrupt(self.sender.session());
        self.post(message);
    }

    /// Leaves a kernel that is not ours.
    fn leave(&mut self, why: &str) {
        self.life = ZmqLife::Over(Exit::Left(why.to_owned()));
    }
}

impl KernelProcess {
    /// Waits until the kernel is gone. Cancel-safe.
    async fn ended(&mut self) -> Exit {
        match self {
            Self::Ours(owned) => Exit::Process(owned.child.wait().await),
            Self::Theirs { pulse, silence, attached, .. } => silent(pulse, *silence, *attached).await,
        }
    }
}

/// Waits until a heartbeat has been silent for long. A kernel that is stopped, or cut off, is as silent as one that ended.
/// What it did not answer before it was `attached` to does not count: it has answered something else since.
async fn silent(pulse: &mut watch::Receiver<HeartbeatState>, silence: Duration, attached: Instant) -> Exit {
    loop {
        let last = *pulse.borrow_and_update();
        let given_up = async {
            match last {
                HeartbeatState::Silent { since } => sleep_until(since.max(attached) + silence).await,
                HeartbeatState::Beating | HeartbeatState::Unknown => future::pending().await,
            }
        };
        tokio::select! {
            changed = pulse.changed() => if changed.is_err() { future::pending().await },
            () = given_up => {
                return Exit::OutOfReach(format!(
                    "the kernel is out of reach: it has not answered its heartbeat for {silence:?}"
                ));
            }
        }
    }
}

/// Sends the first message that waits. Cancel-safe.
async fn send_first(sender: &ClientSender, outbox: &VecDeque<(Channel, JupyterMessage)>) {
    match outbox.front() {
        Some((channel, message)) => drop(sender.send(*channel, message).await), // fails only for a closed client
        None => future::pending().await,
    }
}
