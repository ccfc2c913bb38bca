//! Nesting near the limit: what can be read can be changed in every way, and what cannot is refused by every reader.

use cellwright_notebook::file::skim;
use cellwright_notebook::recording::Recording;
use cellwright_notebook::{Action, CellKind, CellRef, NewCell, Notebook, OutputsAfterEdit, ParseError};
use proptest::prelude::*;
use proptest::sample::select;

/// Where in a notebook something is nested, with the brackets that are open around it there.
const PLACES: [(&str, usize); 5] =
    [("root", 1), ("root metadata", 2), ("cell", 3), ("cell metadata", 4), ("output", 6)];

fn nested(place: &str, levels: usize) -> String {
    let deep = "[".repeat(levels) + &"]".repeat(levels);
    let at = |name: &str, otherwise: &str| if name == place { deep.clone() } else { otherwise.to_owned() };
    format!(
        r#"{{"cells":[{{"cell_type":"code","deep":{},"execution_count":1,"id":"a","metadata":{{"deep":{}}},"outputs":[{{"output_type":"display_data","metadata":{{}},"data":{{"application/json":{}}}}}],"source":["x"]}},{{"cell_type":"markdown","id":"b","metadata":{{}},"source":"y"}}],"deep":{},"metadata":{{"deep":{}}},"nbformat":4,"nbformat_minor":5}}"#,
        at("cell", "0"),
        at("cell metadata", "0"),
        at("output", "0"),
        at("root", "0"),
        at("root metadata", "0"),
    )
}

/// Does to a notebook all that can be done to it, each time on the text that it was left with.
fn do_everything(notebook: &Notebook) {
    let cell = || CellRef::Index(0);
    let new = || vec![NewCell::new(CellKind::Code, "new\nlines")];
    let actions = [
        Action::Edit { cell: cell(), source: "z\nzz".to_owned() },
        Action::Insert { at: None, cells: new() },
        Action::Insert { at: Some(0), cells: new() },
        Action::Retype { cells: vec![cell()], kind: CellKind::Markdown },
        Action::Retype { cells: vec![cell()], kind: CellKind::Raw },
        Action::Move { cells: vec![cell()], to: 1 },
        Action::Delete { cells: vec![cell()] },
        Action::Clear { cells: None },
    ];
    let readable = |changed: &Notebook| {
        let again =
            Notebook::parse(changed.text().as_bytes().to_vec()).expect("what was written is a notebook");
        assert_eq!(again.to_marked_text(), changed.to_marked_text());
    };
    for action in &actions {
        for outputs in [OutputsAfterEdit::Clear, OutputsAfterEdit::Keep] {
            let edited = notebook.act(action, outputs).expect("there is a cell 0");
            edited.notebook.as_ref().inspect(|changed| readable(changed));
        }
    }
    for cell in notebook.cells() {
        let outputs = cell.outputs();
        for output in &outputs {
            assert!(!output.raw().is_empty());
        }
    }
    drop(notebook.to_marked_text());
    for cell in notebook.cells() {
        drop((cell.tags(), cell.outputs(), cell.source(), cell.execution_count()));
    }
    drop((notebook.language(), notebook.kernel_name()));
    readable(&notebook.with_metadata("new", &serde_json::json!({ "a": [1] })));
    let mut recording = Recording::new(1 << 20);
    recording.begin(0, None);
    recording.end(0, Some(2), String::new);
    readable(&notebook.with_results([(0, &recording.results(0))]));
    let data = [("text/plain".to_owned(), "shown".into())];
    let bundle = serde_json::Map::from_iter(data).into();
    if let Some(changed) = notebook.with_display(0, 0, &bundle) {
        readable(&changed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn whatever_can_be_read_can_be_changed_however_deep_it_is((place, around) in select(PLACES.to_vec()), over in -6_isize..6) {
        let levels = usize::try_from(900 - isize::try_from(around).expect("small") + over).expect("positive");
        let text = nested(place, levels);
        let read = Notebook::parse(text.clone().into_bytes());
        prop_assert_eq!(read.is_ok(), over <= 0, "{} levels in {}", levels, place);
        prop_assert_eq!(skim(text.as_bytes(), 1000).is_some(), over <= 0, "{} levels in {}", levels, place);
        if let Ok(notebook) = read {
            do_everything(&notebook);
        }
    }
}

/// `read` accepted it; `show`, `insert`, `edit` and `retype` panicked.
#[test]
fn a_cell_nested_900_deep_is_refused_with_a_reason_and_one_of_896_can_be_edited() {
    let error = Notebook::parse(nested("cell metadata", 900).into_bytes()).expect_err("too deep");
    let ParseError::Malformed { reason, .. } = error else { panic!("{error:?}") };
    assert_eq!(reason, "nested deeper than 900 levels");
    do_everything(&Notebook::parse(nested("cell metadata", 896).into_bytes()).expect("not too deep"));
}
