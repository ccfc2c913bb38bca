//! Exact-string replacements in a text.

use crate::marker::{self, Line};
use crate::text::shortened;

/// One replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// The text to be replaced, to the letter.
    pub old: String,
    /// What comes in its place.
    pub new: String,
    /// How many matches there may be.
    pub matches: Matches,
}

/// How many matches a replacement may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Matches {
    /// Exactly one, so that the right place is meant.
    #[default]
    One,
    /// All of them are replaced.
    All,
}

/// Why a replacement was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplaceError {
    /// An empty text is everywhere.
    #[error("the text to replace is empty; to add a cell, use the insert action")]
    Empty,
    /// Replacing by the same.
    #[error("the old and the new text are the same")]
    Same,
    /// Not there.
    #[error("no match for {old:?}{}", near_hint(*.near))]
    NoMatch {
        /// What was looked for, shortened.
        old: String,
        /// A line that differs in white space only.
        near: Option<usize>,
    },
    /// There more than once.
    #[error(
        "{total} matches for {old:?}, on lines {}; add text around it until it is unique, or replace all",
        told_lines(*.total, lines)
    )]
    Ambiguous {
        /// What was looked for, shortened.
        old: String,
        /// How many matches there are.
        total: usize,
        /// The line each of the first matches starts on.
        lines: Vec<usize>,
    },
}

/// How many matches an error names the lines of.
const LINES_TOLD: usize = 10;

/// Makes `replacements` in a marked text, each on the result of the one before.
///
/// A match inside a marker line is none, unless `old` itself shows a marker: who replaces `1` by `2` means sources, not
/// the number of a cell.
pub fn replace(text: &str, replacements: &[Replacement]) -> Result<String, ReplaceError> {
    let mut text = text.to_owned();
    for Replacement { old, new, matches } in replacements {
        if old.is_empty() {
            return Err(ReplaceError::Empty);
        }
        if old == new {
            return Err(ReplaceError::Same);
        }
        let found = match matches {
            Matches::All => places(&text, old, Overlaps::Skipped).collect::<Vec<_>>(),
            Matches::One => only_place(&text, old)?.into_iter().collect(),
        };
        if found.is_empty() {
            return Err(ReplaceError::NoMatch { old: shortened(old), near: near(&text, old) });
        }
        text = replaced(&text, &found, old.len(), new);
    }
    Ok(text)
}

/// Whether a match may begin inside the one before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Overlaps {
    Counted,
    Skipped,
}

/// Where `old` is in the text, outside markers.
fn places<'a>(text: &'a str, old: &'a str, overlaps: Overlaps) -> impl Iterator<Item = usize> + 'a {
    let finder = memchr::memmem::Finder::new(old);
    let means_markers = old.contains("# %% [");
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let at = from + finder.find(&text.as_bytes()[from..])?;
            from = match overlaps {
                Overlaps::Counted => at + 1,
                Overlaps::Skipped => at + old.len(),
            };
            if means_markers || !in_marker(text, at, old.len()) {
                return Some(at);
            }
        }
    })
}

fn in_marker(text: &str, at: usize, length: usize) -> bool {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    at + length <= end && matches!(marker::classify(&text[start..end]), Line::Marker { .. })
}

fn only_place(text: &str, old: &str) -> Result<Option<usize>, ReplaceError> {
    let mut found = places(text, old, Overlaps::Counted);
    let first = found.next();
    if found.next().is_none() {
        return Ok(first);
    }
    let (mut lines, mut total, mut line, mut counted) = (Vec::new(), 0, 1, 0);
    for at in places(text, old, Overlaps::Counted) {
        total += 1;
        if lines.len() < LINES_TOLD {
            line += text[counted..at].matches('\n').count();
            counted = at;
            lines.push(line);
        }
    }
    Err(ReplaceError::Ambiguous { old: shortened(old), total, lines })
}

fn replaced(text: &str, places: &[usize], length: usize, new: &str) -> String {
    let mut out = String::with_capacity(text.len() + places.len() * new.len());
    let mut from = 0;
    for at in places {
        out.push_str(&text[from..*at]);
        out.push_str(new);
        from = at + length;
    }
    out.push_str(&text[from..]);
    out
}

/// The line where `old` would match if white space did not count.
fn near(text: &str, old: &str) -> Option<usize> {
    let squeezed = |line: &str| line.split_whitespace().collect::<String>();
    let first = old.lines().map(squeezed).find(|line| !line.is_empty())?;
    let is_near = |line: &str| {
        !matches!(marker::classify(line), Line::Marker { .. }) && squeezed(line).contains(&first)
    };
    text.lines().position(is_near).map(|index| index + 1)
}

fn near_hint(near: Option<usize>) -> String {
    match near {
        Some(line) => format!("; line {line} is close: check white space and line ends"),
        None => String::new(),
    }
}

fn told_lines(total: usize, lines: &[usize]) -> String {
    let shown = crate::notebook::list(lines);
    if total > lines.len() { format!("{shown} and more") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, old: &str, new: &str, matches: Matches, expected: Result<&str, &str>) {
        let replacement = Replacement { old: old.into(), new: new.into(), matches };
        let found = replace(text, &[replacement]).map_err(|error| error.to_string());
        assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned));
    }

    #[test]
    fn a_match_must_be_the_only_one_unless_all_are_meant() {
        check("a\nb\na", "b", "c", Matches::One, Ok("a\nc\na"));
        check("a\nb\na", "a", "c", Matches::All, Ok("c\nb\nc"));
        let message =
            "2 matches for \"a\", on lines 1, 3; add text around it until it is unique, or replace all";
        check("a\nb\na", "a", "c", Matches::One, Err(message));
    }

    #[test]
    fn markers_are_not_sources() {
        let text = "# %% [code] cell:1\nn = 1\n# %% [code] cell:2\nm\n";
        let expected = "# %% [code] cell:1\nn = 2\n# %% [code] cell:2\nm\n";
        check(text, "1", "2", Matches::One, Ok(expected));
        check(text, "1", "2", Matches::All, Ok(expected));
        check(text, "code", "kode", Matches::All, Err("no match for \"code\""));
        let retyped = "# %% [raw] cell:1\nn = 1\n# %% [code] cell:2\nm\n";
        check(text, "# %% [code] cell:1", "# %% [raw] cell:1", Matches::One, Ok(retyped));
    }

    #[test]
    fn matches_that_overlap_are_several() {
        check(
            "aaa",
            "aa",
            "b",
            Matches::One,
            Err("2 matches for \"aa\", on lines 1, 1; add text around it until it is unique, or replace all"),
        );
        check("aaa", "aa", "b", Matches::All, Ok("ba"));
    }

    #[test]
    fn a_miss_names_the_line_that_was_probably_meant() {
        let message = "no match for \"if x :\"; line 2 is close: check white space and line ends";
        check("a\n\tif x:\n", "if x :", "", Matches::One, Err(message));
        check("a\n", "zzz", "", Matches::One, Err("no match for \"zzz\""));
        check(
            "a",
            "",
            "x",
            Matches::One,
            Err("the text to replace is empty; to add a cell, use the insert action"),
        );
        check("a", "a", "a", Matches::One, Err("the old and the new text are the same"));
    }
}
