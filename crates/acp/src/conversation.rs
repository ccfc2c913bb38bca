//! A conversation with an agent: a task that owns the agent's process and its session.
//!
//! The conversation does its tasks one at a time. Between them it listens to the agent, so that the
//! agent never waits. Whatever the agent reports after the end of a turn goes to the cell of that
//! turn, and to no other.

pub(crate) mod bypass;
mod command;
mod elicitation;
mod facts;
mod form;
mod listen;
mod memory;
mod opening;
mod options;
mod prompt;
mod questions;
mod queue;
mod sign_in;
mod talk;
mod tools;
pub(crate) mod updates;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_client_protocol_schema::v1::{NoticeSeverity, SessionId};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

pub(crate) use self::command::{AgentCommand, SessionScope};
pub(crate) use self::facts::{SessionFacts, select_values};
pub(crate) use self::memory::ConversationMemory;
pub(crate) use self::prompt::{NamedCell, NamedVariable, UserPrompt, attachments};
use self::queue::{ConversationTask, PendingTask, QueuedTask};
use self::tools::SessionPass;
use crate::agent::{AgentEvent, AgentLaunch, AgentProcess};
use crate::failure::{CellFailure, FailureKind};
use crate::kernel_state::{KernelState, McpOffer, lock};
use crate::task;
use crate::tool_door::ToolEvent;
use crate::turn::{AgentTurn, StopSignal, TurnPlace};

/// What the calls of our tools do and nobody has read yet. When there is more, they wait.
const TOOL_EVENTS: usize = 64;

/// Tasks that wait. When the queue is full, the cell that adds another waits.
const MOST_TASKS: usize = 64;

/// An agent that the user can talk to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentChoice {
    /// What users call it.
    pub(crate) name: String,
    pub(crate) launch: AgentLaunch,
}

/// A conversation. Dropping it ends its agent.
pub(crate) struct ConversationHandle {
    tasks: mpsc::Sender<QueuedTask>,
    facts: Arc<Mutex<SessionFacts>>,
    /// Stops the current task.
    current: Arc<Mutex<Option<StopSignal>>>,
    ending: CancellationToken,
    _worker: AbortOnDropHandle<()>,
}

impl ConversationHandle {
    /// With a memory, the conversation of an earlier kernel continues, if the agent can do that.
    pub(crate) fn new(
        state: Arc<KernelState>,
        choice: Option<AgentChoice>,
        memory: Option<ConversationMemory>,
    ) -> Self {
        let (tasks, queue) = mpsc::channel(MOST_TASKS);
        let (calls, tool_events) = mpsc::channel(TOOL_EVENTS);
        let session = choice.as_ref().and_then(|choice| memory.as_ref()?.session(choice));
        let facts = Arc::new(Mutex::new(SessionFacts::default()));
        lock(&facts).choice.clone_from(&choice);
        let conversation = AgentConversation {
            state,
            facts: Arc::clone(&facts),
            current: Arc::default(),
            ending: CancellationToken::new(),
            choice,
            offer: McpOffer::default(),
            running: None,
            crashed: false,
            continues: session.is_some(),
            session,
            memory,
            previous: None,
            last_turn: None,
            late: LateUpdates::default(),
            tools: tool_events,
            calls,
            pass: None,
            introduced: false,
        };
        let (current, ending) = (Arc::clone(&conversation.current), conversation.ending.clone());
        let worker = task::spawn(conversation.run(queue));
        Self { tasks, facts, current, ending, _worker: worker }
    }

    /// Queues a prompt.
    pub(crate) async fn prompt(&self, turn: AgentTurn, prompt: UserPrompt) -> PendingTask {
        self.queue(ConversationTask::Prompt(prompt), turn).await
    }

    /// Carries out a command, after the tasks before it.
    pub(crate) async fn perform(
        &self,
        command: AgentCommand,
        turn: AgentTurn,
    ) -> Result<String, CellFailure> {
        if matches!(command, AgentCommand::Close | AgentCommand::Restart) {
            self.stop_current(); // the command would wait for it otherwise
        }
        self.queue(ConversationTask::Command(command), turn).await.done().await
    }

    /// The current facts about the conversation.
    pub(crate) fn facts(&self) -> SessionFacts {
        lock(&self.facts).clone()
    }

    /// Stops the current task and ends the agent politely. Tasks that wait do not start.
    pub(crate) async fn end(&self) {
        self.ending.cancel();
        self.stop_current();
        self.tasks.closed().await;
    }

    fn stop_current(&self) {
        lock(&self.current).iter().for_each(StopSignal::ask);
    }

    async fn queue(&self, task: ConversationTask, turn: AgentTurn) -> PendingTask {
        let stop = turn.stop.clone();
        let (queued, pending) = QueuedTask::new(task, turn);
        tokio::select! {
            sent = self.tasks.send(queued) => drop(sent), // if it failed, `pending` fails too
            () = stop.asked() => {}
        }
        pending
    }
}

struct AgentConversation {
    state: Arc<KernelState>,
    facts: Arc<Mutex<SessionFacts>>,
    current: Arc<Mutex<Option<StopSignal>>>,
    ending: CancellationToken,
    choice: Option<AgentChoice>,
    /// The MCP servers that the session was opened with.
    offer: McpOffer,
    running: Option<RunningAgent>,
    /// The agent ended by itself. The next cell reports it.
    crashed: bool,
    /// The session that is open, or was open before the agent ended.
    session: Option<SessionId>,
    /// The session is one of an earlier kernel. The first cell reports whether it continues.
    continues: bool,
    memory: Option<ConversationMemory>,
    /// The state to return to if the change to another session fails.
    previous: Option<(McpOffer, SessionFacts)>,
    /// The last turn, for what the agent reports after it.
    last_turn: Option<Box<AgentTurn>>,
    late: LateUpdates,
    /// What the calls of our tools do.
    tools: mpsc::Receiver<ToolEvent>,
    calls: mpsc::Sender<ToolEvent>,
    /// The right of the open session to our tools.
    pass: Option<SessionPass>,
    /// The session has got its introduction: where it is.
    introduced: bool,
}

