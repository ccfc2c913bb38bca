//! The tools as one session of an agent has them: bound to the notebook and its kernel.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    PermissionOption, PermissionOptionId, PermissionOptionKind, RequestPermissionRequest, SessionId,
    ToolCallUpdate,
};
use cellwright_mcp::{AttachedCall, AttachedHost};
use cellwright_session::{CallEvent, CallHandle, CallUpdate};
use cellwright_tools::{CallContext, CallObserver, ToolReply, ToolSpec};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::gate::{DeedKind, ToolDeed};
use crate::agent::PermissionQuestion;
use crate::kernel_state::{KernelState, lock};
use crate::permission::ApprovalMode;
use crate::task;
use crate::turn::{StopSignal, TurnPlace};

/// The tools of the notebook. Agents have their own for files and commands.
const TOOLS: [&str; 4] = ["eval", "notebook", "kernel", "read"];

/// Arguments that would leave the notebook's kernel.
const ELSEWHERE: [&str; 2] = ["cwd", "session"];

/// How much earlier than its client's limit a call is answered that waits for the person.
const MARGIN: Duration = Duration::from_secs(2);

/// How long a call waits for the person whose client has no limit.
const LONGEST: Duration = Duration::from_hours(1);

/// What the calls of an agent do, for the cell that shows it.
#[derive(Debug)]
pub(crate) enum ToolEvent {
    /// A call begins.
    Begun(Box<BegunCall>),
    /// The person has to be asked.
    Question { number: u64, question: Box<PermissionQuestion> },
    /// A cell of a call does something.
    Cell(Box<CallEvent>),
    /// The call is over.
    Ended { number: u64, failed: bool },
}

/// A call that begins.
#[derive(Debug)]
pub(crate) struct BegunCall {
    pub(crate) number: u64,
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    /// What the agent calls it in its own reports, if it says so.
    pub(crate) id: Option<String>,
    pub(crate) deed: ToolDeed,
    /// Stops what it runs.
    pub(crate) stop: CancellationToken,
}

/// The tools of one session of an agent.
pub(crate) struct ServedSession {
    state: Weak<KernelState>,
    events: mpsc::Sender<ToolEvent>,
    /// What the server is called.
    name: String,
    calls: AtomicU64,
    listed: watch::Sender<bool>,
    /// Questions that the person had not answered when their calls had to be.
    unanswered: Mutex<Vec<(Value, oneshot::Receiver<PermissionOptionId>)>>,
    /// Cells that run on after their calls were answered.
    continuing: Mutex<Vec<AbortOnDropHandle<()>>>,
}

impl ServedSession {
    pub(crate) fn new(state: &Arc<KernelState>, events: mpsc::Sender<ToolEvent>, name: &str) -> Arc<Self> {
        Arc::new(Self {
            state: Arc::downgrade(state),
            events,
            name: name.to_owned(),
            calls: AtomicU64::new(0),
            listed: watch::Sender::new(false),
            unanswered: Mutex::default(),
            continuing: Mutex::default(),
        })
    }

    /// The notebook that is meant where a call names none.
    fn notebook(&self) -> Option<PathBuf> {
        lock(&self.state.upgrade()?.notebook).clone()
    }

    /// Whether the agent has read the list of tools.
    pub(crate) fn is_listed(&self) -> bool {
        *self.listed.borrow()
    }

    /// Waits until the agent has read the list of tools. Cancel-safe.
    pub(crate) async fn was_listed(&self) {
        let mut listed = self.listed.subscribe();
        drop(listed.wait_for(|listed| *listed).await); // the sender is ours
    }

    async fn carry_out(&self, number: u64, tool: &str, call: AttachedCall) -> (ToolReply, bool) {
        let Some(state) = self.state.upgrade() else {
            return (ToolReply::error("the notebook is closing"), false);
        };
        let Some(companion) = &state.companion else { return (ToolReply::error("no code runs here"), false) };
        let place = companion.place();
        let client = match companion.tool_client(&place) {
            Ok(client) => client,
            Err(error) => {
                return (ToolReply::error(format!("the folder of the notebook is gone: {error}")), false);
            }
        };
        let observer = Arc::new(CellObserver { events: self.events.clone(), continues: Mutex::default() });
        let mut context = CallContext::new(client, call.stop.clone());
        context.room = call.room;
        context.observer = Some(Arc::clone(&observer) as Arc<dyn CallObserver>);
        let reply = companion.toolbox().call(tool, call.arguments, &context).await;
        companion.watch(&place).await;
        let continuing = lock(&observer.continues).take();
        let Some(cells) = continuing else { return (reply, false) };
        let stop = StopSignal::default();
        let registration = state.begin(TurnPlace::Background, &stop);
        let events = self.events.clone();
        let ends = call.stop;
        let following = task::spawn(async move {
            let failed = follow_on(cells, &events, &stop, &ends).await;
            drop(registration);
            drop(events.send(ToolEvent::Ended { number, failed }).await); // the conversation may be over
        });
        let mut all = lock(&self.continuing);
        all.retain(|task| !task.is_finished());
        all.push(following);
        (reply, true)
    }

