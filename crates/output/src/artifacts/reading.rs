//! Reading parts of an artifact without loading it.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    ops::{ControlFlow, RangeInclusive},
};

use cellwright_cell::Stream;

use super::{Artifact, ArtifactError};
use crate::{
    CapturedText, Colours, OutputLimits, OutputSink,
    decode::Utf8Decoder,
    lines::WholeLines,
    screen::{Screen, Scroll},
    truncation::FullText,
};

/// Bytes read from a file at once.
const BLOCK: usize = 128 * 1024;

/// Longest part of a line that a search looks at.
const SEARCHED: usize = 1024 * 1024;

/// Some lines of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactPage {
    /// The lines as a terminal shows them.
    pub text: String,
    /// The number of the first one, counting from 1.
    pub first: u64,
    /// How many there are. Fewer than asked for when the artifact ends or the budget is spent.
    pub lines: u64,
    /// The line to go on with, when there are more.
    pub next: Option<u64>,
}

/// A stretch of an artifact by bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByteWindow {
    /// The bytes as text, as they were printed.
    pub text: String,
    /// Which bytes these are: whole characters, so the ends may lie a little off what was asked.
    pub bytes: std::ops::Range<u64>,
    /// The size of the artifact.
    pub total: u64,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundLines {
    /// The lines that match.
    pub hits: Vec<Hit>,
    /// The line to go on with, when the search stopped at its limit.
    pub next: Option<u64>,
    /// Lines that are too long and were searched in their first mebibyte only.
    pub long_lines: u64,
}

/// A line that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Its number, counting from 1.
    pub line: u64,
    /// Its text.
    pub text: String,
}

impl Artifact {
    /// Reads lines by number, counting from 1, up to `budget` bytes of text: the same lines, under the
    /// same numbers, that the notice of a truncated output names. A line longer than the budget is cut.
    pub fn lines(&self, wanted: RangeInclusive<u64>, budget: usize) -> Result<ArtifactPage, ArtifactError> {
        let first = (*wanted.start()).max(1);
        let mut page = ArtifactPage { text: String::new(), first, lines: 0, next: None };
        self.visit(budget, first, |number, line| {
            let full = page.lines > 0 && page.text.len() + line.text.len() > budget;
            if full || number > *wanted.end() {
                page.next = Some(number);
                return ControlFlow::Break(());
            }
            page.text.push_str(line.text);
            page.lines += 1;
            ControlFlow::Continue(())
        })?;
        Ok(page)
    }

