//! What must hold for every notebook and every text. Called by the property tests, the corpus test and the fuzz target.

use cellwright_notebook::replace::{Matches, TextKind, TextReplacement, replace};
use cellwright_notebook::{
    Action, CellChange, CellKind, CellRef, Fingerprint, NewCell, Notebook, OutputsAfterEdit, file, text,
};

/// A source with everything that could go wrong on the way through JSON and through markers.
const AWKWARD: &str = "# %% [code]\n\"é\\\u{1}\r\n\u{2028}#%%\n";

/// Any bytes at all, as a file and as marked text.
pub(crate) fn hold_for_bytes(bytes: &[u8]) {
    match Notebook::parse(bytes.to_vec()) {
        Ok(notebook) => hold_for(&notebook),
        Err(error) => assert!(file::skim(bytes, 64).is_none(), "skimmed, but {error}"),
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(cells) = text::parse(text)
    {
        let written = Notebook::empty()
            .write(&cells, OutputsAfterEdit::Clear)
            .unwrap()
            .notebook
            .unwrap_or_else(Notebook::empty);
        let expected: Vec<_> = cells.into_iter().map(|cell| cell.cell).collect();
        assert_eq!(contents(&written), expected);
    }
}

/// Every law, with edits that touch the places where splicing could go wrong: ends, middles, awkward sources.
pub(crate) fn hold_for(notebook: &Notebook) {
    printing_and_parsing_changes_nothing(notebook);
    skimming_finds_what_reading_finds(notebook);
    for index in [0, notebook.len() / 2, notebook.len().saturating_sub(1)] {
        inserting_adds_just_that(notebook, index.min(notebook.len()), AWKWARD);
        if index < notebook.len() {
            editing_changes_only_that_cell(notebook, index, AWKWARD);
            editing_changes_only_that_cell(notebook, index, "");
            deleting_removes_just_that(notebook, index);
            moving_keeps_every_cell(notebook, index, notebook.len() - 1 - index);
            for kind in [CellKind::Code, CellKind::Markdown, CellKind::Raw] {
                retyping_keeps_the_rest(notebook, index, kind);
            }
        }
    }
    inserting_adds_just_that(notebook, notebook.len(), "");
    replacing_around_a_marker_keeps_every_cell(notebook);
}

fn skimming_finds_what_reading_finds(notebook: &Notebook) {
    for chunk in [1 + notebook.size() / 7, 1 << 20] {
        // It may leave an odd one to the reader of all.
        if let Some((sources, seen)) = file::skim(notebook.text().as_bytes(), chunk) {
            assert_eq!(seen, Fingerprint::of_file(notebook));
            assert_eq!(sources.to_marked_text(), notebook.to_marked_text());
            assert_eq!(sources.language(), notebook.language());
        }
    }
}

pub(crate) fn printing_and_parsing_changes_nothing(notebook: &Notebook) {
    let cells = text::parse(&notebook.to_marked_text()).expect("printed text parses");
    let edited = notebook.write(&cells, OutputsAfterEdit::Clear).unwrap();
    assert!(edited.notebook.is_none(), "unedited text changed the notebook: {}", edited.report);
}

pub(crate) fn editing_changes_only_that_cell(notebook: &Notebook, index: usize, source: &str) {
    let action = Action::Edit { cell: CellRef::Index(index), source: source.to_owned() };
    let Some(edited) = act(notebook, &action) else {
        assert_eq!(notebook.cell(index).source(), source);
        return;
    };
    assert_eq!(edited.cell(index).source(), source);
    assert_eq!(edited.cell(index).kind(), notebook.cell(index).kind());
    assert_eq!(edited.cell(index).id(), notebook.cell(index).id());
    if notebook.cell(index).kind() == CellKind::Code {
        assert_eq!(edited.cell(index).outputs().len(), 0);
    }
    assert_eq!(around(&edited, index..index + 1), around(notebook, index..index + 1));
    printing_and_parsing_changes_nothing(&edited);
    // The same through the text. (A U+FFFD that was a lone surrogate is the one thing the text cannot tell apart.)
    let mut cells = text::parse(&notebook.to_marked_text()).unwrap();
    source.clone_into(&mut cells[index].cell.source);
    assert_eq!(
        notebook.write(&cells, OutputsAfterEdit::Clear).unwrap().notebook.unwrap().text(),
        edited.text()
    );
}

pub(crate) fn inserting_adds_just_that(notebook: &Notebook, at: usize, source: &str) {
    let cells = vec![NewCell::new(CellKind::Code, source), NewCell::new(CellKind::Markdown, "")];
    let mut expected = contents(notebook);
    expected.splice(at..at, cells.clone());
    let edited = act(notebook, &Action::Insert { at: Some(at), cells }).expect("an insert changes the file");
    assert_eq!(contents(&edited), expected);
    assert_eq!(edited.cell(at).id().is_some(), notebook.has_ids());
    let (before, after) = (at..at, at..at + 2);
    assert_eq!(raw_without(&edited, after), raw_without(notebook, before));
    // Deleting what was inserted gives the file back, to the byte.
    let both = vec![CellRef::Index(at), CellRef::Index(at + 1)];
    let undone = act(&edited, &Action::Delete { cells: both }).unwrap();
    if !notebook.is_empty() {
        assert_eq!(undone.text(), notebook.text());
    }
}

pub(crate) fn deleting_removes_just_that(notebook: &Notebook, index: usize) {
    let edited = act(notebook, &Action::Delete { cells: vec![CellRef::Index(index)] }).unwrap();
    assert_eq!(raw_without(&edited, 0..0), raw_without(notebook, index..index + 1));
}

pub(crate) fn moving_keeps_every_cell(notebook: &Notebook, from: usize, to: usize) {
    let mut expected = raw_without(notebook, 0..0);
    let moved = expected.remove(from);
    expected.insert(to, moved);
    match act(notebook, &Action::Move { cells: vec![CellRef::Index(from)], to }) {
        Some(edited) => assert_eq!(raw_without(&edited, 0..0), expected),
        None => assert_eq!(from, to),
    }
}

pub(crate) fn retyping_keeps_the_rest(notebook: &Notebook, index: usize, kind: CellKind) {
    let Some(edited) = act(notebook, &Action::Retype { cells: vec![CellRef::Index(index)], kind }) else {
        assert_eq!(notebook.cell(index).kind(), kind);
        return;
    };
    let (old, new) = (notebook.cell(index), edited.cell(index));
    assert_eq!((new.kind(), new.id(), new.source()), (kind, old.id(), old.source()));
    assert_eq!(around(&edited, index..index + 1), around(notebook, index..index + 1));
    let has = |key: &str| new.raw().contains(&format!("\"{key}\""));
    if kind == CellKind::Code {
        assert!(has("outputs") && has("execution_count"));
    }
}

fn replacing_around_a_marker_keeps_every_cell(notebook: &Notebook) {
    let text = notebook.to_marked_text();
    let markers: Vec<_> = text.lines().filter(|line| line.starts_with("# %% [")).collect();
    let Some(marker) = markers.get(notebook.len() / 2) else {
        return;
    };
    let start = marker.as_ptr() as usize - text.as_ptr() as usize;
    for edge in [start, start + marker.len()] {
        for (before, after) in [(2, 0), (1, 1), (0, 2), (2, 2)] {
            let from = text[..edge].char_indices().rev().take(before).last().map_or(edge, |(at, _)| at);
            let old: String = text[from..edge].chars().chain(text[edge..].chars().take(after)).collect();
            for new in ["", "x"] {
                replacing_keeps_every_cell(notebook, &old, new, Matches::All);
            }
        }
    }
}

/// An edit that shows no marker changes sources and nothing else: the notebook after it, if it is possible.
pub(crate) fn replacing_keeps_every_cell(
    notebook: &Notebook,
    old: &str,
    new: &str,
    matches: Matches,
) -> Option<Notebook> {
    assert!(!old.contains("# %% [") && !new.contains("# %% ["));
    let replacement = TextReplacement { old: old.to_owned(), new: new.to_owned(), matches };
    let text = replace(&notebook.to_marked_text(), TextKind::Marked, &[replacement]).ok()?.text;
    let cells = text::parse(&text).ok()?;
    let origins: Vec<_> = cells.iter().map(|cell| (cell.origin, cell.cell.kind)).collect();
    let expected: Vec<_> = notebook.cells().map(|cell| (Some(cell.index()), cell.kind())).collect();
    assert_eq!(origins, expected, "{old:?} by {new:?} gave {text:?}");
    let edited = notebook.write(&cells, OutputsAfterEdit::Clear).unwrap();
    assert!(edited.report.cells.iter().all(|cell| cell.change == CellChange::Edited), "{}", edited.report);
    edited.notebook
}

fn act(notebook: &Notebook, action: &Action) -> Option<Notebook> {
    let edited = notebook.act(action, OutputsAfterEdit::Clear).expect("the cell is there").notebook?;
    // What the splicer says of its result is what a reader of the file would find.
    let read = Notebook::parse(edited.text().into()).expect("a spliced notebook is a notebook");
    let index = |notebook: &Notebook| {
        notebook
            .cells()
            .map(|cell| format!("{:?} {:?} {}", cell.kind(), cell.id(), cell.raw()))
            .collect::<Vec<_>>()
    };
    assert_eq!(index(&edited), index(&read));
    assert_eq!(edited.pieces().collect::<String>(), edited.text());
    assert_eq!((edited.size(), edited.language()), (read.size(), read.language()));
    assert_eq!(Fingerprint::of_file(&edited), Fingerprint::of(read.text().as_bytes()));
    // And it can be edited as the file could.
    let last = CellRef::Index(read.len().saturating_sub(1));
    for action in [
        Action::Clear { cells: None },
        Action::Move { cells: vec![last.clone()], to: 0 },
        Action::Edit { cell: last, source: AWKWARD.to_owned() },
    ] {
        let again = |notebook: &Notebook| {
            let edited = notebook.act(&action, OutputsAfterEdit::Clear).ok()?.notebook?;
            Some(edited.text().to_owned())
        };
        assert_eq!(again(&edited), again(&read));
    }
    Some(edited)
}

fn contents(notebook: &Notebook) -> Vec<NewCell> {
    notebook.cells().map(|cell| NewCell::new(cell.kind(), cell.source())).collect()
}

/// The file's text before and after some cells.
fn around(notebook: &Notebook, cells: std::ops::Range<usize>) -> (String, String) {
    // Read from one text: after an edit, cells are in several.
    let notebook = Notebook::parse(notebook.text().into()).expect("it is a notebook");
    let base = notebook.text().as_ptr() as usize;
    let start = notebook.cell(cells.start).raw().as_ptr() as usize - base;
    let last = notebook.cell(cells.end - 1).raw();
    let end = last.as_ptr() as usize - base + last.len();
    (notebook.text()[..start].to_owned(), notebook.text()[end..].to_owned())
}

/// The JSON of every cell but some.
fn raw_without(notebook: &Notebook, cells: std::ops::Range<usize>) -> Vec<&str> {
    notebook.cells().filter(|cell| !cells.contains(&cell.index())).map(|cell| cell.raw()).collect()
}
