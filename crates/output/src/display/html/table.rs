//! A table, collected until it is whole and then set in columns.

use unicode_width::UnicodeWidthStr as _;

use super::writer::Writer;

/// Cells are padded to at most this width: a longer one would make every row as long.
const WIDEST_COLUMN: usize = 40;
/// Cells that span rows are looked for in so many columns.
const SPANNING_COLUMNS: usize = 64;
/// Most cells of a table that are there because another one spans columns or rows.
const MOST_SPANNED: usize = 50_000;

/// The rows so far.
#[derive(Default)]
pub(super) struct TableRows {
    rows: Vec<Vec<String>>,
    row: Vec<String>,
    cell: Option<TableCell>,
    /// For each of the first columns, how many further rows a cell above covers.
    covered: Vec<usize>,
    spanned: usize,
    has_header: bool,
}

/// A cell that is being written.
pub(super) struct TableCell {
    pub(super) writer: Writer,
    /// How many elements were open when it began.
    pub(super) outer: usize,
    span: CellSpan,
}

/// How many columns and rows a cell takes.
#[derive(Clone, Copy)]
pub(super) struct CellSpan {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

impl TableRows {
    pub(super) fn cell(&mut self) -> Option<&mut TableCell> {
        self.cell.as_mut()
    }

    pub(super) fn start_cell(&mut self, is_header: bool, span: CellSpan, outer: usize) {
        self.has_header |= is_header;
        self.cell = Some(TableCell { writer: Writer::flat(), outer, span });
    }

    /// How many elements were open when the cell began that this ends.
    pub(super) fn end_cell(&mut self) -> Option<usize> {
        let TableCell { writer, outer, span } = self.cell.take()?;
        let text = writer.finish().trim().replace('|', "\\|");
        while let Some(rows) = self.covered.get_mut(self.row.len()).filter(|rows| **rows > 0)
            && self.spanned < MOST_SPANNED
        {
            *rows -= 1;
            self.spanned += 1;
            self.row.push(String::new());
        }
        let column = self.row.len();
        self.row.push(text);
        let wanted = span.columns.saturating_sub(1);
        let more = wanted.min(MOST_SPANNED - self.spanned);
        self.spanned += more;
        self.row.extend(std::iter::repeat_n(String::new(), more));
        let end = self.row.len().min(SPANNING_COLUMNS);
        if span.rows > 1 && column < end {
            self.covered.resize(self.covered.len().max(end), 0);
            self.covered[column..end].fill(span.rows - 1);
        }
        Some(outer)
    }

    pub(super) fn end_row(&mut self) {
        if self.row.is_empty() {
            return;
        }
        for rows in self.covered.iter_mut().skip(self.row.len()) {
            *rows = rows.saturating_sub(1);
        }
        let row = std::mem::take(&mut self.row);
        if row.iter().any(|cell| !cell.is_empty()) {
            self.rows.push(row);
        }
    }

    pub(super) fn write_to(mut self, page: &mut Writer) {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        if columns < 2 && !self.has_header || self.rows.is_empty() {
            // A table that is only used for layout is not shown as a table.
            self.rows.iter().flatten().for_each(|text| page.block([text.as_str()]));
            return;
        }
        // As many columns as the header has are shown of each row.
        self.rows.iter_mut().take(1).for_each(|header| header.resize(columns, String::new()));
        let mut widths = vec![3; columns];
        for row in &self.rows {
            for (cell, width) in row.iter().zip(&mut widths) {
                *width = cell.width().min(WIDEST_COLUMN).max(*width);
            }
        }
        let rule: Vec<_> = widths.iter().map(|width| "-".repeat(*width)).collect();
        let rows = self.rows.iter().take(1).chain([&rule]).chain(self.rows.iter().skip(1));
        let lines: Vec<_> = rows.map(|row| line(row, &widths)).collect();
        page.block(lines.iter().map(String::as_str));
    }
}

fn line(row: &[String], widths: &[usize]) -> String {
    let mut line = String::from("|");
    for (cell, width) in row.iter().zip(widths) {
        let padding = " ".repeat(width.saturating_sub(cell.width()));
        line.extend([" ", cell, &padding, " |"]);
    }
    line
}
