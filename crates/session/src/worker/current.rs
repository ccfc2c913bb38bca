//! The call that runs, and its report in the making.

use std::sync::Arc;

use cellwright_cell::OutputChange;
use cellwright_kernel::environment::EnvVars;
use cellwright_kernel::{Comms, Stdin};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{QueuedCall, Worker};
use crate::call::{CallEvent, CollectMode, Turns};
use crate::collect::{CollectedOutput, Collector};
use crate::error::SessionError;
use crate::jobs::JobId;
use crate::notice::Notice;
use crate::registry::ClientId;
use crate::report::{CallReport, CellReport, CellStatus, KernelAfter, KernelReport, KernelUse, NotRun};
use crate::settings::{ImageCount, OutputSettings};

/// The call that runs.
pub(super) struct CurrentCall {
    pub(super) job: JobId,
    pub(super) client: ClientId,
    pub(super) stdin: Stdin,
    pub(super) comms: Comms,
    pub(super) variables: Option<EnvVars>,
    pub(super) turns: Turns,
    pub(super) collect: CollectMode,
    pub(super) stop: CancellationToken,
    pub(super) events: mpsc::Sender<CallEvent>,
    pub(super) began: Instant,
    /// It has a kernel of its own.
    pub(super) alone: bool,
    pub(super) usage: KernelUse,
    pub(super) error: Option<SessionError>,
    pub(super) notices: Vec<Notice>,
    late: Option<Arc<CollectedOutput>>,
    cells: Vec<Arc<CellReport>>,
    running: Option<RunningCell>,
}

/// The cell that runs.
struct RunningCell {
    index: usize,
    /// None in calls whose reader keeps the outputs.
    collector: Option<Collector>,
    began: Instant,
    /// How it ended, for callers that interrupted it.
    ending: watch::Sender<Option<CellStatus>>,
}

impl CurrentCall {
    pub(super) fn new(queued: &QueuedCall) -> Self {
        let cells = queued.cells.iter().enumerate().map(|(index, cell)| {
            Arc::new(CellReport {
                index,
                title: cell.source.title.clone(),
                status: CellStatus::Waiting,
                duration: std::time::Duration::ZERO,
                execution_count: None,
                output: CollectedOutput::empty(),
                may_raise: cell.may_raise,
            })
        });
        Self {
            job: queued.job,
            client: queued.client,
            stdin: queued.stdin,
            comms: queued.comms,
            variables: queued.variables.clone(),
            turns: queued.turns,
            collect: queued.collect,
            stop: queued.stop.clone(),
            events: queued.events.clone(),
            began: queued.began,
            alone: queued.ticket.is_none(),
            usage: KernelUse::None,
            error: None,
            notices: Vec::new(),
            late: None,
            cells: cells.collect(),
            running: None,
        }
    }

    /// How the cell that runs will end.
    pub(super) fn cell_ending(&self) -> Option<watch::Receiver<Option<CellStatus>>> {
        Some(self.running.as_ref()?.ending.subscribe())
    }

    pub(super) fn begin(&mut self, index: usize, settings: &OutputSettings) {
        let collector = match self.collect {
            CollectMode::Outputs => {
                // Images of one call are counted on from cell to cell.
                let images_before = self.cells.iter().map(|cell| cell.output.image_count).sum();
                let images = ImageCount::After(images_before);
                Some(Collector::new(&OutputSettings { images, ..settings.clone() }))
            }
            CollectMode::Nothing => None,
        };
        self.running =
            Some(RunningCell { index, collector, began: Instant::now(), ending: watch::Sender::new(None) });
    }

    /// Takes what the cell that runs shows.
    pub(super) fn apply(&mut self, change: &OutputChange) {
        if let Some(collector) = &mut self.running.as_mut().expect("a cell runs").collector {
            collector.apply(change);
        }
    }

    /// Ends the cell that runs.
    pub(super) fn end_cell(&mut self, status: CellStatus, execution_count: Option<u64>) -> Arc<CellReport> {
        let RunningCell { index, collector, began, ending } = self.running.take().expect("a cell runs");
        ending.send_replace(Some(status.clone()));
        let report = Arc::new(CellReport {
            index,
            title: self.cells[index].title.clone(),
            status,
            duration: began.elapsed(),
            execution_count,
            output: collector.map_or_else(CollectedOutput::empty, Collector::finish),
            may_raise: self.cells[index].may_raise,
        });
        self.cells[index] = Arc::clone(&report);
        report
    }

    /// The cell is not run, and the call goes on.
    pub(super) fn withdraw(&mut self, index: usize) {
        Arc::make_mut(&mut self.cells[index]).status = CellStatus::NotRun(NotRun::Withdrawn);
    }

    /// The cells from `index` on are not run.
    pub(super) fn skip_from(&mut self, index: usize, why: NotRun) {
        self.running = None;
        for cell in &mut self.cells[index..] {
            Arc::make_mut(cell).status = CellStatus::NotRun(why);
        }
    }

    /// What the session's earlier cells showed, all that there will be in this report.
    pub(super) fn take_late(&mut self, late: CollectedOutput) {
        self.late = Some(Arc::new(late));
    }
}

impl Worker {
    /// The result of a call so far.
    pub(super) fn report(&mut self, current: &mut CurrentCall) -> CallReport {
        let mut cells = current.cells.clone();
        if let Some(running) = &mut current.running {
            let cell = Arc::make_mut(&mut cells[running.index]);
            cell.status = CellStatus::Running;
            cell.duration = running.began.elapsed();
            if let Some(collector) = &mut running.collector {
                cell.output = collector.snapshot();
            }
        }
        let is_alive = self.live.as_ref().is_some_and(|live| live.kernel.exit().is_none());
        CallReport {
            key: self.key.clone(),
            cells,
            late: current.late.clone(),
            kernel: KernelReport {
                about: self.live.as_ref().map(|live| live.about.clone()),
                usage: current.usage.clone(),
                after: match (is_alive, current.alone) {
                    (true, _) => KernelAfter::Alive,
                    (false, false) => KernelAfter::Gone,
                    (false, true) => KernelAfter::Ended,
                },
                memory: self.measured.map(|(_, bytes)| bytes),
            },
            notices: current.notices.clone(),
            error: current.error.clone(),
            duration: current.began.elapsed(),
        }
    }
}
