//! The tools, together.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use cellwright_editing::{FileEditor, HistoryStore, LiveNotebooks, ProcessMemory, ReadMemory};
use cellwright_kernel::environment::EnvVars;
use cellwright_kernel::{KernelChoice, RunnerLaunch};
use cellwright_notebook::file::SaveSettings;
use cellwright_output::{Artifacts, Image, ImageLimits, OutputLimits};
use cellwright_run::RunRecord;
use cellwright_session::{
    Call, CallEvent, CallHandle, CallReport, Reset, SessionError, SessionKey, Sessions,
};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::arguments::{parse, unknown_name};
use crate::arrival::CallPlace;
use crate::bridge::ToolBridge;
use crate::client::{SessionHome, SessionNames, ToolClient};
use crate::mode::RunMode;
use crate::notebook::background::BackgroundRuns;
use crate::reply::{ReplyPart, ReplyRoom, ToolFailure, ToolReply};
use crate::shell::{ClientShells, LoginShell};
use crate::spec::{ToolName, ToolSpec};
use crate::waits::SessionWaits;
use crate::workspace::Workspace;
use crate::{bash, edit, eval, kernel, notebook, read};

/// What a caller decides about the tools.
#[derive(Debug, Clone)]
pub struct ToolSettings {
    /// Which tools that run code are offered.
    pub mode: RunMode,
    /// Where outputs are that were too long to show.
    pub artifacts: Artifacts,
    /// How notebooks are saved.
    pub save: SaveSettings,
    /// How much text a reply shows of what a command printed.
    pub limits: OutputLimits,
    /// How large an image in a reply may be.
    pub images: ImageLimits,
    /// The kernel of calls that ask for Python or for nothing.
    pub kernel: KernelChoice,
    /// Whether a kernel stays for the next call.
    pub lifetime: cellwright_session::SessionMode,
    /// The time a cell or a command has that asks for none; `None` for as long as it likes.
    pub timeout: Option<Duration>,
    /// What may go on when its call is answered.
    pub background: BackgroundPolicy,
    /// What shell commands see of our environment: all of it.
    pub environment: EnvVars,
    /// A file that sets up a shell, to be read in the place of login files.
    pub shell_snapshot: Option<PathBuf>,
    /// How Python is found, to list the available ones.
    pub launch: RunnerLaunch,
    /// Where it is kept what changes of notebooks took away; without it they cannot be undone.
    pub history: Option<HistoryStore>,
    /// Notebooks that are open in pages; without it, all are in their files.
    pub live: Option<Arc<dyn LiveNotebooks>>,
}

/// What may go on when its call is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackgroundPolicy {
    /// Nothing that runs in this process, which ends with the call.
    Nothing,
    /// What asks for it.
    Asked,
    /// What asks for it, and what takes longer than this.
    After(Duration),
}

/// All tools. Cheap to clone; when the last clone and the last [`ToolClient`] are gone, so is everything they started.
#[derive(Debug, Clone)]
pub struct Toolbox {
    shared: Arc<ToolboxState>,
}

pub(crate) struct ToolboxState {
    pub(crate) settings: ToolSettings,
    sessions: Sessions,
    python: watch::Sender<PythonState>,
    login: Arc<LoginShell>,
    /// What ran of notebooks.
    history: Mutex<RunRecord>,
    /// Notebooks that run in the background.
    background_runs: Mutex<BackgroundRuns>,
    /// Cells that wait for cells elsewhere.
    pub(crate) waits: SessionWaits,
    /// By their prefix, for calls that come from cells.
    clients: Mutex<Vec<Weak<ToolClient>>>,
}

/// Whether `eval` can work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PythonState {
    /// Nobody has tried yet.
    Untried,
    /// A kernel has run.
    Works,
    /// No kernel could be started, and why.
    Fails(String),
}

/// The circumstances of one call.
#[derive(Clone)]
pub struct CallContext {
    /// The caller.
    pub client: Arc<ToolClient>,
    /// Cancelling this stops what the call started.
    pub stop: CancellationToken,
    /// Cancelled when the client has left. Its cells in a daemon's session run on then, and all else stops.
    pub left: CancellationToken,
    /// Where output goes while the call runs.
    pub progress: Option<Arc<dyn ProgressSink>>,
    /// Answers when a cell asks for input.
    pub ask: Option<Arc<dyn InputPrompter>>,
    /// Sees what the cells of the call do.
    pub observer: Option<Arc<dyn CallObserver>>,
    /// The reader of the reply.
    pub reader: ReplyReader,
    /// Its place among the calls of its client; without one it starts at once.
    pub arrival: Option<CallPlace>,
    /// The session of the cell that calls, if a cell does.
    pub(crate) cell: Option<SessionKey>,
    /// How much of the reply reaches that reader.
    pub room: ReplyRoom,
    /// What the caller has read: the client, or a cell that calls a tool.
    memory: Arc<dyn ReadMemory>,
}

