//! Which cells run, with which parameters, and when nothing runs at all.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::{Desk, code, tagged};
use crate::daemon::DaemonEnd;

fn three() -> Desk {
    Desk::with(&[
        tagged("p", "n = 1", &["parameters"]),
        code("a", "print('a', n)"),
        code("b", "print('b', n)"),
    ])
}

#[test]
fn with_parameters_the_cells_that_were_named_run_and_so_does_the_one_with_the_parameters() {
    for (choice, shown) in [
        (["--cells", "1"], ["", "", "a 7\n", ""]),
        (["--cells", "id:b"], ["", "", "", "b 7\n"]),
        (["--from", "2"], ["", "", "", "b 7\n"]),
    ] {
        let desk = three();
        let (exit, _, stderr) = desk.run(&[&["a.ipynb", "-q", "-p", "n=7"], &choice[..]].concat());
        assert_eq!(exit, 0, "{stderr}");
        assert_eq!(desk.shown("a.ipynb"), shown);
        assert_eq!(desk.notebook("a.ipynb")["cells"][0]["execution_count"], Value::Null);
        // Now the notebook has that cell, and places are counted with it.
        let (exit, _, stderr) = desk.run(&["a.ipynb", "-q", "-p", "n=8", "--cells", "3"]);
        assert_eq!(exit, 0, "{stderr}");
        assert_eq!(desk.shown("a.ipynb")[3], "b 8\n");
    }
}

#[test]
fn a_run_that_cannot_begin_changes_no_file() {
    let desk = three();
    let mut unknown = desk.notebook("a.ipynb");
    unknown["metadata"]["kernelspec"] = json!({"name": "nope", "display_name": "x", "language": "python"});
    fs::write(desk.path().join("nope.ipynb"), unknown.to_string()).unwrap();
    desk.put("before.ipynb", &[code("x", "earlier results")]);
    let files =
        || ["a.ipynb", "nope.ipynb", "before.ipynb"].map(|name| fs::read(desk.path().join(name)).unwrap());
    let before = files();
    for arguments in [
        &["a.ipynb", "-p", "n=7", "--cells", "99"][..],
        &["a.ipynb", "-o", "before.ipynb", "--from", "id:none"],
        &["a.ipynb", "-p", "n=7", "--kernel", "jupyter:nope"],
        &["nope.ipynb", "-p", "n=7"],
        &["nope.ipynb", "-o", "before.ipynb"],
        &["nope.ipynb", "-o", "new.ipynb"],
        &["a.ipynb", "-p", "n=7", "--python", "/nowhere/python"],
        &["a.ipynb", "-o", "new.ipynb", "--python", "/bin/false"],
        &["a.ipynb", "-p", "n=7", "--kernel", "existing:/nowhere/kernel.json"],
        &["a.ipynb", "--python", "/nowhere/python"],
    ] {
        let (exit, _, stderr) = desk.run(arguments);
        assert_eq!(exit, 1, "{stderr}");
        assert_eq!(files(), before, "{arguments:?}: {stderr}");
    }
    assert!(!desk.path().join("new.ipynb").exists());
}

#[test]
fn kernel_notices_are_shown_whether_it_starts_before_or_after_the_notebook_changes() {
    let desk = three();
    fs::create_dir_all(desk.path().join(".cellwright/modules")).unwrap();
    fs::write(desk.path().join(".cellwright/modules/bad.py"), "1 / 0\n").unwrap();
    for arguments in [&["a.ipynb", "--json"][..], &["a.ipynb", "--json", "-o", "b.ipynb"]] {
        let (exit, stdout, stderr) = desk.run(arguments);
        assert_eq!(exit, 0, "{stderr}");
        assert_eq!(stdout.matches("module `bad` was not loaded").count(), 1, "{arguments:?}: {stdout}");
        assert_eq!(stdout.matches("kernel_started").count(), 1, "{arguments:?}: {stdout}");
    }
}

#[test]
fn a_notebook_that_is_given_twice_is_refused() {
    let desk = Desk::with(&[code("a", "1")]);
    std::os::unix::fs::symlink("a.ipynb", desk.path().join("link.ipynb")).unwrap();
    for (again, same) in [("./a.ipynb", "a.ipynb"), ("link.ipynb", "a.ipynb")] {
        let (exit, _, stderr) = desk.run(&["-j2", "a.ipynb", again]);
        assert_eq!((exit, stderr), (1, format!("error: {again} is the same notebook as {same}\n")));
    }
    assert_eq!(desk.shown("a.ipynb"), [""]);
}

