//! What all clients of a server have in common.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::attached::AttachedHost;
use cellwright_tools::{DaemonDoor, OutsidePaths, SessionHome, SessionNames, ToolClient, Toolbox, Workspace};

/// What is served, and to which folders.
#[derive(Clone)]
pub struct McpHost {
    /// The tools.
    pub toolbox: Toolbox,
    /// The folder we were started in.
    pub start: PathBuf,
    /// Where file tools may go.
    pub roots: WorkspaceRoots,
    /// What happens to paths elsewhere.
    pub outside: OutsidePaths,
    /// What the sessions of a client are called.
    pub names: SessionNames,
    /// Where they live when they are to outlive the client.
    pub daemon: Option<DaemonDoor>,
    /// Whether to check Python before the first call. For the client on stdin its own kernel does that, as soon as the
    /// client has introduced itself. Over HTTP a kernel starts and ends for it when the server begins to listen.
    pub warm_up: bool,
    /// Our version, for clients to show.
    pub version: String,
    /// The program that the tools work for, if one decides about each call.
    pub attached: Option<Arc<dyn AttachedHost>>,
}

/// Where file tools may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkspaceRoots {
    /// The client's roots, if it names any; otherwise the start folder.
    Client,
    /// In these folders.
    Fixed(Vec<PathBuf>),
}

impl McpHost {
    /// A new client of this server, with sessions of its own if it is one of many.
    pub(crate) fn client(&self, number: Option<u64>) -> io::Result<Arc<ToolClient>> {
        let mut names = self.names.clone();
        // Sessions of the daemon are meant to be shared.
        if let Some(number) = number.filter(|_| self.daemon.is_none()) {
            names.prefix = format!("client-{number}/");
        }
        let roots = match &self.roots {
            WorkspaceRoots::Client => Vec::new(),
            WorkspaceRoots::Fixed(folders) => folders.clone(),
        };
        let workspace = self.workspace(roots)?;
        Ok(match &self.daemon {
            None => self.toolbox.client(workspace, names),
            Some(daemon) => self.toolbox.client_at(SessionHome::Daemon(daemon.clone()), workspace, names),
        })
    }

    /// Checks whether Python works, with a kernel like those of clients. It ends afterwards, unless it is the daemon's.
    pub(crate) async fn try_python(&self) {
        match self.client(Some(0)) {
            Ok(client) => self.toolbox.warm_up(&client).await,
            Err(error) => tracing::warn!(%error, "the start folder is gone"),
        }
    }

    /// The workspace with these roots. Without roots, its root is the start folder.
    pub(crate) fn workspace(&self, roots: Vec<PathBuf>) -> io::Result<Workspace> {
        Ok(Workspace::new(&self.start)?.with_roots(roots).with_outside(self.outside))
    }
}