impl CallContext {
    /// A call of the client itself, whose model reads the reply.
    pub fn new(client: Arc<ToolClient>, stop: CancellationToken) -> Self {
        let memory = client.memory();
        Self {
            client,
            stop,
            left: CancellationToken::new(),
            progress: None,
            ask: None,
            observer: None,
            reader: ReplyReader::Model,
            room: ReplyRoom::default(),
            arrival: None,
            cell: None,
            memory,
        }
    }

    /// A call by a cell that the client runs in `session`. The client's model sees only what the cell prints, so the
    /// cell has a memory of its own.
    pub(crate) fn of_cell(client: Arc<ToolClient>, stop: CancellationToken, session: &SessionKey) -> Self {
        let memory = client.memory().of_programs(&session.to_string());
        let cell = Some(session.clone());
        Self { reader: ReplyReader::Program, cell, memory, ..Self::new(client, stop) }
    }
}

/// The reader of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyReader {
    /// A model, which is shown as much as it can take in, and the way to the rest.
    Model,
    /// A program, which is given everything: it could not distinguish a shortened text from a whole one.
    Program,
}

/// Takes what a call prints while it runs. Must not block.
pub trait ProgressSink: Send + Sync {
    /// Some text was printed.
    fn text(&self, text: &str);
}

/// Puts a question of running code to the user.
pub trait InputPrompter: Send + Sync {
    /// The answer, or why there is none. With `password`, do not show what is typed.
    fn ask(&self, prompt: String, password: bool) -> BoxFuture<'_, Result<String, NoAnswer>>;
}

/// Sees what the cells of a call do, also after the call was answered.
pub trait CallObserver: Send + Sync {
    /// Takes an event, and with [`CallEvent::Input`] the question in it. The cells wait meanwhile.
    fn event(&self, event: CallEvent) -> BoxFuture<'_, ()>;

    /// The call is answered, and its cells run on. Read them to their end.
    fn continues(&self, cells: CallHandle);
}

/// Why a question of running code has no answer.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// Protocols of clients forbid to ask for secrets.
    #[error("a password cannot be asked for through MCP")]
    Secret,
    /// The user will not answer.
    #[error("the user declined to answer")]
    Declined,
    /// The user closed the question.
    #[error("the user dismissed the question")]
    Dismissed,
    /// The client answered without a text.
    #[error("the answer holds no text")]
    NoText,
    /// The client did not ask.
    #[error("{0}")]
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

impl Toolbox {
    /// A toolbox that works as `settings` say, with sessions as theirs say; cells may call its tools. Needs a tokio runtime;
    /// starts nothing.
    pub fn new(settings: ToolSettings, mut sessions: cellwright_session::SessionSettings) -> Self {
        let bridge = Arc::new(ToolBridge::default());
        sessions.tools = Some(Arc::clone(&bridge) as _);
        let shared = Arc::new(ToolboxState {
            login: Arc::new(LoginShell::new(settings.shell_snapshot.clone())),
            settings,
            sessions: Sessions::new(sessions),
            python: watch::Sender::new(PythonState::Untried),
            history: Mutex::default(),
            background_runs: Mutex::default(),
            waits: SessionWaits::default(),
            clients: Mutex::default(),
        });
        bridge.open(&shared);
        Self { shared }
    }

    /// A client that works in `workspace`, with sessions under `names` in this process.
    pub fn client(&self, workspace: Workspace, names: SessionNames) -> Arc<ToolClient> {
        self.client_at(self.home(), workspace, names)
    }

    /// Where sessions live that end with this process.
    pub fn home(&self) -> SessionHome {
        SessionHome::Here(Arc::new(self.shared.sessions.client()))
    }

    /// A client whose sessions live at `home`.
    pub fn client_at(&self, home: SessionHome, workspace: Workspace, names: SessionNames) -> Arc<ToolClient> {
        self.client_remembering(home, workspace, names, Arc::new(ProcessMemory::default()))
    }