#[test]
fn sessions_of_the_daemon_stay_when_several_notebooks_run() {
    let desk = Desk::with(&[code("a", "n = globals().get('n', 0) + 1\nprint(n)")]);
    desk.put("b.ipynb", &[code("b", "1")]);
    let _daemon = DaemonEnd::of(desk.path());
    let settings = desk.path().join("cellwright/config.toml");
    fs::create_dir(settings.parent().unwrap()).unwrap();
    fs::write(settings, "[session]\nshared = true\n").unwrap();
    let within = |command: &mut Command| {
        let command = command.env("XDG_RUNTIME_DIR", desk.path()).env("XDG_CONFIG_HOME", desk.path());
        let command = command.env("XDG_STATE_HOME", desk.path().join("state"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    within(&mut desk.command(&["-q", "a.ipynb"]));
    within(&mut desk.command(&["-q", "a.ipynb", "b.ipynb"]));
    within(&mut desk.command(&["-q", "a.ipynb", "b.ipynb"]));
    assert_eq!(desk.shown("a.ipynb"), ["3\n"]);
}

#[test]
fn a_failed_record_does_not_hide_the_result_of_the_run() {
    // Asked for its platform, after the run, this Python takes the notebook away.
    let away = "import os, platform\nplatform.platform = lambda: os.remove('a.ipynb')";
    let desk = Desk::with(&[code("a", away), code("b", "1 / 0")]);
    let (exit, _, stderr) = desk.run(&["a.ipynb", "--record"]);
    assert_eq!(exit, 1, "{stderr}");
    for told in [
        "cell 1 raised ZeroDivisionError in line 1",
        "what it ran with could not be recorded: ",
        "1 of 2 cells completed",
    ] {
        assert!(stderr.contains(told), "{told}\n{stderr}");
    }
}

#[test]
fn a_notice_names_the_cell_of_the_notebook() {
    let dies_once =
        "import os\nif not os.path.exists('died'):\n    open('died', 'w').close()\n    os._exit(3)";
    let desk = Desk::with(&[code("a", "1"), code("b", "2"), code("c", dies_once)]);
    let settings = desk.path().join("cellwright/config.toml");
    fs::create_dir(settings.parent().unwrap()).unwrap();
    fs::write(settings, "[kernel]\nretry = \"once\"\n").unwrap();
    let run = |arguments: &[&str]| {
        drop(fs::remove_file(desk.path().join("died")));
        let output = desk.command(arguments).env("XDG_CONFIG_HOME", desk.path()).output().unwrap();
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
    };
    let [_, stderr] = run(&["a.ipynb", "--cells", "1-2"]);
    assert!(stderr.contains("note: the kernel exited with code 3 while cell 2 ran"), "{stderr}");
    let [stdout, _] = run(&["a.ipynb", "--cells", "1-2", "--json"]);
    assert!(stdout.contains("exited with code 3 while cell 2 ran"), "{stdout}");
}

#[test]
fn what_cannot_work_is_reported_before_the_run() {
    let desk = three();
    let (exit, _, stderr) = desk.run(&["a.ipynb", "-p", "class=1"]);
    assert_eq!((exit, stderr.as_str()), (1, "error: `class` cannot be the name of a variable\n"));
    let (exit, _, stderr) = desk.run(&["a.ipynb", "--junit", "no/such/folder.xml"]);
    assert!(exit == 1 && stderr.starts_with("error: could not write no/such/folder.xml: "), "{stderr}");
    assert_eq!(desk.shown("a.ipynb"), ["", "", ""]);
}

#[test]
fn a_notebook_is_known_by_the_end_of_its_name() {
    let desk = Desk::new();
    for name in ["X.IPYNB", ".ipynb"] {
        desk.put(name, &[code("a", "print('ran')")]);
        let (exit, _, stderr) = desk.run(&["-q", name]);
        assert_eq!(exit, 0, "{stderr}");
        assert_eq!(desk.shown(name), ["ran\n"]);
    }
}

/// Calls another command in the folder, as the same caller, and returns its exit code and what it printed.
fn other(desk: &Desk, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cellwright"));
    let output = command
        .args(arguments)
        .current_dir(desk.path())
        .env("XDG_STATE_HOME", desk.path().join("state"))
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    (output.status.code().unwrap(), text)
}

#[test]
fn the_number_of_a_cell_that_others_moved_or_edited_is_not_run() {
    let desk = Desk::with(&[code("a", "print('a')"), code("b", "print('b')")]);
    // Nobody has read it: a number means the cell that has it.
    assert_eq!(desk.run(&["a.ipynb", "-q", "--cells", "1"]).0, 0);
    assert_eq!(other(&desk, &["read", "a.ipynb"]).0, 0);
    desk.put("a.ipynb", &[code("new", "print('new')"), code("a", "print('a')"), code("b", "print('b')")]);
    for choice in [["--cells", "1"], ["--from", "1"], ["--cells", "0-1"]] {
        let (exit, _, stderr) = desk.run(&[&["a.ipynb", "-q"], &choice[..]].concat());
        assert_eq!(exit, 3, "{stderr}");
        assert!(
            stderr.contains("changed since you read it, so nothing was done: another cell is at"),
            "{stderr}"
        );
    }
    assert_eq!(desk.shown("a.ipynb"), ["", "", ""]);
    assert_eq!(desk.run(&["a.ipynb", "-q", "--cells", "1", "--force"]).0, 0);
    assert_eq!(desk.run(&["a.ipynb", "-q", "--cells", "id:b"]).0, 0);
    assert_eq!(desk.shown("a.ipynb"), ["", "a\n", "b\n"]);
    desk.put("a.ipynb", &[code("a", "print('other')"), code("b", "print('b')")]);
    let (exit, _, stderr) = desk.run(&["a.ipynb", "-q", "--cells", "0"]);
    assert_eq!(exit, 3, "{stderr}");
    assert!(stderr.contains("(cell 0 edited)"), "{stderr}");
    let (exit, _, stderr) =
        desk.run(&["a.ipynb", "-q", "--cells", "0", "--expect", "00000000000000000000000000000000"]);
    assert_eq!(exit, 3, "{stderr}");
    assert_eq!(desk.shown("a.ipynb"), ["", ""]);
}

#[test]
fn cells_are_chosen_by_open_ranges_sections_and_lists() {
    let part = json!({"cell_type": "markdown", "id": "part", "metadata": {}, "source": "# Part"});
    let cells = [code("a", "print('a')"), part, code("b", "print('b')"), code("c", "print('c')")];
    for (choice, shown) in [
        ("2-", ["", "", "b\n", "c\n"]),
        ("#\"part\"", ["", "", "b\n", "c\n"]),
        ("[0, 2]", ["a\n", "", "b\n", ""]),
        ("cell:0,cell:2-", ["a\n", "", "b\n", "c\n"]),
    ] {
        let desk = Desk::with(&cells);
        let (exit, _, stderr) = desk.run(&["a.ipynb", "-q", "--cells", choice]);
        assert_eq!(exit, 0, "{stderr}");
        assert_eq!(desk.shown("a.ipynb"), shown, "{choice}");
    }
    for (arguments, left) in [
        (&["notebook", "delete", "a.ipynb", "2-"][..], 2),
        (&["notebook", "delete", "a.ipynb", "\"Part\""], 1),
        (&["notebook", "delete", "a.ipynb", "[0,1]"], 2),
        (&["notebook", "move", "a.ipynb", "2-", "0"], 4),
        (&["notebook", "retype", "a.ipynb", "2-", "raw"], 4),
        (&["notebook", "clear", "a.ipynb", "\"Part\""], 4),
    ] {
        let desk = Desk::with(&cells);
        let (exit, told) = other(&desk, arguments);
        assert_eq!(exit, 0, "{told}");
        assert_eq!(desk.notebook("a.ipynb")["cells"].as_array().unwrap().len(), left, "{arguments:?}");
    }
    let desk = Desk::with(&cells);
    let (exit, told) = other(&desk, &["notebook", "edit", "a.ipynb", "\"Part\"", "--source", "x"]);
    assert_eq!((exit, told.as_str()), (1, "error: edit takes one cell; 3 are named\n"));
    assert_eq!(other(&desk, &["read", "a.ipynb#cell:2"]).1, "# %% [code] cell:2\nprint('b')\n");
}
