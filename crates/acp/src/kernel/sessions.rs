//! The conversations of a kernel, by name.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use agent_client_protocol_schema::v1::McpServer;
use tokio::time::timeout;

use super::KernelSetup;
use crate::agent::AgentLaunch;
use crate::conversation::{AgentChoice, ConversationHandle};
use crate::failure::CellFailure;
use crate::kernel_state::{KernelState, lock, name_of};

/// The first conversation.
pub(crate) const MAIN: &str = "main";

/// How long conversations may take to end with the kernel.
const FAREWELL: std::time::Duration = std::time::Duration::from_secs(3);

pub(crate) struct SessionTable {
    shared: Arc<KernelState>,
    setup: Arc<KernelSetup>,
    state: Mutex<SessionTableState>,
}

struct SessionTableState {
    current: String,
    all: BTreeMap<String, Arc<ConversationHandle>>,
    /// Of all conversations.
    servers: Vec<McpEntry>,
    agent: Option<AgentChoice>,
}

/// An MCP server that was added here.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct McpEntry {
    pub(crate) server: McpServer,
    /// Whether agents are told of it.
    pub(crate) offered: bool,
}

impl McpEntry {
    pub(crate) fn name(&self) -> &str {
        name_of(&self.server)
    }
}

impl SessionTable {
    pub(crate) fn new(shared: Arc<KernelState>, setup: Arc<KernelSetup>) -> Self {
        // An agent that was asked for and is not there is not replaced by another behind its user's back.
        let name = setup.agent.as_ref().or_else(|| setup.agents.first().map(|(name, _)| name));
        let agent = name.and_then(|name| choice(&setup, name));
        let main = Arc::new(ConversationHandle::new(Arc::clone(&shared), agent.clone()));
        let all = BTreeMap::from([(MAIN.to_owned(), main)]);
        let state = SessionTableState { current: MAIN.to_owned(), all, servers: Vec::new(), agent };
        Self { shared, setup, state: Mutex::new(state) }
    }

    /// The conversation that cells go to.
    pub(crate) fn current(&self) -> (String, Arc<ConversationHandle>) {
        let state = lock(&self.state);
        let handle = state.all.get(&state.current).expect("the current one is kept");
        (state.current.clone(), Arc::clone(handle))
    }

    pub(crate) fn get(&self, name: &str) -> Result<Arc<ConversationHandle>, CellFailure> {
        let state = lock(&self.state);
        state.all.get(name).map(Arc::clone).ok_or_else(|| {
            let names: Vec<&str> = state.all.keys().map(String::as_str).collect();
            CellFailure::new("NoSuchSession", format!("there is no session `{name}`"))
                .with(format!("There are: {}. `%session new {name}` makes it.", names.join(", ")))
        })
    }

    /// All of them, and which is current.
    pub(crate) fn all(&self) -> (String, Vec<(String, Arc<ConversationHandle>)>) {
        let state = lock(&self.state);
        let all = state.all.iter().map(|(name, handle)| (name.clone(), Arc::clone(handle))).collect();
        (state.current.clone(), all)
    }

    /// Begins a conversation and goes on in it.
    pub(crate) fn begin(
        &self,
        name: &str,
        agent: Option<&str>,
        folder: Option<PathBuf>,
    ) -> Result<Arc<ConversationHandle>, CellFailure> {
        let agent = agent.map(|agent| self.agent(agent)).transpose()?;
        let mut state = lock(&self.state);
        if state.all.contains_key(name) {
            return Err(CellFailure::new("SessionExists", format!("there is a session `{name}` already"))
                .with(format!("`%session use {name}` goes on in it.")));
        }
        let mut agent = agent.or_else(|| state.agent.clone());
        if let (Some(agent), Some(folder)) = (&mut agent, folder) {
            agent.launch.cwd = agent.launch.cwd.join(at_home(folder, &agent.launch));
        }
        let handle = Arc::new(ConversationHandle::new(Arc::clone(&self.shared), agent));
        state.all.insert(name.to_owned(), Arc::clone(&handle));
        name.clone_into(&mut state.current);
        Ok(handle)
    }

    /// A name that no conversation has.
    pub(crate) fn free_name(&self) -> String {
        let state = lock(&self.state);
        let mut number = state.all.len() + 1;
        while state.all.contains_key(&format!("session-{number}")) {
            number += 1;
        }
        format!("session-{number}")
    }

    /// Goes on in another conversation.
    pub(crate) fn switch(&self, name: &str) -> Result<(), CellFailure> {
        self.get(name)?;
        name.clone_into(&mut lock(&self.state).current);
        Ok(())
    }

    /// Takes a conversation away. The first one stays.
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

    /// An agent by name.
    pub(crate) fn agent(&self, name: &str) -> Result<AgentChoice, CellFailure> {
        choice(&self.setup, name).ok_or_else(|| CellFailure::no_such_agent(name, &self.setup))
    }

    /// The agent for conversations that begin.
    pub(crate) fn prefer(&self, choice: AgentChoice) {
        lock(&self.state).agent = Some(choice);
    }

    pub(crate) fn servers(&self) -> Vec<McpEntry> {
        lock(&self.state).servers.clone()
    }

    /// Other servers, of which all conversations are told.
    pub(crate) fn set_servers(&self, servers: Vec<McpEntry>) {
        let offered = servers.iter().filter(|server| server.offered).map(|server| server.server.clone());
        self.shared.offer(offered.collect());
        lock(&self.state).servers = servers;
    }

    /// Ends all agents, politely where there is time.
    pub(crate) async fn end(&self) {
        let (_, all) = self.all();
        let farewells = all.iter().map(|(_, handle)| handle.end());
        drop(timeout(FAREWELL, futures_util::future::join_all(farewells)).await); // those left are killed
        lock(&self.state).all.clear();
    }
}

/// A folder that may be told from the user's own: `~` and `~/FOLDER`.
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
