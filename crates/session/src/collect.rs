//! From what a cell shows, change by change, to what its report holds.
//!
//! What is cleared, what goes on with what and which display changes where is decided by the reducer that notebooks are
//! recorded with; here is what it makes of outputs for a report.

mod held;
mod page;

use std::borrow::Cow;

use cellwright_cell::{ExactJson, Output, OutputChange};
use cellwright_notebook::recording::Reducer;
use cellwright_output::{ArtifactId, CapturedText, Image};
use serde::{Deserialize, Serialize};

pub use self::held::ReportOutputs;
use self::page::ReportPage;
use crate::settings::OutputSettings;

/// A collector has one.
const CELL: usize = 0;

/// What a cell showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollectedOutput {
    /// Its text: printed, displayed and the traceback, in order. `[image 1: …]` marks where an image was shown.
    pub text: CapturedText,
    /// What is more than text, in order.
    pub shown: Vec<ShownOutput>,
    /// How many images were shown, those that were stored included.
    pub image_count: usize,
}

/// Something shown that is more than text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ShownOutput {
    /// An image.
    Image(Image),
    /// A JSON value, whole.
    Json(ExactJson),
    /// A status event; its shape is the sender's.
    Status(ExactJson),
    /// More than a report holds, so it was stored.
    Stored {
        /// What it is, in words.
        what: String,
        /// Where it is, or why it could not be stored.
        artifact: Result<ArtifactId, NotStored>,
    },
}

/// Why something was not stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub struct NotStored(pub(crate) String);

impl CollectedOutput {
    /// Nothing.
    pub fn empty() -> Self {
        Self {
            text: CapturedText { text: String::new(), truncation: None },
            shown: Vec::new(),
            image_count: 0,
        }
    }

    /// What a report shows of outputs that are recorded already.
    pub fn of<'a>(outputs: impl IntoIterator<Item = Cow<'a, Output>>, settings: &OutputSettings) -> Self {
        let mut page = ReportPage::new(settings, CELL);
        for output in outputs {
            page.show(settings, &output);
        }
        page.finish()
    }

    /// How many bytes it takes, roughly: what is held back to a limit where it is made need not be exact.
    pub(crate) fn weight(&self) -> usize {
        let shown = self.shown.iter().map(|shown| match shown {
            ShownOutput::Image(image) => image.bytes.len(),
            ShownOutput::Json(value) | ShownOutput::Status(value) => value.text().len(),
            ShownOutput::Stored { what, .. } => what.len(),
        });
        self.text.text.len() + shown.sum::<usize>()
    }

    /// The images it holds, in order.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        self.shown.iter().filter_map(|shown| match shown {
            ShownOutput::Image(image) => Some(image),
            ShownOutput::Json(_) | ShownOutput::Status(_) | ShownOutput::Stored { .. } => None,
        })
    }
}

/// Takes what a cell shows and holds a bounded part of it.
#[derive(Debug)]
pub struct Collector {
    reducer: Reducer<ReportOutputs>,
}

impl Collector {
    /// An empty one.
    pub fn new(settings: &OutputSettings) -> Self {
        Self { reducer: Reducer::new(settings.clone()) }
    }

    /// Takes a change. Writes to the artifacts when much is shown, and waits for the disk then.
    pub fn apply(&mut self, change: &OutputChange) {
        let updated = self.reducer.apply(CELL, change);
        if let OutputChange::Updated { display_id, content } = change
            && updated.is_empty()
        {
            // A display of an earlier cell, or one that is out of reach here: this is what it shows now.
            self.reducer.display(CELL, content, Some(display_id));
        }
    }

    /// What would be held if the cell ended now.
    pub fn snapshot(&mut self) -> CollectedOutput {
        let settings = self.reducer.settings().clone();
        self.reducer.outputs_mut(CELL).snapshot(&settings)
    }

    /// What is held at the end.
    pub fn finish(mut self) -> CollectedOutput {
        let held = self.reducer.take(CELL);
        held.finish(self.reducer.settings())
    }
}
