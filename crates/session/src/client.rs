//! The door for users of sessions, wherever they are kept.

use std::fmt;
use std::time::Duration;

use cellwright_kernel::{KernelVariables, Question, Reply};
use futures_util::future::BoxFuture;

use crate::call::{Call, CallHandle};
use crate::comm::Comm;
use crate::daemon::{DaemonConnection, DaemonRequest};
use crate::error::SessionError;
use crate::identity::SessionKey;
use crate::jobs::{JobId, JobInfo, JobState};
use crate::journal::{FollowFrom, SessionFollower};
use crate::local::LocalClient;
use crate::sessions::{Force, InterruptResult, JobStop, SessionInfo};
use crate::settings::SessionSettings;

/// A user of sessions: an agent, a connection, a person. The sessions it calls are held for it, so they
/// are not evicted for being idle, until this is dropped.
pub struct SessionClient {
    place: SessionPlace,
}

enum SessionPlace {
    Here(LocalClient),
    Daemon(DaemonConnection),
}

impl SessionClient {
    pub(crate) fn here(local: LocalClient) -> Self {
        Self { place: SessionPlace::Here(local) }
    }

    pub(crate) fn of_daemon(connection: DaemonConnection) -> Self {
        Self { place: SessionPlace::Daemon(connection) }
    }

