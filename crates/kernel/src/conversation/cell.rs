//! The cell that was sent, from its start to its end.

use std::sync::Arc;

use cellwright_cell::{Exception, Output, OutputChange, Stream};
use cellwright_jupyter::content::{ExecuteReply, ExecutionState, ReplyStatus};
use cellwright_jupyter::{JupyterMessage, MessageHeader};
use serde_json::Value;

use super::numbers::MessageNumbers;
use super::{Conversation, PendingRequest};
use crate::event::Event;
use crate::transport::{CellId, Incoming, Verdict};

/// The cell that was sent last and is not over.
pub(super) struct CurrentCell {
    pub(super) id: CellId,
    /// Its request's message id.
    pub(super) sent: String,
    pub(super) silent: bool,
    pub(super) started: bool,
    pub(super) interrupted: bool,
    pub(super) raised: RaisedException,
    pub(super) ended: EndedHalf,
    /// The question that waits for an answer.
    pub(super) input: Option<MessageHeader>,
    /// The ids of requests that are dealt with after it.
    pub(super) probes: Vec<String>,
    /// The numbers of the kernel's messages about it: after the first, up to the second.
    after: u64,
    until: Option<u64>,
}

/// What is known of a cell's exception.
pub(super) enum RaisedException {
    Nothing,
    /// Its reply has it, and nothing has shown it yet.
    Told(Exception),
    Shown,
}

/// Which half of a cell's end has come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EndedHalf {
    Neither,
    Replied,
    Idle,
}

impl CurrentCell {
    pub(super) fn new(id: CellId, sent: &str, silent: bool, after: u64) -> Self {
        Self {
            id,
            sent: sent.to_owned(),
            silent,
            started: false,
            interrupted: false,
            raised: RaisedException::Nothing,
            ended: EndedHalf::Neither,
            input: None,
            probes: Vec::new(),
            after,
            until: None,
        }
    }

    pub(super) fn is_probe(&self, request: &MessageHeader) -> bool {
        self.probes.iter().any(|probe| probe == request.msg_id())
    }
}

impl Conversation {
    /// The cell's code runs, for all that is known.
    pub(super) fn start(&mut self) {
        if let Some(cell) = self.cell.as_mut().filter(|cell| !cell.started) {
            cell.started = true;
            self.ready.push_back(Incoming::Started(cell.id));
        }
    }

    /// The reply to the running cell.
    pub(super) fn take_verdict(&mut self, reply: ExecuteReply) {
        // bash_kernel and IRkernel answer an interrupt so. A cell that the kernel did not begin was not run at all.
        let is_aborted = match &reply.status {
            ReplyStatus::Aborted => true,
            ReplyStatus::Other(status) => status == "abort",
            ReplyStatus::Ok | ReplyStatus::Error => false,
        };
        let aborts = is_aborted && self.cell.as_ref().is_some_and(|cell| cell.started);
        self.start();
        let Some(cell) = self.cell.as_mut().filter(|cell| cell.ended != EndedHalf::Replied) else { return };
        let interrupted = cell.interrupted
            || aborts
            || reply.exception.as_ref().is_some_and(|raised| raised.ename == "KeyboardInterrupt");
        let verdict = match reply.status {
            ReplyStatus::Ok => Verdict::Ok,
            _ if interrupted => Verdict::Interrupted,
            ReplyStatus::Error | ReplyStatus::Aborted | ReplyStatus::Other(_) => Verdict::Error,
        };
        if let (Verdict::Error | Verdict::Interrupted, RaisedException::Nothing) = (verdict, &cell.raised) {
            let raised = match (reply.exception, &reply.status) {
                (Some(raised), _) => exception(raised.ename, raised.evalue, &raised.traceback),
                (None, _) if aborts => {
                    exception("Interrupted".to_owned(), "the kernel stopped the cell".to_owned(), &[])
                }
                (None, _) if is_aborted => {
                    exception("Aborted".to_owned(), "the kernel did not run the cell".to_owned(), &[])
                }
                (None, _) => exception("Error".to_owned(), "the kernel did not say which".to_owned(), &[]),
            };
            cell.raised = RaisedException::Told(raised);
        }
        let payloads = reply.payload.iter().filter_map(shown_payload);
        self.ready.extend(payloads.map(|event| Incoming::Event { cell: Some(cell.id), event }));
        let id = cell.id;
        if cell.ended == EndedHalf::Idle {
            self.show_exception();
        }
        self.end(EndedHalf::Replied, Incoming::Replied { cell: id, verdict, count: reply.execution_count });
    }

    /// The kernel has answered what was asked after the running cell: the cell's own reply is lost, if it has not come.
    pub(super) fn take_lost_reply(&mut self) {
        if let Some(cell) = self.cell.as_ref().filter(|cell| cell.ended != EndedHalf::Replied) {
            let cell = cell.id;
            self.end(EndedHalf::Replied, Incoming::Replied { cell, verdict: Verdict::Unknown, count: None });
        }
    }

    /// Everything the running cell had to say has come.
    pub(super) fn take_idle(&mut self) {
        if let Some(cell) = self.cell.as_ref().filter(|cell| cell.ended != EndedHalf::Idle) {
            let id = cell.id;
            self.show_exception();
            self.end(EndedHalf::Idle, Incoming::Idle(id));
        }
    }

