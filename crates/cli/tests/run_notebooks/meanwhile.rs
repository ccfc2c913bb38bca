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
