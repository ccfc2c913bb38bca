//! Finished lines of output, some of them cut at the line cap.

use std::{
    fmt::{self, Write as _},
    ops::Range,
};

use unicode_segmentation::GraphemeCursor;

/// Bytes past the cap that a line is still looked at, to find where its last whole grapheme ends.
pub(crate) const LOOKAHEAD: usize = 128;

/// A number of lines and of bytes of text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Extent {
    /// Lines, the last one counted even without its line feed.
    pub lines: u64,
    /// Bytes of UTF-8.
    pub bytes: u64,
}

/// Whole lines as they will be shown. Only the very last line of an output lacks its line feed.
#[derive(Debug, Clone, Default)]
pub(crate) struct WholeLines {
    text: String,
    /// Which of the lines were cut, in order: few, so they are kept beside the text.
    cuts: Vec<Cut>,
}

/// A line that was cut at the cap.
#[derive(Debug, Clone, Copy)]
struct Cut {
    /// Where in the text its marker begins.
    marker_at: usize,
    marker_len: usize,
    /// Bytes of the line that are not shown.
    hidden: u64,
}

impl WholeLines {
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    #[cfg(test)]
    pub(crate) fn held_bytes(&self) -> usize {
        self.text.capacity() + self.cuts.capacity() * size_of::<Cut>()
    }

    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.cuts.clear();
    }

    /// Adds one line, cut at `cap`, without its line feed. `beyond` bytes of it are not in `line` any more.
    pub(crate) fn push_line(&mut self, line: &str, beyond: u64, cap: usize) {
        if line.len() <= cap && beyond == 0 {
            return self.text.push_str(line);
        }
        let shown = shown_len(line, cap);
        self.text.push_str(&line[..shown]);
        self.mark_cut(beyond + (line.len() - shown) as u64);
    }

    /// Marks the line whose visible part was pushed last as cut by `hidden` bytes.
    pub(crate) fn mark_cut(&mut self, hidden: u64) {
        let marker_at = self.text.len();
        write!(self.text, "…[+{}]", Counted(hidden, "byte")).expect("writing to a string cannot fail");
        self.cuts.push(Cut { marker_at, marker_len: self.text.len() - marker_at, hidden });
    }

    /// The text, to write the visible part of a line to its end.
    pub(crate) fn line_mut(&mut self) -> &mut String {
        &mut self.text
    }

    /// Adds a line as [`WholeLines::pop`] gave it, without its line feed.
    pub(crate) fn push_presented(&mut self, line: &str, hidden: u64) {
        self.text.push_str(line);
        if hidden > 0 {
            self.mark_cut(hidden);
        }
    }

    /// Adds whole lines, cutting each at `cap`.
    pub(crate) fn push_whole(&mut self, lines: &str, cap: usize) {
        let (mut start, mut unwritten) = (0, 0);
        for feed in memchr::memchr_iter(b'\n', lines.as_bytes()) {
            if feed - start > cap {
                self.text.push_str(&lines[unwritten..start]);
                self.push_line(&lines[start..feed], 0, cap);
                unwritten = feed;
            }
            start = feed + 1;
        }
        self.text.push_str(&lines[unwritten..]);
    }

    pub(crate) fn end_line(&mut self) {
        self.text.push('\n');
    }

    /// Adds lines of `other`. The range begins and ends where lines do.
    pub(crate) fn extend(&mut self, other: &Self, range: Range<usize>) {
        let base = self.text.len();
        let cuts_before = |at| other.cuts.partition_point(|cut| cut.marker_at < at);
        let cuts = &other.cuts[cuts_before(range.start)..cuts_before(range.end)];
        self.cuts
            .extend(cuts.iter().map(|cut| Cut { marker_at: cut.marker_at - range.start + base, ..*cut }));
        self.text.push_str(&other.text[range]);
    }

    /// Removes the lines before byte `at`, where a line starts, and says how much text that was
    /// before it was cut.
    pub(crate) fn remove_front(&mut self, at: usize) -> Extent {
        let removed = self.extent_before(at);
        self.text.drain(..at);
        self.cuts.retain_mut(|cut| {
            let stays = cut.marker_at >= at;
            cut.marker_at = cut.marker_at.wrapping_sub(at);
            stays
        });
        removed
    }

    /// How much text the lines before byte `at` were before they were cut.
    pub(crate) fn extent_before(&self, at: usize) -> Extent {
        let cut = self.cut_before(at);
        let markers: usize =
            self.cuts.iter().filter(|cut| cut.marker_at < at).map(|cut| cut.marker_len).sum();
        let shown = extent(&self.text[..at]);
        Extent { bytes: shown.bytes - markers as u64 + cut.bytes, ..shown }
    }

    /// How many of the lines before byte `at` were cut, and by how much.
    pub(crate) fn cut_before(&self, at: usize) -> Extent {
        let cuts = self.cuts.iter().filter(|cut| cut.marker_at < at);
        cuts.fold(Extent::default(), |sum, cut| Extent {
            lines: sum.lines + 1,
            bytes: sum.bytes + cut.hidden,
        })
    }

    /// Each line before byte `end`, with its line feed, and whether it was cut.
    pub(crate) fn each_before(&self, end: usize) -> impl Iterator<Item = (&str, bool)> {
        let (mut start, mut cuts) = (0, self.cuts.iter().peekable());
        self.text[..end].split_inclusive('\n').map(move |line| {
            start += line.len();
            (line, cuts.next_if(|cut| cut.marker_at < start).is_some())
        })
    }

    /// Takes back the last line: its visible text without line feed and marker, and the bytes that were cut from it.
    pub(crate) fn pop(&mut self) -> Option<(String, u64)> {
        let body = self.text.strip_suffix('\n')?;
        let start = line_start(self.text.as_bytes(), 1);
        let cut = self.cuts.pop_if(|cut| cut.marker_at >= start);
        let end = cut.map_or(body.len(), |cut| cut.marker_at);
        let line = self.text[start..end].to_owned();
        self.text.truncate(start);
        Some((line, cut.map_or(0, |cut| cut.hidden)))
    }
}

