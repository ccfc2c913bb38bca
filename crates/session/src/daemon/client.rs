//! The client's side of the socket.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use cellwright_kernel::{Death, Exit, InputAnswer};
use futures_util::FutureExt as _;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::start::DaemonDoor;
use super::{
    CallMessage, ConnectionPurpose, DaemonError, DaemonMessage, DaemonPlace, DaemonRequest, DaemonWire,
    Hello, Welcome,
};
use crate::bridge::{ToolCallError, ToolHost, ToolScope};
use crate::call::{Call, CallEvent, CallHandle, EVENTS, InputRequest, LeftCall, Turn, TurnRequest};
use crate::collect::CollectedOutput;
use crate::error::SessionError;
use crate::identity::SessionKey;
use crate::jobs::JobId;
use crate::journal::{FollowFrom, SessionEvent};
use crate::notice::Notice;
use crate::report::{CallReport, CellReport, CellStatus, KernelAfter, KernelReport, KernelUse, NotRun};

/// How long a daemon may take to let a call go on in the background.
const TAKES_OVER_WITHIN: Duration = Duration::from_secs(5);

/// How long a daemon may take to answer a greeting, which it does at once.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// A client of a daemon.
pub(crate) struct DaemonConnection {
    door: DaemonDoor,
    /// Held while a daemon that died is replaced.
    presence: tokio::sync::Mutex<DaemonPresence>,
}

/// Represents us at a daemon, as long as it is open.
pub(super) struct DaemonPresence {
    client: u64,
    /// The daemon's process: another one knows nothing of us.
    pid: u32,
    /// The next report has to say that this is another daemon.
    is_news: bool,
    _wire: Box<DaemonWire>,
}

/// What came of an attempt to join a daemon.
pub(super) enum JoinResult {
    Here(DaemonPresence),
    /// None listens.
    Nobody,
    /// One of another version has made way.
    Retired,
}

impl DaemonPresence {
    /// Joins the daemon that listens.
    pub(super) async fn join(place: &DaemonPlace, version: &str) -> Result<JoinResult, DaemonError> {
        let (mut wire, Welcome { version: theirs, pid }) = match greet(place, version).await {
            Ok(greeted) => greeted,
            // No daemon, or one that is just leaving.
            Err(error) if is_absence(&error) => return Ok(JoinResult::Nobody),
            Err(error) => return Err(confused(&error)),
        };
        let answer = if theirs == version {
            let client = asked(&mut wire, &ConnectionPurpose::Join).await;
            client.map(|client| JoinResult::Here(Self { client, pid, is_news: false, _wire: Box::new(wire) }))
        } else {
            match asked(&mut wire, &ConnectionPurpose::Retire).await {
                Ok(false) => return Err(DaemonError::OtherVersion { theirs, ours: version.into(), pid }),
                Ok(true) => Ok(JoinResult::Retired),
                Err(error) => Err(error),
            }
        };
        match answer {
            Err(error) if is_absence(&error) => Ok(JoinResult::Nobody),
            answer => answer.map_err(|error| confused(&error)),
        }
    }
}

impl DaemonConnection {
    pub(super) async fn open(door: DaemonDoor) -> Result<Self, DaemonError> {
        let presence = tokio::sync::Mutex::new(door.enter().await?);
        Ok(Self { door, presence })
    }

    /// Asks something that has one answer.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, request: DaemonRequest) -> Result<T, SessionError> {
        let mut wire = self.request(request).await?;
        wire.receive::<Result<T, SessionError>>().await.map_err(|error| gone(&error))?
    }

    /// Watches a session.
    pub(crate) async fn follow(
        &self,
        key: SessionKey,
        from: FollowFrom,
    ) -> Result<FollowedSession, SessionError> {
        let mut wire = self.request(DaemonRequest::Follow { key, from }).await?;
        wire.receive::<Result<(), SessionError>>().await.map_err(|error| gone(&error))??;
        Ok(FollowedSession { wire })
    }

    /// Runs a call.
    pub(crate) async fn call(&self, call: Call) -> Result<CallHandle, SessionError> {
        let cwd = std::path::absolute(&call.cwd);
        let cwd = cwd.map_err(|error| SessionError::no_directory(call.cwd.clone(), &error))?;
        let settings = call.settings.clone().or_else(|| self.door.settings.clone());
        let call = Call { cwd, settings, ..call };
        let mut unfinished = UnfinishedCall::of(&call);
        let (stop, tools) = (call.stop.child_token(), call.tools.clone());
        let mut wire = self.request(DaemonRequest::Call(Box::new(call))).await?;
        let accepted = wire.receive::<Result<JobId, SessionError>>().await;
        let job = accepted.map_err(|error| gone(&error))??;
        if std::mem::take(&mut self.presence.lock().await.is_news) {
            unfinished.news = Some(Notice::DaemonReplaced);
        }
        let (event_sender, events) = mpsc::channel(EVENTS);
        let (report_sender, report) = watch::channel(None);
        let (leave, left) = oneshot::channel();
        let (hands_over, handed_over) = oneshot::channel();
        let following = FollowedCall {
            wire,
            events: event_sender,
            stop: stop.clone(),
            left,
            tools,
            unfinished,
            _hands_over: hands_over,
        };
        // Ends with the call, with its `CallHandle`, or with the connection.
        drop(tokio::spawn(following.run(report_sender).boxed()));
        let leave = Box::new(move |left| {
            let _ = leave.send(left); // the call may be over
        });
        Ok(CallHandle::new(job, events, report, stop, leave).handed_over_by(handed_over))
    }

    /// A connection on which something was asked, of another daemon if ours has died.
    async fn request(&self, request: DaemonRequest) -> Result<DaemonWire, SessionError> {
        let mut presence = self.presence.lock().await;
        let greeted = greet(&self.door.place, self.door.version).await;
        let mut wire = match greeted {
            Ok((wire, welcome)) if welcome.pid == presence.pid => wire,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(gone(&error)),
            Ok(_) | Err(_) => {
                let entered = self.door.enter().await;
                *presence = entered.map_err(|error| SessionError::Daemon(error.to_string()))?;
                presence.is_news = true;
                let greeted = greet(&self.door.place, self.door.version).await;
                greeted.map_err(|error| gone(&error))?.0
            }
        };
        let purpose = ConnectionPurpose::Request { client: presence.client, request };
        drop(presence);
        wire.send(&purpose).await.map_err(|error| gone(&error))?;
        Ok(wire)
    }
}

