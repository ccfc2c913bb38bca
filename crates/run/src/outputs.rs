//! What the cells of a run have shown so far: recorded once, for the notebook and for the report.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use cellwright_cell::MimeBundle;
use cellwright_notebook::recording::Recording;
use cellwright_output::{ArtifactKind, Artifacts};
use cellwright_session::{CallReport, OutputSettings, ReportOutputs};

/// The recording of a run. The task that runs it writes; readers of its progress look in.
#[derive(Debug)]
pub(crate) struct RunRecording(Arc<Mutex<Recording<ReportOutputs>>>);

/// What a run has shown so far, for a reader beside it. It does not keep the recording alive.
#[derive(Debug, Clone)]
pub struct RunProgress(Weak<Mutex<Recording<ReportOutputs>>>);

impl RunRecording {
    pub(crate) fn new(limit: usize, report: OutputSettings) -> Self {
        let artifacts = report.artifacts.clone();
        let mut recording = Recording::with_report(limit, report);
        if let Some(artifacts) = artifacts {
            recording = recording.with_store(Box::new(move |content| stored(&artifacts, content)));
        }
        Self(Arc::new(Mutex::new(recording)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Recording<ReportOutputs>> {
        lock(&self.0)
    }

    pub(crate) fn progress(&self) -> RunProgress {
        RunProgress(Arc::downgrade(&self.0))
    }

    /// Where all that the cell printed can be read, if the notebook does not keep it all.
    pub(crate) fn note_full_text(&self, cell: usize) {
        let mut recording = self.lock();
        if !recording.is_full(cell) {
            return;
        }
        let (settings, report) = recording.report(cell);
        let truncation = report.snapshot(settings).text.truncation;
        if let Some(artifact) = truncation.as_ref().and_then(|truncation| truncation.full.artifact()) {
            recording.kept_whole(cell, &artifact.to_string());
        }
    }
}

impl RunProgress {
    /// The report of the run's call, which collects no outputs, with those of its cells. Writes to the artifacts when much
    /// is shown.
    #[must_use]
    pub fn fill(&self, report: &CallReport) -> CallReport {
        let mut report = report.clone();
        if let Some(recording) = self.0.upgrade() {
            let mut recording = lock(&recording);
            for (cell, report) in report.cells.iter_mut().enumerate() {
                let (settings, outputs) = recording.report(cell);
                Arc::make_mut(report).output = outputs.snapshot(settings);
            }
        }
        report
    }
}

/// Each change to a recording is complete, so a panic elsewhere does not spoil it.
fn lock(recording: &Mutex<Recording<ReportOutputs>>) -> MutexGuard<'_, Recording<ReportOutputs>> {
    recording.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps what the notebook has no room for.
fn stored(artifacts: &Artifacts, content: &MimeBundle) -> Option<String> {
    // What cannot be stored is reported as not kept.
    let id = artifacts.save(ArtifactKind::Json, &serde_json::to_vec(content).ok()?).ok()?;
    Some(id.to_string())
}
