//! From what cells do to the outputs they have: in which order they stand, which text goes on with which, what a
//! `clear_output` takes away and when, and where a display is that shows something else now.
//!
//! The one place that knows this. The holder of the outputs ([`CellOutputs`]) decides how: a notebook keeps them as they are, up to a
//! limit; a reply shows the beginning and the end.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use cellwright_cell::{MimeBundle, Output, OutputChange, Stream};

/// Fewer displays than this are not worth looking through for those that are out of reach.
const FEW: usize = 1024;

/// The outputs of one cell.
pub trait CellOutputs {
    /// What is the same for all cells.
    type Settings: fmt::Debug;

    /// None yet, of this cell.
    fn new(settings: &Self::Settings, cell: usize) -> Self;

    /// Takes text of a stream.
    fn print(&mut self, settings: &Self::Settings, stream: Stream, text: &str, joint: Joint);

    /// Takes one more output that is not text of a stream. Returns where it is if it can be updated there.
    fn add(&mut self, settings: &Self::Settings, output: Output, stability: Stability) -> Option<usize>;

    /// Shows something else in a display; says whether it could.
    fn update(&mut self, settings: &Self::Settings, place: usize, content: &Arc<MimeBundle>) -> bool;

    /// Whether the display at this place can still be updated.
    fn can_update(&self, place: usize) -> bool;

    /// Forgets all outputs.
    fn clear(&mut self, settings: &Self::Settings);
}

/// How text relates to the output before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joint {
    /// It begins an output.
    Begins,
    /// It goes on with the text of the same stream.
    GoesOn,
}

/// What may become of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stability {
    /// It stays as it is.
    Final,
    /// It has a name under which it may be updated.
    MayChange,
}

/// What the cells of a run have shown so far. Cells are numbered as they are run.
#[derive(Debug)]
pub struct Reducer<O: CellOutputs> {
    settings: O::Settings,
    cells: BTreeMap<usize, ReducedCell<O>>,
    displays: DisplayPlaces,
}

#[derive(Debug)]
struct ReducedCell<O> {
    outputs: O,
    /// The stream whose text came last.
    printing: Option<Stream>,
    /// Whether everything goes when the next output comes.
    clear_next: bool,
}

/// Where each display was shown: cell and place.
#[derive(Debug, Default)]
struct DisplayPlaces {
    places: HashMap<String, Vec<(usize, usize)>>,
    count: usize,
    /// How many there were when those out of reach were last forgotten.
    reachable: usize,
}

impl<O: CellOutputs> Reducer<O> {
    /// Without any cell.
    pub fn new(settings: O::Settings) -> Self {
        Self { settings, cells: BTreeMap::new(), displays: DisplayPlaces::default() }
    }

    /// What is the same for all cells.
    pub fn settings(&self) -> &O::Settings {
        &self.settings
    }

    pub(super) fn settings_mut(&mut self) -> &mut O::Settings {
        &mut self.settings
    }

    /// The outputs of a cell, if it began or showed something.
    pub fn outputs(&self, cell: usize) -> Option<&O> {
        self.cells.get(&cell).map(|cell| &cell.outputs)
    }

    /// The outputs of a cell.
    pub fn outputs_mut(&mut self, cell: usize) -> &mut O {
        &mut self.cell(cell).outputs
    }

    /// The outputs of a cell, and what is the same for all cells.
    pub(super) fn parts(&mut self, cell: usize) -> (&O::Settings, &mut O) {
        self.cell(cell);
        (&self.settings, &mut self.cells.get_mut(&cell).expect("just looked at").outputs)
    }

    /// The final outputs of a cell.
    pub fn take(&mut self, cell: usize) -> O {
        self.displays.forget(cell);
        let taken = self.cells.remove(&cell).map(|cell| cell.outputs);
        taken.unwrap_or_else(|| O::new(&self.settings, cell))
    }

    /// The cell begins: whatever it showed before is gone.
    pub fn begin(&mut self, cell: usize) {
        drop(self.take(cell));
        self.cell(cell);
    }

    /// Makes a change to the outputs of a cell. Returns the cells whose displays it updated, whichever they are.
    pub fn apply(&mut self, cell: usize, change: &OutputChange) -> Vec<usize> {
        match change {
            OutputChange::Added(Output::Text { stream, text }) => self.print(cell, *stream, text),
            OutputChange::Added(Output::Display { content, display_id }) => {
                return self.display(cell, content, display_id.as_deref());
            }
            OutputChange::Added(output @ (Output::Result { .. } | Output::Error(_))) => {
                self.show(cell, output.clone(), Stability::Final);
            }
            OutputChange::Updated { display_id, content } => return self.update(display_id, content),
            OutputChange::Cleared { wait } => self.clear(cell, *wait),
        }
        Vec::new()
    }

