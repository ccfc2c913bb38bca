//! A call: cells to run in a session, what happens meanwhile, and how to follow or stop it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cellwright_cell::OutputChange;
use cellwright_kernel::environment::EnvVars;
use cellwright_kernel::{AboutKernel, CellSource, Comms, InputAnswer, KernelChoice, Stdin, StopReason};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::bridge::ToolHost;
use crate::collect::CollectedOutput;
use crate::comm::Comm;
use crate::identity::SessionId;
use crate::jobs::JobId;
use crate::notice::Notice;
use crate::report::{CallReport, CellReport};
use crate::settings::CallSettings;
use crate::wire;

/// Events that wait for a reader; one that does not read holds up the cell, as a full pipe would. Text comes in pieces of
/// at most 64 KiB.
pub(crate) const EVENTS: usize = 32;

/// Cells to run, one after the other, up to the first that does not complete though it should.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Call {
    /// In which session.
    pub session: SessionId,
    /// In which folder; links are resolved. Matters when the kernel starts: `os.chdir` persists.
    pub cwd: PathBuf,
    /// On which kernel.
    pub kernel: KernelChoice,
    /// Whether it stays afterwards.
    pub mode: SessionMode,
    /// The cells.
    pub cells: Vec<CellRequest>,
    /// Whether cells may ask for input. Then read [`CallHandle::next`]: nothing goes on until they are answered.
    pub stdin: Stdin,
    /// Whether comm messages of the kernel come as [`CallEvent::Comm`] while it runs. The report does not have them.
    pub comms: Comms,
    /// The environment that a kernel started for it inherits, as far as the rules let it. `None` means this process's.
    #[serde(with = "wire::variables")]
    pub variables: Option<EnvVars>,
    /// The settings of its client, for a daemon that serves many. Sessions of the client's own process have them already.
    pub settings: Option<CallSettings>,
    /// Whether each cell is asked for once more when its turn comes.
    #[serde(default)]
    pub turns: Turns,
    /// Whether its report holds what its cells show.
    #[serde(default)]
    pub collect: CollectMode,
    /// What becomes of it when nobody follows it any more.
    pub abandoned: Abandoned,
    /// Cancelling this stops the call; it ends with a report all the same.
    #[serde(skip)]
    pub stop: CancellationToken,
    /// The tools that its cells may call. `None` means those of the settings.
    #[serde(skip)]
    pub tools: Option<Arc<dyn ToolHost>>,
}

impl Call {
    /// A call that runs nothing: it makes a session's kernel ready for its first cell, or a fresh one.
    ///
    /// The empty cell waits until the kernel is set up, and reports the result.
    pub fn ensure_kernel(
        session: SessionId,
        cwd: impl Into<PathBuf>,
        kernel: KernelChoice,
        reset: Reset,
    ) -> Self {
        let nothing = CellRequest {
            source: CellSource::silent(""),
            name: None,
            timeout: Timeout::Never,
            reset,
            ..CellRequest::new("")
        };
        Self { kernel, ..Self::new(session, cwd, vec![nothing]) }
    }

    /// A call of cells without input, in a session that stays.
    pub fn new(session: SessionId, cwd: impl Into<PathBuf>, cells: Vec<CellRequest>) -> Self {
        Self {
            session,
            cwd: cwd.into(),
            kernel: KernelChoice::default(),
            mode: SessionMode::Session,
            cells,
            stdin: Stdin::Refused,
            comms: Comms::Dropped,
            variables: None,
            settings: None,
            turns: Turns::AsCalled,
            collect: CollectMode::Outputs,
            abandoned: Abandoned::Stop,
            stop: CancellationToken::new(),
            tools: None,
        }
    }
}

/// What becomes of a call when its [`CallHandle`] is dropped or its client disappears.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Abandoned {
    /// It is stopped.
    #[default]
    Stop,
    /// It continues in the background.
    GoOn,
}

/// Whether the report of a call holds what its cells show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CollectMode {
    /// It does.
    #[default]
    Outputs,
    /// It does not: the reader of the events keeps them. Then each output is reduced once, by that reader.
    Nothing,
}

/// What is run when a cell's turn comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Turns {
    /// What the call says.
    #[default]
    AsCalled,
    /// What the reader of the events answers to [`CallEvent::Turn`]. When nobody reads them any more: what the call says.
    Asked,
}

/// Whether a kernel stays for the next call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionMode {
    /// It does, under the call's session.
    #[default]
    Session,
    /// The call has a kernel of its own, which ends with it.
    PerCall,
}

