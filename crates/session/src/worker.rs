//! The task that owns a session: its kernel, its queue, and what its cells say when nobody listens.
//!
//! It runs one call at a time, in order. While one runs it goes on answering questions, taking calls in, and listening to
//! the kernel's background. It promises:
//!
//! - Every call that was queued ends in a report, whatever becomes of the session.
//! - A call that is cancelled while it waits leaves the queue at once and touches nothing.
//! - Nothing revives a session that was ended.

mod current;
mod execute;
mod kernel;
mod late;

use std::collections::VecDeque;
use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Poll;
use std::time::Duration;

use cellwright_kernel::environment::EnvVars;
use cellwright_kernel::{
    AboutKernel, AskError, CommMessage, Comms, Event, Exit, Kernel, KernelVariables, Question, Reply, Stdin,
};
use futures_util::FutureExt as _;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::bridge::{BridgeAccess, Caller, ToolHost};
use crate::call::{CallEvent, CellRequest, CollectMode, Turns};
use crate::comm::Comm;
use crate::error::SessionError;
use crate::identity::SessionKey;
use crate::interrupt;
use crate::jobs::{JobId, QueuePlace};
use crate::journal::{Journal, SessionEvent};
use crate::notice::{Departure, Notice};
use crate::registry::{ClientId, SessionEnd, SharedState, Ticket};
use crate::report::{CallReport, KernelReplacement, NotRun};
use crate::sessions::InterruptResult;
use crate::settings::SessionSettings;
use current::CurrentCall;
use kernel::{Crashes, LiveKernel};
use late::LateCollector;

/// How long a kernel between two cells may take to answer a question, such as for its variables.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// A call on its way to a session.
pub(crate) struct QueuedCall {
    pub(crate) job: JobId,
    pub(crate) client: ClientId,
    pub(crate) cells: Vec<CellRequest>,
    pub(crate) stdin: Stdin,
    pub(crate) comms: Comms,
    pub(crate) variables: Option<EnvVars>,
    pub(crate) turns: Turns,
    pub(crate) settings: Arc<SessionSettings>,
    /// What its report has to say from the start.
    pub(crate) notices: Vec<Notice>,
    /// Set when its turn comes.
    pub(crate) has_begun: Arc<AtomicBool>,
    pub(crate) collect: CollectMode,
    pub(crate) tools: Option<Arc<dyn ToolHost>>,
    pub(crate) stop: CancellationToken,
    pub(crate) events: mpsc::Sender<CallEvent>,
    pub(crate) report: watch::Sender<Option<Arc<CallReport>>>,
    pub(crate) began: Instant,
    /// None for a call that has a kernel of its own.
    pub(crate) ticket: Option<Ticket>,
}

/// What is asked of a session beside its calls; answered while a cell runs, too.
pub(crate) enum Control {
    /// What became of it.
    Interrupt {
        reply: oneshot::Sender<Result<InterruptResult, SessionError>>,
    },
    Variables {
        limit: usize,
        reply: oneshot::Sender<Result<KernelVariables, SessionError>>,
    },
    /// Answered between cells only.
    Ask {
        question: Question,
        reply: oneshot::Sender<Result<Reply, SessionError>>,
    },
    /// Answered when the kernel has the message, which may wait for the end of the running cell there.
    Say {
        message: Box<CommMessage>,
        reply: oneshot::Sender<Result<(), SessionError>>,
    },
    Restart {
        reply: oneshot::Sender<Result<(), SessionError>>,
    },
    /// The result of the call so far. Not answered if the call is not here.
    Progress {
        job: JobId,
        reply: oneshot::Sender<(Arc<CallReport>, Option<QueuePlace>)>,
    },
}

/// What is asked of a session while it runs a call.
enum WorkerRequest {
    Control(Control),
    Call(Box<QueuedCall>),
    /// A call that waits is no longer wanted.
    Cancelled,
}

/// What others may see of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkerStatus {
    pub(crate) about: Option<AboutKernel>,
    pub(crate) since: Option<Instant>,
    /// A kernel has started in it, whether or not it still runs.
    pub(crate) has_begun: bool,
}

