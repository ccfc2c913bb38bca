//! When a run saves, and in which order it does what a save needs.

use std::fs;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use super::{Desk, code};

/// The system calls of one thread that concern files, in order.
fn traced(desk: &Desk, arguments: &[&str]) -> Vec<Vec<String>> {
    const CALLS: &str = "trace=write,writev,pwrite64,ftruncate,fsync,fdatasync,rename,renameat,renameat2";
    let trace = desk.path().join("trace");
    let ran = Command::new("strace")
        .args(["-f", "-y", "-e", CALLS, "-o"])
        .arg(&trace)
        .arg(env!("CARGO_BIN_EXE_cellwright"))
        .arg("run")
        .args(arguments)
        .current_dir(desk.path())
        .stdin(Stdio::null())
        .output()
        .expect("strace is missing; install it with: apt-get install strace");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let trace = fs::read_to_string(trace).unwrap();
    let mut threads: Vec<(&str, Vec<String>)> = Vec::new();
    for line in trace.lines() {
        let (thread, call) = line.split_once(' ').unwrap();
        // A call that another thread interrupted has two lines; its first one tells all.
        let call = call.trim_start();
        if call.starts_with("<...") || call.starts_with("+++") || call.starts_with("---") {
            continue;
        }
        match threads.iter_mut().find(|(known, _)| *known == thread) {
            Some((_, calls)) => calls.push(call.to_owned()),
            None => threads.push((thread, vec![call.to_owned()])),
        }
    }
    threads.into_iter().map(|(_, calls)| calls).collect()
}

/// A power cut on xfs after a run that had succeeded left a notebook of 0 bytes.
#[test]
fn a_run_writes_then_syncs_then_renames_and_saves_at_most_once_a_second() {
    let cells: Vec<_> =
        (0..60).map(|number| code(&format!("c{number}"), &format!("print({number})"))).collect();
    let desk = Desk::with(&cells);
    let began = Instant::now();
    let threads = traced(&desk, &["a.ipynb", "-q"]);
    let took = began.elapsed();
    let folder = fs::canonicalize(desk.path()).unwrap();
    let mut saves = 0;
    for calls in threads {
        let mut synced: Option<&str> = None;
        let mut is_folder_due = false;
        for call in &calls {
            let (name, rest) = call.split_once('(').unwrap_or((call, ""));
            let file =
                rest.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map_or("", |(path, _)| path);
            match name {
                "write" | "writev" | "pwrite64" | "ftruncate" if synced == Some(file) => synced = None,
                "fsync" | "fdatasync" if file == folder.to_str().unwrap() => is_folder_due = false,
                "fsync" | "fdatasync" => synced = Some(file),
                "rename" | "renameat" | "renameat2" if rest.contains("/a.ipynb\"") => {
                    let temporary = synced.unwrap_or_else(|| panic!("not synced before {call}\n{calls:#?}"));
                    assert!(temporary.contains("/.cellwright-") && rest.contains(temporary), "{calls:#?}");
                    assert!(!is_folder_due, "{calls:#?}");
                    (saves, synced, is_folder_due) = (saves + 1, None, true);
                }
                _ => {}
            }
        }
        assert!(!is_folder_due, "the folder was not synced after the last rename\n{calls:#?}");
    }
    assert!(saves >= 1 && saves <= 2 + took.as_secs(), "{saves} saves in {took:?}");
    let expected: Vec<_> = (0..60).map(|number| format!("{number}\n")).collect();
    assert_eq!(desk.shown("a.ipynb"), expected);
}

/// A cell that fails, and the end of a run, save at once whatever was saved a moment ago.
#[test]
fn an_error_is_saved_at_once() {
    let cells =
        [code("a", "print('a')"), code("b", "print('b')"), code("c", "1 / 0"), code("d", "print('d')")];
    let desk = Desk::with(&cells);
    let (exit, stdout, stderr) = desk.run(&["a.ipynb", "--json"]);
    assert_eq!(exit, 1, "{stderr}");
    assert_eq!(desk.shown("a.ipynb"), ["a\n", "b\n", "ZeroDivisionError", ""]);
    let events: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let saved: Vec<_> = events
        .iter()
        .filter(|event| event["event"] == "saved")
        .flat_map(|event| event["cells"].as_array().unwrap().clone())
        .collect();
    assert_eq!(saved, [json!(0), json!(1), json!(2)]);
}

