//! A turn for a console: text that is only appended. The answer goes to stdout, everything else to
//! stderr.

use cellwright_cell::Stream;

use super::OutputMessage;
use cellwright_output::visible;

/// The text that waits to be printed.
#[derive(Debug, Default)]
pub(super) struct StreamPrinter {
    queue: Vec<(Stream, String)>,
    /// The section of the last text, and whether the text ended its line.
    last: Option<(PrintSection, bool)>,
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
            Some((queued, queue)) if *queued == name => queue.push_str(text),
            _ => self.queue.push((name, text.to_owned())),
        }
        self.last = Some((section, text.ends_with('\n')));
    }

    /// The number of bytes that wait.
    pub(super) fn waiting(&self) -> usize {
        self.queue.iter().map(|(_, text)| text.len()).sum()
    }

    /// Drops the text that waits, and returns its length.
    pub(super) fn clear(&mut self) -> usize {
        let waiting = self.waiting();
        self.queue.clear();
        waiting
    }

    /// Takes at most `room` bytes of the text that waits.
    pub(super) fn take(&mut self, mut room: usize) -> Vec<OutputMessage> {
        let mut shown = Vec::new();
        let mut rest = Vec::new();
        for (name, mut text) in std::mem::take(&mut self.queue) {
            let later = text.split_off(text.floor_char_boundary(room.min(text.len())));
            room -= text.len();
            if !text.is_empty() {
                shown.push(OutputMessage::Stream { name, text });
            }
            if !later.is_empty() {
                room = 0;
                rest.push((name, later));
            }
        }
        self.queue = rest;
        shown
    }
}
