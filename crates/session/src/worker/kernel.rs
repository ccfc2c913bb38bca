//! The session's kernel: how it is started, replaced and buried.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use cellwright_cell::with_causes;
use cellwright_kernel::{
    AboutKernel, Background, Comms, Exit, Kernel, KernelStart, StartError, StartedKernel,
};
use futures_util::FutureExt as _;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};

use super::execute::with_room;
use super::{CurrentCall, Worker, WorkerStatus, asked, hear};
use crate::bridge::Bridge;
use crate::call::{CallEvent, Reset};
use crate::error::SessionError;
use crate::journal::SessionEvent;
use crate::notice::Notice;
use crate::report::{KernelReplacement, KernelUse};
use crate::settings::ResetPolicy;
use crate::setup::setup;

/// How long the kernels of sessions that were ended for want of room may take to give it back.
const GIVEN_BACK_WITHIN: Duration = Duration::from_secs(10);

/// How often a kernel's memory is measured at most: it takes milliseconds.
const MEASURED_EVERY: Duration = Duration::from_secs(5);

/// A kernel that is alive, as far as we know.
pub(super) struct LiveKernel {
    pub(super) kernel: Arc<Kernel>,
    pub(super) background: Background,
    pub(super) about: AboutKernel,
    /// What becomes of its comm messages.
    pub(super) comms: Comms,
    since: Instant,
}

impl LiveKernel {
    /// What becomes of the kernel's comm messages from here on.
    pub(super) async fn pass_comms(&mut self, comms: Comms) {
        if std::mem::replace(&mut self.comms, comms) != comms {
            self.kernel.pass_comms(comms).await;
        }
    }
}

/// Why a call goes no further.
pub(super) enum CallHalt {
    /// It was stopped.
    Stopped,
    /// It could not go on.
    Error(SessionError),
}

impl From<SessionError> for CallHalt {
    fn from(error: SessionError) -> Self {
        Self::Error(error)
    }
}

impl Worker {
    /// Has a living kernel at hand.
    pub(super) async fn ready(&mut self, current: &mut CurrentCall) -> Result<(), CallHalt> {
        if let Some(exit) = self.live.as_ref().and_then(|live| live.kernel.exit()) {
            self.bury(exit, KernelReplacement::DiedIdle);
        }
        if self.live.is_some() {
            if current.usage == KernelUse::None {
                current.usage = KernelUse::Reused;
            }
            return Ok(());
        }
        self.crashes.check(&self.settings.limits)?;
        let started = match self.start(current).await {
            Err(CallHalt::Error(SessionError::Exhausted(_))) => self.make_room_and_start(current).await?,
            started => started?,
        };
        if let Some(KernelReplacement::DiedIdle(exit)) = &self.gone {
            self.notices.push(Notice::DiedIdle(exit.clone()));
        }
        current.usage = self.gone.take().map_or(KernelUse::Fresh, KernelUse::Replaced);
        self.notices.extend(started.warnings.into_iter().map(Notice::Warning));
        let since = Instant::now();
        self.status.send_replace(WorkerStatus {
            about: Some(started.about.clone()),
            since: Some(since),
            has_begun: true,
        });
        self.live = Some(LiveKernel {
            kernel: Arc::new(started.kernel),
            background: started.background,
            about: started.about.clone(),
            comms: Comms::Dropped,
            since,
        });
        if !current.alone {
            // Only now: a kernel that does not start must not cost another session its variables.
            let limits = self.settings.limits;
            if let Some(notice) = self.shared.make_room(&self.key, current.client, &limits) {
                self.notices.push(notice);
            }
        }
        self.shared.record();
        self.journal.record(|| SessionEvent::KernelStarted(started.about.clone()));
        self.send_event(current, CallEvent::KernelStarted(started.about)).await;
        self.send_notices(current).await;
        Ok(())
    }

    /// Starts a kernel, answering questions meanwhile.
    async fn start(&mut self, current: &mut CurrentCall) -> Result<StartedKernel, CallHalt> {
        self.connect_bridge().await;
        let (setup, warnings) = setup(&self.settings, &self.key.cwd, self.access.as_ref());
        let launcher = Arc::clone(&self.settings.launcher);
        let start = KernelStart {
            kernel: self.key.kernel.clone(),
            cwd: self.key.cwd.clone(),
            setup,
            variables: current.variables.clone(),
        };
        // A bug in one way to start a kernel must not take the session, and every call that waits for it, along.
        let mut starting = AssertUnwindSafe(launcher.start(start)).catch_unwind();
        loop {
            tokio::select! {
                biased;
                () = self.end.token.cancelled() => return Err(SessionError::Ended(self.end.why()).into()),
                () = current.stop.cancelled() => return Err(CallHalt::Stopped),
                asked = asked(&mut self.control, &mut self.calls, &self.waiting) => self.attend(asked, current).await,
                started = &mut starting => {
                    let started = started.map_err(|panic| SessionError::NotStarted(bug(&*panic)))?;
                    let mut started = started.map_err(|error| not_started(&error))?;
                    started.warnings.extend(warnings);
                    return Ok(started);
                }
            }
        }
    }

    /// Ends the sessions that have no call, waits for what they give back, and tries once more.
    async fn make_room_and_start(&mut self, current: &mut CurrentCall) -> Result<StartedKernel, CallHalt> {
        let dropped = self.shared.end_idle(&self.key);
        let (keys, statuses): (Vec<_>, Vec<_>) = dropped.into_iter().unzip();
        let given_back = async {
            for status in statuses {
                gone(status).await;
            }
        };
        drop(timeout(GIVEN_BACK_WITHIN, given_back).await); // the next attempt shows whether it was enough
        if !keys.is_empty() {
            self.notices.push(Notice::Dropped(keys));
        }
        self.start(current).await
    }

