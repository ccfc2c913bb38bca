//! Background work in the daemon.

use std::fs;
use std::process::Child;

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
    let mut run = home.command(&["run", "--session", "w", "-c", WAITS]).spawn().unwrap();
    begun(&home);
    run.kill().unwrap();
    run.wait().unwrap();
    fs::write(home.work().join("go"), "").unwrap();
    let output = home.command(&["run", "--session", "w", "-c", "x"]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "'over'\n");
}

#[test]
fn a_client_that_closes_its_input_or_is_ended_does_not_stop_the_cell_of_a_named_session() {
    let leaves: [fn(&UserHome); 3] = [
        |home| {
            let mut server = home.mcp(&["--session", "w"]);
            server.write(&[("tools/call", json!({ "name": "eval", "arguments": { "code": WAITS } }))]);
            begun(home);
            drop(server.to_server.take());
            server.child.wait().unwrap();
        },
        |home| {
            let mut server = home.mcp(&["--session", "w"]);
            server.write(&[("tools/call", json!({ "name": "eval", "arguments": { "code": WAITS } }))]);
            begun(home);
            terminate(&server.child);
            server.child.wait().unwrap();
        },
        |home| {
            let arguments = json!({ "code": WAITS }).to_string();
            let mut tool = home.command(&["tool", "eval", &arguments, "--session", "w"]).spawn().unwrap();
            begun(home);
            terminate(&tool);
            tool.wait().unwrap();
        },
    ];
    for leave in leaves {
        let home = UserHome::new();
        leave(&home);
        fs::write(home.work().join("go"), "").unwrap();
        let output = home.command(&["run", "--session", "w", "-c", "x"]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "'over'\n");
    }
}

/// A cell that ends when it may.
const WAITS: &str = "import os, time\nopen('begun', 'w').close()\nwhile not os.path.exists('go'): time.sleep(0.01)\nx = 'over'";

fn begun(home: &UserHome) {
    let begun = home.work().join("begun");
    cellwright_testkit::eventually_blocking("the cell's start", || begun.exists());
}

fn terminate(child: &Child) {
    let pid = nix::unistd::Pid::from_raw(child.id().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
}

pub(super) fn handle_in(reply: &str) -> String {
    let at = reply.find("py-").unwrap_or_else(|| panic!("no handle: {reply}"));
    let end = reply[at + 3..].find(|c: char| !c.is_ascii_digit()).unwrap_or(reply.len() - at - 3);
    reply[at..at + 3 + end].to_owned()
}
