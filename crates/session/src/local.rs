//! A client of the sessions of this process: what [`SessionClient`](crate::SessionClient) promises, done here.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cellwright_kernel::{KernelChoice, KernelVariables, Question, Reply};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::call::{Abandoned, Call, CallEvent, CallHandle, EVENTS, LeaveCall, LeftCall, SessionMode};
use crate::comm::Comm;
use crate::error::SessionError;
use crate::identity::SessionKey;
use crate::jobs::{Job, JobId, JobInfo, JobState, KeptReason};
use crate::journal::{FollowFrom, JournalReader};
use crate::notice::{Departure, Notice};
use crate::registry::{ClientId, SharedState};
use crate::sessions::{Activity, Force, InterruptResult, JobStop, SessionInfo, SessionsHost};
use crate::settings::SessionSettings;
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

    /// Runs a call, as `settings` say if it brings its own.
    pub(crate) fn call(
        &self,
        call: Call,
        settings: Option<SessionSettings>,
    ) -> Result<CallHandle, SessionError> {
        if call.cells.is_empty() {
            return Err(SessionError::NoCells);
        }
        let shared = &self.host.shared;
        let settings = settings.map_or_else(|| Arc::clone(&shared.settings), Arc::new);
        let key =
            SessionKey { session: call.session.clone(), cwd: call.cwd.clone(), kernel: call.kernel.clone() };
        let (key, notices) = self.resolve(key, call.mode)?;
        let limits = settings.limits;
        let job = JobId(shared.number());
        let (event_sender, events) = mpsc::channel(EVENTS);
        let (report_sender, report) = watch::channel(None);
        let stop = call.stop.child_token();
        let title = title(&call);
        let has_begun = Arc::new(AtomicBool::new(false));
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
                settings,
                notices,
                has_begun: Arc::clone(&has_begun),
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
                shared.enqueue(&key, self.id, &limits, |ticket, behind| queue(Some(ticket), behind))?
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
            has_begun,
            state: KeptReason::Followed,
        });
        let leave = leave(Arc::clone(shared), job, stop.clone(), call.abandoned, limits.jobs);
        Ok(CallHandle::new(job, events, report, stop, leave))
    }

    /// The session that is meant: a folder without links, and for a call that names no Python the one that the session has.
    fn resolve(
        &self,
        named: SessionKey,
        mode: SessionMode,
    ) -> Result<(SessionKey, Vec<Notice>), SessionError> {
        let cwd = real(&named.cwd);
        let registry = self.host.shared.lock();
        let known = |key: &SessionKey| mode == SessionMode::Session && registry.session(key).is_ok();
        let key = match cwd {
            Ok(cwd) => SessionKey { cwd, ..named },
            // A folder that was removed keeps its live kernels.
            Err(_) if known(&named) => named,
            Err(error) => return Err(error),
        };
        let KernelChoice::Python { named: python } = &key.kernel else { return Ok((key, Vec::new())) };
        if mode == SessionMode::PerCall || known(&key) {
            return Ok((key, Vec::new()));
        }
        let others = registry.sessions().filter(|(other, entry)| {
            let is_python = matches!(other.kernel, KernelChoice::Python { .. });
            is_python && other.session == key.session && other.cwd == key.cwd && entry.has_kernel()
        });
        let Some((other, _)) = others.max_by_key(|(_, entry)| entry.last_use) else {
            return Ok((key, Vec::new()));
        };
        if python.is_none() {
            return Ok((other.clone(), Vec::new()));
        }
        let notice = Notice::SecondKernel(other.clone());
        Ok((key, vec![notice]))
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

    pub(crate) async fn question(&self, key: &SessionKey, question: Question) -> Result<Reply, SessionError> {
        self.ask(key, |reply| Control::Ask { question, reply }).await?
    }

    pub(crate) async fn say(&self, key: &SessionKey, comm: Comm) -> Result<(), SessionError> {
        self.ask(key, |reply| Control::Say { message: Box::new(comm.into()), reply }).await?
    }

    pub(crate) fn follow(&self, key: &SessionKey, from: FollowFrom) -> Result<JournalReader, SessionError> {
        Ok(self.host.shared.lock().session(key)?.journal.read(from))
    }

    pub(crate) async fn interrupt(&self, key: &SessionKey) -> Result<InterruptResult, SessionError> {
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
            match answer.await {
                Ok((so_far, None)) => return Ok(JobState::Running(so_far)),
                Ok((report, Some(mut place))) => {
                    // Calls that are followed have no name that others could use.
                    let mut registry = self.host.shared.lock();
                    place.running = place.running.filter(|id| registry.jobs.is_in_background(*id));
                    return Ok(JobState::Waiting { report, place });
                }
                Err(_) => {}
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

    pub(crate) fn stop_job(&self, id: JobId) -> Result<JobStop, SessionError> {
        let job = self.find(id)?;
        if job.is_finished() {
            return Ok(JobStop::HadFinished);
        }
        let has_begun = job.has_begun.load(Ordering::Relaxed);
        job.stop.cancel();
        Ok(if has_begun { JobStop::Stopping } else { JobStop::Withdrawn })
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
        let shared = &self.host.shared;
        let found = shared.lock().jobs.named(id).cloned();
        found.ok_or_else(|| {
            if shared.is_earlier(id.0) { SessionError::JobLost(id) } else { SessionError::NoJob(id) }
        })
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
fn leave(
    shared: Arc<SharedState>,
    job: JobId,
    stop: CancellationToken,
    abandoned: Abandoned,
    most: usize,
) -> LeaveCall {
    Box::new(move |left| match (left, abandoned) {
        (LeftCall::Detached, _) | (LeftCall::Dropped, Abandoned::GoOn) => {
            shared.lock().jobs.detach(job, most);
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
