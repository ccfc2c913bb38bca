//! Keeping a run's results in the file, on a thread of its own.
//!
//! What comes while a save is under way is saved together, by the next one: a small notebook is written after every cell, a huge one as
//! often as it can be, and neither holds up the run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

use cellwright_notebook::file::{self, Again, Durability, FileError, Since};
use cellwright_notebook::recording::Results;
use cellwright_notebook::{CellKind, CellRef, Notebook};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use crate::plan::PlannedCell;

/// Results of cells, by their place in the run.
pub(crate) struct Batch {
    pub(crate) results: Vec<(usize, Results)>,
    /// The cell whose results these are for good, unless a display in it is updated.
    pub(crate) finished: Option<usize>,
}

/// The way to the thread that saves. When it is dropped, what is left is saved.
pub(crate) struct Keeper {
    batches: Sender<Batch>,
    saved: UnboundedReceiver<Vec<usize>>,
    thread: JoinHandle<Kept>,
}

/// What became of a run's results.
#[derive(Debug)]
pub struct Kept {
    /// The file they are in.
    pub path: PathBuf,
    /// How often others' changes were merged in.
    pub merged: usize,
    /// Where they are instead, once the file could not take them any more.
    pub side: Option<SideFile>,
    /// Why the last of them are nowhere.
    pub failed: Option<FileError>,
}

/// A copy of the notebook with the results that the notebook itself could not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideFile {
    /// Where.
    pub path: PathBuf,
    /// What others did to the notebook.
    pub why: String,
}

impl Keeper {
    /// Saves into `file`, from now on.
    pub(crate) fn start(file: Again, cells: Vec<PlannedCell>) -> Self {
        let (batches, incoming) = channel();
        // One message for each save that ended a cell: no more than the run has cells.
        let (sender, saved) = unbounded_channel();
        let thread = tokio::task::spawn_blocking(move || Thread::new(file, cells).run(&incoming, &sender));
        Self { batches, saved, thread }
    }

    /// Takes results to be saved as soon as possible.
    pub(crate) fn take(&self, batch: Batch) {
        drop(self.batches.send(batch)); // a thread that is gone has panicked; `finish` tells
    }

    /// The next cells that were over and are in the file now. Cancel-safe; does not return once all are saved.
    pub(crate) async fn saved(&mut self) -> Vec<usize> {
        match self.saved.recv().await {
            Some(cells) => cells,
            None => std::future::pending().await,
        }
    }

    /// Saves what is left, and says which cells that were over have been saved since [`Keeper::saved`] last told.
    pub(crate) async fn finish(mut self) -> (Kept, Vec<usize>) {
        drop(self.batches);
        match self.thread.await {
            Ok(kept) => (kept, std::iter::from_fn(|| self.saved.try_recv().ok()).flatten().collect()),
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }
}

struct Thread {
    file: Again,
    cells: Vec<PlannedCell>,
    /// Where each cell of the run is now.
    places: Vec<usize>,
    /// All there is, for when the file changes under us.
    results: BTreeMap<usize, Results>,
    merged: usize,
    side: Option<SideFile>,
    failed: Option<FileError>,
}

/// Why results can not be put into a notebook.
enum Unsaved {
    /// Others changed what was run.
    Conflict(String),
    File(FileError),
}

impl From<FileError> for Unsaved {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

impl Thread {
    fn new(file: Again, cells: Vec<PlannedCell>) -> Self {
        let places = cells.iter().map(|cell| cell.index).collect();
        Self { file, cells, places, results: BTreeMap::new(), merged: 0, side: None, failed: None }
    }

