//! Running one cell: first its magics, in order, then its prompt.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use cellwright_cell::Stream;
use cellwright_jupyter::ClientRequest;
use cellwright_jupyter::content::{ExecuteInput, ExecuteReply, ExecuteRequest, ExecuteResult, ReplyStatus};
use serde_json::{Value, json};

use super::KernelSetup;
use super::menu::OptionMenu;
use super::sessions::SessionTable;
use crate::conversation::{NamedCell, UserPrompt, attachments};
use crate::failure::{CellError, CellFailure, FailureKind};
use crate::kernel_state::{KernelState, lock};
use crate::magic::{self, CellBody, PromptReference, references};
use crate::notebook_context::KnownNotebook;
use crate::turn::{AgentTurn, CellChannel, StopSignal, TurnPlace};
use crate::view::ViewStyle;
use cellwright_output::visible;

/// The bytes of a cell's output that a prompt takes along when it names the cell.
const MOST_SHOWN: usize = 32 * 1024;

/// The kernel, as its cells see it.
pub(crate) struct PromptKernel {
    pub(crate) setup: Arc<KernelSetup>,
    pub(crate) state: Arc<KernelState>,
    pub(crate) sessions: SessionTable,
    /// How turns are shown, if the user chose.
    pub(crate) style: Mutex<Option<ViewStyle>>,
    /// The menu of the options, if one is on the screen.
    pub(crate) menu: Mutex<Option<OptionMenu>>,
    /// Whether prompts take along what the person did.
    pub(crate) context: Mutex<bool>,
    /// Whether a cell has said so.
    pub(crate) context_said: Mutex<bool>,
    /// What agents know of the notebook, by the names of their sessions.
    pub(crate) known: Mutex<HashMap<String, KnownNotebook>>,
    /// The variables of the kernel of code cells, as they were last seen.
    pub(crate) variables: Mutex<Vec<(String, String)>>,
    count: AtomicU32,
}

/// A cell that has ended but has no reply yet.
pub(crate) struct CellResult {
    pub(crate) request: ClientRequest,
    pub(crate) reply: ExecuteReply,
    pub(crate) rest: FollowingCells,
}

/// What happens to the cells behind one that ended.
pub(crate) enum FollowingCells {
    Runs,
    /// The cell failed, and its client asked to stop on errors.
    Aborted,
}

impl FollowingCells {
    /// After a cell that failed.
    fn after(failed: &ExecuteRequest) -> Self {
        if failed.stop_on_error { Self::Aborted } else { Self::Runs }
    }
}

impl PromptKernel {
    pub(crate) fn new(setup: Arc<KernelSetup>, state: Arc<KernelState>) -> Self {
        let sessions = SessionTable::new(Arc::clone(&state), Arc::clone(&setup));
        let (style, menu) = (Mutex::new(None), Mutex::new(None));
        let (context, known, variables) = (Mutex::new(true), Mutex::default(), Mutex::default());
        let context_said = Mutex::new(false);
        let count = AtomicU32::new(0);
        Self { setup, state, sessions, style, menu, context, context_said, known, variables, count }
    }

    /// Replaces the menu of the options by the choices that were made.
    pub(crate) async fn retire_menu(&self) {
        let menu = lock(&self.menu).take();
        if let Some(menu) = menu {
            menu.retire().await;
        }
    }

    /// The number of a cell. A cell that is not stored in the history has the number of the last
    /// one.
    fn number(&self, execute: &ExecuteRequest) -> u32 {
        if execute.silent || !execute.store_history {
            return self.count.load(Ordering::Relaxed);
        }
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        lock(&self.state.history).add(count, &execute.code);
        count
    }
}

