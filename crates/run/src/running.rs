//! A notebook that runs.

use std::mem::take;
use std::sync::Arc;
use std::time::SystemTime;

use cellwright_cell::{Exception, MimeBundle, Output, OutputChange, timestamp};
use cellwright_editing::RunEntry;
use cellwright_kernel::Fate;
use cellwright_notebook::recording::CellTiming;
use cellwright_session::{
    CallEvent, CallHandle, CallReport, CallUpdate, CellReport, CellStatus, ImageCount, JobId, KernelFate,
    OutputSettings, Turn, TurnRequest,
};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;

use crate::displays::{EarlierDisplay, OtherDisplays};
use crate::keeper::{KeeperNews, KeeperPlan, KeptResults, ResultKeeper, SaveReport};
use crate::meanwhile::{FileWatch, MeanwhileChange};
use crate::outputs::{RunProgress, RunRecording};
use crate::plan::{PlannedCell, RunPlan};
use crate::unsaved::{SavedBatch, UnsavedResults};

/// A notebook that runs. Read it to its end: what is not read is not recorded. Dropping it stops the run; what was recorded is saved.
pub struct NotebookRun {
    running: CallHandle,
    cells: Vec<PlannedCell>,
    recording: RunRecording,
    keeper: ResultKeeper,
    /// What is stored of the outputs that it replaces.
    entry: RunEntry,
    watch: FileWatch,
    /// The cell whose turn has come, while it is looked at.
    turn: Option<ComingUpdate>,
    /// What others did to cells before their turn, by their place in the run.
    changes: Vec<(usize, MeanwhileChange)>,
    timing: bool,
    /// The cell that began last: what threads print after their cell's end is put there.
    latest: Option<usize>,
    /// Displays of earlier runs.
    earlier: Vec<EarlierDisplay>,
    elsewhere: OtherDisplays,
    unsaved: UnsavedResults,
}

struct ComingUpdate {
    cell: usize,
    request: TurnRequest,
    change: JoinHandle<Option<MeanwhileChange>>,
}

/// What comes next of a run.
#[derive(Debug)]
pub enum RunUpdate {
    /// Something happened, and is recorded.
    Event(CallEvent),
    /// Others changed a cell before its turn.
    Changed {
        /// Its place in the run.
        cell: usize,
        /// What they did.
        change: MeanwhileChange,
    },
    /// These cells are over, and what they left is in the file.
    Saved(Vec<usize>),
    /// Outputs could not be saved, for this reason. They are kept, and tried again with the next.
    NotSaved(String),
    /// All cells are over; [`NotebookRun::finish`] has the rest.
    Finished,
}

/// The result of a run.
#[derive(Debug)]
pub struct FinishedRun {
    /// The cells, with what they said when their turn came.
    pub cells: Vec<PlannedCell>,
    /// What others did to some of them before that, by their place in the run.
    pub changes: Vec<(usize, MeanwhileChange)>,
    /// What became of the cells, and what they showed.
    pub report: CallReport,
    /// What became of their outputs.
    pub kept: KeptResults,
    /// The displays that later runs may update.
    pub displays: Vec<EarlierDisplay>,
    /// What was updated outside the cells that ran.
    pub elsewhere: OtherDisplays,
    /// The cells that [`RunUpdate::Saved`] has not reported.
    pub saved: Vec<usize>,
}

impl FinishedRun {
    /// Whether no cell has begun, so that the notebook has what it had.
    pub fn has_run_nothing(&self) -> bool {
        let has_run = |cell: &CellReport| !matches!(cell.status, CellStatus::NotRun(_) | CellStatus::Waiting);
        !self.report.cells.iter().any(|cell| has_run(cell))
    }
}

impl NotebookRun {
    pub(crate) fn new(running: CallHandle, plan: RunPlan) -> Self {
        let watch = FileWatch::new(plan.file.mark());
        let indices = plan.cells.iter().map(|cell| cell.index).collect();
        let report = OutputSettings { images: ImageCount::OfCells(indices), ..plan.report };
        let recording = RunRecording::new(plan.limit, report);
        let (cells, earlier) = (plan.cells.clone(), plan.earlier.clone());
        let (file, history, notes) = (plan.file, plan.history, plan.notes);
        let kept = KeeperPlan { file, cells, earlier, history, notes };
        Self {
            running,
            recording,
            keeper: ResultKeeper::start(kept, watch.clone()),
            entry: plan.entry,
            earlier: plan.earlier,
            elsewhere: OtherDisplays::default(),
            watch,
            turn: None,
            changes: Vec::new(),
            cells: plan.cells,
            timing: plan.timing,
            latest: None,
            unsaved: UnsavedResults::default(),
        }
    }

    /// Its cells, with what they said when their turn came; `cell` of an event is an index into them.
    pub fn cells(&self) -> &[PlannedCell] {
        &self.cells
    }

