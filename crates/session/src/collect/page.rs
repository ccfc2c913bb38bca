//! Outputs as a report shows them: one text, and images and data beside it.

use cellwright_cell::{Exception, MimeBundle, Output, Stream};
use cellwright_output::{ArtifactKind, Artifacts, CapturedText, Display, OutputSink, json_text};

use super::{CollectedOutput, NotStored, ShownOutput};
use crate::settings::{ImageNames, OutputSettings};

/// What has been shown and will not change.
#[derive(Debug)]
pub(super) struct ReportPage {
    sink: OutputSink,
    shown: Vec<ShownOutput>,
    /// Bytes of what `shown` holds.
    weight: usize,
    images: usize,
    names: ImageNames,
    /// Something did not fit and there was nowhere to store it.
    lacks_store: bool,
}

impl ReportPage {
    /// `cell` is the cell's place in the call.
    pub(super) fn new(settings: &OutputSettings, cell: usize) -> Self {
        let sink = match settings.store() {
            Some(artifacts) => OutputSink::with_artifacts(settings.limits, settings.colours, artifacts),
            None => OutputSink::new(settings.limits, settings.colours),
        };
        Self {
            sink,
            shown: Vec::new(),
            weight: 0,
            images: 0,
            names: settings.images.of(cell),
            lacks_store: false,
        }
    }

    /// A copy to try out what more outputs would look like; it stores nothing.
    pub(super) fn copy(&self) -> Self {
        Self { sink: self.sink.copy(), shown: self.shown.clone(), ..*self }
    }

    pub(super) fn lacks_store(&self) -> bool {
        self.lacks_store
    }

    pub(super) fn clear(&mut self) {
        self.sink.clear();
        self.shown.clear();
        (self.weight, self.images) = (0, 0);
    }

    /// What comes next is another output: one line of text is never part of two.
    pub(super) fn start_output(&mut self) {
        self.sink.start_line();
    }

    pub(super) fn print(&mut self, stream: Stream, text: &str) {
        self.sink.write(stream, text.as_bytes());
    }

    pub(super) fn show(&mut self, settings: &OutputSettings, output: &Output) {
        match output {
            Output::Text { stream, text } => {
                self.start_output();
                self.print(*stream, text);
            }
            Output::Display { content, .. } | Output::Result { content, .. } => {
                self.display(settings, content);
            }
            Output::Error(raised) => {
                self.note_cut(&raised.message);
                self.sink.write_block(&traceback(raised));
            }
        }
    }

    pub(super) fn snapshot(&mut self) -> CollectedOutput {
        CollectedOutput { text: self.sink.snapshot(), shown: self.shown.clone(), image_count: self.images }
    }

    pub(super) fn finish(self) -> CollectedOutput {
        CollectedOutput { text: self.sink.finish(), shown: self.shown, image_count: self.images }
    }

    fn display(&mut self, settings: &OutputSettings, content: &MimeBundle) {
        let display = Display::from_bundle(&content.data);
        if let Some(text) = self.text_of(&display, settings.store()) {
            self.note_cut(&text);
            self.sink.write_block(&text);
        }
        let Display { image, json, status, text: _, is_markdown: _ } = display;
        let more =
            [image.map(ShownOutput::Image), json.map(ShownOutput::Json), status.map(ShownOutput::Status)];
        for shown in more.into_iter().flatten() {
            if let ShownOutput::Image(image) = &shown {
                self.images += 1;
                let block = match self.names {
                    ImageNames::After(before) => format!("[image {}: {image}]", before + self.images),
                    ImageNames::OfCell(index) => format!("[image {} of cell {index}: {image}]", self.images),
                };
                self.sink.write_block(&block);
            }
            let shown = self.within_limit(settings, shown);
            self.shown.push(shown);
        }
    }

    /// Remembers that a text is one that the runner cut: it ends with how long it was.
    fn note_cut(&mut self, text: &str) {
        const SHORTEST: usize = 64 * 1024;
        let end = text.len().checked_sub(80).filter(|_| text.len() > SHORTEST);
        let Some(end) = end.map(|end| &text[text.ceil_char_boundary(end)..]) else { return };
        if let Some((_, count)) = end.rsplit_once("… (").filter(|(_, count)| count.ends_with(')'))
            && let Some((count, _)) = count.split_once(" characters")
            && count.bytes().all(|byte| byte.is_ascii_digit())
        {
            self.sink.mark_incomplete(format!("it has {count} characters, more than a kernel sends"));
        }
    }

    /// Its text, or its value as text.
    fn text_of(&mut self, display: &Display, store: Option<&Artifacts>) -> Option<String> {
        if display.text.is_some() {
            return display.text.clone();
        }
        let CapturedText { text, truncation } = json_text(display.json.as_ref()?, store);
        self.lacks_store |= truncation.is_some() && store.is_none();
        Some(text)
    }

    /// The thing itself while there is room, or else where it was stored.
    fn within_limit(&mut self, settings: &OutputSettings, shown: ShownOutput) -> ShownOutput {
        let (kind, bytes, what) = match &shown {
            ShownOutput::Image(image) => (image.format.kind(), image.bytes.clone(), image.to_string()),
            ShownOutput::Json(value) | ShownOutput::Status(value) => {
                let what = format!("JSON, {} bytes", value.text().len());
                (ArtifactKind::Json, value.text().as_bytes().to_vec(), what)
            }
            ShownOutput::Stored { .. } => return shown,
        };
        if self.weight + bytes.len() <= settings.shown {
            self.weight += bytes.len();
            return shown;
        }
        self.lacks_store |= settings.store().is_none();
        let artifact = match settings.store() {
            Some(artifacts) => artifacts.save(kind, &bytes).map_err(|error| NotStored(error.to_string())),
            None => Err(NotStored("there is nowhere to store it".to_owned())),
        };
        ShownOutput::Stored { what, artifact }
    }
}

fn traceback(Exception { name, message, traceback, line: _ }: &Exception) -> String {
    if traceback.is_empty() { format!("{name}: {message}") } else { traceback.join("\n") }
}
