//! Which sessions wait for which. A cell that calls a tool waits for the session where the tool runs cells. Two sessions that
//! wait for each other would wait for ever, so a call that would close such a circle is refused.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cellwright_kernel::KernelChoice;
use cellwright_session::SessionKey;

use crate::reply::ToolFailure;
use crate::toolbox::{CallContext, ToolboxState};

/// Which sessions wait for which.
#[derive(Debug, Default)]
pub(crate) struct SessionWaits(Mutex<Vec<SessionWait>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct SessionWait {
    /// The session whose cell waits.
    from: SessionKey,
    /// The session where it wants cells to run.
    to: SessionKey,
}

/// A session that waits for another one for as long as this lives.
pub(crate) struct WaitGuard<'a> {
    waits: &'a SessionWaits,
    wait: SessionWait,
}

impl SessionWaits {
    /// Lets a cell of `from` wait for cells in `to`, unless these would wait for it.
    pub(crate) fn begin(&self, from: &SessionKey, to: &SessionKey) -> Result<WaitGuard<'_>, ToolFailure> {
        let mut waits = self.lock();
        let mut reached = vec![to];
        let mut at = 0;
        while let Some(&session) = reached.get(at) {
            if is_same(session, from) {
                return Err(ToolFailure::new(format!(
                    "session {} waits for this cell, so cells there would wait for ever; run the code in this cell, or in another session",
                    to.session
                )));
            }
            let next = waits.iter().filter(|wait| is_same(&wait.from, session)).map(|wait| &wait.to);
            let new: Vec<_> = next.filter(|next| !reached.contains(next)).collect();
            reached.extend(new);
            at += 1;
        }
        let wait = SessionWait { from: from.clone(), to: to.clone() };
        waits.push(wait.clone());
        Ok(WaitGuard { waits: self, wait })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<SessionWait>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ToolboxState {
    /// Lets the cell that calls, if one does, wait for cells in `session`.
    pub(crate) fn wait_for(
        &self,
        context: &CallContext,
        session: &SessionKey,
    ) -> Result<Option<WaitGuard<'_>>, ToolFailure> {
        let Some(cell) = &context.cell else { return Ok(None) };
        // As sessions know it, without links.
        let cwd = std::fs::canonicalize(&session.cwd).unwrap_or_else(|_| session.cwd.clone());
        self.waits.begin(cell, &SessionKey { cwd, ..session.clone() }).map(Some)
    }
}

/// A call that names no Python may join the kernel of a call that does.
fn is_same(one: &SessionKey, other: &SessionKey) -> bool {
    let both_python =
        matches!((&one.kernel, &other.kernel), (KernelChoice::Python { .. }, KernelChoice::Python { .. }));
    one.session == other.session && one.cwd == other.cwd && (both_python || one.kernel == other.kernel)
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        let mut waits = self.waits.lock();
        if let Some(at) = waits.iter().position(|wait| *wait == self.wait) {
            waits.remove(at);
        }
    }
}
