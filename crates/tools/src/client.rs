//! A caller of tools: an MCP client, a command line, a notebook's agent.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use cellwright_editing::ReadMemory;
use cellwright_kernel::KernelChoice;
use cellwright_session::daemon::{self, DaemonDoor};
use cellwright_session::{Force, SessionError, SessionId, SessionKey};
use futures_util::FutureExt as _;

use crate::reply::ToolFailure;
use crate::shell::ClientShells;
use crate::shown::ShownJobs;
use crate::toolbox::ToolSettings;
use crate::workspace::Workspace;

/// A caller of tools. Dropping it ends what it started, except for sessions that live elsewhere.
pub struct ToolClient {
    workspace: RwLock<Arc<Workspace>>,
    /// Where it worked before, if that was elsewhere.
    moved_from: Mutex<Option<PathBuf>>,
    /// What it has read.
    memory: Arc<dyn ReadMemory>,
    /// Kernels it knows, by process: each is introduced once.
    introduced: Mutex<HashSet<u32>>,
    /// Folders it knows not to be trusted.
    untrusted: Mutex<HashSet<PathBuf>>,
    sessions: SessionLink,
    pub(crate) names: SessionNames,
    pub(crate) shells: Arc<ClientShells>,
    /// What it was shown of work in the background.
    pub(crate) shown: ShownJobs,
}

/// Where a client's sessions live.
#[derive(Clone)]
pub enum SessionHome {
    /// In this process: they end with it.
    Here(Arc<cellwright_session::SessionClient>),
    /// In a daemon that is joined when it is first needed, and again when it was lost.
    Daemon(DaemonDoor),
}

/// A client's way to its sessions.
struct SessionLink {
    home: SessionHome,
    joined: tokio::sync::Mutex<Option<Arc<cellwright_session::SessionClient>>>,
}

impl SessionLink {
    fn to(home: SessionHome) -> Self {
        let joined = match &home {
            SessionHome::Here(client) => Some(Arc::clone(client)),
            SessionHome::Daemon(_) => None,
        };
        Self { home, joined: tokio::sync::Mutex::new(joined) }
    }
}

/// What a client's sessions are called.
#[derive(Debug, Clone)]
pub struct SessionNames {
    /// The session of calls that name none.
    pub default: SessionId,
    /// A prefix for every name, so that clients do not share sessions by accident.
    pub prefix: String,
    /// The kernel of calls that name no language; `None` for the one that the settings say.
    pub kernel: Option<KernelChoice>,
}

impl SessionNames {
    /// Names as they are, and this one for calls that name none.
    pub fn shared(default: SessionId) -> Self {
        Self { default, prefix: String::new(), kernel: None }
    }

    /// The kernel of calls that name no language.
    pub(crate) fn kernel(&self, settings: &ToolSettings) -> KernelChoice {
        self.kernel.clone().unwrap_or_else(|| settings.kernel.clone())
    }

    /// The session a call means.
    pub(crate) fn session(&self, named: Option<&str>) -> Result<SessionId, ToolFailure> {
        let name = named.unwrap_or(self.default.as_str());
        // Only the name is checked, so that a message shows what the caller wrote.
        let name: SessionId = name.parse()?;
        Ok(format!("{}{name}", self.prefix).parse()?)
    }

    /// Whether a session is one of this client's.
    pub(crate) fn has(&self, key: &SessionKey) -> bool {
        key.session.as_str().starts_with(&self.prefix)
    }

    /// What the client calls a session.
    pub(crate) fn shown<'a>(&self, key: &'a SessionKey) -> &'a str {
        key.session.as_str().strip_prefix(&self.prefix).unwrap_or(key.session.as_str())
    }
}

impl ToolClient {
    pub(crate) fn new(
        workspace: Workspace,
        sessions: SessionHome,
        names: SessionNames,
        shells: ClientShells,
        memory: Arc<dyn ReadMemory>,
    ) -> Self {
        Self {
            workspace: RwLock::new(Arc::new(workspace)),
            moved_from: Mutex::default(),
            memory,
            introduced: Mutex::default(),
            untrusted: Mutex::default(),
            sessions: SessionLink::to(sessions),
            names,
            shells: Arc::new(shells),
            shown: ShownJobs::default(),
        }
    }

