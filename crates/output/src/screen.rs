//! What a terminal would show of a text: carriage returns, backspaces, erasures and cursor moves
//! applied, control characters gone, colours kept or dropped.
//!
//! The screen is as wide as its lines and [`REACH`] lines high: a line that scrolls off the top is final and leaves through
//! [`Scroll`]. Everything is a function of the text alone, never of how it was split into chunks, and takes
//! time in proportion to it. Whole-screen clears are ignored: they would lose output.

mod escape;
mod row;
mod style;

use escape::{EscapeReader, ScreenCommand};
use row::ScreenRow;
use style::CellStyle;

use crate::lines::{WholeLines, line_start};

/// How many lines, its own included, the cursor can reach upwards. Nested progress bars need a few.
const REACH: usize = 50;

/// Finished lines are handed on when so many bytes have come together.
const BATCH: usize = 32 * 1024;

/// A cursor move ends here unless the line is longer: what it skips has to be filled with blanks.
const RIGHT_MARGIN: usize = 1024;

/// Whether colours and text attributes stay in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colours {
    /// As SGR sequences, set and reset within each line. For terminals.
    Kept,
    /// For models and files.
    #[default]
    Dropped,
}

/// Where lines go that are final.
pub(crate) trait Scroll {
    /// Takes the lines before byte `end`, each within the cap.
    fn scroll(&mut self, lines: &WholeLines, end: usize);

    /// Takes many plain lines at once, each with its line feed, that are still to be cut at `cap`.
    fn scroll_plain(&mut self, lines: &str, cap: usize);
}

/// A terminal's screen, fed with text.
#[derive(Debug, Clone)]
pub(crate) struct Screen {
    colours: Colours,
    /// Most bytes of a line that are shown.
    cap: usize,
    escapes: EscapeReader,
    style: CellStyle,
    /// Finished lines that the cursor may come back to, and older ones that wait to be handed on.
    above: WholeLines,
    /// How many lines of `above` are on the screen. `above` alone does not show it, because it holds more or
    /// fewer by how the text was split.
    reachable: usize,
    row: ScreenRow,
    column: CursorColumn,
    /// Lines below the cursor, the nearest last, each with its count of cut bytes.
    below: Vec<(String, u64)>,
}

/// The position of the cursor in its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CursorColumn {
    /// After the last character of a row that was only appended to.
    End,
    At(usize),
}

impl Screen {
    pub(crate) fn new(colours: Colours, cap: usize) -> Self {
        Self {
            colours,
            cap,
            escapes: EscapeReader::default(),
            style: CellStyle::default(),
            above: WholeLines::default(),
            reachable: 0,
            row: ScreenRow::default(),
            column: CursorColumn::End,
            below: Vec::new(),
        }
    }

    #[cfg(test)]
    pub(crate) fn held_bytes(&self) -> usize {
        let below: usize = self.below.iter().map(|(line, _)| line.capacity()).sum();
        self.above.held_bytes() + self.row.held_bytes() + below
    }

    /// Whether the cursor is in an empty last line and no escape sequence is incomplete.
    pub(crate) fn at_fresh_line(&self) -> bool {
        self.below.is_empty() && self.row.is_empty() && self.escapes.at_ground()
    }

    /// Whether what is printed next has colours or attributes.
    pub(crate) fn is_styled(&self) -> bool {
        self.style != CellStyle::default()
    }

    /// Shows `text`. Lines that leave the screen go to `out`.
    pub(crate) fn feed(&mut self, mut text: &str, out: &mut impl Scroll) {
        while !text.is_empty() {
            if !self.escapes.at_ground() {
                let mut escapes = std::mem::take(&mut self.escapes);
                let (read, command) = escapes.advance(text);
                if let Some(command) = command {
                    self.obey(&command, out);
                }
                self.escapes = escapes;
                text = &text[read..];
                continue;
            }
            let (plain, rest) = text.split_at(plain_len(text.as_bytes()));
            self.print(plain, out);
            let mut chars = rest.chars();
            match chars.next() {
                Some('\x1b') => self.escapes.start(),
                // Line ends of Windows: the line feed goes to the first column anyway.
                Some('\r') if chars.as_str().starts_with('\n') => {}
                Some('\r') => self.move_to(0),
                Some('\x08') => self.move_to(self.column().saturating_sub(1)),
                Some('\x0b' | '\x0c') => self.line_feed(out),
                _ => {} // every other control character shows nothing
            }
            text = chars.as_str();
        }
    }