    /// A client that has read what `memory` says.
    pub fn client_remembering(
        &self,
        home: SessionHome,
        workspace: Workspace,
        names: SessionNames,
        memory: Arc<dyn ReadMemory>,
    ) -> Arc<ToolClient> {
        let ToolSettings { environment, artifacts, limits, .. } = &self.shared.settings;
        let shells = ClientShells::new(
            environment.clone(),
            Arc::clone(&self.shared.login),
            artifacts.clone(),
            *limits,
        );
        let client = Arc::new(ToolClient::new(workspace, home, names, shells, memory));
        let mut clients = self.shared.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|client| client.strong_count() > 0);
        clients.push(Arc::downgrade(&client));
        client
    }

    /// Where outputs are that were too long to show.
    pub fn artifacts(&self) -> &Artifacts {
        &self.shared.settings.artifacts
    }

    /// Whether `eval` can work, and every change of that. A change may change [`Toolbox::specs`].
    pub fn python(&self) -> watch::Receiver<PythonState> {
        self.shared.python.subscribe()
    }

    /// Starts the client's usual kernel, so that its first call finds it and everyone learns whether Python works.
    pub fn warm_up<'a>(&'a self, client: &'a ToolClient) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let stays = self.shared.settings.lifetime == cellwright_session::SessionMode::Session;
            if !self.shared.offers(ToolName::Eval) || !stays {
                return;
            }
            let Ok(session) = client.names.session(None) else { return };
            let kernel = client.names.kernel(&self.shared.settings);
            let mut call = Call::ensure_kernel(session, client.workspace().start(), kernel, Reset::No);
            call.variables = self.shared.call_variables(client);
            let Ok(sessions) = client.sessions().await else { return };
            match sessions.call(call).await {
                Ok(running) => self.shared.learn(&*running.report().await),
                Err(error) => tracing::warn!(%error, "no kernel could be prepared"),
            }
            self.shared.login.make(&self.shared.settings.environment).await;
        })
    }

    /// Ends every session and waits until every kernel is gone.
    pub fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.shared.sessions.shutdown().await;
        })
    }

    /// The tools that can be called, in the order to show them.
    pub fn specs(&self) -> Vec<ToolSpec> {
        let offered = ToolName::ALL.into_iter().filter(|tool| self.shared.offers(*tool));
        let mut specs: Vec<_> = offered.map(|tool| tool.spec().clone()).collect();
        if let PythonState::Fails(why) = &*self.shared.python.borrow()
            && let Some(eval) = specs.iter_mut().find(|spec| spec.name == ToolName::Eval.name())
        {
            eval.description = format!("Does not work at the moment: {why}. {}", eval.description);
        }
        specs
    }

    /// Calls a tool. The reply reports whatever goes wrong.
    pub fn call<'a>(
        &'a self,
        name: &'a str,
        arguments: Map<String, Value>,
        context: &'a CallContext,
    ) -> BoxFuture<'a, ToolReply> {
        Box::pin(async move { self.shared.call(name, arguments, context).await })
    }
}

impl ToolboxState {
    /// The environment that a call brings along; `None` where its session is in this process and has it anyway.
    pub(crate) fn call_variables(&self, client: &ToolClient) -> Option<EnvVars> {
        let mut variables = self.settings.launch.search.variables.clone();
        let has_snapshot = self.login.pass_on(&mut variables);
        (has_snapshot || client.is_remote()).then_some(variables)
    }

    pub(crate) async fn call(
        self: &Arc<Self>,
        name: &str,
        arguments: Map<String, Value>,
        context: &CallContext,
    ) -> ToolReply {
        context.turn().await;
        let called = match ToolName::named(name) {
            Some(tool) if self.offers(tool) => {
                // A call that meets a bug is answered like any other: a client would wait for ever.
                let called = AssertUnwindSafe(self.dispatch(tool, arguments, context)).catch_unwind().await;
                called.unwrap_or_else(|panic| Err(bug(&*panic)))
            }
            Some(tool) => Err(ToolFailure::new(format!(
                "{} is not offered: the tool mode is {}",
                tool.name(),
                self.settings.mode
            ))),
            None => {
                let offered: Vec<_> =
                    ToolName::ALL.into_iter().filter(|tool| self.offers(*tool)).map(ToolName::name).collect();
                Err(unknown_name("tool", name, &offered))
            }
        };
        context.let_next_pass();
        called.unwrap_or_else(ToolReply::from)
    }

