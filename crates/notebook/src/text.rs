//! Notebooks as marked text: one marker line per cell, then the cell's source, then a line end.
//!
//! The law: for every notebook, parsing what was printed gives its cells back, whatever their sources hold.
//! Each source is *ended* by one `\n`, so a source that itself ends in one shows an empty line, and the text ends as
//! text files do. The last source may be ended by the end of the text instead.

use crate::cell::{CellKind, NewCell};
use crate::marker::{self, MarkedLine, MarkerMiss};
use crate::notebook::Notebook;

/// A cell as a text has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextCell {
    /// Type and source.
    pub cell: NewCell,
    /// `cell:N`, the cell of the notebook it continues.
    pub origin: Option<usize>,
    /// The line its marker is on, counting from 1.
    pub line: usize,
}

/// Why a text is not marked text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// Text that belongs to no cell.
    #[error(
        "line 1: the text must start with a cell marker such as `# %% [code]`, but starts with {found:?}"
    )]
    NoFirstMarker {
        /// The first line, shortened.
        found: String,
    },
    /// A marker, almost.
    #[error(
        "line {line}: {found:?} looks like a cell marker but is not one; write `# %% [code]`, `# %% [markdown]` or \
         `# %% [raw]` to start a cell, or add one `%` to keep this line as text"
    )]
    NearMiss {
        /// Counting from 1.
        line: usize,
        /// The line, shortened.
        found: String,
    },
    /// Text made with outputs shown.
    #[error(
        "line {line}: this text shows outputs, which cannot be written; read the notebook without outputs and edit that"
    )]
    Output {
        /// Counting from 1.
        line: usize,
    },
    /// Text that went through something that changes line ends.
    #[error("line {line}: the marker ends in a carriage return; convert the text to LF line ends first")]
    CarriageReturn {
        /// Counting from 1.
        line: usize,
    },
}

impl Notebook {
    /// The whole notebook as marked text.
    pub fn to_marked_text(&self) -> String {
        let mut text = String::new();
        for cell in self.cells() {
            print_cell(&mut text, cell.index(), cell.kind(), &cell.source());
        }
        text
    }
}

/// Prints one cell as marked text.
pub fn print_one(index: usize, kind: CellKind, source: &str) -> String {
    let mut text = String::new();
    print_cell(&mut text, index, kind, source);
    text
}

/// Appends one cell as marked text.
pub fn print_cell(text: &mut String, index: usize, kind: CellKind, source: &str) {
    text.push_str(&marker::marker(kind, index));
    text.push('\n');
    print_lines(text, source);
    text.push('\n');
}

/// Appends text so that none of its lines can be mistaken for a marker.
pub fn print_lines(text: &mut String, source: &str) {
    // Only a line with `%%` can need care; most sources have none and are copied whole.
    if memchr::memmem::find(source.as_bytes(), b"%%").is_none() {
        text.push_str(source);
    } else {
        for line in source.split_inclusive('\n') {
            // A `\n` counts as white space here, which is right: the run may end the line.
            match marker::escape_at(line) {
                Some(at) => {
                    text.push_str(&line[..at]);
                    text.push('%');
                    text.push_str(&line[at..]);
                }
                None => text.push_str(line),
            }
        }
    }
}

/// Whether a text begins with a marker.
pub fn is_marked(text: &str) -> bool {
    let first = text.split('\n').next().unwrap_or_default();
    matches!(marker::classify(first), MarkedLine::Marker { .. })
}

/// Reads marked text. An empty text has no cells.
pub fn parse(text: &str) -> Result<Vec<TextCell>, TextError> {
    let mut cells: Vec<TextCell> = Vec::new();
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let (content, line_end) = match line.strip_suffix('\n') {
            Some(content) => (content, "\n"),
            None => (line, ""),
        };
        let class = marker::classify(content);
        if let MarkedLine::Marker { kind, cell } = class {
            let cell = TextCell { cell: NewCell::new(kind, ""), origin: cell, line: number };
            cells.push(cell);
            continue;
        }
        let found = || shortened(content);
        let Some(current) = cells.last_mut() else {
            return Err(match class {
                MarkedLine::NearMiss(miss) => refusal(miss, number, found()),
                MarkedLine::Marker { .. } | MarkedLine::Escaped { .. } | MarkedLine::Text => {
                    TextError::NoFirstMarker { found: found() }
                }
            });
        };
        let source = &mut current.cell.source;
        match class {
            MarkedLine::Escaped { before, after } => source.extend([before, after]),
            MarkedLine::NearMiss(miss) => return Err(refusal(miss, number, found())),
            MarkedLine::Marker { .. } | MarkedLine::Text => source.push_str(content),
        }
        source.push_str(line_end);
    }
    for cell in &mut cells {
        let source = &mut cell.cell.source;
        source.truncate(source.strip_suffix('\n').unwrap_or(source).len());
    }
    Ok(cells)
}

