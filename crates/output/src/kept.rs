//! The first and the last lines of an output, within a budget.

use std::mem;

use crate::{
    lines::{Extent, WholeLines, extent, line_end, line_start, shown_len},
    screen::Scroll,
};

/// Keeps whole lines: the head fills first, the tail takes what the head left of the budget, and what
/// falls out between them is counted.
#[derive(Debug, Clone)]
pub(crate) struct KeptLines {
    head_budget: usize,
    budget: usize,
    head: WholeLines,
    head_is_full: bool,
    /// Up to twice what it may show: old lines are thrown out in batches, so that a short line costs only itself.
    tail: WholeLines,
    omitted: Extent,
}

impl KeptLines {
    pub(crate) fn new(head: usize, tail: usize) -> Self {
        Self {
            head_budget: head,
            budget: head.saturating_add(tail),
            head: WholeLines::default(),
            head_is_full: false,
            tail: WholeLines::default(),
            omitted: Extent::default(),
        }
    }

    #[cfg(test)]
    pub(crate) fn held_bytes(&self) -> usize {
        self.head.held_bytes() + self.tail.held_bytes()
    }

    /// The end: the first lines, how much was left out after them, the last lines.
    pub(crate) fn finish(mut self) -> (WholeLines, Extent, WholeLines) {
        self.trim();
        (self.head, self.omitted, self.tail)
    }

    fn tail_budget(&self) -> usize {
        self.budget - self.head.len()
    }

    /// Fills the head with lines before `end` and says where the rest begins.
    fn fill_head(&mut self, lines: &WholeLines, end: usize) -> usize {
        let (bytes, room) = (&lines.as_str().as_bytes()[..end], self.head_budget - self.head.len());
        let mut start = 0;
        while !self.head_is_full && start < end {
            let next = start + line_end(&bytes[start..]);
            if next > room {
                self.head_is_full = true;
            } else {
                start = next;
            }
        }
        self.head.extend(lines, 0..start);
        start
    }

    /// Where the lines begin that the tail could show if nothing came after them; perhaps one too many.
    fn first_that_stays(&self, lines: &str, cap: usize) -> usize {
        let (bytes, mut room) = (lines.as_bytes(), self.tail_budget());
        let window = bytes.len().saturating_sub(room);
        let start = if window == 0 { 0 } else { window - 1 + line_end(&bytes[window - 1..]) };
        let mut line = start;
        let mut feeds = memchr::memchr_iter(b'\n', &bytes[start..]).map(|feed| start + feed + 1);
        if feeds.all(|end| mem::replace(&mut line, end).saturating_add(cap) >= end - 1) {
            return start;
        }
        // Long lines take less room than their length once they are cut. Their markers are not counted here.
        let mut stay = bytes.len();
        while stay > 0 {
            let start = line_start(&bytes[..stay], 1);
            let shown = shown_len(&lines[start..stay - 1], cap) + 1;
            if shown > room {
                break;
            }
            room -= shown;
            stay = start;
        }
        stay
    }

    /// Throws out the oldest lines of the tail until the rest fits.
    fn trim(&mut self) {
        let excess = self.tail.len().saturating_sub(self.tail_budget());
        if excess > 0 {
            // The first line that starts at or after the excess is the first that fits.
            let text = self.tail.as_str().as_bytes();
            let start = excess - 1 + line_end(&text[excess - 1..]);
            self.omit(start);
        }
    }

    fn omit(&mut self, end: usize) {
        let gone = self.tail.remove_front(end);
        self.count_omitted(gone);
    }

    fn count_omitted(&mut self, gone: Extent) {
        self.omitted.lines += gone.lines;
        self.omitted.bytes += gone.bytes;
    }
}

impl Scroll for KeptLines {
    fn scroll(&mut self, lines: &WholeLines, end: usize) {
        let start = self.fill_head(lines, end);
        self.tail.extend(lines, start..end);
        if self.tail.len() / 2 > self.tail_budget() {
            self.trim();
        }
    }

    fn scroll_plain(&mut self, lines: &str, cap: usize) {
        let mut rest = lines;
        // As many lines at a time as fill the head if none is cut; then only those are looked at that will stay.
        while !self.head_is_full && !rest.is_empty() {
            let room = rest.len().min(self.head_budget - self.head.len());
            let end = room + line_end(&rest.as_bytes()[room..]);
            let mut first = WholeLines::default();
            first.push_whole(&rest[..end], cap);
            self.scroll(&first, first.len());
            rest = &rest[end..];
        }
        let stay = self.first_that_stays(rest, cap);
        if stay > 0 {
            self.omit(self.tail.len());
            self.count_omitted(extent(&rest[..stay]));
        }
        let mut last = WholeLines::default();
        last.push_whole(&rest[stay..], cap);
        self.scroll(&last, last.len());
    }
}
