//! Keeping a run's results in the file, on a thread of its own.
//!
//! A run hands results over at most once a second while it goes on (see `unsaved`), and what comes while a save is under way
//! is saved together, by the next one. Every save is synced before it is renamed over the file. A cell waits for a save that is
//! under way (see [`ResultKeeper::settled`]), never for one that is to come: so whatever ends us, a kill costs at most the
//! results of the last second.
//!
//! Others may change the file meanwhile. What they made of it is taken over, and an output is put only under a cell that says what was run.
//! When that is not possible the file is left to them, and the run is kept in a copy beside it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use cellwright_cell::MimeBundle;
use cellwright_editing::RunHistory;
use cellwright_notebook::file::{self, FileError, FileSince, SaveMethod, TrackedFile};
use cellwright_notebook::recording::Results;
use cellwright_notebook::{Action, CellKind, CellRef, NewCell, Notebook, OutputsAfterEdit};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::displays::EarlierDisplay;
use crate::meanwhile::{FileWatch, FoundCell};
use crate::note::RunNote;
use crate::plan::PlannedCell;
use crate::replaced::ReplacedOutputs;

/// What is sent to the thread. Cells are numbered by their place in the run.
pub(crate) enum KeeperNews {
    /// A cell was edited before its turn: this is what runs.
    Edited { cell: usize, source: String },
    /// Results to be saved.
    Results {
        results: Vec<(usize, Results)>,
        /// The cells whose results are final, unless a display in them is updated.
        finished: Vec<usize>,
        /// What displays of earlier runs, by their place among those, show now.
        updates: BTreeMap<usize, Arc<MimeBundle>>,
    },
    /// Answered once what came before was saved, or could not be.
    Settle(oneshot::Sender<()>),
}

/// What a thread that saves needs to know of a run.
pub(crate) struct KeeperPlan {
    pub(crate) file: TrackedFile,
    pub(crate) cells: Vec<PlannedCell>,
    pub(crate) earlier: Vec<EarlierDisplay>,
    pub(crate) history: RunHistory,
    pub(crate) notes: Vec<RunNote>,
}

/// The way to the thread that saves. When it is dropped, what is left is saved.
pub(crate) struct ResultKeeper {
    /// Nothing once all has been taken.
    news: Option<Sender<KeeperNews>>,
    saved: UnboundedReceiver<SaveReport>,
    thread: JoinHandle<KeptResults>,
}

/// What became of a save.
pub(crate) enum SaveReport {
    /// What these cells left is in the file.
    Saved(Vec<usize>),
    /// It failed for this reason, and is tried again with the next results.
    Failed(String),
}

/// What became of a run's results.
#[derive(Debug)]
pub struct KeptResults {
    /// The file they are in.
    pub path: PathBuf,
    /// How often others' changes were merged in.
    pub merged: usize,
    /// Where they are instead, once the file could not take them any more.
    pub side: Option<SideFile>,
    /// Why the last of them are nowhere.
    pub failed: Option<FileError>,
    /// Whether the file was written in place, because it cannot be replaced by a rename.
    pub in_place: bool,
    /// What the run replaced that the caller should know of.
    pub notes: Vec<RunNote>,
}

/// A copy of the notebook with the results that the notebook itself could not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideFile {
    /// Where.
    pub path: PathBuf,
    /// What others did to the notebook.
    pub why: String,
}

impl ResultKeeper {
    /// Saves into the file of a plan, from now on.
    pub(crate) fn start(plan: KeeperPlan, watch: FileWatch) -> Self {
        let (news, incoming) = channel();
        // One message for each save that ended a cell: no more than the run has cells.
        let (sender, saved) = unbounded_channel();
        let thread =
            tokio::task::spawn_blocking(move || KeeperThread::new(plan, watch).run(&incoming, &sender));
        Self { news: Some(news), saved, thread }
    }

    /// Takes results to be saved as soon as possible.
    pub(crate) fn take(&self, news: KeeperNews) {
        if let Some(to_thread) = &self.news {
            drop(to_thread.send(news)); // a thread that is gone has panicked; `finish` reports it
        }
    }

