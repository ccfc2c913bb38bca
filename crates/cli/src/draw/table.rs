//! Tables that fit: columns shrink to their longest word, then long words break, then columns are left out.

use pulldown_cmark::Alignment;
use unicode_width::UnicodeWidthStr;

use super::style::{StyledText, TextStyle, width, wrapped};

/// Rows shown of a long table.
const ROWS: usize = 60;

/// Columns that a word may be broken to. Numbers are never broken.
const NARROWEST: usize = 12;

const SEPARATOR: &str = " │ ";

/// How much of a table is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableExtent {
    /// The first and last rows, the columns that fit, and notes on what is left out.
    Shortened,
    /// Every row and every column; columns that do not fit are set below, after the first column once more.
    Whole,
}

/// A table whose first row is its head.
pub(crate) struct TextTable {
    pub(crate) alignments: Vec<Alignment>,
    pub(crate) rows: Vec<Vec<StyledText>>,
}

/// A column's widths.
#[derive(Debug, Clone, Copy)]
struct ColumnWidths {
    /// The width of its longest cell.
    natural: usize,
    /// The width of its longest word.
    word: usize,
    /// The least it can have.
    least: usize,
    is_right: bool,
    is_centred: bool,
}

impl TextTable {
    /// Its lines, none wider than `room`.
    pub(crate) fn lines(&self, room: usize, extent: TableExtent) -> Vec<StyledText> {
        let columns: Vec<_> = (0..self.alignments.len()).map(|column| self.column(column, room)).collect();
        let groups = groups(&columns, room);
        let mut lines = Vec::new();
        match extent {
            TableExtent::Whole => {
                for (at, group) in groups.iter().enumerate() {
                    if at > 0 {
                        lines.push(StyledText::new());
                    }
                    self.set(&columns, group, room, extent, &mut lines);
                }
            }
            TableExtent::Shortened => {
                let Some(shown) = groups.first() else { return lines };
                self.set(&columns, shown, room, extent, &mut lines);
                let left: Vec<_> = (0..columns.len()).filter(|column| !shown.contains(column)).collect();
                if !left.is_empty() {
                    lines.extend(wrapped(&vec![(TextStyle::DIM, self.left_out(&left))], room));
                }
            }
        }
        lines
    }

    fn column(&self, column: usize, room: usize) -> ColumnWidths {
        let cells = || self.rows.iter().filter_map(|row| row.get(column));
        let natural = cells().map(width).max().unwrap_or(0).max(1);
        let word = cells().map(longest_word).max().unwrap_or(0).max(1);
        let body = || cells().skip(1).map(plain).filter(|text| !text.trim().is_empty());
        let is_number = body().next().is_some() && body().all(|text| is_number(&text));
        let numbers = cells().skip(1).map(longest_word).max().unwrap_or(0);
        let least = word.min(if is_number { numbers.max(NARROWEST) } else { NARROWEST });
        ColumnWidths {
            natural,
            word,
            least: least.min(room.max(1)),
            is_right: match self.alignments[column] {
                Alignment::Right => true,
                Alignment::None => is_number,
                Alignment::Left | Alignment::Center => false,
            },
            is_centred: self.alignments[column] == Alignment::Center,
        }
    }

    /// Sets some of the columns.
    fn set(
        &self,
        columns: &[ColumnWidths],
        chosen: &[usize],
        room: usize,
        extent: TableExtent,
        lines: &mut Vec<StyledText>,
    ) {
        let widths = widths(columns, chosen, room);
        let chosen: Vec<_> = chosen
            .iter()
            .zip(&widths)
            .map(|(at, width)| SetColumn { at: *at, width: *width, column: columns[*at] })
            .collect();
        let body = self.rows.len().saturating_sub(1);
        let hidden = match extent {
            TableExtent::Whole => 0,
            TableExtent::Shortened => body.saturating_sub(ROWS),
        };
        let gap = 1 + ROWS / 2..1 + ROWS / 2 + hidden;
        for (number, row) in self.rows.iter().enumerate() {
            if hidden > 0 && number == gap.start {
                let note = format!("… {hidden} more rows; --full shows them");
                lines.extend(wrapped(&vec![(TextStyle::DIM, note)], room));
            }
            if gap.contains(&number) {
                continue;
            }
            let style = if number == 0 { TextStyle::bold } else { |style| style };
            set_row(row, style, &chosen, lines);
            if number == 0 {
                let rule = widths.iter().map(|width| "─".repeat(*width)).collect::<Vec<_>>().join("─┼─");
                lines.push(vec![(TextStyle::DIM, rule)]);
            }
        }
    }

