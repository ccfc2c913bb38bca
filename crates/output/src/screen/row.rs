//! One line of the screen, which the cursor may still change.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar as _;

use super::style::CellStyle;
use crate::lines::{LOOKAHEAD, WholeLines, shown_len};

/// Marks that may pile up on one character; the rest of such a tower is dropped.
const LONGEST_CLUSTER: usize = 64;

/// Bytes that any line may spend on colours.
const MOST_COLOUR: usize = 256;

/// One line under the cursor. Text that is only appended to stays a string, and so does ASCII that is written over
/// with ASCII, as most progress bars are: there a byte is a column. Any other change in the middle turns it into cells.
#[derive(Debug, Clone)]
pub(super) struct ScreenRow {
    body: RowBody,
    /// Bytes written past what the row keeps.
    beyond: u64,
}

#[derive(Debug, Clone)]
enum RowBody {
    Plain { text: String, is_ascii: bool },
    Cells(Vec<ScreenCell>),
}

#[derive(Debug, Clone)]
struct ScreenCell {
    glyph: ScreenGlyph,
    style: CellStyle,
}

#[derive(Debug, Clone)]
enum ScreenGlyph {
    Char(char),
    /// A character with the marks that combine with it.
    Cluster(String),
    /// The right half of a wide character.
    RightHalf,
}

impl Default for ScreenRow {
    fn default() -> Self {
        Self { body: RowBody::plain(String::new()), beyond: 0 }
    }
}

impl ScreenRow {
    /// A row as [`ScreenRow::present`] wrote it.
    pub(super) fn restored(text: &str, beyond: u64) -> Self {
        if !text.contains('\x1b') {
            return Self { body: RowBody::plain(text.to_owned()), beyond };
        }
        let mut row = Self { body: RowBody::Cells(Vec::new()), beyond: 0 };
        let (mut column, mut style) = (0, CellStyle::default());
        for (index, part) in text.split("\x1b[").enumerate() {
            let printed = match part.split_once('m') {
                Some((parameters, printed)) if index > 0 => {
                    style = CellStyle::default().after(parameters);
                    printed
                }
                _ => part,
            };
            row.overwrite(&mut column, printed, style, usize::MAX);
        }
        row.beyond = beyond;
        row
    }

    pub(super) fn is_empty(&self) -> bool {
        self.beyond == 0
            && match &self.body {
                RowBody::Plain { text, .. } => text.is_empty(),
                RowBody::Cells(cells) => cells.is_empty(),
            }
    }

    pub(super) fn is_plain(&self) -> bool {
        matches!(self.body, RowBody::Plain { .. })
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        match &self.body {
            RowBody::Plain { text, .. } => text.capacity(),
            RowBody::Cells(cells) => cells.capacity() * size_of::<ScreenCell>(),
        }
    }

    /// Adds text at the end of a plain row.
    pub(super) fn append(&mut self, text: &str, cap: usize) {
        let RowBody::Plain { text: plain, is_ascii } = &mut self.body else {
            unreachable!("only plain rows are appended to")
        };
        let room = if self.beyond > 0 { 0 } else { cap.saturating_add(LOOKAHEAD) - plain.len() };
        let kept = if text.len() <= room { text.len() } else { text.floor_char_boundary(room) };
        plain.push_str(&text[..kept]);
        *is_ascii &= text[..kept].is_ascii();
        self.beyond += (text.len() - kept) as u64;
    }

    /// Columns up to the end of what was written. Past the kept part a byte counts as a column.
    pub(super) fn width(&self) -> usize {
        let kept = match &self.body {
            RowBody::Plain { text, is_ascii: true } => text.len(),
            RowBody::Plain { text, is_ascii: false } => text.chars().map(|ch| ch.width().unwrap_or(1)).sum(),
            RowBody::Cells(cells) => cells.len(),
        };
        kept.saturating_add(usize::try_from(self.beyond).unwrap_or(usize::MAX))
    }

