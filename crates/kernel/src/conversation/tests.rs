//! What is made of messages in the order in which a broken connection brings them.

use cellwright_jupyter::websocket::{self, WebsocketFrame};
use serde_json::json;

use super::*;
use crate::transport::Verdict;

const CELL: CellId = CellId(1);

/// A client and a kernel made from ipykernel, with everything that was sent.
struct Wire {
    client: MessageSession,
    conversation: Conversation,
    sent: Vec<JupyterMessage>,
    number: u64,
}

impl Wire {
    fn new() -> Self {
        let mut wire = Self {
            client: MessageSession::new("client"),
            conversation: Conversation::default(),
            sent: Vec::new(),
            number: 0,
        };
        let request = KernelRequest::Execute {
            cell: CELL,
            source: CellSource::new("1"),
            allow_stdin: false,
            variables: None,
        };
        let (_, message) = wire.conversation.say(&wire.client, request).unwrap();
        wire.sent.push(message);
        wire
    }

    fn break_connection(&mut self) {
        let (_, probe) = self.conversation.restored(&self.client).expect("a cell runs");
        self.sent.push(probe);
    }

    /// Messages of the kernel that nobody gets.
    fn lose(&mut self, count: u64) {
        self.number += count;
    }

    /// A message of the kernel, in answer to the request at that place; what it means.
    fn hear(&mut self, request: usize, channel: &str, kind: &str, content: &Value) -> Vec<String> {
        self.number += 1;
        let id = format!("k-1_77_{}", self.number);
        self.hear_as(&id, request, channel, kind, content)
    }

    fn hear_as(
        &mut self,
        id: &str,
        request: usize,
        channel: &str,
        kind: &str,
        content: &Value,
    ) -> Vec<String> {
        let parent = &self.sent[request].header;
        let message = json!({
            "channel": channel, "content": content, "metadata": {},
            "header": {"msg_id": id, "msg_type": kind, "session": "k-1", "username": "", "version": "5.4"},
            "parent_header": {"msg_id": parent.msg_id(), "msg_type": "execute_request", "session": parent.session(), "username": "", "version": "5.4"},
        });
        let frame = WebsocketFrame::Text(message.to_string().into());
        let (channel, message) = websocket::decode_json(&frame).unwrap();
        self.conversation.hear(&self.client, Channel::from_name(&channel).unwrap(), &message);
        std::iter::from_fn(|| self.conversation.next()).map(shown).collect()
    }

    fn status(&mut self, request: usize, state: &str) -> Vec<String> {
        self.hear(request, "iopub", "status", &json!({"execution_state": state}))
    }

    fn reply(&mut self, request: usize) -> Vec<String> {
        self.hear(request, "shell", "execute_reply", &json!({"status": "ok", "execution_count": 3}))
    }

    fn print(&mut self, text: &str) -> Vec<String> {
        self.hear(0, "iopub", "stream", &json!({"name": "stdout", "text": text}))
    }
}

fn shown(incoming: Incoming) -> String {
    match incoming {
        Incoming::Started(CELL) => "started".to_owned(),
        Incoming::Event { cell: Some(CELL), event: Event::Warning(warning) } => warning,
        Incoming::Event {
            cell: Some(CELL),
            event: Event::Output(OutputChange::Added(Output::Text { text, .. })),
        } => text,
        Incoming::Replied { cell: CELL, verdict: Verdict::Unknown, .. } => "reply lost".to_owned(),
        Incoming::Replied { cell: CELL, verdict: Verdict::Ok, .. } => "ok".to_owned(),
        Incoming::Idle(CELL) => "idle".to_owned(),
        Incoming::Replied { cell: CELL, verdict, .. } => format!("{verdict:?}"),
        Incoming::Event { event: Event::Output(OutputChange::Added(Output::Error(raised))), .. } => {
            raised.name
        }
        other => format!("{other:?}"),
    }
}