    async fn dispatch(
        self: &Arc<Self>,
        tool: ToolName,
        arguments: Map<String, Value>,
        context: &CallContext,
    ) -> Result<ToolReply, ToolFailure> {
        let schema = &tool.spec().schema;
        let (shared, caller) = (Arc::clone(self), context.clone());
        match tool {
            ToolName::Eval => eval::eval(self, parse(schema, arguments)?, context).await,
            ToolName::Read => {
                let arguments = parse(schema, arguments)?;
                blocking(move || read::read(&shared.settings, &caller, &arguments)).await
            }
            ToolName::Edit => {
                let arguments = parse(schema, arguments)?;
                blocking(move || edit::edit(&shared.settings, &caller, arguments)).await
            }
            ToolName::Write => {
                let arguments = parse(schema, arguments)?;
                blocking(move || edit::write(&shared.settings, &caller, arguments)).await
            }
            ToolName::Notebook => notebook::notebook(self, parse(schema, arguments)?, context).await,
            ToolName::Kernel => kernel::kernel(self, parse(schema, arguments)?, context).await,
            ToolName::Bash => bash::bash(self, parse(schema, arguments)?, context).await,
        }
    }

    /// Whether a tool can be called.
    fn offers(&self, tool: ToolName) -> bool {
        let mode = self.settings.mode;
        match tool {
            ToolName::Eval => matches!(mode, RunMode::Both | RunMode::PythonOnly),
            ToolName::Bash => match mode {
                RunMode::Both | RunMode::BashOnly => true,
                // Where Python was to do it all and cannot, a shell is better than nothing.
                RunMode::PythonOnly => matches!(*self.python.borrow(), PythonState::Fails(_)),
                RunMode::EditOnly => false,
            },
            ToolName::Kernel => mode != RunMode::EditOnly,
            ToolName::Read | ToolName::Edit | ToolName::Write | ToolName::Notebook => true,
        }
    }

    /// How long a call is followed before it continues in the background; `None` for to its end, as programs need it.
    pub(crate) fn patience(&self, context: &CallContext) -> Option<Duration> {
        match (self.settings.background, context.reader) {
            (BackgroundPolicy::After(time), ReplyReader::Model) => {
                Some(context.room.patience.map_or(time, |patience| patience.min(time)))
            }
            (BackgroundPolicy::Nothing | BackgroundPolicy::Asked, _) | (_, ReplyReader::Program) => None,
        }
    }

    /// What ran of notebooks.
    pub(crate) fn history(&self) -> MutexGuard<'_, RunRecord> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notebooks that run in the background.
    pub(crate) fn background_runs(&self) -> MutexGuard<'_, BackgroundRuns> {
        self.background_runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Learns from a call whether Python works.
    pub(crate) fn learn(&self, report: &CallReport) {
        if !matches!(report.key.kernel, KernelChoice::Python { .. }) {
            return;
        }
        let learnt = match &report.error {
            Some(SessionError::NotStarted(why)) => PythonState::Fails(why.clone()),
            _ if report.kernel.about.is_some() => PythonState::Works,
            _ => return,
        };
        self.python.send_if_modified(|python| {
            let is_new = *python != learnt;
            *python = learnt;
            is_new
        });
    }

    /// The client whose session this is.
    pub(crate) fn client_with(&self, session: &SessionKey) -> Option<Arc<ToolClient>> {
        let clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.iter().filter_map(Weak::upgrade).find(|client| client.names.has(session))
    }
}

impl fmt::Debug for ToolboxState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Toolbox").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Files are read and written on a thread where that may take its time. A call that is stopped
/// does not wait for it; what was begun is finished, for half an edit is worse than a late one.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolFailure> + Send + 'static,
) -> Result<T, ToolFailure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(panicked) => Err(bug(&*panicked.into_panic())),
    }
}

/// What a call is answered with that met a bug of ours.
fn bug(panic: &(dyn std::any::Any + Send)) -> ToolFailure {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let what = text.unwrap_or("no message");
    tracing::error!(what, "a tool panicked");
    ToolFailure::new(format!(
        "a bug in cellwright ended this call ({what}); files it did not report are as they were"
    ))
}

impl ToolSettings {
    /// Bytes of text in one reply.
    pub(crate) fn budget(&self, context: &CallContext) -> usize {
        match context.reader {
            ReplyReader::Model => self.limits.head.saturating_add(self.limits.tail).min(context.room.bytes),
            ReplyReader::Program => usize::MAX,
        }
    }

    /// The caller's editor.
    pub(crate) fn editor<'a>(&'a self, context: &'a CallContext) -> FileEditor<'a> {
        FileEditor::new(&*context.memory, self.history.as_ref())
            .saving(self.save.clone())
            .with_live(self.live.as_deref())
    }

    /// The image as a reply can hold it, or a note on why it cannot.
    pub(crate) fn bounded(&self, image: &Image) -> ReplyPart {
        match image.bounded(self.images) {
            Ok(bounded) => ReplyPart::Image(bounded.into_owned()),
            Err(unbounded) => ReplyPart::Text(format!("[{unbounded}]")),
        }
    }
}
