//! Selectors: which part of a notebook a path like `nb.ipynb#3-7:10-40` means.

use std::ops::{Range, RangeInclusive};

use crate::cell::CellRef;
use crate::notebook::{NoSuchCell, Notebook};

/// A part of a notebook, or of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector {
    /// `#3`, `#3-7`, `#id:abcd1234`
    pub cells: Option<CellSelection>,
    /// `:raw`: the file's own text instead of marked text.
    pub raw: bool,
    /// `:10-40`, `:5-16,90-97`, `:50+20`, `:-30`; empty for all lines.
    pub lines: Vec<LineRange>,
}

/// Some cells in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellSelection {
    /// From one index to another, both included.
    Range(RangeInclusive<usize>),
    /// The one with this id.
    Id(String),
}

/// Some lines in a row, counting from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineRange {
    /// `10-40`, and `10-` to the end.
    FromTo(usize, Option<usize>),
    /// `-30`: the last thirty.
    Last(usize),
}

/// Lines of a text that a selector asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt<'a> {
    /// The number of its first line, counting from 1.
    pub start: usize,
    /// The number of its last line.
    pub end: usize,
    /// The lines, with their line ends.
    pub text: &'a str,
}

/// Lines that are not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is past the end; there are {total} lines")]
pub struct PastTheEnd {
    /// The line asked for.
    pub line: usize,
    /// How many there are.
    pub total: usize,
}

impl Selector {
    /// Splits `nb.ipynb#3:10-40` into path and selector. What does not read as a selector is part of the path.
    pub fn split(target: &str) -> (&str, Self) {
        if let Some((path, rest)) = target.rsplit_once('#')
            && let Some((cells, tail)) = cell_selection(rest)
            && let Some((raw, lines)) = raw_and_lines(tail)
        {
            return (path, Self { cells: Some(cells), raw, lines });
        }
        // The longest tail counts, so that `:raw:1-5` is not a file named `…:raw`.
        for (at, _) in target.match_indices(':') {
            if let Some((raw, lines)) = raw_and_lines(&target[at..]) {
                return (&target[..at], Self { cells: None, raw, lines });
            }
        }
        (target, Self::default())
    }
}

impl CellSelection {
    /// The indexes it means in `notebook`.
    pub fn resolve(&self, notebook: &Notebook) -> Result<Range<usize>, NoSuchCell> {
        match self {
            Self::Range(range) => {
                notebook.locate(&CellRef::Index(*range.start()))?;
                let last = notebook.locate(&CellRef::Index(*range.end()))?;
                Ok(*range.start()..last + 1)
            }
            Self::Id(id) => notebook.locate(&CellRef::Id(id.clone())).map(|index| index..index + 1),
        }
    }
}

/// The lines of `text` that `ranges` ask for, in the order asked for; the whole text when they ask for nothing.
pub fn excerpts<'a>(text: &'a str, ranges: &[LineRange]) -> Result<Vec<Excerpt<'a>>, PastTheEnd> {
    let starts: Vec<_> =
        std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1)).collect();
    // A text that ends in a line end has no line after it.
    let total = if text.ends_with('\n') || text.is_empty() { starts.len() - 1 } else { starts.len() };
    if ranges.is_empty() {
        return Ok(vec![Excerpt { start: 1, end: total, text }]);
    }
    ranges
        .iter()
        .map(|range| {
            let (start, end) = match *range {
                LineRange::FromTo(start, _) if start > total => {
                    return Err(PastTheEnd { line: start, total });
                }
                LineRange::FromTo(start, end) => (start, end.unwrap_or(total).min(total)),
                LineRange::Last(count) => (total.saturating_sub(count) + 1, total),
            };
            let to = starts.get(end).copied().unwrap_or(text.len());
            let text = starts.get(start - 1).map_or("", |from| &text[*from..to]);
            Ok(Excerpt { start, end, text })
        })
        .collect()
}

/// `3`, `3-7` or `id:abcd1234`, and what follows.
fn cell_selection(text: &str) -> Option<(CellSelection, &str)> {
    if let Some(rest) = text.strip_prefix("id:") {
        let end =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_')).unwrap_or(rest.len());
        return (end > 0).then(|| (CellSelection::Id(rest[..end].to_owned()), &rest[end..]));
    }
    let (cells, tail) = text.split_at(text.find(':').unwrap_or(text.len()));
    let range = match cells.split_once('-') {
        None => number(cells)?..=number(cells)?,
        Some((first, last)) => number(first)?..=number(last)?,
    };
    (range.start() <= range.end()).then_some((CellSelection::Range(range), tail))
}

