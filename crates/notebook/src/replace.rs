//! Exact-string replacements in a text.

use std::ops::Range;

use crate::marker::{self, MarkedLine};
use crate::text::shortened;

/// One replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextReplacement {
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
        /// What may have been meant.
        near: Option<NearMatch>,
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
    /// What is left of a line reads as a marker, which nobody wrote.
    #[error(
        "line {line} would become a cell marker; to start a cell there, give the whole marker in the new text; \
         to have the line as text, write one `%` more"
    )]
    BecomesMarker {
        /// Counting from 1.
        line: usize,
    },
}

/// What is almost the text that was looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NearMatch {
    /// A line that differs in white space only.
    Line(usize),
    /// The text itself, but it reaches into the marker on this line.
    Marker(usize),
}

/// How many matches an error names the lines of.
const LINES_TOLD: usize = 10;

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// A notebook's marked text.
    Marked,
    /// Any other: a line that looks like a marker is a line like all others.
    Plain,
}

/// A text after its replacements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplacedText {
    /// The text.
    pub text: String,
    /// The line each text that was replaced started on, counting from 1 in the text its replacement was made in.
    pub lines: Vec<usize>,
    /// The cells whose markers were in a text that was replaced, or are in what came in its place.
    pub cells: Vec<usize>,
}

/// Makes `replacements` in a text, each on the result of the one before.
///
/// In a marked text markers are not sources: matches that overlap a marker are ignored unless `old` itself shows one. Replacing `1` by `2` does
/// not mean the number of a cell, and replacing `\n# ` by `\n## ` means headings. A match may take the line ends around a
/// marker; the marker stays on a line of its own all the same.
pub fn replace(
    text: &str,
    kind: TextKind,
    replacements: &[TextReplacement],
) -> Result<ReplacedText, ReplaceError> {
    let (mut text, mut lines, mut cells) = (text.to_owned(), Vec::new(), Vec::new());
    for TextReplacement { old, new, matches } in replacements {
        if old.is_empty() {
            return Err(ReplaceError::Empty);
        }
        if old == new {
            return Err(ReplaceError::Same);
        }
        let before = MarkedLines::of(&text, kind);
        let found = match matches {
            Matches::All => before.places(old, MatchOverlap::Skipped).collect::<Vec<_>>(),
            Matches::One => before.only_place(old)?.into_iter().collect(),
        };
        if found.is_empty() {
            return Err(ReplaceError::NoMatch { old: shortened(old), near: before.near(old) });
        }
        let after = before.replaced(&found, old.len(), new);
        if kind == TextKind::Marked {
            cells.extend(before.named_cells(&found, old.len()));
            cells.extend(marker::lines(new).into_iter().filter_map(|line| marker::cell_in(&new[line])));
        }
        if kind == TextKind::Marked && !old.contains(marker::SHOWN) && !new.contains(marker::SHOWN) {
            before.check_markers(&after)?;
        }
        lines.extend(before.lines_at(found));
        text = after;
    }
    Ok(ReplacedText { text, lines, cells })
}

/// Whether a match may begin inside the one before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MatchOverlap {
    Counted,
    Skipped,
}

/// A text, and which of its lines are markers.
struct MarkedLines<'a> {
    text: &'a str,
    /// In order, without their line ends. A plain text has none.
    markers: Vec<Range<usize>>,
}

impl<'a> MarkedLines<'a> {
    fn of(text: &'a str, kind: TextKind) -> Self {
        let markers = match kind {
            TextKind::Marked => marker::lines(text),
            TextKind::Plain => Vec::new(),
        };
        Self { text, markers }
    }

    /// Where `old` occurs in the sources, or anywhere in the text if `old` contains a marker.
    fn places(&self, old: &str, overlaps: MatchOverlap) -> impl Iterator<Item = usize> {
        let finder = memchr::memmem::Finder::new(old).into_owned();
        let (length, means_markers) = (old.len(), old.contains(marker::SHOWN));
        let mut from = 0;
        std::iter::from_fn(move || {
            loop {
                let at = from + finder.find(&self.text.as_bytes()[from..])?;
                let place = at..at + length;
                let is_match =
                    means_markers || (self.marker_in(&place).is_none() && !self.only_separates(&place));
                from = if is_match && overlaps == MatchOverlap::Skipped { place.end } else { at + 1 };
                if is_match {
                    return Some(at);
                }
            }
        })
    }

    /// The first marker that `place` reaches into.
    fn marker_in(&self, place: &Range<usize>) -> Option<&Range<usize>> {
        let next = self.markers.partition_point(|marker| marker.end <= place.start);
        self.markers.get(next).filter(|marker| marker.start < place.end)
    }