    /// Waits for the permission to do it. Returns the reply to a call that is not permitted.
    async fn permitted(&self, number: u64, deed: &ToolDeed, call: &AttachedCall) -> Result<(), ToolReply> {
        let Some(usual) = deed.question() else { return Ok(()) };
        let same = Value::Object(call.arguments.clone());
        let earlier = {
            let mut unanswered = lock(&self.unanswered);
            let at = unanswered.iter().position(|(asked, _)| *asked == same);
            at.map(|at| unanswered.remove(at).1)
        };
        let mut answer = if let Some(answer) = earlier {
            answer
        } else {
            let options = vec![
                PermissionOption::new("allow", "Allow", PermissionOptionKind::AllowOnce),
                PermissionOption::new("reject", "Reject", PermissionOptionKind::RejectOnce),
            ];
            let id = format!("cellwright-call-{number}");
            let update = ToolCallUpdate::new(id, deed.fields());
            let request = RequestPermissionRequest::new(SessionId::new(""), update, options);
            let (question, answer) = PermissionQuestion::of_ours(request, usual);
            let question = ToolEvent::Question { number, question: Box::new(question) };
            drop(self.events.send(question).await); // a question that is lost is refused
            answer
        };
        let patience = call.room.patience.unwrap_or(LONGEST);
        let until = Instant::now() + patience.saturating_sub(MARGIN);
        tokio::select! {
            chosen = &mut answer => match chosen {
                Ok(chosen) if *chosen.0 == *"allow" => Ok(()),
                Ok(_) | Err(_) => Err(ToolReply::error("the person did not allow this")),
            },
            () = call.stop.cancelled() => Err(ToolReply::error("the call was cancelled")),
            () = tokio::time::sleep_until(until) => {
                lock(&self.unanswered).push((same, answer));
                Err(ToolReply::error(
                    "not run yet: the person is still being asked whether this may run. Make the same call again to \
                     wait for the answer, or go on with something else.",
                ))
            }
        }
    }

    /// The arguments, with what the notebook decides.
    fn bound(&self, tool: &str, mut arguments: Map<String, Value>) -> Map<String, Value> {
        for name in ELSEWHERE {
            arguments.remove(name);
        }
        if let (true, Some(notebook)) = (matches!(tool, "notebook" | "read"), self.notebook()) {
            let path = || Value::from(notebook.to_string_lossy().into_owned());
            arguments.entry("path").or_insert_with(path);
        }
        arguments
    }

    /// Why a call cannot be made here. Cells of this notebook run in its page, or not at all: they may be prompts.
    async fn refusal(&self, tool: &str, arguments: &Map<String, Value>) -> Option<String> {
        let runs = arguments.get("run") == Some(&Value::Bool(true));
        let is_run = tool == "notebook" && (arguments.get("action") == Some(&"run".into()) || runs);
        let state = self.state.upgrade()?;
        if !is_run {
            return None;
        }
        let page = state.page.clone();
        let bridged = tokio::task::spawn_blocking(move || page.is_bridged()).await.unwrap_or_default();
        (!bridged).then(|| {
            "cells of this notebook can only run in its page, and no page answers: run the code with `eval`".to_owned()
        })
    }
}

impl AttachedHost for ServedSession {
    fn specs(&self) -> Vec<ToolSpec> {
        let Some(state) = self.state.upgrade() else { return Vec::new() };
        let Some(companion) = &state.companion else { return Vec::new() };
        let asks = lock(&state.policy).mode != ApprovalMode::Auto;
        let mut specs = companion.toolbox().specs();
        specs.retain(|spec| TOOLS.contains(&spec.name));
        for spec in &mut specs {
            if let Some(Value::Object(properties)) = spec.schema.get_mut("properties") {
                for name in ELSEWHERE {
                    properties.remove(name);
                }
            }
            if self.notebook().is_some()
                && matches!(spec.name, "notebook" | "read")
                && let Some(Value::Array(required)) = spec.schema.get_mut("required")
            {
                required.retain(|name| name != "path");
            }
            // We ask the person ourselves.
            spec.destructive &= !asks;
        }
        specs
    }

    fn instructions(&self) -> String {
        introduction(self.notebook().as_deref(), &self.name)
    }