    fn run(mut self, incoming: &Receiver<Batch>, saved: &UnboundedSender<Vec<usize>>) -> Kept {
        let mut finished = Vec::new();
        while let Ok(first) = incoming.recv() {
            let mut batch = BTreeMap::new();
            for next in std::iter::once(first).chain(incoming.try_iter()) {
                batch.extend(next.results);
                finished.extend(next.finished);
            }
            // What could not be saved the last time is tried again with the rest.
            if self.failed.take().is_some() {
                batch.extend(self.results.clone());
            }
            self.results.extend(batch.clone());
            match self.save(&batch) {
                Ok(()) if finished.is_empty() => {}
                Ok(()) => drop(saved.send(std::mem::take(&mut finished))), // nobody may want to know
                Err(error) => self.failed = Some(error),
            }
        }
        if self.failed.take().is_some() {
            let all = self.results.clone();
            match self.save(&all) {
                Ok(()) => drop(saved.send(finished)), // nobody may want to know
                Err(error) => self.failed = Some(error),
            }
        }
        Kept {
            path: self.file.target().to_owned(),
            merged: self.merged,
            side: self.side,
            failed: self.failed,
        }
    }

    fn save(&mut self, batch: &BTreeMap<usize, Results>) -> Result<(), FileError> {
        let Self { file, cells, places, results, merged, .. } = self;
        let saved = file.update(Durability::Soon, |notebook, since| match since {
            Since::Unchanged => Ok(put(notebook, places, batch)),
            Since::Changed => {
                *places = places_in(notebook, cells, results).map_err(Unsaved::Conflict)?;
                *merged += 1;
                Ok(put(notebook, places, results))
            }
        });
        match saved {
            Ok(()) => Ok(()),
            Err(Unsaved::File(error)) => Err(error),
            Err(Unsaved::Conflict(why)) => self.step_aside(why),
        }
    }

    /// Leaves the notebook to those who changed it, and goes on in a copy of what we ran.
    fn step_aside(&mut self, why: String) -> Result<(), FileError> {
        let places: Vec<_> = self.places.clone();
        let copy = put(self.file.notebook(), &places, &self.results);
        let target = self.file.target().to_owned();
        let path = (0..)
            .map(|number| side_path(&target, number))
            .find_map(|path| match file::create(&path, &copy) {
                Ok(true) => Some(Ok(path)),
                Ok(false) => None,
                Err(error) => Some(Err(error)),
            })
            .expect("some number is free")?;
        self.file = Again::open(&path)?;
        self.side = Some(SideFile { path, why });
        Ok(())
    }
}

fn put(notebook: &Notebook, places: &[usize], results: &BTreeMap<usize, Results>) -> Notebook {
    notebook.with_results(results.iter().map(|(cell, results)| (places[*cell], results)))
}

/// Where the cells of a run are in a notebook that others changed: those with results must be there, with the source that was run.
fn places_in(
    notebook: &Notebook,
    cells: &[PlannedCell],
    results: &BTreeMap<usize, Results>,
) -> Result<Vec<usize>, String> {
    let mut places = Vec::with_capacity(cells.len());
    for (at, cell) in cells.iter().enumerate() {
        let reference = cell.id.clone().map_or(CellRef::Index(cell.index), CellRef::Id);
        let place = notebook.locate(&reference);
        let same = place.as_ref().is_ok_and(|place| {
            let found = notebook.cell(*place);
            found.kind() == CellKind::Code && found.source() == cell.source
        });
        match place {
            Ok(place) if same => places.push(place),
            // A cell that has not run yet may change; should it run all the same, we shall meet it here again.
            _ if !results.contains_key(&at) => places.push(cell.index),
            Ok(_) => return Err(format!("cell {} was edited while it ran here", cell.index)),
            Err(_) => return Err(format!("cell {} was removed while it ran here", cell.index)),
        }
    }
    Ok(places)
}

/// `analysis.run.ipynb`, `analysis.run-1.ipynb`, …
fn side_path(target: &Path, number: usize) -> PathBuf {
    let stem = target.file_stem().unwrap_or_default().to_string_lossy();
    let number = if number == 0 { String::new() } else { format!("-{number}") };
    target.with_file_name(format!("{stem}.run{number}.ipynb"))
}
