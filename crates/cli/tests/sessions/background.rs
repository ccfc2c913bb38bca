//! Background work in the daemon.

use std::fs;

use serde_json::{Value, json};

use super::UserHome;

/// A cell that is half done for a while.
fn work(n: usize) -> String {
    format!(
        "import time\nopen('begun-{n}', 'w').close()\nprint('begun')\ntime.sleep(0.05)\nopen('over-{n}', 'w').close()\n{n}"
    )
}

#[test]
fn background_work_in_the_daemon_is_never_stopped_half_way() {
    let home = UserHome::new();
    let mut server = home.mcp(&["--session", "w"]);
    for n in 0..30 {
        let started = server.call("eval", json!({ "code": work(n), "background": true }));
        let handle = handle_in(&started);
        let told = server.call("kernel", json!({ "action": "wait", "handle": handle }));
        assert!(told.contains(&format!("begun\n{n}\n")), "round {n}: {started}\n{told}");
        assert!(home.work().join(format!("over-{n}")).exists());
    }
}

#[test]
fn background_work_goes_on_when_its_command_has_ended() {
    let home = UserHome::new();
    let tool = |name: &str, arguments: &Value| {
        let arguments = arguments.to_string();
        let output = home.command(&["tool", name, &arguments, "--session", "w"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    };
    for n in 0..30 {
        let started = tool("eval", &json!({ "code": work(n), "background": true }));
        let told = tool("kernel", &json!({ "action": "wait", "handle": handle_in(&started) }));
        assert!(told.contains(&format!("begun\n{n}\n")), "round {n}: {started}\n{told}");
        assert!(home.work().join(format!("over-{n}")).exists());
    }
}

#[test]
fn a_client_that_is_killed_does_not_stop_the_cell_of_a_named_session() {
    let home = UserHome::new();
    let code = "import os, time\nopen('begun', 'w').close()\nwhile not os.path.exists('go'): time.sleep(0.01)\nx = 'over'";
    let mut run = home.command(&["run", "--session", "w", "-c", code]).spawn().unwrap();
    let begun = home.work().join("begun");
    cellwright_testkit::eventually_blocking("the cell's start", || begun.exists());
    run.kill().unwrap();
    run.wait().unwrap();
    fs::write(home.work().join("go"), "").unwrap();
    let output = home.command(&["run", "--session", "w", "-c", "x"]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "'over'\n");
}

pub(super) fn handle_in(reply: &str) -> String {
    let at = reply.find("py-").unwrap_or_else(|| panic!("no handle: {reply}"));
    let end = reply[at + 3..].find(|c: char| !c.is_ascii_digit()).unwrap_or(reply.len() - at - 3);
    reply[at..at + 3 + end].to_owned()
}
