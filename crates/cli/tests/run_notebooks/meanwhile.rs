//! What others do to a notebook while it runs.

use super::{Desk, code, editing};

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