    /// Runs cells. Returns when the call is queued; it fails only if it cannot be.
    pub fn call(&self, call: Call) -> BoxFuture<'_, Result<CallHandle, SessionError>> {
        Box::pin(async move {
            match &self.place {
                SessionPlace::Here(local) => local.call(call, None),
                SessionPlace::Daemon(daemon) => daemon.call(call).await,
            }
        })
    }

    /// The same for a daemon, whose clients bring their settings.
    pub(crate) fn call_as(
        &self,
        call: Call,
        settings: Option<SessionSettings>,
    ) -> Result<CallHandle, SessionError> {
        match &self.place {
            SessionPlace::Here(local) => local.call(call, settings),
            SessionPlace::Daemon(_) => Err(SessionError::Daemon("a daemon has no daemon of its own".into())),
        }
    }

    /// All sessions, the one used last first.
    pub fn sessions(&self) -> BoxFuture<'_, Result<Vec<SessionInfo>, SessionError>> {
        Box::pin(async move {
            match &self.place {
                SessionPlace::Here(local) => Ok(local.sessions().await),
                SessionPlace::Daemon(daemon) => daemon.ask(DaemonRequest::Sessions).await,
            }
        })
    }

    /// The variables of a session's kernel, at most `limit` of them.
    pub fn variables<'a>(
        &'a self,
        key: &'a SessionKey,
        limit: usize,
    ) -> BoxFuture<'a, Result<KernelVariables, SessionError>> {
        Box::pin(async move {
            match &self.place {
                SessionPlace::Here(local) => local.variables(key, limit).await,
                SessionPlace::Daemon(daemon) => {
                    daemon.ask(DaemonRequest::Variables { key: key.clone(), limit }).await
                }
            }
        })
    }

    /// Asks a session's kernel something that is not a cell. Refused while a cell runs.
    pub fn ask<'a>(
        &'a self,
        key: &'a SessionKey,
        question: Question,
    ) -> BoxFuture<'a, Result<Reply, SessionError>> {
        Box::pin(async move {
            match &self.place {
                SessionPlace::Here(local) => local.question(key, question).await,
                SessionPlace::Daemon(daemon) => {
                    daemon.ask(DaemonRequest::Ask { key: key.clone(), question }).await
                }
            }
        })
    }

    /// Says something on a comm of a session's kernel, which may take it only after its running cell. What the kernel
    /// says on comms outside of cells reaches those who [`SessionClient::follow`] the session.
    pub fn say<'a>(&'a self, key: &'a SessionKey, comm: Comm) -> BoxFuture<'a, Result<(), SessionError>> {
        Box::pin(async move {
            match &self.place {
                SessionPlace::Here(local) => local.say(key, comm).await,
                SessionPlace::Daemon(daemon) => {
                    daemon.ask(DaemonRequest::Say { key: key.clone(), comm: Box::new(comm) }).await
                }
            }
        })
    }

    /// Watches what happens in a session, whoever runs it. That neither holds nor delays it.
    pub fn follow<'a>(
        &'a self,
        key: &'a SessionKey,
        from: FollowFrom,
    ) -> BoxFuture<'a, Result<SessionFollower, SessionError>> {
        Box::pin(async move {
            Ok(match &self.place {
                SessionPlace::Here(local) => SessionFollower::here(local.follow(key, from)?),
                SessionPlace::Daemon(daemon) => {
                    SessionFollower::of_daemon(daemon.follow(key.clone(), from).await?)
                }
            })
        })
    }

    /// Interrupts the cell that runs in a session, and waits a few seconds for what comes of it. Calls that wait are not
    /// touched.
    pub fn interrupt<'a>(
        &'a self,
        key: &'a SessionKey,
    ) -> BoxFuture<'a, Result<InterruptResult, SessionError>> {
        Box::pin(async move {
            match &self.place {
                SessionPlace::Here(local) => local.interrupt(key).await,
                SessionPlace::Daemon(daemon) => {
                    daemon.ask(DaemonRequest::Interrupt { key: key.clone() }).await
                }
            }
        })
    }

    /// Gives a session a fresh kernel: stops the call that runs, and forgets all variables and crashes.
    pub fn restart<'a>(
        &'a self,
        key: &'a SessionKey,
        force: Force,
    ) -> BoxFuture<'a, Result<(), SessionError>> {
        Box::pin(async move {
            match &self.place {
                SessionPlace::Here(local) => local.restart(key, force).await,
                SessionPlace::Daemon(daemon) => {
                    daemon.ask(DaemonRequest::Restart { key: key.clone(), force }).await
                }
            }
        })
    }

    /// Ends a session; calls that wait are not run.
    pub fn end<'a>(&'a self, key: &'a SessionKey, force: Force) -> BoxFuture<'a, Result<(), SessionError>> {
        Box::pin(async move {
            match &self.place {
                SessionPlace::Here(local) => local.end(key, force).await,
                SessionPlace::Daemon(daemon) => {
                    daemon.ask(DaemonRequest::End { key: key.clone(), force }).await
                }
            }
        })
    }

    /// Background calls: all that run, and the last that are over.
    pub fn jobs(&self) -> BoxFuture<'_, Result<Vec<JobInfo>, SessionError>> {
        Box::pin(async move {
            match &self.place {
                SessionPlace::Here(local) => Ok(local.jobs()),
                SessionPlace::Daemon(daemon) => daemon.ask(DaemonRequest::Jobs).await,
            }
        })
    }

    /// How far a background call has come.
    pub fn job(&self, id: JobId) -> BoxFuture<'_, Result<JobState, SessionError>> {
        Box::pin(async move { self.wait(id, Duration::ZERO).await })
    }

    /// Waits for a background call, at most so long. Its report stays, to be asked for again.
    pub fn wait(&self, id: JobId, at_most: Duration) -> BoxFuture<'_, Result<JobState, SessionError>> {
        Box::pin(async move {
            match &self.place {
                SessionPlace::Here(local) => local.wait(id, at_most).await,
                SessionPlace::Daemon(daemon) => daemon.ask(DaemonRequest::Wait { job: id, at_most }).await,
            }
        })
    }

    /// Begins to stop a background call, if it has not ended. [`SessionClient::wait`] returns its result.
    pub fn stop_job(&self, id: JobId) -> BoxFuture<'_, Result<JobStop, SessionError>> {
        Box::pin(async move {
            match &self.place {
                SessionPlace::Here(local) => local.stop_job(id),
                SessionPlace::Daemon(daemon) => daemon.ask(DaemonRequest::StopJob { job: id }).await,
            }
        })
    }

    /// Drops the report of a background call that is over.
    pub fn forget_job(&self, id: JobId) -> BoxFuture<'_, Result<(), SessionError>> {
        Box::pin(async move {
            match &self.place {
                SessionPlace::Here(local) => local.forget_job(id),
                SessionPlace::Daemon(daemon) => daemon.ask(DaemonRequest::ForgetJob { job: id }).await,
            }
        })
    }
}

impl fmt::Debug for SessionClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.place {
            SessionPlace::Here(_) => "here",
            SessionPlace::Daemon(_) => "daemon",
        };
        f.debug_struct("SessionClient").field("place", &place).finish_non_exhaustive()
    }
}