    /// Finds lines for which `matches` holds among those `wanted` by number, at most `limit` of them.
    pub fn search(
        &self,
        wanted: RangeInclusive<u64>,
        limit: usize,
        mut matches: impl FnMut(&str) -> bool,
    ) -> Result<FoundLines, ArtifactError> {
        let mut found = FoundLines { hits: Vec::new(), next: None, long_lines: 0 };
        self.visit(SEARCHED, (*wanted.start()).max(1), |number, line| {
            if number > *wanted.end() {
                return ControlFlow::Break(());
            }
            if found.hits.len() >= limit {
                found.next = Some(number);
                return ControlFlow::Break(());
            }
            found.long_lines += u64::from(line.is_cut);
            let text = line.text.trim_end_matches('\n');
            if matches(text) {
                found.hits.push(Hit { line: number, text: text.to_owned() });
            }
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// The first and last lines within `limits`.
    pub fn ends(&self, limits: OutputLimits) -> Result<CapturedText, ArtifactError> {
        self.ends_of(limits, FullText::Artifact(self.id.clone()))
    }

    /// The first and last lines within `limits` of an output whose size is known.
    pub fn ends_of(&self, limits: OutputLimits, full: FullText) -> Result<CapturedText, ArtifactError> {
        self.require_text()?;
        let mut sink = OutputSink::new(limits, Colours::Dropped);
        self.read_blocks(|block| {
            sink.write(Stream::Stdout, block);
            ControlFlow::Continue(())
        })?;
        Ok(sink.finish_as(full))
    }

    /// Reads about `length` bytes from byte `start` on, as printed: the way into a line of any length.
    pub fn window(&self, start: u64, length: usize) -> Result<ByteWindow, ArtifactError> {
        self.require_text()?;
        let window = |file: &mut File| -> io::Result<ByteWindow> {
            let total = file.metadata()?.len();
            file.seek(SeekFrom::Start(start))?;
            let mut bytes = Vec::new();
            file.take(length as u64).read_to_end(&mut bytes)?;
            // A character's later bytes belong to the window before; one that is cut off, to the next.
            let skipped = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
            let skipped = if start == 0 { 0 } else { skipped };
            let mut text = String::new();
            let mut end = start + skipped as u64;
            Utf8Decoder::default().decode(&bytes[skipped..], |piece, raw| {
                text.push_str(piece);
                end += raw.len() as u64;
            });
            if start + bytes.len() as u64 >= total && end < total {
                text.push('\u{fffd}');
                end = total;
            }
            Ok(ByteWindow { text, bytes: start + skipped as u64..end, total })
        };
        File::open(&self.path)
            .and_then(|mut file| window(&mut file))
            .map_err(|source| self.read_error(source))
    }

    /// The whole content, if it has at most `limit` bytes; for images.
    pub fn content(&self, limit: u64) -> Result<Option<Vec<u8>>, ArtifactError> {
        let read = |file: File| -> io::Result<Option<Vec<u8>>> {
            let mut content = Vec::new();
            file.take(limit.saturating_add(1)).read_to_end(&mut content)?;
            Ok((content.len() as u64 <= limit).then_some(content))
        };
        File::open(&self.path).and_then(read).map_err(|source| self.read_error(source))
    }

    /// Shows each line from number `first` on to `visitor`, until it breaks off.
    fn visit(
        &self,
        cap: usize,
        first: u64,
        visitor: impl FnMut(u64, ArtifactLine<'_>) -> ControlFlow<()>,
    ) -> Result<(), ArtifactError> {
        self.require_text()?;
        let mut visit = LineVisit { next: 1, first, ended: false, visitor };
        let mut screen = Screen::new(Colours::Dropped, cap);
        let mut decoder = Utf8Decoder::default();
        self.read_blocks(|block| {
            decoder.decode(block, |text, _| screen.feed(text, &mut visit));
            if visit.ended { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        decoder.finish(|text, _| screen.feed(text, &mut visit));
        screen.show_rest(&mut visit);
        Ok(())
    }

    fn read_blocks(&self, mut take: impl FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), ArtifactError> {
        let mut read = |mut file: File| -> io::Result<()> {
            let mut block = vec![0; BLOCK];
            loop {
                let length = match file.read(&mut block) {
                    Ok(length) => length,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                };
                if length == 0 || take(&block[..length]).is_break() {
                    return Ok(());
                }
            }
        };
        File::open(&self.path).and_then(&mut read).map_err(|source| self.read_error(source))
    }

    fn require_text(&self) -> Result<(), ArtifactError> {
        if self.kind.is_text() {
            return Ok(());
        }
        Err(ArtifactError::NotText { id: self.id.clone(), kind: self.kind })
    }

    fn read_error(&self, source: io::Error) -> ArtifactError {
        ArtifactError::Io { action: "read", path: self.path.clone(), source }
    }
}

struct ArtifactLine<'a> {
    /// With its line feed, unless it is an unfinished last line.
    text: &'a str,
    is_cut: bool,
}

/// Numbers the lines that leave a screen.
struct LineVisit<F> {
    /// The number of the next line.
    next: u64,
    first: u64,
    ended: bool,
    visitor: F,
}

impl<F: FnMut(u64, ArtifactLine<'_>) -> ControlFlow<()>> Scroll for LineVisit<F> {
    fn scroll(&mut self, lines: &WholeLines, end: usize) {
        for (text, is_cut) in lines.each_before(end) {
            if self.next >= self.first && !self.ended {
                self.ended = (self.visitor)(self.next, ArtifactLine { text, is_cut }).is_break();
            }
            self.next += 1;
        }
    }

    fn scroll_plain(&mut self, lines: &str, cap: usize) {
        let count = memchr::memchr_iter(b'\n', lines.as_bytes()).count() as u64;
        if self.ended || self.next + count <= self.first {
            self.next += count;
            return;
        }
        let mut capped = WholeLines::default();
        capped.push_whole(lines, cap);
        self.scroll(&capped, capped.len());
    }
}
