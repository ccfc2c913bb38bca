//! `cellwright run` through the door users use.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use cellwright_testkit::Door;
use nix::pty::{OpenptyResult, openpty};
use rustix::termios::{LocalModes, tcgetattr};

use crate::daemon::DaemonEnd;

fn cellwright(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cellwright"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(arguments: &[&str]) -> (i32, String, String) {
    told(cellwright(arguments).output().unwrap())
}

fn told(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().expect("it was not killed"), text(output.stdout), text(output.stderr))
}

fn ok(stdout: &str) -> (i32, String, String) {
    (0, stdout.to_owned(), String::new())
}

#[test]
fn code_comes_from_an_argument_a_file_or_stdin() {
    assert_eq!(run(&["run", "-c", "print('a')\n1 + 1"]), ok("a\n2\n"));
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.py");
    std::fs::write(&script, "x = 20\n# %% second\nx + 1\n").unwrap();
    assert_eq!(run(&["run", script.to_str().unwrap()]), ok("21\n"));
    let mut child = cellwright(&["run", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"6 * 7").unwrap();
    assert_eq!(told(child.wait_with_output().unwrap()), ok("42\n"));
}

#[test]
fn the_folder_is_the_one_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let code = "import os, sys; print(os.getcwd()); print(sys.path[0] == os.getcwd())";
    let expected = format!("{}\nTrue\n", path.display());
    assert_eq!(run(&["run", "-c", code, "--cwd", path.to_str().unwrap()]), ok(&expected));
    let (code, _, stderr) = run(&["run", "-c", "1", "--cwd", "/nowhere"]);
    assert_eq!(
        (code, stderr.as_str()),
        (1, "error: /nowhere is not a folder: No such file or directory (os error 2)\n")
    );
}

#[test]
fn a_run_ends_as_python_does_files_written_and_last_words_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.txt");
    let code = format!(
        "import atexit, threading, time
f = open({file:?}, 'w'); f.write('data')
atexit.register(print, 'bye')
def work():
    threading.main_thread().join()
    print('thread')
threading.Thread(target=work).start()"
    );
    assert_eq!(run(&["run", "-c", &code]), ok("thread\nbye\n"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "data");

    let notebook = folder.path().join("a.ipynb");
    let cells = serde_json::json!([{"cell_type": "code", "execution_count": null, "id": "a", "metadata": {}, "outputs": [],
        "source": "f = open('nb.txt', 'w'); f.write('data')"}]);
    let text = serde_json::json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    std::fs::write(&notebook, text.to_string()).unwrap();
    assert_eq!(run(&["run", notebook.to_str().unwrap()]).0, 0);
    assert_eq!(std::fs::read_to_string(folder.path().join("nb.txt")).unwrap(), "data");
}

#[test]
fn a_failing_cell_ends_the_run_and_is_named() {
    let (code, stdout, stderr) = run(&["run", "-c", "print(1)\n# %% load\nint('x')\n# %%\nprint(3)"]);
    assert_eq!((code, stdout.as_str()), (1, "1\n"));
    let told = "ValueError: invalid literal for int() with base 10: 'x'\ncell 2 (load) raised ValueError; 1 later cell was not run\n";
    assert!(stderr.ends_with(told), "{stderr}");
}

#[test]
fn a_cell_that_takes_too_long_is_stopped() {
    let (code, stdout, stderr) =
        run(&["run", "--timeout", "0.3", "-c", "print('on', flush=True)\nwhile True: pass"]);
    assert_eq!((code, stdout.as_str()), (124, "on\n"));
    assert!(stderr.contains("the cell took longer than 0.3 s and was stopped"), "{stderr}");
}