/// Where the last `count` lines of `lines` start; a line feed at the very end belongs to the last line.
pub(crate) fn line_start(lines: &[u8], count: usize) -> usize {
    let body = lines.strip_suffix(b"\n").unwrap_or(lines);
    memchr::memrchr_iter(b'\n', body).nth(count - 1).map_or(0, |feed| feed + 1)
}

/// Where the first line of `lines` ends, with its line feed.
pub(crate) fn line_end(lines: &[u8]) -> usize {
    memchr::memchr(b'\n', lines).map_or(lines.len(), |feed| feed + 1)
}

/// The size of some text; an unfinished last line counts as one.
pub(crate) fn extent(text: &str) -> Extent {
    let feeds = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    let unfinished = !text.is_empty() && !text.ends_with('\n');
    Extent { lines: feeds as u64 + u64::from(unfinished), bytes: text.len() as u64 }
}

/// How much of a line fits within `cap` bytes: whole graphemes, judged by its first `cap` + [`LOOKAHEAD`] bytes.
pub(crate) fn shown_len(line: &str, cap: usize) -> usize {
    if line.len() <= cap {
        return line.len();
    }
    let seen = &line[..line.floor_char_boundary(cap.saturating_add(LOOKAHEAD))];
    let at = seen.floor_char_boundary(cap);
    let mut cursor = GraphemeCursor::new(at, seen.len(), true);
    if cursor.is_boundary(seen, 0).unwrap_or(true) {
        return at;
    }
    // One grapheme longer than the cap has to be cut somewhere.
    cursor.prev_boundary(seen, 0).ok().flatten().filter(|&before| before > 0).unwrap_or(at)
}

/// A number as people read it: `1,234,567`.
#[derive(Debug, Clone, Copy)]
pub struct Thousands(pub u64);

impl fmt::Display for Thousands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

/// So many of something: `1 line`, `2,000 lines`.
#[derive(Debug, Clone, Copy)]
pub struct Counted(pub u64, pub &'static str);

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(count, noun) = *self;
        write!(f, "{} {noun}{}", Thousands(count), if count == 1 { "" } else { "s" })
    }
}
