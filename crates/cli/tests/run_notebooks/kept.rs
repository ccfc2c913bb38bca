//! What a run replaces can be had back, or the run says that it cannot.

use std::fs;

use serde_json::{Value, json};

use super::{Desk, code, editing, tagged};

fn with_old_output(id: &str, source: &str) -> Value {
    let mut cell = code(id, source);
    cell["execution_count"] = 7.into();
    cell["outputs"] = json!([{"name": "stdout", "output_type": "stream", "text": ["old\n"]}]);
    cell
}

/// `cellwright notebook …`: whether it succeeded, and what it printed.
fn notebook(desk: &Desk, arguments: &[&str]) -> (bool, String) {
    let ran = desk.subcommand("notebook").args(arguments).output().unwrap();
    let text = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    (ran.status.success(), text)
}

#[track_caller]
fn undone(desk: &Desk, name: &str) {
    let (is_done, text) = notebook(desk, &["undo", name]);
    assert!(is_done, "{text}");
}

fn last_event(stdout: &str) -> Value {
    serde_json::from_str(stdout.lines().last().unwrap()).unwrap()
}

#[test]
fn a_run_whose_old_outputs_could_not_be_kept_said_nothing() {
    let desk = Desk::with(&[with_old_output("a", "print('new')"), code("b", "print('b')")]);
    fs::create_dir(desk.path().join("state")).unwrap();
    fs::write(desk.path().join("state/cellwright"), "a file, not a folder").unwrap();
    let (exit, _, stderr) = desk.run(&["a.ipynb", "-q"]);
    assert_eq!(exit, 0, "{stderr}");
    let expected = "undo cannot bring back the earlier outputs of cell 0: ";
    assert!(stderr.starts_with(&format!("warning: {expected}")), "{stderr}");
    assert_eq!(desk.shown("a.ipynb"), ["new\n", "b\n"]);
    let (_, stdout, _) = desk.run(&["a.ipynb", "--json"]);
    let last = last_event(&stdout);
    let note = last["notes"][0].as_str().unwrap();
    assert!(note.contains("of cells 0-1: ") && note.contains("cannot be written: "), "{last}");
}

#[test]
fn outputs_that_a_person_saved_into_a_cell_before_its_turn_were_gone() {
    let change =
        "nb['cells'][1]['outputs'] = [{'name': 'stdout', 'output_type': 'stream', 'text': ['theirs\\n']}]";
    let desk = Desk::with(&[code("a", &editing(change)), with_old_output("b", "print('new')")]);
    let (exit, stdout, stderr) = desk.run(&["a.ipynb", "--json"]);
    assert_eq!(exit, 0, "{stderr}");
    let told = "others saved outputs into cell 1 during the run; the outputs of the run replaced them, and undo \
                brings them back";
    assert_eq!(last_event(&stdout)["notes"], json!([told]));
    assert_eq!(desk.shown("a.ipynb"), ["edited\n", "new\n"]);
    undone(&desk, "a.ipynb");
    assert_eq!(desk.shown("a.ipynb"), ["edited\n", "theirs\n"]);
    undone(&desk, "a.ipynb");
    assert_eq!(desk.shown("a.ipynb")[1], "old\n");
}

