//! From what cells do while they run to the outputs a notebook keeps, the way Jupyter's clients record them.
//!
//! - Text printed in a row to one stream is one output; carriage returns and backspaces are applied as a terminal would.
//! - `clear_output` removes what the cell has shown, at once or when the next output comes.
//! - A display that is updated changes wherever it was shown, in earlier cells too.
//! - What a cell shows is bounded: of more the beginning and the end are kept, and a line between them says so.

mod cell;
mod printed;
mod row;
mod stored;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use self::cell::{Beyond, CellRecord};
use self::printed::Printed;

/// One value in several representations: MIME type to content, and hints on showing it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bundle {
    /// Text is a string, images are base64 strings, JSON types are JSON.
    pub data: Map<String, Value>,
    /// As JSON text, those of `data` whose numbers a [`Value`] rounds: they are kept as they are written here.
    pub exact: BTreeMap<String, String>,
    /// MIME type to hints.
    pub metadata: Map<String, Value>,
}

/// An exception, as a notebook keeps it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Raised {
    /// Its class.
    pub name: String,
    /// What it says.
    pub message: String,
    /// The traceback as printed.
    pub traceback: Vec<String>,
}

/// A standard stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamName {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl StreamName {
    fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// When a cell ran, for the metadata Jupyter keeps of it. Times are ISO 8601.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    /// When its code began to run.
    pub started: String,
    /// When it had ended.
    pub ended: Option<String>,
}

/// What a run leaves of one cell. Cheap to clone; a clone stays as it is while the run goes on.
#[derive(Debug, Clone, Default)]
pub struct Results {
    outputs: Arc<Vec<RunOutput>>,
    beyond: Option<Arc<Beyond>>,
    /// The number the kernel gave the cell; none while it runs.
    pub execution_count: Option<u64>,
    /// When it ran, if that is to be kept.
    pub timing: Option<Timing>,
}

#[derive(Debug, Clone)]
enum RunOutput {
    Stream { name: StreamName, printed: Printed },
    Display { content: Bundle },
    Result { content: Bundle, count: Option<u64> },
    Error(Raised),
}

/// What the cells of a run have shown so far. Cells are numbered as they are run.
pub struct Recording {
    cells: BTreeMap<usize, CellRecord>,
    /// Where each display was shown: cell, how often that had been cleared, place.
    displays: HashMap<String, Vec<(usize, u64, usize)>>,
    /// Most bytes kept of a cell.
    limit: usize,
    store: Option<Store>,
}

