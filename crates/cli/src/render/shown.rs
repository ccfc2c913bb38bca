//! A displayed value as rows: a table, prose, a tree, text or a picture.

use cellwright_cell::{MimeBundle, Stream};
use cellwright_output::{
    ArtifactKind, Display, Image, OutputLimits, OutputSink, html_table, visible_coloured,
};

use super::preview::{CellLook, FullOutputs, PreviewLines, clamped, ends_of, hidden};
use crate::draw::look::LookArguments;
use crate::draw::markdown;
use crate::draw::picture::{PictureRows, placed};
use crate::draw::screen::{LiveRow, picture_rows};
use crate::draw::style::TextPen;
use crate::draw::table::TableExtent;
use crate::draw::terminal::TerminalSize;
use crate::draw::tree;

/// Rows of the screen that a picture leaves free, at least.
const FREE_ROWS: usize = 3;

/// Whether what is drawn may still change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DrawState {
    /// It may: nothing is stored for it yet.
    Live,
    /// It stays as it is.
    Settled,
}

/// Where a value is drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct DrawRoom {
    pub(super) terminal: TerminalSize,
    /// Columns for it.
    pub(super) columns: usize,
    /// Columns before it.
    pub(super) indent: usize,
    /// Its cell's place in the call.
    pub(super) cell: Option<usize>,
    pub(super) state: DrawState,
}

/// The rows of a value. `number` tells its picture from others.
pub(super) fn rows(content: &MimeBundle, look: &CellLook, room: DrawRoom, number: u32) -> Vec<LiveRow> {
    let display = Display::from_bundle(&content.data);
    let mut rows = Vec::new();
    let text = text_rows(content, &display, look, room.columns);
    rows.extend(previewed(text, content, look, room).into_iter().map(LiveRow::Text));
    if let Some(image) = &display.image {
        rows.extend(image_rows(image, look, room, number));
    }
    rows
}

/// What is shown of a value where there is no room for more: its text.
pub(super) fn text_of(content: &MimeBundle) -> String {
    let display = Display::from_bundle(&content.data);
    let image = display.image.map(|image| format!("[{image}]"));
    let json = display.json.filter(|_| display.text.is_none()).map(|json| json.text().to_owned());
    [display.text, json, image].into_iter().flatten().map(|text| text + "\n").collect()
}

/// The text of a value, whole, where no frame follows: a table, prose, a tree or text, in lines that fit.
pub(crate) fn value_lines(
    content: &MimeBundle,
    display: &Display,
    pen: TextPen,
    columns: usize,
) -> Vec<String> {
    let mut look = CellLook::new(LookArguments::default(), PreviewLines::All, FullOutputs::Nowhere);
    look.pen = pen;
    text_rows(content, display, &look, columns)
}

fn text_rows(content: &MimeBundle, display: &Display, look: &CellLook, room: usize) -> Vec<String> {
    let extent = match look.preview {
        PreviewLines::Collapsed(_) => TableExtent::Shortened,
        PreviewLines::All => TableExtent::Whole,
    };
    if let Some(table) = html_table(&content.data) {
        return markdown::lines(&table, room, look.pen, extent);
    }
    match (&display.text, &display.json) {
        (Some(text), _) if display.is_markdown => markdown::lines(text, room, look.pen, extent),
        (Some(text), _) => plain_rows(text, look, room),
        (None, Some(json)) => tree::lines(json.text(), look.preview.tree(), room, look.pen),
        (None, None) => Vec::new(),
    }
}

/// Text as a terminal shows it.
fn plain_rows(text: &str, look: &CellLook, room: usize) -> Vec<String> {
    let limits = OutputLimits { line: CellLook::limits().line, head: 4 << 20, tail: 1 << 20 };
    let mut sink = OutputSink::new(limits, look.pen.kept_colours());
    sink.write(Stream::Stdout, text.as_bytes());
    let shown = sink.finish().text;
    let shown = visible_coloured(shown.trim_end_matches('\n'));
    shown.split('\n').flat_map(|line| clamped(line, room, look.pen)).collect()
}

fn previewed(rows: Vec<String>, content: &MimeBundle, look: &CellLook, room: DrawRoom) -> Vec<String> {
    let PreviewLines::Collapsed(lines) = look.preview else { return rows };
    let note = |count: usize| {
        let way = match room.state {
            DrawState::Live => String::new(),
            DrawState::Settled => look.way_to(room.cell, &text_of(content), ArtifactKind::Log),
        };
        look.note(&hidden(count as u64, "", &way))
    };
    ends_of(&rows, lines, note).unwrap_or(rows)
}

fn image_rows(image: &Image, look: &CellLook, room: DrawRoom, number: u32) -> Vec<LiveRow> {
    let most = (room.columns, room.terminal.rows.saturating_sub(FREE_ROWS).max(1));
    let why = match look.images().map(|by| placed(image, by, room.terminal, most, number)) {
        Some(Ok(PictureRows::Placed(picture))) => return picture_rows(picture, room.indent),
        Some(Ok(PictureRows::Characters(lines))) => return lines.into_iter().map(LiveRow::Text).collect(),
        Some(Err(reason)) => reason.to_string(),
        None => image.to_string(),
    };
    let way = match (room.state, &look.full) {
        (DrawState::Settled, FullOutputs::Artifacts(artifacts)) => {
            match artifacts.save(image.format.kind(), &image.bytes) {
                Ok(id) => format!(" · cellwright read {id} > FILE"),
                Err(error) => format!(" · it could not be stored: {error}"),
            }
        }
        (DrawState::Settled, FullOutputs::Notebook { .. }) => {
            format!(" · {}", look.way_to(room.cell, "", image.format.kind()))
        }
        (DrawState::Settled, FullOutputs::Nowhere) | (DrawState::Live, _) => String::new(),
    };
    look.note_rows(&format!("[{why}]{way}"), room.columns).into_iter().map(LiveRow::Text).collect()
}
