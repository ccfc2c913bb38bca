//! The conversations of a kernel, by name.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use agent_client_protocol_schema::v1::McpServer;
use tokio::time::timeout;

use super::KernelSetup;
use crate::agent::AgentLaunch;
use crate::conversation::{AgentChoice, ConversationHandle, ConversationMemory};
use crate::failure::{CellFailure, FailureKind};
use crate::kernel_state::{KernelState, lock, server_name};

/// The first conversation.
pub(crate) const MAIN: &str = "main";

/// How long conversations may take to end with the kernel.
const FAREWELL: std::time::Duration = std::time::Duration::from_secs(3);

/// The sessions of a kernel. One of them is current.
pub(crate) struct SessionTable {
    kernel: Arc<KernelState>,
    setup: Arc<KernelSetup>,
    state: Mutex<SessionTableState>,
}

struct SessionTableState {
    current: String,
    all: BTreeMap<String, Arc<ConversationHandle>>,
    /// They are offered in all conversations.
    servers: Vec<McpEntry>,
    /// The agent for conversations that begin.
    agent: Option<AgentChoice>,
}

/// An MCP server that a magic added.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct McpEntry {
    pub(crate) server: McpServer,
    /// Whether agents get it.
    pub(crate) offered: bool,
}

impl McpEntry {
    pub(crate) fn name(&self) -> &str {
        server_name(&self.server)
    }
}

impl SessionTable {
    pub(crate) fn new(kernel: Arc<KernelState>, setup: Arc<KernelSetup>) -> Self {
        // If the agent that was asked for does not exist, no other silently takes its place.
        let name = setup.agent.as_ref().or_else(|| setup.agents.first().map(|(name, _)| name));
        let agent = name.and_then(|name| choice(&setup, name));
        let memory = setup.notebook.clone().map(ConversationMemory::of);
        let main = Arc::new(ConversationHandle::new(Arc::clone(&kernel), agent.clone(), memory));
        let all = BTreeMap::from([(MAIN.to_owned(), main)]);
        let state = SessionTableState { current: MAIN.to_owned(), all, servers: Vec::new(), agent };
        Self { kernel, setup, state: Mutex::new(state) }
    }

    /// The conversation to which prompts go.
    pub(crate) fn current(&self) -> (String, Arc<ConversationHandle>) {
        let state = lock(&self.state);
        let handle = state.all.get(&state.current).expect("the current one exists");
        (state.current.clone(), Arc::clone(handle))
    }

    pub(crate) fn get(&self, name: &str) -> Result<Arc<ConversationHandle>, CellFailure> {
        let state = lock(&self.state);
        state.all.get(name).map(Arc::clone).ok_or_else(|| {
            let names: Vec<&str> = state.all.keys().map(String::as_str).collect();
            CellFailure::new(FailureKind::NoSuchSession, format!("there is no session `{name}`"))
                .with(format!("There are: {}. `%session new {name}` makes it.", names.join(", ")))
        })
    }

    /// The name of the current conversation, and all conversations.
    pub(crate) fn all(&self) -> (String, Vec<(String, Arc<ConversationHandle>)>) {
        let state = lock(&self.state);
        let all = state.all.iter().map(|(name, handle)| (name.clone(), Arc::clone(handle))).collect();
        (state.current.clone(), all)
    }

    /// Begins a conversation and makes it the current one.
    pub(crate) fn begin(
        &self,
        name: &str,
        agent: Option<&str>,
        folder: Option<PathBuf>,
    ) -> Result<Arc<ConversationHandle>, CellFailure> {
        let agent = agent.map(|agent| self.agent(agent)).transpose()?;
        let mut state = lock(&self.state);
        if state.all.contains_key(name) {
            return Err(CellFailure::new(
                FailureKind::SessionExists,
                format!("the session `{name}` already exists"),
            )
            .with(format!("`%session use {name}` switches to it.")));
        }
        let mut agent = agent.or_else(|| state.agent.clone());
        if let (Some(agent), Some(folder)) = (&mut agent, folder) {
            agent.launch.cwd = agent.launch.cwd.join(at_home(folder, &agent.launch));
        }
        let handle = Arc::new(ConversationHandle::new(Arc::clone(&self.kernel), agent, None));
        state.all.insert(name.to_owned(), Arc::clone(&handle));
        name.clone_into(&mut state.current);
        Ok(handle)
    }

    /// A name that is not in use.
    pub(crate) fn free_name(&self) -> String {
        let state = lock(&self.state);
        let mut number = state.all.len() + 1;
        while state.all.contains_key(&format!("session-{number}")) {
            number += 1;
        }
        format!("session-{number}")
    }

    /// Makes another conversation the current one.
    pub(crate) fn switch(&self, name: &str) -> Result<(), CellFailure> {
        self.get(name)?;
        name.clone_into(&mut lock(&self.state).current);
        Ok(())
    }

    /// Removes a conversation. `None` for the first one, which stays.
    pub(crate) fn remove(&self, name: &str) -> Result<Option<Arc<ConversationHandle>>, CellFailure> {
        self.get(name)?;
        if name == MAIN {
            return Ok(None);
        }
        let mut state = lock(&self.state);
        if state.current == name {
            MAIN.clone_into(&mut state.current);
        }
        Ok(state.all.remove(name))
    }

    pub(crate) fn agent(&self, name: &str) -> Result<AgentChoice, CellFailure> {
        choice(&self.setup, name).ok_or_else(|| CellFailure::no_such_agent(name, &self.setup))
    }

    /// Sets the agent for conversations that begin.
    pub(crate) fn prefer(&self, choice: AgentChoice) {
        lock(&self.state).agent = Some(choice);
    }

    pub(crate) fn servers(&self) -> Vec<McpEntry> {
        lock(&self.state).servers.clone()
    }

    /// Replaces the servers of all conversations.
    pub(crate) fn set_servers(&self, servers: Vec<McpEntry>) {
        let offered = servers.iter().filter(|server| server.offered).map(|server| server.server.clone());
        self.kernel.set_offer(offered.collect());
        lock(&self.state).servers = servers;
    }

    /// Ends all agents, politely if there is time.
    pub(crate) async fn end(&self) {
        let (_, all) = self.all();
        let farewells = all.iter().map(|(_, handle)| handle.end());
        drop(timeout(FAREWELL, futures_util::future::join_all(farewells)).await); // the rest are killed
        lock(&self.state).all.clear();
    }
}

/// Resolves `~` and `~/FOLDER` by the agent's environment.
fn at_home(folder: PathBuf, launch: &AgentLaunch) -> PathBuf {
    let home =
        launch.environment.iter().find(|(name, _)| name == "HOME").map(|(_, home)| PathBuf::from(home));
    match (folder.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        (Ok(_), None) | (Err(_), _) => folder,
    }
}

fn choice(setup: &KernelSetup, name: &str) -> Option<AgentChoice> {
    let (name, launch) = setup.agents.iter().find(|(known, _)| known == name)?;
    Some(AgentChoice { name: name.clone(), launch: launch.clone() })
}
