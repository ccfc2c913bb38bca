//! The tests' Python, and a process of it that follows commands.

use std::path::PathBuf;
use std::process::Stdio;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// The interpreter that has Jupyter installed.
pub(crate) fn interpreter() -> PathBuf {
    let ours = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/bin/python");
    let python = std::env::var_os("CELLWRIGHT_TEST_PYTHON").map_or(ours, PathBuf::from);
    assert!(python.exists(), "no Python at {}: run scripts/check.sh", python.display());
    python
}

/// Its `sys.prefix`.
pub(crate) fn prefix() -> PathBuf {
    let python = interpreter();
    let prefix = python.parent().and_then(|bin| bin.parent()).expect("PREFIX/bin/python");
    prefix.canonicalize().expect("it exists")
}

pub(crate) fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/wire").join(name)
}

pub(crate) struct Peer {
    _child: Child,
    commands: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Peer {
    pub(crate) fn start() -> Self {
        let mut child = Command::new(interpreter())
            .arg(script("peer.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("Python starts");
        let commands = child.stdin.take().expect("stdin was piped");
        let answers = BufReader::new(child.stdout.take().expect("stdout was piped")).lines();
        Self { _child: child, commands, answers }
    }

    pub(crate) async fn call(&mut self, command: &str, mut arguments: Value) -> Value {
        arguments["do"] = json!(command);
        self.commands.write_all(format!("{arguments}\n").as_bytes()).await.expect("the peer listens");
        let line = self.answers.next_line().await.expect("readable").expect("the peer died, see its stderr");
        serde_json::from_str(&line).expect("an answer is JSON")
    }
}

pub(crate) fn to_text(frames: &[Bytes]) -> Vec<String> {
    frames.iter().map(|frame| BASE64.encode(frame)).collect()
}

pub(crate) fn to_bytes(frame: &Value) -> Bytes {
    BASE64.decode(frame.as_str().expect("text")).expect("base64").into()
}