#[test]
fn k8_a_kernel_death_is_reported_with_its_cause() {
    let (code, _, stderr) = run(&["run", "-c", "import os; os._exit(7)"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("exited with code 7"), "{stderr}");
    let (code, _, stderr) = run(&["run", "-c", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("SIGSEGV"), "{stderr}");
}

#[test]
fn a_script_ends_as_python_would_end_it() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.py");
    let run = |code: &str, arguments: &[&str]| {
        std::fs::write(&script, code).unwrap();
        run(&[&["run", script.to_str().unwrap()], arguments].concat())
    };
    let main = "import sys\ndef main(): return 0\nsys.exit(main())\n# %% never\nprint('never')\n";
    assert_eq!(run(main, &[]), ok(""));
    assert_eq!(run("raise SystemExit", &[]), ok(""));
    assert_eq!(run("import sys; sys.exit(3)", &[]), (3, String::new(), String::new()));
    assert_eq!(run("exit('enough')", &[]), (1, String::new(), "enough\n".to_owned()));
    assert_eq!(run("import sys; print(sys.argv[1:])", &["a", "--", "--b"]), ok("['a', '--b']\n"));
    let (code, _, stderr) = run("x = 1\n# %% two\n\nx / 0\n", &[]);
    assert_eq!(code, 1);
    assert!(stderr.contains("File \"<script.py, cell 2>\", line 4, in <module>\n    x / 0\n"), "{stderr}");
    let (_, _, stderr) = run("x = 1\n# %% two\n%time x\nx / 0\n", &[]);
    assert!(stderr.contains("line 4"), "{stderr}");
}

#[test]
fn a_script_imports_files_beside_it_from_every_folder() {
    let folder = tempfile::tempdir().unwrap();
    let beside = folder.path().join("beside");
    std::fs::create_dir(&beside).unwrap();
    std::fs::write(beside.join("helper.py"), "value = 41").unwrap();
    let script = beside.join("script.py");
    std::fs::write(&script, "import helper\nprint(helper.value + 1)").unwrap();
    let link = folder.path().join("link.py");
    std::os::unix::fs::symlink(&script, &link).unwrap();
    for file in [script, link] {
        let output = cellwright(&["run", file.to_str().unwrap()]).current_dir("/").output().unwrap();
        assert_eq!(told(output), ok("42\n"));
    }
}

#[test]
fn json_has_every_event() {
    let (code, stdout, _) =
        run(&["run", "--json", "-c", "print('hi')\nimport sys; print('err', file=sys.stderr)\n{'a': 1}"]);
    assert_eq!(code, 0);
    let events: Vec<serde_json::Value> =
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["kernel_started", "cell_started", "output", "output", "output", "cell_finished", "finished"]
    );
    assert_eq!((&events[2]["text"], &events[3]["name"]), (&"hi\n".into(), &"stderr".into()));
    assert_eq!((&events[4]["data"]["text/plain"], &events[5]["status"]), (&"{'a': 1}".into(), &"ok".into()));
}

/// Starts a run and waits until its cell says so.
fn started(arguments: &[&str]) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = cellwright(arguments).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "started\n");
    (child, stdout)
}

fn interrupt(child: &Child) {
    let pid = nix::unistd::Pid::from_raw(child.id().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::SIGINT).unwrap();
}

