//! What all cells of a kernel share.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_client_protocol_schema::v1::McpServer;

use crate::cell_history::History;
use crate::client::stdin::Stdin;
use crate::client::widgets::Comms;
use crate::conversation::updates::Updates;
use crate::failure::Failure;
use crate::kernel::Setup;
use crate::permission::Policy;
use crate::turn::{Place, Stop};

/// Small data behind locks that are never held across an await.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) comms: Comms,
    pub(crate) stdin: Stdin,
    pub(crate) policy: Mutex<Policy>,
    pub(crate) history: Mutex<History>,
    /// Where agents work.
    pub(crate) workspace: PathBuf,
    /// How long an agent may take to end a turn it was asked to end.
    pub(crate) grace: Duration,
    /// Updates that someone who debugs wants to see.
    pub(crate) updates: Updates,
    /// What to say to a prompt that no agent was found for.
    pub(crate) no_agent: Failure,
    offered: Mutex<Offered>,
    running: Mutex<Running>,
}

/// The MCP servers that agents are told of, with a number that changes with them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Offered {
    pub(crate) version: u64,
    pub(crate) servers: Vec<McpServer>,
}

#[derive(Debug, Default)]
struct Running {
    cells: Vec<(u64, Place, Stop)>,
    /// The kernel ends: what begins now ends at once.
    ending: bool,
}

/// A cell, or a turn in the background, that can be interrupted as long as this lives.
pub(crate) struct Registered {
    shared: Arc<Shared>,
    number: u64,
}

impl Shared {
    pub(crate) fn new(setup: &Setup) -> Self {
        Self {
            comms: Comms::default(),
            stdin: Stdin::default(),
            policy: Mutex::new(setup.policy.clone()),
            history: Mutex::default(),
            workspace: setup.workspace.clone(),
            grace: setup.grace,
            updates: Updates::named(&setup.debug_updates),
            no_agent: no_agent(setup),
            offered: Mutex::default(),
            running: Mutex::default(),
        }
    }

    /// Registers a cell, or a turn in the background, for interrupts.
    pub(crate) fn begin(self: &Arc<Self>, place: Place, stop: &Stop) -> Registered {
        let mut running = lock(&self.running);
        let number = running.cells.last().map_or(0, |(number, ..)| number + 1);
        running.cells.push((number, place, stop.clone()));
        if running.ending {
            stop.interrupt();
        }
        Registered { shared: Arc::clone(self), number }
    }

    /// Stops the cells that a user waits for; where nobody waits for any, those in the background.
    pub(crate) fn interrupt(&self) {
        let running = &lock(&self.running).cells;
        let waited_for = running.iter().any(|(_, place, _)| *place == Place::Foreground);
        let chosen = if waited_for { Place::Foreground } else { Place::Background };
        running.iter().filter(|(_, place, _)| *place == chosen).for_each(|(.., stop)| stop.interrupt());
    }

    /// Stops every cell, those that wait their turn too: the kernel ends.
    pub(crate) fn end(&self) {
        let mut running = lock(&self.running);
        running.ending = true;
        running.cells.iter().for_each(|(.., stop)| stop.interrupt());
    }

    /// The servers that agents are told of.
    pub(crate) fn offered(&self) -> Offered {
        lock(&self.offered).clone()
    }

    /// Other servers; every conversation takes them with its next prompt.
    pub(crate) fn offer(&self, servers: Vec<McpServer>) {
        let mut offered = lock(&self.offered);
        *offered = Offered { version: offered.version + 1, servers };
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        lock(&self.shared.running).cells.retain(|(number, ..)| *number != self.number);
    }
}

/// Why there is no agent to talk to: there is none at all, or not the one that was asked for.
fn no_agent(setup: &Setup) -> Failure {
    match (&setup.agent, setup.agents.as_slice()) {
        (Some(name), [_, ..]) => Failure::no_such_agent(name, setup),
        (Some(name), []) => {
            Failure::new("NoAgent", format!("there is no agent `{name}`")).with(setup.guidance.clone())
        }
        (None, _) => Failure::new("NoAgent", "there is no agent yet").with(setup.guidance.clone()),
    }
}

/// Data behind a lock stays usable when somebody panicked with it: each change to it is whole.
pub(crate) fn lock<T>(data: &Mutex<T>) -> MutexGuard<'_, T> {
    data.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a server is called.
pub(crate) fn name_of(server: &McpServer) -> &str {
    match server {
        McpServer::Http(server) => &server.name,
        McpServer::Sse(server) => &server.name,
        McpServer::Stdio(server) => &server.name,
        _ => "", // no other can be added
    }
}
