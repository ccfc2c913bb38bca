//! What an interrupt comes to.

use std::fs;

use cellwright_testkit::eventually_blocking;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::{McpPipe, UserHome, text};

/// Starts a cell that never ends by itself, and waits until it runs.
fn begin(home: &UserHome, server: &mut McpPipe, code: &str) -> u64 {
    let begun = home.work().join("begun");
    drop(fs::remove_file(&begun)); // of the cell before
    let code = format!("open('begun', 'w').close()\n{code}");
    let params = json!({ "name": "eval", "arguments": { "code": code, "timeout": 100 } });
    let id = server.write(&[("tools/call", params)])[0];
    eventually_blocking("the cell's start", || begun.exists());
    id
}

fn interrupt() -> Value {
    json!({ "action": "interrupt" })
}

#[test]
fn an_interrupt_reports_what_became_of_the_cell() {
    let home = UserHome::new();
    let mut server = home.mcp(&[]);
    let forever = "import time\nwhile True: time.sleep(0.01)";
    for (code, told) in [
        (forever.to_owned(), "interrupted the cell in session default; its variables are there"),
        // Caught once: the cell finishes as if nothing had happened.
        (
            "import time\ntry:\n    while True: time.sleep(0.01)\nexcept KeyboardInterrupt: pass".to_owned(),
            "the cell in session default ran to its end: it caught the interrupt",
        ),
    ] {
        let id = begin(&home, &mut server, &code);
        let said = server.call("kernel", interrupt());
        assert!(said.starts_with(told), "{said}");
        server.answer(id);
    }
    let shielded = "import os, signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n\
                    while not os.path.exists('go'): time.sleep(0.01)\nsignal.signal(signal.SIGINT, signal.default_int_handler)";
    let id = begin(&home, &mut server, shielded);
    let said = server.call("kernel", interrupt());
    assert!(said.contains("goes on: its process ignores SIGINT"), "{said}");
    fs::write(home.work().join("go"), "").unwrap();
    server.answer(id);
    let said = server.call("kernel", interrupt());
    assert_eq!(said, "nothing runs in session default");
}

#[test]
fn an_interrupt_continues_a_stopped_kernel_and_its_variables_stay() {
    let home = UserHome::new();
    let mut server = home.mcp(&[]);
    let pid: i32 = {
        let told = server.call("eval", json!({ "code": "import os\nx = 41\nos.getpid()" }));
        told.lines().next().unwrap().parse().unwrap()
    };
    let id = begin(&home, &mut server, "import time\nwhile True: time.sleep(0.01)");
    kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    let said = server.call("kernel", interrupt());
    assert!(said.starts_with("interrupted the cell"), "{said}");
    assert!(text(&server.answer(id)).contains("was interrupted"));
    assert!(server.call("eval", json!({ "code": "x + 1" })).starts_with("42\n"));
}

#[test]
fn handles_say_whether_they_wait_run_or_had_finished() {
    let home = UserHome::new();
    let mut server = home.mcp(&["--no-warm-up"]);
    let wait = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\n'first'";
    let started = server.call("eval", json!({ "code": wait, "background": true, "timeout": 100 }));
    assert!(started.contains(" runs in the background"), "{started}");
    let first = handle_in(&started);
    let queued = server.call("eval", json!({ "code": "'second'", "background": true }));
    assert!(queued.contains(&format!("is waiting for {first}")), "{queued}");
    let second = handle_in(&queued);
    let told = server.call("kernel", json!({ "action": "output", "handle": second }));
    assert!(told.contains(&format!("{second} is waiting for {first}")), "{told}");
    let listed = server.call("kernel", json!({ "action": "list" }));
    assert!(listed.contains(&format!("{second} in session default: waiting")), "{listed}");
    let told = server.call("kernel", json!({ "action": "interrupt", "handle": second }));
    assert_eq!(told, format!("{second} was waiting for its turn, and will not run"));
    fs::write(home.work().join("go"), "").unwrap();
    server.call("kernel", json!({ "action": "wait", "handle": first }));
    let told = server.call("kernel", json!({ "action": "interrupt", "handle": first }));
    assert!(told.starts_with(&format!("{first} had finished before")), "{told}");
}

#[test]
fn a_session_is_interrupted_and_restarted_from_the_command_line() {
    let home = UserHome::new();
    let code = "open('begun', 'w').close()\nx = 1\nimport time\nwhile True: time.sleep(0.01)";
    let run = home.command(&["run", "--session", "w", "-c", code]).spawn().unwrap();
    let begun = home.work().join("begun");
    eventually_blocking("the cell's start", || begun.exists());
    let (exit, told, _) = home.run(&["session", "interrupt", "w"]);
    assert_eq!((exit, told.as_str()), (0, "interrupted the cell in session w; its variables are there\n"));
    drop(run.wait_with_output());
    assert_eq!(home.run(&["run", "--session", "w", "-c", "x"]).1, "1\n");
    let (exit, told, _) = home.run(&["session", "restart", "w"]);
    assert_eq!((exit, told.as_str()), (0, "restarted w; its variables are gone\n"));
    assert_eq!(home.run(&["run", "--session", "w", "-c", "'x' in dir()"]).1, "False\n");
}

#[test]
fn a_restart_during_a_cell_does_not_claim_that_its_variables_stay() {
    let home = UserHome::new();
    let mut server = home.mcp(&[]);
    let id = begin(&home, &mut server, "import time\nwhile True: time.sleep(0.01)");
    server.call("kernel", json!({ "action": "restart" }));
    let told = text(&server.answer(id));
    assert!(told.contains("the variables are gone") && !told.contains("variables are there"), "{told}");
}

#[test]
fn a_kernel_that_ends_with_its_call_is_not_said_to_keep_its_variables() {
    let home = UserHome::new();
    let code = json!({ "code": "import time\ntime.sleep(100)", "timeout": 1 }).to_string();
    let (_, shown, told) = home.run(&["tool", "eval", &code]);
    assert!(shown.contains("took longer than 1 s"), "{shown}");
    assert!(!(shown + &told).contains("variables are there"));
    let (_, shown, told) = home.run(&["tool", "eval", &code, "--session", "w"]);
    assert!((shown + &told).contains("the kernel and its variables are there"));
    let (_, _, told) = home.run(&["run", "-c", "import sys\nsys.exit(3)"]);
    assert!(!told.contains("variables"), "{told}");
}

fn handle_in(reply: &str) -> String {
    super::background::handle_in(reply)
}