/// Keeps what there is no room for, and says where.
pub type Store = Box<dyn Fn(&Bundle) -> Option<String> + Send>;

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording")
            .field("cells", &self.cells)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl Recording {
    /// An empty one that keeps at most `limit` bytes of what each cell shows.
    pub fn new(limit: usize) -> Self {
        Self { cells: BTreeMap::new(), displays: HashMap::new(), limit, store: None }
    }

    /// The same, with a place for what is shown and does not fit.
    #[must_use]
    pub fn with_store(self, store: Store) -> Self {
        Self { store: Some(store), ..self }
    }

    /// What there is of a cell. Nothing, if it showed nothing.
    pub fn results(&self, cell: usize) -> Results {
        self.cells.get(&cell).map(|record| record.results.clone()).unwrap_or_default()
    }

    /// The cell begins: whatever an earlier run showed is gone.
    pub fn begin(&mut self, cell: usize, timing: Option<Timing>) {
        let results = Results { timing, ..Results::default() };
        self.cells.insert(cell, CellRecord::of(results));
    }

    /// The cell is over.
    pub fn end(&mut self, cell: usize, execution_count: Option<u64>, ended: impl FnOnce() -> String) {
        let results = &mut self.record(cell).results;
        results.execution_count = execution_count;
        if let Some(timing) = &mut results.timing {
            timing.ended = Some(ended());
        }
    }

    /// The cell printed something.
    pub fn print(&mut self, cell: usize, stream: StreamName, text: &str) {
        let limit = self.limit;
        self.next_output(cell).print(limit, stream, text);
    }

    /// The cell showed something, which can be updated under `display_id`.
    /// Jupyter: showing it anew updates it where it was shown before; returns the cells of those places.
    pub fn display(&mut self, cell: usize, content: Bundle, display_id: Option<String>) -> Vec<usize> {
        let updated = display_id.as_ref().map(|id| self.update(id, &content)).unwrap_or_default();
        let place = self.show(cell, content, |content| RunOutput::Display { content });
        if let (Some(display_id), Some(place)) = (display_id, place) {
            let cleared = self.record(cell).cleared;
            self.displays.entry(display_id).or_default().push((cell, cleared, place));
        }
        updated
    }

    /// The cell's last expression had a value.
    pub fn result(&mut self, cell: usize, content: Bundle, count: Option<u64>) {
        self.show(cell, content, |content| RunOutput::Result { content, count });
    }

    /// The cell raised an exception.
    pub fn error(&mut self, cell: usize, raised: Raised) {
        let limit = self.limit;
        let record = self.next_output(cell);
        let raised = if record.has_room(limit, raised.weight()) { raised } else { raised.shortened() };
        record.push(limit, RunOutput::Error(raised));
    }

    /// A display shows something else now. Returns the cells it is in.
    pub fn update(&mut self, display_id: &str, content: &Bundle) -> Vec<usize> {
        let mut changed = Vec::new();
        let (limit, store) = (self.limit, self.store.as_ref());
        for (cell, cleared, place) in self.displays.get(display_id).into_iter().flatten() {
            if let Some(record) = self.cells.get_mut(cell)
                && record.cleared == *cleared
                && record.update(limit, *place, content, || note(store, limit, content))
            {
                changed.push(*cell);
            }
        }
        changed
    }

    /// The displays that can be updated: name, cell, and which of its outputs.
    pub fn displays(&self) -> impl Iterator<Item = (&str, usize, usize)> {
        let places = self.displays.iter().flat_map(|(id, places)| places.iter().map(move |at| (id, at)));
        places.filter_map(|(id, (cell, cleared, output))| {
            let record = self.cells.get(cell).filter(|record| record.cleared == *cleared)?;
            record.results.outputs.get(*output).map(|_| (id.as_str(), *cell, *output))
        })
    }

    /// The content itself if a cell may hold it, else a note on what it was.
    pub fn fitting(&self, content: Bundle) -> Bundle {
        if content.weight() <= self.limit { content } else { note(self.store.as_ref(), self.limit, &content) }
    }

    /// What the cell has shown goes: now, or when the next output comes.
    pub fn clear(&mut self, cell: usize, wait: bool) {
        let record = self.record(cell);
        if wait {
            record.clear_next = true;
        } else {
            record.clear();
        }
    }

    /// Where all that the cell printed can be read, if some of it was left out here.
    pub fn kept_whole(&mut self, cell: usize, place: &str) {
        if let Some(beyond) = &mut self.record(cell).results.beyond {
            Arc::make_mut(beyond).kept_whole(place);
        }
    }

    fn record(&mut self, cell: usize) -> &mut CellRecord {
        self.cells.entry(cell).or_default()
    }

    fn next_output(&mut self, cell: usize) -> &mut CellRecord {
        let record = self.record(cell);
        if std::mem::take(&mut record.clear_next) {
            record.clear();
        }
        record
    }

    /// Keeps the content itself while there is room, else a note on what it was. Says which output it is, unless it
    /// came after the cell's outputs were full.
    fn show(
        &mut self,
        cell: usize,
        content: Bundle,
        output: impl FnOnce(Bundle) -> RunOutput,
    ) -> Option<usize> {
        let limit = self.limit;
        let fits = self.next_output(cell).has_room(limit, content.weight());
        let content = if fits { content } else { note(self.store.as_ref(), limit, &content) };
        self.record(cell).push(limit, output(content))
    }
}

/// What stands for content that does not fit.
fn note(store: Option<&Store>, limit: usize, content: &Bundle) -> Bundle {
    let bytes = content.weight();
    let types: Vec<_> = content.data.keys().map(String::as_str).collect();
    let place = store.and_then(|store| store(content));
    let place = place.map(|place| format!("; all of it: {place}")).unwrap_or_default();
    let note = format!(
        "[{}, {bytes} bytes: not kept, for a cell's outputs may take {limit} bytes{place}]",
        types.join(", ")
    );
    Bundle { data: Map::from_iter([("text/plain".to_owned(), note.into())]), ..Bundle::default() }
}

impl Bundle {
    fn weight(&self) -> usize {
        let of = |(mime, value)| self.exact.get(mime).map_or_else(|| weight(value), String::len);
        self.data.iter().map(of).chain(self.metadata.values().map(weight)).sum()
    }
}

fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(members) => members.iter().map(|(key, value)| key.len() + weight(value)).sum(),
    }
}
