//! Ways in which text was lost once, or a change refused without need, each named after what the user saw.

use cellwright_editing::ChangeOptions;
use cellwright_notebook::{Action, CellKind, CellRef, NewCell};
use serde_json::json;

use crate::support::{PAGE, PLAIN, TestCaller, TestFolder, at, delete, output, refused};

fn edit(index: usize, source: &str) -> Action {
    Action::Edit { cell: at(index), source: source.to_owned() }
}

#[test]
fn a_fingerprint_from_a_page_let_a_text_delete_the_cells_that_were_not_shown() {
    let (folder, caller) = (TestFolder::new(&["a", "b", "c", "d"]), TestCaller::default());
    let read = folder.read(&caller, "#0-1");
    let options = ChangeOptions { expect: Some(read.fingerprint), ..PLAIN };
    let message = refused(folder.write_with(&caller, &read.shown.text(), &options));
    assert!(
        message.contains("you have not seen all of cells 2-3, which this would replace or delete"),
        "{message}"
    );
    let all =
        "# %% [code] cell:0\na\n# %% [code] cell:1\nb\n# %% [code] cell:2\nmine\n# %% [code] cell:3\nd\n";
    let message = refused(folder.write_with(&caller, all, &options));
    assert!(message.contains("you have not seen all of cell 2,"), "{message}");
}

#[test]
fn a_fingerprint_is_trusted_of_a_caller_that_read_the_file_elsewhere() {
    let (folder, elsewhere) = (TestFolder::new(&["a", "b"]), TestCaller::default());
    let text = folder.read(&elsewhere, "").shown.text().replace("b\n", "mine\n");
    let expect = Some(folder.fingerprint());
    // The same script in another process: nothing is known of what it read.
    let caller = TestCaller::default();
    let message = refused(folder.write(&caller, &text));
    assert!(message.contains("you have not read this file"), "{message}");
    folder.write_with(&caller, &text, &ChangeOptions { expect, ..PLAIN }).unwrap();
    assert_eq!(folder.sources(), ["a", "mine"]);
    // For a file that changed since, the fingerprint is no longer right.
    let message = refused(folder.write_with(&caller, &text, &ChangeOptions { expect, ..PLAIN }));
    assert!(message.contains("changed since it was read"), "{message}");
}

#[test]
fn a_fingerprint_from_one_cell_let_a_text_go_over_the_persons_edit_of_another() {
    let (folder, caller) = (TestFolder::new(&["a", "b"]), TestCaller::default());
    let text = folder.read(&caller, "").shown.text();
    folder.person(|notebook| notebook["cells"][1]["source"] = json!("the person's"));
    let read = folder.read(&caller, "#0");
    let options = ChangeOptions { expect: Some(read.fingerprint), ..PLAIN };
    refused(folder.write_with(&caller, &text.replace("b\n", "mine\n"), &options));
    assert_eq!(folder.sources(), ["a", "the person's"]);
}

#[test]
fn expect_answers_what_changed_and_numbers_mean_the_file_as_it_is() {
    let (folder, caller) = (TestFolder::new(&["a", "b"]), TestCaller::default());
    folder.read(&caller, "");
    folder.person(|notebook| notebook["cells"].as_array_mut().unwrap().reverse());
    refused(folder.act(&caller, &delete(0)));
    let options = ChangeOptions { expect: Some(folder.fingerprint()), ..PLAIN };
    let text = "# %% [code] cell:0\nB\n# %% [code] cell:1\nA\n";
    folder.write_with(&caller, text, &options).unwrap();
    assert_eq!(folder.sources(), ["B", "A"]);
    assert_eq!(folder.notebook().cell(0).id().as_deref(), Some("b"));
    // The caller knows what it wrote.
    folder.act(&caller, &edit(0, "BB")).unwrap();
}