    /// Whether `place` is nothing but line ends that belong to no source: those after a marker and after a cell.
    fn only_separates(&self, place: &Range<usize>) -> bool {
        let separates = |at: usize| {
            let next = self.markers.partition_point(|marker| marker.end < at);
            let beside =
                self.markers.get(next).is_some_and(|marker| marker.end == at || marker.start == at + 1);
            beside || (at + 1 == self.text.len() && !self.markers.is_empty())
        };
        self.text[place.clone()].bytes().all(|byte| byte == b'\n') && place.clone().all(separates)
    }

    fn only_place(&self, old: &str) -> Result<Option<usize>, ReplaceError> {
        let mut found = self.places(old, MatchOverlap::Counted);
        let first = found.next();
        if found.next().is_none() {
            return Ok(first);
        }
        let total = self.places(old, MatchOverlap::Counted).count();
        let lines = self.lines_at(self.places(old, MatchOverlap::Counted).take(LINES_TOLD)).collect();
        Err(ReplaceError::Ambiguous { old: shortened(old), total, lines })
    }

    /// The lines of places in order.
    fn lines_at(&self, places: impl IntoIterator<Item = usize>) -> impl Iterator<Item = usize> {
        places.into_iter().scan((1, 0), |(line, counted), at| {
            *line += self.text[*counted..at].matches('\n').count();
            *counted = at;
            Some(*line)
        })
    }

    /// The text with `new` at these places. Markers outside of them stay on lines of their own.
    fn replaced(&self, places: &[usize], length: usize, new: &str) -> String {
        let mut out = String::with_capacity(self.text.len() + places.len() * new.len());
        let mut from = 0;
        let mut ends_in_marker = false;
        for at in places {
            push(&mut out, &self.text[from..*at], ends_in_marker);
            ends_in_marker = self.markers.binary_search_by_key(at, |marker| marker.end).is_ok()
                || (ends_in_marker && from == *at);
            push(&mut out, new, ends_in_marker);
            ends_in_marker &= new.is_empty();
            from = at + length;
            let before_marker = self.markers.binary_search_by_key(&from, |marker| marker.start).is_ok();
            if before_marker && !out.is_empty() && !out.ends_with('\n') {
                out.push('\n');
                ends_in_marker = false;
            }
        }
        push(&mut out, &self.text[from..], ends_in_marker);
        out
    }

    /// The cells whose markers are in the text at these places.
    fn named_cells(&self, places: &[usize], length: usize) -> Vec<usize> {
        let is_at =
            |marker: &&Range<usize>| places.iter().any(|at| *at < marker.end && marker.start < at + length);
        let markers = self.markers.iter().filter(is_at);
        markers.filter_map(|marker| marker::cell_in(&self.text[marker.clone()])).collect()
    }

    /// Refuses a text with more markers than this one.
    fn check_markers(&self, after: &str) -> Result<(), ReplaceError> {
        let now = marker::lines(after);
        if now.len() == self.markers.len() {
            return Ok(());
        }
        let old = self.markers.iter().map(|marker| &self.text[marker.clone()]);
        let same = now.iter().zip(old).take_while(|(now, old)| after[(*now).clone()] == **old).count();
        let at = now.get(same).map_or(after.len(), |marker| marker.start);
        Err(ReplaceError::BecomesMarker { line: line_at(after, at) })
    }

    fn near(&self, old: &str) -> Option<NearMatch> {
        let in_marker = memchr::memmem::find(self.text.as_bytes(), old.as_bytes())
            .and_then(|at| self.marker_in(&(at..at + old.len())));
        if let Some(marker) = in_marker {
            return Some(NearMatch::Marker(line_at(self.text, marker.start)));
        }
        let squeezed = |line: &str| line.split_whitespace().collect::<String>();
        let first = old.lines().map(squeezed).find(|line| !line.is_empty())?;
        let is_near = |line: &str| {
            let is_source =
                self.markers.is_empty() || !matches!(marker::classify(line), MarkedLine::Marker { .. });
            is_source && squeezed(line).contains(&first)
        };
        self.text.lines().position(is_near).map(|index| NearMatch::Line(index + 1))
    }
}

/// Appends `piece`, on a line of its own after a marker.
fn push(out: &mut String, piece: &str, after_marker: bool) {
    if after_marker && !piece.is_empty() && !piece.starts_with('\n') {
        out.push('\n');
    }
    out.push_str(piece);
}