#[test]
fn ctrl_c_interrupts_the_cell() {
    let (mut child, _stdout) =
        started(&["run", "-c", "print('started', flush=True)\nimport time; time.sleep(600)"]);
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_second_ctrl_c_stops_a_cell_that_will_not_be_interrupted() {
    let code = "import time\nwhile True:\n  try:\n    print('started', flush=True)\n    time.sleep(600)\n  except BaseException:\n    print('no', flush=True)";
    let (mut child, mut stdout) = started(&["run", "-c", code]);
    interrupt(&child);
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "no\n");
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// A run with a person at its terminal.
struct Seat {
    child: Child,
    terminal: File,
    /// The run's side of it; its modes go with the last who holds it.
    line: OwnedFd,
    seen: String,
}

impl Seat {
    fn take(arguments: &[&str]) -> Self {
        let OpenptyResult { master, slave } = openpty(None, None).unwrap();
        let theirs = || Stdio::from(slave.try_clone().unwrap());
        let mut command = cellwright(arguments);
        let child = command.stdin(theirs()).stdout(theirs()).stderr(theirs()).spawn().unwrap();
        Self { child, terminal: master.into(), line: slave, seen: String::new() }
    }

    /// Looks until the terminal shows `text`.
    fn sees(&mut self, text: &str) {
        let mut chunk = [0; 1024];
        while !self.seen.contains(text) {
            let read =
                self.terminal.read(&mut chunk).unwrap_or_else(|error| panic!("{error}: {}", self.seen));
            self.seen.push_str(&String::from_utf8_lossy(&chunk[..read]));
        }
    }

    fn shows_typing(&self) -> bool {
        tcgetattr(&self.line).unwrap().local_modes.contains(LocalModes::ECHO)
    }
}

#[test]
fn a_password_is_not_shown_and_a_name_is() {
    let code = "import getpass\nname = input('name? ')\nprint(len(getpass.getpass('password? ')), name)";
    let mut seat = Seat::take(&["run", "-c", code]);
    seat.sees("name? ");
    seat.terminal.write_all(b"Ada\n").unwrap();
    seat.sees("password? ");
    assert!(!seat.shows_typing());
    seat.terminal.write_all(b"hunter2\n").unwrap();
    seat.sees("7 Ada");
    assert_eq!(seat.child.wait().unwrap().code(), Some(0));
    assert!(seat.seen.contains("name? Ada") && !seat.seen.contains("hunter"), "{}", seat.seen);
    assert!(seat.shows_typing());
}

#[test]
fn ctrl_c_while_the_kernel_starts_exits_with_130_and_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let python = folder.path().join("python3");
    std::fs::write(&python, "#!/bin/sh\necho > \"$0.started\"\nsleep 600\n").unwrap();
    std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
    let child = cellwright(&["run", "--python", python.to_str().unwrap(), "-c", "1"]).spawn().unwrap();
    let started = folder.path().join("python3.started");
    cellwright_testkit::eventually_blocking("the start", || started.exists());
    let process = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    let (exit, _, stderr) = told(child.wait_with_output().unwrap());
    assert_eq!((exit, stderr.as_str()), (130, "interrupted before the code ran\n"));
}

#[test]
fn a_kernel_that_runs_is_joined_by_its_id_or_as_the_newest() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kernel-abc1.json");
    let mut kernel = Command::new(cellwright_testkit::python())
        .args(["-m", "ipykernel_launcher", "-f", file.to_str().unwrap()])
        .env("JPY_PARENT_PID", std::process::id().to_string()) // it ends with us
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let connection = || serde_json::from_slice::<serde_json::Value>(&std::fs::read(&file).ok()?).ok();
    cellwright_testkit::eventually_blocking("the kernel's file", || connection().is_some());
    // A kernel that was killed left a newer file, with a port that nobody listens on.
    let mut gone = connection().unwrap();
    gone["shell_port"] = cellwright_testkit::servers::free_port().into();
    std::fs::write(folder.path().join("kernel-abd2.json"), gone.to_string()).unwrap();
    let join = |name: &str, code: &str| {
        let mut command = cellwright(&["run", "--kernel", &format!("existing:{name}"), "-c", code]);
        told(command.env("JUPYTER_RUNTIME_DIR", folder.path()).output().unwrap())
    };
    assert_eq!(join("abc1", "x = 5"), ok(""));
    assert_eq!(join("ab", "x + 1"), ok("6\n"));
    assert_eq!(join("newest", "x + 2"), ok("7\n"));
    let (exit, _, stderr) = join("abd2", "x");
    assert!(
        exit == 1 && stderr.contains("`existing:abd2` is neither a file nor a kernel that runs"),
        "{stderr}"
    );
    kernel.kill().unwrap();
    kernel.wait().unwrap();
}

#[test]
fn code_that_swallows_its_timeout_ends_with_124() {
    let code = "import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: print('swallowed')";
    let (exit, stdout, stderr) = run(&["run", "--timeout", "0.5", "-c", code]);
    assert_eq!((exit, stdout.as_str()), (124, "swallowed\n"), "{stderr}");
    assert!(stderr.contains("took longer than 0.5 s"), "{stderr}");
    assert!(stderr.contains("the interrupt did not end the cell: it ran to its end"), "{stderr}");
}

#[test]
fn ctrl_c_and_the_timeout_end_a_cell_that_waits_for_a_line() {
    for (arguments, code) in [(&["run"] as &[&str], 130), (&["run", "--timeout", "0.5"], 124)] {
        let ask = ["-c", "import getpass; getpass.getpass('password? ')"];
        let mut seat = Seat::take(&[arguments, &ask].concat());
        seat.sees("password? ");
        if code == 130 {
            interrupt(&seat.child);
        }
        assert_eq!(seat.child.wait().unwrap().code(), Some(code));
        assert!(seat.shows_typing(), "the terminal is as it was");
    }
}