#[test]
fn lines_of_the_json_counted_as_lines_of_the_source() {
    let lines: Vec<_> = (0..20).map(|line| format!("line {line}\n")).collect();
    let (folder, caller) = (TestFolder::new(&["a", "b"]), TestCaller::default());
    folder.person(|notebook| {
        notebook["cells"][0]["source"] = json!(lines);
        notebook["cells"][0]["metadata"] = json!({"a": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]});
    });
    folder.read(&caller, "#0:1-11");
    let raw = folder.read(&caller, "#0:raw:11-22").shown.text();
    assert!(!raw.contains("line 15"), "{raw}");
    folder.read(&caller, "#1");
    let message = refused(folder.act(&caller, &edit(0, "mine")));
    assert!(message.contains("you have not seen all of cell 0"), "{message}");
    // Either form alone adds up.
    folder.read(&caller, "#0:raw:1-10");
    folder.read(&caller, "#0:raw:23-");
    folder.act(&caller, &edit(0, "mine")).unwrap();
}

#[test]
fn a_cell_that_the_person_made_markdown_became_code_again() {
    let (folder, caller) = (TestFolder::new(&["a", "b"]), TestCaller::default());
    let text = folder.read(&caller, "").shown.text();
    folder.person(|notebook| {
        let cell = json!({"cell_type": "markdown", "id": "b", "metadata": {}, "source": "b"});
        notebook["cells"][1] = cell;
    });
    let mine = text.replace("b\n", "bb\n");
    let message = refused(folder.write(&caller, &mine));
    assert!(
        message
            .contains("[in the file now]\n# %% [markdown] cell:1\nb\n[your version]\n# %% [code] cell:1\nbb"),
        "{message}"
    );
    for action in [edit(1, "bb"), delete(1)] {
        refused(folder.act(&caller, &action));
    }
    // Untouched, it stays as the person made it; with the same type, the edit is the caller's alone.
    folder.write(&caller, &text.replace("a\n", "aa\n")).unwrap();
    folder
        .write(&caller, &mine.replace("[code] cell:1", "[markdown] cell:1").replace("a\n", "aa\n"))
        .unwrap();
    assert_eq!(folder.sources(), ["aa", "bb"]);
}

#[test]
fn an_earlier_version_that_the_person_went_back_to_was_written_over() {
    let (folder, caller) = (TestFolder::new(&["v1", "b"]), TestCaller::default());
    folder.read(&caller, "");
    folder.person(|notebook| notebook["cells"][0]["source"] = json!("v2"));
    let text = folder.read(&caller, "").shown.text();
    folder.person(|notebook| notebook["cells"][0]["source"] = json!("v1"));
    let message = refused(folder.write(&caller, &text.replace("v2", "v2 plus")));
    assert!(message.contains("v1") && message.contains("v2 plus"), "{message}");
    refused(folder.act(&caller, &edit(0, "v2 plus")));
    refused(folder.act(&caller, &delete(0)));
    assert_eq!(folder.sources(), ["v1", "b"]);
}

#[test]
fn an_earlier_version_of_a_cell_that_was_shown_at_another_number_was_written_over() {
    let (folder, caller) = (TestFolder::new(&["a", "b"]), TestCaller::default());
    folder.read(&caller, "");
    folder.person(|notebook| {
        notebook["cells"][1]["source"] = json!("b, changed");
        let new = json!({"cell_type": "markdown", "id": "new", "metadata": {}, "source": "new"});
        notebook["cells"].as_array_mut().unwrap().insert(0, new);
    });
    folder.read(&caller, "#2");
    folder.person(|notebook| notebook["cells"][2]["source"] = json!("b"));
    let message = refused(folder.act(&caller, &edit(2, "mine")));
    assert!(message.contains("changed"), "{message}");
    assert_eq!(folder.sources(), ["new", "a", "b"]);
}

#[test]
fn without_ids_too_an_earlier_version_is_not_written_over() {
    let (folder, caller) = (TestFolder::without_ids(&["v1", "b"]), TestCaller::default());
    folder.read(&caller, "");
    folder.person(|notebook| notebook["cells"][0]["source"] = json!("v2"));
    let text = folder.read(&caller, "").shown.text();
    folder.person(|notebook| notebook["cells"][0]["source"] = json!("v1"));
    refused(folder.write(&caller, &text.replace("v2", "v2 plus")));
    refused(folder.act(&caller, &edit(0, "v2 plus")));
    assert_eq!(folder.sources(), ["v1", "b"]);
}