    /// The cell printed something.
    pub fn print(&mut self, cell: usize, stream: Stream, text: &str) {
        if text.is_empty() {
            return;
        }
        let (settings, cell) = self.next_output(cell);
        let joint = if cell.printing == Some(stream) { Joint::GoesOn } else { Joint::Begins };
        cell.printing = Some(stream);
        cell.outputs.print(settings, stream, text, joint);
    }

    /// The cell showed something, which can be updated under `display_id`.
    /// Jupyter: showing it anew updates it where it was shown before; returns the cells of those places.
    pub fn display(
        &mut self,
        cell: usize,
        content: &Arc<MimeBundle>,
        display_id: Option<&str>,
    ) -> Vec<usize> {
        let shown = Output::Display { content: Arc::clone(content), display_id: None };
        let Some(display_id) = display_id else {
            self.show(cell, shown, Stability::Final);
            return Vec::new();
        };
        let updated = self.update(display_id, content);
        if let Some(place) = self.show(cell, shown, Stability::MayChange) {
            self.displays.add(display_id, cell, place);
            let cells = &self.cells;
            self.displays.forget_unreachable(|(cell, place)| {
                cells.get(&cell).is_some_and(|cell| cell.outputs.can_update(place))
            });
        }
        updated
    }

    /// A display shows something else now. Returns the cells it is in.
    pub fn update(&mut self, display_id: &str, content: &Arc<MimeBundle>) -> Vec<usize> {
        let mut changed = Vec::new();
        for (cell, place) in self.displays.places.get(display_id).into_iter().flatten() {
            if let Some(record) = self.cells.get_mut(cell)
                && record.outputs.update(&self.settings, *place, content)
            {
                changed.push(*cell);
            }
        }
        changed
    }

    /// What the cell has shown goes: now, or when the next output comes.
    pub fn clear(&mut self, cell: usize, wait: bool) {
        self.cell(cell).clear_next = wait;
        if !wait {
            self.clear_now(cell);
        }
    }

    /// The displays that can be updated: name, cell, and its place in there.
    pub fn displays(&self) -> impl Iterator<Item = (&str, usize, usize)> {
        let places = self.displays.places.iter();
        places.flat_map(|(id, places)| places.iter().map(|(cell, place)| (id.as_str(), *cell, *place)))
    }

    fn cell(&mut self, cell: usize) -> &mut ReducedCell<O> {
        let settings = &self.settings;
        self.cells.entry(cell).or_insert_with(|| ReducedCell {
            outputs: O::new(settings, cell),
            printing: None,
            clear_next: false,
        })
    }

    fn next_output(&mut self, cell: usize) -> (&O::Settings, &mut ReducedCell<O>) {
        if std::mem::take(&mut self.cell(cell).clear_next) {
            self.clear_now(cell);
        }
        (&self.settings, self.cells.get_mut(&cell).expect("just looked at"))
    }

    fn clear_now(&mut self, cell: usize) {
        self.displays.forget(cell);
        if let Some(cell) = self.cells.get_mut(&cell) {
            cell.printing = None;
            cell.outputs.clear(&self.settings);
        }
    }

    fn show(&mut self, cell: usize, output: Output, stability: Stability) -> Option<usize> {
        let (settings, outputs) = self.new_output(cell);
        outputs.add(settings, output, stability)
    }

    /// Where an output goes that continues no text.
    pub(super) fn new_output(&mut self, cell: usize) -> (&O::Settings, &mut O) {
        let (settings, cell) = self.next_output(cell);
        cell.printing = None;
        (settings, &mut cell.outputs)
    }
}

impl DisplayPlaces {
    fn add(&mut self, display_id: &str, cell: usize, place: usize) {
        self.places.entry(display_id.to_owned()).or_default().push((cell, place));
        self.count += 1;
    }

    /// Forgets those of a cell.
    fn forget(&mut self, cell: usize) {
        self.retain(|(at, _)| at != cell);
    }

    /// Forgets those that cannot be updated any more, now and then: there may be any number of them.
    fn forget_unreachable(&mut self, can_update: impl Fn((usize, usize)) -> bool) {
        if self.count > FEW && self.count / 2 > self.reachable {
            self.retain(can_update);
            self.reachable = self.count;
        }
    }

    fn retain(&mut self, stays: impl Fn((usize, usize)) -> bool) {
        let mut count = 0;
        self.places.retain(|_, places| {
            places.retain(|place| stays(*place));
            count += places.len();
            !places.is_empty()
        });
        self.count = count;
    }
}