    /// Writes over what is at the cursor, and moves the cursor.
    pub(super) fn overwrite(&mut self, column: &mut usize, text: &str, style: CellStyle, cap: usize) {
        let most = cap.saturating_add(LOOKAHEAD);
        if style == CellStyle::default() && self.overwrite_ascii(column, text, most) {
            return;
        }
        let beyond = self.beyond;
        let cells = self.cells();
        let mut written_beyond = 0;
        for ch in text.chars() {
            let width = ch.width().unwrap_or(1);
            let kept_width = cells.len();
            if (beyond > 0 && *column >= kept_width) || column.saturating_add(width) > most {
                // Nothing of this is kept; only what is past the end makes the row longer.
                let end = kept_width as u64 + beyond + written_beyond;
                if *column as u64 >= end {
                    written_beyond += *column as u64 - end + ch.len_utf8() as u64;
                    *column += ch.len_utf8();
                } else {
                    *column += width;
                }
                continue;
            }
            put(cells, column, ch, width, style);
        }
        self.beyond += written_beyond;
    }

    /// Writes ASCII over ASCII in place, unless that takes more than replacing and adding bytes.
    fn overwrite_ascii(&mut self, column: &mut usize, new: &str, most: usize) -> bool {
        let RowBody::Plain { text, is_ascii: true } = &mut self.body else { return false };
        let end = column.saturating_add(new.len());
        let fits = *column <= text.len() && end <= if self.beyond > 0 { text.len() } else { most };
        if !fits || !new.is_ascii() {
            return false;
        }
        text.replace_range(*column..end.min(text.len()), new);
        *column = end;
        true
    }

    /// Erases from `column` to the end.
    pub(super) fn truncate(&mut self, column: usize) {
        if let RowBody::Plain { text, is_ascii: true } = &mut self.body
            && column < text.len()
        {
            text.truncate(column);
            self.beyond = 0;
            return;
        }
        let cells = self.cells();
        if column >= cells.len() {
            // The erased part is not known byte by byte; what was written past the cursor was past the cap.
            let kept = cells.len() as u64;
            self.beyond = self.beyond.min((column as u64).saturating_sub(kept));
            return;
        }
        if matches!(cells[column].glyph, ScreenGlyph::RightHalf) {
            cells[column - 1].glyph = ScreenGlyph::Char(' ');
        }
        cells.truncate(column);
        self.beyond = 0;
    }

    /// Erases up to and with `column`.
    pub(super) fn blank_to(&mut self, column: usize) {
        let cells = self.cells();
        let end = column.saturating_add(1).min(cells.len());
        if matches!(cells.get(end).map(|cell| &cell.glyph), Some(ScreenGlyph::RightHalf)) {
            cells[end].glyph = ScreenGlyph::Char(' ');
        }
        for cell in &mut cells[..end] {
            *cell = ScreenCell::blank();
        }
    }

    /// Writes the row as it is shown to the end of `lines`, without a line feed.
    pub(super) fn present(&self, lines: &mut WholeLines, cap: usize) {
        match &self.body {
            RowBody::Plain { text, .. } => lines.push_line(text, self.beyond, cap),
            RowBody::Cells(cells) => present_cells(cells, self.beyond, lines, cap),
        }
    }

    /// Makes the row empty and plain, keeping its memory when it was plain.
    pub(super) fn clear(&mut self) {
        self.beyond = 0;
        match &mut self.body {
            RowBody::Plain { text, is_ascii } => {
                text.clear();
                *is_ascii = true;
            }
            RowBody::Cells(_) => self.body = RowBody::plain(String::new()),
        }
    }

    fn cells(&mut self) -> &mut Vec<ScreenCell> {
        if let RowBody::Plain { text, .. } = &self.body {
            let mut cells = Vec::with_capacity(text.len());
            let mut column = 0;
            for ch in text.chars() {
                put(&mut cells, &mut column, ch, ch.width().unwrap_or(1), CellStyle::default());
            }
            self.body = RowBody::Cells(cells);
        }
        let RowBody::Cells(cells) = &mut self.body else { unreachable!("made of cells just above") };
        cells
    }
}

impl RowBody {
    fn plain(text: String) -> Self {
        let is_ascii = text.is_ascii();
        Self::Plain { text, is_ascii }
    }
}

impl ScreenCell {
    fn blank() -> Self {
        Self { glyph: ScreenGlyph::Char(' '), style: CellStyle::default() }
    }
}