    fn listed(&self) {
        self.listed.send_replace(true);
    }

    fn call(&self, call: AttachedCall) -> BoxFuture<'_, ToolReply> {
        async move {
            let number = self.calls.fetch_add(1, Ordering::Relaxed);
            let (tool, id) = (call.name.clone(), call.id.clone());
            if !TOOLS.contains(&tool.as_str()) {
                return ToolReply::error(format!(
                    "there is no tool `{tool}` here; there are {}",
                    TOOLS.join(", ")
                ));
            }
            let asked = Value::Object(call.arguments.clone());
            let call = AttachedCall { arguments: self.bound(&tool, call.arguments), ..call };
            let Some(state) = self.state.upgrade() else {
                return ToolReply::error("the notebook is closing");
            };
            let deed = ToolDeed::of(&tool, &call.arguments, &state.workspace);
            drop(state);
            if let Some(why) = self.refusal(&tool, &call.arguments).await {
                return ToolReply::error(why);
            }
            let shown = deed.kind == DeedKind::Run;
            if shown {
                let (stop, deed) = (call.stop.clone(), deed.clone());
                let begun = BegunCall { number, tool: tool.clone(), arguments: asked, id, deed, stop };
                drop(self.events.send(ToolEvent::Begun(Box::new(begun))).await); // the conversation may be over
            }
            let began = Instant::now();
            let (reply, continues) = match self.permitted(number, &deed, &call).await {
                Ok(()) => {
                    let mut call = call;
                    let left = |patience: Duration| patience.saturating_sub(began.elapsed()).max(MARGIN);
                    call.room.patience = call.room.patience.map(left);
                    self.carry_out(number, &tool, call).await
                }
                Err(reply) => (reply, false),
            };
            if shown && !continues {
                let ended = ToolEvent::Ended { number, failed: reply.is_error };
                drop(self.events.send(ended).await);
            }
            reply
        }
        .boxed()
    }
}

impl fmt::Debug for ServedSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServedSession").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Passes on what the cells of a call do.
struct CellObserver {
    events: mpsc::Sender<ToolEvent>,
    /// The cells, once their call was answered before their end.
    continues: Mutex<Option<CallHandle>>,
}

impl CallObserver for CellObserver {
    fn event(&self, event: CallEvent) -> BoxFuture<'_, ()> {
        let event = ToolEvent::Cell(Box::new(event));
        async move { drop(self.events.send(event).await) }.boxed() // the conversation may be over
    }

    fn continues(&self, cells: CallHandle) {
        *lock(&self.continues) = Some(cells);
    }
}

/// Reads cells to their end. Whether they failed.
async fn follow_on(
    mut cells: CallHandle,
    events: &mpsc::Sender<ToolEvent>,
    stop: &StopSignal,
    ends: &CancellationToken,
) -> bool {
    let stopping = AtomicBool::new(false);
    loop {
        let stopped = async {
            tokio::select! {
                () = stop.asked() => {}
                () = ends.cancelled() => {}
            }
        };
        tokio::select! {
            () = stopped, if !stopping.load(Ordering::Relaxed) => {
                stopping.store(true, Ordering::Relaxed);
                cells.stop();
            }
            update = cells.next() => match update {
                CallUpdate::Event(event) => {
                    drop(events.send(ToolEvent::Cell(Box::new(event))).await);
                }
                CallUpdate::Finished(report) => return !report.succeeded(),
            },
        }
    }
}

/// How the text begins that tells an agent where it is.
pub(crate) const INTRODUCES: &str = "<cellwright>";

/// What an agent needs to know of where it is, in a few lines.
pub(crate) fn introduction(notebook: Option<&std::path::Path>, server: &str) -> String {
    let place = match notebook {
        Some(path) => format!("the Jupyter notebook {}", path.display()),
        None => "a Jupyter notebook or console".to_owned(),
    };
    format!(
        "You work inside {place}. The person writes prompts in its cells; what you say and do appears below the prompt. \
         The notebook has one live kernel that you and the person share: their code cells and your calls see the same \
         variables. Use the tools of the MCP server `{server}`:\n\
         - `eval` runs code in that kernel. Prefer it to a shell for anything in Python. What it prints, displays and \
         plots appears in the person's cell as it comes, so do not repeat it; say what it means.\n\
         - `notebook` inserts, edits, moves and deletes cells of the open notebook. Do not edit the .ipynb file yourself.\n\
         - `read` shows the notebook or another file, `kernel` lists the variables ({{\"action\": \"status\"}}) and follows \
         code that runs on in the background.\n\
         If you do not see these tools, search for `mcp__{server}__eval`. `input()` in your code asks the person."
    )
}