    /// Hands on all lines, the last one as it is now. The screen does not change.
    pub(crate) fn show_rest(&self, out: &mut impl Scroll) {
        let mut rest = self.above.clone();
        self.row.present(&mut rest, self.cap);
        for (line, hidden) in self.below.iter().rev() {
            rest.end_line();
            rest.push_presented(line, *hidden);
        }
        out.scroll(&rest, rest.len());
    }

    /// Shows text without control characters other than tabs and line feeds.
    fn print(&mut self, text: &str, out: &mut impl Scroll) {
        let mut rest = text;
        while !rest.is_empty() {
            let at_end = self.column == CursorColumn::End && self.below.is_empty();
            if at_end && self.row.is_plain() && self.style == CellStyle::default() {
                return self.print_at_end(rest, out);
            }
            let end = memchr::memchr(b'\n', rest.as_bytes());
            let line = &rest[..end.unwrap_or(rest.len())];
            if !line.is_empty() {
                let mut column = self.column();
                self.row.overwrite(&mut column, line, self.style, self.cap);
                self.column = CursorColumn::At(column);
            }
            let Some(end) = end else { return };
            self.line_feed(out);
            rest = &rest[end + 1..];
        }
    }

    /// The fast path: plain text at the end of the last line.
    fn print_at_end(&mut self, text: &str, out: &mut impl Scroll) {
        let Some(first) = memchr::memchr(b'\n', text.as_bytes()) else {
            return self.row.append(text, self.cap);
        };
        let last = memchr::memrchr(b'\n', text.as_bytes()).unwrap_or(first);
        self.row.append(&text[..first], self.cap);
        self.line_feed(out);
        if last > first {
            self.whole_lines(&text[first + 1..=last], out);
        }
        self.row.append(&text[last + 1..], self.cap);
    }

    fn whole_lines(&mut self, lines: &str, out: &mut impl Scroll) {
        let mut stay = 0;
        if lines.len() >= BATCH {
            stay = line_start(lines.as_bytes(), REACH);
            if stay > 0 {
                out.scroll(&self.above, self.above.len());
                self.above.clear();
                out.scroll_plain(&lines[..stay], self.cap);
            }
        }
        self.above.push_whole(&lines[stay..], self.cap);
        let count = memchr::memchr_iter(b'\n', lines.as_bytes()).take(REACH).count();
        self.reachable = (self.reachable + count).min(REACH - 1);
        self.hand_on(out);
    }

    fn line_feed(&mut self, out: &mut impl Scroll) {
        self.row.present(&mut self.above, self.cap);
        self.above.end_line();
        self.row.clear();
        self.column = CursorColumn::End;
        self.reachable = (self.reachable + 1).min(REACH - 1);
        if let Some((line, hidden)) = self.below.pop() {
            self.row = ScreenRow::restored(&line, hidden);
            self.move_to(0);
        }
        self.hand_on(out);
    }

    /// Lets go of lines that the cursor cannot reach any more.
    fn hand_on(&mut self, out: &mut impl Scroll) {
        if self.above.len() >= 2 * BATCH {
            let end = line_start(self.above.as_str().as_bytes(), REACH);
            out.scroll(&self.above, end);
            self.above.remove_front(end);
        }
    }

    fn column(&self) -> usize {
        match self.column {
            CursorColumn::End => self.row.width(),
            CursorColumn::At(column) => column,
        }
    }

    fn move_to(&mut self, column: usize) {
        // In an empty row there is nothing to write over: it stays on the fast path.
        self.column =
            if column == 0 && self.row.is_empty() { CursorColumn::End } else { CursorColumn::At(column) };
    }