/// A session of the daemon that is watched.
pub(crate) struct FollowedSession {
    wire: DaemonWire,
}

impl FollowedSession {
    /// The next event. Nothing after the last. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Arc<SessionEvent>> {
        self.wire.receive().await.ok().map(Arc::new)
    }
}

async fn greet(place: &DaemonPlace, version: &str) -> io::Result<(DaemonWire, Welcome)> {
    let greeting = async {
        let mut wire = DaemonWire::new(UnixStream::connect(place.socket()).await?)?;
        wire.send(&Hello { version: version.into() }).await?;
        let welcome = wire.receive().await?;
        Ok((wire, welcome))
    };
    timeout(ANSWERS_WITHIN, greeting).await.unwrap_or_else(|_| Err(silent()))
}

fn silent() -> io::Error {
    let why =
        "it does not answer; its process may be stopped (SIGSTOP), or something else listens at its socket";
    io::Error::new(io::ErrorKind::TimedOut, why)
}

async fn asked<T: DeserializeOwned>(wire: &mut DaemonWire, purpose: &ConnectionPurpose) -> io::Result<T> {
    wire.send(purpose).await?;
    timeout(ANSWERS_WITHIN, wire.receive()).await.unwrap_or_else(|_| Err(silent()))
}

pub(super) fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof
    )
}

fn confused(error: &io::Error) -> DaemonError {
    DaemonError::Confused(error.to_string())
}

fn gone(error: &io::Error) -> SessionError {
    SessionError::Daemon(if is_absence(error) {
        "it has gone, with its kernels and their variables".into()
    } else {
        error.to_string()
    })
}

/// The task that follows a call in the daemon.
struct FollowedCall {
    wire: DaemonWire,
    events: mpsc::Sender<CallEvent>,
    stop: CancellationToken,
    left: oneshot::Receiver<LeftCall>,
    tools: Option<Arc<dyn ToolHost>>,
    unfinished: UnfinishedCall,
    /// Dropped when nothing more is sent.
    _hands_over: oneshot::Sender<()>,
}

impl FollowedCall {
    async fn run(mut self, report: watch::Sender<Option<Arc<CallReport>>>) {
        let finished = match self.follow().await {
            Ok(Some(mut finished)) => {
                // A session that the daemon remembers says more.
                let is_told = finished.notices.iter().any(|notice| matches!(notice, Notice::Departed(_)));
                if let Some(news) = self.unfinished.news.take().filter(|_| !is_told) {
                    Arc::make_mut(&mut finished).notices.insert(0, news);
                }
                finished
            }
            Ok(None) => return, // nobody waits for a report any more
            Err(error) => Arc::new(self.unfinished.report(gone(&error))),
        };
        // The events end before the report comes.
        let Self { events, _hands_over, .. } = self;
        drop(events);
        report.send_replace(Some(finished));
    }

