//! What is remembered of sessions that ended.

use cellwright_testkit::end_of_blocking;
use serde_json::json;

use super::background::handle_in;
use super::{UserHome, ended};
use crate::daemon::DaemonEnd;

/// Ends the daemon as nobody could foresee.
fn kill_daemon(home: &UserHome) {
    let daemon = home.daemon().expect("a daemon runs");
    let pid = nix::unistd::Pid::from_raw(daemon.try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    end_of_blocking(daemon);
}

#[test]
fn a_session_whose_daemon_was_killed_says_that_its_variables_are_gone() {
    let home = UserHome::new();
    assert_eq!(home.run(&["run", "--session", "s", "-c", "x = 41"]).0, 0);
    kill_daemon(&home);
    let (code, shown, told) = home.run(&["run", "--session", "s", "-c", "'x' in dir()"]);
    assert_eq!((code, shown.as_str()), (0, "False\n"));
    assert!(told.contains("the session's earlier kernel is gone with its variables"), "{told}");
    // Once is enough.
    assert_eq!(home.run(&["run", "--session", "s", "-c", "1"]), (0, "1\n".into(), String::new()));
}

#[test]
fn a_session_that_was_idle_for_too_long_says_so_after_its_daemon_has_left() {
    let home = UserHome::new();
    let config = home.folder.path().join(".config/cellwright");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("config.toml"), "[session]\nnamed_idle = 0\nlinger = 1\n").unwrap();
    assert_eq!(home.run(&["run", "--session", "s", "-c", "x = 41"]).0, 0);
    if let Some(daemon) = home.daemon() {
        end_of_blocking(daemon);
    }
    let (_, shown, told) = home.run(&["run", "--session", "s", "-c", "'x' in dir()"]);
    assert_eq!(shown, "False\n");
    assert!(told.contains("it was idle for 0 s, and nobody used it"), "{told}");
}

#[test]
fn two_daemons_of_a_user_do_not_take_each_others_sessions_for_ended() {
    let home = UserHome::new();
    let _second = DaemonEnd::of(&home.folder.path().join("other"));
    let elsewhere = || {
        let mut command = home.command(&["run", "--session", "s", "-c", "x = 2"]);
        command.env("XDG_RUNTIME_DIR", home.folder.path().join("other"));
        ended(command)
    };
    assert_eq!(home.run(&["run", "--session", "s", "-c", "x = 1"]), (0, String::new(), String::new()));
    assert_eq!(elsewhere(), (0, String::new(), String::new()));
    assert_eq!(home.run(&["run", "--session", "s", "-c", "x"]), (0, "1\n".into(), String::new()));
    let mut end = home.command(&["session", "end", "s"]);
    end.env("XDG_RUNTIME_DIR", home.folder.path().join("other"));
    assert_eq!(ended(end).0, 0);
}

#[test]
fn handles_of_a_daemon_that_was_killed_say_so() {
    let home = UserHome::new();
    let mut server = home.mcp(&["--session", "w"]);
    let started = server.call("eval", json!({ "code": "import time\ntime.sleep(100)", "background": true }));
    let handle = handle_in(&started);
    kill_daemon(&home);
    let told = server.call("kernel", json!({ "action": "wait", "handle": handle }));
    assert!(told.starts_with(&format!("{handle} has ended with the session daemon that ran it")), "{told}");
    // A new one does not get the name of an old one.
    let again = server.call("eval", json!({ "code": "1", "background": true }));
    assert_ne!(handle_in(&again), handle);
}

#[test]
fn a_stopped_daemon_is_reported_and_nobody_waits_for_ever() {
    let home = UserHome::new();
    assert_eq!(home.run(&["run", "--session", "s", "-c", "1"]).0, 0);
    let daemon = home.daemon().unwrap();
    let pid = nix::unistd::Pid::from_raw(daemon.try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGSTOP).unwrap();
    let (code, _, told) = ended(home.command(&["run", "--session", "s", "-c", "1"]));
    assert!(code == 1 && told.contains("its process may be stopped (SIGSTOP)"), "{told}");
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGCONT).unwrap();
    assert_eq!(home.run(&["run", "--session", "s", "-c", "1"]).0, 0);
}