#[test]
fn when_we_are_killed_the_results_of_the_cells_before_are_in_the_file() {
    // Cells end one after the other within a second. The last one kills us once their results are saved, or after long.
    let kill = "import json, os, signal, time\nuntil = time.monotonic() + 60\nwhile time.monotonic() < until and not all(cell['outputs'] for cell in json.load(open('a.ipynb'))['cells'][:20]): time.sleep(0.01)\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(60)";
    let mut cells: Vec<_> =
        (0..20).map(|number| code(&format!("c{number}"), &format!("print({number})"))).collect();
    cells.push(code("kill", kill));
    let desk = Desk::with(&cells);
    assert_eq!(desk.command(&["a.ipynb", "-q"]).status().unwrap().code(), None);
    let expected: Vec<_> = (0..20).map(|number| format!("{number}\n")).chain([String::new()]).collect();
    assert_eq!(desk.shown("a.ipynb"), expected);
}

/// Runs a shell script, with our binary as `$0`, where it may mount file systems of its own.
fn with_mounts(desk: &Desk, script: &str) -> Output {
    let mut command = Command::new("unshare");
    if !nix::unistd::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command
        .args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_cellwright")])
        .current_dir(desk.path())
        .env("XDG_STATE_HOME", desk.path().join("state"))
        .stdin(Stdio::null())
        .output()
        .expect("unshare, of util-linux")
}

#[test]
fn a_notebook_that_is_mounted_as_a_single_file_runs_and_the_report_says_that_it_was_written_in_place() {
    let desk = Desk::with(&[code("a", "print('a')"), code("b", "print('b')")]);
    let script = "mount --bind a.ipynb a.ipynb && exec $0 run a.ipynb";
    let ran = with_mounts(&desk, script);
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{told}");
    assert!(told.contains("note: the notebook was written in place"), "{told}");
    assert_eq!(desk.shown("a.ipynb"), ["a\n", "b\n"]);
    assert_eq!(fs::read_dir(desk.path().join("state/cellwright/journal")).unwrap().count(), 0);
}

#[test]
fn outputs_that_a_run_replaced_are_given_back_by_undo() {
    let desk = Desk::with(&[code("a", "print(len(open('a.ipynb').read()) and 'one')")]);
    desk.run(&["a.ipynb", "-q"]);
    let before = fs::read_to_string(desk.path().join("a.ipynb")).unwrap();
    assert_eq!(desk.run(&["a.ipynb", "-q"]).0, 0);
    let other = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cellwright"));
        command.args(arguments).current_dir(desk.path()).env("XDG_STATE_HOME", desk.path().join("state"));
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert!(other(&["notebook", "history", "a.ipynb"]).ends_with("  ran code cell 0\n"));
    // A copy that holds the outputs takes nothing away.
    desk.run(&["a.ipynb", "-q", "-o", "copy.ipynb"]);
    assert_eq!(other(&["notebook", "history", "a.ipynb"]).lines().count(), 1);
    other(&["notebook", "undo", "a.ipynb"]);
    assert_eq!(fs::read_to_string(desk.path().join("a.ipynb")).unwrap(), before);
}

#[test]
fn outputs_that_a_full_disk_does_not_take_are_reported_at_once_and_saved_when_there_is_room() {
    let fill = "with open('filler', 'wb', buffering=0) as filler:
    try:
        while True: filler.write(bytes(512))
    except OSError: pass
print('x' * 20_000)";
    let wait = "import os, time\nwhile not os.path.exists('../go'): time.sleep(0.01)\nos.remove('filler')";
    let desk = Desk::with(&[code("a", fill), code("b", wait)]);
    fs::create_dir(desk.path().join("full")).unwrap();
    // The second cell makes room once the trouble has been reported.
    let script = "mount -t tmpfs -o size=128k tmpfs full && cp a.ipynb full/ &&
        $0 run --json full/a.ipynb | while read -r event; do
            printf '%s\\n' \"$event\"; case $event in *not_saved*) touch go;; esac
        done; cp full/a.ipynb b.ipynb";
    let ran = with_mounts(&desk, script);
    let events = String::from_utf8(ran.stdout).unwrap();
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let failed: Vec<_> = events.iter().filter(|event| event["event"] == "not_saved").collect();
    assert_eq!(failed.len(), 1, "{events:?}");
    assert!(failed[0]["why"].as_str().unwrap().contains("No space left"), "{failed:?}");
    assert_eq!(events.last().unwrap()["ok"], true, "{events:?}");
    assert_eq!(desk.shown("b.ipynb"), [format!("{}\n", "x".repeat(20_000)), String::new()]);
}