pub(crate) struct Worker {
    shared: Arc<SharedState>,
    /// Those of the call that runs, or ran last.
    settings: Arc<SessionSettings>,
    key: SessionKey,
    end: Arc<SessionEnd>,
    calls: mpsc::Receiver<QueuedCall>,
    control: mpsc::Receiver<Control>,
    status: watch::Sender<WorkerStatus>,
    journal: Arc<Journal>,
    waiting: VecDeque<QueuedCall>,
    live: Option<LiveKernel>,
    /// Why the last kernel is gone.
    gone: Option<KernelReplacement>,
    crashes: Crashes,
    /// When the kernel was last reset, and by which call.
    reset: Option<(Instant, JobId)>,
    /// The callers that wait for a restart.
    restarting: Vec<oneshot::Sender<Result<(), SessionError>>>,
    /// What cells showed after their end.
    late: Option<LateCollector>,
    /// What the next report has to say.
    notices: Vec<Notice>,
    access: Option<BridgeAccess>,
    caller: Caller,
    measured: Option<(Instant, u64)>,
}

impl Worker {
    pub(crate) fn new(
        shared: Arc<SharedState>,
        key: SessionKey,
        end: Arc<SessionEnd>,
        (calls, control): (mpsc::Receiver<QueuedCall>, mpsc::Receiver<Control>),
        status: watch::Sender<WorkerStatus>,
        journal: Arc<Journal>,
        departed: Option<Departure>,
    ) -> Self {
        Self {
            settings: Arc::clone(&shared.settings),
            shared,
            key,
            end,
            calls,
            control,
            status,
            journal,
            waiting: VecDeque::new(),
            live: None,
            gone: None,
            crashes: Crashes::default(),
            reset: None,
            restarting: Vec::new(),
            late: None,
            notices: departed.map(Notice::Departed).into_iter().collect(),
            access: None,
            caller: Caller::default(),
            measured: None,
        }
    }

    /// Serves the session until it is ended, or nobody can reach it any more.
    pub(crate) async fn run(mut self) {
        while !self.end.token.is_cancelled() {
            self.restart_if_asked().await;
            if let Some(queued) = self.waiting.pop_front() {
                self.call(queued).await;
                continue;
            }
            tokio::select! {
                biased;
                () = self.end.token.cancelled() => {}
                Some(control) = self.control.recv() => self.serve(control, None).await,
                call = self.calls.recv() => match call {
                    Some(queued) => self.waiting.push_back(queued),
                    None => break,
                },
                heard = hear(self.live.as_mut()), if self.late.as_ref().is_none_or(LateCollector::has_room) => self.take_late(heard, None),
            }
        }
        self.calls.close();
        while let Some(queued) = self.calls.recv().await {
            self.waiting.push_back(queued);
        }
        for queued in std::mem::take(&mut self.waiting) {
            self.not_run(queued, NotRun::Error, Some(SessionError::Ended(self.end.why())));
        }
        self.end_kernel(None).await;
        self.journal.record(|| SessionEvent::Ended(self.end.why()));
    }

    /// Does what is asked, at any time.
    async fn attend(&mut self, asked: WorkerRequest, current: &mut CurrentCall) {
        match asked {
            WorkerRequest::Control(control) => self.serve(control, Some(current)).await,
            WorkerRequest::Call(queued) => self.waiting.push_back(*queued),
            WorkerRequest::Cancelled => self.drop_cancelled(),
        }
    }

