//! The policy of a running kernel, over any transport.
//!
//! One task owns the kernel. It runs one cell at a time, in order, and keeps these promises:
//!
//! - A cell is over when its reply *and* its idle have come, in either order. If only one comes, the driver waits
//!   until no output has come for a while, then ends the cell with a warning.
//! - A timeout or a stop interrupts, then terminates, then kills, and the outcome says what became of
//!   the kernel. An interrupt is sent only once the cell has started, because a kernel between cells
//!   ignores it.
//! - Death is noticed at once, also between cells. A kernel that does not answer is noticed when its next cell does not start.
//! - Output that no running cell caused belongs to the session and is kept as background output.
//! - A reader that stopped reading holds up the cell, loses nothing and delays no stop.

mod delivery;
mod running;
mod starting;
mod stopping;

use std::collections::{HashMap, VecDeque};
use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::task::Poll;

use cellwright_cell::{Output, OutputChange};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

pub use stopping::Graces;

use crate::comm::{CommRequest, Comms};
use crate::event::{CellStage, Event, InputAnswer, KernelInput};
use crate::execution::{KernelCell, Stdin};
use crate::mailbox::Mailbox;
use crate::outcome::{Death, Exit, Fate, FinishedCell, Outcome, StopReason};
use crate::request::{AskError, Question, Reply};
use crate::transport::{CellId, Incoming, KernelRequest, QuestionId, StopFailed, StopStep, Transport};
use delivery::made_room;
use running::{Phase, SentCell};
use stopping::KernelEnding;

/// What a handle asks of the driver.
#[derive(Debug)]
pub(crate) enum DriverCommand {
    Execute { cell: KernelCell, mailbox: Arc<Mailbox<FinishedCell>> },
    Interrupt { answer: oneshot::Sender<Result<(), StopFailed>> },
    Ask { question: Question, answer: oneshot::Sender<Result<Reply, AskError>> },
    PassComms(Comms),
    AskComms { request: CommRequest, answer: oneshot::Sender<Result<Reply, AskError>> },
    Shutdown,
}

/// Not generic: its code is generated once, in this crate, for all transports.
pub(crate) struct Driver {
    transport: Box<dyn Transport>,
    graces: Graces,
    commands: mpsc::Receiver<DriverCommand>,
    background: Arc<Mailbox<Exit>>,
    exit: watch::Sender<Option<Exit>>,
    running: Option<SentCell>,
    waiting: VecDeque<WaitingCell>,
    questions: HashMap<QuestionId, oneshot::Sender<Result<Reply, AskError>>>,
    ending: Option<KernelEnding>,
    last_id: u64,
}

struct WaitingCell {
    cell: KernelCell,
    mailbox: Arc<Mailbox<FinishedCell>>,
}

/// What the driver woke up for.
enum DriverWake {
    Command(Option<DriverCommand>),
    Stop,
    Deadline,
    Answer(InputAnswer),
    Room,
    Incoming(Incoming),
    Silence,
}

impl Driver {
    pub(crate) fn new(
        transport: Box<dyn Transport>,
        graces: Graces,
        commands: mpsc::Receiver<DriverCommand>,
        background: Arc<Mailbox<Exit>>,
        exit: watch::Sender<Option<Exit>>,
    ) -> Self {
        Self {
            transport,
            graces,
            commands,
            background,
            exit,
            running: None,
            waiting: VecDeque::new(),
            questions: HashMap::new(),
            ending: None,
            last_id: 0,
        }
    }

    /// Serves the kernel until it has ended or nobody holds its handle.
    pub(crate) async fn run(mut self) {
        let exit = loop {
            match self.wake().await {
                DriverWake::Command(Some(command)) => self.obey(command),
                DriverWake::Command(None) => {
                    self.abandon();
                    break Exit::Lost("the kernel was dropped".into());
                }
                DriverWake::Stop => self.stop_cells(),
                DriverWake::Deadline => {
                    if let Some(exit) = self.pass_deadlines() {
                        break exit;
                    }
                }
                DriverWake::Answer(answer) => self.answer_input(answer),
                DriverWake::Room => {}
                DriverWake::Silence => self.settle_for_half(),
                DriverWake::Incoming(Incoming::Closed(exit)) => break exit,
                DriverWake::Incoming(incoming) => {
                    self.take(incoming);
                    // What came with it needs no other wake-up: a short cell says all it has to say at once.
                    while self.full_mailbox().is_none()
                        && let Some(incoming) = self.transport.try_recv()
                    {
                        self.take(incoming);
                    }
                }
            }
            self.start_next();
        };
        self.bury(exit).await;
    }

    /// Nobody holds the kernel any more: it dies with the transport.
    fn abandon(&mut self) {
        if let Some(running) = &mut self.running {
            running.phase = Phase::Ending { reason: StopReason::Shutdown };
        }
        for waiting in self.waiting.drain(..) {
            waiting.mailbox.close(running::shut_down());
        }
    }