    /// The columns that are not shown, by their heads.
    fn left_out(&self, columns: &[usize]) -> String {
        let heads = columns.iter().filter_map(|column| self.rows.first()?.get(*column)).map(plain);
        let heads: Vec<_> =
            heads.map(|head| head.trim().to_owned()).filter(|head| !head.is_empty()).collect();
        let (count, noun) = (columns.len(), if columns.len() == 1 { "column" } else { "columns" });
        let named = match heads.len() {
            0 => String::new(),
            1..=8 => format!(" ({})", heads.join(", ")),
            _ => format!(" ({}, …)", heads[..8].join(", ")),
        };
        format!("… {count} more {noun}{named}; --full shows them")
    }
}

/// A column in the place it has.
struct SetColumn {
    at: usize,
    width: usize,
    column: ColumnWidths,
}

/// Sets a row in as many lines as its longest cell needs.
fn set_row(
    row: &[StyledText],
    style: fn(TextStyle) -> TextStyle,
    columns: &[SetColumn],
    lines: &mut Vec<StyledText>,
) {
    let nothing = StyledText::new();
    let cell = |column: &SetColumn| wrapped(row.get(column.at).unwrap_or(&nothing), column.width);
    let cells: Vec<_> = columns.iter().map(cell).collect();
    for line in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
        let mut set = StyledText::new();
        for (at, (cell, SetColumn { width: room, column, .. })) in cells.iter().zip(columns).enumerate() {
            let part = cell.get(line).unwrap_or(&nothing);
            let is_last = at + 1 == cells.len();
            let is_blank = is_last && part.is_empty();
            if at > 0 {
                let separator = if is_blank { SEPARATOR.trim_end() } else { SEPARATOR };
                set.push((TextStyle::DIM, separator.to_owned()));
            }
            if is_blank {
                break;
            }
            let space = room.saturating_sub(width(part));
            let left = match (column.is_right, column.is_centred) {
                (true, _) => space,
                (false, true) => space / 2,
                (false, false) => 0,
            };
            set.push((TextStyle::PLAIN, " ".repeat(left)));
            set.extend(part.iter().map(|(of, text)| (style(*of), text.clone())));
            set.push((TextStyle::PLAIN, " ".repeat(if is_last { 0 } else { space - left })));
        }
        lines.push(set);
    }
}

/// Which columns stand beside each other: all, or as many as fit in each group, the first column in every one.
fn groups(columns: &[ColumnWidths], room: usize) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for column in 0..columns.len() {
        let fits = |group: &Vec<usize>| {
            let cells = group.iter().chain([&column]).map(|at| columns[*at].least + SEPARATOR.width());
            cells.sum::<usize>() <= room + SEPARATOR.width()
        };
        match groups.last_mut() {
            Some(group) if fits(group) => group.push(column),
            Some(_) if fits(&vec![0]) => groups.push(vec![0, column]),
            Some(_) | None => groups.push(vec![column]),
        }
    }
    groups
}

/// The widths of the chosen columns: natural if that fits, or else the widest are made narrower first, down to their
/// longest words, and below that only if need be.
fn widths(columns: &[ColumnWidths], chosen: &[usize], room: usize) -> Vec<usize> {
    let room = room.saturating_sub(SEPARATOR.width() * chosen.len().saturating_sub(1));
    let at = |cap: usize, least: fn(&ColumnWidths) -> usize| -> Vec<usize> {
        let columns = chosen.iter().map(|column| &columns[*column]);
        columns.map(|column| column.natural.min(cap).max(least(column))).collect()
    };
    let words = |column: &ColumnWidths| column.word.min(column.natural);
    for least in [words, |column: &ColumnWidths| column.least] {
        let fits = |cap: usize| at(cap, least).iter().sum::<usize>() <= room;
        if fits(0) {
            // The largest cap that fits.
            let (mut low, mut high) = (0, chosen.iter().map(|at| columns[*at].natural).max().unwrap_or(0));
            while low < high {
                let middle = (low + high).div_ceil(2);
                if fits(middle) { low = middle } else { high = middle - 1 }
            }
            return at(low, least);
        }
    }
    // One column that is wider than the room.
    chosen.iter().map(|column| columns[*column].least.min(room.max(1))).collect()
}

fn plain(cell: &StyledText) -> String {
    cell.iter().map(|(_, text)| text.as_str()).collect()
}

fn longest_word(cell: &StyledText) -> usize {
    plain(cell).split([' ', '\n']).map(UnicodeWidthStr::width).max().unwrap_or(0)
}

/// Whether a cell reads as a number, or as a placeholder for one.
fn is_number(text: &str) -> bool {
    let text = text.trim();
    let digits =
        text.trim_start_matches(['-', '+', '−', '$', '€']).trim_end_matches('%').replace([',', '_'], "");
    ["nan", "nat", "none", "...", "…", "inf", "<na>", "-"].contains(&text.to_lowercase().as_str())
        || digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') && digits.parse::<f64>().is_ok()
}