#[test]
fn files_that_python_runs_are_run() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.py");
    for (bytes, printed) in [
        (b"" as &[u8], ""),
        (b"# nothing\n", ""),
        (b"\xef\xbb\xbfprint(1)", "1\n"),
        (b"# -*- coding: latin-1 -*-\nprint(len('\xe9'))\n", "1\n"),
        (b"import os, sys; print(os.path.basename(__file__), sys.argv == [__file__])", "script.py True\n"),
        (b"a = '''\n# %% text\n'''\nprint(len(a))\n", "11\n"),
    ] {
        std::fs::write(&script, bytes).unwrap();
        assert_eq!(run(&["run", script.to_str().unwrap()]), ok(printed), "{bytes:?}");
    }
}

#[test]
fn a_run_whose_output_nobody_reads_has_not_succeeded() {
    let mut child = cellwright(&["run", "-c", "while True: print('y' * 1000)"]).spawn().unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    drop(stdout);
    let (code, _, stderr) = told(child.wait_with_output().unwrap());
    assert_eq!((code, stderr.as_str()), (1, ""));
}

#[test]
fn a_timeout_is_a_number_of_seconds() {
    assert_eq!(run(&["run", "--timeout", "1e30", "-c", "1"]), ok("1\n"));
    let (code, _, stderr) = run(&["run", "--timeout=-1", "-c", "1"]);
    assert_eq!((code, stderr.as_str()), (1, "error: --timeout takes a number of seconds, not `-1`\n"));
}

#[test]
fn what_was_shown_whole_is_not_stored_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = cellwright(&["run", "-c", "print('x' * 1000000)"]);
    let (code, stdout, _) = told(command.env("CELLWRIGHT_ARTIFACTS_DIR", folder.path()).output().unwrap());
    assert_eq!((code, stdout.len()), (0, 1_000_001));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn messages_can_be_traced_on_stderr() {
    for name in ["CELLWRIGHT_IPC_TRACE", "PI_PYTHON_IPC_TRACE"] {
        let (code, stdout, stderr) =
            told(cellwright(&["run", "-c", "1 + 1"]).env(name, "1").output().unwrap());
        assert_eq!((code, stdout.as_str()), (0, "2\n"));
        assert!(
            stderr.contains(r#"> {"type":"execute""#) && stderr.contains(r#"< {"type":"done""#),
            "{stderr}"
        );
    }
}

#[test]
fn a_home_that_can_not_be_written_does_not_stop_code() {
    let folder = tempfile::tempdir().unwrap();
    // Root may write anything, so it is a file that is in the way.
    let home = folder.path().join("home");
    std::fs::write(&home, "").unwrap();
    let command = |home: Option<&Path>, temporary: &Path| {
        let mut command = cellwright(&["run", "-c", "6 * 7"]);
        for name in ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "HOME"] {
            command.env_remove(name);
        }
        command.envs(home.map(|home| ("HOME", home))).env("TMPDIR", temporary);
        told(command.output().unwrap())
    };
    assert_eq!(command(Some(&home), folder.path()), ok("42\n"));
    let (code, _, stderr) = command(Some(&home), &home);
    assert_eq!(code, 1);
    assert!(stderr.contains("set XDG_CACHE_HOME to a folder that can be written"), "{stderr}");
}

#[test]
fn the_stages_of_the_start_are_shown_with_their_times() {
    for name in ["CELLWRIGHT_DEBUG_STARTUP", "PI_DEBUG_STARTUP"] {
        let (code, stdout, stderr) =
            told(cellwright(&["run", "-c", "1 + 1"]).env(name, "1").output().unwrap());
        assert_eq!((code, stdout.as_str()), (0, "2\n"));
        let stages: Vec<_> = stderr.lines().filter(|line| line.starts_with("[startup]")).collect();
        for stage in ["Python's process started", "Python answered", "kernel set up", "first cell started"] {
            assert!(stages.iter().any(|line| line.ends_with(stage) && line.contains(" ms ")), "{stderr}");
        }
    }
}

