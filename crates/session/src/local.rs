//! A client of the sessions of this process: what [`SessionClient`](crate::SessionClient) promises, done here.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cellwright_kernel::KernelVariables;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::call::{Abandoned, Call, CallEvent, CallHandle, EVENTS, LeaveCall, LeftCall, SessionMode};
use crate::error::SessionError;
use crate::identity::SessionKey;
use crate::jobs::{Job, JobId, JobInfo, JobState, KeptReason};
use crate::notice::Departure;
use crate::registry::{ClientId, SharedState};
use crate::sessions::{Activity, Force, SessionInfo, SessionsHost};
use crate::worker::{Control, QueuedCall};

pub(crate) struct LocalClient {
    id: ClientId,
    host: Arc<SessionsHost>,
}

impl Drop for LocalClient {
    fn drop(&mut self) {
        self.host.shared.leave(self.id);
    }
}

impl LocalClient {
    pub(crate) fn join(host: Arc<SessionsHost>) -> Self {
        Self { id: host.shared.join(), host }
    }

    pub(crate) fn call(&self, call: Call) -> Result<CallHandle, SessionError> {
        if call.cells.is_empty() {
            return Err(SessionError::NoCells);
        }
        let shared = &self.host.shared;
        let key =
            SessionKey { session: call.session.clone(), cwd: real(&call.cwd)?, kernel: call.kernel.clone() };
        let job = JobId(shared.number());
        let (event_sender, events) = mpsc::channel(EVENTS);
        let (report_sender, report) = watch::channel(None);
        let stop = call.stop.child_token();
        let title = title(&call);
        let began = Instant::now();
        let queue = |ticket, behind| {
            if behind > 0 {
                drop(event_sender.try_send(CallEvent::Queued { behind })); // the first: there is room
            }
            QueuedCall {
                job,
                client: self.id,
                cells: call.cells,
                stdin: call.stdin,
                comms: call.comms,
                variables: call.variables,
                turns: call.turns,
                collect: call.collect,
                tools: call.tools,
                stop: stop.clone(),
                events: event_sender,
                report: report_sender,
                began,
                ticket,
            }
        };
        let control = match call.mode {
            SessionMode::Session => {
                shared.enqueue(&key, self.id, |ticket, behind| queue(Some(ticket), behind))?
            }
            SessionMode::PerCall => shared.run_alone(&key, queue(None, 0)),
        };
        shared.lock().jobs.follow(Job {
            id: job,
            key,
            title,
            began,
            report: report.clone(),
            stop: stop.clone(),
            control,
            state: KeptReason::Followed,
        });
        let leave = leave(Arc::clone(shared), job, stop.clone(), call.abandoned);
        Ok(CallHandle::new(job, events, report, stop, leave))
    }

    pub(crate) async fn sessions(&self) -> Vec<SessionInfo> {
        let now = Instant::now();
        let mut sessions: Vec<_> = self
            .host
            .shared
            .lock()
            .sessions()
            .map(|(key, entry)| {
                let status = entry.status.borrow();
                SessionInfo {
                    key: key.clone(),
                    activity: match entry.busy {
                        0 => Activity::Idle,
                        busy => Activity::Busy { waiting: busy - 1 },
                    },
                    kernel: status.about.clone(),
                    memory: None,
                    uptime: status.since.map(|since| now - since),
                    age: now - entry.began,
                    unused: if entry.busy == 0 { now - entry.last_use } else { Duration::ZERO },
                    holders: entry.holders.len(),
                }
            })
            .collect();
        sessions.sort_by(|a, b| a.unused.cmp(&b.unused).then_with(|| a.key.cmp(&b.key)));
        for session in &mut sessions {
            if let Some(pid) = session.kernel.as_ref().and_then(|kernel| kernel.pid) {
                let measured = tokio::task::spawn_blocking(move || cellwright_process::group_memory(pid));
                session.memory = measured.await.ok().flatten();
            }
        }
        sessions
    }

    pub(crate) async fn variables(
        &self,
        key: &SessionKey,
        limit: usize,
    ) -> Result<KernelVariables, SessionError> {
        self.ask(key, |reply| Control::Variables { limit, reply }).await?
    }

    pub(crate) async fn interrupt(&self, key: &SessionKey) -> Result<bool, SessionError> {
        self.ask(key, |reply| Control::Interrupt { reply }).await?
    }

