//! A turn in its cell: where its output goes, and how it is stopped.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use agent_client_protocol_schema::v1::{
    MessageId, NoticeSeverity, SessionUpdate, ToolCall, ToolCallId, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields,
};
use cellwright_cell::{Output, OutputChange, Stream};
use cellwright_jupyter::content::{DisplayData, StreamOutput, Transient, UpdateDisplayData};
use cellwright_jupyter::{JupyterMessage, MessageHeader, ServerSender};
use cellwright_process::ChildExit;
use cellwright_session::CallEvent;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::agent::{AgentProcess, TerminalNews};
use crate::cell_output::{AgentOutputs, CodeOutputs};
use crate::cell_record::{CellOutputRecord, RecordedOutput, SharedRecord};
use crate::companion::CellAddress;
use crate::kernel_state::{InterruptRegistration, KernelState, lock};
use crate::notebook_calls::NotebookCalls;
use crate::permission::PermissionDecision;
use crate::tool_calls::{PermissionAsker, ToolCalls, TurnChange};
use crate::tool_door::BegunCall;
use crate::view::{OutputData, OutputMessage, TurnEnding, TurnView, ViewStyle};

/// A turn. It owns the header of its cell's request, so its output cannot reach another cell.
pub(crate) struct AgentTurn {
    /// The tool calls of the agent. Permissions are judged by them.
    pub(crate) calls: ToolCalls,
    /// Which of them are calls of our tools.
    pub(crate) notebook: NotebookCalls,
    /// What the agent's code shows.
    outputs: CodeOutputs,
    adapted: AgentOutputs,
    /// What the cell shows.
    pub(crate) view: TurnView,
    pub(crate) stop: StopSignal,
    pub(crate) cell: Arc<CellChannel>,
    pub(crate) style: ViewStyle,
    pub(crate) place: TurnPlace,
    /// The questions that wait for the user, each with its own key: a tool call may have several.
    pub(crate) open_questions: HashMap<ToolCallId, CancellationToken>,
    /// The messages that the agent has named in this turn.
    messages: HashSet<MessageId>,
    /// Lets interrupts reach a turn in the background. In the foreground the cell has its own.
    pub(crate) registration: Option<InterruptRegistration>,
}

/// Whether the cell waits for the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnPlace {
    Foreground,
    Background,
}

/// How much of a turn's output was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnOutput {
    All,
    /// The user interrupted and did not wait for the rest.
    CutShort,
}

/// The way back to the client that runs a cell.
pub(crate) struct CellChannel {
    sender: ServerSender,
    request: JupyterMessage,
    /// Whether the client answers questions.
    pub(crate) allow_stdin: bool,
    /// The client wants no output at all.
    silent: bool,
    /// What it has shown.
    record: SharedRecord,
    /// How many turns have shown something here.
    turns: AtomicU32,
}

/// Stops a cell. The first interrupt asks, the second one forces.
#[derive(Debug, Clone, Default)]
pub(crate) struct StopSignal {
    asked: CancellationToken,
    forced: CancellationToken,
    /// Notified at each interrupt.
    repeated: Arc<Notify>,
}

impl StopSignal {
    pub(crate) fn interrupt(&self) {
        if self.asked.is_cancelled() {
            self.forced.cancel();
        }
        self.asked.cancel();
        self.repeated.notify_one();
    }

    /// Waits for the next interrupt. For one listener.
    pub(crate) async fn interrupted(&self) {
        self.repeated.notified().await;
    }

    /// Asks to stop. Asking again does not force.
    pub(crate) fn ask(&self) {
        self.asked.cancel();
    }

    /// Asks to stop when the guard is dropped.
    pub(crate) fn ask_on_drop(&self) -> DropGuard {
        self.asked.clone().drop_guard()
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.asked.is_cancelled()
    }

    pub(crate) async fn asked(&self) {
        self.asked.cancelled().await;
    }

    pub(crate) async fn forced(&self) {
        self.forced.cancelled().await;
    }
}

impl CellChannel {
    pub(crate) fn new(
        sender: ServerSender,
        request: JupyterMessage,
        allow_stdin: bool,
        silent: bool,
    ) -> Self {
        let (turns, record) = (AtomicU32::new(0), SharedRecord::default());
        Self { sender, request, allow_stdin, silent, record, turns }
    }

    pub(crate) fn header(&self) -> &MessageHeader {
        &self.request.header
    }