#[test]
fn an_edit_of_a_marker_changed_another_cell_than_the_one_that_was_read() {
    let (folder, caller) = (TestFolder::new(&["a", "b"]), TestCaller::default());
    folder.read(&caller, "");
    folder.person(|notebook| notebook["cells"].as_array_mut().unwrap().reverse());
    let message = refused(folder.edit(&caller, "# %% [code] cell:0", "# %% [markdown] cell:0"));
    assert!(message.contains("another cell is at 0 now, the one you read is at 1"), "{message}");
    // Also where only the new text names a cell.
    refused(folder.edit(&caller, "a\n", "a\n# %% [code] cell:0\nmore\n"));
    folder.edit(&caller, "a", "aa").unwrap();
    folder.read(&caller, "");
    folder.edit(&caller, "# %% [code] cell:0", "# %% [markdown] cell:0").unwrap();
}

#[test]
fn notebook_json_took_away_the_outputs_of_the_persons_run() {
    let (folder, caller) = (TestFolder::new(&["a", "b"]), TestCaller::default());
    let json = folder.read(&caller, ":raw").shown.text().replace("\"a\"", "\"aa\"");
    folder.person(|notebook| notebook["cells"][1]["outputs"] = output("1\n"));
    let message = refused(folder.write(&caller, &json));
    assert!(
        message.contains("outputs, metadata or the order of cells are not as you last saw them"),
        "{message}"
    );
    // A look at another cell does not show them.
    folder.read(&caller, "#0");
    refused(folder.write(&caller, &json));
    let json = folder.read(&caller, ":raw").shown.text().replace("\"b\"", "\"bb\"");
    folder.write(&caller, &json).unwrap();
    // What the caller changes itself, it knows.
    folder.act(&caller, &edit(0, "mine")).unwrap();
    folder.write(&caller, &json).unwrap();
}

#[test]
fn the_callers_own_edit_was_blamed_on_others() {
    for read in ["search", ":1-2"] {
        let (folder, caller) = (TestFolder::new(&["alpha\nbeta\ngamma", "b"]), TestCaller::default());
        match read {
            "search" => drop(folder.search(&caller, "alpha")),
            lines => drop(folder.read(&caller, lines)),
        }
        folder.edit(&caller, "alpha", "A").unwrap();
        folder.edit(&caller, "beta", "B").unwrap();
        folder.undo(&caller).unwrap();
        folder.edit(&caller, "beta", "BB").unwrap();
        assert_eq!(folder.sources(), ["A\nBB\ngamma", "b"]);
        // The line that was not shown is still not seen.
        let message = refused(folder.act(&caller, &edit(0, "mine")));
        assert!(message.contains("you have not seen all of cell 0"), "{message}");
        folder.read(&caller, "#0");
        folder.act(&caller, &edit(0, "mine")).unwrap();
    }
}

#[test]
fn the_callers_own_edit_after_a_persons_new_cell_was_blamed_on_others() {
    for folder in [TestFolder::new(&["a", "b"]), TestFolder::without_ids(&["a", "b"])] {
        let caller = TestCaller::default();
        let text = folder.read(&caller, "").shown.text();
        folder.person(|notebook| {
            let mut new = notebook["cells"][0].clone();
            new["source"] = json!("new");
            if new.get("id").is_some() {
                new["id"] = json!("new");
            }
            notebook["cells"].as_array_mut().unwrap().insert(0, new);
        });
        folder.edit(&caller, "b", "b1").unwrap();
        folder.edit(&caller, "b1", "b2").unwrap();
        folder.edit(&caller, "b2", "b").unwrap();
        folder.write(&caller, &text.replace("a\n", "aa\n")).unwrap();
        folder.write(&caller, &text.replace("a\n", "aaa\n")).unwrap();
        assert_eq!(folder.sources(), ["new", "aaa", "b"]);
    }
}