/// Puts a character at the cursor the way a terminal does: half a wide character cannot stay.
fn put(cells: &mut Vec<ScreenCell>, column: &mut usize, ch: char, width: usize, style: CellStyle) {
    if width == 0 && combine(&mut cells[..], *column, ch) {
        return;
    }
    // A mark with nothing to sit on, and a tab, take one cell.
    let width = width.max(1);
    while cells.len() < *column {
        cells.push(ScreenCell::blank());
    }
    for at in *column..*column + width {
        if at < cells.len() {
            split_wide(cells, at);
        } else {
            cells.push(ScreenCell::blank());
        }
    }
    cells[*column] = ScreenCell { glyph: ScreenGlyph::Char(ch), style };
    if width == 2 {
        cells[*column + 1] = ScreenCell { glyph: ScreenGlyph::RightHalf, style };
    }
    *column += width;
}

/// Adds a combining mark to the character left of the cursor.
fn combine(cells: &mut [ScreenCell], column: usize, mark: char) -> bool {
    let left = cells.get_mut(..column).unwrap_or_default();
    let Some(cell) = left.iter_mut().rfind(|cell| !matches!(cell.glyph, ScreenGlyph::RightHalf)) else {
        return false;
    };
    match &mut cell.glyph {
        ScreenGlyph::Char(base) => cell.glyph = ScreenGlyph::Cluster(String::from_iter([*base, mark])),
        ScreenGlyph::Cluster(cluster) if cluster.len() < LONGEST_CLUSTER => cluster.push(mark),
        ScreenGlyph::Cluster(_) | ScreenGlyph::RightHalf => {}
    }
    true
}

/// Blanks the other half of a wide character when one half is about to be overwritten.
fn split_wide(cells: &mut [ScreenCell], at: usize) {
    if matches!(cells[at].glyph, ScreenGlyph::RightHalf) {
        cells[at - 1].glyph = ScreenGlyph::Char(' ');
    }
    if let Some(next) = cells.get_mut(at + 1)
        && matches!(next.glyph, ScreenGlyph::RightHalf)
    {
        next.glyph = ScreenGlyph::Char(' ');
    }
}

/// Writes cells with the sequences that colour them. Every line sets and resets its own colours, so a cut
/// before or after it cannot make them run over.
fn present_cells(cells: &[ScreenCell], beyond: u64, lines: &mut WholeLines, cap: usize) {
    let mut plain = String::with_capacity(cells.len());
    for cell in cells {
        push_glyph(&mut plain, &cell.glyph);
    }
    let shown = shown_len(&plain, cap);
    let out = lines.line_mut();
    let start = out.len();
    push_coloured(out, cells, shown);
    // Colours that outweigh the text would break the budget: such a line goes without them.
    if out.len() - start > shown.saturating_add(cap).max(MOST_COLOUR) {
        out.truncate(start);
        out.push_str(&plain[..shown]);
    }
    let hidden = (plain.len() - shown) as u64 + beyond;
    if hidden > 0 {
        lines.mark_cut(hidden);
    }
}

/// Writes cells that make up `shown` bytes of text.
fn push_coloured(out: &mut String, cells: &[ScreenCell], shown: usize) {
    let (mut written, mut style) = (0, CellStyle::default());
    for cell in cells {
        if written >= shown {
            break;
        }
        if cell.style != style && !matches!(cell.glyph, ScreenGlyph::RightHalf) {
            style = cell.style;
            write!(out, "{style}").expect("writing to a string cannot fail");
        }
        let before = out.len();
        push_glyph(out, &cell.glyph);
        // The cut is between graphemes, or inside a cluster that is longer than the cap.
        let len = (out.len() - before).min(shown - written);
        out.truncate(before + len);
        written += len;
    }
    if style != CellStyle::default() {
        out.push_str("\x1b[0m");
    }
}

fn push_glyph(text: &mut String, glyph: &ScreenGlyph) {
    match glyph {
        ScreenGlyph::Char(ch) => text.push(*ch),
        ScreenGlyph::Cluster(cluster) => text.push_str(cluster),
        ScreenGlyph::RightHalf => {}
    }
}
