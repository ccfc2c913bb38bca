//! The one pass over a file that finds its cells.

use std::sync::Arc;

use super::diagnose::malformed;
use super::{Notebook, ParseError, PlacedCell};
use crate::both::{LARGE, both};
use crate::cell::{CellKind, CellSpans};
use crate::json::{Json, JsonScanner, SyntaxError, TextSpan};
use crate::pieces::Pieces;

/// What one pass over the file found. If a key occurs twice, the last one counts.
pub(super) struct NotebookIndex {
    root: TextSpan,
    major: Option<i64>,
    minor: Option<i64>,
    has_worksheets: bool,
    cells: Option<(TextSpan, Vec<CellSpans>)>,
}

impl NotebookIndex {
    pub(super) fn into_notebook(self, text: String) -> Result<Notebook, ParseError> {
        let at_start = |reason: &str| malformed(&text, self.root.start, reason);
        match self.major {
            None if self.has_worksheets => return Err(ParseError::OldFormat { major: 3, file: None }),
            None => return Err(at_start("it has no whole number `nbformat`")),
            Some(major @ ..4) => return Err(ParseError::OldFormat { major, file: None }),
            Some(major @ 5..) => return Err(ParseError::NewFormat { major }),
            Some(4) => {}
        }
        let Some((cells_array, cells)) = self.cells else {
            return Err(at_start("it has no `cells`"));
        };
        let text = Arc::new(text);
        let cells = cells.into_iter().map(|spans| PlacedCell {
            at: spans.whole.start,
            text: Arc::clone(&text),
            spans,
        });
        let cells = cells.collect();
        let minor = self.minor.unwrap_or(0);
        Ok(Notebook { pieces: Pieces::one(text), root: self.root, cells_array, cells, minor })
    }
}

pub(super) fn index(text: &str) -> Result<NotebookIndex, SyntaxError> {
    let bom = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let mut scanner = JsonScanner::new(text, bom);
    scanner.space();
    let start = scanner.at;
    match scanner.peek() {
        None => return scanner.fail("the file is empty"),
        Some(b'{') => {}
        // Valid JSON of another shape deserves that answer; anything else, the scanner's.
        Some(_) => {
            return scanner.value().and_then(|_| {
                JsonScanner::new(text, start).fail("a notebook is a JSON object, this is another value")
            });
        }
    }
    let mut index =
        NotebookIndex { root: start..start, major: None, minor: None, has_worksheets: false, cells: None };
    object(text, &mut scanner, |key, scanner| {
        match key {
            "cells" => index.cells = Some(cells(text, scanner)?),
            "nbformat" => index.major = integer(text, scanner)?,
            "nbformat_minor" => index.minor = integer(text, scanner)?,
            other => {
                index.has_worksheets |= other == "worksheets";
                scanner.value()?;
            }
        }
        Ok(())
    })?;
    index.root.end = scanner.at;
    scanner.space();
    if scanner.peek().is_some() {
        return scanner.fail("text after the end of the notebook");
    }
    Ok(index)
}