/// A cell to run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CellRequest {
    /// Its code.
    pub source: CellSource,
    /// What its reader calls it, such as `cell 4` of a notebook. Tracebacks of the runner use it too.
    pub name: Option<String>,
    /// How long it may take.
    pub timeout: Timeout,
    /// Whether it wants a fresh kernel.
    pub reset: Reset,
    /// An exception in it does not end the call.
    pub may_raise: bool,
}

impl CellRequest {
    /// A cell with the usual time, on the kernel as it is.
    pub fn new(code: impl Into<String>) -> Self {
        Self {
            source: CellSource::new(code),
            name: None,
            timeout: Timeout::Default,
            reset: Reset::No,
            may_raise: false,
        }
    }
}

/// How long a cell may take, by the clock on the wall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Timeout {
    /// As long as the settings say.
    #[default]
    Default,
    /// This long; no time at all means as long as it likes.
    After(Duration),
    /// As long as it likes.
    Never,
}

/// Whether a cell wants a fresh kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reset {
    /// It runs on the kernel as it is.
    #[default]
    No,
    /// It does. Refused when others hold the session, since their variables would be gone, and while another call's reset
    /// is in progress: see [`ResetPolicy`](crate::ResetPolicy).
    Yes,
    /// It does, even if others hold the session.
    Force,
}

/// What happens during a call, in order. `cell` is an index into [`Call::cells`].
#[derive(Debug, Serialize, Deserialize)]
pub enum CallEvent {
    /// Other calls come first.
    Queued {
        /// How many.
        behind: usize,
    },
    /// A kernel was started for it.
    KernelStarted(AboutKernel),
    /// What came from earlier cells since the last call: threads and children print when they like.
    LateBefore(Arc<LateOutput>),
    /// The same, coming in while this call runs.
    Late(OutputChange),
    /// The cell's turn has come, and the kernel is ready for it. Only in calls that ask: see [`Turns`].
    #[serde(skip)] // answered over the wire in its own way
    Turn {
        /// Which cell.
        cell: usize,
        /// Answer it.
        request: TurnRequest,
    },
    /// The cell's code runs.
    CellStarted {
        /// Which cell.
        cell: usize,
    },
    /// The cell shows something.
    Output {
        /// Which cell.
        cell: usize,
        /// What.
        change: OutputChange,
    },
    /// A message on a comm, in calls that want them.
    Comm {
        /// Which cell caused it. `None` means one of an earlier cell, or of a thread.
        cell: Option<usize>,
        /// What it says.
        comm: Box<Comm>,
    },
    /// The cell waits for a line.
    #[serde(skip)] // answered over the wire in its own way
    Input {
        /// Which cell.
        cell: usize,
        /// Answer it.
        request: InputRequest,
    },
    /// The cell is being stopped.
    Stopping {
        /// Which cell.
        cell: usize,
        /// Why.
        reason: StopReason,
    },
    /// The cell is over.
    CellFinished(Arc<CellReport>),
    /// Something to know; it is in the report too.
    Notice(Notice),
}

/// What came from earlier cells since the last call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LateOutput {
    /// What a report holds of it.
    pub collected: CollectedOutput,
    /// All of it, in order, unless that is more than a megabyte.
    pub changes: Option<Vec<OutputChange>>,
}

/// A cell whose turn has come, and which waits to hear what it is. Dropping it lets it run as it was called.
#[derive(Debug)]
pub struct TurnRequest {
    pub(crate) answer: oneshot::Sender<Turn>,
}

/// What a cell is when its turn comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Turn {
    /// What it was when it was called.
    AsCalled,
    /// This code.
    Instead(String),
    /// Nothing any more; it is not run, and the call goes on.
    Withdrawn,
}

impl TurnRequest {
    /// Lets the call go on.
    pub fn answer(self, turn: Turn) {
        drop(self.answer.send(turn)); // the call may have been stopped meanwhile
    }
}

/// A cell that waits for a line from the user. Dropping it refuses.
#[derive(Debug)]
pub struct InputRequest {
    /// What the cell asked.
    pub prompt: String,
    /// The answer is a secret and not to be shown.
    pub password: bool,
    pub(crate) answer: oneshot::Sender<InputAnswer>,
}

impl InputRequest {
    /// Hands the cell its line, without a line break at the end.
    pub fn answer(self, line: impl Into<String>) {
        self.respond(InputAnswer::Line(line.into()));
    }

