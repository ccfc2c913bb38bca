//! What a change takes away is kept, or the change is not made.

use std::fs;

use cellwright_notebook::{Action, CellKind, NewCell};

use crate::support::{FORCE, TestCaller, TestFolder, at, delete, refused};

#[test]
fn a_deleted_cell_that_undo_could_not_keep_was_gone_without_a_word() {
    let (folder, caller) = (TestFolder::new(&["x", "y"]), TestCaller::default());
    folder.break_history();
    let actions = [
        delete(0),
        Action::Edit { cell: at(0), source: "z".to_owned() },
        Action::Retype { cells: vec![at(0)], kind: CellKind::Raw },
    ];
    for action in actions {
        let before = folder.bytes();
        let message = refused(folder.act(&caller, &action));
        let kept = format!(
            "nb.ipynb: nothing was done: undo could not keep what this would replace or delete, because {} cannot \
             be written; make it writable, or use force to go on without undo: ",
            folder.folder().join("history").display()
        );
        assert!(message.starts_with(&kept), "{message}");
        assert_eq!(folder.bytes(), before);
    }
    let forced = folder.editor(&caller).act(&folder.file(), &delete(0), &FORCE).unwrap().to_string();
    assert!(
        forced.contains("note: this change cannot be undone, because it could not be stored: "),
        "{forced}"
    );
    assert_eq!(folder.sources(), ["y"]);
}

#[test]
fn a_new_cell_is_added_with_a_note_when_undo_cannot_keep_the_change() {
    let (folder, caller) = (TestFolder::new(&["x"]), TestCaller::default());
    folder.break_history();
    let insert = Action::Insert { at: None, cells: vec![NewCell::new(CellKind::Code, "new")] };
    let report = folder.act(&caller, &insert).unwrap().to_string();
    assert!(report.contains("note: this change cannot be undone"), "{report}");
    assert_eq!(folder.sources(), ["x", "new"]);
    assert!(fs::read_dir(folder.folder()).unwrap().count() >= 2);
}