/// Runs a cell until its reply is known.
pub(crate) async fn run(kernel: &PromptKernel, mut request: ClientRequest) -> CellResult {
    let execute = match request.message().parse::<ExecuteRequest>() {
        Ok(execute) => execute,
        Err(error) => {
            request.begin();
            let reason =
                std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
            let failure = CellFailure::new(FailureKind::BadRequest, format!("{error}{reason}"));
            let (status, exception) = (ReplyStatus::Error, Some(failure.exception()));
            let reply = ExecuteReply { status, exception, ..ExecuteReply::default() };
            return CellResult { request, reply, rest: FollowingCells::Runs };
        }
    };
    // This comes before the client can know that the cell runs, so that every interrupt reaches it.
    let stop = StopSignal::default();
    let registration = kernel.state.begin(TurnPlace::Foreground, &stop);
    request.begin();
    let count = kernel.number(&execute);
    if !execute.silent {
        let input = ExecuteInput {
            code: execute.code.clone(),
            execution_count: count.into(),
            ..ExecuteInput::default()
        };
        request.sender().publish(request.output(&input));
    }
    let metadata: serde_json::Map<String, Value> = request.message().metadata.parse().unwrap_or_default();
    let client = style_of(&metadata, &execute);
    let id = metadata.get("cellId").and_then(Value::as_str).map(ToOwned::to_owned);
    let cell = Arc::new(CellChannel::new(
        request.sender().clone(),
        request.message().clone(),
        execute.allow_stdin,
        execute.silent,
    ));
    if count > 0 && !execute.silent && execute.store_history {
        lock(&kernel.state.history).keep(count, Arc::clone(cell.record()));
    }
    lock(cell.record()).cell.clone_from(&id);
    let work = CellRun { kernel, cell: Arc::clone(&cell), client, stop, count, id };
    // When a cell is dropped, as with a deleted subshell, everything it started stops.
    let given_up = work.stop.ask_on_drop();
    let result = work.all(&execute.code).await;
    given_up.disarm();
    drop(registration);
    let reply = ExecuteReply { execution_count: Some(count.into()), ..ExecuteReply::default() };
    match result {
        Ok(payload) => {
            CellResult { request, reply: ExecuteReply { payload, ..reply }, rest: FollowingCells::Runs }
        }
        Err(CellError::Raised(exception)) => {
            let exception = Some(exception);
            let reply = ExecuteReply { status: ReplyStatus::Error, exception, ..reply };
            CellResult { request, reply, rest: FollowingCells::after(&execute) }
        }
        Err(CellError::Failure(failure)) => {
            lock(cell.record()).stream(Stream::Stderr, &format!("{}\n", failure.message));
            cell.publish(&failure.output(), &work.stop).await;
            let exception = Some(failure.exception());
            let reply = ExecuteReply { status: ReplyStatus::Error, exception, ..reply };
            CellResult { request, reply, rest: FollowingCells::after(&execute) }
        }
    }
}

/// What the client can show. Notebooks name the cell that they run, and clients without a user,
/// such as nbclient, accept no input. Both show updates of displays. All others are consoles.
fn style_of(metadata: &serde_json::Map<String, Value>, execute: &ExecuteRequest) -> ViewStyle {
    if metadata.contains_key("cellId") || metadata.contains_key("deletedCells") || !execute.allow_stdin {
        ViewStyle::Rich
    } else {
        ViewStyle::Stream
    }
}

/// A running cell.
pub(crate) struct CellRun<'a> {
    pub(crate) kernel: &'a PromptKernel,
    pub(crate) cell: Arc<CellChannel>,
    /// What the client can show.
    client: ViewStyle,
    pub(crate) stop: StopSignal,
    pub(crate) count: u32,
    /// The id of the cell in its notebook, if the client names it.
    pub(super) id: Option<String>,
}

