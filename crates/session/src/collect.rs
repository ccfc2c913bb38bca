//! From what a cell shows, change by change, to what its report holds.

use cellwright_kernel::{Exception, MimeBundle, Output, Stream};
use cellwright_output::{
    ArtifactId, Artifacts, Captured, Clear, Display, Image, Kind, Sink, Stream as SinkStream, json_text,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::OutputChange;
use crate::settings::OutputSettings;
use crate::wire;

/// Displays whose latest text is remembered until the end; the texts of more are taken as they come.
const UPDATED: usize = 256;

/// What a cell showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Collected {
    /// Its text: printed, displayed and the traceback, in order. `[image 1: …]` stands where an image was shown.
    #[serde(with = "wire::CapturedDef")]
    pub text: Captured,
    /// What is more than text, in order.
    pub shown: Vec<Shown>,
}

/// Something shown that is more than text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Shown {
    /// An image.
    Image(#[serde(with = "wire::image")] Image),
    /// A JSON value, whole.
    Json(Value),
    /// A status event; its shape is the sender's.
    Status(Value),
    /// More than a report holds, so it was stored.
    Stored {
        /// What it is, in words.
        what: String,
        /// Where it is, or why it could not be stored.
        #[serde(with = "wire::stored")]
        artifact: Result<ArtifactId, String>,
    },
}

impl Collected {
    /// Nothing.
    pub fn empty() -> Self {
        Self { text: Captured { text: String::new(), truncation: None }, shown: Vec::new() }
    }

    /// How many bytes it takes, roughly: what is held back to a limit where it is made need not be exact.
    pub(crate) fn weight(&self) -> usize {
        let shown = self.shown.iter().map(|shown| match shown {
            Shown::Image(image) => image.bytes.len(),
            Shown::Json(value) | Shown::Status(value) => value.to_string().len(),
            Shown::Stored { what, .. } => what.len(),
        });
        self.text.text.len() + shown.sum::<usize>()
    }

    /// The images it holds, in order.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        self.shown.iter().filter_map(|shown| match shown {
            Shown::Image(image) => Some(image),
            Shown::Json(_) | Shown::Status(_) | Shown::Stored { .. } => None,
        })
    }
}

/// Takes what a cell shows and holds a bounded part of it.
#[derive(Debug)]
pub struct Collector {
    settings: OutputSettings,
    sink: Sink,
    slots: Vec<Slot>,
    /// Bytes of what `slots` hold.
    weight: usize,
    images: usize,
    /// Displays that were updated, with their latest text.
    updated: Vec<(String, String)>,
    clear_next: bool,
}

#[derive(Debug, Clone)]
struct Slot {
    display_id: Option<String>,
    shown: Shown,
    weight: usize,
}

impl Collector {
    /// An empty one.
    pub fn new(settings: &OutputSettings) -> Self {
        Self {
            sink: sink(settings),
            settings: settings.clone(),
            slots: Vec::new(),
            weight: 0,
            images: 0,
            updated: Vec::new(),
            clear_next: false,
        }
    }

    /// Takes a change. Writes to the artifacts when much is shown, and waits for the disk then.
    pub fn apply(&mut self, change: &OutputChange) {
        match change {
            OutputChange::Added(output) => {
                if std::mem::take(&mut self.clear_next) {
                    self.clear();
                }
                self.add(output);
            }
            OutputChange::Updated { display_id, content } => self.update(display_id, content),
            OutputChange::Cleared { wait: true } => self.clear_next = true,
            OutputChange::Cleared { wait: false } => self.clear(),
        }
    }

    /// What would be held if the cell ended now.
    pub fn snapshot(&mut self) -> Collected {
        Collected {
            text: self.sink.snapshot(),
            shown: self.slots.iter().map(|slot| slot.shown.clone()).collect(),
        }
    }

    /// What is held at the end.
    pub fn finish(mut self) -> Collected {
        // Text once shown stays where it was shown; what it became is said at the end.
        for (_, text) in std::mem::take(&mut self.updated) {
            self.sink.write_block(&text);
        }
        Collected { text: self.sink.finish(), shown: self.slots.into_iter().map(|slot| slot.shown).collect() }
    }