#[test]
fn a_named_interpreter_is_the_one_used() {
    let found = run(&["run", "--python", "python3", "-c", "import sys; print(sys.version_info[0])"]);
    assert_eq!(found, ok("3\n"));
    let (code, _, stderr) = run(&["run", "--python", "/no/such/python", "-c", "1"]);
    assert_eq!((code, stderr.lines().count()), (1, 1), "{stderr}");
    assert!(stderr.contains("/no/such/python"), "{stderr}");
}

#[test]
fn a_named_session_keeps_its_variables_between_calls() {
    let folder = tempfile::tempdir().unwrap();
    let _daemon = DaemonEnd::of(folder.path());
    let run = |arguments: &[&str]| {
        let mut command = cellwright(arguments);
        command.env("XDG_RUNTIME_DIR", folder.path()).env("XDG_CONFIG_HOME", folder.path().join("config"));
        command.env("XDG_STATE_HOME", folder.path().join("state"));
        told(command.output().unwrap())
    };
    assert_eq!(run(&["run", "--session", "a", "-c", "x = 41"]), ok(""));
    assert_eq!(run(&["run", "--session", "a", "-c", "x + 1"]), ok("42\n"));
    let (code, _, stderr) = run(&["run", "--session", "b", "-c", "x"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("NameError"), "{stderr}");
    assert_eq!(run(&["run", "--session", "a", "--reset", "-c", "'x' in dir()"]), ok("False\n"));
    let socket = folder.path().join("cellwright/sessions.sock");
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);

    let (_, listed, _) = run(&["session", "list"]);
    assert_eq!(listed.lines().map(|line| &line[..1]).collect::<Vec<_>>(), ["a", "b"], "{listed}");
    assert_eq!(run(&["session", "end", "a", "b"]), ok("ended a\nended b\n"));
    assert_eq!(run(&["session", "list"]), ok("no sessions\n"));
    let (code, _, stderr) = run(&["session", "end", "a"]);
    assert_eq!(
        (code, stderr.as_str()),
        (1, "error: there is no session `a`; `cellwright session list` lists them\n")
    );
}

#[test]
fn with_json_all_that_threads_showed_between_calls_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let _daemon = DaemonEnd::of(folder.path());
    let run = |code: &str| {
        let mut command = cellwright(&["run", "--session", "a", "--json", "-c", code]);
        command.env("XDG_RUNTIME_DIR", folder.path()).env("XDG_CONFIG_HOME", folder.path().join("config"));
        command.env("XDG_STATE_HOME", folder.path().join("state"));
        let (code, stdout, stderr) = told(command.current_dir(folder.path()).output().unwrap());
        assert_eq!(code, 0, "{stdout}{stderr}");
        let lines = stdout.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        lines.filter(|line| line["event"] == "late").collect::<Vec<_>>()
    };
    let later = |code: &str| {
        let door = Door::new();
        let thread = format!(
            "import sys, threading\ndef work(door={}):\n    door.recv(1)\n{code}\n    sys.stdout.flush()\n    door.send(b'.')\n",
            door.knock()
        );
        assert_eq!(
            run(&format!("{thread}thread = threading.Thread(target=work); thread.start()")),
            [] as [serde_json::Value; 0]
        );
        door.let_in_blocking();
        run("thread.join()")
    };
    let late = later(
        "    print('a'); display({'application/json': {'b': [1]}}, raw=True); print('c', file=sys.stderr)",
    );
    let brief: Vec<_> = late
        .iter()
        .map(|line| match line["type"].as_str().unwrap() {
            "stream" => format!("{}: {}", line["name"], line["text"]),
            "display" => line["data"]["application/json"].to_string(),
            other => other.to_owned(),
        })
        .collect();
    assert_eq!(brief, [r#""stdout": "a\n""#, r#"{"b":[1]}"#, r#""stderr": "c\n""#]);

    let late = later(
        "    print('x' * 999 + '\\n', end='')\n    for _ in range(1999): print('x' * 999)\n    display({'application/json': 2}, raw=True)",
    );
    let text: String = late.iter().filter_map(|line| line["text"].as_str()).collect();
    assert!(text.starts_with(&("x".repeat(999) + "\n").repeat(2000)), "{} bytes", text.len());
    assert_eq!(late.last().unwrap()["data"]["application/json"], 2, "{:?}", late.last());
}
