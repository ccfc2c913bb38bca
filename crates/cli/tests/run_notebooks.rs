//! `cellwright run NOTEBOOK` through the door users use.

mod check;
mod choice;
mod kept;
mod meanwhile;
mod report;
mod saving;
mod values;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use cellwright_testkit::Door;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::daemon::DaemonEnd;

/// A folder with notebooks.
struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn with(cells: &[Value]) -> Self {
        let desk = Self::new();
        desk.put("a.ipynb", cells);
        desk
    }

    fn put(&self, name: &str, cells: &[Value]) {
        let notebook = json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
        fs::write(self.0.path().join(name), serde_json::to_vec_pretty(&notebook).unwrap()).unwrap();
    }

    fn notebook(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.0.path().join(name)).unwrap()).unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.subcommand("run");
        command.args(arguments);
        command
    }

    fn subcommand(&self, name: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cellwright"));
        command.arg(name).current_dir(self.0.path());
        command.env("XDG_STATE_HOME", self.0.path().join("state"));
        command.env("CELLWRIGHT_TRUSTED_FOLDERS", self.0.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = self.command(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().expect("it was not killed"), text(output.stdout), text(output.stderr))
    }

    /// The texts that the cells show.
    fn shown(&self, name: &str) -> Vec<String> {
        let notebook = self.notebook(name);
        let of = |output: &Value| {
            let text =
                output.get("text").or_else(|| output.get("data").and_then(|data| data.get("text/plain")));
            let lines = text.and_then(Value::as_array).cloned().unwrap_or_default();
            let lines: String = lines.iter().map(|line| line.as_str().unwrap()).collect();
            output.get("ename").and_then(Value::as_str).map_or(lines, str::to_owned)
        };
        let cells = notebook["cells"].as_array().unwrap().iter();
        cells.map(|cell| cell["outputs"].as_array().into_iter().flatten().map(of).collect()).collect()
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

fn code(id: &str, source: &str) -> Value {
    tagged(id, source, &[])
}

fn tagged(id: &str, source: &str, tags: &[&str]) -> Value {
    let metadata = if tags.is_empty() { json!({}) } else { json!({ "tags": tags }) };
    json!({"cell_type": "code", "execution_count": null, "id": id, "metadata": metadata, "outputs": [], "source": source})
}

#[test]
fn outputs_are_written_into_the_notebook_and_each_cell_is_reported() {
    let desk = Desk::with(&[
        code("a", "# a comment\nx = 1"),
        json!({"cell_type": "markdown", "id": "m", "metadata": {}, "source": "# T"}),
        code("b", "print(x)\nx + 1"),
        code("empty", " \n"),
    ]);
    let (exit, stdout, stderr) = desk.run(&["a.ipynb"]);
    assert_eq!((exit, stdout.as_str()), (0, ""), "{stderr}");
    let lines: Vec<_> = stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{stderr}");
    assert!(lines[0].starts_with("[1/2] cell 0   x = 1 ") && lines[0].contains(" ok ("), "{stderr}");
    assert!(lines[1].starts_with("[2/2] cell 2   print(x) "), "{stderr}");
    assert!(lines[2].starts_with("a.ipynb: 2 cells in "), "{stderr}");
    assert_eq!(desk.shown("a.ipynb"), ["", "", "1\n2", ""]);
    let cell = &desk.notebook("a.ipynb")["cells"][2];
    assert_eq!(cell["execution_count"], 2);
    let times = cell["metadata"]["execution"].as_object().unwrap();
    let names: Vec<_> = times.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["iopub.execute_input", "iopub.status.busy", "iopub.status.idle", "shell.execute_reply"]
    );
    let (exit, _, stderr) = desk.run(&["a.ipynb", "--quiet", "--no-timing", "-o", "b.ipynb"]);
    assert_eq!((exit, stderr.as_str()), (0, ""));
    // Times of the first run would be wrong under outputs of the second.
    assert_eq!(desk.notebook("b.ipynb")["cells"][2]["metadata"], json!({}));
}

#[test]
fn the_first_exception_ends_the_run_with_cell_line_and_traceback() {
    let desk = Desk::with(&[
        code("a", "print('one')"),
        code("b", "def f():\n    return 1 / 0\nf()"),
        code("c", "print('three')"),
    ]);
    let (exit, _, stderr) = desk.run(&["a.ipynb", "-q"]);
    assert_eq!(exit, 1);
    let told = "a.ipynb: cell 1 raised ZeroDivisionError in line 2:\n    return 1 / 0\nTraceback (most recent call last):\n";
    assert!(stderr.starts_with(told), "{stderr}");
    assert!(stderr.ends_with("ZeroDivisionError: division by zero\n"), "{stderr}");
    assert_eq!(desk.shown("a.ipynb"), ["one\n", "ZeroDivisionError", ""]);
    let (exit, _, _) = desk.run(&["a.ipynb", "-q", "--allow-errors"]);
    assert_eq!(exit, 0);
    assert_eq!(desk.shown("a.ipynb"), ["one\n", "ZeroDivisionError", "three\n"]);
}

#[test]
fn tags_say_what_is_not_run_and_what_may_raise() {
    let desk = Desk::with(&[
        tagged("a", "int('x')", &["raises-exception"]),
        tagged("b", "print('no')", &["skip-execution"]),
        code("c", "print('yes')"),
    ]);
    let (exit, _, stderr) = desk.run(&["a.ipynb"]);
    assert_eq!(exit, 0, "{stderr}");
    assert!(stderr.contains("raised ValueError, as it may"), "{stderr}");
    assert_eq!(desk.shown("a.ipynb"), ["ValueError", "", "yes\n"]);
}

#[test]
fn some_cells_are_run_by_place_by_id_and_from_one_on() {
    let desk = Desk::with(&[code("a", "print('a')"), code("b", "print('b')"), code("c", "print('c')")]);
    for (arguments, shown) in [
        (["--cells", "id:c,0"], ["a\n", "", "c\n"]),
        (["--cells", "1-2"], ["a\n", "b\n", "c\n"]),
        (["--from", "1"], ["a\n", "b\n", "c\n"]),
    ] {
        let (exit, _, stderr) = desk.run(&[&["a.ipynb", "-q"], &arguments[..]].concat());
        assert_eq!((exit, desk.shown("a.ipynb")), (0, shown.map(str::to_owned).to_vec()), "{stderr}");
    }
    let counts: Vec<_> =
        (0..3).map(|cell| desk.notebook("a.ipynb")["cells"][cell]["execution_count"].clone()).collect();
    assert_eq!(counts, [1, 1, 2]);
    let (exit, _, stderr) = desk.run(&["a.ipynb", "--cells", "9"]);
    assert_eq!((exit, stderr.as_str()), (1, "error: there is no cell 9; the notebook has cells 0 to 2\n"));
}

#[test]
fn a_cell_that_takes_too_long_is_interrupted_and_what_it_printed_is_kept() {
    let desk = Desk::with(&[code("a", "print('on', flush=True)\nwhile True: pass"), code("b", "1")]);
    let (exit, _, stderr) = desk.run(&["a.ipynb", "--timeout", "0.5"]);
    assert_eq!(exit, 124, "{stderr}");
    assert!(stderr.contains("cell 0 took longer than 0.5 s and was stopped"), "{stderr}");
    assert_eq!(desk.shown("a.ipynb"), ["on\nKeyboardInterrupt", ""]);
}

#[test]
fn a_kernel_that_dies_leaves_an_error_in_the_notebook() {
    let desk = Desk::with(&[code("a", "print('a', flush=True)\nimport os\nos._exit(7)"), code("b", "1")]);
    let (exit, _, stderr) = desk.run(&["a.ipynb"]);
    assert_eq!(exit, 1, "{stderr}");
    assert!(stderr.contains("exited with code 7"), "{stderr}");
    let error = desk.notebook("a.ipynb")["cells"][0]["outputs"][1].clone();
    assert_eq!(error["ename"], "DeadKernelError");
    assert!(error["evalue"].as_str().unwrap().contains("exited with code 7"), "{error}");
}

#[test]
fn parameters_go_into_a_cell_after_the_one_tagged_so() {
    let desk = Desk::with(&[
        code("a", "pass"),
        tagged("p", "n = 1\nname = 'x'", &["parameters"]),
        code("b", "print(repr([n, name, on, words, nothing, more]))"),
    ]);
    fs::write(desk.path().join("p.yaml"), "n: 5\nmore:\n  - 1.5\n  - {k: 'v'}\nname: file\n").unwrap();
    let arguments = [
        "a.ipynb",
        "-q",
        "-o",
        "out.ipynb",
        "-f",
        "p.yaml",
        "-p",
        "name=it's \"q\"",
        "-p",
        "on=True",
        "-r",
        "words=12",
        "-p",
        "nothing=null",
    ];
    let (exit, _, stderr) = desk.run(&arguments);
    assert_eq!(exit, 0, "{stderr}");
    let shown = "[5, 'it\\'s \"q\"', True, '12', None, [1.5, {'k': 'v'}]]\n";
    assert_eq!(desk.shown("out.ipynb")[3], shown);
    assert_eq!(desk.notebook("out.ipynb")["cells"][2]["metadata"]["tags"], json!(["injected-parameters"]));
    assert_eq!(desk.shown("a.ipynb"), ["", "", ""]);
    // Again: the injected cell is replaced, not joined by another.
    let (exit, _, stderr) =
        desk.run(&["out.ipynb", "-q", "-f", "p.yaml", "-p", "on=1", "-p", "words=2", "-p", "nothing=3"]);
    assert_eq!(exit, 0, "{stderr}");
    assert_eq!(desk.notebook("out.ipynb")["cells"].as_array().unwrap().len(), 4);
    assert_eq!(desk.shown("out.ipynb")[3], "[5, 'file', 1, 2, 3, [1.5, {'k': 'v'}]]\n");
    let (exit, _, stderr) = desk.run(&["a.ipynb", "-p", "no-name=1"]);
    assert_eq!((exit, stderr.as_str()), (1, "error: `no-name` cannot be the name of a variable\n"));
    fs::write(desk.path().join("list.yaml"), "- 1\n").unwrap();
    for (arguments, told) in [
        (
            ["-f", "list.yaml"],
            "list.yaml does not map names to values: expected mapping start at line 1, column 1",
        ),
        (["-f", "none.yaml"], "could not read none.yaml: No such file or directory (os error 2)"),
        (
            ["-p", "n=-123456789012345678901"],
            "-123456789012345678901 has too many digits for a number here; `--raw` passes it as text",
        ),
    ] {
        let (exit, _, stderr) = desk.run(&[&["a.ipynb"], &arguments[..]].concat());
        assert_eq!((exit, stderr), (1, format!("error: {told}\n")));
    }
}

/// Code that changes the notebook it is in, as another program would while it runs: in place, whole, by its own JSON writer.
fn editing(change: &str) -> String {
    format!(
        "import json\nwith open('a.ipynb') as f:\n    nb = json.load(f)\n{change}\nwith open('a.ipynb', 'w') as f:\n    json.dump(nb, f)\nprint('edited')"
    )
}

#[test]
fn when_we_are_killed_the_notebook_holds_what_was_saved() {
    // The second cell waits until the first one's output is in the file, and then kills the program that runs it.
    let kill = "import json, os, signal, time\nprint('on', flush=True)\nwhile True:\n    cells = json.load(open('a.ipynb'))['cells']\n    if cells[0]['outputs'] and cells[1]['outputs']:\n        os.kill(int(os.environ['RUNNER']), signal.SIGKILL)\n    time.sleep(0.01)";
    let desk = Desk::with(&[code("a", "print('kept')"), code("b", kill), code("c", "1")]);
    let pid = "import os\nos.environ['RUNNER'] = str(os.getppid())\n";
    let mut cells = desk.notebook("a.ipynb")["cells"].as_array().unwrap().clone();
    cells[0]["source"] = format!("{pid}print('kept')").into();
    desk.put("a.ipynb", &cells);
    let status = desk.command(&["a.ipynb"]).status().unwrap();
    assert_eq!(status.code(), None);
    assert_eq!(desk.shown("a.ipynb"), ["kept\n", "on\n", ""]);
}

#[test]
fn programs_get_events_and_know_what_is_saved() {
    let desk = Desk::with(&[
        json!({"cell_type": "markdown", "id": "m", "metadata": {}, "source": "# T"}),
        code("b", "import time\nprint('x', flush=True)\ntime.sleep(1)"),
    ]);
    let mut child = desk.command(&["a.ipynb", "--json"]).spawn().unwrap();
    let mut names = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let name = event["event"].as_str().unwrap().to_owned();
        match name.as_str() {
            "started" => assert_eq!(event["cells"], json!([{"cell": 1, "id": "b"}])),
            "output" => assert_eq!((&event["cell"], &event["id"]), (&json!(1), &json!("b"))),
            "saved" => {
                assert_eq!(event["cells"], json!([1]));
                assert_eq!(desk.shown("a.ipynb"), ["", "x\n"]);
            }
            "finished" => assert_eq!(event["ok"], true),
            _ => {}
        }
        names.push(name);
    }
    assert!(child.wait().unwrap().success());
    names.dedup();
    assert_eq!(
        names,
        ["started", "kernel_started", "cell_started", "output", "cell_finished", "saved", "finished"]
    );
}