    /// Half of the cell's end has come. Before the second half, what is missing is reported.
    fn end(&mut self, half: EndedHalf, news: Incoming) {
        match self.cell.as_mut().map(|cell| (cell.ended, cell)) {
            Some((EndedHalf::Neither, cell)) => cell.ended = half,
            Some((EndedHalf::Replied | EndedHalf::Idle, _)) => {
                if let Some(warning) = self.cell.take().and_then(|cell| self.missing(&cell)) {
                    let (Incoming::Replied { cell, .. } | Incoming::Idle(cell)) = news else {
                        unreachable!("it is one half of a cell's end")
                    };
                    self.ready
                        .push_back(Incoming::Event { cell: Some(cell), event: Event::Warning(warning) });
                }
            }
            None => {}
        }
        self.ready.push_back(news);
    }

    /// Notes where the numbers of the cell's messages begin and end, and which were for other clients.
    pub(super) fn note_status(
        &mut self,
        state: &ExecutionState,
        message: &JupyterMessage,
        of_cell: bool,
        ours: bool,
    ) {
        let Some(number) = MessageNumbers::of(message) else { return };
        let is_idle = *state == ExecutionState::Idle;
        let is_answered =
            message.parent.as_ref().is_some_and(|parent| parent.msg_type().ends_with("_request"));
        if is_idle && !ours && is_answered {
            self.numbers.reply_elsewhere(number);
        }
        let Some(cell) = &mut self.cell else { return };
        let of_probe = message.parent.as_ref().is_some_and(|parent| cell.is_probe(parent));
        match state {
            // What came between two cells probably does not belong to this one.
            ExecutionState::Busy if of_cell => cell.after = cell.after.max(number.saturating_sub(1)),
            ExecutionState::Idle if of_cell || of_probe => drop(cell.until.get_or_insert(number)),
            ExecutionState::Busy
            | ExecutionState::Idle
            | ExecutionState::Starting
            | ExecutionState::Other(_) => {}
        }
    }

    /// What to report about missing messages at the end of a cell.
    fn missing(&mut self, cell: &CurrentCell) -> Option<String> {
        let broken_after = self.broken_after.take();
        let broken = "the connection broke and was made again";
        let Some(until) = cell.until.filter(|_| self.numbers.last() > 0) else {
            return broken_after.map(|_| format!("{broken}: some output may be missing"));
        };
        let after = broken_after.map_or(cell.after, |before| before.min(cell.after));
        let missing = self.numbers.missing(after, until);
        // Their answers come by another channel, and may be late.
        let expected = self.asked.values().filter(|asked| matches!(asked, PendingRequest::Interrupt)).count();
        let missing = missing.saturating_sub(u64::try_from(expected).unwrap_or(u64::MAX));
        let messages = if missing == 1 { "1 message".to_owned() } else { format!("{missing} messages") };
        match (missing, broken_after) {
            (0, _) => None,
            (_, Some(_)) => Some(format!("{broken}: up to {messages} of the kernel are missing")),
            (_, None) => Some(format!(
                "up to {messages} of the kernel did not arrive: it or its server drops output that is not read fast enough"
            )),
        }
    }

    /// Shows the exception that is only in the reply.
    fn show_exception(&mut self) {
        // Not before it has arrived: an idle that overtakes the reply must not count as having shown it.
        if let Some(cell) = &mut self.cell
            && let RaisedException::Told(_) = cell.raised
            && let RaisedException::Told(raised) = std::mem::replace(&mut cell.raised, RaisedException::Shown)
        {
            let event = Event::Output(OutputChange::Added(Output::Error(raised)));
            self.ready.push_back(Incoming::Event { cell: Some(cell.id), event });
        }
    }
}

/// An exception as Jupyter reports it: a traceback comes in blocks of lines.
pub(super) fn exception(name: String, message: String, traceback: &[String]) -> Exception {
    let traceback = traceback.iter().flat_map(|block| block.split('\n')).map(str::to_owned).collect();
    Exception { name, message, traceback, line: None }
}

/// What a frontend is asked for beside the outputs: to show help texts (`len?`) and the source that `%load` found, and to
/// take note of `quit()` in a kernel that is not prepared by us.
fn shown_payload(payload: &Value) -> Option<Event> {
    match payload.get("source")?.as_str()? {
        "page" => {
            let data = payload.get("data")?.as_object()?.clone();
            let content = Arc::new(data.into());
            Some(Event::Output(OutputChange::Added(Output::Display { content, display_id: None })))
        }
        "ask_exit" if payload.get("keepkernel") != Some(&Value::Bool(true)) => Some(Event::Warning(
            "the cell asked the kernel to end: one that heeds it is gone for everyone who used it".to_owned(),
        )),
        "set_next_input" => Some(Event::text(Stream::Stdout, payload.get("text")?.as_str()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ipykernel prints an exception group instead of sending it; only the reply has it.
    #[test]
    fn an_exception_that_is_only_in_the_reply_is_shown_in_either_order() {
        let reply = || -> ExecuteReply {
            let content = serde_json::json!({
                "status": "error", "execution_count": 1, "ename": "ExceptionGroup", "evalue": "many", "traceback": []
            });
            serde_json::from_value(content).unwrap()
        };
        for idle_first in [false, true] {
            let mut conversation = Conversation {
                cell: Some(CurrentCell::new(CellId(1), "sent", false, 0)),
                ..Conversation::default()
            };
            if idle_first {
                conversation.take_idle();
                conversation.take_verdict(reply());
            } else {
                conversation.take_verdict(reply());
                conversation.take_idle();
            }
            let shown = conversation.ready.iter().filter(|incoming| {
                matches!(incoming, Incoming::Event { event: Event::Output(OutputChange::Added(Output::Error(raised))), .. } if raised.name == "ExceptionGroup")
            });
            assert_eq!(shown.count(), 1, "idle first: {idle_first}");
        }
    }
}
