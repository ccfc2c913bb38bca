//! Calls run in the order they arrive.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use super::{UserHome, text};

#[test]
fn calls_run_in_the_order_they_arrive() {
    let home = UserHome::new();
    let mut server = home.mcp(&[]);
    let mut reversed = Vec::new();
    for n in 0..200 {
        let eval = |code: String| ("eval", json!({ "code": code }));
        let answers = server.calls(&[eval(format!("v{n} = {n}")), eval(format!("v{n} + 1"))]);
        if !answers[1].starts_with(&format!("{}\n", n + 1)) {
            reversed.push(answers);
        }
    }
    assert!(reversed.is_empty(), "{} of 200: {:?}", reversed.len(), reversed[0]);
}

#[test]
fn commands_run_in_the_order_they_arrive() {
    let home = UserHome::new();
    let mut server = home.mcp(&["--no-warm-up"]);
    for n in 0..50 {
        let bash = |command: String| ("bash", json!({ "command": command }));
        // The second finds the variable of the first, so it starts when that is over.
        let answers = server.calls(&[bash(format!("export V={n}")), bash("echo $V".to_owned())]);
        assert_eq!(answers[1].lines().next(), Some(n.to_string().as_str()), "{answers:?}");
    }
}

#[test]
fn what_a_call_writes_is_there_for_the_next_one() {
    let home = UserHome::new();
    let mut server = home.mcp(&[]);
    for n in 0..50 {
        let name = format!("{n}.txt");
        let answers = server.calls(&[
            ("write", json!({ "path": name, "content": format!("text {n}\n") })),
            ("eval", json!({ "code": format!("open('{name}').read()") })),
            ("read", json!({ "path": name })),
        ]);
        assert!(answers[1].starts_with(&format!("'text {n}\\n'")), "{answers:?}");
        assert!(answers[2].starts_with(&format!("text {n}")), "{answers:?}");
    }
}

#[test]
fn a_long_call_does_not_hold_up_what_is_asked_after_it() {
    let home = UserHome::new();
    let mut server = home.mcp(&[]);
    let wait = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\n'over'";
    let params = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let ids = server.write(&[
        ("tools/call", params("eval", json!({ "code": wait, "timeout": 100 }))),
        ("tools/call", params("bash", json!({ "command": "while [ ! -e go ]; do sleep 0.01; done" }))),
        ("tools/call", params("kernel", json!({ "action": "list" }))),
        ("tools/call", params("eval", json!({ "code": "'another'", "session": "other" }))),
    ]);
    assert!(text(&server.answer(ids[2])).contains("busy"));
    assert!(text(&server.answer(ids[3])).starts_with("'another'"));
    std::fs::write(home.work().join("go"), "").unwrap();
    assert!(text(&server.answer(ids[0])).starts_with("'over'"));
    server.answer(ids[1]);
}

#[test]
fn calls_over_http_run_in_the_order_they_arrive() {
    let home = UserHome::new();
    let server = HttpMcp::start(&home);
    for n in 0..100 {
        let call = |id: u64, code: String| {
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": {"name": "eval", "arguments": {"code": code}}})
        };
        // The head of the answer says that the first has arrived; its cell need not have begun.
        let mut first = server.post(&call(2 * n, format!("v{n} = {n}")));
        let mut second = server.post(&call(2 * n + 1, format!("v{n} + 1")));
        let (first, second) = (first.answer(2 * n), second.answer(2 * n + 1));
        assert!(text(&second).starts_with(&format!("{}\n", n + 1)), "{first}\n{second}");
    }
}

/// A server that listens, and a client of it.
struct HttpMcp {
    child: Child,
    address: String,
    token: String,
    session: Option<String>,
}

/// An answer whose head has come.
struct HttpReply {
    from_server: BufReader<TcpStream>,
    session: Option<String>,
}

impl HttpMcp {
    fn start(home: &UserHome) -> Self {
        let mut command = home.command(&["mcp", "--http", "127.0.0.1:0"]);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let mut after = |prefix: &str| {
            let line = told.find(|line| line.starts_with(prefix)).unwrap();
            line.trim_start_matches(prefix).to_owned()
        };
        let address = after("listening on http://").trim_end_matches("/mcp").to_owned();
        let mut server = Self { child, address, token: after("token: "), session: None };
        let client = json!({"name": "order", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        let hello = json!({"jsonrpc": "2.0", "id": 1000, "method": "initialize", "params": params});
        let mut reply = server.post(&hello);
        server.session = reply.session.take();
        reply.answer(1000);
        server.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    /// Sends a message on a connection of its own, and waits until its answer begins.
    fn post(&self, message: &Value) -> HttpReply {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let body = message.to_string();
        let session = self.session.as_ref().map_or(String::new(), |id| format!("Mcp-Session-Id: {id}\r\n"));
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n{session}\
             Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut from_server = BufReader::new(stream);
        let mut session = None;
        loop {
            let mut line = String::new();
            from_server.read_line(&mut line).unwrap();
            let line = line.trim_end();
            if let Some(id) = line.to_lowercase().strip_prefix("mcp-session-id: ") {
                session = Some(id.to_owned());
            }
            if line.is_empty() {
                return HttpReply { from_server, session };
            }
        }
    }
}

impl HttpReply {
    /// The message with this id, from the stream of events.
    fn answer(&mut self, id: u64) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.from_server.read_line(&mut line).unwrap() > 0, "the stream ended");
            let Some(data) = line.strip_prefix("data: ") else { continue };
            let Ok(message) = serde_json::from_str::<Value>(data.trim_end()) else { continue };
            if message["id"] == id {
                return message;
            }
        }
    }
}

impl Drop for HttpMcp {
    fn drop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(self.child.id().try_into().unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        drop(self.child.wait()); // its kernels end with it
    }
}