/// The number of the line that holds `at`, counting from 1.
fn line_at(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

fn near_hint(near: Option<NearMatch>) -> String {
    match near {
        Some(NearMatch::Line(line)) => format!("; line {line} is close: check white space and line ends"),
        Some(NearMatch::Marker(line)) => {
            format!("; on line {line} it reaches into a cell's marker, which changes only when shown whole")
        }
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
        let replacement = TextReplacement { old: old.into(), new: new.into(), matches };
        let found = replace(text, TextKind::Marked, &[replacement]);
        let found = found.map(|replaced| replaced.text).map_err(|error| error.to_string());
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
        let message = "no match for \"code\"; on line 1 it reaches into a cell's marker, which changes only when shown whole";
        check(text, "code", "kode", Matches::All, Err(message));
        let retyped = "# %% [raw] cell:1\nn = 1\n# %% [code] cell:2\nm\n";
        check(text, "# %% [code] cell:1", "# %% [raw] cell:1", Matches::One, Ok(retyped));
    }

    const CELLS: &str = "# %% [markdown] cell:0\n# Title\nMore\n# %% [code] cell:1\nb\n# %% [raw] cell:2\n\n";

    #[test]
    fn an_edit_that_ends_at_a_marker_leaves_the_marker_its_line() {
        let expected = CELLS.replace("More", "Less");
        check(CELLS, "More\n", "Less", Matches::One, Ok(&expected));
        check(CELLS, "More\n", "Less\n", Matches::One, Ok(&expected));
        // A line goes with its line end.
        check(CELLS, "More\n", "", Matches::One, Ok(&CELLS.replace("More\n", "")));
        check(CELLS, "\nMore\n", "", Matches::One, Ok(&CELLS.replace("\nMore", "")));
        check(CELLS, "\nb", "c", Matches::One, Ok(&CELLS.replace("\nb", "\nc")));
        check(CELLS, "\nb\n", "", Matches::One, Ok(&CELLS.replace("\nb\n", "\n")));
        let whole = "# %% [markdown] cell:0\n# Title\nMore\n";
        check(CELLS, whole, "# %% [raw]\nx", Matches::One, Ok(&CELLS.replace(whole, "# %% [raw]\nx\n")));
    }

    #[test]
    fn an_edit_of_line_starts_does_not_reach_into_markers() {
        check(CELLS, "\n# ", "\n## ", Matches::All, Ok(&CELLS.replace("# Title", "## Title")));
        let message = "no match for \"1\\nb\"; on line 4 it reaches into a cell's marker, which changes only when shown whole";
        check(CELLS, "1\nb", "2\nB", Matches::One, Err(message));
        // The line ends that hold cells apart are no source's.
        check(CELLS, "\n", "; ", Matches::One, Ok(&CELLS.replace("Title\n", "Title; ")));
        check(CELLS, "\n\n", "", Matches::All, Err("no match for \"\\n\\n\""));
    }

    #[test]
    fn a_marker_that_nobody_wrote_is_refused() {
        let message = "line 2 would become a cell marker; to start a cell there, give the whole marker in the new text; \
                       to have the line as text, write one `%` more";
        check("# %% [code] cell:0\nx# %% [code]\n", "x", "", Matches::One, Err(message));
        check("# %% [code] cell:0\n# %%% [code]\n", "%%%", "%%", Matches::One, Err(message));
        let split = "# %% [code] cell:0\na\n# %% [code]\nb\n";
        check("# %% [code] cell:0\na;b\n", ";", "\n# %% [code]\n", Matches::One, Ok(split));
    }

    #[test]
    fn a_plain_text_that_looks_marked_is_plain_and_the_replaced_lines_are_reported() {
        let replaced = |old: &str, new: &str| {
            let replacement = TextReplacement { old: old.into(), new: new.into(), matches: Matches::All };
            replace(CELLS, TextKind::Plain, &[replacement]).map(|replaced| (replaced.text, replaced.lines))
        };
        let expected = CELLS.replace("[markdown]", "[raw]");
        assert_eq!(replaced("[markdown]", "[raw]"), Ok((expected, vec![1])));
        assert_eq!(replaced("\n# ", "\n## "), Ok((CELLS.replace("\n# ", "\n## "), vec![1, 3, 5])));
        assert_eq!(replaced("\n", ""), Ok((CELLS.replace('\n', ""), vec![1, 2, 3, 4, 5, 6, 7])));
        let headings = TextReplacement { old: "# ".into(), new: "## ".into(), matches: Matches::All };
        let headings = replace(CELLS, TextKind::Marked, &[headings]).map(|replaced| replaced.lines);
        assert_eq!(headings, Ok(vec![2]));
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