#[test]
fn a_notebook_that_the_outputs_of_another_one_replaced_was_gone() {
    let desk = Desk::with(&[code("a", "print('new')")]);
    desk.put("other.ipynb", &[code("x", "my_work = 1"), code("y", "more")]);
    let before = fs::read(desk.path().join("other.ipynb")).unwrap();
    let (exit, _, stderr) = desk.run(&["a.ipynb", "-o", "other.ipynb"]);
    assert_eq!(exit, 0, "{stderr}");
    assert!(stderr.contains("note: other.ipynb was replaced; undo brings back what it was\n"), "{stderr}");
    assert_eq!(desk.shown("other.ipynb"), ["new\n"]);
    undone(&desk, "other.ipynb");
    assert_eq!(fs::read(desk.path().join("other.ipynb")).unwrap(), before);
    // Nor is it replaced when it cannot be kept, unless the caller insists.
    fs::remove_dir_all(desk.path().join("state/cellwright")).unwrap();
    fs::write(desk.path().join("state/cellwright"), "a file, not a folder").unwrap();
    let (exit, _, stderr) = desk.run(&["a.ipynb", "-o", "other.ipynb"]);
    assert_eq!(exit, 1, "{stderr}");
    assert!(stderr.contains("undo could not keep what other.ipynb is now"), "{stderr}");
    assert_eq!(fs::read(desk.path().join("other.ipynb")).unwrap(), before);
    let (exit, stdout, _) = desk.run(&["a.ipynb", "-o", "other.ipynb", "--force", "--json"]);
    assert_eq!(exit, 0);
    let note = last_event(&stdout)["notes"][0].as_str().unwrap().to_owned();
    assert!(note.starts_with("other.ipynb was replaced; undo cannot bring back what it was: "), "{note}");
    // Neither a new file nor a new cell takes anything away.
    let (exit, _, stderr) = desk.run(&["a.ipynb", "-q", "-p", "n=1", "-o", "other.ipynb"]);
    assert_eq!(exit, 1, "{stderr}");
    desk.put("a.ipynb", &[code("a", "print('new')")]);
    let (exit, _, stderr) = desk.run(&["a.ipynb", "-q", "-p", "n=1"]);
    assert_eq!((exit, stderr.as_str()), (0, ""));
    let (exit, _, stderr) = desk.run(&["a.ipynb", "-q", "-o", "new.ipynb"]);
    assert_eq!((exit, stderr.as_str()), (0, ""));
}

#[test]
fn a_broken_file_could_not_be_replaced_by_outputs_even_with_force() {
    let desk = Desk::with(&[code("a", "print('new')")]);
    let broken = b"{\"cells\": [ \xff my work";
    fs::write(desk.path().join("other.ipynb"), broken).unwrap();
    let (exit, _, stderr) = desk.run(&["a.ipynb", "-o", "other.ipynb"]);
    assert_eq!(exit, 1, "{stderr}");
    assert!(stderr.contains("nothing was run; use force to replace other.ipynb"), "{stderr}");
    assert_eq!(fs::read(desk.path().join("other.ipynb")).unwrap(), broken);
    let (exit, _, stderr) = desk.run(&["a.ipynb", "-o", "other.ipynb", "--force"]);
    assert_eq!(exit, 0, "{stderr}");
    assert!(stderr.contains("note: other.ipynb was replaced; undo brings back what it was\n"), "{stderr}");
    assert_eq!(desk.shown("other.ipynb"), ["new\n"]);
    undone(&desk, "other.ipynb");
    assert_eq!(fs::read(desk.path().join("other.ipynb")).unwrap(), broken);
}

#[test]
fn a_copy_without_cells_to_run_replaced_a_notebook_without_a_word() {
    let desk = Desk::with(&[json!({"cell_type": "markdown", "id": "m", "metadata": {}, "source": "text"})]);
    desk.put("other.ipynb", &[code("x", "my_work = 1")]);
    let (exit, _, stderr) = desk.run(&["a.ipynb", "-o", "other.ipynb"]);
    assert_eq!(exit, 0, "{stderr}");
    assert!(stderr.contains("note: other.ipynb was replaced; undo brings back what it was\n"), "{stderr}");
    undone(&desk, "other.ipynb");
    assert_eq!(desk.notebook("other.ipynb")["cells"][0]["source"], "my_work = 1");
}

#[test]
fn an_edited_cell_of_parameters_that_new_ones_replaced_was_gone() {
    let injected = tagged("p", "# Parameters\nn = 1  # my remark", &["injected-parameters"]);
    let desk = Desk::with(&[injected, with_old_output("a", "print(n)")]);
    let (exit, _, stderr) = desk.run(&["a.ipynb", "-q", "-p", "n=7"]);
    assert_eq!(exit, 0, "{stderr}");
    assert_eq!(desk.shown("a.ipynb"), ["", "7\n"]);
    undone(&desk, "a.ipynb"); // the outputs
    undone(&desk, "a.ipynb"); // the parameters
    assert_eq!(desk.notebook("a.ipynb")["cells"][0]["source"], "# Parameters\nn = 1  # my remark");
    assert_eq!(desk.shown("a.ipynb"), ["", "old\n"]);
}