    fn add(&mut self, output: &Output) {
        match output {
            Output::Text { stream, text } => {
                let stream = match stream {
                    Stream::Stdout => SinkStream::Stdout,
                    Stream::Stderr => SinkStream::Stderr,
                };
                self.sink.write(stream, text.as_bytes());
            }
            Output::Display { content, display_id } => self.show(content, display_id.as_deref()),
            Output::Result { content, .. } => self.show(content, None),
            Output::Error(exception) => self.sink.write_block(&traceback(exception)),
        }
    }

    fn show(&mut self, content: &MimeBundle, display_id: Option<&str>) {
        let display = Display::from_bundle(&content.data);
        if let Some(text) = text_of(&display, self.settings.store()) {
            self.sink.write_block(&text);
        }
        for shown in more_than_text(display) {
            if let Shown::Image(image) = &shown {
                self.images += 1;
                self.sink.write_block(&format!("[image {}: {image}]", self.images));
            }
            let (shown, weight) = self.within_limit(shown);
            self.weight += weight;
            self.slots.push(Slot { display_id: display_id.map(Into::into), shown, weight });
        }
    }

    /// A display that is shown anew: images and values change where they are, text is said at the end.
    fn update(&mut self, display_id: &str, content: &MimeBundle) {
        let display = Display::from_bundle(&content.data);
        if let Some(text) = text_of(&display, self.settings.store()) {
            if let Some((_, latest)) = self.updated.iter_mut().find(|(id, _)| id == display_id) {
                *latest = text;
            } else if self.updated.len() < UPDATED {
                self.updated.push((display_id.into(), text));
            } else {
                self.sink.write_block(&text);
            }
        }
        for shown in more_than_text(display) {
            let same_kind = |slot: &Slot| {
                slot.display_id.as_deref() == Some(display_id)
                    && std::mem::discriminant(&slot.shown) == std::mem::discriminant(&shown)
            };
            let place = self.slots.iter().position(same_kind);
            if let Some(place) = place {
                self.weight -= self.slots[place].weight;
            }
            let (shown, weight) = self.within_limit(shown);
            self.weight += weight;
            let slot = Slot { display_id: Some(display_id.into()), shown, weight };
            match place {
                Some(place) => self.slots[place] = slot,
                // A display of an earlier cell: here is what it shows now.
                None => self.slots.push(slot),
            }
        }
    }

    /// The thing itself while there is room, else where it was stored.
    fn within_limit(&self, shown: Shown) -> (Shown, usize) {
        let (kind, bytes, what) = match &shown {
            Shown::Image(image) => (image.format.kind(), image.bytes.clone(), image.to_string()),
            Shown::Json(value) | Shown::Status(value) => {
                let text = value.to_string();
                let what = format!("JSON, {} bytes", text.len());
                (Kind::Json, text.into_bytes(), what)
            }
            Shown::Stored { .. } => return (shown, 0),
        };
        if self.weight + bytes.len() <= self.settings.shown {
            return (shown, bytes.len());
        }
        let artifact = match self.settings.store() {
            Some(artifacts) => artifacts.save(kind, &bytes).map_err(|error| error.to_string()),
            None => Err("there is nowhere to store it".into()),
        };
        (Shown::Stored { what, artifact }, 0)
    }

    fn clear(&mut self) {
        self.sink.clear(Clear::Now);
        self.slots.clear();
        self.updated.clear();
        self.weight = 0;
        self.images = 0;
    }
}

fn sink(settings: &OutputSettings) -> Sink {
    match settings.store() {
        Some(artifacts) => Sink::with_artifacts(settings.limits, settings.colours, artifacts),
        None => Sink::new(settings.limits, settings.colours),
    }
}

fn text_of(display: &Display, artifacts: Option<&Artifacts>) -> Option<String> {
    let json = || display.json.as_ref().map(|value| json_text(value, artifacts).text);
    display.text.clone().or_else(json)
}

fn more_than_text(display: Display) -> impl Iterator<Item = Shown> {
    let Display { image, json, status, text: _, is_markdown: _ } = display;
    [image.map(Shown::Image), json.map(Shown::Json), status.map(Shown::Status)].into_iter().flatten()
}

fn traceback(exception: &Exception) -> String {
    if exception.traceback.is_empty() {
        format!("{}: {}", exception.name, exception.message)
    } else {
        exception.traceback.join("\n")
    }
}
