//! The companion: the kernel that the person's code cells and the agent's calls share.
//!
//! It is a session like any other, in this process or in the user's daemon. `CompanionKernel` says which one, runs
//! cells in it, and passes on what its threads and widgets say between cells.

mod follow;
mod python;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cellwright_cell::{Output, OutputChange, Stream};
use cellwright_editing::{ProcessMemory, ReadMemory};
use cellwright_jupyter::{MessageHeader, ServerSender};
use cellwright_kernel::environment::EnvVars;
use cellwright_kernel::{Comms, KernelChoice, KernelVariables, Question, Reply, Stdin};
use cellwright_session::daemon::{self, DaemonDoor};
use cellwright_session::{
    Call, CallEvent, CallHandle, CallUpdate, CellRequest, FollowFrom, Force, InterruptResult, Reset,
    SessionClient, SessionError, SessionId, SessionInfo, SessionKey, SessionSettings, Timeout,
};
use cellwright_tools::{
    BackgroundPolicy, SessionHome, SessionNames, ToolClient, ToolSettings, Toolbox, Workspace,
};
use tokio_util::task::AbortOnDropHandle;

pub(crate) use self::follow::CommDelivery;
use self::follow::OpenComms;
pub(crate) use self::python::{is_python, mentions};
use crate::kernel_state::lock;
use crate::magic::CodeLanguage;
use crate::task;
use crate::tool_door::{DoorSetup, ToolDoor};

/// The session of code cells, where no other was named.
const SESSION: &str = "notebook";

/// What is kept of what happens in a session, for the cells that show it.
const WATCHED: usize = 8 << 20;

/// How long code may take that describes a value.
const PRINTS: Duration = Duration::from_secs(5);

/// Longer than any client waits for a call.
const LONGEST_CALL: Duration = Duration::from_hours(1);

/// Sessions at once: one for each language that a notebook uses.
const MOST_SESSIONS: usize = 16;

/// How code cells run, and what the agent may call.
#[derive(Clone)]
pub struct CompanionSetup {
    /// How the tools work. Their kernel is that of code cells.
    pub tools: ToolSettings,
    /// How sessions of this process work.
    pub sessions: SessionSettings,
    /// Where named sessions live.
    pub daemon: Option<DaemonDoor>,
    /// How agents reach the tools. Without it they do not.
    pub door: Option<DoorSetup>,
}

impl fmt::Debug for CompanionSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompanionSetup").field("tools", &self.tools).finish_non_exhaustive()
    }
}

/// The kernels of a notebook. One of them is meant where none is named.
pub(crate) struct CompanionKernel {
    toolbox: Toolbox,
    here: Arc<SessionClient>,
    daemon: Option<DaemonDoor>,
    /// What kernels of the daemon inherit.
    variables: EnvVars,
    default: KernelChoice,
    cwd: PathBuf,
    place: Mutex<Arc<CompanionPlace>>,
    /// Passes on what sessions say between cells.
    watched: Mutex<HashMap<SessionKey, AbortOnDropHandle<()>>>,
    comms: Arc<OpenComms>,
    /// The cell that ran last. What comes between cells appears there.
    last_cell: Arc<Mutex<Option<CellAddress>>>,
    /// What the agent has read.
    memory: Arc<dyn ReadMemory>,
    /// The agent as a caller of tools, and the place of its calls.
    caller: Mutex<Option<(Arc<CompanionPlace>, Arc<ToolClient>)>>,
    pub(crate) door: Option<ToolDoor>,
}

/// Where code runs: a session, and the way to it.
pub(crate) struct CompanionPlace {
    client: Arc<SessionClient>,
    home: SessionHome,
    pub(crate) key: SessionKey,
}

/// What outputs need to reach a cell.
#[derive(Clone)]
pub(crate) struct CellAddress {
    pub(crate) sender: ServerSender,
    pub(crate) header: MessageHeader,
}