#[test]
fn the_callers_own_edit_was_merged_as_if_others_had_made_it() {
    let (folder, caller) = (TestFolder::new(&["a", "b", "c"]), TestCaller::default());
    let text = folder.read(&caller, "").shown.text();
    folder.edit(&caller, "a", "mine").unwrap();
    let report = folder.write(&caller, &text.replace("b\n", "bb\n")).unwrap().to_string();
    assert_eq!(
        report,
        "edited code cell 1 (3 cells now)\n\
         note: cell 0 stays as you changed it since you read the whole notebook"
    );
    folder.read(&caller, "");
    folder.edit(&caller, "mine", "mine too").unwrap();
    folder.person(|notebook| notebook["cells"][2]["source"] = json!("the person's"));
    let text = "# %% [code] cell:0\nmine\n# %% [code] cell:1\nb2\n# %% [code] cell:2\nc\n";
    let report = folder.write(&caller, text).unwrap().to_string();
    assert!(report.contains("note: cell 0 stays as you changed it"), "{report}");
    assert!(report.contains("merged with what others changed since you read it: cell 2 edited"), "{report}");
}

#[test]
fn after_the_callers_own_undo_its_next_edit_is_not_refused() {
    let (folder, caller) = (TestFolder::new(&["a", "b"]), TestCaller::default());
    folder.read(&caller, "");
    folder.act(&caller, &edit(0, "aa")).unwrap();
    folder.undo(&caller).unwrap();
    folder.act(&caller, &edit(0, "aaa")).unwrap();
    let by_id = Action::Edit { cell: CellRef::Id("b".to_owned()), source: "bb".to_owned() };
    folder.act(&caller, &by_id).unwrap();
    folder.undo(&caller).unwrap();
    folder.act(&caller, &by_id).unwrap();
}

#[test]
fn a_line_longer_than_a_page_never_counted_as_seen() {
    let long = "x".repeat(3 * PAGE);
    let (folder, caller) = (TestFolder::new(&[&format!("a\n{long}\nb"), "c"]), TestCaller::default());
    let (mut selector, mut text) = (String::new(), String::new());
    loop {
        let message = refused(folder.act(&caller, &edit(0, "mine")).and_then(|_| {
            folder.undo(&caller).unwrap();
            folder.write(&TestCaller::default(), "# %% [code]\nx\n")
        }));
        let read = folder.read(&caller, &selector);
        text += &read.shown.text();
        let next = read.shown.notes().iter().find_map(|note| note.split_once("go on with nb.ipynb"));
        let Some((_, next)) = next else { break };
        assert!(selector.is_empty() || message.contains("you have not seen all of cell 0"), "{message}");
        selector = next.trim_end_matches(']').to_owned();
    }
    assert_eq!(text, folder.notebook().to_marked_text());
    folder.act(&caller, &edit(0, "mine")).unwrap();
}

#[test]
fn a_cell_for_the_end_was_put_before_the_last_cell() {
    let (folder, caller) = (TestFolder::new(&["a", "b"]), TestCaller::default());
    folder.read(&caller, "");
    folder.person(|notebook| {
        let mut new = notebook["cells"][0].clone();
        new["id"] = json!("new");
        notebook["cells"].as_array_mut().unwrap().insert(0, new);
    });
    let insert = |at| Action::Insert { at, cells: vec![NewCell::new(CellKind::Code, "end")] };
    let message = refused(folder.act(&caller, &insert(Some(2))));
    assert!(message.contains("another cell is at 2 now"), "{message}");
    folder.act(&caller, &insert(None)).unwrap();
    folder.read(&caller, "");
    folder.act(&caller, &insert(Some(4))).unwrap();
    folder.act(&caller, &insert(Some(5))).unwrap();
    assert_eq!(folder.sources(), ["a", "a", "b", "end", "end", "end"]);
}