    /// Raises an error with this message in the cell.
    pub fn refuse(self, why: impl Into<String>) {
        self.respond(InputAnswer::Refusal(why.into()));
    }

    pub(crate) fn respond(self, answer: InputAnswer) {
        drop(self.answer.send(answer)); // the cell may have been stopped meanwhile
    }
}

/// A call under way. Dropping it does with the call what [`Call::abandoned`] says; [`CallHandle::detach`] lets it
/// go on in the background.
///
/// Read it to its end: a call whose events nobody takes is held up.
pub struct CallHandle {
    job: JobId,
    events: mpsc::Receiver<CallEvent>,
    report: watch::Receiver<Option<Arc<CallReport>>>,
    stop: CancellationToken,
    /// Reports to the keeper of the call that nobody follows it here any more. `None` once reported.
    leave: Option<LeaveCall>,
    /// Closed when the daemon knows how the call was left, or its report is here. `None` for a call of this process.
    handed_over: Option<oneshot::Receiver<()>>,
    /// The report has been read.
    is_read: bool,
}

/// What became of a call that was let go.
#[derive(Debug)]
pub enum LetGo {
    /// It continues in the background under this name.
    Background(JobId),
    /// It had just ended.
    Finished(Arc<CallReport>),
}

pub(crate) type LeaveCall = Box<dyn FnOnce(LeftCall) + Send + Sync>;

/// How a call was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeftCall {
    /// To go on in the background.
    Detached,
    /// Before its report was read.
    Dropped,
    /// With its report.
    Finished,
}

/// What comes next of a call.
#[derive(Debug)]
pub enum CallUpdate {
    /// Something happened.
    Event(CallEvent),
    /// It is over. Further calls return the same.
    Finished(Arc<CallReport>),
}

impl CallHandle {
    pub(crate) fn new(
        job: JobId,
        events: mpsc::Receiver<CallEvent>,
        report: watch::Receiver<Option<Arc<CallReport>>>,
        stop: CancellationToken,
        leave: LeaveCall,
    ) -> Self {
        Self { job, events, report, stop, leave: Some(leave), handed_over: None, is_read: false }
    }

    /// The same for a call in a daemon: `handed_over` closes when its task here has nothing more to send.
    pub(crate) fn handed_over_by(mut self, handed_over: oneshot::Receiver<()>) -> Self {
        self.handed_over = Some(handed_over);
        self
    }

    /// The name to follow it by.
    pub fn job(&self) -> JobId {
        self.job
    }

    /// The next event, or the report when all have been read. Cancel-safe.
    pub async fn next(&mut self) -> CallUpdate {
        if let Some(event) = self.events.recv().await {
            return CallUpdate::Event(event);
        }
        let report = self.finished().await;
        self.is_read = true;
        CallUpdate::Finished(report)
    }

    /// Waits for the end, passing over events; input is refused.
    pub async fn report(mut self) -> Arc<CallReport> {
        loop {
            if let CallUpdate::Finished(report) = self.next().await {
                return report;
            }
        }
    }

    /// Begins to stop the call. Go on reading: the report says what became of the kernel.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Lets the call go on in the background, and waits until the process that runs it knows.
    pub fn let_go(mut self) -> BoxFuture<'static, LetGo> {
        Box::pin(async move {
            let job = self.release();
            if let Some(handed_over) = self.handed_over.take() {
                drop(handed_over.await); // closed is what it should be
                if let Some(report) = self.report.borrow().clone() {
                    return LetGo::Finished(report);
                }
            }
            LetGo::Background(job)
        })
    }

    /// Lets the call go on in the background, where nothing holds it up. It can be followed by its name.
    pub fn detach(mut self) -> JobId {
        self.release()
    }

    /// The same, but events still go to the reader of this. A call in a daemon sends no further events.
    pub fn release(&mut self) -> JobId {
        if let Some(leave) = self.leave.take() {
            leave(LeftCall::Detached);
        }
        self.job
    }

    async fn finished(&mut self) -> Arc<CallReport> {
        let report = self.report.wait_for(Option::is_some).await;
        let report = report.expect("whoever runs a call reports its end before it leaves");
        report.clone().expect("waited for it")
    }
}

impl Drop for CallHandle {
    fn drop(&mut self) {
        if let Some(leave) = self.leave.take() {
            leave(if self.is_read { LeftCall::Finished } else { LeftCall::Dropped });
        }
    }
}

impl fmt::Debug for CallHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallHandle").field("job", &self.job).finish_non_exhaustive()
    }
}
