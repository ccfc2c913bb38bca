//! Sections of a notebook, by the headings of its markdown cells.

use std::ops::Range;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::cell::CellKind;
use crate::notebook::{NoSuchCell, Notebook};
use crate::text::shortened;

/// Headings that an error lists.
const LISTED: usize = 12;

/// A heading that does not exist, or not once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSuchHeading {
    /// No heading has this text.
    #[error("no heading reads \"{heading}\"; {}", headings_there(there))]
    Missing {
        /// The text asked for.
        heading: String,
        /// The headings of the notebook, each with its cell.
        there: Vec<(usize, String)>,
    },
    /// Several headings have this text.
    #[error(
        "{} headings read \"{heading}\" (cells {}); name the cells instead, such as `#{}-`",
        at.len(), crate::notebook::list(at), at[0]
    )]
    Ambiguous {
        /// The text asked for.
        heading: String,
        /// The cells that have it.
        at: Vec<usize>,
    },
}

struct Heading {
    cell: usize,
    level: HeadingLevel,
    text: String,
}

/// The cells from the one with this heading up to the next heading of the same or a higher level.
pub(super) fn section(notebook: &Notebook, heading: &str) -> Result<Range<usize>, NoSuchCell> {
    let headings: Vec<_> = notebook
        .cells()
        .filter(|cell| cell.kind() == CellKind::Markdown)
        .flat_map(|cell| headings(cell.index(), &cell.source()))
        .collect();
    let wanted = comparable(heading);
    let found: Vec<_> =
        headings.iter().enumerate().filter(|(_, heading)| comparable(&heading.text) == wanted).collect();
    let (at, start) = match found[..] {
        [(at, start)] => (at, start),
        [] => {
            let there = headings.into_iter().map(|heading| (heading.cell, heading.text)).collect();
            return Err(NoSuchHeading::Missing { heading: heading.to_owned(), there }.into());
        }
        _ => {
            let at = found.iter().map(|(_, heading)| heading.cell).collect();
            return Err(NoSuchHeading::Ambiguous { heading: heading.to_owned(), at }.into());
        }
    };
    let end = headings[at + 1..].iter().find(|next| next.level <= start.level);
    // A section that ends in the cell it starts in is that cell.
    let end = end.map_or(notebook.len(), |next| next.cell.max(start.cell + 1));
    Ok(start.cell..end)
}

/// The headings of a markdown text. Lines inside fences are not headings.
fn headings(cell: usize, source: &str) -> Vec<Heading> {
    let mut headings = Vec::new();
    let mut open: Option<Heading> = None;
    for event in Parser::new_ext(source, Options::ENABLE_STRIKETHROUGH | Options::ENABLE_MATH) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                open = Some(Heading { cell, level, text: String::new() });
            }
            Event::End(TagEnd::Heading(_)) => headings.extend(open.take()),
            Event::Text(text) | Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                if let Some(heading) = &mut open {
                    heading.text.push_str(&text);
                }
            }
            Event::SoftBreak | Event::HardBreak => {
                if let Some(heading) = &mut open {
                    heading.text.push(' ');
                }
            }
            _ => {}
        }
    }
    headings
}

/// Without case, and with single spaces. What is asked for may have markup too.
fn comparable(heading: &str) -> String {
    let plain: String = heading.chars().filter(|c| !matches!(c, '*' | '_' | '`' | '$' | '~')).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

fn headings_there(there: &[(usize, String)]) -> String {
    if there.is_empty() {
        return "the notebook has no headings".to_owned();
    }
    let shown = there.iter().take(LISTED);
    let shown = shown.map(|(cell, text)| format!("\"{}\" (cell {cell})", shortened(text)));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match there.len().saturating_sub(LISTED) {
        0 => format!("the headings are {shown}"),
        more => format!("the headings are {shown} and {more} more"),
    }
}