    fn obey(&mut self, command: &ScreenCommand<'_>, out: &mut impl Scroll) {
        match *command {
            ScreenCommand::Style(parameters) => {
                if self.colours == Colours::Kept {
                    self.style = self.style.after(parameters);
                }
            }
            ScreenCommand::Up(count) => self.move_up(count),
            ScreenCommand::Down(count) => self.move_down(count),
            ScreenCommand::Forward(count) => self.move_right_to(self.column().saturating_add(count)),
            ScreenCommand::Back(count) => self.move_to(self.column().saturating_sub(count)),
            ScreenCommand::Column(column) => self.move_right_to(column),
            ScreenCommand::NextLine(count) => {
                self.move_down(count);
                self.move_to(0);
            }
            ScreenCommand::PreviousLine(count) => {
                self.move_up(count);
                self.move_to(0);
            }
            // Nothing is right of the end; programs erase it after every coloured word.
            ScreenCommand::EraseToEnd if self.column == CursorColumn::End => {}
            ScreenCommand::EraseToEnd => self.row.truncate(self.column()),
            ScreenCommand::EraseToStart => self.row.blank_to(self.column()),
            ScreenCommand::EraseLine => {
                let column = self.column();
                self.row.clear();
                self.move_to(column);
            }
            ScreenCommand::EraseBelow => {
                self.row.truncate(self.column());
                self.below.clear();
            }
            ScreenCommand::LineFeed => self.line_feed(out),
        }
    }

    fn move_right_to(&mut self, column: usize) {
        self.move_to(column.min(self.row.width().max(RIGHT_MARGIN)));
    }

    fn move_up(&mut self, count: usize) {
        let column = self.column();
        for _ in 0..count.min(self.reachable) {
            let Some((line, hidden)) = self.above.pop() else { break };
            self.reachable -= 1;
            let left = std::mem::replace(&mut self.row, ScreenRow::restored(&line, hidden));
            self.below.push(self.presented(&left));
        }
        self.move_to(column);
    }

    fn move_down(&mut self, count: usize) {
        let column = self.column();
        for _ in 0..count {
            let Some((line, hidden)) = self.below.pop() else { break };
            self.reachable += 1;
            self.row.present(&mut self.above, self.cap);
            self.above.end_line();
            self.row = ScreenRow::restored(&line, hidden);
        }
        self.move_to(column);
    }

    fn presented(&self, row: &ScreenRow) -> (String, u64) {
        let mut line = WholeLines::default();
        row.present(&mut line, self.cap);
        line.end_line();
        line.pop().expect("one line was just put in")
    }
}

/// How many bytes at the start of `text` a terminal prints as they are, tabs and line feeds included.
fn plain_len(text: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let (blocks, _) = text[at..].as_chunks();
        at += blocks.iter().take_while(|block| !is_suspicious(block)).count() * BLOCK;
        let end = text.len().min(at + BLOCK);
        if let Some(control) = (at..end).find(|&at| is_control(text, at)) {
            return control;
        }
        if end == text.len() {
            return end;
        }
        at = end;
    }
}

/// Bytes that are looked at together.
const BLOCK: usize = 64;

/// Whether a block may hold a control character. It has no early exit, so that it compiles to vector instructions.
fn is_suspicious(block: &[u8; BLOCK]) -> bool {
    let suspects = block.iter().fold(0, |found, &byte| {
        let is_blank = u8::from(byte == b'\t') | u8::from(byte == b'\n');
        found | (u8::from(byte < 0x20) & !is_blank) | u8::from(byte == 0x7f) | u8::from(byte == 0xc2)
    });
    suspects != 0
}

fn is_control(text: &[u8], at: usize) -> bool {
    match text[at] {
        b'\t' | b'\n' => false,
        byte if byte < 0x20 || byte == 0x7f => true,
        // C1 control characters are the two-byte characters from C2 80 to C2 9F.
        0xc2 => text.get(at + 1).is_some_and(|&next| next < 0xa0),
        _ => false,
    }
}
