//! An edit of a notebook at a terminal: a line that says what was done to which cell, and its source, as a difference if
//! there was one before.

use std::time::Duration;

use cellwright_editing::EditReport;
use cellwright_notebook::{CellChange, CellKind, TouchedCell, index_ranges, line_hunks};
use cellwright_output::{Counted, visible};

use super::PreviewLines;
use crate::draw::code;
use crate::draw::style::{StyledText, TextPen, TextStyle, painted};
use crate::draw::wrap::{clipped, wrapped_line};

/// Lines around a change.
const CONTEXT: usize = 3;

/// How long the shortest difference is looked for.
const PATIENCE: Duration = Duration::from_millis(200);

/// Cells whose sources are shown.
const MOST_CELLS: usize = 10;

/// How edits are drawn.
#[derive(Debug, Clone)]
pub(crate) struct EditLook {
    pub(crate) pen: TextPen,
    pub(crate) columns: usize,
    pub(crate) preview: PreviewLines,
    /// The notebook's language.
    pub(crate) language: String,
}

/// The rows of an edit that was made.
pub(crate) fn rows(report: &EditReport, look: &EditLook) -> Vec<String> {
    let change = &report.report;
    let mut rows = vec![look.fit(&summary(report))];
    let is_alone = change.cells.len() == 1;
    let shown = match look.preview {
        PreviewLines::Collapsed(_) => change.cells.len().min(MOST_CELLS),
        PreviewLines::All => change.cells.len(),
    };
    for cell in &change.cells[..shown] {
        if !is_alone {
            let text = vec![
                (style_of(cell.change), format!("  {} ", cell.change.name())),
                (TextStyle::PLAIN, format!("cell {}", cell.index)),
                (TextStyle::DIM, format!(" · {}", cell.kind)),
            ];
            rows.push(look.fit(&text));
        }
        rows.extend(source_rows(cell, look, is_alone));
    }
    if shown < change.cells.len() {
        let more = Counted((change.cells.len() - shown) as u64, "more cell");
        rows.push(look.fit(&vec![(TextStyle::DIM, format!("  … {more}; --expand shows all"))]));
    }
    for note in &change.notes {
        let note =
            look.pen.paint(TextStyle::DIM, &format!("note: {}", visible(&note.to_string()))).into_owned();
        rows.extend(wrapped_line(&note, look.columns));
    }
    rows
}

/// The line above an error: which file could not be changed.
pub(crate) fn failed_line(path: &str, look: &EditLook) -> String {
    look.fit(&vec![
        (TextStyle::RED.bold(), "✗ ".to_owned()),
        (TextStyle::PLAIN.bold(), visible(path).into_owned()),
        (TextStyle::DIM, "  not changed".to_owned()),
    ])
}

/// `✓ edit  analysis.ipynb  cell 3 · code`
fn summary(report: &EditReport) -> StyledText {
    let change = &report.report;
    let mut text = vec![
        (TextStyle::GREEN.bold(), "✓ ".to_owned()),
        (TextStyle::PLAIN.bold(), change.action.to_owned()),
        (TextStyle::CYAN, format!("  {}", visible(&report.path))),
    ];
    let indices: Vec<_> = change.cells.iter().map(|cell| cell.index).collect();
    match &change.cells[..] {
        [] => text.push((TextStyle::DIM, "  no cell changed".to_owned())),
        [only] => {
            text.push((TextStyle::PLAIN, format!("  cell {}", only.index)));
            text.push((TextStyle::DIM, format!(" · {}", only.kind)));
        }
        _ => text.push((TextStyle::PLAIN, format!("  cells {}", index_ranges(&indices)))),
    }
    text.push((TextStyle::DIM, format!("  {} now", Counted(change.total as u64, "cell"))));
    text
}

fn style_of(change: CellChange) -> TextStyle {
    match change {
        CellChange::Inserted => TextStyle::GREEN,
        CellChange::Deleted => TextStyle::RED,
        CellChange::Edited | CellChange::Retyped => TextStyle::YELLOW,
        CellChange::Moved | CellChange::Cleared | CellChange::Altered => TextStyle::BLUE,
    }
}

fn source_rows(cell: &TouchedCell, look: &EditLook, is_alone: bool) -> Vec<String> {
    let lines = match (&cell.before, cell.change) {
        (Some(before), _) => difference(before, &cell.source, cell.kind, look),
        (None, CellChange::Inserted) => marked(&cell.source, cell.kind, Some(DiffSign::Added), look),
        (None, CellChange::Deleted) => marked(&cell.source, cell.kind, Some(DiffSign::Removed), look),
        (None, _) if is_alone => marked(&cell.source, cell.kind, None, look),
        (None, _) => Vec::new(),
    };
    let most = match look.preview.of_code() {
        PreviewLines::Collapsed(most) if lines.len() > most + 1 => most,
        PreviewLines::Collapsed(_) | PreviewLines::All => lines.len(),
    };
    let mut rows: Vec<_> = lines[..most].to_vec();
    if most < lines.len() {
        let more = Counted((lines.len() - most) as u64, "more line");
        rows.push(look.fit(&vec![(TextStyle::DIM, format!("  … {more}; --expand shows all"))]));
    }
    rows
}

