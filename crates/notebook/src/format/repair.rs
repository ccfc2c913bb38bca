//! Repairs that need no guessing.

use std::borrow::Cow;
use std::collections::HashSet;

use super::Repair;
use crate::json::{Json, JsonKind};
use crate::notebook::Notebook;
use crate::report::ChangeNote;

impl Notebook {
    /// The notebook without the problems that [`Notebook::check`] can repair: cells get the ids they lack, or that an earlier
    /// cell has, and lines their line ends. `None` if nothing is missing. Every other byte stays.
    pub fn repaired(&self, repairs: &[Repair]) -> Option<Notebook> {
        let lines = repairs.contains(&Repair::LineEnds).then(|| with_line_ends(self)).flatten();
        let notebook = lines.as_ref().unwrap_or(self);
        let ids = repairs.contains(&Repair::NewId).then(|| with_ids(notebook)).flatten();
        ids.or(lines)
    }

    /// What [`Notebook::repaired`] does, for the caller.
    pub fn repair_notes(&self, repairs: &[Repair]) -> Vec<ChangeNote> {
        let mut notes = Vec::new();
        if repairs.contains(&Repair::NewId) && self.has_ids() {
            let (missing, repeated) = (missing_ids(self), repeated_ids(self));
            notes.extend((!missing.is_empty()).then_some(ChangeNote::IdsAdded { cells: missing }));
            notes.extend((!repeated.is_empty()).then_some(ChangeNote::IdsReplaced { cells: repeated }));
        }
        notes.extend(repairs.contains(&Repair::LineEnds).then_some(ChangeNote::LineEndsAdded));
        notes
    }
}

/// Cells without an id that is a string of their own.
fn with_ids(notebook: &Notebook) -> Option<Notebook> {
    if !notebook.has_ids() {
        return None;
    }
    let mut cells = repeated_ids(notebook);
    cells.extend(missing_ids(notebook));
    (!cells.is_empty()).then(|| notebook.with_new_ids(&cells))
}

/// The cells that have no id.
fn missing_ids(notebook: &Notebook) -> Vec<usize> {
    notebook.cells().filter(|cell| cell.json().get("id").is_none()).map(|cell| cell.index()).collect()
}

/// The cells that have the id of an earlier one.
pub(super) fn repeated_ids(notebook: &Notebook) -> Vec<usize> {
    let mut seen = HashSet::new();
    let is_repeated = |id: &Cow<'_, str>| !seen.insert(id.to_string());
    let mut is_repeated = is_repeated;
    notebook
        .cells()
        .filter_map(|cell| Some((cell.index(), cell.id()?)))
        .filter(|(_, id)| is_repeated(id))
        .map(|(index, _)| index)
        .collect()
}

/// Whether a list of lines has a line in its middle that does not end. `["a = 1", "b = 2"]` is `a = 1b = 2`.
pub(super) fn lacks_line_ends(lines: &Json<'_>) -> bool {
    !unended(lines).is_empty()
}

/// Where the lines end that lack their line ends: at the closing quotes. Nothing for a list whose only such lines are empty.
fn unended(lines: &Json<'_>) -> Vec<usize> {
    let items = lines.elements();
    let Some((_, middle)) = items.split_last() else { return Vec::new() };
    let unended = || {
        middle
            .iter()
            .filter_map(|item| Some((item, item.string()?)))
            .filter(|(_, text)| !text.ends_with('\n'))
    };
    if unended().all(|(_, text)| text.is_empty()) {
        return Vec::new();
    }
    unended().map(|(item, _)| item.span.end - 1).collect()
}

fn with_line_ends(notebook: &Notebook) -> Option<Notebook> {
    let flat = notebook.flat();
    let text = flat.text();
    let mut ends = Vec::new();
    for cell in flat.cells() {
        ends.extend(unended(&cell.source_json()));
        let outputs = cell.json().get("outputs").map(|outputs| outputs.elements()).unwrap_or_default();
        let texts = outputs
            .iter()
            .filter(|output| output.kind() == JsonKind::Object)
            .filter_map(|output| output.get("text"));
        ends.extend(texts.flat_map(|text| unended(&text)));
    }
    if ends.is_empty() {
        return None;
    }
    ends.sort_unstable();
    let mut repaired = String::with_capacity(text.len() + 2 * ends.len());
    let mut from = 0;
    for end in ends {
        repaired.extend([&text[from..end], "\\n"]);
        from = end;
    }
    repaired.push_str(&text[from..]);
    Some(Notebook::parse(repaired.into_bytes()).expect("line ends in strings leave a notebook one"))
}
