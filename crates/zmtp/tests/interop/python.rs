//! A libzmq peer in a Python process, driven by commands.

use std::path::PathBuf;
use std::process::Stdio;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

pub(crate) struct Python {
    _child: Child,
    commands: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Python {
    pub(crate) fn start() -> Self {
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let python = std::env::var_os("CELLWRIGHT_TEST_PYTHON")
            .map_or_else(|| here.join("../../target/venv/bin/python"), PathBuf::from);
        assert!(python.exists(), "no Python at {}: run scripts/check.sh", python.display());
        let mut child = Command::new(python)
            .arg(here.join("tests/peer.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("Python starts");
        let commands = child.stdin.take().expect("stdin was piped");
        let answers = BufReader::new(child.stdout.take().expect("stdout was piped")).lines();
        Self { _child: child, commands, answers }
    }

    /// Sends a command without waiting for its answer, for calls that meet ours half-way.
    pub(crate) async fn begin(&mut self, command: &str, mut arguments: Value) {
        arguments["do"] = json!(command);
        self.commands.write_all(format!("{arguments}\n").as_bytes()).await.expect("the peer listens");
    }

    pub(crate) async fn answer(&mut self) -> Value {
        let line = self.answers.next_line().await.expect("readable").expect("the peer died, see its stderr");
        serde_json::from_str(&line).expect("an answer is JSON")
    }

    pub(crate) async fn call(&mut self, command: &str, arguments: Value) -> Value {
        self.begin(command, arguments).await;
        self.answer().await
    }

    /// Opens a libzmq socket called `name`.
    pub(crate) async fn open(&mut self, name: &str, kind: &str, rest: Value) -> String {
        let mut arguments = rest;
        arguments["name"] = json!(name);
        arguments["kind"] = json!(kind);
        self.call("open_socket", arguments).await["endpoint"].as_str().expect("an endpoint").to_owned()
    }

    pub(crate) async fn send(&mut self, name: &str, frames: &[&[u8]]) {
        let frames: Vec<_> = frames.iter().map(|frame| BASE64.encode(frame)).collect();
        self.call("send", json!({"name": name, "frames": frames})).await;
    }

    pub(crate) async fn recv(&mut self, name: &str) -> Vec<Vec<u8>> {
        let answer = self.call("recv", json!({"name": name})).await;
        let frames = answer["frames"].as_array().expect("a message came in time");
        frames.iter().map(|frame| BASE64.decode(frame.as_str().expect("text")).expect("base64")).collect()
    }
}
