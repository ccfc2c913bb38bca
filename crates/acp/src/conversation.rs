//! A conversation with an agent: a task that owns the agent's process and its session.
//!
//! Orders are taken one at a time; between them the agent is listened to, so that it never waits for us. What it says after
//! the end of a turn goes to the cell of that turn, and to no other.

mod facts;
mod open;
mod options;
mod prompt;
mod questions;
mod queue;
mod sign_in;
mod talk;
pub(crate) mod updates;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use agent_client_protocol_schema::v1::{NoticeSeverity, SessionId};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

pub(crate) use self::facts::SessionFacts;
use self::queue::{ConversationTask, PendingTask, QueuedTask};

pub(crate) use self::prompt::UserPrompt;
use crate::agent::{AgentEvent, AgentLaunch, AgentProcess};
use crate::failure::CellFailure;
use crate::kernel_state::{KernelState, McpOffer, lock};
use crate::task;
use crate::turn::{AgentTurn, StopSignal, TurnPlace};

/// Orders that wait; beyond that the one who orders waits.
const ORDERS: usize = 64;

/// An agent that can be talked to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentChoice {
    /// What users call it.
    pub(crate) name: String,
    pub(crate) launch: AgentLaunch,
}

/// A conversation. Dropping it ends its agent.
pub(crate) struct ConversationHandle {
    orders: mpsc::Sender<QueuedTask>,
    facts: Arc<Mutex<SessionFacts>>,
    /// Stops what is done now.
    at_work: Arc<Mutex<Option<StopSignal>>>,
    ending: CancellationToken,
    _task: AbortOnDropHandle<()>,
}

/// What can be asked of a conversation besides talking.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AgentCommand {
    /// Starts the agent and opens its session, as the first prompt would.
    Ready,
    /// Starts the agent again. The conversation goes on if the agent can.
    Restart,
    /// Forgets the conversation and begins another.
    Renew,
    /// The agent's own sessions.
    List,
    /// Goes on with an old session, and shows what was said in it.
    Load(String),
    /// Goes on with an old session.
    Resume(String),
    /// Goes on in a copy.
    Fork,
    /// Makes a copy and tells its id.
    Copy,
    /// Ends the session; the next prompt begins another.
    Close,
    /// Has the agent forget a session.
    Delete(String),
    /// Sets the mode, by id or name.
    Mode(String),
    /// Sets an option, by ids or names.
    Configure { option: String, value: String },
    /// Tells the agent of other MCP servers. The conversation goes on if the agent can.
    Servers,
    /// Signs in, by a method's id or by the first that works without a terminal.
    SignIn(Option<String>),
    /// How one can sign in.
    SignInMethods,
    /// Another agent.
    Use(AgentChoice),
    /// The same agent, started in another way. The conversation goes on if the agent can.
    Relaunch(AgentChoice),
}

impl ConversationHandle {
    pub(crate) fn new(shared: Arc<KernelState>, choice: Option<AgentChoice>) -> Self {
        let (orders, inbox) = mpsc::channel(ORDERS);
        let facts = Arc::new(Mutex::new(SessionFacts::default()));
        lock(&facts).choice.clone_from(&choice);
        let conversation = AgentConversation {
            shared,
            facts: Arc::clone(&facts),
            at_work: Arc::default(),
            ending: CancellationToken::new(),
            choice,
            offered: McpOffer::default(),
            running: None,
            crashed: false,
            session: None,
            leaving: None,
            last: None,
            stragglers: LateUpdates::default(),
        };
        let (at_work, ending) = (Arc::clone(&conversation.at_work), conversation.ending.clone());
        let task = task::spawn(conversation.run(inbox));
        Self { orders, facts, at_work, ending, _task: task }
    }

    /// Hands a prompt over.
    pub(crate) async fn prompt(&self, turn: AgentTurn, prompt: UserPrompt) -> PendingTask {
        self.place(ConversationTask::Prompt(prompt), turn).await
    }

    /// Does something else than talking.
    pub(crate) async fn perform(&self, deed: AgentCommand, turn: AgentTurn) -> Result<String, CellFailure> {
        if matches!(deed, AgentCommand::Close | AgentCommand::Restart) {
            self.stop_turn(); // it would have to be waited for
        }
        self.place(ConversationTask::Do(deed), turn).await.done().await
    }

    /// What is known of it now.
    pub(crate) fn facts(&self) -> SessionFacts {
        lock(&self.facts).clone()
    }

    /// Stops what is running and ends the agent, politely. What waits its turn is not begun.
    pub(crate) async fn end(&self) {
        self.ending.cancel();
        self.stop_turn();
        self.orders.closed().await;
    }