    /// Waits until everything taken so far was saved, or could not be, which is tried again with the next.
    pub(crate) fn settled(&self) -> impl Future<Output = ()> + Send + use<> {
        let (sender, settled) = oneshot::channel();
        self.take(KeeperNews::Settle(sender));
        async { drop(settled.await) } // a thread that is gone has panicked; `finish` reports it
    }

    /// The next cells that were over and are in the file now, or why they are not. Cancel-safe; does not return once all are saved.
    pub(crate) async fn saved(&mut self) -> SaveReport {
        match self.saved.recv().await {
            Some(report) => report,
            None => std::future::pending().await,
        }
    }

    /// Saves what is left, and returns which cells that were over have been saved since [`ResultKeeper::saved`] last returned.
    /// Takes nothing from then on.
    pub(crate) async fn finish(&mut self) -> (KeptResults, Vec<usize>) {
        self.news = None;
        match (&mut self.thread).await {
            Ok(kept) => {
                let reports = std::iter::from_fn(|| self.saved.try_recv().ok());
                let saved = reports.filter_map(|report| match report {
                    SaveReport::Saved(cells) => Some(cells),
                    SaveReport::Failed(_) => None, // what is left of it is in `kept`
                });
                (kept, saved.flatten().collect())
            }
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }
}

struct KeeperThread {
    file: TrackedFile,
    cells: Vec<PlannedCell>,
    watch: FileWatch,
    /// Where the cells are in the file, as far as they were looked for since others last changed it.
    places: BTreeMap<usize, usize>,
    /// All there is, for when the file changes under us.
    results: BTreeMap<usize, Results>,
    earlier: Vec<EarlierDisplay>,
    /// What some of those show now.
    updates: BTreeMap<usize, Arc<MimeBundle>>,
    merged: usize,
    side: Option<SideFile>,
    failed: Option<FileError>,
    in_place: bool,
    replaced: ReplacedOutputs,
    notes: Vec<RunNote>,
}

/// Why results cannot be put into a notebook.
enum UnsavedReason {
    /// Others changed what was run.
    Conflict(String),
    File(FileError),
}

impl From<FileError> for UnsavedReason {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

impl KeeperThread {
    fn new(KeeperPlan { file, cells, earlier, history, notes }: KeeperPlan, watch: FileWatch) -> Self {
        let places = cells.iter().map(|cell| cell.index).enumerate().collect();
        let (results, updates) = (BTreeMap::new(), BTreeMap::new());
        let (merged, side, failed, in_place) = (0, None, None, false);
        let replaced = ReplacedOutputs::new(history, file.notebook().clone());
        Self {
            file,
            cells,
            watch,
            places,
            results,
            earlier,
            updates,
            merged,
            side,
            failed,
            in_place,
            replaced,
            notes,
        }
    }

    fn run(mut self, incoming: &Receiver<KeeperNews>, saved: &UnboundedSender<SaveReport>) -> KeptResults {
        let mut finished = Vec::new();
        while let Ok(first) = incoming.recv() {
            let (mut batch, mut waiting, mut is_updated) = (BTreeMap::new(), Vec::new(), false);
            for next in std::iter::once(first).chain(incoming.try_iter()) {
                match next {
                    KeeperNews::Edited { cell, source } => {
                        self.cells[cell].source = source;
                        self.places.remove(&cell);
                    }
                    KeeperNews::Results { results, finished: ended, updates } => {
                        batch.extend(results);
                        finished.extend(ended);
                        is_updated |= !updates.is_empty();
                        self.updates.extend(updates);
                    }
                    KeeperNews::Settle(sender) => waiting.push(sender),
                }
            }
            if is_updated || !batch.is_empty() || self.failed.is_some() {
                self.save_batch(batch, &mut finished, saved);
            }
            for sender in waiting {
                sender.send(()).ok(); // a run that was dropped does not wait
            }
        }
        if self.failed.take().is_some() {
            let all = self.results.clone();
            match self.save(&all).or_else(|error| self.step_aside(words_for(&error)).map_err(|_| error)) {
                Ok(()) => drop(saved.send(SaveReport::Saved(finished))), // nobody may want to know
                Err(error) => self.failed = Some(error),
            }
        }
        KeptResults {
            path: self.file.target().to_owned(),
            merged: self.merged,
            side: self.side,
            failed: self.failed,
            in_place: self.in_place,
            notes: self.notes,
        }
    }