    /// What its cells have shown, while it runs.
    pub fn progress(&self) -> RunProgress {
        self.recording.progress()
    }

    /// Lets it go on in the background, under a name to follow it by. Go on reading, for the outputs' sake. Not for sessions in a
    /// daemon, which would say nothing more.
    pub fn release(&mut self) -> JobId {
        self.running.release()
    }

    /// What comes next. Cancel-safe.
    pub fn next_event(&mut self) -> BoxFuture<'_, RunUpdate> {
        Box::pin(async move {
            loop {
                let next = tokio::select! {
                    // A cell that prints without end must not delay its outputs' way to the file.
                    biased;
                    report = self.keeper.saved() => return match report {
                        SaveReport::Saved(cells) => RunUpdate::Saved(cells),
                        SaveReport::Failed(why) => RunUpdate::NotSaved(why),
                    },
                    () = until(self.unsaved.due()) => {
                        self.save();
                        continue;
                    }
                    change = looked_at(self.turn.as_mut()) => match self.take_turn(change) {
                        Some((cell, change)) => return RunUpdate::Changed { cell, change },
                        None => continue,
                    },
                    next = self.running.next() => next,
                };
                match next {
                    CallUpdate::Event(CallEvent::Turn { cell, request }) => self.look_at(cell, request),
                    CallUpdate::Event(event) => {
                        self.record(&event);
                        return RunUpdate::Event(event);
                    }
                    CallUpdate::Finished(_) => return RunUpdate::Finished,
                }
            }
        })
    }

    /// Begins to stop it. Go on reading.
    pub fn stop(&self) {
        self.running.stop();
    }

    /// Passes over what is left, and saves it: what it returns is in the file.
    pub fn finish(mut self) -> BoxFuture<'static, FinishedRun> {
        Box::pin(async move {
            let mut saved = Vec::new();
            loop {
                match self.next_event().await {
                    RunUpdate::Event(_) | RunUpdate::Changed { .. } | RunUpdate::NotSaved(_) => {}
                    RunUpdate::Saved(cells) => saved.extend(cells),
                    RunUpdate::Finished => break,
                }
            }
            let CallUpdate::Finished(report) = self.running.next().await else {
                unreachable!("a call that is over says nothing more")
            };
            self.save();
            let displays = self.displays();
            let report = self.progress().fill(&report);
            let (kept, rest) = self.keeper.finish().await;
            saved.extend(rest);
            let finished = FinishedRun {
                cells: take(&mut self.cells),
                changes: take(&mut self.changes),
                elsewhere: take(&mut self.elsewhere),
                report,
                kept,
                displays,
                saved,
            };
            if finished.has_run_nothing() {
                take(&mut self.entry).withdraw();
            }
            finished
        })
    }

    fn displays(&self) -> Vec<EarlierDisplay> {
        let recording = self.recording.lock();
        let displays = recording.displays().filter_map(|(display_id, cell, output)| {
            let count = recording.results(cell).execution_count?;
            let (display_id, cell) = (display_id.to_owned(), self.cells[cell].clone());
            Some(EarlierDisplay { display_id, cell, count, output })
        });
        displays.collect()
    }

    /// Begins to look what a cell says, now that its turn has come: when what the cells before it left is in the file.
    fn look_at(&mut self, cell: usize, request: TurnRequest) {
        let (watch, planned, settled) = (self.watch.clone(), self.cells[cell].clone(), self.keeper.settled());
        let change = tokio::spawn(
            async move {
                settled.await;
                tokio::task::spawn_blocking(move || watch.change(cell, &planned)).await.unwrap_or_else(go_on)
            }
            .boxed(),
        );
        self.turn = Some(ComingUpdate { cell, request, change });
    }

    /// Lets the cell run as it is now; returns what others did to it.
    fn take_turn(&mut self, change: Option<MeanwhileChange>) -> Option<(usize, MeanwhileChange)> {
        let ComingUpdate { cell, request, .. } = self.turn.take()?;
        request.answer(match &change {
            None => Turn::AsCalled,
            Some(MeanwhileChange::Edited(source)) => {
                self.cells[cell].source.clone_from(source);
                self.keeper.take(KeeperNews::Edited { cell, source: source.clone() });
                Turn::Instead(source.clone())
            }
            Some(MeanwhileChange::Removed) => Turn::Withdrawn,
        });
        let changed = (cell, change?);
        self.changes.push(changed.clone());
        Some(changed)
    }

    fn record(&mut self, event: &CallEvent) {
        match event {
            CallEvent::CellStarted { cell } => {
                let started = self.timing.then(|| timestamp(SystemTime::now()));
                self.recording
                    .lock()
                    .begin(*cell, started.map(|started| CellTiming { started, ended: None }));
                self.latest = Some(*cell);
                self.unsaved.later(*cell);
            }
            CallEvent::Output { cell, change } => {
                self.apply(*cell, change);
                self.unsaved.later(*cell);
            }
            CallEvent::Late(change) => {
                if let Some(cell) = self.latest {
                    self.apply(cell, change);
                    self.unsaved.later(cell);
                }
            }
            CallEvent::CellFinished(report) => self.end(report),
            CallEvent::Queued { .. }
            | CallEvent::Turn { .. }
            | CallEvent::KernelStarted(_)
            | CallEvent::LateBefore(_)
            | CallEvent::Comm { .. }
            | CallEvent::Input { .. }
            | CallEvent::Stopping { .. }
            | CallEvent::Notice(_) => {}
        }
    }

    fn apply(&mut self, cell: usize, change: &OutputChange) {
        let mut updated = self.recording.lock().reducer().apply(cell, change);
        match change {
            OutputChange::Updated { display_id, content } => {
                let is_shown = self.update_earlier(display_id, content) || !updated.is_empty();
                if !is_shown {
                    self.elsewhere.update(display_id, None, content);
                }
            }
            OutputChange::Added(Output::Display { content, display_id: Some(display_id) }) => {
                self.update_earlier(display_id, content);
            }
            OutputChange::Added(_) | OutputChange::Cleared { .. } => {}
        }
        updated.retain(|other| *other != cell);
        for other in updated {
            self.unsaved.later(other);
        }
    }

    /// Updates the display where earlier runs have shown it; says whether one has.
    fn update_earlier(&mut self, display_id: &str, content: &Arc<MimeBundle>) -> bool {
        let mut is_shown = false;
        for (display, earlier) in self.earlier.iter().enumerate() {
            if earlier.display_id == display_id {
                let fitting = self.recording.lock().fitting(content);
                self.unsaved.update_later(display, fitting);
                is_shown = true;
                let index = earlier.cell.index;
                if self.cells.iter().all(|cell| cell.index != index) {
                    self.elsewhere.update(display_id, Some(index), content);
                }
            }
        }
        is_shown
    }

    /// The cell is over. Its results are saved soon, and at once if something went wrong.
    fn end(&mut self, report: &CellReport) {
        let cell = report.index;
        self.recording.note_full_text(cell);
        if let Some(raised) = unreported(&report.status) {
            self.recording.lock().error(cell, raised);
        }
        self.recording.lock().end(cell, report.execution_count, || timestamp(SystemTime::now()));
        self.unsaved.finished(cell);
        if !report.succeeded() && !matches!(report.status, CellStatus::NotRun(_)) {
            self.save();
        }
    }

    /// Hands over what was not saved yet.
    fn save(&mut self) {
        if let Some(SavedBatch { cells, finished, updates }) = self.unsaved.take() {
            let recording = self.recording.lock();
            let results = cells.into_iter().map(|cell| (cell, recording.results(cell))).collect();
            drop(recording);
            self.keeper.take(KeeperNews::Results { results, finished, updates });
        }
    }
}