/// Nothing, `:raw`, `:ranges` or `:raw:ranges`.
fn raw_and_lines(tail: &str) -> Option<(bool, Vec<LineRange>)> {
    let (raw, tail) = match tail.strip_prefix(":raw") {
        Some(tail) => (true, tail),
        None => (false, tail),
    };
    if tail.is_empty() {
        return Some((raw, Vec::new()));
    }
    let lines = tail.strip_prefix(':')?.split(',').map(line_range).collect::<Option<_>>()?;
    Some((raw, lines))
}

fn line_range(text: &str) -> Option<LineRange> {
    let at_least_one = |text| number(text).filter(|number| *number > 0);
    if let Some((start, count)) = text.split_once('+') {
        let (start, count) = (at_least_one(start)?, at_least_one(count)?);
        return Some(LineRange::FromTo(start, Some(start.saturating_add(count - 1))));
    }
    match text.split_once('-') {
        None => at_least_one(text).map(|line| LineRange::FromTo(line, Some(line))),
        Some(("", last)) => at_least_one(last).map(LineRange::Last),
        Some((start, "")) => at_least_one(start).map(|start| LineRange::FromTo(start, None)),
        Some((start, end)) => {
            let (start, end) = (at_least_one(start)?, at_least_one(end)?);
            (start <= end).then_some(LineRange::FromTo(start, Some(end)))
        }
    }
}

fn number(text: &str) -> Option<usize> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use LineRange::{FromTo, Last};

    #[track_caller]
    fn check(target: &str, path: &str, cells: Option<CellSelection>, raw: bool, lines: &[LineRange]) {
        let expected = Selector { cells, raw, lines: lines.to_vec() };
        assert_eq!(Selector::split(target), (path, expected));
    }

    #[test]
    fn every_selector_of_the_manual_reads_as_one() {
        let cells = |first, last| Some(CellSelection::Range(first..=last));
        check("nb.ipynb", "nb.ipynb", None, false, &[]);
        check("nb.ipynb:10-40", "nb.ipynb", None, false, &[FromTo(10, Some(40))]);
        check("nb.ipynb:5-16,90-97", "nb.ipynb", None, false, &[FromTo(5, Some(16)), FromTo(90, Some(97))]);
        check("nb.ipynb:50+20", "nb.ipynb", None, false, &[FromTo(50, Some(69))]);
        check("nb.ipynb:-30", "nb.ipynb", None, false, &[Last(30)]);
        check("nb.ipynb:7-", "nb.ipynb", None, false, &[FromTo(7, None)]);
        check("nb.ipynb#3", "nb.ipynb", cells(3, 3), false, &[]);
        check("nb.ipynb#3-7:2", "nb.ipynb", cells(3, 7), false, &[FromTo(2, Some(2))]);
        check("nb.ipynb#id:12345678", "nb.ipynb", Some(CellSelection::Id("12345678".into())), false, &[]);
        check("nb.ipynb:raw", "nb.ipynb", None, true, &[]);
        check("nb.ipynb:raw:1-5", "nb.ipynb", None, true, &[FromTo(1, Some(5))]);
    }

    #[test]
    fn anything_else_is_part_of_the_path() {
        for path in [
            "a:b.ipynb",
            "nb#x.ipynb",
            "nb.ipynb:",
            "nb.ipynb:0",
            "nb.ipynb:9-3",
            "nb.ipynb#7-3",
            "nb.ipynb#id:",
        ] {
            check(path, path, None, false, &[]);
        }
        check("c#:x.ipynb:3", "c#:x.ipynb", None, false, &[FromTo(3, Some(3))]);
    }

    #[test]
    fn lines_are_cut_with_their_ends() {
        let text = "1\n2\n3\n4";
        let cut = |ranges: &[LineRange]| {
            excerpts(text, ranges)
                .map(|found| found.iter().map(|e| (e.start, e.end, e.text)).collect::<Vec<_>>())
        };
        assert_eq!(cut(&[FromTo(2, Some(3)), Last(1)]).unwrap(), [(2, 3, "2\n3\n"), (4, 4, "4")]);
        assert_eq!(cut(&[FromTo(3, Some(99))]).unwrap(), [(3, 4, "3\n4")]);
        assert_eq!(cut(&[Last(99)]).unwrap(), [(1, 4, text)]);
        assert_eq!(
            cut(&[FromTo(5, None)]).unwrap_err().to_string(),
            "line 5 is past the end; there are 4 lines"
        );
        assert_eq!(excerpts("", &[Last(3)]).unwrap(), [Excerpt { start: 1, end: 0, text: "" }]);
    }
}