impl CompanionPlace {
    /// Whether its session lives in the daemon.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self.home, SessionHome::Daemon(_))
    }

    /// The kernel in a few words.
    pub(crate) fn described(&self) -> String {
        if self.is_remote() {
            format!("{} in the session `{}`", self.key.kernel, self.key.session)
        } else {
            self.key.kernel.to_string()
        }
    }
}

impl CompanionKernel {
    /// Starts nothing. Needs a tokio runtime.
    pub(crate) fn new(setup: CompanionSetup, cwd: &Path) -> Self {
        let CompanionSetup { mut tools, mut sessions, daemon, door } = setup;
        // Each client has its own limit, which is shorter.
        tools.background = BackgroundPolicy::After(LONGEST_CALL);
        sessions.limits.journal = WATCHED;
        sessions.limits.sessions = sessions.limits.sessions.max(MOST_SESSIONS);
        let (default, variables) = (tools.kernel.clone(), tools.launch.search.variables.clone());
        let toolbox = Toolbox::new(tools, sessions);
        let door = door.map(|door| ToolDoor::new(door, toolbox.clone(), cwd));
        let home = toolbox.home();
        let SessionHome::Here(here) = &home else { unreachable!("its home is this process") };
        let here = Arc::clone(here);
        // Sessions know their folder without links.
        let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
        let session: SessionId = SESSION.parse().expect("a valid name");
        let key = SessionKey { session, cwd: cwd.clone(), kernel: default.clone() };
        let place = Arc::new(CompanionPlace { client: Arc::clone(&here), home, key });
        Self {
            toolbox,
            here,
            daemon,
            variables,
            default,
            cwd,
            place: Mutex::new(place),
            watched: Mutex::default(),
            comms: Arc::default(),
            last_cell: Arc::default(),
            memory: Arc::new(ProcessMemory::default()),
            caller: Mutex::default(),
            door,
        }
    }

    /// Where code runs that names no language.
    pub(crate) fn place(&self) -> Arc<CompanionPlace> {
        Arc::clone(&lock(&self.place))
    }

    /// Where code of a language runs.
    pub(crate) fn place_of(&self, language: &CodeLanguage) -> Result<Arc<CompanionPlace>, CompanionError> {
        let current = self.place();
        let kernel = match language {
            CodeLanguage::Companion => return Ok(current),
            CodeLanguage::Python if is_python(&current.key.kernel) => return Ok(current),
            CodeLanguage::Python if is_python(&self.default) => self.default.clone(),
            CodeLanguage::Python => KernelChoice::default(),
            CodeLanguage::Named(name) => name.parse()?,
        };
        if kernel == current.key.kernel {
            return Ok(current);
        }
        let key = SessionKey { kernel, ..current.key.clone() };
        Ok(Arc::new(CompanionPlace { client: Arc::clone(&current.client), home: current.home.clone(), key }))
    }

    /// Runs code that names no language elsewhere from now on. The kernel before keeps its variables.
    pub(crate) async fn choose(
        &self,
        kernel: Option<&str>,
        session: Option<&str>,
    ) -> Result<Arc<CompanionPlace>, CompanionError> {
        let kernel: KernelChoice = kernel.map_or(Ok(self.default.clone()), str::parse)?;
        let (session, client, home) = if let Some(session) = session {
            let door = self.daemon.as_ref().ok_or(CompanionError::NoDaemon)?;
            let client = Arc::new(daemon::connect(door).await?);
            (session.parse()?, client, SessionHome::Daemon(door.clone()))
        } else {
            let session = SESSION.parse().expect("a valid name");
            (session, Arc::clone(&self.here), self.toolbox.home())
        };
        let key = SessionKey { session, cwd: self.cwd.clone(), kernel };
        let place = CompanionPlace { client, home, key };
        let place = Arc::new(place);
        *lock(&self.place) = Arc::clone(&place);
        Ok(place)
    }

