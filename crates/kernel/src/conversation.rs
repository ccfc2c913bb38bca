//! A kernel's side of the driver's requests in Jupyter's messages, over whichever wire they travel.
//!
//! Messages say which request caused them. What another client caused is that client's; what no cell of ours
//! that runs now caused is background output. Comms (widgets) are passed on to callers that want them, or else dropped.

mod cell;
mod comm;
mod numbers;
mod setup;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use cellwright_cell::{MimeBundle, Output, OutputChange, with_causes};
use cellwright_jupyter::content::{
    ClearOutput, CommClose, CommMsg, CommOpen, CompleteReply, CompleteRequest, DisplayData, ErrorOutput,
    ExecuteInput, ExecuteReply, ExecuteRequest, ExecuteResult, ExecutionState, InputReply, InputRequest,
    InspectReply, InspectRequest, InterruptReply, InterruptRequest, IsCompleteReply, IsCompleteRequest,
    KernelInfoReply, KernelInfoRequest, MessageContent, ReplyStatus, ShutdownReply, ShutdownRequest, Status,
    StreamOutput, UpdateDisplayData,
};
use cellwright_jupyter::{Channel, JsonText, JupyterMessage, MessageSession, StreamPieces};
use serde_json::Value;

pub(crate) use setup::prepare;

use crate::comm::Comms;
use crate::event::{Event, InputAnswer};
use crate::execution::CellSource;
use crate::request::{AskError, CodeCompleteness, Completions, KernelVariables, Question, Reply};
use crate::transport::{CellId, Incoming, KernelRequest, QuestionId, StopFailed, StopStep};
use cell::{CurrentCell, RaisedException};
use numbers::MessageNumbers;

/// What became of a kernel whose place another one has taken.
const RESTARTED: &str = "the kernel was restarted by its owner";

/// What is wrong with a message's content.
type UnreadableContent = Box<dyn std::error::Error>;

/// What was said and what it meant. Feed it messages, take what they mean.
#[derive(Default)]
pub(crate) struct Conversation {
    cell: Option<CurrentCell>,
    /// Requests that are not cells, by message id.
    asked: HashMap<String, PendingRequest>,
    ready: VecDeque<Incoming>,
    /// A text that is unescaped as it is taken: a print of 100 MB is never there twice.
    text: Option<(Option<CellId>, StreamPieces)>,
    comms: Comms,
    gone: Option<String>,
    /// The kernel has begun with a cell: from here on, one that starts is another one. (What comes by control may be answered
    /// before a kernel says that it starts.)
    has_reported: bool,
    numbers: MessageNumbers,
    /// The connection broke since a cell ended; the last number that came before.
    broken_after: Option<u64>,
}

#[derive(Clone, Copy)]
enum PendingRequest {
    Complete(QuestionId),
    Inspect(QuestionId),
    Completeness(QuestionId),
    Variables(QuestionId),
    Ping(QuestionId),
    Comms(QuestionId),
    /// A comm message, which is not answered: see [`Conversation::take_comm_idle`].
    Said(QuestionId),
    Interrupt,
}

impl Conversation {
    /// The message for a request. `None` if there is nothing to send. [`KernelRequest::Shutdown`] is up to the transport.
    pub(crate) fn say(
        &mut self,
        session: &MessageSession,
        request: KernelRequest,
    ) -> Option<(Channel, JupyterMessage)> {
        match request {
            KernelRequest::Execute { cell, source, allow_stdin, variables: _ } => {
                let CellSource { code, title: _, silent, store_history } = source;
                let message = session.message(&ExecuteRequest {
                    code,
                    silent,
                    store_history,
                    allow_stdin,
                    stop_on_error: false,
                    ..ExecuteRequest::default()
                });
                self.cell =
                    Some(CurrentCell::new(cell, message.header.msg_id(), silent, self.numbers.last()));
                Some((Channel::Shell, message))
            }
            KernelRequest::Input { cell, answer } => {
                let current = self.cell.as_mut().filter(|current| current.id == cell)?;
                let question = current.input.take()?;
                // ipykernel takes an end-of-transmission for the end of the file. To others it is a character like any other.
                let end = if MessageNumbers::split(question.msg_id()).is_some() { "\u{4}" } else { "" };
                if matches!(answer, InputAnswer::Refusal(_)) && end.is_empty() {
                    self.warn("the cell asked for input, which nobody gave: it got an empty line".to_owned());
                }
                let message = session.message(&input_reply(answer, end)).with_parent(&question);
                Some((Channel::Stdin, message))
            }
            KernelRequest::Ask { id, question } => {
                let (asked, message) = match question {
                    Question::Complete { code, cursor } => {
                        let content =
                            CompleteRequest { code, cursor_pos: cursor, ..CompleteRequest::default() };
                        (PendingRequest::Complete(id), session.message(&content))
                    }
                    Question::Inspect { code, cursor, detail } => {
                        let content = InspectRequest {
                            code,
                            cursor_pos: cursor,
                            detail_level: detail,
                            ..InspectRequest::default()
                        };
                        (PendingRequest::Inspect(id), session.message(&content))
                    }
                    Question::Variables { limit } => {
                        (PendingRequest::Variables(id), session.message(&setup::list_variables(limit)))
                    }
                    Question::Completeness { code } => {
                        let content = IsCompleteRequest { code, ..IsCompleteRequest::default() };
                        (PendingRequest::Completeness(id), session.message(&content))
                    }
                    Question::Ping => {
                        (PendingRequest::Ping(id), session.message(&KernelInfoRequest::default()))
                    }
                };
                Some((Channel::Shell, self.ask(asked, message)))
            }
            KernelRequest::Shutdown => Some((Channel::Control, session.message(&ShutdownRequest::default()))),
        }
    }

