//! What `cellwright run` makes of comm messages: events of `--json`, and nothing elsewhere.

use std::process::{Command, Stdio};

use cellwright_testkit::python;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::daemon::DaemonEnd;

const WIDGET: &str = "from comm import create_comm
comm = create_comm('greeting', comm_id='a', data={'hello': 1}, metadata={'version': '2'}, buffers=[b'\\0\\xff'])
print('text')
comm.send({}, buffers=[b'small', bytes(1 << 20), b'fits'])
comm.close()";

/// A user of whom nothing is known but a Python.
struct User {
    _daemon: DaemonEnd,
    home: TempDir,
}

impl User {
    fn new() -> Self {
        let home = tempfile::Builder::new().prefix("cw").tempdir().unwrap();
        Self { _daemon: DaemonEnd::of(home.path()), home }
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_cellwright"))
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.home.path())
            .env("XDG_RUNTIME_DIR", self.home.path())
            .env("CELLWRIGHT_PYTHON", python())
            .current_dir(self.home.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The comm messages among the events.
    fn comms(&self, arguments: &[&str]) -> Vec<Value> {
        let events = self.run(arguments);
        let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.filter(|event| event["event"] == "comm").collect()
    }
}

fn expected() -> Vec<Value> {
    vec![
        json!({"event": "comm", "cell": 0, "type": "open", "comm_id": "a", "target_name": "greeting", "data": {"hello": 1},
            "metadata": {"version": "2"}, "buffers": [{"bytes": 2, "base64": "AP8="}]}),
        json!({"event": "comm", "cell": 0, "type": "msg", "comm_id": "a", "data": {}, "metadata": {}, "buffers": [
            {"bytes": 5, "base64": "c21hbGw="}, {"bytes": 1 << 20, "base64": null}, {"bytes": 4, "base64": "Zml0cw=="}]}),
        json!({"event": "comm", "cell": 0, "type": "close", "comm_id": "a", "data": {}, "metadata": {}, "buffers": []}),
    ]
}

#[test]
fn comm_messages_are_events_for_programs_and_nothing_for_people() {
    let user = User::new();
    let run = ["run", "--kernel", "jupyter:python3", "-c", WIDGET];
    assert_eq!(user.run(&run), "text\n");
    assert_eq!(user.comms(&[&run[..], &["--json"]].concat()), expected());
}

#[test]
fn a_session_that_stays_passes_comms_to_clients_only_while_they_ask() {
    let user = User::new();
    let run = ["run", "--session", "s", "--kernel", "jupyter:python3", "-c"];
    assert_eq!(user.comms(&[&run[..], &[WIDGET, "--json"]].concat()), expected());
    assert_eq!(user.run(&[&run[..], &[WIDGET]].concat()), "text\n");
    assert_eq!(user.comms(&[&run[..], &["1", "--json"]].concat()), Vec::<Value>::new());
    user.run(&["session", "end", "s"]);
}

#[test]
fn a_notebook_holds_nothing_of_comms() {
    let user = User::new();
    let notebook = user.home.path().join("a.ipynb");
    let cell = json!({"cell_type": "code", "execution_count": null, "id": "a", "metadata": {}, "outputs": [], "source": WIDGET});
    let text = json!({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    std::fs::write(&notebook, text.to_string()).unwrap();
    let comms = user.comms(&["run", "--json", "--kernel", "jupyter:python3", notebook.to_str().unwrap()]);
    let kinds: Vec<_> = comms.iter().map(|comm| (&comm["type"], &comm["id"])).collect();
    assert_eq!(
        kinds,
        [(&json!("open"), &json!("a")), (&json!("msg"), &json!("a")), (&json!("close"), &json!("a"))]
    );
    let ran: Value = serde_json::from_slice(&std::fs::read(&notebook).unwrap()).unwrap();
    let outputs = &ran["cells"][0]["outputs"];
    assert_eq!(*outputs, json!([{"name": "stdout", "output_type": "stream", "text": ["text\n"]}]));
}
