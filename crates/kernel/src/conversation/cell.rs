//! The cell that was sent, from its start to its end.

use std::sync::Arc;

use cellwright_cell::{Exception, Output, OutputChange, Stream};
use cellwright_jupyter::MessageHeader;
use cellwright_jupyter::content::{ExecuteReply, ReplyStatus};
use serde_json::Value;

use super::Conversation;
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
    pub(super) fn new(id: CellId, sent: &str, silent: bool) -> Self {
        Self {
            id,
            sent: sent.to_owned(),
            silent,
            started: false,
            interrupted: false,
            raised: RaisedException::Nothing,
            ended: EndedHalf::Neither,
            input: None,
        }
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
        self.start();
        let Some(cell) = &mut self.cell else { return };
        let interrupted = cell.interrupted
            || reply.exception.as_ref().is_some_and(|raised| raised.ename == "KeyboardInterrupt");
        let verdict = match reply.status {
            ReplyStatus::Ok => Verdict::Ok,
            _ if interrupted => Verdict::Interrupted,
            ReplyStatus::Error | ReplyStatus::Aborted | ReplyStatus::Other(_) => Verdict::Error,
        };
        if let (Verdict::Error | Verdict::Interrupted, RaisedException::Nothing) = (verdict, &cell.raised) {
            let raised = match (reply.exception, &reply.status) {
                (Some(raised), _) => exception(raised.ename, raised.evalue, &raised.traceback),
                (None, ReplyStatus::Aborted) => {
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
        self.ready.push_back(Incoming::Replied { cell: id, verdict, count: reply.execution_count });
        self.end(EndedHalf::Replied);
    }

    /// Everything the running cell had to say has come.
    pub(super) fn take_idle(&mut self) {
        self.show_exception();
        self.ready.extend(self.cell.as_ref().map(|cell| Incoming::Idle(cell.id)));
        self.end(EndedHalf::Idle);
    }

    fn end(&mut self, half: EndedHalf) {
        if let Some(cell) = &mut self.cell {
            match cell.ended {
                EndedHalf::Neither => cell.ended = half,
                EndedHalf::Replied | EndedHalf::Idle => self.cell = None,
            }
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
                cell: Some(CurrentCell::new(CellId(1), "sent", false)),
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
