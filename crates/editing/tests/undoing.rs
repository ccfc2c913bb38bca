//! Undoing takes back what a change did, and nothing that others did since.

use cellwright_editing::ChangeOptions;
use cellwright_notebook::{Action, CellKind, NewCell};
use serde_json::{Value, json};

use crate::support::{FORCE, TestCaller, TestFolder, at, delete, output, refused};

fn edit(index: usize, source: &str) -> Action {
    Action::Edit { cell: at(index), source: source.to_owned() }
}

fn cells(notebook: &mut Value) -> &mut Vec<Value> {
    notebook["cells"].as_array_mut().unwrap()
}

/// Undoes the latest change, whatever it is: an undo, too.
fn undo_latest(folder: &TestFolder, caller: &TestCaller) {
    let number = folder.editor(caller).history(&folder.file())[0].number;
    folder.editor(caller).undo(&folder.file(), Some(number), &ChangeOptions::default()).unwrap();
}

#[test]
fn undo_took_away_the_tags_and_outputs_that_the_person_had_added_since() {
    let (folder, caller) = (TestFolder::new(&["a", "b"]), TestCaller::default());
    folder.act(&caller, &edit(0, "aa")).unwrap();
    folder.person(|notebook| {
        let cell = &mut cells(notebook)[0];
        cell["metadata"] = json!({"tags": ["keep"]});
        cell["attached"] = json!(1);
        cell["outputs"] = output("1\n");
    });
    let with_outputs = folder.json();
    let report = folder.undo(&caller).unwrap().to_string();
    assert!(
        report.contains("note: outputs that cell 0 got since that change went; undo this undo"),
        "{report}"
    );
    let cell = &folder.json()["cells"][0];
    assert_eq!(cell["source"], "a");
    assert_eq!((&cell["metadata"], &cell["attached"]), (&json!({"tags": ["keep"]}), &json!(1)));
    assert_eq!(cell["outputs"], json!([]));
    undo_latest(&folder, &caller);
    assert_eq!(folder.json(), with_outputs);
}

#[test]
fn undo_of_clear_took_away_the_outputs_of_the_persons_later_run() {
    let (folder, caller) = (TestFolder::new(&["a"]), TestCaller::default());
    folder.person(|notebook| cells(notebook)[0]["outputs"] = output("old\n"));
    folder.act(&caller, &Action::Clear { cells: None }).unwrap();
    folder.person(|notebook| cells(notebook)[0]["outputs"] = output("new\n"));
    let message = refused(folder.undo(&caller));
    assert!(message.contains("cell 0 was changed since change 1"), "{message}");
    let report = folder.editor(&caller).undo(&folder.file(), None, &FORCE).unwrap().to_string();
    assert!(report.contains("note: outputs that cell 0 got since"), "{report}");
    assert_eq!(folder.json()["cells"][0]["outputs"], output("old\n"));
}

#[test]
fn undo_gave_a_cell_back_the_type_that_the_person_had_changed() {
    let (folder, caller) = (TestFolder::new(&["a"]), TestCaller::default());
    folder.act(&caller, &edit(0, "aa")).unwrap();
    folder.person(|notebook| {
        cells(notebook)[0] = json!({"cell_type": "markdown", "id": "a", "metadata": {}, "source": "aa"});
    });
    let message = refused(folder.undo(&caller));
    assert!(message.contains("cell 0 was changed since change 1"), "{message}");
}

#[test]
fn undo_of_an_insert_reports_the_outputs_that_go_with_the_cell() {
    let (folder, caller) = (TestFolder::new(&["a"]), TestCaller::default());
    let insert = Action::Insert { at: Some(1), cells: vec![NewCell::new(CellKind::Code, "new")] };
    folder.act(&caller, &insert).unwrap();
    folder.person(|notebook| cells(notebook)[1]["outputs"] = output("1\n"));
    let before = folder.json();
    let report = folder.undo(&caller).unwrap().to_string();
    assert!(report.contains("note: outputs that cell 1 got since that change went"), "{report}");
    undo_latest(&folder, &caller);
    assert_eq!(folder.json(), before);
}

#[test]
fn undo_of_a_move_put_all_cells_into_their_old_order() {
    for folder in
        [TestFolder::new(&["a", "b", "c", "d", "e"]), TestFolder::without_ids(&["a", "b", "c", "d", "e"])]
    {
        let caller = TestCaller::default();
        folder.act(&caller, &Action::Move { cells: vec![at(0)], to: 4 }).unwrap();
        assert_eq!(folder.sources(), ["b", "c", "d", "e", "a"]);
        // The person sorts the others in another way.
        folder.person(|notebook| cells(notebook)[0..4].reverse());
        folder.undo(&caller).unwrap();
        assert_eq!(folder.sources(), ["e", "d", "c", "a", "b"]);
        undo_latest(&folder, &caller);
        assert_eq!(folder.sources(), ["e", "d", "c", "b", "a"]);
    }
}