    /// Its sessions.
    pub(crate) async fn sessions(&self) -> Result<Arc<cellwright_session::SessionClient>, ToolFailure> {
        let mut joined = self.sessions.joined.lock().await;
        match (&*joined, &self.sessions.home) {
            (Some(client), _) | (None, SessionHome::Here(client)) => Ok(Arc::clone(client)),
            (None, SessionHome::Daemon(door)) => {
                let client = Arc::new(daemon::connect(door).await?);
                Ok(Arc::clone(joined.insert(client)))
            }
        }
    }

    /// Whether its sessions live in another process.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self.sessions.home, SessionHome::Daemon(_))
    }

    /// A call could not be made. If its daemon was lost, the next call joins a new one.
    pub(crate) async fn failed(&self, error: SessionError) -> ToolFailure {
        if matches!(error, SessionError::Daemon(_)) {
            *self.sessions.joined.lock().await = None;
        }
        error.into()
    }

    /// Where it works now.
    pub fn workspace(&self) -> Arc<Workspace> {
        Arc::clone(&self.workspace.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// It works elsewhere from now on.
    pub fn move_to(&self, workspace: Workspace) {
        let mut here = self.workspace.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *here, Arc::new(workspace));
        // One that has used no kernel leaves nothing behind: what is there is others'.
        if before.start() != here.start() && !self.introduced().is_empty() {
            *self.moved_from() = Some(before.start().to_owned());
        }
    }

    /// What to report when `session` is about to be used for the first time since the client moved: its variables are where it was.
    pub(crate) async fn left_behind(&self, session: &SessionId) -> Result<Option<String>, ToolFailure> {
        let Some(before) = self.moved_from().clone() else { return Ok(None) };
        let here = self.workspace().start().to_owned();
        let sessions = self.sessions().await?.sessions().await?;
        let is_in =
            |cwd: &Path| sessions.iter().any(|known| known.key.session == *session && known.key.cwd == cwd);
        Ok((is_in(&before) && !is_in(&here)).then(|| {
            let (here, before) = (here.display(), before.display());
            format!("[you work in {here} now, in a kernel of its own; the variables from before are in the one of {before}, by \"cwd\": \"{before}\"]")
        }))
    }

    fn moved_from(&self) -> MutexGuard<'_, Option<PathBuf>> {
        self.moved_from.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it has read.
    pub(crate) fn memory(&self) -> Arc<dyn ReadMemory> {
        Arc::clone(&self.memory)
    }

    /// Whether the client hears of this kernel for the first time.
    pub(crate) fn introduce(&self, pid: u32) -> bool {
        self.introduced().insert(pid)
    }

    /// Whether the client hears for the first time that this folder is not trusted.
    pub(crate) fn introduce_folder(&self, folder: &Path) -> bool {
        self.untrusted.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned())
    }

    fn introduced(&self) -> MutexGuard<'_, HashSet<u32>> {
        self.introduced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ToolClient {
    /// Ends the sessions nobody else can name.
    fn drop(&mut self) {
        let (SessionHome::Here(sessions), false) = (&self.sessions.home, self.names.prefix.is_empty()) else {
            return;
        };
        let (sessions, names) = (Arc::clone(sessions), self.names.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            // Ends by itself. The end of the runtime ends the sessions, too.
            drop(
                runtime.spawn(
                    async move {
                        for session in sessions.sessions().await.unwrap_or_default() {
                            if names.has(&session.key) {
                                drop(sessions.end(&session.key, Force::Yes).await); // gone is what it should be
                            }
                        }
                    }
                    .boxed(),
                ),
            );
        }
    }
}

impl fmt::Debug for ToolClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("workspace", &self.workspace())
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}
