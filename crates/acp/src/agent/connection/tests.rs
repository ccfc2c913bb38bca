//! A connection as the agent sees it: lines in, lines out.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::v1::{Error, ErrorCode};
use futures_util::FutureExt as _;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::{AgentConnection, RequestError};
use crate::agent::event::AgentEvent;
use crate::agent::log::AgentLog;
use crate::agent::page_files::PageFiles;
use crate::agent::services::{AgentServices, AgentStreams, serve};
use crate::agent::terminals::AgentTerminals;
use crate::agent::wire::IncomingLines;
use crate::page::PageBridge;

/// Long enough for anything that happens at all.
const PATIENCE: Duration = Duration::from_secs(20);

/// Both ends of a connection.
struct TestConnection {
    connection: AgentConnection,
    events: mpsc::Receiver<AgentEvent>,
    stop: CancellationToken,
    /// What the agent writes to.
    output: pipe::Sender,
    /// What the agent reads.
    input: Lines<BufReader<pipe::Receiver>>,
    _serving: AbortOnDropHandle<()>,
}

impl TestConnection {
    fn open() -> Self {
        Self::with_room_for(64)
    }

    /// With room for this many events.
    fn with_room_for(events: usize) -> Self {
        let (events, taken) = mpsc::channel(events);
        let (stdin, input) = pipe::pipe().expect("a pipe");
        let (output, stdout) = pipe::pipe().expect("a pipe");
        let lines = IncomingLines::new(stdout, events.clone(), AgentLog::default());
        let served = Arc::new(AgentServices {
            events,
            terminals: AgentTerminals::default(),
            environment: Vec::new(),
            cwd: std::env::temp_dir(),
            notebooks: PageFiles::new(PageBridge::default()),
        });
        let (connection, outgoing) = AgentConnection::new();
        let stop = CancellationToken::new();
        let serving =
            serve(served, connection.clone(), outgoing, AgentStreams { stdin, lines }, stop.clone());
        Self {
            connection,
            events: taken,
            stop,
            output,
            input: BufReader::new(input).lines(),
            _serving: AbortOnDropHandle::new(tokio::spawn(async {
                drop(serving.await); // pipes that break are part of the tests
            })),
        }
    }

    /// Sends a request of ours.
    fn call(&self, method: &'static str) -> TestCall {
        let connection = self.connection.clone();
        AbortOnDropHandle::new(tokio::spawn(async move {
            let answer = connection.request(method, raw(&json!({}))).await;
            answer.map(|answer| serde_json::from_str(answer.get()).expect("it is JSON"))
        }))
    }

    /// The agent writes this line.
    async fn says(&mut self, line: &str) {
        self.output.write_all(format!("{line}\n").as_bytes()).await.expect("it is read");
    }

    /// The agent writes this message.
    async fn sends(&mut self, message: Value) {
        let mut line = json!({"jsonrpc": "2.0"});
        for (key, value) in message.as_object().expect("a message") {
            line[key] = value.clone();
        }
        self.says(&line.to_string()).await;
    }

    /// The agent reads a message.
    async fn hears(&mut self) -> Value {
        let line = timeout(PATIENCE, self.input.next_line()).await.expect("something is sent");
        serde_json::from_str(&line.expect("it can be read").expect("there is more")).expect("it is JSON")
    }

    async fn event(&mut self) -> AgentEvent {
        timeout(PATIENCE, self.events.recv()).await.expect("something happens").expect("there is more")
    }
}

type TestCall = AbortOnDropHandle<Result<Value, RequestError>>;

async fn answer(call: TestCall) -> Result<Value, RequestError> {
    timeout(PATIENCE, call).await.expect("it is answered").expect("no panic")
}

fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).expect("it is JSON")
}

fn chunk(text: &str) -> Value {
    let content = json!({"type": "text", "text": text});
    let update = json!({"sessionUpdate": "agent_message_chunk", "content": content});
    json!({"method": "session/update", "params": {"sessionId": "s", "update": update}})
}

fn permission(id: &str) -> Value {
    let params = json!({"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": []});
    json!({"id": id, "method": "session/request_permission", "params": params})
}