    /// The message that interrupts the running cell.
    pub(crate) fn interrupt(&mut self, session: &MessageSession) -> (Channel, JupyterMessage) {
        let message = session.message(&InterruptRequest::default());
        (Channel::Control, self.ask(PendingRequest::Interrupt, message))
    }

    /// A message that wakes a kernel whose event loop sleeps while a cell awaits something: ipykernel notes a signal and
    /// heeds it only when its loop turns.
    pub(crate) fn nudge(session: &MessageSession) -> (Channel, JupyterMessage) {
        (Channel::Shell, session.message(&KernelInfoRequest::default()))
    }

    /// Notes that the running cell is interrupted, by message or otherwise.
    pub(crate) fn interrupting(&mut self) {
        if let Some(cell) = &mut self.cell {
            cell.interrupted = true;
        }
    }

    /// The connection broke and is there again. Returns a request that the kernel deals with after the running cell, for the
    /// end of the cell may be lost: its reply comes after the cell's reply, and its idle after the cell's outputs. It is an
    /// empty cell, because some kernels answer other requests while a cell runs.
    pub(crate) fn restored(&mut self, session: &MessageSession) -> Option<(Channel, JupyterMessage)> {
        self.broken_after.get_or_insert(self.numbers.last());
        let cell = self.cell.as_mut()?;
        let message = session.message(&ExecuteRequest {
            silent: true,
            store_history: false,
            allow_stdin: false,
            stop_on_error: false,
            ..ExecuteRequest::default()
        });
        cell.probes.push(message.header.msg_id().to_owned());
        Some((Channel::Shell, message))
    }

    fn ask(&mut self, asked: PendingRequest, message: JupyterMessage) -> JupyterMessage {
        self.asked.insert(message.header.msg_id().to_owned(), asked);
        message
    }

    /// Something the session should know.
    pub(crate) fn warn(&mut self, warning: String) {
        let cell = self.cell.as_ref().map(|cell| cell.id);
        self.ready.push_back(Incoming::Event { cell, event: Event::Warning(warning) });
    }

    /// Events of no cell, to be taken first.
    pub(crate) fn begin_with(&mut self, events: Vec<Event>) {
        self.ready.extend(events.into_iter().map(|event| Incoming::Event { cell: None, event }));
    }

    /// A step of stopping failed after it had begun.
    pub(crate) fn stop_failed(&mut self, step: StopStep, why: String) {
        self.ready.push_back(Incoming::StopFailed(StopFailed { step, why }));
    }

    /// The kernel is gone. Whether it had begun with a cell it was sent cannot be known then: its last words
    /// may be lost. So it counts as begun.
    pub(crate) fn bury(&mut self) {
        self.start();
        self.cell = None;
    }

    /// The kernel said that it ends, or will be another one from here on.
    pub(crate) fn gone(&mut self) -> Option<String> {
        self.gone.take()
    }

    /// What comes next, in order; `None` when there is nothing until more is heard.
    pub(crate) fn next(&mut self) -> Option<Incoming> {
        if let Some(incoming) = self.ready.pop_front() {
            return Some(incoming);
        }
        let (cell, pieces) = self.text.as_mut()?;
        let text = pieces.next();
        let incoming =
            text.map(|text| Incoming::Event { cell: *cell, event: Event::text(pieces.name(), text) });
        self.text.take_if(|_| incoming.is_none());
        incoming
    }

    /// Takes in a message. To be called when [`Self::next`] has nothing left.
    pub(crate) fn hear(&mut self, session: &MessageSession, channel: Channel, message: &JupyterMessage) {
        if self.numbers.is_of_another_kernel(message) {
            self.gone = Some(RESTARTED.to_owned());
            return;
        }
        self.numbers.hear(message);
        if let Err(error) = self.understand(session, channel, message) {
            let kind = message.header.msg_type();
            self.warn(format!("a `{kind}` of the kernel could not be read: {}", with_causes(&*error)));
        }
    }