    /// Gives the kernel its access to the tools, once.
    async fn connect_bridge(&mut self) {
        let Some(host) = self.shared.settings.tools.clone().filter(|_| self.access.is_none()) else { return };
        let shared = Arc::clone(&self.shared);
        let bridge = shared.bridge.get_or_try_init(|| Bridge::open(host, &shared.tasks, shared.root.clone()));
        match bridge.await {
            Ok(bridge) => self.access = Some(bridge.admit(self.key.clone(), self.caller.clone())),
            Err(error) => {
                self.notices.push(Notice::Warning(format!("cells cannot call tools: the bridge: {error}")));
            }
        }
    }

    /// Gives the cell a fresh kernel, if it may have one.
    pub(super) async fn reset(
        &mut self,
        current: &mut CurrentCall,
        cell: usize,
        reset: Reset,
    ) -> Result<(), SessionError> {
        match reset {
            Reset::No => return Ok(()),
            Reset::Yes => match self.shared.others(&self.key, current.client).await {
                0 => {}
                others => return Err(SessionError::Held { others }),
            },
            Reset::Force => {}
        }
        if self.reset.is_some_and(|(at, by)| by != current.job && at > current.began) {
            match self.settings.resets {
                ResetPolicy::Refuse => return Err(SessionError::ResetInProgress),
                // The other call's variables are no older than this call: they are not what it wanted to be rid of.
                ResetPolicy::Join => {
                    current.notices.push(Notice::ResetJoined { cell });
                    return Ok(());
                }
            }
        }
        self.crashes.forget();
        if self.live.is_some() {
            self.end_kernel(None).await;
            self.gone = Some(KernelReplacement::Reset);
        }
        self.reset = Some((Instant::now(), current.job));
        Ok(())
    }

    /// Ends the kernel politely and keeps its last words, which a `reader` gets at once.
    pub(super) async fn end_kernel(&mut self, reader: Option<&mpsc::Sender<CallEvent>>) {
        if let Some(live) = &self.live {
            let kernel = Arc::clone(&live.kernel);
            let mut ending = pin!(kernel.shutdown());
            let (mut ended, mut silent) = (false, false);
            while !(ended && silent) {
                let waits_for_nobody = self.end.token.is_cancelled();
                // A kernel to whom nobody listens cannot leave.
                tokio::select! {
                    _ = &mut ending, if !ended => ended = true,
                    (permit, heard) = with_room(reader, waits_for_nobody, hear(self.live.as_mut())), if !silent => match heard {
                        Ok(event) => self.take_late(Ok(event), permit),
                        Err(_) => silent = true,
                    },
                }
            }
        }
        self.drop_live();
    }

    /// Takes note that the kernel died.
    pub(super) fn bury(&mut self, exit: Exit, how: impl FnOnce(Exit) -> KernelReplacement) {
        tracing::debug!(session = %self.key, %exit, "a kernel died");
        self.crashes.note(&exit);
        self.lose(how(exit));
    }

    /// The kernel is gone, and not by a fault of its own.
    pub(super) fn lose(&mut self, how: KernelReplacement) {
        self.drop_live();
        self.gone = Some(how);
    }

    fn drop_live(&mut self) {
        while let Some(event) = self.live.as_mut().and_then(|live| live.background.try_next()) {
            self.take_late(Ok(event), None);
        }
        self.live = None;
        self.measured = None;
        self.status.send_modify(|status| {
            *status = WorkerStatus { has_begun: status.has_begun, ..WorkerStatus::default() }
        });
    }

    /// Looks at the kernel's memory now and then, and reports when it is much.
    pub(super) async fn measure(&mut self, current: &mut CurrentCall) {
        let Some(live) = &self.live else { return };
        let last = self.measured.map_or(live.since, |(at, _)| at);
        if last.elapsed() >= MEASURED_EVERY {
            self.measured = live.kernel.memory().await.map(|bytes| (Instant::now(), bytes));
        }
        if let (Some((_, resident)), Some(limit)) = (self.measured, self.settings.limits.memory)
            && resident > limit
        {
            self.notices.push(Notice::Memory { resident, limit });
            self.send_notices(current).await;
        }
    }
}

/// Waits until a session's worker has left, and so its kernel.
async fn gone(mut status: watch::Receiver<WorkerStatus>) {
    while status.changed().await.is_ok() {}
}

/// What is said of a panic, whose own words are on standard error with their place.
fn bug(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<&str>().copied().or_else(|| Some(panic.downcast_ref::<String>()?));
    format!("this is a bug in Cellwright ({}); please report it", said.unwrap_or("it panicked"))
}

fn not_started(error: &StartError) -> SessionError {
    let words = with_causes(error);
    match error {
        StartError::Exhausted(_) => SessionError::Exhausted(words),
        StartError::Launch(_) | StartError::Other(_) => SessionError::NotStarted(words),
    }
}

/// How often the kernel died lately.
#[derive(Debug, Default)]
pub(super) struct Crashes {
    at: VecDeque<Instant>,
    last: Option<Exit>,
}

impl Crashes {
    fn note(&mut self, exit: &Exit) {
        self.at.push_back(Instant::now());
        self.last = Some(exit.clone());
    }

    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Whether another kernel may be started.
    fn check(&mut self, limits: &crate::settings::SessionLimits) -> Result<(), SessionError> {
        self.at.retain(|at| at.elapsed() < limits.crash_window);
        match &self.last {
            Some(last) if self.at.len() >= limits.crashes => Err(SessionError::CrashBudget {
                crashes: self.at.len(),
                within: limits.crash_window,
                last: last.to_string(),
            }),
            Some(_) | None => Ok(()),
        }
    }
}
