//! An MCP server over stdio, and the little of the protocol that calls need.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::{Answer, BINARY};

pub(super) struct McpServer {
    child: Child,
    to_server: ChildStdin,
    from_server: BufReader<ChildStdout>,
    last_id: u64,
}

impl McpServer {
    pub(super) fn start(folder: &Path) -> Self {
        let mut command = Command::new(BINARY);
        command.arg("mcp").current_dir(folder).env("XDG_STATE_HOME", folder.join("state"));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (to_server, from_server) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut server = Self { child, to_server, from_server: BufReader::new(from_server), last_id: 0 };
        let client = json!({"name": "doors", "version": "1"});
        server.request(
            "initialize",
            &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}),
        );
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Answer {
        let answered = self.request("tools/call", &json!({ "name": tool, "arguments": arguments }));
        let result = &answered["result"];
        let parts = result["content"].as_array().unwrap_or_else(|| panic!("{answered}"));
        let texts: Vec<_> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
        Answer { is_error: result["isError"] == true, text: texts.join("\n") }
    }

    pub(super) fn request(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            let count = self.from_server.read_line(&mut line).unwrap();
            assert!(count > 0, "the server ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            // Notifications, such as that the tools have changed, are not answers.
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.to_server, "{message}").unwrap();
    }
}

impl Drop for McpServer {
    fn drop(&mut self) {
        drop(self.child.kill()); // it may be gone already
        drop(self.child.wait()); // the same
    }
}
