//! The state that all cells of a kernel share.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_client_protocol_schema::v1::McpServer;

use crate::cell_history::CellHistory;
use crate::client::stdin::StdinQuestions;
use crate::client::widgets::WidgetComms;
use crate::companion::CompanionKernel;
use crate::conversation::updates::UpdateFilter;
use crate::failure::{CellFailure, FailureKind};
use crate::kernel::{KernelSetup, NotebookPlace, OwnServers};
use crate::magic::CellMode;
use crate::page::PageBridge;
use crate::permission::PermissionPolicy;
use crate::turn::{StopSignal, TurnPlace};

/// Small data behind locks that are never held across an await.
#[derive(Debug)]
pub(crate) struct KernelState {
    pub(crate) comms: WidgetComms,
    pub(crate) stdin: StdinQuestions,
    /// The way to the pages that show the notebook.
    pub(crate) page: PageBridge,
    /// The kernel of code cells. `None` if the settings cannot be used.
    pub(crate) companion: Option<CompanionKernel>,
    /// The notebook that the agent's tools mean, if it is known.
    pub(crate) notebook: Mutex<Option<PathBuf>>,
    pub(crate) own_servers: OwnServers,
    /// What a cell is that does not say so.
    pub(crate) cells: Mutex<CellMode>,
    pub(crate) policy: Mutex<PermissionPolicy>,
    pub(crate) history: Mutex<CellHistory>,
    /// Where agents work.
    pub(crate) workspace: PathBuf,
    /// How long an agent may take to end a turn after it was asked to.
    pub(crate) grace: Duration,
    /// The updates to log and show for debugging.
    pub(crate) updates: UpdateFilter,
    /// The answer to a prompt if there is no agent.
    pub(crate) no_agent: CellFailure,
    offer: Mutex<McpOffer>,
    running: Mutex<RunningCells>,
}

/// The MCP servers that agents get, with a number that changes with them.
#[derive(Debug, Clone, Default)]
pub(crate) struct McpOffer {
    pub(crate) version: u64,
    pub(crate) servers: Vec<McpServer>,
}

#[derive(Debug, Default)]
struct RunningCells {
    cells: Vec<(u64, TurnPlace, StopSignal)>,
    /// The kernel ends. A cell that begins now is stopped at once.
    ending: bool,
}

/// Lets interrupts reach a cell, or a turn in the background, until it is dropped.
pub(crate) struct InterruptRegistration {
    state: Arc<KernelState>,
    number: u64,
}

impl KernelState {
    pub(crate) fn new(setup: &KernelSetup) -> Self {
        let cells = setup.notebook.as_ref().map(notebook_mode).unwrap_or_default();
        setup.page.set_cells(cells);
        Self {
            comms: WidgetComms::default(),
            stdin: StdinQuestions::default(),
            page: setup.page.clone(),
            companion: setup
                .companion
                .clone()
                .map(|companion| CompanionKernel::new(companion, &setup.workspace)),
            notebook: Mutex::new(setup.notebook.as_ref().map(|place| place.notebook.clone())),
            own_servers: setup.own_servers.clone(),
            cells: Mutex::new(cells),
            policy: Mutex::new(PermissionPolicy { mode: setup.approval, ..PermissionPolicy::default() }),
            history: Mutex::default(),
            workspace: setup.workspace.clone(),
            grace: setup.grace,
            updates: UpdateFilter::named(&setup.debug_updates),
            no_agent: no_agent(setup),
            offer: Mutex::default(),
            running: Mutex::default(),
        }
    }

    /// Sets what a cell is that does not say so.
    pub(crate) fn set_cells(&self, mode: CellMode) {
        *lock(&self.cells) = mode;
        self.page.set_cells(mode);
    }

    /// Registers a cell, or a turn in the background, for interrupts.
    pub(crate) fn begin(self: &Arc<Self>, place: TurnPlace, stop: &StopSignal) -> InterruptRegistration {
        let mut running = lock(&self.running);
        let number = running.cells.last().map_or(0, |(number, ..)| number + 1);
        running.cells.push((number, place, stop.clone()));
        if running.ending {
            stop.interrupt();
        }
        InterruptRegistration { state: Arc::clone(self), number }
    }

    /// Stops the cells in the foreground. If there are none, stops those in the background.
    pub(crate) fn interrupt(&self) {
        let running = &lock(&self.running).cells;
        let waited_for = running.iter().any(|(_, place, _)| *place == TurnPlace::Foreground);
        let chosen = if waited_for { TurnPlace::Foreground } else { TurnPlace::Background };
        running.iter().filter(|(_, place, _)| *place == chosen).for_each(|(.., stop)| stop.interrupt());
    }

    /// Stops every cell, also those that wait, because the kernel ends.
    pub(crate) fn end(&self) {
        let mut running = lock(&self.running);
        running.ending = true;
        running.cells.iter().for_each(|(.., stop)| stop.interrupt());
    }

    /// The servers that agents get.
    pub(crate) fn offer(&self) -> McpOffer {
        lock(&self.offer).clone()
    }

    /// Replaces the servers. Each conversation gets them with its next prompt.
    pub(crate) fn set_offer(&self, servers: Vec<McpServer>) {
        let mut offer = lock(&self.offer);
        *offer = McpOffer { version: offer.version + 1, servers };
    }
}

impl Drop for InterruptRegistration {
    fn drop(&mut self) {
        lock(&self.state.running).cells.retain(|(number, ..)| *number != self.number);
    }
}

/// What the metadata of a notebook says of its cells.
fn notebook_mode(place: &NotebookPlace) -> CellMode {
    let text = std::fs::read(&place.notebook).unwrap_or_default();
    let notebook: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    match notebook["metadata"]["cellwright"]["mode"].as_str() {
        Some("code") => CellMode::Code,
        Some(_) | None => CellMode::Prompt,
    }
}

/// Why there is no agent: none was found, or not the one that was asked for.
fn no_agent(setup: &KernelSetup) -> CellFailure {
    if let Some(trouble) = &setup.trouble {
        let message = format!("the settings cannot be used: {trouble}");
        let advice = "Correct them, then restart the kernel. No agent was started.";
        return CellFailure::new(FailureKind::NoAgent, message).with(advice.to_owned());
    }
    match (&setup.agent, setup.agents.as_slice()) {
        (Some(name), [_, ..]) => CellFailure::no_such_agent(name, setup),
        (Some(name), []) => CellFailure::new(FailureKind::NoAgent, format!("there is no agent `{name}`"))
            .with(setup.guidance.clone()),
        (None, _) => {
            CellFailure::new(FailureKind::NoAgent, "there is no agent yet").with(setup.guidance.clone())
        }
    }
}

/// Locks data. A panic elsewhere does not spoil it, because each change to it is complete.
pub(crate) fn lock<T>(data: &Mutex<T>) -> MutexGuard<'_, T> {
    data.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn server_name(server: &McpServer) -> &str {
    match server {
        McpServer::Http(server) => &server.name,
        McpServer::Sse(server) => &server.name,
        McpServer::Stdio(server) => &server.name,
        _ => "", // no other kind can be added
    }
}