/// What became of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiffSign {
    Added,
    Removed,
}

/// A source with what each of its lines is marked by.
fn marked(source: &str, kind: CellKind, sign: Option<DiffSign>, look: &EditLook) -> Vec<String> {
    coloured(source, kind, look).iter().map(|line| look.line(line, sign)).collect()
}

fn difference(before: &str, after: &str, kind: CellKind, look: &EditLook) -> Vec<String> {
    let (old, new): (Vec<_>, Vec<_>) = (before.split('\n').collect(), after.split('\n').collect());
    let (old_shown, new_shown) = (coloured(before, kind, look), coloured(after, kind, look));
    let mut rows = Vec::new();
    for (at, hunk) in line_hunks(&old, &new, CONTEXT, PATIENCE).into_iter().enumerate() {
        if at > 0 {
            rows.push(look.pen.paint(TextStyle::DIM, "  ⋯").into_owned());
        }
        for run in hunk {
            if run.is_kept {
                rows.extend(new_shown[run.new].iter().map(|line| look.line(line, None)));
            } else {
                rows.extend(old_shown[run.old].iter().map(|line| look.line(line, Some(DiffSign::Removed))));
                rows.extend(new_shown[run.new].iter().map(|line| look.line(line, Some(DiffSign::Added))));
            }
        }
    }
    rows
}

/// The lines of a source in colours.
fn coloured(source: &str, kind: CellKind, look: &EditLook) -> Vec<String> {
    let source = visible(source);
    let coloured = match kind {
        CellKind::Code => code::coloured(&source, &look.language, look.pen),
        CellKind::Markdown | CellKind::Raw => None,
    };
    coloured.unwrap_or_else(|| source.into_owned()).split('\n').map(str::to_owned).collect()
}

impl EditLook {
    fn fit(&self, text: &StyledText) -> String {
        clipped(&painted(text, self.pen), self.columns)
    }

    fn line(&self, line: &str, sign: Option<DiffSign>) -> String {
        let sign = match sign {
            Some(DiffSign::Added) => self.pen.paint(TextStyle::GREEN.bold(), "+ "),
            Some(DiffSign::Removed) => self.pen.paint(TextStyle::RED.bold(), "- "),
            None => self.pen.paint(TextStyle::DIM, "│ "),
        };
        clipped(&format!("  {sign}{line}"), self.columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(preview: PreviewLines) -> EditLook {
        EditLook { pen: TextPen::Plain, columns: 40, preview, language: "python".to_owned() }
    }

    fn cell(source: &str, before: Option<&str>) -> TouchedCell {
        TouchedCell {
            change: if before.is_some() { CellChange::Edited } else { CellChange::Inserted },
            index: 0,
            id: None,
            kind: CellKind::Code,
            source: source.to_owned(),
            before: before.map(str::to_owned),
        }
    }

    #[test]
    fn a_long_source_is_cut_to_twice_the_lines_of_an_output() {
        let lines: Vec<_> = (1..=50).map(|number| format!("x = {number}")).collect();
        let cell = cell(&lines.join("\n"), None);
        let rows = source_rows(&cell, &look(PreviewLines::RUN), true);
        assert_eq!((rows.len(), rows[20].as_str()), (21, "  … 30 more lines; --expand shows all"));
        assert_eq!(rows[19], "  + x = 20");
        assert_eq!(source_rows(&cell, &look(PreviewLines::All), true).len(), 50);
    }

    #[test]
    fn a_difference_has_lines_around_it_and_gaps_between() {
        let old: Vec<_> = (1..=30).map(|number| number.to_string()).collect();
        let mut new = old.clone();
        new[4] = "five".to_owned();
        new.remove(20);
        let rows = source_rows(&cell(&new.join("\n"), Some(&old.join("\n"))), &look(PreviewLines::RUN), true);
        assert_eq!(
            rows,
            [
                "  │ 2", "  │ 3", "  │ 4", "  - 5", "  + five", "  │ 6", "  │ 7", "  │ 8", "  ⋯", "  │ 18",
                "  │ 19", "  │ 20", "  - 21", "  │ 22", "  │ 23", "  │ 24"
            ]
        );
    }
}
