//! What a cell has shown, in its last state: for prompts that name the cell, and to show it again.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cellwright_cell::Stream;
use serde_json::Value;

use crate::view::{OutputData, OutputMessage};

/// The most bytes that are kept of one cell. What comes after them is left out, with a note.
const MOST: usize = 2 << 20;

/// The outputs of a cell, which may still run.
pub(crate) type SharedRecord = Arc<Mutex<CellOutputRecord>>;

/// The outputs of one cell.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct CellOutputRecord {
    outputs: Vec<RecordedOutput>,
    displays: HashMap<String, usize>,
    /// In bytes.
    size: usize,
    left_out: bool,
    /// The id of the cell in its notebook, if the client names it.
    pub(crate) cell: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RecordedOutput {
    Stream { name: Stream, text: String },
    Display(OutputData),
}

/// A picture that a cell has shown, in base64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShownPicture {
    pub(crate) mime: String,
    pub(crate) data: String,
}

impl ShownPicture {
    pub(crate) fn new(mime: &str, bytes: &[u8]) -> Self {
        Self { mime: mime.to_owned(), data: BASE64.encode(bytes) }
    }
}

impl CellOutputRecord {
    /// Takes in what the cell shows next.
    pub(crate) fn add(&mut self, message: &OutputMessage) {
        match message {
            OutputMessage::Stream { name, text } => self.stream(*name, text),
            OutputMessage::Display { id, data } => self.display_as(Some(id), data),
            OutputMessage::Update { id, data } => self.update(id, data),
        }
    }

    /// Takes in a display, which is updated by its name if it has one.
    pub(crate) fn display_as(&mut self, id: Option<&str>, data: &OutputData) {
        if self.display(data)
            && let Some(id) = id
        {
            self.displays.insert(id.to_owned(), self.outputs.len() - 1);
        }
    }

    /// Forgets all of it: the cell shows nothing any more.
    pub(crate) fn clear(&mut self) {
        *self = Self { cell: self.cell.take(), ..Self::default() };
    }

    /// Takes in a display that is never updated. False if there is no room for it.
    pub(crate) fn display(&mut self, data: &OutputData) -> bool {
        let data = lasting(data);
        let fits = self.make_room(size_of(&data));
        if fits {
            self.outputs.push(RecordedOutput::Display(data));
        }
        fits
    }

    pub(crate) fn stream(&mut self, name: Stream, text: &str) {
        if !self.make_room(text.len()) {
            return;
        }
        if let Some(RecordedOutput::Stream { name: last, text: before }) = self.outputs.last_mut()
            && *last == name
        {
            before.push_str(text);
        } else {
            self.outputs.push(RecordedOutput::Stream { name, text: text.to_owned() });
        }
    }

    pub(crate) fn update(&mut self, id: &str, data: &OutputData) {
        let Some(at) = self.displays.get(id).copied() else { return };
        let data = lasting(data);
        let before = match &self.outputs[at] {
            RecordedOutput::Display(before) => size_of(before),
            RecordedOutput::Stream { .. } => 0,
        };
        self.size -= before;
        if self.make_room(size_of(&data)) {
            self.outputs[at] = RecordedOutput::Display(data);
        } else {
            self.size += before;
        }
    }

    fn make_room(&mut self, size: usize) -> bool {
        let fits = self.size + size <= MOST;
        if fits {
            self.size += size;
        } else {
            self.left_out = true;
        }
        fits
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn outputs(&self) -> &[RecordedOutput] {
        &self.outputs
    }

    /// Whether the cell has shown more than what is kept.
    pub(crate) fn is_cut(&self) -> bool {
        self.left_out
    }

    /// All of it as text, at most this many bytes: the start and the end of a longer one.
    pub(crate) fn text(&self, most: usize) -> String {
        let mut text = String::new();
        for output in &self.outputs {
            match output {
                RecordedOutput::Stream { text: written, .. } => text.push_str(written),
                RecordedOutput::Display(data) => {
                    text.push_str(data.get("text/plain").and_then(Value::as_str).unwrap_or_default());
                }
            }
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
        }
        if self.left_out {
            text.push_str("[the rest was not kept]\n");
        }
        shortened(&text, most)
    }

    /// The pictures among it.
    pub(crate) fn pictures(&self) -> Vec<ShownPicture> {
        let displays = self.outputs.iter().filter_map(|output| match output {
            RecordedOutput::Display(data) => Some(data),
            RecordedOutput::Stream { .. } => None,
        });
        let picture = |data: &OutputData| {
            ["image/png", "image/jpeg", "image/gif", "image/webp"].iter().find_map(|mime| {
                let data = data.get(*mime)?.as_str()?.to_owned();
                Some(ShownPicture { mime: (*mime).to_owned(), data })
            })
        };
        displays.filter_map(picture).collect()
    }
}

/// A display without what only a running turn can use: the buttons of its questions.
fn lasting(data: &OutputData) -> OutputData {
    let is_widget = |mime: &str| mime == "application/vnd.jupyter.widget-view+json";
    data.iter().filter(|(mime, _)| !is_widget(mime)).map(|(mime, it)| (mime.clone(), it.clone())).collect()
}

fn size_of(data: &OutputData) -> usize {
    data.iter().map(|(mime, value)| mime.len() + value.as_str().map_or(64, str::len)).sum()
}

/// The start and the end of a text that is too long, and how much is missing between them.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let start = text.floor_char_boundary(most / 2);
    let end = text.ceil_char_boundary(text.len() - most / 2);
    let mut short = text[..start].to_owned();
    write!(short, "\n[… {} bytes left out …]\n", end - start).expect("strings take everything");
    short + &text[end..]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn data(text: &str) -> OutputData {
        let Value::Object(data) = json!({"text/plain": text}) else { unreachable!("it is an object") };
        data
    }

    #[test]
    fn the_last_state_of_each_output_is_kept() {
        let mut record = CellOutputRecord::default();
        let stream = |text: &str| OutputMessage::Stream { name: Stream::Stdout, text: text.to_owned() };
        record.add(&stream("one "));
        record.add(&stream("two"));
        record.add(&OutputMessage::Display { id: "a".to_owned(), data: data("running") });
        record.add(&OutputMessage::Update { id: "a".to_owned(), data: data("done") });
        assert_eq!(record.text(100), "one two\ndone\n");
        assert_eq!(record.outputs().len(), 2);
        assert_eq!(record.size(), "one two".len() + "text/plain".len() + "done".len());
    }

    #[test]
    fn a_long_text_keeps_its_start_and_its_end() {
        let mut record = CellOutputRecord::default();
        record.stream(Stream::Stdout, &format!("start{}end", "é".repeat(1000)));
        let text = record.text(100);
        assert!(text.starts_with("start") && text.ends_with("end\n") && text.len() < 140, "{text}");
        assert!(text.contains("bytes left out"), "{text}");
    }

    #[test]
    fn more_than_the_bound_is_left_out_with_a_note() {
        let mut record = CellOutputRecord::default();
        record.stream(Stream::Stdout, &"x".repeat(MOST - 10));
        record.stream(Stream::Stdout, "too long for the rest");
        assert!(record.size() <= MOST && record.is_cut());
        assert!(record.text(200).ends_with("[the rest was not kept]\n"));
    }

    #[test]
    fn buttons_are_not_kept() {
        let mut record = CellOutputRecord::default();
        let mut buttons = data("[buttons]");
        buttons.insert("application/vnd.jupyter.widget-view+json".to_owned(), json!({"model_id": "1"}));
        record.display(&buttons);
        assert_eq!(record.outputs(), [RecordedOutput::Display(data("[buttons]"))]);
    }
}
