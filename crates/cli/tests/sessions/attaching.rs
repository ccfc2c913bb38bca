//! `cellwright attach`, `session logs` and `run --detach`: sessions that others see.

use std::fs;

use cellwright_testkit::Door;
use serde_json::json;

use super::UserHome;
use super::person::Person;

#[test]
fn a_person_watches_an_agent_interrupts_it_and_takes_over() {
    let (home, door) = (UserHome::new(), Door::new());
    let mut agent = home.mcp(&["--session", "work"]);
    agent.call("eval", json!({"code": "found = 40"}));
    let mut person = Person::at(&home, &["attach", "work"], &[]);
    person.sees("│ found = 40");
    person.sees("In [2]:");
    person.types("found + ");
    let busy = format!("print('working', flush=True); {}; import time; time.sleep(600)", door.knock());
    let params = json!({"name": "eval", "arguments": {"code": busy}});
    let id = agent.write(&[("tools/call", params)])[0];
    door.knocked_blocking();
    person.sees("│ print('working'");
    person.sees("  working");
    person.types("\x03");
    person.sees("KeyboardInterrupt");
    let answer = super::text(&agent.answer(id));
    assert!(answer.contains("interrupted"), "{answer}\n{}", person.screen());
    // What was being typed is there again, and runs in the agent's kernel.
    person.sees("In [3]: found +");
    person.types("2; ours = 7\r");
    person.enters(4, "found + 2");
    person.sees("\n42\nIn [");
    assert!(agent.call("eval", json!({"code": "ours"})).contains('7'));
    person.looks_until("the agent's cell", |screen| screen.contains("│ ours\n"));
    person.types("\x04");
    assert_eq!(person.leaves(), 0);
    assert!(agent.call("eval", json!({"code": "found, ours"})).contains("(40, 7)"));
}

#[test]
fn without_a_name_the_only_session_is_meant_and_several_are_listed() {
    let home = UserHome::new();
    let (code, _, stderr) = home.run(&["attach"]);
    assert!(code == 1 && stderr.contains("there is no session to attach to"), "{stderr}");
    assert_eq!(home.run(&["run", "--session", "one", "-c", "x = 1"]).0, 0);
    let mut person = Person::at(&home, &["attach"], &[]);
    person.enters(2, "x");
    person.sees("\n1\nIn [");
    assert_eq!(home.run(&["run", "--session", "two", "-c", "x = 2"]).0, 0);
    let (code, stdout, stderr) = home.run(&["attach"]);
    assert!(code == 1 && stderr.contains("there are 2 sessions; name one"), "{stderr}");
    assert!(stdout.contains("one  idle") && stdout.contains("two  idle"), "{stdout}");
    assert_eq!(home.run(&["session", "end", "--force", "one"]).0, 0);
    person.sees("the session has ended: it was shut down");
    assert_eq!(person.leaves(), 0);
}

#[test]
fn sessions_of_agents_are_there_if_the_user_shares_them() {
    let home = UserHome::new();
    let settings = home.folder.path().join(".config/cellwright");
    fs::create_dir_all(&settings).unwrap();
    let attach = || home.run(&["attach"]);
    let mut private = home.mcp(&[]);
    private.call("eval", json!({"code": "x = 'unseen'"}));
    assert!(attach().2.contains("there is no session to attach to"));
    fs::write(settings.join("config.toml"), "[session]\nshared = true\n").unwrap();
    let mut shared = home.mcp(&[]);
    shared.call("eval", json!({"code": "x = 'seen'"}));
    let mut person = Person::at(&home, &["attach"], &[]);
    person.sees("│ x = 'seen'");
    person.enters(2, "x");
    person.sees("\n'seen'\nIn [");
}

#[test]
fn detached_code_outlives_its_command_and_its_log_is_read() {
    let (home, reached, door) = (UserHome::new(), Door::new(), Door::new());
    let wait = format!("{}\ndoor = {}\ndoor.recv(1); door.send(b'.')", reached.knock(), door.knock());
    let script = format!("print('begun')\n# %% wait\n{wait}\nprint('over')\n");
    fs::write(home.work().join("train.py"), script).unwrap();
    let (code, stdout, stderr) = home.run(&["run", "--detach", "train.py"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.contains(" runs in session train.py\n  cellwright attach train.py\n"), "{stdout}");
    reached.knocked_blocking();
    let log = home.run(&["session", "logs", "train.py"]).1;
    assert!(log.contains("│ print('begun')\nbegun\nok") && !log.contains("\nover\n"), "{log}");
    door.let_in_blocking();
    // Another run of the file has a session of its own.
    let (_, stdout, _) = home.run(&["run", "--detach", "-c", "1 + 1"]);
    assert!(stdout.contains("in session run\n"), "{stdout}");
    cellwright_testkit::eventually_blocking("the end", || {
        home.run(&["session", "logs", "train.py"]).1.contains("\nover\n")
    });
}

#[test]
fn a_detached_notebook_can_be_attached_to_by_its_name_and_is_saved() {
    let (home, door) = (UserHome::new(), Door::new());
    let cell = format!("door = {}\ndoor.recv(1); door.send(b'.')\nprint('noted')", door.knock());
    let notebook = json!({
        "cells": [{
            "cell_type": "code", "execution_count": null, "id": "a", "metadata": {}, "outputs": [], "source": cell,
        }],
        "metadata": {}, "nbformat": 4, "nbformat_minor": 5,
    });
    let path = home.work().join("nb.ipynb");
    fs::write(&path, notebook.to_string()).unwrap();
    let (code, stdout, stderr) = home.run(&["run", "--detach", "nb.ipynb"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.contains("cellwright attach nb.ipynb"), "{stdout}");
    let session = || home.run(&["session", "list"]).1.contains("nb.ipynb  busy");
    cellwright_testkit::eventually_blocking("the notebook's session", session);
    let mut person = Person::at(&home, &["attach", "nb.ipynb"], &[]);
    person.sees("print('noted')");
    door.let_in_blocking();
    person.sees("  noted\n");
    person.types("\x04");
    cellwright_testkit::eventually_blocking("the result in the file", || {
        fs::read_to_string(&path).unwrap().contains("noted\\n")
    });
}

#[test]
fn what_an_agent_prints_does_nothing_to_the_terminal_of_who_watches() {
    let home = UserHome::new();
    let title = "print('\\x1b]0;owned\\x07\\x1b[31mred\\x1b[0m')";
    assert_eq!(home.run(&["run", "--session", "s", "-c", title]).0, 0);
    let mut person = Person::at(&home, &["attach", "s"], &[]);
    person.sees("In [2]:");
    let sent = String::from_utf8_lossy(&person.sent);
    assert!(!sent.contains("\x1b]0;") && sent.contains("31mred"), "{sent:?}");
}