    /// Answers a question.
    async fn serve(&mut self, control: Control, current: Option<&mut CurrentCall>) {
        // The caller may have gone, which is why results are ignored.
        match control {
            Control::Interrupt { reply } => {
                let ending = current.as_ref().and_then(|current| current.cell_ending());
                let (Some(live), Some(ending)) = (&self.live, ending) else {
                    return drop(reply.send(Ok(InterruptResult::NothingRan)));
                };
                if let Err(failed) = live.kernel.interrupt().await {
                    let why = format!("the interrupt could not be sent: {failed}");
                    return drop(reply.send(Err(SessionError::Kernel(why))));
                }
                let process = live.about.pid;
                // Ends in time; the session goes on meanwhile.
                self.shared.tasks.spawn(
                    async move { drop(reply.send(Ok(interrupt::outcome(ending, process).await))) }.boxed(),
                );
            }
            Control::Variables { limit, reply } => match &self.live {
                None => drop(reply.send(Err(SessionError::NoKernel))),
                Some(live) => {
                    let kernel = Arc::clone(&live.kernel);
                    self.shared.tasks.spawn(
                        async move { drop(reply.send(in_time(kernel.variables(limit)).await)) }.boxed(),
                    );
                }
            },
            Control::Ask { question, reply } => match &self.live {
                None => drop(reply.send(Err(SessionError::NoKernel))),
                // It would answer when the cell is over, and may have been asked something else by then.
                Some(_) if current.is_some() => drop(reply.send(Err(SessionError::Busy))),
                Some(live) => {
                    let kernel = Arc::clone(&live.kernel);
                    self.shared
                        .tasks
                        .spawn(async move { drop(reply.send(answer(&kernel, question).await)) }.boxed());
                }
            },
            Control::Say { message, reply } => match &self.live {
                None => drop(reply.send(Err(SessionError::NoKernel))),
                Some(live) => {
                    let kernel = Arc::clone(&live.kernel);
                    // Ends with the kernel at the latest, which answers after its running cell.
                    self.shared.tasks.spawn(
                        async move {
                            if let Err(error) = kernel.say(*message).await {
                                tracing::debug!(%error, "a comm message was not taken");
                            }
                        }
                        .boxed(),
                    );
                    drop(reply.send(Ok(())));
                }
            },
            Control::Restart { reply } => {
                self.restarting.push(reply);
                if let Some(current) = current {
                    self.notices.push(Notice::Restarted);
                    current.stop.cancel();
                }
            }
            Control::Progress { job, reply } => {
                while let Ok(queued) = self.calls.try_recv() {
                    self.waiting.push_back(queued);
                }
                let running = current.as_ref().map(|current| current.job);
                if let Some(current) = current.filter(|current| current.job == job) {
                    drop(reply.send((Arc::new(self.report(current)), None)));
                } else if let Some(at) = self.waiting.iter().position(|queued| queued.job == job) {
                    let before = at + usize::from(running.is_some());
                    let running =
                        running.or_else(|| Some(self.waiting.front()?.job).filter(|first| *first != job));
                    // With nothing before it, it begins at this moment.
                    let place = (before > 0).then_some(QueuePlace { before, running });
                    let report = Arc::new(self.report(&mut CurrentCall::new(&self.waiting[at])));
                    drop(reply.send((report, place)));
                }
            }
        }
    }

    /// Callers that ask for a restart at the same time share one.
    async fn restart_if_asked(&mut self) {
        if !self.restarting.is_empty() {
            self.end_kernel(None).await;
            self.crashes.forget();
            self.gone = Some(KernelReplacement::Reset);
            for reply in self.restarting.drain(..) {
                drop(reply.send(Ok(()))); // the caller may have gone
            }
        }
    }

    /// Ends a call that is not run.
    fn not_run(&mut self, queued: QueuedCall, why: NotRun, error: Option<SessionError>) {
        let mut current = CurrentCall::new(&queued);
        current.skip_from(0, why);
        current.error = error;
        let report = self.report(&mut current);
        finish(queued.ticket, &queued.report, report);
    }

    /// Takes calls that are cancelled off the queue.
    fn drop_cancelled(&mut self) {
        let (cancelled, wanted) =
            std::mem::take(&mut self.waiting).into_iter().partition(|queued| queued.stop.is_cancelled());
        self.waiting = wanted;
        let cancelled: VecDeque<QueuedCall> = cancelled;
        for queued in cancelled {
            self.not_run(queued, NotRun::Stopped, None);
        }
    }