#[tokio::test]
async fn answers_find_their_requests_in_any_order() {
    let mut test = TestConnection::open();
    let first = test.call("first");
    let sent = test.hears().await;
    assert_eq!(sent, json!({"jsonrpc": "2.0", "id": 1, "method": "first", "params": {}}));
    let second = test.call("second");
    assert_eq!(test.hears().await["id"], 2);
    test.sends(json!({"id": 2, "error": {"code": -32000, "message": "no", "data": null}})).await;
    test.sends(json!({"id": 1, "result": null})).await;
    assert_eq!(answer(first).await.expect("a result"), Value::Null);
    let RequestError::Refused(error) = answer(second).await.expect_err("an error") else {
        panic!("it is open")
    };
    assert_eq!(error, Error::new(-32000, "no"));
}

#[tokio::test]
async fn answers_that_nobody_waits_for_are_ignored() {
    let mut test = TestConnection::open();
    let call = test.call("first");
    test.hears().await;
    for id in [json!(2), json!("1"), json!(null), json!(0)] {
        test.sends(json!({"id": id, "result": "for nobody"})).await;
    }
    for _ in 0..2 {
        test.sends(json!({"id": 1, "result": "the answer"})).await;
    }
    assert_eq!(answer(call).await.expect("a result"), "the answer");
}

#[tokio::test]
async fn malformed_lines_are_reported_to_the_agent_and_do_no_harm() {
    let mut test = TestConnection::open();
    let call = test.call("first");
    test.hears().await;
    let lines = [
        (r#"{"broken"#, -32700),
        ("{}", -32600),
        (r#"{"jsonrpc":"2.0"}"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"terminal/output"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"terminal/output"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"terminal/output","result":{}}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600),
    ];
    for (line, code) in lines {
        test.says(line).await;
        let heard = test.hears().await;
        assert_eq!((&heard["id"], &heard["error"]["code"]), (&Value::Null, &json!(code)), "{line}");
    }
    // A wrong answer gets no answer.
    test.says(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"both"}}"#).await;
    test.says(r#"{"jsonrpc":"2.0","result":{}}"#).await;
    test.says(r#"{"id":1,"result":{}}"#).await;
    test.says("[1, 2]").await;
    test.sends(json!({"id": 1, "error": "not an error object"})).await;
    let RequestError::Refused(error) = answer(call).await.expect_err("an error") else {
        panic!("it is open")
    };
    assert_eq!(error.code, ErrorCode::InternalError);
    assert_eq!(error.data, Some(json!("\"not an error object\"")));
}

#[tokio::test]
async fn requests_that_cannot_be_served_are_answered_under_their_own_id() {
    let mut test = TestConnection::open();
    for id in [json!(7), json!("seven"), json!(null), json!(-1)] {
        test.sends(json!({"id": id, "method": "no/such_method"})).await;
        let unknown = json!({"code": -32601, "message": "Method not found", "data": "no/such_method"});
        assert_eq!(test.hears().await, json!({"jsonrpc": "2.0", "id": id, "error": unknown}));
    }
    for params in [json!({"sessionId": 1}), json!([]), json!(null), json!(5)] {
        test.sends(json!({"id": "x", "method": "fs/read_text_file", "params": params})).await;
        let heard = test.hears().await;
        assert_eq!((&heard["id"], &heard["error"]["code"]), (&json!("x"), &json!(-32602)), "{params}");
    }
    let params = json!({"sessionId": "s", "terminalId": "none"});
    test.sends(json!({"id": 9, "method": "terminal/release", "params": params})).await;
    assert_eq!(test.hears().await["error"]["code"], -32002);
}

#[tokio::test]
async fn a_dropped_call_asks_the_agent_to_cancel_it() {
    let mut test = TestConnection::open();
    let call = test.call("first");
    test.hears().await;
    drop(call);
    let cancel = json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}});
    assert_eq!(test.hears().await, cancel);
    test.sends(json!({"id": 1, "result": "too late"})).await;
    // An answered request is not cancelled.
    let call = test.call("second");
    assert_eq!(test.hears().await["id"], 2);
    test.sends(json!({"id": 2, "result": "in time"})).await;
    assert_eq!(answer(call).await.expect("a result"), "in time");
    // Nor is a request that was never sent.
    drop(test.connection.request("never", raw(&json!({}))));
    test.connection.notify("last", &raw(&json!({})));
    assert_eq!(test.hears().await["method"], "last");
}

#[tokio::test]
async fn calls_fail_when_the_agent_ends() {
    let mut test = TestConnection::open();
    let calls = [test.call("first"), test.call("second")];
    test.hears().await;
    test.hears().await;
    test.sends(chunk("last words")).await;
    let TestConnection { connection, mut events, output, .. } = test;
    drop(output);
    for call in calls {
        assert!(matches!(answer(call).await, Err(RequestError::Closed)));
    }
    assert!(matches!(events.recv().await, Some(AgentEvent::Update(_))));
    let late = connection.request("late", raw(&json!({}))).await;
    assert!(matches!(late, Err(RequestError::Closed)));
}

