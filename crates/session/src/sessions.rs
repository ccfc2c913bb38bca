//! The sessions of this process, and what can be said of each.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cellwright_kernel::AboutKernel;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio_util::sync::DropGuard;

use crate::client::SessionClient;
use crate::identity::SessionKey;
use crate::local::LocalClient;
use crate::registry::SharedState;
use crate::report::CellStatus;
use crate::settings::SessionSettings;

/// The sessions of this process. Cheap to clone; when the last clone and the last [`SessionClient`] are gone, every
/// kernel is ended.
#[derive(Clone)]
pub struct Sessions {
    host: Arc<SessionsHost>,
}

pub(crate) struct SessionsHost {
    pub(crate) shared: Arc<SharedState>,
    _stops_everything: DropGuard,
}

impl Sessions {
    /// Keeps sessions. Nothing is started before the first call. Needs a tokio runtime.
    pub fn new(settings: SessionSettings) -> Self {
        let shared = SharedState::new(settings);
        shared.tasks.spawn(Arc::clone(&shared).sweep().boxed());
        Self { host: Arc::new(SessionsHost { _stops_everything: shared.root.clone().drop_guard(), shared }) }
    }

    /// A new client of these sessions.
    pub fn client(&self) -> SessionClient {
        SessionClient::here(self.local())
    }

    pub(crate) fn local(&self) -> LocalClient {
        LocalClient::join(Arc::clone(&self.host))
    }

    /// Whether there is neither a session nor a background call.
    pub fn is_empty(&self) -> bool {
        let registry = self.host.shared.lock();
        registry.sessions().next().is_none() && !registry.jobs.any_running()
    }

    /// Ends every session and waits until every kernel is gone.
    pub fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.host.shared.root.cancel();
            self.host.shared.tasks.close();
            self.host.shared.tasks.wait().await;
        })
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

/// A session, as it is now.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionInfo {
    /// Its name, folder and choice of kernel.
    pub key: SessionKey,
    /// What it does.
    pub activity: Activity,
    /// Its kernel, if it has one.
    pub kernel: Option<AboutKernel>,
    /// Resident memory of the kernel and its children in bytes.
    pub memory: Option<u64>,
    /// How long its kernel has been running.
    pub uptime: Option<Duration>,
    /// How long it has existed.
    pub age: Duration,
    /// How long ago it was last used.
    pub unused: Duration,
    /// How many clients hold it.
    pub holders: usize,
}

/// What a session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Activity {
    /// Nothing.
    Idle,
    /// It runs a call.
    Busy {
        /// How many more wait.
        waiting: usize,
    },
}

/// The result of an interrupt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InterruptResult {
    /// No cell ran.
    NothingRan,
    /// The cell ended, and how.
    Ended(CellStatus),
    /// The cell goes on, and why as far as can be seen.
    GoesOn(InterruptDefence),
}

/// Why a cell goes on after an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InterruptDefence {
    /// Its process ignores the signal.
    Ignored,
    /// Its process blocks the signal.
    Blocked,
    /// Its process is stopped and does not continue.
    Stopped,
    /// Its code caught the interrupt, shields itself from it, or does not come back from a library.
    Unknown,
}

impl fmt::Display for InterruptDefence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ignored => "its process ignores SIGINT",
            Self::Blocked => "its process blocks SIGINT",
            Self::Stopped => "its process is stopped (SIGSTOP)",
            Self::Unknown => {
                "its code caught the interrupt, shields itself from it, or is busy in a library that does not return"
            }
        })
    }
}

/// What was found when a background call was to be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobStop {
    /// It had ended before.
    HadFinished,
    /// It waited for its turn, and will not run.
    Withdrawn,
    /// It is being stopped.
    Stopping,
}

/// Whether to do something that costs others their variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Force {
    /// Not if others hold the session.
    No,
    /// In any case.
    Yes,
}