impl Drop for NotebookRun {
    /// What was recorded is saved, also of a run that is stopped.
    fn drop(&mut self) {
        self.save();
    }
}

/// What others did to the cell whose turn has come. Cancel-safe.
async fn looked_at(coming: Option<&mut ComingUpdate>) -> Option<MeanwhileChange> {
    match coming {
        Some(coming) => match (&mut coming.change).await {
            Ok(change) => change,
            Err(panicked) => go_on(panicked),
        },
        None => std::future::pending().await,
    }
}

/// A bug of ours in a task is one here.
fn go_on(panicked: JoinError) -> Option<MeanwhileChange> {
    std::panic::resume_unwind(panicked.into_panic())
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// What ended a cell without leaving an exception in its outputs.
fn unreported(status: &CellStatus) -> Option<Exception> {
    match status {
        CellStatus::Died(_)
        | CellStatus::Stopped {
            kernel: Fate::Ended | Fate::Killed | Fate::Left | Fate::OutOfReach, ..
        } => {
            let message = format!("the cell {}", status.ending(KernelFate::Stays));
            Some(Exception { name: "DeadKernelError".to_owned(), message, ..Exception::default() })
        }
        // In the notebook it would look like a cell that went well.
        CellStatus::Unknown => {
            let message = format!("the cell {}", status.ending(KernelFate::Stays));
            Some(Exception { name: "UnknownOutcomeError".to_owned(), message, ..Exception::default() })
        }
        CellStatus::Stopped { kernel: Fate::Survived, .. }
        | CellStatus::Waiting
        | CellStatus::Running
        | CellStatus::Ok
        | CellStatus::Error(_)
        | CellStatus::NotRun(_) => None,
    }
}
