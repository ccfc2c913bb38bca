//! Cells of a notebook, and an output of one.

use std::fmt;
use std::str::FromStr;

use super::heading::section;
use super::{ImageAddress, NotebookPart, SelectorError, number};
use crate::cell::CellRef;
use crate::notebook::{NoSuchCell, Notebook};

/// Some cells, in the order they were asked for: `2,5-7,id:abcd1234,"Data cleaning"`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CellSelection {
    /// None if no cell is meant.
    parts: Vec<CellPart>,
}

/// One part of a list of cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellPart {
    /// `3`, or `id:abcd1234`
    Cell(CellRef),
    /// `3-7`, and `5-` to the end. Both ends are included.
    Range(usize, Option<usize>),
    /// `"Data cleaning"`: the cell with that heading and those below it, up to the next heading of the same
    /// or a higher level.
    Section(String),
}

impl CellSelection {
    /// One cell.
    pub fn one(cell: CellRef) -> Self {
        Self { parts: vec![CellPart::Cell(cell)] }
    }

    /// One part alone.
    pub fn of_part(part: CellPart) -> Self {
        Self { parts: vec![part] }
    }

    /// The section under a heading.
    pub fn section(heading: &str) -> Self {
        Self { parts: vec![CellPart::Section(heading.to_owned())] }
    }

    /// Its parts, in the order they were written.
    pub fn parts(&self) -> &[CellPart] {
        &self.parts
    }

    /// The indexes it means in `notebook`, each once, in the order asked for.
    pub fn resolve(&self, notebook: &Notebook) -> Result<Vec<usize>, NoSuchCell> {
        let mut chosen = Vec::new();
        let mut is_chosen = vec![false; notebook.len()];
        for part in &self.parts {
            let range = match part {
                CellPart::Cell(cell) => notebook.locate(cell).map(|index| index..index + 1)?,
                CellPart::Range(first, last) => {
                    let first = notebook.locate(&CellRef::Index(*first))?;
                    let last = last.map(|last| notebook.locate(&CellRef::Index(last))).transpose()?;
                    first..last.map_or(notebook.len(), |last| last + 1)
                }
                CellPart::Section(heading) => section(notebook, heading)?,
            };
            chosen.extend(range.filter(|index| !std::mem::replace(&mut is_chosen[*index], true)));
        }
        Ok(chosen)
    }
}

/// Several selections as one, for arguments that are lists.
impl FromIterator<Self> for CellSelection {
    fn from_iter<T: IntoIterator<Item = Self>>(selections: T) -> Self {
        Self { parts: selections.into_iter().flat_map(|selection| selection.parts).collect() }
    }
}

/// Reads the `cell` argument of an action: all that a selector takes after its `#`, and what people and models
/// write besides: `cell:2`, `#2`, `2.0`, ids without `id:`, spaces after commas, and lists such as `[0, "id:abc"]`.
///
/// An id that reads as a number or as a range needs its `id:`.
impl FromStr for CellSelection {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        if let Some(parts) = json_list(text)? {
            return Ok(parts);
        }
        let mut parts = Vec::new();
        let mut rest = Some(text);
        while let Some(text) = rest {
            let text = text.trim_start();
            let text = text.strip_prefix('#').unwrap_or(text);
            let (part, after) = if text.starts_with('"') {
                let (heading, after) = quoted(text)?;
                (CellPart::Section(heading), after.trim_start())
            } else {
                let (part, after) = text.split_at(text.find(',').unwrap_or(text.len()));
                let part = part.trim_end();
                let range = range_of(part.strip_prefix("cell:").unwrap_or(part))?;
                (range.map_or_else(|| part.parse().map(CellPart::Cell), Ok)?, after)
            };
            parts.push(part);
            rest = match after.strip_prefix(',') {
                None if !after.is_empty() => return Err(SelectorError::AfterHeading(after.to_owned())),
                next => next,
            };
        }
        Ok(Self { parts })
    }
}

/// A list as JSON has it, which some models write as a text: each item is a selection of its own.
fn json_list(text: &str) -> Result<Option<CellSelection>, SelectorError> {
    let text = text.trim();
    if !(text.starts_with('[') && text.ends_with(']')) {
        return Ok(None);
    }
    let Ok(items) = serde_json::from_str::<Vec<serde_json::Value>>(text) else { return Ok(None) };
    let items = items.iter().map(|item| match item.as_str() {
        Some(text) => text.parse::<CellSelection>(),
        None => item.to_string().parse(),
    });
    items.collect::<Result<_, _>>().map(Some)
}

/// As it is written after `#`.
impl fmt::Display for CellSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.parts.iter().enumerate() {
            f.write_str(if at > 0 { "," } else { "" })?;
            match part {
                CellPart::Cell(cell) => write!(f, "{cell}")?,
                CellPart::Range(first, None) => write!(f, "{first}-")?,
                CellPart::Range(first, Some(last)) => write!(f, "{first}-{last}")?,
                CellPart::Section(heading) => {
                    f.write_str(&in_quotes(heading))?;
                }
            }
        }
        Ok(())
    }
}

