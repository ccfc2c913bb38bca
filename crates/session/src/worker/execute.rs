//! Running the cells of a call.

use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cellwright_kernel::{
    CellSource, CellStage, CellUpdate, Comms, Event, Exit, Fate, FinishedCell, InputAnswer, KernelCell,
    KernelInput, Outcome, Stdin,
};
use tokio::sync::{mpsc, oneshot};

use super::kernel::CallHalt;
use super::{CurrentCall, QueuedCall, Worker, WorkerRequest, asked, finish, hear};
use crate::call::{CallEvent, CellRequest, InputRequest, Timeout, Turn, TurnRequest, Turns};
use crate::error::SessionError;
use crate::journal::SessionEvent;
use crate::notice::Notice;
use crate::report::{CellStatus, KernelReplacement, NotRun};
use crate::settings::Retry;

/// What the worker woke up for while a cell runs.
enum WorkerWake<'a> {
    SessionEnds,
    Asked(WorkerRequest),
    Answer(InputAnswer),
    Heard(Option<mpsc::Permit<'a, CallEvent>>, Result<Event, Exit>),
    Next(Option<mpsc::Permit<'a, CallEvent>>, CellUpdate),
}

impl Worker {
    /// Runs a call to its report.
    pub(super) async fn call(&mut self, queued: QueuedCall) {
        let mut current = CurrentCall::new(&queued);
        let QueuedCall { cells, report, ticket, events, tools, settings, notices, has_begun, .. } = queued;
        has_begun.store(true, Ordering::Relaxed);
        self.settings = settings;
        self.notices.extend(notices);
        let job = current.job;
        // A call that only makes a kernel ready shows nothing.
        let is_seen = cells.iter().any(|cell| !cell.source.silent);
        if is_seen {
            self.journal.record(|| SessionEvent::CallStarted { call: job });
        }
        drop(events); // `current` has it, and closes it with its end
        self.caller.set(tools);
        if let Some(KernelReplacement::Died(exit)) =
            self.gone.take_if(|gone| matches!(gone, KernelReplacement::Died(_)))
        {
            self.gone = Some(KernelReplacement::DiedEarlier(exit));
        }
        if let Some(late) = &mut self.late {
            let before = late.before();
            self.send_event(&mut current, CallEvent::LateBefore(before)).await;
        }
        self.send_notices(&mut current).await;
        for (index, cell) in cells.iter().enumerate() {
            match self.cell(&mut current, index, cell).await {
                Ok(CellStatus::Ok) => {}
                Ok(CellStatus::NotRun(NotRun::Withdrawn)) => current.withdraw(index),
                Ok(CellStatus::Error(_)) if cell.may_raise => {}
                Ok(_) => {
                    current.skip_from(index + 1, NotRun::AfterFailure);
                    break;
                }
                Err(CallHalt::Stopped) => {
                    current.skip_from(index, NotRun::Stopped);
                    break;
                }
                Err(CallHalt::Error(error)) => {
                    current.skip_from(index, NotRun::Error);
                    current.error = Some(error);
                    break;
                }
            }
        }
        if let Some(live) = self.live.as_mut().filter(|_| !current.alone && !self.journal.is_kept()) {
            live.pass_comms(Comms::Dropped).await; // nobody reads them between two calls
        }
        self.measure(&mut current).await;
        if self.end.token.is_cancelled() && current.error.is_none() {
            current.error = Some(SessionError::Ended(self.end.why()));
        }
        if current.alone {
            self.end_kernel(Some(&current.events)).await;
        }
        // What the kernel warned of while it ran; `send_event` would wait for a reader that may wait for the report.
        current.notices.append(&mut self.notices);
        if let Some(late) = self.late.take() {
            current.take_late(late.finish());
        }
        let finished = self.report(&mut current);
        if is_seen {
            let (succeeded, error) = (finished.succeeded(), finished.error.as_ref().map(ToString::to_string));
            self.journal.record(|| SessionEvent::CallFinished { call: job, succeeded, error });
        }
        drop(current);
        self.caller.set(None);
        finish(ticket, &report, finished);
    }

    /// Runs one cell, on another kernel if the first dies before it began.
    async fn cell(
        &mut self,
        current: &mut CurrentCall,
        index: usize,
        cell: &CellRequest,
    ) -> Result<CellStatus, CallHalt> {
        if current.stop.is_cancelled() {
            return Err(CallHalt::Stopped);
        }
        if self.end.token.is_cancelled() {
            return Err(SessionError::Ended(self.end.why()).into());
        }
        self.reset(current, index, cell.reset).await?;
        self.ready(current).await?;
        let source = match self.turn(current, index).await? {
            Turn::AsCalled => Cow::Borrowed(&cell.source),
            Turn::Instead(code) => Cow::Owned(CellSource { code, ..cell.source.clone() }),
            Turn::Withdrawn => return Ok(CellStatus::NotRun(NotRun::Withdrawn)),
        };
        let source = match &cell.name {
            Some(name) => Cow::Owned(CellSource {
                title: Some(match &source.title {
                    Some(title) => format!("{name}: {title}"),
                    None => name.clone(),
                }),
                ..source.into_owned()
            }),
            None => source,
        };
        current.begin(index, &self.settings.output);
        if !source.silent {
            self.journal.record(|| SessionEvent::CellStarted {
                call: current.job,
                cell: index,
                code: source.code.clone(),
                title: source.title.clone(),
            });
        }
        let mut replayed = false;
        loop {
            let FinishedCell { outcome, execution_count } =
                self.execute(current, index, cell.timeout, &source).await;
            let status = match outcome {
                Outcome::Completed => CellStatus::Ok,
                Outcome::Raised(exception) => CellStatus::Error(exception),
                Outcome::Stopped { reason, kernel } => {
                    match kernel {
                        Fate::Survived => {}
                        Fate::Ended | Fate::Killed | Fate::Left | Fate::OutOfReach => {
                            let exit = self.exit().await;
                            self.lose(KernelReplacement::DiedEarlier(exit));
                        }
                    }
                    CellStatus::Stopped { reason, kernel }
                }
                Outcome::Died(death) => {
                    self.bury(death.exit.clone(), KernelReplacement::Died);
                    let again = match (death.started, self.settings.retry) {
                        (false, _) => Some(Notice::RanElsewhere { cell: index, exit: death.exit.clone() }),
                        // One that is out of reach may be running it still.
                        (true, Retry::Once) if !replayed && !matches!(death.exit, Exit::OutOfReach(_)) => {
                            replayed = true;
                            Some(Notice::Replayed { cell: index, exit: death.exit.clone() })
                        }
                        (true, Retry::Once | Retry::Never) => None,
                    };
                    if let Some(notice) = again {
                        match self.ready(current).await {
                            Ok(()) => {
                                self.notices.push(notice);
                                self.send_notices(current).await;
                                continue;
                            }
                            // It was not run again, but it has been running.
                            Err(CallHalt::Error(error)) if death.started => current.error = Some(error),
                            Err(CallHalt::Stopped) if death.started => {}
                            Err(halt) => return Err(halt),
                        }
                    }
                    CellStatus::Died(death)
                }
                Outcome::Unknown => CellStatus::Unknown,
            };
            let report = current.end_cell(status.clone(), execution_count);
            if !source.silent {
                self.journal.record(|| SessionEvent::CellFinished {
                    call: current.job,
                    status: status.clone(),
                    duration: report.duration,
                    execution_count,
                });
            }
            self.send_event(current, CallEvent::CellFinished(report)).await;
            return Ok(status);
        }
    }

    /// What the cell is now that its turn has come, in calls that ask.
    async fn turn(&mut self, current: &mut CurrentCall, index: usize) -> Result<Turn, CallHalt> {
        match current.turns {
            Turns::AsCalled => return Ok(Turn::AsCalled),
            Turns::Asked => {}
        }
        let (answer, mut reply) = oneshot::channel();
        self.send_event(current, CallEvent::Turn { cell: index, request: TurnRequest { answer } }).await;
        let stop = current.stop.clone();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return Err(CallHalt::Stopped),
                () = self.end.token.cancelled() => return Err(SessionError::Ended(self.end.why()).into()),
                // The reader of the events may have left.
                turn = &mut reply => return Ok(turn.unwrap_or(Turn::AsCalled)),
                asked = asked(&mut self.control, &mut self.calls, &self.waiting) => self.attend(asked, current).await,
            }
        }
    }

    /// Runs the cell on the kernel there is, up to whatever end.
    async fn execute(
        &mut self,
        current: &mut CurrentCall,
        index: usize,
        timeout: Timeout,
        source: &CellSource,
    ) -> FinishedCell {
        let timeout = match timeout {
            Timeout::Default => Some(self.settings.timeout),
            Timeout::After(time) => Some(time),
            Timeout::Never => None,
        };
        let request = KernelCell {
            source: source.clone(),
            timeout: timeout.filter(|timeout| *timeout > Duration::ZERO),
            stdin: current.stdin,
            variables: current.variables.clone(),
            stop: current.stop.clone(),
        };
        let ready = self.live.as_mut().expect("a kernel was made ready");
        // Those who watch may have widgets of earlier cells.
        if current.comms == Comms::Forwarded || !self.journal.is_kept() {
            ready.pass_comms(current.comms).await;
        }
        let mut execution = ready.kernel.execute(request).await;
        let mut input: Option<(KernelInput, oneshot::Receiver<InputAnswer>)> = None;
        let (mut ending, mut silent) = (false, false);
        let events = current.events.clone();
        loop {
            let wake = tokio::select! {
                // Being asked beats output: a cell that prints without end must not delay what is asked.
                biased;
                () = self.end.token.cancelled(), if !ending => WorkerWake::SessionEnds,
                asked = asked(&mut self.control, &mut self.calls, &self.waiting) => WorkerWake::Asked(asked),
                answer = answered(input.as_mut()) => WorkerWake::Answer(answer),
                (permit, heard) = with_room(Some(&events), ending, hear(self.live.as_mut())), if !silent => WorkerWake::Heard(permit, heard),
                (permit, next) = with_room(Some(&events), ending, execution.next()) => WorkerWake::Next(permit, next),
            };
            match wake {
                WorkerWake::SessionEnds => {
                    ending = true;
                    execution.stop();
                }
                WorkerWake::Asked(asked) => self.attend(asked, current).await,
                WorkerWake::Answer(answer) => {
                    if let Some((request, _)) = input.take() {
                        request.respond(answer);
                    }
                }
                // The execution reports the same death, and what it means for the cell.
                WorkerWake::Heard(_, Err(_)) => silent = true,
                WorkerWake::Heard(permit, Ok(Event::Warning(text))) => {
                    self.note(current, Notice::Warning(text), permit);
                }
                WorkerWake::Heard(permit, heard) => self.take_late(heard, permit),
                WorkerWake::Next(_, CellUpdate::Finished(finished)) => return finished,
                WorkerWake::Next(permit, CellUpdate::Event(Event::InputRequest(request))) => {
                    match (current.stdin, permit) {
                        (Stdin::Forwarded | Stdin::Person, Some(permit)) => {
                            let (answer, reply) = oneshot::channel();
                            let (prompt, password) = (request.prompt.clone(), request.password);
                            self.journal.record(|| SessionEvent::InputAsked {
                                call: current.job,
                                prompt: prompt.clone(),
                            });
                            input = Some((request, reply));
                            let request = InputRequest { prompt, password, answer };
                            permit.send(CallEvent::Input { cell: index, request });
                        }
                        (Stdin::Refused | Stdin::Forwarded | Stdin::Person, permit) => {
                            request.refuse("input() is not available here: pass the value in the code");
                            self.note(current, Notice::InputRefused { cell: index }, permit);
                        }
                    }
                }
                WorkerWake::Next(permit, CellUpdate::Event(event)) => {
                    self.take(current, index, event, permit);
                }
            }
        }
    }

    /// Takes what a cell says.
    fn take(
        &mut self,
        current: &mut CurrentCall,
        cell: usize,
        event: Event,
        permit: Option<mpsc::Permit<'_, CallEvent>>,
    ) {
        let change = match event {
            Event::Output(change) => change,
            Event::Status(CellStage::Started) => return send(permit, CallEvent::CellStarted { cell }),
            Event::Status(CellStage::Stopping(reason)) => {
                self.journal.record(|| SessionEvent::Stopping { call: current.job, reason });
                return send(permit, CallEvent::Stopping { cell, reason });
            }
            Event::Warning(text) => return self.note(current, Notice::Warning(text), permit),
            Event::Comm(message) => {
                let comm = Box::new((*message).into());
                return send(permit, CallEvent::Comm { cell: Some(cell), comm });
            }
            Event::InputRequest(_) => unreachable!("taken before"),
        };
        self.journal.record(|| SessionEvent::Output { call: Some(current.job), change: change.clone() });
        current.apply(&change);
        send(permit, CallEvent::Output { cell, change });
    }

    /// Sends it at once to a caller that reads; the others find it in the report.
    fn note(&mut self, current: &mut CurrentCall, notice: Notice, to: Option<mpsc::Permit<'_, CallEvent>>) {
        self.journal.record(|| SessionEvent::Notice(notice.clone()));
        match to {
            Some(permit) => {
                current.notices.push(notice.clone());
                permit.send(CallEvent::Notice(notice));
            }
            None => self.notices.push(notice),
        }
    }

    /// How the kernel that was killed ended.
    async fn exit(&self) -> Exit {
        match &self.live {
            Some(live) => live.kernel.ended().await,
            None => Exit::Lost("the kernel was killed".into()),
        }
    }

    /// Hands the caller an event as soon as it takes it, answering questions meanwhile.
    pub(super) async fn send_event(&mut self, current: &mut CurrentCall, event: CallEvent) {
        let events = current.events.clone();
        loop {
            tokio::select! {
                biased;
                permit = events.reserve() => return send(permit.ok(), event),
                () = self.end.token.cancelled() => return,
                asked = asked(&mut self.control, &mut self.calls, &self.waiting) => self.attend(asked, current).await,
            }
        }
    }

    /// Sends the notices that have gathered.
    pub(super) async fn send_notices(&mut self, current: &mut CurrentCall) {
        for notice in std::mem::take(&mut self.notices) {
            self.journal.record(|| SessionEvent::Notice(notice.clone()));
            current.notices.push(notice.clone());
            self.send_event(current, CallEvent::Notice(notice)).await;
        }
    }
}

fn send(permit: Option<mpsc::Permit<'_, CallEvent>>, event: CallEvent) {
    if let Some(permit) = permit {
        permit.send(event);
    }
}

/// Waits for `next`, once the caller, if there is one, has room for what it brings. A caller that left needs none, and a
/// session that is `ending` waits for nobody. Cancel-safe if `next` is.
pub(super) async fn with_room<T>(
    events: Option<&mpsc::Sender<CallEvent>>,
    ending: bool,
    next: impl Future<Output = T>,
) -> (Option<mpsc::Permit<'_, CallEvent>>, T) {
    let permit = match events {
        Some(events) if ending => events.try_reserve().ok(),
        Some(events) => events.reserve().await.ok(),
        None => None,
    };
    (permit, next.await)
}

async fn answered(input: Option<&mut (KernelInput, oneshot::Receiver<InputAnswer>)>) -> InputAnswer {
    match input {
        Some((_, reply)) => reply.await.unwrap_or_else(|_| InputAnswer::missing()),
        None => std::future::pending().await,
    }
}