impl CellRun<'_> {
    async fn all(&self, code: &str) -> Result<Vec<Value>, CellError> {
        if self.client == ViewStyle::Stream && matches!(code.trim(), "exit" | "quit") {
            // People type this to leave a console. A console exits when its kernel asks for it.
            return Ok(vec![json!({"source": "ask_exit", "keepkernel": false})]);
        }
        let mode = *lock(&self.kernel.state.cells);
        let asked = magic::parse(code, mode)
            .map_err(|error| CellFailure::new(FailureKind::MagicError, error.to_string()))?;
        let mut payload = Vec::new();
        let magics = asked.magics.len();
        let is_empty = matches!(&asked.body, CellBody::Prompt { text, .. } if text.is_empty());
        for (at, magic) in asked.magics.into_iter().enumerate() {
            let last = at + 1 == magics && is_empty;
            payload.extend(self.magic(magic, last).await?);
        }
        match asked.body {
            CellBody::Code(body) => self.code(&body).await?,
            CellBody::Prompt { .. } if is_empty => {}
            CellBody::Prompt { target, text } => {
                let place = if target.background { TurnPlace::Background } else { TurnPlace::Foreground };
                self.prompt(target.session.as_deref(), place, &text).await?;
            }
        }
        Ok(payload)
    }

    /// How this cell shows turns.
    pub(crate) fn style(&self) -> ViewStyle {
        lock(&self.kernel.style).unwrap_or(self.client)
    }

    pub(crate) fn turn(&self, place: TurnPlace) -> AgentTurn {
        let (stop, registration) = match place {
            TurnPlace::Foreground => (self.stop.clone(), None),
            // Interrupts reach it from here on, also while it waits in the queue.
            TurnPlace::Background => {
                let stop = StopSignal::default();
                let registration = self.kernel.state.begin(place, &stop);
                (stop, Some(registration))
            }
        };
        let mut turn = AgentTurn::new(Arc::clone(&self.cell), stop, self.style(), place);
        turn.registration = registration;
        turn
    }

    /// Sends a prompt to the agent of a session, or of the current one.
    async fn prompt(&self, session: Option<&str>, place: TurnPlace, text: &str) -> Result<(), CellFailure> {
        let (name, handle) = match session {
            Some(name) => (name.to_owned(), self.kernel.sessions.get(name)?),
            None => self.kernel.sessions.current(),
        };
        let mut turn = self.turn(place);
        if let Some(hint) = self.code_hint(text).await {
            turn.view.aside(&hint);
        }
        let context = self.new_context(&name, &handle).await;
        if let Some(hint) = context.as_ref().and_then(|context| self.context_hint(context)) {
            turn.view.aside(&hint);
        }
        let variables = self.named_variables(text).await;
        let prompt =
            UserPrompt { variables, context: context.map(|context| context.text), ..self.with_cells(text) };
        let stop = turn.stop.clone();
        let pending = handle.prompt(turn, prompt).await;
        match place {
            TurnPlace::Foreground => {
                let ended = pending.done().await.map(drop);
                self.note_known(&name, &handle).await;
                ended
            }
            // The cell was interrupted, so its turn does not stay in the background.
            TurnPlace::Background if self.stop.is_asked() => {
                stop.ask();
                pending.done().await.map(drop)
            }
            TurnPlace::Background => {
                self.result(
                    "the turn continues in the background; its output follows here".to_owned(),
                    false,
                )
                .await;
                Ok(())
            }
        }
    }

    fn with_cells(&self, text: &str) -> UserPrompt {
        let history = lock(&self.kernel.state.history);
        let named = |count: u32| {
            let record = history.shown(count).map(|record| lock(record).clone()).unwrap_or_default();
            let source = history.source(count)?.to_owned();
            Some(NamedCell { source, shown: record.text(MOST_SHOWN), pictures: record.pictures() })
        };
        let cells = references(text).into_iter().filter_map(|reference| match reference {
            PromptReference::Cell { count, .. } if count != self.count => Some((count, named(count))),
            PromptReference::Cell { .. }
            | PromptReference::File { .. }
            | PromptReference::Variable { .. } => None,
        });
        let attachments = attachments(text, self.kernel.setup.notebook.as_ref(), self.id.as_deref());
        UserPrompt { text: text.to_owned(), cells: cells.collect(), attachments, ..UserPrompt::default() }
    }

    /// Shows a text. The last one of a cell is its result.
    pub(crate) async fn result(&self, text: String, last: bool) {
        let data = serde_json::Map::from_iter([("text/plain".to_owned(), Value::from(&*visible(&text)))]);
        if last {
            lock(self.cell.record()).display(&data);
            let result = ExecuteResult {
                execution_count: Some(self.count.into()),
                data: data.into(),
                ..ExecuteResult::default()
            };
            self.cell.publish(&result, &self.stop).await;
        } else {
            self.cell.display(data, &self.stop).await;
        }
    }
}