const NOTHING: [&str; 0] = [];

#[test]
fn an_answer_that_overtakes_output_after_a_break_does_not_end_the_cell() {
    let mut wire = Wire::new();
    assert_eq!(wire.status(0, "busy"), NOTHING);
    assert_eq!(wire.print("a"), ["started", "a"]);
    wire.break_connection();
    assert_eq!(wire.reply(1), ["reply lost"]);
    assert_eq!(wire.print("b"), ["b"], "it is still the cell's");
    assert_eq!(wire.status(0, "idle"), ["idle"]);
    // It is over, and a late reply is nobody's.
    assert_eq!(wire.status(1, "idle"), NOTHING);
    assert_eq!(wire.reply(0), NOTHING);
}

#[test]
fn messages_that_a_break_swallowed_are_counted() {
    let mut wire = Wire::new();
    wire.status(0, "busy");
    wire.print("a");
    wire.break_connection();
    wire.lose(40); // among them are the reply and the idle
    assert_eq!(wire.status(1, "busy"), NOTHING);
    assert_eq!(wire.reply(1), ["reply lost"]);
    let told = "the connection broke and was made again: up to 40 messages of the kernel are missing";
    assert_eq!(wire.status(1, "idle"), [told, "idle"]);
}

#[test]
fn a_break_that_loses_nothing_is_not_worth_a_word() {
    let mut wire = Wire::new();
    wire.status(0, "busy");
    wire.break_connection();
    assert_eq!(wire.print("a"), ["started", "a"]);
    assert_eq!(wire.reply(0), ["ok"]);
    assert_eq!(wire.status(0, "idle"), ["idle"]);
}

#[test]
fn output_that_was_dropped_on_a_good_connection_is_counted() {
    let mut wire = Wire::new();
    wire.status(0, "busy");
    wire.print("a");
    wire.lose(1);
    wire.reply(0);
    let told = "up to 1 message of the kernel did not arrive: it or its server drops output that is not read fast enough";
    assert_eq!(wire.status(0, "idle"), [told, "idle"]);
}

#[test]
fn a_kernel_that_starts_again_is_another_one() {
    let mut wire = Wire::new();
    wire.status(0, "busy");
    assert_eq!(wire.conversation.gone(), None);
    wire.status(0, "starting");
    assert_eq!(wire.conversation.gone().as_deref(), Some(RESTARTED));
}

#[test]
fn an_abort_of_a_cell_that_had_begun_is_an_interrupt() {
    for status in ["abort", "aborted"] {
        let mut wire = Wire::new();
        wire.status(0, "busy");
        wire.print("begun");
        wire.hear(0, "shell", "execute_reply", &json!({"status": status}));
        assert_eq!(wire.status(0, "idle"), ["Interrupted", "idle"], "{status}");
        let mut wire = Wire::new();
        wire.status(0, "busy");
        assert_eq!(wire.hear(0, "shell", "execute_reply", &json!({"status": status})), ["started", "Error"]);
        assert_eq!(wire.status(0, "idle"), ["Aborted", "idle"], "{status}: it was not run");
    }
}

#[test]
fn the_end_of_input_is_a_character_only_for_kernels_that_take_it_for_one() {
    for (id, value) in [("k-1_77_9", "\u{4}"), ("b7c1", "")] {
        let mut wire = Wire::new();
        wire.hear_as(id, 0, "stdin", "input_request", &json!({"prompt": "name? ", "password": false}));
        let refused = KernelRequest::Input { cell: CELL, answer: InputAnswer::missing() };
        let (_, message) = wire.conversation.say(&wire.client, refused).unwrap();
        assert_eq!(message.parse::<InputReply>().unwrap().value, value);
        let warned =
            std::iter::from_fn(|| wire.conversation.next()).map(shown).any(|it| it.contains("empty line"));
        assert_eq!(warned, value.is_empty());
    }
}