    fn understand(
        &mut self,
        session: &MessageSession,
        channel: Channel,
        message: &JupyterMessage,
    ) -> Result<(), UnreadableContent> {
        let parent = message.parent.as_ref();
        let ours = parent.is_none_or(|parent| parent.session() == session.id());
        let of_cell =
            parent.is_some_and(|parent| self.cell.as_ref().is_some_and(|cell| cell.sent == parent.msg_id()));
        let of_probe =
            parent.is_some_and(|parent| self.cell.as_ref().is_some_and(|cell| cell.is_probe(parent)));
        match channel {
            Channel::Iopub if message.header.msg_type() == Status::TYPE => {
                let state = message.parse::<Status>()?.execution_state;
                self.take_comm_idle(&state, message);
                self.note_status(&state, message, of_cell, ours);
                self.take_status(state, of_cell || of_probe);
            }
            // The last word of a kernel, to all of its clients.
            Channel::Iopub if message.header.msg_type() == ShutdownReply::TYPE => {
                let restarts = message.parse::<ShutdownReply>()?.restart;
                self.gone = Some(
                    if restarts { RESTARTED } else { "the kernel was shut down by its owner" }.to_owned(),
                );
            }
            // An empty cell shows nothing of its own.
            Channel::Iopub if of_probe => {}
            Channel::Iopub if ours => self.take_output(message, of_cell)?,
            // What others did in the same kernel is theirs to show.
            Channel::Iopub => {}
            Channel::Shell if of_cell => self.take_verdict(message.parse()?),
            Channel::Shell if of_probe => self.take_lost_reply(),
            Channel::Shell | Channel::Control => {
                if let Some(asked) = parent.and_then(|parent| self.asked.remove(parent.msg_id())) {
                    self.take_answer(asked, message)?;
                }
            }
            Channel::Stdin => {
                if of_cell && message.header.msg_type() == InputRequest::TYPE {
                    let InputRequest { prompt, password, .. } = message.parse()?;
                    self.start();
                    if let Some(cell) = &mut self.cell {
                        cell.input = Some(message.header.clone());
                        self.ready.push_back(Incoming::Input { cell: cell.id, prompt, password });
                    }
                }
            }
        }
        Ok(())
    }

    fn take_status(&mut self, state: ExecutionState, of_cell: bool) {
        let has_reported = self.has_reported;
        self.has_reported |= of_cell;
        match state {
            ExecutionState::Starting if has_reported => self.gone = Some(RESTARTED.to_owned()),
            ExecutionState::Busy if of_cell => {
                // One that is not silent says more exactly when it starts.
                if self.cell.as_ref().is_some_and(|cell| cell.silent) {
                    self.start();
                }
            }
            ExecutionState::Idle if of_cell => self.take_idle(),
            // A server's word about a kernel that died. The one it starts in its place knows nothing of ours.
            ExecutionState::Other(state)
                if matches!(state.as_str(), "restarting" | "autorestarting" | "dead") =>
            {
                self.gone = Some(match state.as_str() {
                    "dead" => "the kernel died".to_owned(),
                    _ => "the kernel died and its server started another".to_owned(),
                });
            }
            ExecutionState::Busy
            | ExecutionState::Idle
            | ExecutionState::Starting
            | ExecutionState::Other(_) => {}
        }
    }

    fn take_output(&mut self, message: &JupyterMessage, of_cell: bool) -> Result<(), UnreadableContent> {
        let change = match message.header.msg_type() {
            ExecuteInput::TYPE => {
                if of_cell {
                    self.start();
                }
                return Ok(());
            }
            StreamOutput::TYPE => {
                let pieces = StreamPieces::parse(&message.content)?;
                let cell = self.owner(of_cell);
                self.text = Some((cell, pieces));
                return Ok(());
            }
            DisplayData::TYPE => {
                let DisplayData { data, metadata, transient, .. } = message.parse()?;
                let content = Arc::new(MimeBundle { data, metadata });
                OutputChange::Added(Output::Display { content, display_id: transient.display_id })
            }
            UpdateDisplayData::TYPE => {
                let UpdateDisplayData { data, metadata, transient, .. } = message.parse()?;
                // Without a name there is nothing to update.
                let Some(display_id) = transient.display_id else { return Ok(()) };
                OutputChange::Updated { display_id, content: Arc::new(MimeBundle { data, metadata }) }
            }
            ExecuteResult::TYPE => {
                let ExecuteResult { execution_count, data, metadata, .. } = message.parse()?;
                OutputChange::Added(Output::Result {
                    content: Arc::new(MimeBundle { data, metadata }),
                    count: execution_count,
                })
            }
            ErrorOutput::TYPE => {
                let ErrorOutput { ename, evalue, traceback, .. } = message.parse()?;
                if let Some(cell) = self.cell.as_mut().filter(|_| of_cell) {
                    cell.raised = RaisedException::Shown;
                }
                OutputChange::Added(Output::Error(cell::exception(ename, evalue, &traceback)))
            }
            ClearOutput::TYPE => OutputChange::Cleared { wait: message.parse::<ClearOutput>()?.wait },
            CommOpen::TYPE | CommMsg::TYPE | CommClose::TYPE => return self.take_comm(message, of_cell),
            kind => {
                tracing::debug!(kind, "dropped");
                return Ok(());
            }
        };
        let cell = self.owner(of_cell);
        self.ready.push_back(Incoming::Event { cell, event: Event::Output(change) });
        Ok(())
    }

