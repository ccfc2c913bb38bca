//! The door for users of sessions, wherever they are kept.

use std::fmt;
use std::time::Duration;

use cellwright_kernel::Variables;
use futures_util::future::BoxFuture;

use crate::call::{Call, Running};
use crate::daemon::{Connection, Request};
use crate::error::SessionError;
use crate::identity::SessionKey;
use crate::jobs::{JobId, JobInfo, JobState};
use crate::local::Local;
use crate::sessions::{Force, SessionInfo};

/// A user of sessions: an agent, a connection, a person. The sessions it calls are held for it, so they
/// are not evicted for being idle, until this is dropped.
pub struct Client {
    place: Place,
}

enum Place {
    Here(Local),
    Daemon(Connection),
}

impl Client {
    pub(crate) fn here(local: Local) -> Self {
        Self { place: Place::Here(local) }
    }

    pub(crate) fn of_daemon(connection: Connection) -> Self {
        Self { place: Place::Daemon(connection) }
    }

    /// Runs cells. Returns when the call is queued; it fails only if it cannot be.
    pub fn call(&self, call: Call) -> BoxFuture<'_, Result<Running, SessionError>> {
        Box::pin(async move {
            match &self.place {
                Place::Here(local) => local.call(call),
                Place::Daemon(daemon) => daemon.call(call).await,
            }
        })
    }

    /// All sessions, the one used last first.
    pub fn sessions(&self) -> BoxFuture<'_, Result<Vec<SessionInfo>, SessionError>> {
        Box::pin(async move {
            match &self.place {
                Place::Here(local) => Ok(local.sessions().await),
                Place::Daemon(daemon) => daemon.ask(Request::Sessions).await,
            }
        })
    }

    /// The variables of a session's kernel, at most `limit` of them.
    pub fn variables<'a>(
        &'a self,
        key: &'a SessionKey,
        limit: usize,
    ) -> BoxFuture<'a, Result<Variables, SessionError>> {
        Box::pin(async move {
            match &self.place {
                Place::Here(local) => local.variables(key, limit).await,
                Place::Daemon(daemon) => daemon.ask(Request::Variables { key: key.clone(), limit }).await,
            }
        })
    }

    /// Interrupts the cell that runs in a session, and says whether one did; calls that wait are not touched.
    pub fn interrupt<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<bool, SessionError>> {
        Box::pin(async move {
            match &self.place {
                Place::Here(local) => local.interrupt(key).await,
                Place::Daemon(daemon) => daemon.ask(Request::Interrupt { key: key.clone() }).await,
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
                Place::Here(local) => local.restart(key, force).await,
                Place::Daemon(daemon) => daemon.ask(Request::Restart { key: key.clone(), force }).await,
            }
        })
    }

    /// Ends a session; calls that wait are not run.
    pub fn end<'a>(&'a self, key: &'a SessionKey, force: Force) -> BoxFuture<'a, Result<(), SessionError>> {
        Box::pin(async move {
            match &self.place {
                Place::Here(local) => local.end(key, force).await,
                Place::Daemon(daemon) => daemon.ask(Request::End { key: key.clone(), force }).await,
            }
        })
    }

    /// Background calls: all that run, and the last that are over.
    pub fn jobs(&self) -> BoxFuture<'_, Result<Vec<JobInfo>, SessionError>> {
        Box::pin(async move {
            match &self.place {
                Place::Here(local) => Ok(local.jobs()),
                Place::Daemon(daemon) => daemon.ask(Request::Jobs).await,
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
                Place::Here(local) => local.wait(id, at_most).await,
                Place::Daemon(daemon) => daemon.ask(Request::Wait { job: id, at_most }).await,
            }
        })
    }

    /// Begins to stop a background call; [`Client::wait`] tells what it came to.
    pub fn stop_job(&self, id: JobId) -> BoxFuture<'_, Result<(), SessionError>> {
        Box::pin(async move {
            match &self.place {
                Place::Here(local) => local.stop_job(id),
                Place::Daemon(daemon) => daemon.ask(Request::StopJob { job: id }).await,
            }
        })
    }

    /// Drops the report of a background call that is over.
    pub fn forget_job(&self, id: JobId) -> BoxFuture<'_, Result<(), SessionError>> {
        Box::pin(async move {
            match &self.place {
                Place::Here(local) => local.forget_job(id),
                Place::Daemon(daemon) => daemon.ask(Request::ForgetJob { job: id }).await,
            }
        })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.place {
            Place::Here(_) => "here",
            Place::Daemon(_) => "daemon",
        };
        f.debug_struct("Client").field("place", &place).finish_non_exhaustive()
    }
}