#[test]
fn undo_of_a_move_of_several_cells_gives_the_order_back() {
    for (chosen, to) in
        [(vec![0, 1], 3), (vec![4, 2], 0), (vec![3], 1), (vec![1, 3], 2), (vec![4, 3, 2, 1], 0)]
    {
        let (folder, caller) = (TestFolder::new(&["a", "b", "c", "d", "e"]), TestCaller::default());
        let before = folder.json();
        folder.act(&caller, &Action::Move { cells: chosen.into_iter().map(at).collect(), to }).unwrap();
        folder.undo(&caller).unwrap();
        assert_eq!(folder.json(), before);
    }
}

#[test]
fn undo_made_a_second_cell_with_the_same_id() {
    for folder in [TestFolder::new(&["a", "b", "c"]), TestFolder::without_ids(&["a", "b", "c"])] {
        let caller = TestCaller::default();
        let before = folder.json();
        folder.act(&caller, &delete(0)).unwrap();
        folder.act(&caller, &delete(0)).unwrap();
        // The person has the file back from version control.
        folder.save(&before);
        let report = folder.undo(&caller).unwrap().to_string();
        assert_eq!(
            report,
            "no cell changed (3 cells now)\nnote: this undid change 2\n\
             note: the cell was already back, as cell 1"
        );
        assert!(folder.undo(&caller).unwrap().to_string().contains("as cell 0"));
        assert_eq!(folder.sources(), ["a", "b", "c"]);
        assert!(refused(folder.undo(&caller)).contains("it has no change"));
    }
}

#[test]
fn one_of_two_equal_cells_without_ids_comes_back() {
    let (folder, caller) = (TestFolder::without_ids(&["x", "x", "y"]), TestCaller::default());
    folder.act(&caller, &delete(0)).unwrap();
    folder.undo(&caller).unwrap();
    assert_eq!(folder.sources(), ["x", "x", "y"]);
}

#[test]
fn undo_rewrote_another_cell_that_said_the_same() {
    let (folder, caller) = (TestFolder::without_ids(&["x", "y", "z"]), TestCaller::default());
    folder.act(&caller, &edit(1, "x")).unwrap();
    folder.person(|notebook| drop(cells(notebook).remove(1)));
    let message = refused(folder.undo(&caller));
    assert!(message.contains("cell 1 was changed since change 1"), "{message}");
    assert_eq!(folder.sources(), ["x", "z"]);
    // An inserted cell whose source the person changed is not taken for another one, either.
    let (folder, caller) = (TestFolder::without_ids(&["x", "y"]), TestCaller::default());
    let insert = Action::Insert { at: Some(1), cells: vec![NewCell::new(CellKind::Code, "x")] };
    folder.act(&caller, &insert).unwrap();
    folder.person(|notebook| cells(notebook)[1]["source"] = json!("theirs"));
    refused(folder.undo(&caller));
    assert_eq!(folder.sources(), ["x", "theirs", "y"]);
}

#[test]
fn several_deleted_cells_come_back_beside_their_neighbours() {
    let (folder, caller) = (TestFolder::new(&["a", "b", "c", "d", "e", "f"]), TestCaller::default());
    folder.act(&caller, &Action::Delete { cells: vec![at(0), at(1), at(3), at(4)] }).unwrap();
    folder.person(|notebook| cells(notebook).reverse());
    folder.undo(&caller).unwrap();
    assert_eq!(folder.sources(), ["f", "a", "b", "c", "d", "e"]);
}

#[test]
fn undo_of_a_delete_took_another_text_under_its_id_for_the_deleted_cell() {
    let (folder, caller) = (TestFolder::new(&["a", "b"]), TestCaller::default());
    folder.read(&caller, "");
    folder.act(&caller, &delete(1)).unwrap();
    // As after a split, or by a program that numbers ids anew.
    folder.person(|notebook| {
        let other = json!({
            "cell_type": "code", "execution_count": null, "id": "b", "metadata": {}, "outputs": [], "source": "other",
        });
        cells(notebook).push(other);
    });
    let report = folder.undo(&caller).unwrap().to_string();
    assert!(
        report.contains("note: cell 1 came back with a new id: another cell has the old one by now"),
        "{report}"
    );
    assert_eq!(folder.sources(), ["a", "b", "other"]);
    let ids: Vec<_> = folder.notebook().cells().map(|cell| cell.id().unwrap().into_owned()).collect();
    assert!(ids[1] != "b" && ids[2] == "b", "{ids:?}");
}