    async fn wake(&mut self) -> DriverWake {
        let full = self.full_mailbox();
        let deadline = self.next_deadline();
        let settled_by = self.running.as_ref().and_then(|running| running.settled_by);
        let Self { transport, commands, running, waiting, background, .. } = self;
        let mailbox = running.as_ref().map(|running| Arc::clone(&running.mailbox));
        let (stop, input) = match running {
            Some(SentCell { stop, input, phase: Phase::Running { .. }, .. }) => {
                (Some(&*stop), input.as_mut())
            }
            Some(SentCell { input, .. }) => (None, input.as_mut()),
            None => (None, None),
        };
        let woken = tokio::select! {
            // Stopping beats output: a cell that prints without end must not delay its own end.
            biased;
            command = commands.recv() => DriverWake::Command(command),
            () = cancelled(stop) => DriverWake::Stop,
            () = any_cancelled(waiting), if !waiting.is_empty() => DriverWake::Stop,
            () = passed(deadline) => DriverWake::Deadline,
            answer = answered(input) => DriverWake::Answer(answer),
            () = made_room(full.as_ref()), if full.is_some() => DriverWake::Room,
            incoming = transport.recv(), if full.is_none() => DriverWake::Incoming(incoming),
            // After what is there to be read: the reply travels apart from the output, and may be far ahead of it.
            () = passed(settled_by), if full.is_none() => DriverWake::Silence,
            // Reached when there is nothing to do: what was said so far is what can be read now.
            () = announced(mailbox.as_deref(), background) => unreachable!("it only looks"),
        };
        if full.is_some() {
            self.settle_later(); // nobody listened
        }
        woken
    }

    fn obey(&mut self, command: DriverCommand) {
        match command {
            DriverCommand::Execute { mailbox, .. } if self.ending.is_some() => {
                mailbox.close(running::shut_down());
            }
            DriverCommand::Execute { cell, mailbox } => self.waiting.push_back(WaitingCell { cell, mailbox }),
            DriverCommand::Interrupt { answer } => {
                let result = match &mut self.running {
                    Some(running) if running.started => self.transport.stop(StopStep::Interrupt),
                    Some(running) => {
                        running.interrupt_at_start = true;
                        Ok(())
                    }
                    None => Ok(()),
                };
                drop(answer.send(result)); // the caller may have gone
            }
            DriverCommand::Ask { question: Question::Variables { .. }, answer }
                if self.running.is_some() && !self.transport.lists_meanwhile() =>
            {
                drop(answer.send(Err(AskError::Busy))); // the caller may have gone
            }
            DriverCommand::Ask { question, answer } => {
                let id = QuestionId(self.new_id());
                self.questions.insert(id, answer);
                self.transport.send(KernelRequest::Ask { id, question });
            }
            DriverCommand::PassComms(comms) => self.transport.pass_comms(comms),
            DriverCommand::AskComms { request, answer } => {
                let id = QuestionId(self.new_id());
                match self.transport.ask_comms(id, request) {
                    Ok(()) => drop(self.questions.insert(id, answer)), // its id is new
                    Err(why) => drop(answer.send(Err(why))),           // the caller may have gone
                }
            }
            DriverCommand::Shutdown => self.shut_down(),
        }
    }

    /// Sends the next cell that still has a caller.
    fn start_next(&mut self) {
        while self.running.is_none()
            && self.ending.is_none()
            && let Some(WaitingCell { cell, mailbox }) = self.waiting.pop_front()
        {
            if cell.stop.is_cancelled() {
                mailbox.close(running::cancelled_in_the_queue());
                continue;
            }
            let id = CellId(self.new_id());
            self.transport.send(KernelRequest::Execute {
                cell: id,
                source: cell.source,
                allow_stdin: cell.stdin != Stdin::Refused,
                variables: cell.variables,
            });
            let mut sent = SentCell::new(id, mailbox, cell.stop, cell.timeout, self.graces.start);
            sent.stdin = cell.stdin;
            self.running = Some(sent);
        }
    }

