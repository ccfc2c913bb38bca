//! Calls that go on in the background.

use std::collections::VecDeque;
use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::identity::SessionKey;
use crate::report::CallReport;
use crate::worker::Control;

/// Names a call that continues in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct JobId(pub(crate) u64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for JobId {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

/// How far a background call has come.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum JobState {
    /// Its turn has not come.
    Waiting {
        /// Its cells, none of which has run.
        report: Arc<CallReport>,
        /// What comes first.
        place: QueuePlace,
    },
    /// It is still running. This is its result so far.
    Running(Arc<CallReport>),
    /// It is over.
    Finished(Arc<CallReport>),
}

/// What comes before a call in its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuePlace {
    /// How many calls, with the one that runs.
    pub before: usize,
    /// The one that runs, or is next to, if it is in the background, too.
    pub running: Option<JobId>,
}

/// A background call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobInfo {
    /// Its name.
    pub id: JobId,
    /// Where it runs.
    pub key: SessionKey,
    /// What its first cell is called, or how that begins.
    pub title: String,
    /// How long it has been running, or ran.
    pub duration: std::time::Duration,
    /// Whether it is over, and whether all went well.
    pub finished: Option<bool>,
    /// Its turn has not come.
    pub is_waiting: bool,
}

/// A background call as it is kept.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) id: JobId,
    pub(crate) key: SessionKey,
    pub(crate) title: String,
    pub(crate) began: Instant,
    pub(crate) report: watch::Receiver<Option<Arc<CallReport>>>,
    pub(crate) stop: CancellationToken,
    pub(crate) control: mpsc::Sender<Control>,
    /// Its turn has come.
    pub(crate) has_begun: Arc<AtomicBool>,
    pub(crate) state: KeptReason,
}

/// Why a call is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeptReason {
    /// Someone follows it; it goes when they leave.
    Followed,
    /// It continues in the background.
    Background,
    /// As before, and its report has been handed to someone.
    Collected,
}

/// Most bytes of reports that nobody has collected.
const ROOM: usize = 64 << 20;

/// Calls that are followed or go on in the background, and the reports of a bounded number of the latter.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    kept: VecDeque<Job>,
}

impl Jobs {
    pub(crate) fn follow(&mut self, job: Job) {
        self.kept.push_back(job);
    }

    /// A call continues in the background.
    pub(crate) fn detach(&mut self, id: JobId, limit: usize) {
        if let Some(job) = self.named(id) {
            job.state = KeptReason::Background;
        }
        // Reports that someone has seen go first, then the oldest; a call that runs is always kept.
        let over = |job: &Job| job.state != KeptReason::Followed && job.is_finished();
        let too_many = |kept: &VecDeque<Job>| {
            let (count, bytes) = kept.iter().filter(|job| over(job)).fold((0, 0), |(count, bytes), job| {
                (count + 1, bytes + job.report.borrow().as_ref().map_or(0, |report| report.weight()))
            });
            count > limit || (count > 1 && bytes > ROOM)
        };
        while too_many(&self.kept) {
            let goes = self.kept.iter().position(|job| job.state == KeptReason::Collected);
            let goes = goes.or_else(|| self.kept.iter().position(over));
            self.kept.remove(goes.expect("there are more than the limit"));
        }
    }

    pub(crate) fn named(&mut self, id: JobId) -> Option<&mut Job> {
        self.kept.iter_mut().find(|job| job.id == id)
    }

    pub(crate) fn is_in_background(&mut self, id: JobId) -> bool {
        self.named(id).is_some_and(|job| job.state != KeptReason::Followed)
    }

    /// The background calls, the oldest first.
    pub(crate) fn list(&self) -> Vec<JobInfo> {
        self.kept.iter().filter(|job| job.state != KeptReason::Followed).map(Job::info).collect()
    }

    pub(crate) fn forget(&mut self, id: JobId) {
        self.kept.retain(|job| job.id != id);
    }

    pub(crate) fn any_running(&self) -> bool {
        self.kept.iter().any(|job| !job.is_finished())
    }
}

impl Job {
    pub(crate) fn is_finished(&self) -> bool {
        self.report.borrow().is_some()
    }

    fn info(&self) -> JobInfo {
        let report = self.report.borrow();
        JobInfo {
            id: self.id,
            key: self.key.clone(),
            title: self.title.clone(),
            duration: report.as_ref().map_or_else(|| self.began.elapsed(), |report| report.duration),
            finished: report.as_ref().map(|report| report.succeeded()),
            is_waiting: report.is_none() && !self.has_begun.load(Ordering::Relaxed),
        }
    }
}