    /// A name for one more turn in this cell. The names of its displays begin with it.
    fn new_turn(&self) -> String {
        format!("turn-{}-{}", self.header().msg_id(), self.turns.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn request(&self) -> &JupyterMessage {
        &self.request
    }

    /// What it has shown, and will show.
    pub(crate) fn record(&self) -> &SharedRecord {
        &self.record
    }

    /// A view for a turn in this cell.
    fn view(&self, style: ViewStyle) -> TurnView {
        let now = Instant::now();
        let view = TurnView::new(style, self.new_turn(), now);
        let (id, session) = (self.header().msg_id(), self.header().session());
        let is_direct = is_of_process(id, session, std::os::unix::process::parent_id());
        if is_direct { view.unpaced(now) } else { view }
    }

    pub(crate) fn sender(&self) -> &ServerSender {
        &self.sender
    }

    /// Publishes something as output of this cell. Waits for slow readers, unless forced to stop.
    pub(crate) async fn publish<C: cellwright_jupyter::content::MessageContent>(
        &self,
        content: &C,
        stop: &StopSignal,
    ) {
        if !self.silent {
            let message = self.sender.session().message(content).with_parent(self.header());
            self.send(message, stop).await;
        }
    }

    /// The part of [`CellChannel::publish`] that is compiled once for all contents.
    async fn send(&self, message: JupyterMessage, stop: &StopSignal) {
        tokio::select! {
            biased;
            () = self.sender.publish_when_read(message.clone()) => {}
            () = stop.forced() => self.sender.publish(message),
        }
    }

    /// Shows what another cell has shown.
    pub(crate) async fn show_again(&self, record: &CellOutputRecord, stop: &StopSignal) {
        for output in record.outputs() {
            match output {
                RecordedOutput::Stream { name, text } => {
                    let show = OutputMessage::Stream { name: *name, text: text.clone() };
                    self.show(show, stop).await;
                }
                RecordedOutput::Display(data) => self.display(data.clone(), stop).await,
            }
        }
    }

    pub(crate) async fn show(&self, show: OutputMessage, stop: &StopSignal) {
        lock(&self.record).add(&show);
        let transient = |id| Transient { display_id: Some(id), ..Transient::default() };
        match show {
            OutputMessage::Stream { name, text } => {
                self.publish(&StreamOutput { name, text, ..StreamOutput::default() }, stop).await;
            }
            OutputMessage::Display { id, data } => {
                self.publish(
                    &DisplayData { data: data.into(), transient: transient(id), ..DisplayData::default() },
                    stop,
                )
                .await;
            }
            OutputMessage::Update { id, data } => {
                let update = UpdateDisplayData {
                    data: data.into(),
                    transient: transient(id),
                    ..UpdateDisplayData::default()
                };
                self.publish(&update, stop).await;
            }
        }
    }

    /// Shows a display that is never updated.
    pub(crate) async fn display(&self, data: OutputData, stop: &StopSignal) {
        lock(&self.record).display(&data);
        self.publish(&DisplayData { data: data.into(), ..DisplayData::default() }, stop).await;
    }
}

/// Whether a message comes from this process, the one that started the kernel. Such a client holds the
/// sockets itself. Others may sit behind a Jupyter Server, which drops output that comes too fast.
///
/// Jupyter's Python clients write `SESSION_PID_COUNT` as the id of a message.
fn is_of_process(msg_id: &str, session: &str, process: u32) -> bool {
    let numbers = msg_id.strip_prefix(session).and_then(|rest| rest.strip_prefix('_')?.split_once('_'));
    numbers.is_some_and(|(pid, count)| pid.parse() == Ok(process) && count.parse::<u64>().is_ok())
}

/// The message that an update adds to, if the agent names it.
fn message_id(update: &SessionUpdate) -> Option<&MessageId> {
    match update {
        SessionUpdate::AgentMessageChunk(chunk) | SessionUpdate::AgentThoughtChunk(chunk) => {
            chunk.message_id.as_ref()
        }
        _ => None,
    }
}

/// The bytes of text that a console still gets after an interrupt. More would take it seconds.
const SHOWN_AFTER_INTERRUPT: usize = 64 << 10;

impl AgentTurn {
    pub(crate) fn new(cell: Arc<CellChannel>, stop: StopSignal, style: ViewStyle, place: TurnPlace) -> Self {
        let view = cell.view(style);
        let (calls, open_questions, messages) = (ToolCalls::default(), HashMap::new(), HashSet::new());
        let (notebook, outputs) = (NotebookCalls::default(), CodeOutputs::default());
        let adapted = AgentOutputs::new(cell.new_turn());
        let registration = None;
        Self {
            calls,
            notebook,
            outputs,
            adapted,
            view,
            stop,
            cell,
            style,
            place,
            open_questions,
            messages,
            registration,
        }
    }

    /// Prepares the turn for a conversation that is played back.
    pub(crate) fn replay(&mut self) {
        self.calls = ToolCalls::default();
        self.view = self.cell.view(self.style).replaying();
    }

    /// Whether an update goes on with something of this turn: a message or a tool call by its id.
    pub(crate) fn knows(&self, update: &SessionUpdate) -> bool {
        match update {
            SessionUpdate::ToolCallUpdate(update) => self.calls.get(&update.tool_call_id).is_some(),
            update => message_id(update).is_some_and(|id| self.messages.contains(id)),
        }
    }

    /// Takes in an update of the agent. Returns the tool call that it is about.
    pub(crate) fn update(&mut self, update: SessionUpdate) -> Option<ToolCallId> {
        let now = Instant::now();
        self.messages.extend(message_id(&update).cloned());
        if self.notebook.covers(&update) {
            return None; // its card shows what the call does
        }
        match self.calls.apply(update) {
            TurnChange::ToolCall(change) => {
                self.view.tool_call(&change, &self.calls, now);
                let asked = change.altered_questions.iter();
                let withdrawn: Vec<_> = asked.filter_map(|id| self.open_questions.remove(id)).collect();
                if !withdrawn.is_empty() {
                    let notice = "the agent changed this call while you were asked; an answer does not count";
                    self.view.notice(&NoticeSeverity::Warning, notice, None);
                }
                withdrawn.iter().for_each(CancellationToken::cancel);
                Some(change.id)
            }
            TurnChange::Other(update) => {
                self.view.update(update, now);
                None
            }
        }
    }

    /// Shows a call of our tools that begins.
    pub(crate) fn begin_call(&mut self, begun: BegunCall) {
        let BegunCall { number, tool, arguments, id, deed, stop } = begun;
        let language = arguments.get("language").and_then(serde_json::Value::as_str).unwrap_or("python");
        let language = if matches!(language, "py" | "python3") { "python" } else { language }.to_owned();
        let card = self.notebook.begin(number, &tool, arguments, id.as_deref(), stop);
        if let Some(code) = deed.text.as_ref().filter(|_| tool == "eval") {
            self.calls.runs(&card, &language, code);
        }
        let fields = deed.fields().status(ToolCallStatus::InProgress).content(Vec::new());
        self.show_call(card, fields);
    }

    /// Shows that a call of our tools is over.
    pub(crate) async fn end_call(&mut self, number: u64, failed: bool) {
        self.flush_code().await;
        let Some(card) = self.notebook.card(number).cloned() else { return };
        let status = if failed { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
        self.show_call(card, ToolCallUpdateFields::new().status(status));
    }

    /// Publishes what the agent's code has printed.
    pub(crate) async fn flush_code(&mut self) {
        self.outputs.flush(&self.cell, 0, &self.stop).await;
    }

    fn show_call(&mut self, card: ToolCallId, fields: ToolCallUpdateFields) {
        let change = self.calls.update(ToolCallUpdate::new(card, fields));
        self.view.tool_call(&change, &self.calls, Instant::now());
    }

    /// Takes what a cell of a call does, except for its questions.
    pub(crate) async fn code_event(&mut self, state: &KernelState, event: CallEvent) {
        match event {
            CallEvent::Output { change, .. } => self.show_code(change).await,
            CallEvent::Notice(notice) => {
                let text = format!("[{notice}]\n");
                self.show_code(OutputChange::Added(Output::text(Stream::Stderr, text))).await;
            }
            CallEvent::Comm { cell: Some(_), comm } => {
                if let Some(companion) = &state.companion {
                    let (sender, header) = (self.cell.sender().clone(), self.cell.header().clone());
                    companion.said(&companion.place(), &comm, &CellAddress { sender, header });
                }
            }
            CallEvent::Comm { cell: None, .. }
            | CallEvent::LateBefore(_)
            | CallEvent::Late(_)
            | CallEvent::Queued { .. }
            | CallEvent::KernelStarted(_)
            | CallEvent::Turn { .. }
            | CallEvent::CellStarted { .. }
            | CallEvent::Input { .. }
            | CallEvent::Stopping { .. }
            | CallEvent::CellFinished(_) => {}
        }
    }

    /// Shows what the agent's code does, after all that the agent said before.
    async fn show_code(&mut self, change: OutputChange) {
        for show in self.view.before_output(&self.calls, Instant::now()) {
            self.cell.show(show, &self.stop).await;
        }
        for change in self.adapted.adapted(change) {
            self.outputs.take(change, &self.cell, 0, &self.stop).await;
        }
    }

    /// Shows that nobody was asked about a call, although the permissions required it.
    pub(crate) fn permission_bypassed(&mut self, id: &ToolCallId) {
        self.calls.bypassed(id);
        self.view.permission_bypassed(id, &self.calls, Instant::now());
    }

    /// Notes and shows that a tool call waits for a permission. Returns what is known about it.
    pub(crate) fn ask_permission(&mut self, update: ToolCallUpdate, asker: PermissionAsker) -> &ToolCall {
        let change = self.calls.ask_permission(update, asker);
        self.view.tool_call(&change, &self.calls, Instant::now());
        &self.calls.get(&change.id).expect("it was updated above").call
    }

    /// Is cancelled when the agent changes a call while the user is asked this question about it.
    pub(crate) fn withdrawal(&mut self, question: &ToolCallId) -> CancellationToken {
        self.open_questions.entry(question.clone()).or_default().clone()
    }

    /// Notes and shows how a permission was decided.
    pub(crate) fn decide_permission(&mut self, id: &ToolCallId, decision: &PermissionDecision) {
        self.open_questions.remove(id);
        self.calls.decide(id, decision);
        self.view.permission_decided(id, decision, &self.calls, Instant::now());
    }

    /// Waits until something is due to be published. Cancel-safe.
    pub(crate) async fn due(&self) {
        let view = async {
            match self.view.due() {
                Some(due) => tokio::time::sleep_until(due.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = view => {}
            () = self.outputs.due() => {}
        }
    }

    /// Publishes what is due.
    pub(crate) async fn flush(&mut self) {
        let shows = self.view.flush(&self.calls, Instant::now());
        if !shows.is_empty() || self.outputs.is_due() {
            self.flush_code().await;
        }
        for show in shows {
            self.cell.show(show, &self.stop).await;
        }
    }

    /// Ends the turn and publishes the rest, as fast as clients can take it.
    pub(crate) async fn finish(&mut self, ending: &TurnEnding) -> TurnOutput {
        self.flush_code().await;
        self.end(ending);
        self.drain().await
    }

    fn end(&mut self, ending: &TurnEnding) {
        let left_open = self.calls.end();
        self.view.end(ending, &left_open, &self.calls, Instant::now());
    }

    /// Shows what the agent's commands wrote since the last call.
    pub(crate) fn show_terminals(&mut self, agent: &AgentProcess) {
        for news in agent.terminal_news() {
            self.show_terminal(&news);
        }
    }

    fn show_terminal(&mut self, news: &TerminalNews) {
        let now = Instant::now();
        if !news.output.is_empty() {
            self.view.terminal_output(&news.terminal, &news.output, &self.calls, now);
        }
        if let Some(exit) = news.exit {
            let (code, signal) = match exit {
                ChildExit::Code(code) => (Some(i64::from(code)), None),
                ChildExit::Signal { number, .. } => (None, Some(number.to_string())),
                ChildExit::Unknown => (None, None),
            };
            self.view.terminal_exited(&news.terminal, code, signal.as_deref(), &self.calls, now);
        }
    }

    /// Publishes everything at once. For a few lines, not for a turn.
    pub(crate) async fn drain_now(&mut self) {
        self.end(&TurnEnding::Command);
        self.drain().await;
    }

    /// Publishes the rest after the end, unless the user interrupts meanwhile. The end of a turn that
    /// was interrupted before is shown, too, unless that would take long; a second interrupt cuts it.
    pub(crate) async fn drain(&mut self) -> TurnOutput {
        let stop = self.stop.clone();
        let shows_end = stop.is_asked() && self.view.unprinted() <= SHOWN_AFTER_INTERRUPT;
        let cut = async move { if shows_end { stop.forced().await } else { stop.asked().await } };
        tokio::pin!(cut);
        while let Some(due) = self.view.due() {
            // A timer that is due fires up to a millisecond late. An interrupt would win over it.
            if due <= Instant::now() {
                self.flush().await;
                continue;
            }
            tokio::select! {
                biased; // due output beats the interrupt
                () = tokio::time::sleep_until(due.into()) => self.flush().await,
                () = &mut cut => {
                    for show in self.view.cut_short(&self.calls) {
                        self.cell.show(show, &self.stop).await;
                    }
                    return TurnOutput::CutShort;
                }
            }
        }
        TurnOutput::All
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_started_the_kernel_is_known_by_its_process() {
        for (msg_id, expected) in [
            ("ab-cd_ef_17_3", true),
            ("ab-cd_ef_18_3", false),
            ("ab-cd_ef_17", false),
            ("other_17_3", false),
            ("6f1e2c1a-0b0a-4e4c-9a57-1d1f6f3f2b11", false),
        ] {
            assert_eq!(is_of_process(msg_id, "ab-cd_ef", 17), expected, "{msg_id}");
        }
    }
}