    /// Runs a cell. Read the handle to its end. `shown` is where that appears which comes after it.
    pub(crate) async fn run(
        &self,
        place: &CompanionPlace,
        request: CellRequest,
        stdin: Stdin,
        shown: CellAddress,
    ) -> Result<CallHandle, SessionError> {
        let mut call = self.call(place, vec![request]);
        call.stdin = stdin;
        *lock(&self.last_cell) = Some(shown);
        let handle = place.client.call(call).await?;
        self.watch(place).await;
        Ok(handle)
    }

    /// Whether Python reads a text as a program. `None` if no kernel can say so at once.
    pub(crate) async fn compiles(&self, text: &str) -> Option<bool> {
        let place = self.place();
        let source = serde_json::to_string(text).ok()?;
        // It leaves no name behind, and shows nothing.
        let code = format!("if compile({source}, '<cell>', 'exec', 0, True): pass");
        let mut request = CellRequest::new(String::new());
        request.source = cellwright_kernel::CellSource::silent(code);
        request.timeout = Timeout::After(Duration::from_secs(2));
        let call = self.call(&place, vec![request]);
        Some(place.client.call(call).await.ok()?.report().await.succeeded())
    }

    /// What code prints. It should leave no name behind; no cell shows it. `None` if the kernel is busy, or the code
    /// fails.
    pub(crate) async fn printed_by(&self, code: String) -> Option<String> {
        let place = self.place();
        let mut request = CellRequest::new(String::new());
        request.source = cellwright_kernel::CellSource::silent(code);
        request.timeout = Timeout::After(PRINTS);
        let printing = async {
            let mut handle = place.client.call(self.call(&place, vec![request])).await.ok()?;
            let mut printed = String::new();
            loop {
                match handle.next().await {
                    CallUpdate::Event(CallEvent::Output { change, .. }) => {
                        if let OutputChange::Added(Output::Text { stream: Stream::Stdout, text }) = change {
                            printed.push_str(&text);
                        }
                    }
                    CallUpdate::Event(_) => {}
                    CallUpdate::Finished(report) => break report.succeeded().then_some(printed),
                }
            }
        };
        // Other cells may run before it.
        tokio::time::timeout(PRINTS, printing).await.ok().flatten()
    }

    pub(crate) fn toolbox(&self) -> &Toolbox {
        &self.toolbox
    }

    /// The agent as a caller of tools that works in a place.
    pub(crate) fn tool_client(&self, place: &Arc<CompanionPlace>) -> std::io::Result<Arc<ToolClient>> {
        let mut caller = lock(&self.caller);
        if let Some((at, client)) = &*caller
            && Arc::ptr_eq(at, place)
        {
            return Ok(Arc::clone(client));
        }
        let mut names = SessionNames::shared(place.key.session.clone());
        names.kernel = Some(place.key.kernel.clone());
        let workspace = Workspace::new(&self.cwd)?;
        let memory = Arc::clone(&self.memory);
        let client = self.toolbox.client_remembering(place.home.clone(), workspace, names, memory);
        *caller = Some((Arc::clone(place), Arc::clone(&client)));
        Ok(client)
    }

    fn call(&self, place: &CompanionPlace, cells: Vec<CellRequest>) -> Call {
        let SessionKey { session, cwd, kernel } = place.key.clone();
        let mut call = Call::new(session, cwd, cells);
        call.kernel = kernel;
        call.comms = Comms::Forwarded;
        self.equip(place, &mut call);
        call
    }

    /// Adds what a call brings along to a daemon.
    fn equip(&self, place: &CompanionPlace, call: &mut Call) {
        if place.is_remote() {
            call.variables = Some(self.variables.clone());
            call.settings = self.daemon.as_ref().and_then(|door| door.settings.clone());
        }
    }