    fn stop_turn(&self) {
        lock(&self.at_work).iter().for_each(StopSignal::ask);
    }

    async fn place(&self, task: ConversationTask, turn: AgentTurn) -> PendingTask {
        let stop = turn.stop.clone();
        let (order, placed) = QueuedTask::new(task, turn);
        tokio::select! {
            sent = self.orders.send(order) => drop(sent), // the one who waits for the result will notice
            () = stop.asked() => {}
        }
        placed
    }
}

struct AgentConversation {
    shared: Arc<KernelState>,
    facts: Arc<Mutex<SessionFacts>>,
    at_work: Arc<Mutex<Option<StopSignal>>>,
    ending: CancellationToken,
    choice: Option<AgentChoice>,
    /// The MCP servers that the session was opened with.
    offered: McpOffer,
    running: Option<RunningAgent>,
    /// The agent ended by itself, which the next cell tells.
    crashed: bool,
    /// The session that is open, or was before the agent ended.
    session: Option<SessionId>,
    /// What is known of the session that is open, while another is opened in its place.
    leaving: Option<(McpOffer, SessionFacts)>,
    /// The turn before, for what the agent says after it.
    last: Option<Box<AgentTurn>>,
    stragglers: LateUpdates,
}

struct RunningAgent {
    agent: AgentProcess,
    events: mpsc::Receiver<AgentEvent>,
    /// Whether `session` is open in this process.
    open: bool,
}

/// What is known of updates that come after the end of their turn.
#[derive(Default)]
struct LateUpdates {
    /// This agent has sent some, or its last turn was interrupted: wait for silence before the next prompt.
    expected: bool,
    /// When the agent last said something.
    last_heard: Option<Instant>,
}

impl AgentConversation {
    async fn run(mut self, mut orders: mpsc::Receiver<QueuedTask>) {
        loop {
            let order = tokio::select! {
                biased; // who ends the conversation does not wait for what others ordered
                () = self.ending.cancelled() => break,
                order = orders.recv() => order,
                event = next_event(&mut self.running) => {
                    self.hear_between_turns(event).await;
                    continue;
                }
            };
            let Some(QueuedTask { mut turn, task, claim, done }) = order else { break };
            if !claim.take() {
                continue; // its cell was stopped
            }
            *lock(&self.at_work) = Some(turn.stop.clone());
            if self.ending.is_cancelled() {
                turn.stop.ask(); // by one who came too early to find it at work
            }
            let result = match task {
                ConversationTask::Prompt(prompt) => {
                    let result = self.talk(&mut turn, &prompt).await;
                    if let (Err(failure), TurnPlace::Background) = (&result, turn.place) {
                        let details = failure.details.join("\n");
                        turn.view.notice(&NoticeSeverity::Error, &failure.message, Some(&details));
                        turn.drain().await;
                    }
                    self.last = Some(turn);
                    result.map(|()| String::new())
                }
                ConversationTask::Do(deed) => {
                    let stop = turn.stop.clone();
                    let result = tokio::select! {
                        result = self.perform(deed, &mut turn) => result,
                        () = stop.asked() => Err(CellFailure::interrupted()),
                    };
                    self.stay();
                    if stop.is_asked() {
                        self.shared.stdin.interrupted();
                    }
                    result
                }
            };
            *lock(&self.at_work) = None;
            drop(done.send(result)); // a turn in the background has nobody waiting
        }
        if let Some(running) = self.running {
            running.agent.stop().await;
        }
    }

    /// Where the agent works.
    fn workspace(&self) -> PathBuf {
        self.choice.as_ref().map_or_else(|| self.shared.workspace.clone(), |choice| choice.launch.cwd.clone())
    }

    /// Something came while no turn is running.
    async fn hear_between_turns(&mut self, event: Option<AgentEvent>) {
        let Some(event) = event else {
            self.running = None;
            self.crashed = true;
            return;
        };
        self.shared.updates.log(&event);
        if let AgentEvent::Update(notification) = &event
            && self.session.as_ref() == Some(&notification.session_id)
            && !lock(&self.facts).learn(&notification.update)
            && let Some(turn) = &mut self.last
        {
            self.stragglers = LateUpdates { expected: true, last_heard: Some(Instant::now()) };
            turn.update(notification.update.clone());
            turn.drain().await;
        }
        if let AgentEvent::Permission(question) = event {
            questions::permission_between_turns(&self.shared, &self.workspace(), question);
        }
    }
}

/// What the agent says next; never, without an agent. Cancel-safe.
async fn next_event(running: &mut Option<RunningAgent>) -> Option<AgentEvent> {
    match running {
        Some(running) => running.events.recv().await,
        None => std::future::pending().await,
    }
}
