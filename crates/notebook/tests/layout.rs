//! The white space between cells: whatever it is, moving a cell there and back changes no byte.

use cellwright_notebook::{Action, CellKind, CellRef, NewCell, Notebook, OutputsAfterEdit};

/// What stands after the opening bracket, around the commas, and before the closing bracket.
const LAYOUTS: [[&str; 4]; 5] = [
    ["", "", "", ""],
    [" ", " ", " ", " "],
    ["\n", "\n", "\n", "\n"],
    ["\n ", "", "\n ", "\n"],
    ["", " ", "", " "],
];

fn notebook([first, before, after, last]: [&str; 4]) -> Notebook {
    let cells = ["a", "b", "c", "d"]
        .map(|source| format!(r#"{{"cell_type" : "raw" , "metadata" : {{}} , "source" : "{source}"}}"#));
    let cells = cells.join(&format!("{before},{after}"));
    let text = format!(
        r#"{{"cells" : [{first}{cells}{last}] , "metadata":{{}}, "nbformat":4, "nbformat_minor":4}}"#
    );
    Notebook::parse(text.into_bytes()).unwrap()
}

fn act(notebook: &Notebook, action: &Action) -> Notebook {
    notebook.act(action, OutputsAfterEdit::Clear).unwrap().notebook.expect("it changed")
}

#[test]
fn a_space_before_a_comma_went_when_a_cell_was_moved_and_moved_back() {
    for layout in LAYOUTS {
        let before = notebook(layout);
        for (from, to) in (0..4).flat_map(|from| (0..4).map(move |to| (from, to))).filter(|(a, b)| a != b) {
            let moved = |from, to| Action::Move { cells: vec![CellRef::Index(from)], to };
            let back = act(&act(&before, &moved(from, to)), &moved(to, from));
            assert_eq!(back.text(), before.text(), "{from} to {to}");
        }
    }
}

#[test]
fn a_new_cell_is_set_like_its_neighbours_and_leaves_nothing_behind() {
    for layout in LAYOUTS {
        let before = notebook(layout);
        for at in 0..=4 {
            let insert = Action::Insert { at: Some(at), cells: vec![NewCell::new(CellKind::Raw, "new")] };
            let with_new = act(&before, &insert);
            let [first, comma_before, comma_after, last] = layout;
            let cells: Vec<_> = with_new.cells().map(|cell| cell.raw().to_owned()).collect();
            let all = format!("[{first}{}{last}]", cells.join(&format!("{comma_before},{comma_after}")));
            assert!(with_new.text().contains(&all), "{at}: {}", with_new.text());
            let without = act(&with_new, &Action::Delete { cells: vec![CellRef::Index(at)] });
            assert_eq!(without.text(), before.text(), "{at}");
        }
    }
}
