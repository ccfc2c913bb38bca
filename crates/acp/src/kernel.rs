//! The kernel: Jupyter's messages come in, and conversations with agents answer them.
//!
//! Every request gets its reply, whatever fails. The cells of a shell run one after another, and
//! each subshell runs beside the others. All other requests are answered at once, also while cells
//! run.

mod cell_queue;
mod cell_run;
mod code_cell;
mod context;
mod introspect;
mod keep;
mod kernel_magics;
mod magics;
mod menu;
mod page;
mod router;
mod sessions;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cellwright_jupyter::{BindError, ConnectionInfo, KernelServer, MessageSession};
use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use self::router::MessageRouter;
use crate::agent::{AgentFiles, AgentLaunch};
use crate::companion::CompanionSetup;
use crate::page::PageBridge;
use crate::permission::ApprovalMode;

/// The settings of a kernel.
#[derive(Debug, Clone)]
pub struct KernelSetup {
    /// The folder in which agents work.
    pub workspace: PathBuf,
    /// Agents by name.
    pub agents: Vec<(String, AgentLaunch)>,
    /// The environment of agents that are named in a cell.
    pub environment: Vec<(OsString, OsString)>,
    /// The agent to begin with.
    pub agent: Option<String>,
    /// The help for a user without an agent.
    pub guidance: String,
    /// Why the settings cannot be used. Every prompt reports it, and no agent starts.
    pub trouble: Option<String>,
    /// What happens when the agent asks for a permission, until the user sets it.
    pub approval: ApprovalMode,
    /// How long an agent may take to end a turn after it was asked to. Then the agent is ended.
    pub grace: Duration,
    /// The updates of agents to log, by name, or `all`. Those that this version does not know also
    /// appear in the cell.
    pub debug_updates: Vec<String>,
    /// The MCP servers that an agent finds in its own settings.
    pub own_servers: OwnServers,
    /// The notebook that the kernel is for, if it is known.
    pub notebook: Option<NotebookPlace>,
    /// The way to the pages that show it, for tools that change it.
    pub page: PageBridge,
    /// How code cells run. Without it they do not.
    pub companion: Option<CompanionSetup>,
}

/// Where a notebook is, and where its conversation is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotebookPlace {
    /// The file of the notebook.
    pub notebook: PathBuf,
    /// The private folder with one file for each notebook.
    pub conversations: PathBuf,
}

/// The log target of the updates that [`KernelSetup::debug_updates`] names.
pub const UPDATES: &str = crate::conversation::updates::TARGET;

/// Looks up the MCP servers in an agent's own settings, again each time.
#[derive(Clone)]
pub struct OwnServers(Arc<ServerLookup>);

type ServerLookup = dyn Fn(&AgentLaunch) -> Vec<OwnServer> + Send + Sync;

/// An MCP server from an agent's own settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnServer {
    /// Its name in these settings.
    pub name: String,
    /// Its command or address.
    pub address: String,
    /// The file that names it.
    pub from: PathBuf,
    /// Whether the agent uses it.
    pub enabled: bool,
}

impl OwnServers {
    /// Looks servers up with this function.
    pub fn new(look: impl Fn(&AgentLaunch) -> Vec<OwnServer> + Send + Sync + 'static) -> Self {
        Self(Arc::new(look))
    }

    pub(crate) fn of(&self, launch: &AgentLaunch) -> Vec<OwnServer> {
        (self.0)(launch)
    }
}

impl std::fmt::Debug for OwnServers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OwnServers(..)")
    }
}

impl KernelSetup {
    /// The launch of an agent of which only the command is known.
    fn blank_launch(&self) -> AgentLaunch {
        AgentLaunch {
            program: OsString::new(),
            args: Vec::new(),
            environment: self.environment.clone(),
            cwd: self.workspace.clone(),
            files: AgentFiles::default(),
        }
    }
}

/// Why a kernel could not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It cannot listen.
    #[error(transparent)]
    Bind(#[from] BindError),
}

/// Runs a kernel until a client shuts it down, or until `end`. Nothing that it started survives it.
/// Each notification of `interrupts` stops what runs, as a client's request does.
pub fn run(
    connection: &ConnectionInfo,
    setup: KernelSetup,
    end: CancellationToken,
    interrupts: Arc<Notify>,
) -> BoxFuture<'_, Result<(), RunError>> {
    // Boxed, so that the kernel is compiled here and not again in the crate that awaits it.
    Box::pin(async move {
        let server = KernelServer::bind(connection, MessageSession::new("cellwright")).await?;
        MessageRouter::new(server, Arc::new(setup)).run(end, &interrupts).await;
        Ok(())
    })
}