    fn take(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Started(id) => {
                if let Some(running) = self.running.as_mut().filter(|running| running.id == id) {
                    running.started = true;
                    running.awaited = None;
                    let interrupt = running.interrupt_at_start;
                    self.deliver(Event::Status(CellStage::Started));
                    if interrupt {
                        self.interrupt_if_started();
                    }
                }
            }
            Incoming::Busy { at } => self.take_busy(at.as_deref()),
            Incoming::Event { cell, event } => match &mut self.running {
                Some(running) if Some(running.id) == cell => {
                    if let Event::Output(OutputChange::Added(Output::Error(exception))) = &event {
                        running.exception = Some(exception.clone());
                    }
                    self.deliver(event);
                    self.settle_later();
                }
                Some(_) | None => self.put_aside(event),
            },
            Incoming::Input { cell, prompt, password } => match &mut self.running {
                Some(running) if running.id == cell => {
                    let (answer, input) = oneshot::channel();
                    running.ask(input);
                    self.deliver(Event::InputRequest(KernelInput { prompt, password, answer }));
                }
                Some(_) | None => {
                    let answer = InputAnswer::Refusal("the cell that asks is over".to_owned());
                    self.transport.send(KernelRequest::Input { cell, answer });
                }
            },
            Incoming::Replied { cell, verdict, count } => {
                self.settle(cell, |running| running.reply = Some((verdict, count)));
            }
            Incoming::Idle(cell) => self.settle(cell, |running| running.idle = true),
            Incoming::Answered { id, reply } => {
                if let Some(answer) = self.questions.remove(&id) {
                    drop(answer.send(reply)); // the caller may have gone
                }
            }
            Incoming::StopFailed(failed) => self.take_failure(&failed),
            Incoming::Closed(_) => unreachable!("the loop ends with it"),
        }
    }

    fn answer_input(&mut self, answer: InputAnswer) {
        if let Some(running) = &mut self.running {
            running.resume();
            self.transport.send(KernelRequest::Input { cell: running.id, answer });
        }
    }

    /// Half of a cell's end has come.
    fn settle(&mut self, cell: CellId, half: impl FnOnce(&mut SentCell)) {
        let Some(running) = self.running.as_mut().filter(|running| running.id == cell) else { return };
        half(running);
        if running.reply.is_some() && running.idle {
            self.finish();
        } else {
            running.settled_by = Some(Instant::now() + self.graces.settle);
        }
    }

    /// Restarts the wait for the missing half of a cell's end.
    fn settle_later(&mut self) {
        if let Some(SentCell { settled_by: Some(by), .. }) = &mut self.running {
            *by = Instant::now() + self.graces.settle;
        }
    }

    /// The other half of a cell's end did not come.
    fn settle_for_half(&mut self) {
        let Some(running) = &mut self.running else { return };
        let arriving = self.transport.arriving();
        if arriving != std::mem::replace(&mut running.arriving, arriving) && arriving > 0 {
            return self.settle_later();
        }
        if !running.idle {
            let warning = "the kernel did not report the end of the cell's output: some of it may be missing";
            self.deliver(Event::Warning(warning.into()));
        }
        self.finish();
    }

    fn finish(&mut self) {
        if self.running.as_ref().is_some_and(SentCell::ran_on) {
            let warning = "the interrupt did not end the cell: it ran to its end";
            self.deliver(Event::Warning(warning.into()));
        }
        if let Some(running) = self.running.take() {
            let kernel = if self.ending.is_some() { Fate::Killed } else { Fate::Survived };
            self.close(&running.mailbox, running.finished(kernel));
        }
    }

    /// Reports the kernel's end to all that wait, and to all that come later.
    async fn bury(mut self, exit: Exit) {
        if let Some(running) = self.running.take() {
            self.close(&running.mailbox, running.buried(&exit));
        }
        let died = FinishedCell {
            outcome: Outcome::Died(Death { exit: exit.clone(), started: false }),
            execution_count: None,
        };
        for waiting in self.waiting.drain(..) {
            waiting.mailbox.close(died.clone());
        }
        for (_, answer) in self.questions.drain() {
            drop(answer.send(Err(AskError::Died(exit.clone())))); // the caller may have gone
        }
        let Self { transport, mut commands, background, exit: exits, .. } = self;
        drop(transport);
        background.close(exit.clone());
        exits.send_replace(Some(exit.clone()));
        while let Some(command) = commands.recv().await {
            match command {
                DriverCommand::Execute { mailbox, .. } => mailbox.close(died.clone()),
                DriverCommand::Interrupt { answer } => drop(answer.send(Ok(()))),
                DriverCommand::Ask { answer, .. } | DriverCommand::AskComms { answer, .. } => {
                    drop(answer.send(Err(AskError::Died(exit.clone()))));
                }
                DriverCommand::PassComms(_) | DriverCommand::Shutdown => {}
            }
        }
    }

    fn new_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}

/// Wakes the readers of what was pushed, whenever it is polled; never ready.
async fn announced(cell: Option<&Mailbox<FinishedCell>>, background: &Mailbox<Exit>) {
    poll_fn(|_| -> Poll<()> {
        cell.into_iter().for_each(Mailbox::announce);
        background.announce();
        Poll::Pending
    })
    .await;
}

async fn cancelled(stop: Option<&CancellationToken>) {
    match stop {
        Some(stop) => stop.cancelled().await,
        None => pending().await,
    }
}

async fn any_cancelled(waiting: &VecDeque<WaitingCell>) {
    let mut stops: Vec<_> = waiting.iter().map(|waiting| Box::pin(waiting.cell.stop.cancelled())).collect();
    poll_fn(|context| {
        let any = stops.iter_mut().any(|stop| stop.as_mut().poll(context).is_ready());
        if any { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Waits for a deadline; forever without one.
pub(crate) async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}

async fn answered(input: Option<&mut oneshot::Receiver<InputAnswer>>) -> InputAnswer {
    match input {
        Some(input) => input.await.unwrap_or_else(|_| InputAnswer::missing()),
        None => pending().await,
    }
}