struct RunningAgent {
    agent: AgentProcess,
    events: mpsc::Receiver<AgentEvent>,
    /// Whether this process has the session open.
    open: bool,
}

/// What is known about updates that come after the end of their turn.
#[derive(Default)]
struct LateUpdates {
    /// This agent has sent some, or its last turn was interrupted. The next prompt waits for
    /// silence.
    expected: bool,
    /// When the agent last reported something.
    last_heard: Option<Instant>,
    /// The longest time that it was silent before such an update.
    longest_gap: Duration,
    /// The agent has loaded an old session. Some play it back after they said that it is loaded.
    replayed: bool,
    /// During the last request the agent reported more than the state of the session.
    history_heard: bool,
}

impl LateUpdates {
    /// The agent has reported something after the end of its turn.
    fn note_late_update(&mut self) {
        let now = Instant::now();
        let gap = self.last_heard.map_or(Duration::ZERO, |last| now - last);
        self.longest_gap = self.longest_gap.max(gap);
        self.expected = true;
        self.last_heard = Some(now);
        self.replayed = false;
    }
}

impl AgentConversation {
    async fn run(mut self, mut tasks: mpsc::Receiver<QueuedTask>) {
        loop {
            let queued = tokio::select! {
                biased; // ending the conversation does not wait for tasks of others
                () = self.ending.cancelled() => break,
                queued = tasks.recv() => queued,
                Some(event) = self.tools.recv() => {
                    self.hear_tool(event).await;
                    continue;
                }
                event = next_event(&mut self.running) => {
                    self.hear_between_turns(event).await;
                    continue;
                }
            };
            let Some(QueuedTask { mut turn, task, start, done }) = queued else { break };
            if !start.take() {
                continue; // its cell was stopped
            }
            *lock(&self.current) = Some(turn.stop.clone());
            if self.ending.is_cancelled() {
                turn.stop.ask(); // `end` came too early to find this task
            }
            let result = match task {
                ConversationTask::Prompt(prompt) => {
                    let result = self.talk(&mut turn, &prompt).await;
                    if let (Err(failure), TurnPlace::Background) = (&result, turn.place) {
                        let details = failure.details.join("\n");
                        turn.view.notice(&NoticeSeverity::Error, &failure.message, Some(&details));
                        turn.drain().await;
                    }
                    self.last_turn = Some(turn);
                    result.map(|()| String::new())
                }
                ConversationTask::Command(command) => {
                    let stop = turn.stop.clone();
                    let result = tokio::select! {
                        result = self.perform(command, &mut turn) => result,
                        () = stop.asked() => Err(CellFailure::interrupted()),
                    };
                    // Also of a command that failed: a line about the time it took does not stay.
                    turn.drain_now().await;
                    self.restore_previous();
                    if stop.is_asked() {
                        self.state.stdin.interrupted();
                    }
                    result
                }
            };
            *lock(&self.current) = None;
            drop(done.send(result)); // nobody waits for a turn in the background
        }
        if let Some(running) = self.running {
            running.agent.stop().await;
        }
    }

    /// The folder in which the agent works.
    fn workspace(&self) -> PathBuf {
        self.choice.as_ref().map_or_else(|| self.state.workspace.clone(), |choice| choice.launch.cwd.clone())
    }

    fn running(&self) -> &RunningAgent {
        self.running.as_ref().expect("it was started")
    }

    /// Remembers the session for the next kernel of this notebook.
    fn remember(&mut self) {
        if let (Some(memory), Some(choice), Some(session)) = (&mut self.memory, &self.choice, &self.session) {
            memory.remember(choice, session);
        }
    }

    /// Takes an event that came while no turn is running. `None` means that the agent has ended.
    async fn hear_between_turns(&mut self, event: Option<AgentEvent>) {
        let Some(event) = event else {
            self.running = None;
            self.crashed = true;
            return;
        };
        self.state.updates.log(&event);
        match event {
            // It belongs to no cell of this kernel.
            AgentEvent::Update(notification) if self.late.replayed => {
                self.late.last_heard = Some(Instant::now());
                lock(&self.facts).learn(&notification.update);
            }
            AgentEvent::Update(notification) => {
                if self.session.as_ref() == Some(&notification.session_id)
                    && !lock(&self.facts).learn(&notification.update)
                    && let Some(turn) = &mut self.last_turn
                {
                    self.late.note_late_update();
                    turn.update(notification.update);
                    turn.drain().await;
                }
            }
            AgentEvent::Permission(question) => {
                questions::permission_between_turns(&self.state, &self.workspace(), question);
            }
            AgentEvent::Elicitation(_) | AgentEvent::Unknown(_) => {} // a dropped question is cancelled
        }
    }
}

/// The next event of the agent. Never completes without an agent. Cancel-safe.
async fn next_event(running: &mut Option<RunningAgent>) -> Option<AgentEvent> {
    match running {
        Some(running) => running.events.recv().await,
        None => std::future::pending().await,
    }
}
