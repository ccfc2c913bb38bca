//! A turn for a console: text that is only appended, and pictures. The answer goes to stdout,
//! everything else to stderr.

use cellwright_cell::Stream;
use cellwright_output::visible;
use serde_json::Value;

use super::{OutputData, OutputMessage};

/// What waits to be printed.
#[derive(Debug, Default)]
pub(super) struct StreamPrinter {
    queue: Vec<PrintedPiece>,
    /// How many pictures were printed.
    pictures: usize,
    /// The section of the last text, and whether the text ended its line.
    last: Option<(PrintSection, bool)>,
}

#[derive(Debug)]
enum PrintedPiece {
    Text(Stream, String),
    /// Its text stands for it where pictures cannot be shown.
    Picture(OutputData),
}

impl PrintedPiece {
    fn size(&self) -> usize {
        match self {
            Self::Text(_, text) => text.len(),
            Self::Picture(data) => data.values().filter_map(Value::as_str).map(str::len).sum(),
        }
    }
}

/// Texts of one section follow each other without a break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PrintSection {
    Answer,
    Thought,
    /// Lines of their own.
    Aside,
}

impl StreamPrinter {
    pub(super) fn print(&mut self, section: PrintSection, text: &str) {
        if text.is_empty() {
            return;
        }
        let text = &*visible(text);
        let name = if section == PrintSection::Answer { Stream::Stdout } else { Stream::Stderr };
        let broken = matches!(self.last, Some((last, ended)) if !ended && (last != section || section == PrintSection::Aside));
        match self.queue.last_mut() {
            _ if broken => {
                // The line feed belongs to the text it ends.
                let last = self.last.map_or(section, |(last, _)| last);
                self.last = None;
                self.print(last, "\n");
                return self.print(section, text);
            }
            Some(PrintedPiece::Text(queued, queue)) if *queued == name => queue.push_str(text),
            _ => self.queue.push(PrintedPiece::Text(name, text.to_owned())),
        }
        self.last = Some((section, text.ends_with('\n')));
    }

    /// Prints a picture on lines of its own.
    pub(super) fn picture(&mut self, data: OutputData) {
        if let Some((section, false)) = self.last {
            self.print(section, "\n");
        }
        self.queue.push(PrintedPiece::Picture(data));
    }

    /// Ends the line that was begun: something else prints next.
    pub(super) fn end_line(&mut self) {
        if let Some((section, false)) = self.last {
            self.last = None;
            self.print(section, "\n");
        }
        self.last = None;
    }

    /// The number of bytes that wait.
    pub(super) fn waiting(&self) -> usize {
        self.queue.iter().map(PrintedPiece::size).sum()
    }

    /// Drops what waits, and returns its length.
    pub(super) fn clear(&mut self) -> usize {
        let waiting = self.waiting();
        self.queue.clear();
        waiting
    }

    /// Takes at most `room` bytes of the text that waits, and the pictures between. Their displays
    /// are named after the turn.
    pub(super) fn take(&mut self, mut room: usize, turn: &str) -> Vec<OutputMessage> {
        let mut shown = Vec::new();
        let mut rest = Vec::new();
        for piece in std::mem::take(&mut self.queue) {
            match piece {
                piece if !rest.is_empty() || room == 0 => rest.push(piece),
                PrintedPiece::Text(name, mut text) => {
                    let later = text.split_off(text.floor_char_boundary(room.min(text.len())));
                    room -= text.len();
                    if !text.is_empty() {
                        shown.push(OutputMessage::Stream { name, text });
                    }
                    if !later.is_empty() {
                        rest.push(PrintedPiece::Text(name, later));
                    }
                }
                PrintedPiece::Picture(data) => {
                    self.pictures += 1;
                    shown.push(OutputMessage::Display {
                        id: format!("{turn}-picture-{}", self.pictures),
                        data,
                    });
                }
            }
        }
        self.queue = rest;
        shown
    }
}