    pub(crate) async fn restart(&self, key: &SessionKey, force: Force) -> Result<(), SessionError> {
        self.refuse_if_held(key, force).await?;
        self.ask(key, |reply| Control::Restart { reply }).await?
    }

    pub(crate) async fn end(&self, key: &SessionKey, force: Force) -> Result<(), SessionError> {
        self.refuse_if_held(key, force).await?;
        if self.host.shared.end(key, Departure::ShutDown) {
            Ok(())
        } else {
            Err(SessionError::NoSession(key.clone()))
        }
    }

    pub(crate) fn jobs(&self) -> Vec<JobInfo> {
        self.host.shared.lock().jobs.list()
    }

    pub(crate) async fn wait(&self, id: JobId, at_most: Duration) -> Result<JobState, SessionError> {
        let job = self.find(id)?;
        let mut report = job.report.clone();
        // In time or not, what is there afterwards is what counts.
        drop(tokio::time::timeout(at_most, report.wait_for(Option::is_some)).await);
        if job.report.borrow().is_none() {
            let (reply, answer) = oneshot::channel();
            drop(job.control.send(Control::Progress { job: id, reply }).await); // if it has gone, the answer shows it
            if let Ok(so_far) = answer.await {
                return Ok(JobState::Running(so_far));
            }
            // It ended while we asked.
        }
        let report = job.report.borrow().clone().ok_or(SessionError::NoJob(id))?;
        if let Some(kept) = self.host.shared.lock().jobs.named(id)
            && kept.state == KeptReason::Background
        {
            kept.state = KeptReason::Collected;
        }
        Ok(JobState::Finished(report))
    }

    pub(crate) fn stop_job(&self, id: JobId) -> Result<(), SessionError> {
        self.find(id)?.stop.cancel();
        Ok(())
    }

    pub(crate) fn forget_job(&self, id: JobId) -> Result<(), SessionError> {
        if self.find(id)?.is_finished() {
            self.host.shared.lock().jobs.forget(id);
            Ok(())
        } else {
            Err(SessionError::Busy)
        }
    }

    fn find(&self, id: JobId) -> Result<Job, SessionError> {
        self.host.shared.lock().jobs.named(id).cloned().ok_or(SessionError::NoJob(id))
    }

    async fn refuse_if_held(&self, key: &SessionKey, force: Force) -> Result<(), SessionError> {
        if force == Force::Yes {
            return Ok(());
        }
        match self.host.shared.others(key, self.id).await {
            0 => Ok(()),
            others => Err(SessionError::Held { others }),
        }
    }

    async fn ask<T>(
        &self,
        key: &SessionKey,
        question: impl FnOnce(oneshot::Sender<T>) -> Control,
    ) -> Result<T, SessionError> {
        let control = self.host.shared.lock().session(key)?.control.clone();
        let (reply, answer) = oneshot::channel();
        drop(control.send(question(reply)).await); // if it has gone, the answer shows it
        answer.await.map_err(|_| SessionError::NoSession(key.clone()))
    }
}

/// What happens when nobody follows a call here any more.
fn leave(shared: Arc<SharedState>, job: JobId, stop: CancellationToken, abandoned: Abandoned) -> LeaveCall {
    Box::new(move |left| match (left, abandoned) {
        (LeftCall::Detached, _) | (LeftCall::Dropped, Abandoned::GoOn) => {
            shared.lock().jobs.detach(job, shared.settings.limits.jobs);
        }
        (LeftCall::Dropped, Abandoned::Stop) => {
            stop.cancel();
            shared.lock().jobs.forget(job);
        }
        (LeftCall::Finished, _) => shared.lock().jobs.forget(job),
    })
}

/// The folder without links, so that two ways to it lead to one session.
fn real(cwd: &Path) -> Result<PathBuf, SessionError> {
    let real = fs::canonicalize(cwd).map_err(|error| SessionError::no_directory(cwd.into(), &error))?;
    if real.is_dir() {
        Ok(real)
    } else {
        Err(SessionError::NoDirectory { cwd: cwd.into(), why: "it is a file".into() })
    }
}

/// What to call a background call: its first cell's title, or how that begins.
fn title(call: &Call) -> String {
    const LONGEST: usize = 60;
    let first = &call.cells[0];
    let text = first.source.title.as_deref().unwrap_or(&first.source.code).trim();
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
