//! From what cells do while they run to the outputs they have, the way Jupyter's clients record them.
//!
//! - Text printed in a row to one stream is one output.
//! - `clear_output` removes what the cell has shown, at once or when the next output comes.
//! - A display that is updated changes wherever it was shown, in earlier cells too.
//!
//! That is [`Reducer`], for every holder of outputs. A [`Recording`] holds them for a notebook:
//!
//! - Carriage returns and backspaces are applied as a terminal would; escape sequences stay as they were printed.
//! - What a cell shows is bounded. If there is more, the beginning and the end stay, with a line between them that says so.

mod beside;
mod cell;
mod printed;
mod reducer;
mod row;
mod stored;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use cellwright_cell::{Exception, MimeBundle, MimeData, Output, Stream};

use self::beside::RecordedCell;
use self::cell::OverflowOutput;
pub(crate) use self::printed::PrintedText;
pub use self::reducer::{CellOutputs, Joint, Reducer, Stability};
pub(crate) use self::stored::data;

/// When a cell ran, for the metadata Jupyter keeps of it. Times are ISO 8601.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellTiming {
    /// When its code began to run.
    pub started: String,
    /// When it had ended.
    pub ended: Option<String>,
}

/// What a run leaves of one cell. Cheap to clone; a clone stays as it is while the run goes on.
#[derive(Debug, Clone, Default)]
pub struct Results {
    outputs: Arc<Vec<RunOutput>>,
    beyond: Option<Arc<OverflowOutput>>,
    /// The number the kernel gave the cell. `None` while it runs.
    pub execution_count: Option<u64>,
    /// When it ran, if times are recorded.
    pub timing: Option<CellTiming>,
}

#[derive(Debug, Clone)]
enum RunOutput {
    Stream { name: Stream, printed: PrintedText },
    Shown(Output),
}

impl Results {
    /// The outputs in their order. `None` if a notebook has no room for all of them.
    pub fn whole(&self) -> Option<impl Iterator<Item = Cow<'_, Output>>> {
        let outputs = self.outputs.iter().map(|output| match output {
            RunOutput::Stream { name, printed } => Cow::Owned(Output::text(*name, printed.text())),
            RunOutput::Shown(shown) => Cow::Borrowed(shown),
        });
        self.beyond.is_none().then_some(outputs)
    }
}

/// What the cells of a run have shown so far, as a notebook keeps it, and beside that as a report `R` holds it. Cells
/// are numbered as they are run.
#[derive(Debug)]
pub struct Recording<R: CellOutputs = ()> {
    reducer: Reducer<RecordedCell<R>>,
}

/// What is kept of a cell.
struct CellLimit {
    /// Most bytes of it.
    bytes: usize,
    store: Option<OutputStore>,
}

/// Keeps what there is no room for, and says where.
pub type OutputStore = Box<dyn Fn(&MimeBundle) -> Option<String> + Send>;

impl fmt::Debug for CellLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CellLimit").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Recording {
    /// An empty one that keeps at most `limit` bytes of what each cell shows.
    pub fn new(limit: usize) -> Self {
        Self::with_report(limit, ())
    }
}

impl<R: CellOutputs> Recording<R> {
    /// The same, with a report of these settings.
    pub fn with_report(limit: usize, report: R::Settings) -> Self {
        Self { reducer: Reducer::new((CellLimit { bytes: limit, store: None }, report)) }
    }

    /// What the report holds of a cell, and its settings.
    pub fn report(&mut self, cell: usize) -> (&R::Settings, &mut R) {
        let ((_, settings), recorded) = self.reducer.parts(cell);
        (settings, &mut recorded.report)
    }

    /// Adds what ended a cell to the notebook alone: a report has it in its own words.
    pub fn error(&mut self, cell: usize, raised: Exception) {
        let ((limit, _), recorded) = self.reducer.new_output(cell);
        recorded.record.add(limit, Output::Error(raised), Stability::Final);
    }

    /// Whether a cell showed more than the notebook keeps.
    pub fn is_full(&self, cell: usize) -> bool {
        self.reducer.outputs(cell).is_some_and(|recorded| recorded.record.results.beyond.is_some())
    }

    /// The same, with a place for what is shown and does not fit.
    #[must_use]
    pub fn with_store(mut self, store: OutputStore) -> Self {
        self.reducer.settings_mut().0.store = Some(store);
        self
    }

    /// What happens to the cells' outputs goes here.
    pub fn reducer(&mut self) -> &mut Reducer<impl CellOutputs> {
        &mut self.reducer
    }

    /// What there is of a cell. Nothing, if it showed nothing.
    pub fn results(&self, cell: usize) -> Results {
        self.reducer.outputs(cell).map(|recorded| recorded.record.results.clone()).unwrap_or_default()
    }

    /// The cell begins: whatever an earlier run showed is gone.
    pub fn begin(&mut self, cell: usize, timing: Option<CellTiming>) {
        self.reducer.begin(cell);
        self.reducer.outputs_mut(cell).record.results.timing = timing;
    }

    /// The cell is over.
    pub fn end(&mut self, cell: usize, execution_count: Option<u64>, ended: impl FnOnce() -> String) {
        let results = &mut self.reducer.outputs_mut(cell).record.results;
        results.execution_count = execution_count;
        if let Some(timing) = &mut results.timing {
            timing.ended = Some(ended());
        }
    }

    /// The displays that can be updated: name, cell, and which of its outputs.
    pub fn displays(&self) -> impl Iterator<Item = (&str, usize, usize)> {
        self.reducer.displays().filter_map(|(name, cell, place)| {
            Some((name, cell, self.reducer.outputs(cell)?.place_in_notebook(place)?))
        })
    }

    /// The content itself if a cell may hold it, or else a note on what it was.
    pub fn fitting(&self, content: &Arc<MimeBundle>) -> Arc<MimeBundle> {
        let (limit, _) = self.reducer.settings();
        if content.weight() <= limit.bytes { Arc::clone(content) } else { limit.note(content) }
    }

    /// Where all that the cell printed can be read, if some of it was left out here.
    pub fn kept_whole(&mut self, cell: usize, place: &str) {
        if let Some(beyond) = &mut self.reducer.outputs_mut(cell).record.results.beyond {
            Arc::make_mut(beyond).kept_whole(place);
        }
    }
}

impl CellLimit {
    /// What replaces content that does not fit.
    fn note(&self, content: &MimeBundle) -> Arc<MimeBundle> {
        let (bytes, limit) = (content.weight(), self.bytes);
        let types: Vec<_> = content.data.iter().map(|(mime, _)| mime).collect();
        let place = self.store.as_ref().and_then(|store| store(content));
        let place = place.map(|place| format!("; all of it: {place}")).unwrap_or_default();
        let note = format!(
            "[{}, {bytes} bytes: not kept, for a cell's outputs may take {limit} bytes{place}]",
            types.join(", ")
        );
        let data = MimeData::from_iter([("text/plain".to_owned(), note.into())]);
        Arc::new(MimeBundle { data, ..MimeBundle::default() })
    }
}