    /// Takes what the kernel says outside its cells.
    fn take_late(&mut self, heard: Result<Event, Exit>, permit: Option<mpsc::Permit<'_, CallEvent>>) {
        let change = match heard {
            Ok(Event::Output(change)) => change,
            Ok(Event::Warning(text)) => return self.notices.push(Notice::Warning(text)),
            Ok(Event::Comm(message)) => {
                // Between two calls, or of a call that did not want them, only those who watch can answer.
                let wanted = self.live.as_ref().is_some_and(|live| live.comms == Comms::Forwarded);
                let comm: Box<Comm> = Box::new((*message).into());
                self.journal.record(|| SessionEvent::Comm(comm.clone()));
                if let Some(permit) = permit.filter(|_| wanted) {
                    permit.send(CallEvent::Comm { cell: None, comm });
                }
                return;
            }
            // No cell, so nothing that could start or ask.
            Ok(Event::Status(_) | Event::InputRequest(_)) => return,
            Err(exit) => return self.bury(exit, KernelReplacement::DiedIdle),
        };
        self.journal.record(|| SessionEvent::Output { call: None, change: change.clone() });
        let settings = &self.settings.output;
        self.late.get_or_insert_with(|| LateCollector::new(settings)).take(&change);
        if let Some(permit) = permit {
            permit.send(CallEvent::Late(change));
        }
    }
}

/// Asks a kernel that runs no cell.
async fn answer(kernel: &Kernel, question: Question) -> Result<Reply, SessionError> {
    in_time(async {
        Ok(match question {
            Question::Complete { code, cursor } => Reply::Completions(kernel.complete(code, cursor).await?),
            Question::Inspect { code, cursor, detail } => {
                Reply::Inspection(kernel.inspect(code, cursor, detail).await?)
            }
            Question::Completeness { code } => Reply::Completeness(kernel.completeness(code).await?),
            Question::Variables { limit } => Reply::Variables(kernel.variables(limit).await?),
            Question::Ping => kernel.ping().await.map(|()| Reply::Pong)?,
        })
    })
    .await
}

/// A kernel that is stopped must not stop the session.
async fn in_time<T>(answer: impl Future<Output = Result<T, AskError>>) -> Result<T, SessionError> {
    match timeout(ANSWERS_WITHIN, answer).await {
        Ok(answer) => answer.map_err(|error| match error {
            AskError::Busy => SessionError::Busy,
            AskError::Died(_) | AskError::Failed(_) => SessionError::Kernel(error.to_string()),
        }),
        Err(_) => Err(SessionError::Kernel("the kernel does not answer".into())),
    }
}

/// Hands over the report. The call's place is free before its caller knows, so that the next call finds it free.
fn finish(ticket: Option<Ticket>, to: &watch::Sender<Option<Arc<CallReport>>>, report: CallReport) {
    drop(ticket);
    to.send_replace(Some(Arc::new(report)));
}

/// What the kernel says outside its cells. Waits forever without a kernel. Cancel-safe.
async fn hear(live: Option<&mut LiveKernel>) -> Result<Event, Exit> {
    match live {
        Some(live) => live.background.next().await,
        None => pending().await,
    }
}

/// Waits for something to be asked. Takes fields one by one, since the kernel is listened to meanwhile. Cancel-safe.
async fn asked(
    control: &mut mpsc::Receiver<Control>,
    calls: &mut mpsc::Receiver<QueuedCall>,
    waiting: &VecDeque<QueuedCall>,
) -> WorkerRequest {
    tokio::select! {
        Some(control) = control.recv() => WorkerRequest::Control(control),
        Some(queued) = calls.recv() => WorkerRequest::Call(Box::new(queued)),
        () = any_cancelled(waiting), if !waiting.is_empty() => WorkerRequest::Cancelled,
        else => pending().await,
    }
}

/// Waits until one of the calls is cancelled. Cancel-safe.
async fn any_cancelled(waiting: &VecDeque<QueuedCall>) {
    let mut cancelled: Vec<_> = waiting.iter().map(|queued| Box::pin(queued.stop.cancelled())).collect();
    poll_fn(|context| {
        let any = cancelled.iter_mut().any(|token| token.as_mut().poll(context).is_ready());
        if any { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