/// What follows `#`: cells or an output, and the text after them.
pub(super) fn part(text: &str) -> Result<(NotebookPart, &str), SelectorError> {
    let (first, mut rest) = cells(text)?;
    if let Some(after) = rest.strip_prefix('.') {
        let (digits, after) = after.split_at(after.find([':', ',']).unwrap_or(after.len()));
        let (digits, image) =
            digits.split_once('.').map_or((digits, None), |(output, image)| (output, Some(image)));
        let output = number(digits).ok_or_else(|| SelectorError::NotAnOutput(digits.to_owned()))?;
        let CellPart::Cell(cell) = first else {
            return Err(SelectorError::OutputOfSeveral);
        };
        if after.starts_with(',') {
            return Err(SelectorError::OutputNotAlone);
        }
        let part = match image {
            None => NotebookPart::Output { cell, output },
            Some(digits) => {
                let image = number(digits).ok_or_else(|| SelectorError::NotAnImage(digits.to_owned()))?;
                NotebookPart::Image(ImageAddress::Output { cell, output, image })
            }
        };
        return Ok((part, after));
    }
    let mut parts = vec![first];
    while let Some(after) = rest.strip_prefix(',') {
        let (next, after) = cells(after)?;
        if after.starts_with('.') {
            return Err(SelectorError::OutputNotAlone);
        }
        parts.push(next);
        rest = after;
    }
    Ok((NotebookPart::Cells(CellSelection { parts }), rest))
}

/// What is attached to the one cell of `part` by this name.
pub(super) fn attachment(part: &NotebookPart, name: &str) -> Option<NotebookPart> {
    let NotebookPart::Cells(CellSelection { parts }) = part else { return None };
    let [CellPart::Cell(cell)] = &parts[..] else { return None };
    let name = match quoted(name) {
        _ if is_plain_name(name) => name.to_owned(),
        _ if !name.starts_with('"') => return None,
        _ => match quoted(name) {
            Ok((name, "")) => name,
            Ok(_) | Err(_) => return None,
        },
    };
    Some(NotebookPart::Image(ImageAddress::Attachment { cell: cell.clone(), name }))
}

/// Whether a name can follow a cell without quotes: it is neither lines nor `raw`.
pub(super) fn is_plain_name(name: &str) -> bool {
    let is_raw = name == "raw" || name.starts_with("raw:");
    let is_lines = name.bytes().all(|byte| byte.is_ascii_digit() || b",-+@".contains(&byte));
    !is_raw && !is_lines && !name.starts_with('"')
}

pub(super) fn in_quotes(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// `3`, `cell:3`, `3-7`, `5-`, `id:abcd1234` or `"Data cleaning"`, and what follows.
fn cells(text: &str) -> Result<(CellPart, &str), SelectorError> {
    // As markers show it.
    let text = text.strip_prefix("cell:").unwrap_or(text);
    if text.starts_with('"') {
        let (heading, rest) = quoted(text)?;
        return Ok((CellPart::Section(heading), rest));
    }
    if let Some(rest) = text.strip_prefix("id:") {
        let end =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_')).unwrap_or(rest.len());
        let cell: CellRef = text[.."id:".len() + end].parse()?;
        return Ok((CellPart::Cell(cell), &rest[end..]));
    }
    let (cells, rest) = text.split_at(text.find([':', ',', '.']).unwrap_or(text.len()));
    match (range_of(cells)?, number(cells)) {
        (Some(range), _) => Ok((range, rest)),
        (None, Some(index)) => Ok((CellPart::Cell(CellRef::Index(index)), rest)),
        (None, None) if cells.is_empty() => Err(SelectorError::NoCell),
        (None, None) => Err(SelectorError::NotACell(cells.to_owned())),
    }
}

/// `3-7` or `5-`. `None` for anything else.
fn range_of(text: &str) -> Result<Option<CellPart>, SelectorError> {
    let Some((first, last)) = text.split_once('-') else {
        return Ok(None);
    };
    Ok(match (number(first), number(last)) {
        (Some(first), Some(last)) if last < first => {
            return Err(SelectorError::Backwards { range: text.to_owned(), first, last });
        }
        (Some(first), Some(last)) => Some(CellPart::Range(first, Some(last))),
        (Some(first), None) if last.is_empty() => Some(CellPart::Range(first, None)),
        (Some(_) | None, _) => None,
    })
}

/// The text between quotes, in which `\"` is a quote, and what follows.
fn quoted(text: &str) -> Result<(String, &str), SelectorError> {
    let mut heading = String::new();
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' if heading.trim().is_empty() => return Err(SelectorError::EmptyHeading),
            '"' => return Ok((heading, &text[at + 1..])),
            '\\' => heading.extend(letters.next().map(|(_, quoted)| quoted)),
            _ => heading.push(letter),
        }
    }
    Err(SelectorError::OpenQuote(text.to_owned()))
}
