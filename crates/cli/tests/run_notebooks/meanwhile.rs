//! What others do to a notebook while it runs.

use std::fs;

use serde_json::{Value, json};

use super::{Desk, code, editing, tagged};

#[test]
fn n21_cells_that_share_an_id_run_and_keep_their_outputs_when_others_save_meanwhile() {
    let change = "nb['metadata']['who'] = 'they'";
    let desk =
        Desk::with(&[code("same", "print('a')"), code("same", &editing(change)), code("same", "print('c')")]);
    let (exit, _, stderr) = desk.run(&["a.ipynb", "-q"]);
    assert_eq!((exit, stderr.as_str()), (0, ""));
    assert_eq!(desk.shown("a.ipynb"), ["a\n", "edited\n", "c\n"]);
    assert_eq!(desk.notebook("a.ipynb")["metadata"]["who"], "they");
}

#[test]
fn n21_a_cell_that_others_tag_to_be_skipped_before_its_turn_does_not_run() {
    let change = "nb['cells'][1]['metadata']['tags'] = ['skip-execution']";
    let desk = Desk::with(&[code("a", &editing(change)), code("b", "print('b')"), code("c", "print('c')")]);
    let (exit, _, stderr) = desk.run(&["a.ipynb"]);
    assert_eq!(exit, 0, "{stderr}");
    assert!(stderr.contains("cell 1 was removed by others before its turn: it is not run"), "{stderr}");
    assert_eq!(desk.shown("a.ipynb"), ["edited\n", "", "c\n"]);
}

#[test]
fn n21_what_others_change_meanwhile_and_our_outputs_are_both_kept() {
    let change = "nb['cells'][2]['source'] = 'print(\"theirs\")'\nnb['cells'].insert(0, {'cell_type': 'markdown', 'id': 'new', 'metadata': {}, 'source': 'hello'})\nnb['metadata']['who'] = 'they'";
    let desk = Desk::with(&[
        code("a", "print('a')"),
        code("b", &editing(change)),
        tagged("c", "print('c')", &["skip-execution"]),
        code("d", "print('d')"),
    ]);
    let (exit, stdout, stderr) = desk.run(&["a.ipynb", "--json"]);
    assert_eq!(exit, 0, "{stderr}");
    let last: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    assert!(last["merged"].as_u64().unwrap() >= 1, "{last}");
    let notebook = desk.notebook("a.ipynb");
    assert_eq!(notebook["metadata"]["who"], "they");
    assert_eq!(
        (&notebook["cells"][0]["source"], &notebook["cells"][3]["source"]),
        (&json!("hello"), &json!("print(\"theirs\")"))
    );
    assert_eq!(desk.shown("a.ipynb"), ["", "a\n", "edited\n", "", "d\n"]);
}

#[test]
fn n15_a_notebook_whose_run_cells_were_edited_is_left_alone_and_the_outputs_are_beside_it() {
    for change in ["nb['cells'][0]['source'] = 'print(1)'", "del nb['cells'][0]"] {
        let desk =
            Desk::with(&[code("a", "print('a')"), code("b", &editing(change)), code("c", "print('c')")]);
        let (exit, _, stderr) = desk.run(&["a.ipynb"]);
        assert_eq!(exit, 3, "{stderr}");
        assert!(
            stderr.contains("while it ran here, so the outputs were not written")
                && stderr.contains("a.run.ipynb"),
            "{stderr}"
        );
        assert_eq!(desk.shown("a.run.ipynb"), ["a\n", "edited\n", "c\n"]);
        assert_eq!(desk.notebook("a.run.ipynb")["cells"][0]["source"], "print('a')");
        // Theirs, to the byte: json.dump writes on one line.
        let theirs = fs::read_to_string(desk.path().join("a.ipynb")).unwrap();
        assert!(!theirs.contains('\n') && !theirs.contains("edited\\n"), "{theirs}");
    }
}

#[test]
fn n21_a_cell_that_others_edit_before_its_turn_runs_what_it_says_now_and_a_removed_one_does_not_run() {
    let change = "nb['cells'][1]['source'] = 'print(\"new\")\\n1 / 0'\nnb['cells'][1]['metadata']['who'] = 'they'\ndel nb['cells'][2]";
    let desk = Desk::with(&[
        code("a", &editing(change)),
        tagged("b", "print('old')", &["raises-exception"]),
        code("c", "print('c')"),
        code("d", "print('d')"),
    ]);
    let (exit, _, stderr) = desk.run(&["a.ipynb"]);
    assert_eq!(exit, 0, "{stderr}");
    for told in [
        "note: cell 1 was edited by others before its turn: what it says now is run\n",
        "[2/4] cell 1   print(\"new\") ",
        "note: cell 2 was removed by others before its turn: it is not run\n",
        "a.ipynb: 3 cells in ",
    ] {
        assert!(stderr.contains(told), "{told}\n{stderr}");
    }
    assert_eq!(desk.shown("a.ipynb"), ["edited\n", "new\nZeroDivisionError", "d\n"]);
    assert_eq!(desk.notebook("a.ipynb")["cells"][1]["metadata"]["who"], "they");
}

#[test]
fn n21_in_a_notebook_without_ids_cells_that_moved_keep_their_outputs_and_nobody_elses() {
    let change = "nb['cells'].insert(0, {'cell_type': 'code', 'execution_count': None, 'metadata': {}, 'outputs': [], 'source': 'print(\"new\")'})\nnb['cells'][3]['source'] = 'print(\"edited\")'";
    let desk = Desk::new();
    let mut cells =
        [&editing(change), "print('a')", "print('c')", "print('d')"].map(|source| code("", source));
    for cell in &mut cells {
        cell.as_object_mut().unwrap().remove("id");
    }
    let notebook = json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4});
    fs::write(desk.path().join("a.ipynb"), notebook.to_string()).unwrap();
    let (exit, stdout, stderr) = desk.run(&["a.ipynb", "--json"]);
    assert_eq!(exit, 0, "{stderr}");
    let changed = json!({"event": "cell_changed", "cell": 2, "id": null, "how": "removed"});
    let mut events = stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert!(events.any(|event| event == changed), "{stdout}");
    assert_eq!(desk.shown("a.ipynb"), ["", "edited\n", "a\n", "", "d\n"]);
}

#[test]
fn a_notebook_that_is_removed_or_broken_while_it_runs_leaves_its_outputs_in_a_side_file() {
    for (change, why) in [
        ("import os\nos.remove('a.ipynb')", "the notebook was moved or removed while it ran here"),
        (
            "open('a.ipynb', 'w').write('{')",
            "the file became something else than a notebook while it ran here",
        ),
    ] {
        // Once the first cell's output is in the file nothing more is saved until the second ends.
        let change =
            format!("while r'\"a\\n\"' not in open('a.ipynb').read(): pass\n{change}\nprint('changed')");
        let desk = Desk::with(&[code("a", "print('a')"), code("b", &change), code("c", "print('c')")]);
        let (exit, _, stderr) = desk.run(&["a.ipynb"]);
        assert_eq!(exit, 3, "{stderr}");
        assert!(stderr.contains(why) && stderr.contains("a.run.ipynb"), "{stderr}");
        assert_eq!(desk.shown("a.run.ipynb"), ["a\n", "changed\n", "c\n"]);
    }
}