#[test]
fn several_notebooks_run_at_once_and_a_report_covers_all() {
    let desk = Desk::new();
    // Each waits for the other to have begun.
    let meet = |me: &str, other: &str| {
        format!(
            "import os, time\nopen('{me}', 'w').close()\nwhile not os.path.exists('{other}'): time.sleep(0.01)"
        )
    };
    desk.put("a.ipynb", &[code("a", &meet("one", "two")), code("b", "print('<&>')")]);
    desk.put("b.ipynb", &[code("a", &meet("two", "one")), code("b", "1 / 0"), code("c", "2")]);
    let (exit, _, stderr) =
        desk.run(&["-j", "2", "--junit", "report.xml", "a.ipynb", "b.ipynb", "none.ipynb"]);
    assert_eq!(exit, 1, "{stderr}");
    assert!(stderr.contains("b.ipynb: cell 1 raised ZeroDivisionError in line 1:"), "{stderr}");
    assert!(stderr.contains("none.ipynb: no such file"), "{stderr}");
    let report = fs::read_to_string(desk.path().join("report.xml")).unwrap();
    for part in [
        "<testsuite name=\"a.ipynb\" tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"0\"",
        "name=\"cell 1: print('&lt;&amp;&gt;')\"",
        "<testsuite name=\"b.ipynb\" tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\"",
        "<failure message=\"raised ZeroDivisionError\">Traceback",
        "<testsuite name=\"none.ipynb\" tests=\"1\" failures=\"1\"",
    ] {
        assert!(report.contains(part), "{part}\n{report}");
    }
}

