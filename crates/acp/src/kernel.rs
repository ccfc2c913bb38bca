//! The kernel: Jupyter's messages in, conversations with agents out.
//!
//! Every request gets its reply, whatever fails inside. Cells run one after another in their shell, each subshell beside the
//! others; everything else is answered at once, also while cells run.

mod cell_queue;
mod cell_run;
mod introspect;
mod magics;
mod router;
mod sessions;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cellwright_jupyter::{BindError, ConnectionInfo, Server, Session};
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use self::router::MessageRouter;
use crate::agent::{AgentFiles, AgentLaunch};
use crate::permission::ApprovalMode;

/// What a kernel is told when it starts.
#[derive(Debug, Clone)]
pub struct KernelSetup {
    /// Where agents work.
    pub workspace: PathBuf,
    /// Agents by name.
    pub agents: Vec<(String, AgentLaunch)>,
    /// What agents see that are named in a cell.
    pub environment: Vec<(OsString, OsString)>,
    /// The agent that is talked to first.
    pub agent: Option<String>,
    /// What to say when there is none.
    pub guidance: String,
    /// What happens when the agent asks for a permission, until the user sets it.
    pub approval: ApprovalMode,
    /// How long an agent may take to end a turn it was asked to end, before it is ended itself.
    pub grace: Duration,
    /// Updates of agents to be logged by name, or `all`. Those of them that this version does not know are shown, too.
    pub debug_updates: Vec<String>,
    /// The MCP servers that an agent finds in its own settings.
    pub own_servers: OwnServers,
}

/// Where updates are logged that were asked for by [`KernelSetup::debug_updates`].
pub const UPDATES: &str = crate::conversation::updates::TARGET;

/// Looks up the MCP servers in an agent's own settings, each time anew.
#[derive(Clone)]
pub struct OwnServers(Arc<ServerLookup>);

type ServerLookup = dyn Fn(&AgentLaunch) -> Vec<OwnServer> + Send + Sync;

/// An MCP server that an agent knows without us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnServer {
    /// What the agent calls it.
    pub name: String,
    /// Its command or address.
    pub address: String,
    /// The file that says so.
    pub from: PathBuf,
    /// Whether the agent uses it.
    pub enabled: bool,
}

impl OwnServers {
    /// By this way to look.
    pub fn new(look: impl Fn(&AgentLaunch) -> Vec<OwnServer> + Send + Sync + 'static) -> Self {
        Self(Arc::new(look))
    }

    fn of(&self, launch: &AgentLaunch) -> Vec<OwnServer> {
        (self.0)(launch)
    }
}

impl std::fmt::Debug for OwnServers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OwnServers(..)")
    }
}

impl KernelSetup {
    /// How an agent is started that nothing is known of but its command.
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

/// Why a kernel did not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It could not listen.
    #[error(transparent)]
    Bind(#[from] BindError),
}

/// Is a kernel until it is told to shut down, or until `end`. Then nothing it started is left.
pub fn run(
    connection: &ConnectionInfo,
    setup: KernelSetup,
    end: CancellationToken,
) -> BoxFuture<'_, Result<(), RunError>> {
    // In a box, so that the kernel is compiled here and not once more where it is awaited.
    Box::pin(async move {
        let server = Server::bind(connection, Session::new("cellwright")).await?;
        MessageRouter::new(server, Arc::new(setup)).run(end).await;
        Ok(())
    })
}