fn refusal(miss: MarkerMiss, line: usize, found: String) -> TextError {
    match miss {
        MarkerMiss::Output => TextError::Output { line },
        MarkerMiss::CarriageReturn => TextError::CarriageReturn { line },
        MarkerMiss::Other => TextError::NearMiss { line, found },
    }
}

/// The beginning of a line that is too long to quote.
pub fn shortened(line: &str) -> String {
    const SHOWN: usize = 60;
    let mut shown: String = line.chars().take(SHOWN).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use CellKind::{Code, Markdown, Raw};
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, cells: &[(CellKind, &str)]) {
        let parsed = parse(text).expect("this is marked text");
        let found: Vec<_> = parsed.iter().map(|cell| (cell.cell.kind, cell.cell.source.as_str())).collect();
        assert_eq!(found, cells);
    }

    #[track_caller]
    fn refused(text: &str, message: &str) {
        assert_eq!(parse(text).expect_err("this is not marked text").to_string(), message);
    }

    #[test]
    fn a_last_line_without_a_newline_stays_without_one() {
        check("# %% [code] cell:0\nx\ny", &[(Code, "x\ny")]);
        check("# %% [code] cell:0\nx\ny\n", &[(Code, "x\ny")]);
        check("# %% [code] cell:0\nx\ny\n\n", &[(Code, "x\ny\n")]);
    }

    #[test]
    fn empty_cells_need_no_line_of_their_own() {
        check("", &[]);
        check("# %% [code]", &[(Code, "")]);
        check("# %% [code]\n# %% [raw]\n\n# %% [markdown]\n\n\n", &[(Code, ""), (Raw, ""), (Markdown, "\n")]);
    }

    #[test]
    fn n10_a_near_miss_of_a_marker_is_refused_with_its_line() {
        refused(
            "# %% [code]\nx\n# %% [Code]\ny",
            "line 3: \"# %% [Code]\" looks like a cell marker but is not one; write `# %% [code]`, `# %% [markdown]` or \
             `# %% [raw]` to start a cell, or add one `%` to keep this line as text",
        );
        for miss in ["#%%", "# %% [code] ", "# %%", "# %% [markdown] cell:x"] {
            assert!(matches!(
                parse(&format!("# %% [code]\n{miss}\n")),
                Err(TextError::NearMiss { line: 2, .. })
            ));
        }
    }

    #[test]
    fn text_before_the_first_marker_is_refused() {
        refused(
            "\n# %% [code]\n",
            "line 1: the text must start with a cell marker such as `# %% [code]`, but starts with \"\"",
        );
        assert!(matches!(parse("#%%\nx"), Err(TextError::NearMiss { line: 1, .. })));
    }

    #[test]
    fn shown_outputs_are_not_taken_for_source() {
        assert_eq!(parse("# %% [code]\n1\n# %% [output 0] result\n1\n"), Err(TextError::Output { line: 3 }));
    }

    #[test]
    fn crlf_text_is_refused_rather_than_guessed_at() {
        assert_eq!(parse("# %% [code]\r\nx\r\n"), Err(TextError::CarriageReturn { line: 1 }));
    }

    /// Lines around every rule of this module, joined by any line end.
    fn sources() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            "[ \t]{0,2}#[ \t]{0,2}%{0,4}[ \t\r]{0,2}(\\[(code|Code|raw|output 0)\\])?( cell:[0-9]{0,2})?[ \r]{0,1}",
            "[a-z%#\\[\\]\r ]{0,6}",
            any::<String>(),
        ];
        prop::collection::vec((line, prop_oneof!["\n", "\r\n", "\r", "\n\n", ""]), 0..6)
            .prop_map(|lines| lines.into_iter().flat_map(|(line, end)| [line, end]).collect())
    }

    proptest! {
        #[test]
        fn n11_parsing_undoes_printing_for_every_source(
            sources in prop::collection::vec((prop_oneof![Just(Code), Just(Markdown), Just(Raw)], sources()), 0..5),
            ended: bool,
        ) {
            let mut text = String::new();
            for (index, (kind, source)) in sources.iter().enumerate() {
                print_cell(&mut text, index, *kind, source);
            }
            if !ended && !text.ends_with("\n\n") {
                text.truncate(text.trim_end_matches('\n').len()); // a last line end lost on the way
            }
            let parsed: Vec<_> = parse(&text).unwrap().into_iter()
                .map(|cell| (cell.origin.unwrap(), cell.cell.kind, cell.cell.source)).collect();
            let expected: Vec<_> = sources.into_iter().enumerate().map(|(i, (kind, source))| (i, kind, source)).collect();
            prop_assert_eq!(parsed, expected);
        }
    }
}
