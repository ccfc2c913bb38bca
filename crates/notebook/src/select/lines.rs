//! Lines of a text.

use std::fmt;

use super::{SelectorError, number};

/// Some lines in a row, counting from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineRange {
    /// `10-40`, and `10-` to the end.
    FromTo(usize, Option<usize>),
    /// `-30`: the last thirty.
    Last(usize),
    /// `12@4001`: line 12 from its byte 4001 on, counting from 1. For lines that are longer than a page.
    Within {
        /// The line.
        line: usize,
        /// Its first byte to show.
        byte: usize,
    },
}

/// Lines of a text that a selector asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt<'a> {
    /// The number of its first line, counting from 1.
    pub start: usize,
    /// The number of its last line.
    pub end: usize,
    /// How many bytes of the first line stand before it; 0 where it starts with the line.
    pub skipped: usize,
    /// The lines, with their line ends.
    pub text: &'a str,
}

/// Lines, or bytes of a line, that do not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PastTheEnd {
    /// No such line.
    #[error("line {line} is past the end; {}", if *total == 1 { "there is 1 line".to_owned() } else { format!("there are {total} lines") })]
    Line {
        /// The line asked for.
        line: usize,
        /// How many there are.
        total: usize,
    },
    /// No such byte of a line.
    #[error("line {line} has no byte {byte}; it has {total} bytes")]
    Byte {
        /// The line.
        line: usize,
        /// The byte asked for.
        byte: usize,
        /// How many it has.
        total: usize,
    },
}

/// The lines of `text` that `ranges` ask for, in the order asked for; the whole text when they ask for nothing.
pub fn excerpts<'a>(text: &'a str, ranges: &[LineRange]) -> Result<Vec<Excerpt<'a>>, PastTheEnd> {
    let starts: Vec<_> =
        std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1)).collect();
    // A text that ends in a line end has no line after it.
    let total = if text.ends_with('\n') || text.is_empty() { starts.len() - 1 } else { starts.len() };
    if ranges.is_empty() {
        return Ok(vec![Excerpt { start: 1, end: total, skipped: 0, text }]);
    }
    let lines = |start: usize, end: usize| {
        let to = starts.get(end).copied().unwrap_or(text.len());
        starts.get(start - 1).map_or("", |from| &text[*from..to])
    };
    let there = |line: usize| if line > total { Err(PastTheEnd::Line { line, total }) } else { Ok(line) };
    ranges
        .iter()
        .map(|range| {
            let (start, end, skipped) = match *range {
                LineRange::FromTo(start, end) => (there(start)?, end.unwrap_or(total).min(total), 0),
                LineRange::Last(count) => (total.saturating_sub(count) + 1, total, 0),
                LineRange::Within { line, byte } => {
                    let content = lines(there(line)?, line);
                    let length = content.strip_suffix('\n').unwrap_or(content).len();
                    if byte > length.max(1) {
                        return Err(PastTheEnd::Byte { line, byte, total: length });
                    }
                    // In the middle of a character: with all of it.
                    (line, line, content.floor_char_boundary(byte - 1))
                }
            };
            Ok(Excerpt { start, end, skipped, text: &lines(start, end)[skipped..] })
        })
        .collect()
}

/// `10-40`, `5-16,90-97`, `50+20`, `-30`, `12@4001`
pub(super) fn ranges(text: &str) -> Result<Vec<LineRange>, SelectorError> {
    text.split(',').map(range).collect()
}

fn range(text: &str) -> Result<LineRange, SelectorError> {
    let count = |part: &str| match number(part) {
        None => Err(SelectorError::NotLines(text.to_owned())),
        Some(0) => Err(SelectorError::LineZero(text.to_owned())),
        Some(count) => Ok(count),
    };
    if let Some((start, length)) = text.split_once('+') {
        let (start, length) = (count(start)?, count(length)?);
        return Ok(LineRange::FromTo(start, Some(start.saturating_add(length - 1))));
    }
    if let Some((line, byte)) = text.split_once('@') {
        return Ok(LineRange::Within { line: count(line)?, byte: count(byte)? });
    }
    match text.split_once('-') {
        None => count(text).map(|line| LineRange::FromTo(line, Some(line))),
        Some(("", last)) => count(last).map(LineRange::Last),
        Some((start, "")) => count(start).map(|start| LineRange::FromTo(start, None)),
        Some((start, end)) => match (count(start)?, count(end)?) {
            (first, last) if last < first => {
                Err(SelectorError::Backwards { range: text.to_owned(), first, last })
            }
            (start, end) => Ok(LineRange::FromTo(start, Some(end))),
        },
    }
}

/// As it is written after `:`.
impl fmt::Display for LineRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FromTo(start, None) => write!(f, "{start}-"),
            Self::FromTo(start, Some(end)) if start == end => write!(f, "{start}"),
            Self::FromTo(start, Some(end)) => write!(f, "{start}-{end}"),
            Self::Last(count) => write!(f, "-{count}"),
            Self::Within { line, byte } => write!(f, "{line}@{byte}"),
        }
    }
}