    /// Asks the kernel something that is no cell. Starts it if needed.
    pub(crate) async fn ask(
        &self,
        place: &CompanionPlace,
        question: Question,
    ) -> Result<Reply, SessionError> {
        match place.client.ask(&place.key, question.clone()).await {
            Err(SessionError::NoKernel | SessionError::NoSession(_)) => {}
            answer => return answer,
        }
        let SessionKey { session, cwd, kernel } = place.key.clone();
        let mut call = Call::ensure_kernel(session, cwd, kernel, Reset::No);
        self.equip(place, &mut call);
        place.client.call(call).await?.report().await;
        place.client.ask(&place.key, question).await
    }

    /// The variables of the kernel, at most `limit`. An error if it was never started.
    pub(crate) async fn variables(&self, limit: usize) -> Result<KernelVariables, SessionError> {
        let place = self.place();
        place.client.variables(&place.key, limit).await
    }

    /// Interrupts the cell that runs.
    pub(crate) async fn interrupt(&self, place: &CompanionPlace) -> Result<InterruptResult, SessionError> {
        place.client.interrupt(&place.key).await
    }

    /// Ends the kernel. The next cell finds a fresh one.
    pub(crate) async fn restart(&self, place: &CompanionPlace) -> Result<(), SessionError> {
        match place.client.restart(&place.key, Force::Yes).await {
            Err(SessionError::NoSession(_)) => Ok(()), // nothing ran yet
            restarted => restarted,
        }
    }

    /// All kernels of this notebook that run.
    pub(crate) async fn sessions(&self) -> Result<Vec<SessionInfo>, SessionError> {
        let place = self.place();
        let mut all = place.client.sessions().await?;
        all.retain(|info| info.key.session == place.key.session && info.key.cwd == place.key.cwd);
        Ok(all)
    }

    /// The comms with kernels of this notebook.
    pub(crate) fn comms(&self) -> &OpenComms {
        &self.comms
    }

    /// Passes on what a session says between cells, from now on.
    pub(crate) async fn watch(&self, place: &CompanionPlace) {
        let is_watched = |watched: &HashMap<_, AbortOnDropHandle<()>>| {
            watched.get(&place.key).is_some_and(|task| !task.is_finished())
        };
        if is_watched(&lock(&self.watched)) {
            return;
        }
        let follower = match place.client.follow(&place.key, FollowFrom::Now).await {
            Ok(follower) => follower,
            Err(error) => return tracing::warn!(%error, "what its threads print is not shown"),
        };
        let way = follow::CommWay { client: Arc::clone(&place.client), key: place.key.clone() };
        let (comms, last) = (Arc::clone(&self.comms), Arc::clone(&self.last_cell));
        let following = follow::pass_on(follower, way, comms, last);
        lock(&self.watched).insert(place.key.clone(), task::spawn(following));
    }

    /// Notes a comm message of a running cell, and passes it on to the client of that cell.
    pub(crate) fn said(&self, place: &CompanionPlace, comm: &cellwright_session::Comm, cell: &CellAddress) {
        let way = follow::CommWay { client: Arc::clone(&place.client), key: place.key.clone() };
        self.comms.said(&way, comm, cell);
    }

    /// Takes a comm message of a client.
    pub(crate) fn takes(&self, message: &cellwright_jupyter::JupyterMessage) -> Option<CommDelivery> {
        self.comms.delivery(message)
    }

    /// Ends all kernels of this process.
    pub(crate) async fn end(&self) {
        lock(&self.watched).clear();
        self.toolbox.shutdown().await;
    }
}

impl fmt::Debug for CompanionKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompanionKernel").field("cwd", &self.cwd).finish_non_exhaustive()
    }
}

/// Why the kernel of code cells could not be chosen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CompanionError {
    #[error(transparent)]
    Kernel(#[from] cellwright_kernel::InvalidKernelChoice),
    #[error(transparent)]
    Name(#[from] cellwright_session::InvalidSessionId),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Daemon(#[from] daemon::DaemonError),
    #[error("there is no daemon for named sessions here")]
    NoDaemon,
}