/// Steps over an object, handing each key to `member`, which steps over the value.
fn object(
    text: &str,
    scanner: &mut JsonScanner<'_>,
    mut member: impl FnMut(&str, &mut JsonScanner<'_>) -> Result<(), SyntaxError>,
) -> Result<(), SyntaxError> {
    scanner.items(b'}', |scanner| {
        let key = scanner.key()?;
        let key = crate::json::string::decode(&text[key.start + 1..key.end - 1]);
        member(&key, scanner)
    })
}

fn integer(text: &str, scanner: &mut JsonScanner<'_>) -> Result<Option<i64>, SyntaxError> {
    let span = scanner.value()?;
    Ok(Json { text, span }.integer())
}

fn cells(text: &str, scanner: &mut JsonScanner<'_>) -> Result<(TextSpan, Vec<CellSpans>), SyntaxError> {
    let start = scanner.at;
    if scanner.peek() != Some(b'[') {
        return scanner.fail("`cells` must be an array");
    }
    scanner.at += 1;
    scanner.space();
    if scanner.take(b']') {
        return Ok((start..scanner.at, Vec::new()));
    }
    let is_large = text.len() - scanner.at >= LARGE;
    let middle = if is_large { probable_middle(text, scanner.at) } else { None };
    scanner.depth += 1;
    let cells = all_cells(text, scanner, middle)?;
    scanner.depth -= 1;
    Ok((start..scanner.at, cells))
}

/// Steps over the cells of the array and its end. Those from `middle` on are looked at meanwhile, in case a cell starts there.
fn all_cells(
    text: &str,
    scanner: &mut JsonScanner<'_>,
    middle: Option<usize>,
) -> Result<Vec<CellSpans>, SyntaxError> {
    let mut cells = Vec::new();
    let Some(middle) = middle else {
        cells_up_to(usize::MAX, text, scanner, &mut cells)?;
        return Ok(cells);
    };
    let depth = scanner.depth;
    let ahead = || {
        let (mut scanner, mut cells) = (JsonScanner::inside(text, middle, depth), Vec::new());
        cells_up_to(usize::MAX, text, &mut scanner, &mut cells).map(|_| (cells, scanner.at))
    };
    let (ahead, stands_at) = both(ahead, || cells_up_to(middle, text, scanner, &mut cells));
    match (stands_at?, ahead) {
        (ScanPosition::AtTheEnd, _) => {} // no cell starts there
        (ScanPosition::There, Ok((rest, end))) => {
            cells.extend(rest);
            scanner.at = end;
        }
        // Once more, for the number of the cell that is wrong.
        (ScanPosition::There, Err(_)) => {
            cells_up_to(usize::MAX, text, scanner, &mut cells)?;
        }
    }
    Ok(cells)
}

/// Where a scanner of cells has come to.
enum ScanPosition {
    /// At the place asked for, where a cell is to start.
    There,
    /// After the array.
    AtTheEnd,
}

fn cells_up_to(
    place: usize,
    text: &str,
    scanner: &mut JsonScanner<'_>,
    cells: &mut Vec<CellSpans>,
) -> Result<ScanPosition, SyntaxError> {
    loop {
        if scanner.at == place {
            return Ok(ScanPosition::There);
        }
        cells.push(CellSpans::scan(text, scanner, cells.len())?);
        if scanner.delimiter(b']')? {
            return Ok(ScanPosition::AtTheEnd);
        }
    }
}

/// Where, past the middle of the text, something starts the way the cell at `first` does.
fn probable_middle(text: &str, first: usize) -> Option<usize> {
    let mut scanner = JsonScanner::new(text, first + 1);
    scanner.space();
    scanner.key().ok()?;
    let (start, middle) = (&text.as_bytes()[first..scanner.at], first + (text.len() - first) / 2);
    memchr::memmem::find(&text.as_bytes()[middle..], start).map(|at| middle + at)
}

impl CellSpans {
    /// Reads the cell that starts at `at`.
    pub(crate) fn read(text: &str, at: usize, number: usize) -> Result<Self, SyntaxError> {
        Self::scan(text, &mut JsonScanner::new(text, at), number)
    }

    /// Steps over a cell.
    pub(crate) fn scan(
        text: &str,
        scanner: &mut JsonScanner<'_>,
        number: usize,
    ) -> Result<Self, SyntaxError> {
        let start = scanner.at;
        if scanner.peek().is_none() {
            return scanner.fail("the file ends where a cell should be");
        }
        let fail = |at: usize, reason: &str| {
            Err(SyntaxError { at, reason: format!("cell {number}: {reason}"), is_cut: false })
        };
        if scanner.peek() != Some(b'{') {
            return fail(start, "a cell must be an object");
        }
        let (mut kind, mut id, mut source, mut outputs) = (None, None, None, None);
        object(text, scanner, |key, scanner| {
            let span = scanner.value()?;
            match key {
                "cell_type" => kind = Some(span),
                "id" => id = Some(span),
                "source" => source = Some(span),
                "outputs" => outputs = Some(span),
                _ => {}
            }
            Ok(())
        })?;
        let Some(kind_span) = kind else {
            return fail(start, "it has no `cell_type`");
        };
        let kind =
            match (Json { text, span: kind_span.clone() }).string().map(|name| name.parse::<CellKind>()) {
                Some(Ok(kind)) => kind,
                // One cell of a type that nbformat does not know must not make the whole file unreadable. It is passed
                // through, as raw cells are, and `NotebookCell::unknown_type` says what it is.
                Some(Err(_)) => CellKind::Raw,
                None => return fail(kind_span.start, "`cell_type` must be a string"),
            };
        let Some(source) = source else {
            return fail(start, "it has no `source`");
        };
        if !is_multiline_string(&Json { text, span: source.clone() }) {
            return fail(source.start, "`source` must be a string or an array of strings");
        }
        Ok(Self { whole: start..scanner.at, kind, id, source, outputs })
    }

    /// The same cell, starting elsewhere.
    pub(crate) fn moved_to(&self, start: usize) -> Self {
        let moved =
            |span: &TextSpan| span.start - self.whole.start + start..span.end - self.whole.start + start;
        Self {
            whole: moved(&self.whole),
            kind: self.kind,
            id: self.id.as_ref().map(moved),
            source: moved(&self.source),
            outputs: self.outputs.as_ref().map(moved),
        }
    }
}

fn is_multiline_string(value: &Json<'_>) -> bool {
    use crate::json::{JsonKind, string};
    match value.kind() {
        JsonKind::String => true,
        JsonKind::Array => string::is_array_of_strings(value.raw()),
        JsonKind::Object | JsonKind::Number | JsonKind::Word => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wherever_the_middle_is_taken_to_be_the_cells_are_the_same() {
        let cell = |source: &str| format!(r#"{{"cell_type":"raw","source":"{source}"}}"#);
        let fake = cell("x").replace('"', "\\\"");
        let whole = format!("[{}, {}, {},\n{} ]", cell("é"), cell(&fake), cell("b"), cell(""));
        let broken = whole.replace(r#""b""#, "7");
        for text in [whole, broken, "[{}]".to_owned(), "[1".to_owned()] {
            let read = |middle| {
                let mut scanner = JsonScanner::new(&text, 1);
                let cells = all_cells(&text, &mut scanner, middle);
                (cells.map(|cells| cells.into_iter().map(|cell| cell.whole).collect::<Vec<_>>()), scanner.at)
            };
            let (expected, end) = read(None);
            for middle in 0..text.len() {
                let (found, at) = read(Some(middle));
                assert_eq!(found, expected, "{middle} of {text}");
                assert!(found.is_err() || at == end, "{middle} of {text}");
            }
        }
    }
}