#[test]
fn another_kernel_is_used_when_the_notebook_names_one() {
    let desk = Desk::with(&[code("a", "1")]);
    let mut notebook = desk.notebook("a.ipynb");
    notebook["metadata"]["kernelspec"] =
        json!({"name": "no-such-kernel", "display_name": "x", "language": "python"});
    fs::write(desk.path().join("a.ipynb"), notebook.to_string()).unwrap();
    let (exit, _, stderr) = desk.run(&["a.ipynb"]);
    assert_eq!(exit, 1);
    assert!(stderr.contains("no-such-kernel"), "{stderr}");
    let (exit, _, stderr) = desk.run(&["a.ipynb", "--kernel", "python"]);
    assert_eq!(exit, 0, "{stderr}");
}

#[test]
fn a_kernelspec_that_the_notebook_names_runs_it_whatever_its_language() {
    let desk = Desk::with(&[code("a", "print(type(get_ipython()).__name__)")]);
    let python = cellwright_testkit::python();
    let argv = [python.to_str().unwrap(), "-m", "ipykernel_launcher", "-f", "{connection_file}"];
    let spec = desk.path().join("kernels/wren");
    fs::create_dir_all(&spec).unwrap();
    let kernel = json!({"argv": argv, "display_name": "Wren", "language": "wren"});
    fs::write(spec.join("kernel.json"), kernel.to_string()).unwrap();
    let mut notebook = desk.notebook("a.ipynb");
    for metadata in [
        json!({"kernelspec": {"name": "wren", "display_name": "Wren", "language": "wren"}}),
        json!({"language_info": {"name": "wren"}}),
    ] {
        notebook["metadata"] = metadata;
        notebook["cells"][0]["outputs"] = json!([]);
        fs::write(desk.path().join("a.ipynb"), notebook.to_string()).unwrap();
        let output = desk.command(&["a.ipynb"]).env("JUPYTER_PATH", desk.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(desk.shown("a.ipynb"), ["ZMQInteractiveShell\n"]);
    }
}

#[test]
fn notebooks_run_in_the_order_they_are_given() {
    let desk = Desk::with(&[code("a", "open('order', 'a').write('a')")]);
    let names = ["c", "a", "d", "b", "e"];
    for name in names {
        desk.put(&format!("{name}.ipynb"), &[code("a", &format!("open('order', 'a').write('{name}')"))]);
    }
    let (exit, _, stderr) =
        desk.run(&names.map(|name| format!("{name}.ipynb")).each_ref().map(String::as_str));
    assert_eq!(exit, 0, "{stderr}");
    assert_eq!(fs::read_to_string(desk.path().join("order")).unwrap(), names.concat());
}

#[test]
fn an_interrupt_ends_the_run_and_leaves_what_was_done() {
    let door = Door::new();
    let wait = format!("print('on', flush=True)\n{}.close()\nwhile True: pass", door.knock());
    let desk = Desk::with(&[code("a", "print('a')"), code("b", &wait), code("c", "print('c')")]);
    desk.put("b.ipynb", &[code("a", "print('never')")]);
    let child = desk.command(&["a.ipynb", "b.ipynb", "--junit", "report.xml"]).spawn().unwrap();
    door.knocked_blocking();
    let pid = nix::unistd::Pid::from_raw(child.id().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{told}");
    assert!(told.contains("b.ipynb: error: not run: interrupted before its turn"), "{told}");
    assert_eq!(desk.shown("a.ipynb"), ["a\n", "on\nKeyboardInterrupt", ""]);
    assert_eq!(desk.shown("b.ipynb"), [""]);
    let report = fs::read_to_string(desk.path().join("report.xml")).unwrap();
    assert!(report.contains("<skipped message=\"an earlier cell failed\"/>"), "{report}");
}

#[test]
fn what_a_notebook_ran_with_is_recorded_when_asked() {
    let desk = Desk::with(&[code("a", "x = 1")]);
    let (exit, _, stderr) = desk.run(&["a.ipynb", "--record", "-p", "n=1", "-o", "b.ipynb"]);
    assert_eq!(exit, 0, "{stderr}");
    let record = &desk.notebook("b.ipynb")["metadata"]["cellwright"];
    assert_eq!((&record["completed"], &record["parameters"]), (&json!(true), &json!({"n": 1})));
    assert!(record["python"].as_str().unwrap().starts_with("3."), "{record}");
    assert!(record["kernel"].is_string() && record["platform"].is_string(), "{record}");
    assert!(record["packages"].is_object() && record["started"].is_string(), "{record}");
    assert_eq!(desk.notebook("a.ipynb")["metadata"], json!({}));
}

#[test]
fn a_session_that_stays_keeps_its_variables_until_a_fresh_kernel_is_asked_for() {
    let desk = Desk::with(&[code("a", "n = globals().get('n', 0) + 1\nprint(n)")]);
    let _daemon = DaemonEnd::of(desk.path());
    let within = |command: &mut Command| {
        let command = command.env("XDG_RUNTIME_DIR", desk.path()).env("XDG_CONFIG_HOME", desk.path());
        let command = command.env("XDG_STATE_HOME", desk.path().join("state"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let run = |arguments: &[&str]| {
        within(&mut desk.command(&[&["a.ipynb", "-q", "--session", "kept"], arguments].concat()));
        desk.shown("a.ipynb").concat()
    };
    assert_eq!([run(&[]), run(&[]), run(&["--reset"])], ["1\n", "2\n", "1\n"]);
}

#[test]
fn what_does_not_fit_into_the_notebook_can_be_read_where_it_says() {
    // More than the 32 MiB that a cell keeps.
    let desk = Desk::with(&[code("a", "display({'text/html': 'y' * 34_000_000}, raw=True)")]);
    let artifacts = desk.path().join("artifacts");
    let mut command = desk.command(&["a.ipynb"]);
    let output = command.env("CELLWRIGHT_ARTIFACTS_DIR", &artifacts).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let shown = desk.shown("a.ipynb").concat();
    let address = shown.split_once("all of it: ").unwrap().1.trim_end_matches(']');
    let mut read = Command::new(env!("CARGO_BIN_EXE_cellwright"));
    let read = read.args(["read", address]).env("CELLWRIGHT_ARTIFACTS_DIR", &artifacts).output().unwrap();
    let display: Value = serde_json::from_slice(&read.stdout).unwrap();
    assert_eq!(display["data"]["text/html"].as_str().unwrap().len(), 34_000_000);
}
