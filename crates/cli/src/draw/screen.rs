//! The end of a terminal's screen, where rows may still change. What is above it stays as it is.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;

use super::picture::PlacedPicture;
use super::terminal::TerminalSize;
use super::wrap::columns;

/// What is written between the two is shown at once, by terminals that know it; others ignore it.
const BEGIN_FRAME: &str = "\x1b[?2026h";
const END_FRAME: &str = "\x1b[?2026l";

/// A row of the screen.
#[derive(Debug, Clone)]
pub(crate) enum LiveRow {
    /// Text with colours, no wider than the screen.
    Text(String),
    /// The first row of a picture.
    Picture(Arc<PlacedPicture>),
    /// A row that the picture above covers.
    Covered,
}

impl From<String> for LiveRow {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// Pictures are compared by what they are, not by their data.
impl PartialEq for LiveRow {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => one == other,
            (Self::Picture(one), Self::Picture(other)) => Arc::ptr_eq(one, other),
            (Self::Covered, Self::Covered) => true,
            (Self::Text(_) | Self::Picture(_) | Self::Covered, _) => false,
        }
    }
}

/// The rows of a picture that stands after so many columns.
pub(crate) fn picture_rows(mut picture: PlacedPicture, indent: usize) -> Vec<LiveRow> {
    let rows = picture.rows.max(1);
    if indent > 0 {
        picture.sequence.insert_str(0, &format!("\x1b[{indent}C"));
    }
    let mut taken = vec![LiveRow::Covered; rows];
    taken[0] = LiveRow::Picture(Arc::new(picture));
    taken
}

/// Draws rows at the end of a terminal's screen, and draws again only those that changed.
///
/// Between two frames the cursor is at the start of the line below the last row.
pub(crate) struct LiveScreen<W: Write> {
    out: W,
    /// What is on the screen and may change.
    rows: Vec<LiveRow>,
    /// How wide the screen was when it was drawn.
    width: usize,
}

impl<W: Write> LiveScreen<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, rows: Vec::new(), width: 0 }
    }

    /// How many rows can be changed: one is the cursor's.
    pub(crate) fn capacity(terminal: TerminalSize) -> usize {
        terminal.rows.saturating_sub(1).max(1)
    }

    /// Shows `rows` in place of the rows that could change. The first `settled` of them stay from now on.
    ///
    /// No more than [`LiveScreen::capacity`] can be left to change; of more, the first ones stay too.
    pub(crate) fn draw(
        &mut self,
        rows: Vec<LiveRow>,
        settled: usize,
        terminal: TerminalSize,
    ) -> io::Result<()> {
        let mut frame = String::new();
        self.adapt(terminal, &mut frame);
        let kept = self.rewrite(&rows, &mut frame);
        append(&rows[kept..], terminal, &mut frame);
        let settled = settled.max(rows.len().saturating_sub(Self::capacity(terminal))).min(rows.len());
        self.rows = rows;
        self.rows.drain(..settled);
        if frame.is_empty() {
            return Ok(());
        }
        self.out.write_all(format!("{BEGIN_FRAME}{frame}{END_FRAME}").as_bytes())?;
        self.out.flush()
    }

    /// Writes what is not a row, such as the text of a question, where the rows end. They stay as they are.
    pub(crate) fn leave(&mut self) {
        self.rows.clear();
    }

    /// A screen of another width has set its lines anew: they are drawn again.
    fn adapt(&mut self, terminal: TerminalSize, frame: &mut String) {
        let before = std::mem::replace(&mut self.width, terminal.columns);
        if before == terminal.columns || self.rows.is_empty() {
            return;
        }
        let height = |row: &LiveRow| match row {
            LiveRow::Text(text) => columns(text).div_ceil(terminal.columns.max(1)).max(1),
            LiveRow::Picture(_) | LiveRow::Covered => 1,
        };
        let taken: usize = self.rows.iter().map(height).sum();
        up(taken.min(Self::capacity(terminal)), frame);
        self.remove_pictures(0, frame);
        frame.push_str("\x1b[J");
        self.rows.clear();
    }

    /// Changes the rows that are on the screen, and returns how many of `rows` are there then. The cursor is below them.
    fn rewrite(&self, rows: &[LiveRow], frame: &mut String) -> usize {
        // From a picture that is another one on, everything is drawn again.
        let is_same = |(at, row): (usize, &LiveRow)| rows.get(at) == Some(row);
        let is_picture = |row: Option<&LiveRow>| matches!(row, Some(LiveRow::Picture(_) | LiveRow::Covered));
        let touches_picture = |at: usize| is_picture(self.rows.get(at)) || is_picture(rows.get(at));
        let changed: Vec<_> =
            self.rows.iter().enumerate().filter(|row| !is_same(*row)).map(|(at, _)| at).collect();
        let cut = changed.iter().copied().find(|at| touches_picture(*at)).unwrap_or(usize::MAX);
        let end = cut.min(rows.len()).min(self.rows.len());
        let mut cursor = self.rows.len();
        for at in changed.into_iter().filter(|at| *at < end) {
            let LiveRow::Text(text) = &rows[at] else { continue };
            go(&mut cursor, at, frame);
            frame.push_str(text);
            frame.push_str("\x1b[K\r");
        }
        if end < self.rows.len() {
            go(&mut cursor, end, frame);
            self.remove_pictures(end, frame);
            frame.push_str("\x1b[J");
        }
        go(&mut cursor, end, frame);
        end
    }

    fn remove_pictures(&self, from: usize, frame: &mut String) {
        for row in &self.rows[from..] {
            if let LiveRow::Picture(picture) = row {
                frame.push_str(&picture.removal);
            }
        }
    }
}

/// Writes rows from the cursor on.
fn append(rows: &[LiveRow], terminal: TerminalSize, frame: &mut String) {
    for row in rows {
        match row {
            LiveRow::Text(text) => {
                frame.push_str(text);
                frame.push_str("\x1b[K\r\n");
            }
            LiveRow::Picture(picture) => {
                // Its rows first: drawing at the last line would scroll, by as much as the terminal likes.
                let rows = picture.rows.min(LiveScreen::<io::Stdout>::capacity(terminal));
                frame.push_str(&"\n".repeat(rows));
                up(rows, frame);
                frame.push_str("\x1b7");
                frame.push_str(&picture.sequence);
                frame.push_str("\x1b8");
                down(rows, frame);
            }
            LiveRow::Covered => {}
        }
    }
}

/// Moves the cursor from one row to the start of another.
fn go(cursor: &mut usize, to: usize, frame: &mut String) {
    if *cursor > to {
        up(*cursor - to, frame);
    } else {
        down(to - *cursor, frame);
    }
    *cursor = to;
}

fn up(rows: usize, frame: &mut String) {
    if rows > 0 {
        write!(frame, "\r\x1b[{rows}A").expect("a String takes everything");
    }
}

fn down(rows: usize, frame: &mut String) {
    if rows > 0 {
        write!(frame, "\r\x1b[{rows}B").expect("a String takes everything");
    }
}