    fn save_batch(
        &mut self,
        mut batch: BTreeMap<usize, Results>,
        finished: &mut Vec<usize>,
        saved: &UnboundedSender<SaveReport>,
    ) {
        self.results.extend(batch.clone());
        // What could not be saved the last time is tried again with the rest.
        let before = self.failed.take();
        if before.is_some() {
            batch.clone_from(&self.results);
        }
        match self.save(&batch) {
            Ok(()) if finished.is_empty() => {}
            Ok(()) => drop(saved.send(SaveReport::Saved(std::mem::take(finished)))), // nobody may want to know
            // Some programs remove a file and create it again: one miss is no reason to leave it.
            Err(error) if before.is_some() && is_lasting(&error) => {
                match self.step_aside(words_for(&error)) {
                    Ok(()) => drop(saved.send(SaveReport::Saved(std::mem::take(finished)))), // nobody may want to know
                    Err(_) => self.failed = Some(error),
                }
            }
            Err(error) => {
                if before.is_none() {
                    drop(saved.send(SaveReport::Failed(words_for(&error)))); // nobody may want to know
                }
                self.failed = Some(error);
            }
        }
    }

    fn save(&mut self, batch: &BTreeMap<usize, Results>) -> Result<(), FileError> {
        let Self { file, cells, watch, places, results, earlier, updates, merged, replaced, .. } = self;
        let left = file.notebook().clone();
        let saved = file.update(|notebook, since| {
            replaced.withdraw();
            let batch = match since {
                FileSince::Unchanged => batch,
                FileSince::Changed => {
                    replaced.compare(cells, &left, notebook);
                    places.clear();
                    watch.merged(notebook, to_run(cells, results));
                    &*results
                }
            };
            for at in batch.keys() {
                if !places.contains_key(at) {
                    let place = place_of(&cells[*at], notebook, places)?;
                    places.insert(*at, place);
                }
            }
            *merged += usize::from(since == FileSince::Changed);
            replaced.keep(notebook, batch.keys().map(|at| (*at, places[at])));
            let put = put(notebook, places, batch);
            // A display that is gone is no longer ours to change.
            let update = |notebook: Notebook, (display, content): (&usize, &Arc<MimeBundle>)| {
                earlier[*display].updated(&notebook, content).unwrap_or(notebook)
            };
            Ok(updates.iter().fold(put, update))
        });
        match saved {
            Ok(method) => {
                self.notes.extend(replaced.settle(cells));
                self.in_place |= method == SaveMethod::InPlace;
                watch.saved(file.mark());
                Ok(())
            }
            Err(UnsavedReason::File(error)) => {
                replaced.withdraw();
                Err(error)
            }
            Err(UnsavedReason::Conflict(why)) => {
                replaced.withdraw();
                self.step_aside(why)
            }
        }
    }

