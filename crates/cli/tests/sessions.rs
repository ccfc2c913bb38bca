//! Sessions as clients meet them: over MCP and on the command line, in this process and in the daemon.

mod attaching;
mod background;
mod interrupts;
mod memory;
mod order;
mod person;
mod settings;
mod typing;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::daemon::{DaemonEnd, daemon_of};

/// A user's home, with a daemon of its own that is ended with it.
struct UserHome {
    _daemon: DaemonEnd,
    folder: TempDir,
}

impl UserHome {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        Self { _daemon: DaemonEnd::of(&folder.path().join("run")), folder }
    }

    /// The folder that commands run in.
    fn work(&self) -> PathBuf {
        self.folder.path().join("work").canonicalize().unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        self.command_in(&self.work(), arguments)
    }

    fn command_in(&self, folder: &Path, arguments: &[&str]) -> Command {
        let home = self.folder.path();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cellwright"));
        command.args(arguments).current_dir(folder).stdin(Stdio::null());
        command.env("HOME", home).env("XDG_RUNTIME_DIR", home.join("run"));
        command.env("CELLWRIGHT_TRUSTED_FOLDERS", home);
        for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"] {
            command.env_remove(name);
        }
        command
    }

    /// Runs a command to its end: exit code, stdout, stderr.
    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        ended(self.command(arguments))
    }

    /// The daemon's process, if there is one.
    fn daemon(&self) -> Option<u32> {
        daemon_of(&self.folder.path().join("run"))
    }

    fn mcp(&self, arguments: &[&str]) -> McpPipe {
        McpPipe::start(self.command(&[&["mcp"], arguments].concat()))
    }
}

/// Exit code, stdout, stderr.
fn ended(mut command: Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// A server on stdin and stdout, to which requests can be written without waiting for replies.
struct McpPipe {
    child: Child,
    to_server: Option<ChildStdin>,
    from_server: BufReader<ChildStdout>,
    last_id: u64,
    /// Answers that came before they were asked for.
    early: Vec<Value>,
}

impl McpPipe {
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (to_server, from_server) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut pipe = Self { child, to_server, from_server, last_id: 0, early: Vec::new() };
        let client = json!({"name": "sessions", "version": "1"});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        let id = pipe.write(&[("initialize", hello)])[0];
        pipe.answer(id);
        pipe.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        pipe
    }

    fn send(&mut self, lines: &str) {
        let to_server = self.to_server.as_mut().unwrap();
        to_server.write_all(format!("{lines}\n").as_bytes()).unwrap();
    }

    /// Writes requests at once, and returns their ids.
    fn write(&mut self, requests: &[(&str, Value)]) -> Vec<u64> {
        let mut ids = Vec::new();
        let lines = requests.iter().map(|(method, params)| {
            self.last_id += 1;
            ids.push(self.last_id);
            json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}).to_string()
        });
        let lines: Vec<_> = lines.collect();
        self.send(&lines.join("\n"));
        ids
    }

    /// Writes calls of tools at once, and returns their texts.
    fn calls(&mut self, calls: &[(&str, Value)]) -> Vec<String> {
        let params = |(name, arguments): &(&str, Value)| json!({ "name": name, "arguments": arguments });
        let requests: Vec<_> = calls.iter().map(|call| ("tools/call", params(call))).collect();
        let ids = self.write(&requests);
        ids.into_iter().map(|id| text(&self.answer(id))).collect()
    }

    fn call(&mut self, tool: &str, arguments: Value) -> String {
        self.calls(&[(tool, arguments)]).remove(0)
    }

    fn answer(&mut self, id: u64) -> Value {
        if let Some(at) = self.early.iter().position(|message| message["id"] == id) {
            return self.early.remove(at);
        }
        loop {
            let mut line = String::new();
            assert!(self.from_server.read_line(&mut line).unwrap() > 0, "the server ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message.get("method").is_some() {
                continue; // a notification
            }
            if message["id"] == id {
                return message;
            }
            self.early.push(message);
        }
    }
}

impl Drop for McpPipe {
    fn drop(&mut self) {
        drop(self.to_server.take()); // the client leaves
        drop(self.child.wait()); // its kernels end with it
    }
}

/// What a model reads of an answer.
fn text(answer: &Value) -> String {
    let parts = answer["result"]["content"].as_array().unwrap_or_else(|| panic!("{answer}"));
    parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}
