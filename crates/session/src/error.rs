//! What sessions could not do.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::identity::SessionKey;
use crate::jobs::JobId;
use crate::notice::Departure;
use crate::words::duration_words;

/// What sessions could not do. Plain data, so that it reads the same from a daemon.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum SessionError {
    /// There is nothing to run.
    #[error("the call has no cells")]
    NoCells,
    /// There is no such folder to work in.
    #[error("`{}` is not a folder to run in: {why}", cwd.display())]
    NoDirectory {
        /// The folder.
        cwd: PathBuf,
        /// What the system says.
        why: String,
    },
    /// No session can make room.
    #[error(
        "all {limit} sessions are busy; wait for one, interrupt one, or raise the limit. Busy: {}",
        list(busy)
    )]
    AllBusy {
        /// How many there may be.
        limit: usize,
        /// Which there are.
        busy: Vec<SessionKey>,
    },
    /// Too many calls wait.
    #[error("{waiting} calls wait for session {key} already; wait, or use another session")]
    QueueFull {
        /// The session.
        key: SessionKey,
        /// How many wait.
        waiting: usize,
    },
    /// No kernel could be started.
    #[error("no kernel could be started: {0}")]
    NotStarted(String),
    /// This process has no descriptors left, or the system no processes, and no idle session to end.
    #[error("{0}")]
    Exhausted(String),
    /// The kernel keeps dying.
    #[error(
        "the kernel died {crashes} times within {}, the last time because {last}; change what ends it, then reset the session to go on",
        duration_words(*within)
    )]
    CrashBudget {
        /// How often.
        crashes: usize,
        /// Within what time.
        within: Duration,
        /// How it died the last time.
        last: String,
    },
    /// Others would lose their variables.
    #[error("{others} other {} the session, whose variables would be gone; use a session of your own, or force it (`--force`; kernel: restart with force)", if *others == 1 { "client holds" } else { "clients hold" })]
    Held {
        /// How many others.
        others: usize,
    },
    /// Another call reset the session while this one waited.
    #[error(
        "another call has just reset the session, so it was not reset again under that call's variables; call once more to reset it, or set session.reset = \"join\" to share a reset"
    )]
    ResetInProgress,
    /// The session ended before the call's turn came, or under it.
    #[error("the session has ended: {0}")]
    Ended(Departure),
    /// There is no such session.
    #[error("there is no session {0}")]
    NoSession(SessionKey),
    /// The session has no kernel at the moment.
    #[error("the session has no kernel; run a cell to start one")]
    NoKernel,
    /// A cell runs, and the kernel answers when it is over.
    #[error("a cell is running; wait for it or interrupt it")]
    Busy,
    /// There is no such background call.
    #[error("there is no background call {0}; its report may have been dropped for newer ones")]
    NoJob(JobId),
    /// An earlier daemon ran it.
    #[error("background call {0} ended with the session daemon that ran it")]
    JobLost(JobId),
    /// The kernel could not do it.
    #[error("{0}")]
    Kernel(String),
    /// The daemon could not be reached or understood.
    #[error("the session daemon: {0}")]
    Daemon(String),
}

impl SessionError {
    pub(crate) fn no_directory(cwd: PathBuf, error: &io::Error) -> Self {
        Self::NoDirectory { cwd, why: error.to_string() }
    }
}

fn list(keys: &[SessionKey]) -> String {
    keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