    /// The cell that the output belongs to. A cell that shows something has started, whether it said so or not.
    fn owner(&mut self, of_cell: bool) -> Option<CellId> {
        if !of_cell {
            return None;
        }
        self.start();
        self.cell.as_ref().map(|cell| cell.id)
    }

    fn take_answer(
        &mut self,
        asked: PendingRequest,
        message: &JupyterMessage,
    ) -> Result<(), UnreadableContent> {
        let (id, reply) = match asked {
            PendingRequest::Complete(id) => {
                let CompleteReply { status, matches, cursor_start, cursor_end, .. } = message.parse()?;
                let completions = Completions { matches, start: cursor_start, end: cursor_end };
                (id, done(&status).map(|()| Reply::Completions(completions)))
            }
            PendingRequest::Inspect(id) => {
                let InspectReply { status, found, data, metadata, .. } = message.parse()?;
                let content = found.then(|| MimeBundle { data, metadata });
                (id, done(&status).map(|()| Reply::Inspection(content)))
            }
            PendingRequest::Completeness(id) => {
                let IsCompleteReply { status, indent, .. } = message.parse()?;
                let completeness = match status.as_str() {
                    "complete" => CodeCompleteness::Complete,
                    "incomplete" => CodeCompleteness::Incomplete { indent },
                    "invalid" => CodeCompleteness::Invalid,
                    _ => CodeCompleteness::Unknown, // `unknown`, or an error of a kernel that knows no such request
                };
                (id, Ok(Reply::Completeness(completeness)))
            }
            PendingRequest::Variables(id) => {
                let reply: ExecuteReply = message.parse()?;
                let listed = setup::listed_variables(&reply.user_expressions);
                (id, listed.map(|(listed, total)| Reply::Variables(KernelVariables { listed, total })))
            }
            PendingRequest::Ping(id) => (id, message.parse::<KernelInfoReply>().map(|_| Ok(Reply::Pong))?),
            PendingRequest::Comms(id) => (id, comm::listed(message)?),
            PendingRequest::Said(id) => (id, Ok(Reply::Said)), // against the protocol, and clear enough
            PendingRequest::Interrupt => {
                let InterruptReply { status, .. } = message.parse()?;
                if let Some(why) = failure(&status) {
                    self.stop_failed(StopStep::Interrupt, why);
                }
                return Ok(());
            }
        };
        self.ready.push_back(Incoming::Answered { id, reply });
        Ok(())
    }
}

fn done(status: &ReplyStatus) -> Result<(), AskError> {
    failure(status).map_or(Ok(()), |why| Err(AskError::Failed(why)))
}

fn failure(status: &ReplyStatus) -> Option<String> {
    match status {
        ReplyStatus::Ok => None,
        ReplyStatus::Error => Some("it answered with an error".to_owned()),
        ReplyStatus::Aborted => Some("it did not try".to_owned()),
        ReplyStatus::Other(status) => Some(format!("it answered `{status}`")),
    }
}

/// The protocol has no word for the end of input.
fn input_reply(answer: InputAnswer, end: &str) -> InputReply {
    match answer {
        InputAnswer::Line(value) => InputReply { value, ..InputReply::default() },
        InputAnswer::Refusal(_) => {
            InputReply { status: ReplyStatus::Error, value: end.to_owned(), ..InputReply::default() }
        }
    }
}

/// A piece of text as a literal of Python.
fn literal(text: &str) -> String {
    // Every string of JSON is one of Python.
    Value::from(text).to_string()
}

/// A bundle's value, when it is JSON in text.
fn json_text(data: &Value) -> Option<JsonText> {
    data.get("text/plain")?
        .as_str()
        .map(|text| JsonText::from(bytes::Bytes::copy_from_slice(text.as_bytes())))
}