#[tokio::test]
async fn the_last_lines_of_an_agent_that_closed_its_input_count() {
    let mut test = TestConnection::open();
    let TestConnection { connection, output, input, events, .. } = &mut test;
    drop(std::mem::replace(input, BufReader::new(pipe::pipe().expect("a pipe").1).lines()));
    let mut call = connection.request("unheard", raw(&json!({})));
    assert!((&mut call).now_or_never().is_none(), "it is sent, and waits");
    let said = format!("{}\n", json!({"jsonrpc": "2.0", "method": "_last/words"}));
    output.write_all(said.as_bytes()).await.expect("it is read");
    assert!(matches!(timeout(PATIENCE, events.recv()).await, Ok(Some(AgentEvent::Unknown(_)))));
    assert!(matches!(timeout(PATIENCE, call).await, Ok(Err(RequestError::Closed))));
}

#[tokio::test]
async fn events_are_delivered_before_the_answer_that_follows_them() {
    let mut test = TestConnection::with_room_for(1);
    let call = test.call("first");
    test.hears().await;
    test.sends(chunk("one")).await;
    test.sends(permission("p")).await;
    test.sends(chunk("two")).await;
    test.sends(json!({"method": "_vendor/event", "params": {"a": 1}})).await;
    test.sends(json!({"id": 1, "result": "done"})).await;
    let mut received = Vec::new();
    for number in 0..4 {
        // The events do not fit, so the agent waits, and its answer too, until the last event fits.
        assert!(number == 3 || !call.is_finished(), "{received:?}");
        received.push(match test.event().await {
            AgentEvent::Update(_) => "update",
            AgentEvent::Permission(_) => "permission",
            AgentEvent::Elicitation(_) => "elicitation",
            AgentEvent::Unknown(unknown) => {
                assert_eq!((unknown.method.as_str(), unknown.params), ("_vendor/event", json!({"a": 1})));
                "unknown"
            }
        });
    }
    assert_eq!(received, ["update", "permission", "update", "unknown"]);
    assert_eq!(answer(call).await.expect("a result"), "done");
}

#[tokio::test]
async fn a_dropped_question_is_answered() {
    let mut test = TestConnection::open();
    test.sends(permission("q")).await;
    drop(test.event().await);
    let cancelled = json!({"outcome": {"outcome": "cancelled"}});
    assert_eq!(test.hears().await, json!({"jsonrpc": "2.0", "id": "q", "result": cancelled}));
    let params =
        json!({"sessionId": "s", "mode": "url", "elicitationId": "e", "url": "https://a.b", "message": "m"});
    test.sends(json!({"id": "e", "method": "elicitation/create", "params": params})).await;
    drop(test.event().await);
    assert_eq!(test.hears().await["result"], json!({"action": "cancel"}));
}

#[tokio::test]
async fn a_file_that_waits_for_permission_blocks_nothing() {
    let mut test = TestConnection::open();
    let call = test.call("first");
    test.hears().await;
    let path = Path::new("/no/such/file");
    let params = json!({"sessionId": "s", "path": path});
    test.sends(json!({"id": "f", "method": "fs/read_text_file", "params": params})).await;
    let AgentEvent::Permission(question) = test.event().await else { panic!("it asks") };
    test.sends(json!({"id": 1, "result": "meanwhile"})).await;
    assert_eq!(answer(call).await.expect("a result"), "meanwhile");
    let allow = question.request.options[0].option_id.clone();
    question.choose(allow);
    let heard = test.hears().await;
    assert_eq!((&heard["id"], &heard["error"]["code"]), (&json!("f"), &json!(-32002)));
}

#[tokio::test]
async fn a_stopped_connection_flushes_its_lines_and_closes_the_input() {
    let mut test = TestConnection::open();
    let call = test.call("first");
    test.hears().await;
    for number in 0..1000 {
        test.connection.notify("count", &raw(&json!([number])));
    }
    test.stop.cancel();
    for number in 0..1000 {
        assert_eq!(test.hears().await["params"], json!([number]));
    }
    assert!(matches!(answer(call).await, Err(RequestError::Closed)));
    test.connection.notify("late", &raw(&json!({})));
    assert_eq!(test.input.next_line().await.expect("it can be read"), None);
}
