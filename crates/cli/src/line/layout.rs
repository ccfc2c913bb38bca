//! Where on the screen a text with prompts stands, and where its cursor is.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use crate::draw::style::{TextPen, TextStyle};

/// Columns between two stops of a tab.
const TAB: usize = 4;

/// Rows of a screen, and the cursor among them.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct PromptLayout {
    pub(crate) rows: Vec<LayoutRow>,
    /// Row and column, from 0.
    pub(crate) cursor: (usize, usize),
}

/// One row: what is written for it, and how many columns that takes.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct LayoutRow {
    pub(crate) painted: String,
    pub(crate) columns: usize,
}

/// Puts pieces into rows that are narrower than the screen, so that no terminal has to break one.
#[derive(Debug)]
pub(crate) struct LayoutWriter {
    layout: PromptLayout,
    room: usize,
    pen: TextPen,
}

impl LayoutWriter {
    pub(crate) fn new(columns: usize, pen: TextPen) -> Self {
        let layout = PromptLayout { rows: vec![LayoutRow::default()], cursor: (0, 0) };
        // The last column stays free: where the cursor is after it differs between terminals.
        Self { layout, room: columns.saturating_sub(1).max(8), pen }
    }

    /// The next text goes to another row.
    pub(crate) fn break_row(&mut self) {
        self.layout.rows.push(LayoutRow::default());
    }

    /// Columns that are left in this row.
    pub(crate) fn left(&self) -> usize {
        self.room.saturating_sub(self.row().columns)
    }

    /// The cursor is where the next text goes.
    pub(crate) fn set_cursor(&mut self) {
        if self.left() == 0 {
            self.break_row();
        }
        self.layout.cursor = (self.layout.rows.len() - 1, self.row().columns);
    }

    /// Adds a piece without line breaks, on as many rows as it needs.
    pub(crate) fn write(&mut self, style: TextStyle, text: &str) {
        let mut piece = String::new();
        for grapheme in text.graphemes(true) {
            let shown = match grapheme {
                "\t" => &"    "[..TAB - (self.row().columns + piece.width()) % TAB],
                // Whatever is pasted, no sequence of it reaches the terminal.
                _ if grapheme.contains(char::is_control) => "\u{fffd}",
                _ => grapheme,
            };
            if piece.width() + shown.width() > self.left() {
                self.place(style, &std::mem::take(&mut piece));
                self.break_row();
            }
            piece.push_str(shown);
        }
        self.place(style, &piece);
    }

    pub(crate) fn finish(self) -> PromptLayout {
        self.layout
    }

    fn row(&self) -> &LayoutRow {
        self.layout.rows.last().expect("there is a row")
    }

    fn place(&mut self, style: TextStyle, piece: &str) {
        let painted = self.pen.paint(style, piece);
        let row = self.layout.rows.last_mut().expect("there is a row");
        row.columns += piece.width();
        row.painted.push_str(&painted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laid_out(columns: usize, text: &str) -> (Vec<String>, (usize, usize)) {
        let mut writer = LayoutWriter::new(columns, TextPen::Plain);
        writer.write(TextStyle::PLAIN, text);
        writer.set_cursor();
        let layout = writer.finish();
        (layout.rows.into_iter().map(|row| row.painted).collect(), layout.cursor)
    }

    #[test]
    fn rows_leave_the_last_column_free_whatever_the_width_of_letters() {
        assert_eq!(laid_out(11, "0123456789"), (vec!["0123456789".into(), String::new()], (1, 0)));
        assert_eq!(laid_out(11, "012345678中x"), (vec!["012345678".into(), "中x".into()], (1, 3)));
        assert_eq!(laid_out(11, "a\tb"), (vec!["a   b".into()], (0, 5)));
    }

    #[test]
    fn sequences_in_the_text_stay_text() {
        assert_eq!(laid_out(20, "a\x1b[31mb").0, ["a\u{fffd}[31mb"]);
    }
}