#[test]
fn undo_of_a_delete_finds_the_cell_that_a_person_brought_back_and_returns_its_outputs() {
    let (folder, caller) = (TestFolder::new(&["a", "b"]), TestCaller::default());
    folder.person(|notebook| cells(notebook)[1]["outputs"] = output("old\n"));
    let before = folder.json();
    folder.act(&caller, &delete(1)).unwrap();
    folder.save(&before);
    let report = folder.undo(&caller).unwrap().to_string();
    assert!(report.contains("was already back, as cell 1"), "{report}");
    assert_eq!(folder.json(), before);
    folder.act(&caller, &delete(1)).unwrap();
    folder.save(&before);
    folder.person(|notebook| cells(notebook)[1]["outputs"] = json!([]));
    let report = folder.undo(&caller).unwrap().to_string();
    assert!(
        report.contains("cell 1 was there already, without outputs; it has its old ones again"),
        "{report}"
    );
    assert_eq!(folder.json(), before);
}

#[test]
fn undo_of_a_delete_brings_back_one_of_two_cells_with_the_same_id_and_text() {
    let (folder, caller) = (TestFolder::new(&["a", "a"]), TestCaller::default());
    folder.person(|notebook| cells(notebook)[1]["id"] = "a".into());
    folder.act(&caller, &delete(1)).unwrap();
    folder.undo(&caller).unwrap();
    assert_eq!(folder.sources(), ["a", "a"]);
}

#[test]
fn history_showed_a_change_as_made_whose_undo_was_undone_and_done_again() {
    let (folder, caller) = (TestFolder::new(&["a"]), TestCaller::default());
    folder.act(&caller, &edit(0, "aa")).unwrap();
    let undone = || {
        let changes = folder.editor(&caller).history(&folder.file());
        changes.into_iter().filter(|change| change.undone).map(|change| change.number).collect::<Vec<_>>()
    };
    let mut seen = Vec::new();
    for _ in 0..3 {
        undo_latest(&folder, &caller);
        seen.push((folder.sources().concat(), undone()));
    }
    let expected = [("a", vec![1]), ("aa", vec![2]), ("a", vec![3, 1])];
    assert_eq!(seen, expected.map(|(source, undone)| (source.to_owned(), undone)));
    // Nothing is left to undo: the text is the old one.
    assert!(refused(folder.undo(&caller)).contains("it has no change that can be undone"));
}

#[test]
fn undo_was_refused_after_the_person_had_put_the_old_text_back() {
    for folder in [TestFolder::new(&["a", "b"]), TestFolder::without_ids(&["a", "b"])] {
        let caller = TestCaller::default();
        folder.person(|notebook| cells(notebook)[0]["outputs"] = output("old\n"));
        let before = folder.json();
        folder.act(&caller, &edit(0, "aa")).unwrap();
        folder.person(|notebook| cells(notebook)[0]["source"] = json!("a"));
        let report = folder.undo(&caller).unwrap().to_string();
        assert!(report.contains("it has its old ones again"), "{report}");
        assert_eq!(folder.json(), before);
        // A change that was stored, and that was not made because we were killed.
        let caller = TestCaller::default();
        folder.act(&caller, &edit(0, "aa")).unwrap();
        folder.save(&before);
        let report = folder.undo(&caller).unwrap().to_string();
        assert!(report.contains("was already back, as cell 0"), "{report}");
        assert_eq!(folder.json(), before);
    }
}

#[test]
fn undo_of_a_delete_gives_back_the_spaces_before_commas() {
    let cell = |source: &str| format!(r#"{{"cell_type":"raw","metadata":{{}},"source":"{source}"}}"#);
    let cells = ["a", "b", "c"].map(cell).join(" , ");
    let text = format!(r#"{{"cells" : [ {cells} ] , "metadata":{{}} , "nbformat":4 , "nbformat_minor":4 }}"#);
    for index in 0..3 {
        let (folder, caller) = (TestFolder::holding(text.as_bytes()), TestCaller::default());
        folder.act(&caller, &delete(index)).unwrap();
        folder.undo(&caller).unwrap();
        assert_eq!(folder.bytes(), text.as_bytes());
    }
}
