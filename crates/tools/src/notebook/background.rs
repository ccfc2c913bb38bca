//! Notebooks that run in the background. Such a run is over when its outputs are in the file, not when its last cell is.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use cellwright_run::{FinishedRun, PlannedCell, RunProgress};
use cellwright_session::{CallReport, JobId, JobState, duration_words};
use futures_util::FutureExt as _;
use tokio::sync::watch;

use super::run::{ActiveRun, reply};
use crate::eval::goes_on;
use crate::handle::BackgroundHandle;
use crate::kernel::{not_repeated, waits};
use crate::reply::{ToolFailure, ToolReply};
use crate::report::{self, CallStage, CellNaming};
use crate::toolbox::{CallContext, ToolboxState};
use crate::workspace::ResolvedPath;

/// How many finished runs are kept. Sessions keep as many of their calls.
const MOST: usize = 64;

/// Runs that go on in the background, and some that did; the oldest first.
#[derive(Debug, Default)]
pub(crate) struct BackgroundRuns(VecDeque<BackgroundRun>);

#[derive(Debug, Clone)]
pub(crate) struct BackgroundRun {
    job: JobId,
    place: ResolvedPath,
    cells: Vec<PlannedCell>,
    /// What its cells have shown, until it is over.
    progress: RunProgress,
    /// Its result, once that is in the file.
    finished: watch::Receiver<Option<Arc<FinishedRun>>>,
}

impl BackgroundRuns {
    pub(crate) fn named(&self, job: JobId) -> Option<BackgroundRun> {
        self.0.iter().find(|run| run.job == job).cloned()
    }

    fn add(&mut self, run: BackgroundRun) {
        self.0.push_back(run);
        while self.0.len() > MOST
            && let Some(over) = self.0.iter().position(|run| run.finished.borrow().is_some())
        {
            self.0.remove(over);
        }
    }
}

impl BackgroundRun {
    /// Lets a run go on in the background.
    pub(super) fn start(shared: &Arc<ToolboxState>, place: &ResolvedPath, mut active: ActiveRun) -> Self {
        let (job, cells) = (active.0.release(), active.0.cells().to_vec());
        let progress = active.0.progress();
        let (sender, finished) = watch::channel(None);
        let to = Arc::clone(shared);
        // Ends with the run, which ends with its session.
        drop(tokio::spawn(
            async move {
                let finished = active.finish(&to).await;
                sender.send_replace(Some(Arc::new(finished)));
            }
            .boxed(),
        ));
        let run = Self { job, place: place.clone(), cells, progress, finished };
        shared.background_runs().add(run.clone());
        run
    }

    /// The reply to the call that started it.
    pub(super) async fn started(
        self,
        shared: &Arc<ToolboxState>,
        context: &CallContext,
    ) -> Result<ToolReply, ToolFailure> {
        match context.client.sessions().await?.job(self.job).await? {
            JobState::Running(report) => {
                let (report, naming) = (self.progress.fill(&report), CellNaming::Notebook(&self.cells));
                Ok(goes_on(shared, context, self.job, &report, &naming, "continues in the background"))
            }
            JobState::Waiting { report, place } => {
                let (naming, how) = (CellNaming::Notebook(&self.cells), waits(place));
                Ok(goes_on(shared, context, self.job, &report, &naming, &how))
            }
            // A short one: then its outputs are about to be there.
            JobState::Finished(_) => self.wait(shared, context, Some(Duration::from_secs(30))).await,
        }
    }

    /// Waits for its end, at most so long, and reports what is new. Without a time, reports all there is.
    pub(crate) async fn wait(
        mut self,
        shared: &Arc<ToolboxState>,
        context: &CallContext,
        wait: Option<Duration>,
    ) -> Result<ToolReply, ToolFailure> {
        let handle = BackgroundHandle::Cells(self.job);
        let is_over = tokio::select! {
            // An error means that it ended without a result: then the session knows more.
            over = tokio::time::timeout(wait.unwrap_or_default(), self.finished.wait_for(Option::is_some)) => {
                over.is_ok_and(|over| over.is_ok())
            }
            () = context.stop.cancelled() => {
                return Err(ToolFailure::new(format!("no longer waiting; {handle} continues")));
            }
        };
        let naming = CellNaming::Notebook(&self.cells);
        // Also asked after the end: then the session knows that the end was collected.
        let state = context.client.sessions().await?.wait(self.job, Duration::ZERO).await?;
        let finished = if is_over { self.finished.borrow().clone() } else { None };
        let job = wait.map(|_| self.job);
        if let Some(finished) = finished {
            let reply = reply(shared, context, &self.place, &finished, job);
            context.client.shown.forget(self.job);
            return Ok(reply);
        }
        let (report, note) = match state {
            JobState::Waiting { report, place } => {
                let note = format!("[{handle} {}, for {}]", waits(place), duration_words(report.duration));
                (report, note)
            }
            JobState::Running(report) => {
                let note = format!("[{handle} is still running, for {}]", duration_words(report.duration));
                (report, note)
            }
            JobState::Finished(report) => {
                let note = format!("[the cells of {handle} are over; their outputs are still being saved]");
                (report, note)
            }
        };
        let report = self.progress.fill(&report);
        let (mut reply, has_earlier) = new_reply(shared, context, job, &report, CallStage::Running, &naming);
        if has_earlier {
            reply.note(not_repeated(handle));
        }
        reply.note(note);
        Ok(reply)
    }
}

/// The reply for a report; of a job, only what is new. Also whether something was left out.
pub(super) fn new_reply(
    shared: &ToolboxState,
    context: &CallContext,
    job: Option<JobId>,
    report: &CallReport,
    stage: CallStage,
    naming: &CellNaming<'_>,
) -> (ToolReply, bool) {
    let news = job.map(|job| context.client.shown.news(job, report, &shared.settings.artifacts));
    let shown = news.as_ref().map_or(report, |news| &news.report);
    let reply = report::reply(&shared.settings, context, shown, stage, naming);
    (reply, news.is_some_and(|news| news.has_earlier))
}