#[test]
fn a_cell_that_the_text_changed_was_reported_to_stay() {
    let (folder, caller) = (TestFolder::new(&["a", "b"]), TestCaller::default());
    let text = folder.read(&caller, "").shown.text();
    folder.edit(&caller, "a", "mine").unwrap();
    let report = folder.write(&caller, &text.replace("a\n", "mine, too\n")).unwrap().to_string();
    assert_eq!(report, "edited code cell 0 (2 cells now)");
    // The same of a version by others that the caller has seen.
    folder.read(&caller, "");
    folder.person(|notebook| notebook["cells"][1]["source"] = json!("theirs"));
    folder.read(&caller, "#1");
    let text = "# %% [code] cell:0\nmine, too\n# %% [code] cell:1\nmy answer\n";
    let report = folder.write(&caller, text).unwrap().to_string();
    assert_eq!(report, "edited code cell 1 (2 cells now)");
}

#[test]
fn a_cell_that_lost_its_number_was_retyped_in_a_version_that_the_caller_had_not_seen() {
    let (folder, caller) = (TestFolder::new(&["a", "b"]), TestCaller::default());
    folder.read(&caller, "");
    folder.person(|notebook| {
        let cells = notebook["cells"].as_array_mut().unwrap();
        cells.swap(0, 1);
        cells[0]["source"] = json!("the person's");
    });
    // Number 1 means cell `a` from here on, and cell `b` has no number that the caller was shown.
    folder.read(&caller, "#1");
    folder.person(|notebook| drop(notebook["cells"].as_array_mut().unwrap().remove(1)));
    folder.read(&caller, ":raw:1-2");
    let retype = Action::Retype { cells: vec![CellRef::Id("b".to_owned())], kind: CellKind::Markdown };
    let message = refused(folder.act(&caller, &retype));
    assert!(message.contains("changed since you read it"), "{message}");
}

#[test]
fn of_two_cells_with_one_id_the_wrong_one_was_deleted() {
    let (folder, caller) = (TestFolder::new(&["x", "y", "z"]), TestCaller::default());
    folder.person(|notebook| notebook["cells"][1]["id"] = json!("a"));
    let text = folder.read(&caller, "").shown.text();
    // Nobody else changes anything, so nothing is merged.
    folder.act(&caller, &edit(1, "yy")).unwrap();
    let report = folder.write(&caller, &text.replace("z\n", "zz\n")).unwrap().to_string();
    assert_eq!(
        report,
        "edited code cell 2 (3 cells now)\n\
         note: cell 1 stays as you changed it since you read the whole notebook"
    );
    folder.read(&caller, "");
    folder.person(|notebook| {
        let mut new = notebook["cells"][2].clone();
        (new["id"], new["source"]) = (json!("new"), json!("new"));
        notebook["cells"].as_array_mut().unwrap().insert(0, new);
    });
    let message = refused(folder.act(&caller, &delete(1)));
    assert!(
        message.contains("another cell is at 1 now, the one you read is at 2; read it again"),
        "{message}"
    );
    assert_eq!(folder.sources(), ["new", "x", "yy", "zz"]);
}

#[test]
fn a_number_that_was_past_the_end_for_a_while_meant_the_persons_new_cell() {
    let (folder, caller) = (TestFolder::new(&["x", "y", "z"]), TestCaller::default());
    folder.read(&caller, "");
    folder.person(|notebook| drop(notebook["cells"].as_array_mut().unwrap().remove(0)));
    folder.read(&caller, "#0");
    folder.person(|notebook| {
        let mut new = notebook["cells"][0].clone();
        (new["id"], new["source"]) = (json!("new"), json!("the person's"));
        notebook["cells"].as_array_mut().unwrap().push(new);
    });
    let message = refused(folder.act(&caller, &delete(2)));
    assert!(message.contains("another cell is at 2 now, the one you read is at 1"), "{message}");
    folder.read(&caller, "#2");
    folder.act(&caller, &delete(2)).unwrap();
    assert_eq!(folder.sources(), ["y", "z"]);
}