    /// Leaves the notebook to others, and continues in a copy that holds what was run.
    fn step_aside(&mut self, why: String) -> Result<(), FileError> {
        let mut copy = self.file.notebook().clone();
        let mut places = BTreeMap::new();
        for at in self.results.keys() {
            places.insert(*at, place_made(&mut copy, &self.cells[*at], &places));
        }
        let copy = put(&copy, &places, &self.results);
        let target = self.file.target().to_owned();
        let path = (0..)
            .map(|number| side_path(&target, number))
            .find_map(|path| match file::create(&path, &copy) {
                Ok(true) => Some(Ok(path)),
                Ok(false) => None,
                Err(error) => Some(Err(error)),
            })
            .expect("some number is free")?;
        self.file = TrackedFile::open(&path, self.file.settings())?;
        self.in_place = false;
        self.places = places;
        self.watch.merged(&copy, to_run(&self.cells, &self.results));
        self.watch.saved(self.file.mark());
        self.side = Some(SideFile { path, why });
        Ok(())
    }
}

/// The cells of the run that have left nothing yet.
fn to_run<'a>(
    cells: &'a [PlannedCell],
    results: &BTreeMap<usize, Results>,
) -> impl Iterator<Item = (usize, &'a PlannedCell)> {
    cells.iter().enumerate().filter(|(at, _)| !results.contains_key(at))
}

fn put(notebook: &Notebook, places: &BTreeMap<usize, usize>, results: &BTreeMap<usize, Results>) -> Notebook {
    notebook.with_results(results.iter().map(|(at, results)| (places[at], results)))
}

/// Where a cell that was run is: it must be there, and say what was run.
fn place_of(
    cell: &PlannedCell,
    notebook: &Notebook,
    taken: &BTreeMap<usize, usize>,
) -> Result<usize, UnsavedReason> {
    match FoundCell::of(cell, notebook) {
        FoundCell::Same(place) if !taken.values().any(|other| *other == place) => Ok(place),
        FoundCell::Edited(_) => Err(conflict(cell, "edited")),
        FoundCell::Gone if cell.id.is_none() => Err(conflict(cell, "edited or removed")),
        FoundCell::Same(_) | FoundCell::Gone => Err(conflict(cell, "removed")),
    }
}

fn conflict(cell: &PlannedCell, how: &str) -> UnsavedReason {
    UnsavedReason::Conflict(format!("cell {} was {how} while it ran here", cell.index))
}

/// Where a cell that was run is in a copy of ours, which is made to say what was run. Cells that are gone come back at the end.
fn place_made(copy: &mut Notebook, cell: &PlannedCell, taken: &BTreeMap<usize, usize>) -> usize {
    let actions = match FoundCell::of(cell, copy) {
        FoundCell::Same(place) if !taken.values().any(|other| *other == place) => return place,
        FoundCell::Edited(place) => {
            let it = || CellRef::Index(place);
            let actions = [
                Action::Retype { cells: vec![it()], kind: CellKind::Code },
                Action::Edit { cell: it(), source: cell.source.clone() },
            ];
            (place, actions.to_vec())
        }
        FoundCell::Same(_) | FoundCell::Gone => {
            let cells = vec![NewCell::new(CellKind::Code, cell.source.clone())];
            (copy.len(), vec![Action::Insert { at: None, cells }])
        }
    };
    let (place, actions) = actions;
    for action in actions {
        let edited = copy.act(&action, OutputsAfterEdit::Clear).expect("the cell is there");
        if let Some(changed) = edited.notebook {
            *copy = changed;
        }
    }
    place
}

/// Whether a file that could not be saved to will not be saved to a moment later either, as a full disk may be.
fn is_lasting(error: &FileError) -> bool {
    match error {
        FileError::Missing { .. } | FileError::NotAFile { .. } | FileError::Parse { .. } => true,
        FileError::Changed { .. } | FileError::SaveInProgress { .. } => false,
        FileError::Io { source, .. } => {
            matches!(source.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory)
        }
    }
}

/// Why we left the notebook, when it was not for a cell.
fn words_for(error: &FileError) -> String {
    match error {
        FileError::Missing { .. } => "the notebook was moved or removed while it ran here".to_owned(),
        FileError::NotAFile { .. } | FileError::Parse { .. } => {
            "the file became something else than a notebook while it ran here".to_owned()
        }
        FileError::Changed { .. } => "others wrote the notebook all the time".to_owned(),
        FileError::SaveInProgress { .. } => "Jupyter was stopped while it saved the notebook".to_owned(),
        FileError::Io { source, .. } => format!("the notebook could not be written ({source})"),
    }
}

/// `analysis.run.ipynb`, `analysis.run-1.ipynb`, …
fn side_path(target: &Path, number: usize) -> PathBuf {
    let stem = target.file_stem().unwrap_or_default().to_string_lossy();
    let number = if number == 0 { String::new() } else { format!("-{number}") };
    target.with_file_name(format!("{stem}.run{number}.ipynb"))
}
