//! Sessions over scripted kernels.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cellwright_kernel::transport::{Incoming, KernelRequest, StopFailed, StopStep, Transport};
use cellwright_kernel::{
    AboutKernel, Exit, Graces, Kernel, KernelStart, Launcher, ProcessExit, StartError, StartedKernel,
};
use cellwright_session::{
    Call, CallEvent, CallHandle, CallReport, CallUpdate, CellRequest, CellStatus, SessionClient,
    SessionError, SessionId, SessionKey, SessionSettings, Sessions,
};
use cellwright_testkit::{Log, ScriptedKernel};
use futures_util::future::BoxFuture;
use tempfile::TempDir;
use tokio::time::{Instant, sleep_until};

/// Starts scripted kernels and remembers each one's log.
#[derive(Clone, Default)]
pub(crate) struct Scripted {
    logs: Arc<Mutex<Vec<Log>>>,
    /// What the next starts come to instead.
    failures: Arc<Mutex<VecDeque<StartError>>>,
    /// How the kernels that start next will die.
    dooms: Arc<Mutex<VecDeque<Doom>>>,
}

/// How a kernel dies that is not asked to.
#[derive(Clone, Copy)]
pub(crate) enum Doom {
    /// So long after its start.
    After(Duration),
    /// When it gets so many cells, before the last begins.
    AtCell(usize),
}

impl Scripted {
    /// How many kernels were started.
    pub(crate) fn started(&self) -> usize {
        self.logs.lock().unwrap().len()
    }

    /// What a kernel was asked to do, in order.
    pub(crate) fn log(&self, kernel: usize) -> Vec<String> {
        self.logs.lock().unwrap()[kernel].entries()
    }

    pub(crate) fn fail_next(&self, error: StartError) {
        self.failures.lock().unwrap().push_back(error);
    }

    pub(crate) fn doom_next(&self, doom: Doom) {
        self.dooms.lock().unwrap().push_back(doom);
    }
}

impl Launcher for Scripted {
    fn start(&self, _start: KernelStart) -> BoxFuture<'_, Result<StartedKernel, StartError>> {
        Box::pin(async {
            if let Some(error) = self.failures.lock().unwrap().pop_front() {
                return Err(error);
            }
            let (inner, log) = ScriptedKernel::new();
            self.logs.lock().unwrap().push(log);
            let doom = self.dooms.lock().unwrap().pop_front();
            let at = match doom {
                Some(Doom::After(time)) => Some(Instant::now() + time),
                Some(Doom::AtCell(_)) | None => None,
            };
            let cells = match doom {
                Some(Doom::AtCell(cells)) => cells,
                Some(Doom::After(_)) | None => usize::MAX,
            };
            let transport = Mortal { inner, at, cells };
            let (kernel, background) = Kernel::start(transport, Graces::default(), None);
            let about = AboutKernel { language: "script".into(), ..AboutKernel::default() };
            Ok(StartedKernel { kernel, background, about, warnings: Vec::new() })
        })
    }
}

/// A scripted kernel that may die of itself, with code 7.
struct Mortal {
    inner: ScriptedKernel,
    at: Option<Instant>,
    /// How many cells until it dies.
    cells: usize,
}

impl Transport for Mortal {
    fn send(&mut self, request: KernelRequest) {
        if let KernelRequest::Execute { .. } = request {
            self.cells -= 1;
            if self.cells == 0 {
                self.at = Some(Instant::now());
                return;
            }
        }
        self.inner.send(request);
    }

    fn recv(&mut self) -> BoxFuture<'_, Incoming> {
        let Some(at) = self.at else { return self.inner.recv() };
        Box::pin(async move {
            tokio::select! {
                () = sleep_until(at) => Incoming::Closed(exited(7)),
                incoming = self.inner.recv() => incoming,
            }
        })
    }

    fn stop(&mut self, step: StopStep) -> Result<(), StopFailed> {
        self.inner.stop(step)
    }
}

pub(crate) fn exited(code: i32) -> Exit {
    Exit::Process(ProcessExit::Code(code))
}

/// Sessions, someone who uses them, and the kernels behind.
pub(crate) struct Fixture {
    pub(crate) sessions: Sessions,
    pub(crate) client: SessionClient,
    pub(crate) kernels: Scripted,
    pub(crate) folder: TempDir,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(adjust: impl FnOnce(&mut SessionSettings)) -> Self {
        let kernels = Scripted::default();
        let mut settings = SessionSettings::new(kernels.clone());
        adjust(&mut settings);
        let sessions = Sessions::new(settings);
        let client = sessions.client();
        Self { client, sessions, kernels, folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn call(&self, session: &str, cells: &[&str]) -> Call {
        let cells = cells.iter().map(|code| CellRequest::new(*code)).collect();
        Call::new(session.parse().unwrap(), self.folder.path(), cells)
    }

    pub(crate) fn key(&self, session: &str) -> SessionKey {
        let session: SessionId = session.parse().unwrap();
        let cwd = self.folder.path().canonicalize().unwrap();
        SessionKey { session, cwd, kernel: cellwright_kernel::KernelChoice::default() }
    }

    /// Runs cells to their report.
    pub(crate) async fn run(&self, session: &str, cells: &[&str]) -> Arc<CallReport> {
        run(&self.client, self.call(session, cells)).await.unwrap()
    }

    /// The names of the sessions there are.
    pub(crate) async fn names(&self) -> Vec<String> {
        let sessions = self.client.sessions().await.unwrap();
        let mut names: Vec<_> = sessions.iter().map(|info| info.key.session.to_string()).collect();
        names.sort();
        names
    }
}

pub(crate) async fn run(client: &SessionClient, call: Call) -> Result<Arc<CallReport>, SessionError> {
    Ok(client.call(call).await?.report().await)
}

/// The report's notices as people read them.
pub(crate) fn notices(report: &CallReport) -> Vec<String> {
    report.notices.iter().map(ToString::to_string).collect()
}

pub(crate) fn text(report: &CallReport) -> Vec<&str> {
    report.cells.iter().map(|cell| cell.output.text.text.as_str()).collect()
}

pub(crate) fn statuses(report: &CallReport) -> Vec<&CellStatus> {
    report.cells.iter().map(|cell| &cell.status).collect()
}

/// Starts a call and returns once its first cell runs.
pub(crate) async fn begin(client: &SessionClient, call: Call) -> CallHandle {
    let mut running = client.call(call).await.unwrap();
    loop {
        match running.next().await {
            CallUpdate::Event(CallEvent::CellStarted { .. }) => return running,
            CallUpdate::Event(_) => {}
            CallUpdate::Finished(report) => panic!("no cell ran: {report:?}"),
        }
    }
}