    /// The report, or nothing when the call was left.
    async fn follow(&mut self) -> io::Result<Option<Arc<CallReport>>> {
        let mut asked_to_stop = false;
        let mut input: Option<oneshot::Receiver<InputAnswer>> = None;
        let mut turn: Option<oneshot::Receiver<Turn>> = None;
        // They end with the call, whose cell waits for them.
        let mut tools = FuturesUnordered::new();
        loop {
            // Room first: a caller that does not read holds up the daemon's side, not our memory.
            let message = async {
                let permit = self.events.reserve().await.ok();
                (permit, self.wire.receive().await)
            };
            let (permit, message) = tokio::select! {
                biased;
                left = &mut self.left => {
                    if let Ok(LeftCall::Detached) = left {
                        self.wire.send(&CallMessage::Detach).await?;
                        // It is in the background when the daemon has closed its end. What it said before is in the report.
                        let closed = async { while self.wire.receive::<DaemonMessage>().await.is_ok() {} };
                        drop(timeout(TAKES_OVER_WITHIN, closed).await); // one that is stopped will do so when it goes on
                    }
                    return Ok(None);
                }
                () = self.stop.cancelled(), if !asked_to_stop => {
                    asked_to_stop = true;
                    self.wire.send(&CallMessage::Stop).await?;
                    continue;
                }
                answer = answered(input.as_mut()) => {
                    input = None;
                    let answer = answer.unwrap_or_else(|_| InputAnswer::missing());
                    self.wire.send(&CallMessage::Answer(answer)).await?;
                    continue;
                }
                answer = answered(turn.as_mut()) => {
                    turn = None;
                    self.wire.send(&CallMessage::Turn(answer.unwrap_or(Turn::AsCalled))).await?;
                    continue;
                }
                Some((number, value)) = tools.next() => {
                    self.wire.send(&CallMessage::ToolAnswer { number, value }).await?;
                    continue;
                }
                message = message => message,
            };
            let event = match message? {
                DaemonMessage::Event(event) => {
                    // Its question ends with it: an answer that comes now would go to the next question.
                    if matches!(event, CallEvent::CellFinished(_)) {
                        input = None;
                    }
                    event
                }
                DaemonMessage::Input { cell, prompt, password } => {
                    let (answer, reply) = oneshot::channel();
                    input = Some(reply);
                    CallEvent::Input { cell, request: InputRequest { prompt, password, answer } }
                }
                DaemonMessage::Turn { cell } => {
                    let (answer, reply) = oneshot::channel();
                    turn = Some(reply);
                    CallEvent::Turn { cell, request: TurnRequest { answer } }
                }
                DaemonMessage::Tool { number, session, name, args } => {
                    let host = self.tools.clone();
                    tools.push(async move {
                        (number, call_tool(host.as_deref(), ToolScope { session }, name, args).await)
                    });
                    continue;
                }
                DaemonMessage::Finished(report) => {
                    drop(self.wire.send(&CallMessage::Received).await); // then it is kept a little longer there
                    return Ok(Some(report));
                }
            };
            self.unfinished.note(&event);
            if let Some(permit) = permit {
                permit.send(event);
            }
        }
    }
}

async fn call_tool(
    host: Option<&dyn ToolHost>,
    scope: ToolScope,
    name: String,
    args: Value,
) -> Result<Value, ToolCallError> {
    match host {
        Some(host) => host.call(scope, name, args).await,
        None => Err("the client that runs this cell offers no tools".into()),
    }
}

/// The answer, or an error if the other side has left.
async fn answered<T>(question: Option<&mut oneshot::Receiver<T>>) -> Result<T, oneshot::error::RecvError> {
    match question {
        Some(reply) => reply.await,
        None => std::future::pending().await,
    }
}

/// What is known of a call, for the case that the daemon is lost under it.
struct UnfinishedCall {
    key: SessionKey,
    cells: Vec<Arc<CellReport>>,
    running: Option<usize>,
    began: Instant,
    /// What its report has to add to what the daemon says.
    news: Option<Notice>,
}

impl UnfinishedCall {
    fn of(call: &Call) -> Self {
        let cells = call.cells.iter().enumerate().map(|(index, cell)| {
            Arc::new(CellReport {
                index,
                title: cell.source.title.clone(),
                status: CellStatus::NotRun(NotRun::Error),
                duration: Duration::ZERO,
                execution_count: None,
                output: CollectedOutput::empty(),
                may_raise: cell.may_raise,
            })
        });
        let key =
            SessionKey { session: call.session.clone(), cwd: call.cwd.clone(), kernel: call.kernel.clone() };
        Self { key, cells: cells.collect(), running: None, began: Instant::now(), news: None }
    }

    fn note(&mut self, event: &CallEvent) {
        match event {
            CallEvent::CellStarted { cell } => self.running = Some(*cell),
            CallEvent::CellFinished(report) => {
                self.running = None;
                self.cells[report.index] = Arc::clone(report);
            }
            CallEvent::Queued { .. }
            | CallEvent::KernelStarted(_)
            | CallEvent::LateBefore(_)
            | CallEvent::Late(_)
            | CallEvent::Output { .. }
            | CallEvent::Comm { .. }
            | CallEvent::Input { .. }
            | CallEvent::Turn { .. }
            | CallEvent::Stopping { .. }
            | CallEvent::Notice(_) => {}
        }
    }

    fn report(&mut self, error: SessionError) -> CallReport {
        let mut cells = std::mem::take(&mut self.cells);
        if let Some(running) = self.running {
            let exit = Exit::Lost("the session daemon was lost".into());
            Arc::make_mut(&mut cells[running]).status = CellStatus::Died(Death { exit, started: true });
        }
        CallReport {
            key: self.key.clone(),
            cells,
            late: None,
            kernel: KernelReport {
                about: None,
                usage: KernelUse::None,
                after: KernelAfter::Gone,
                memory: None,
            },
            notices: self.news.take().into_iter().collect(),
            error: Some(error),
            duration: self.began.elapsed(),
        }
    }
}
