//! The calls that a person makes.

use std::sync::Arc;

use cellwright_kernel::Stdin;
use cellwright_session::{
    Abandoned, Call, CellRequest, CollectMode, Reset, SessionClient, SessionKey, Timeout,
};

use crate::host::ClientSurroundings;

/// A session to talk to.
pub(crate) struct ReplSession {
    pub(crate) client: Arc<SessionClient>,
    pub(crate) key: SessionKey,
    /// What calls bring to the daemon, if the session is there.
    pub(crate) surroundings: Option<ClientSurroundings>,
    pub(crate) reset: Reset,
}

impl ReplSession {
    pub(super) fn call(&self, code: &str) -> Call {
        let cell = CellRequest { timeout: Timeout::Never, ..CellRequest::new(code) };
        let SessionKey { session, cwd, kernel } = self.key.clone();
        self.equipped(Call {
            kernel,
            stdin: Stdin::Person,
            collect: CollectMode::Nothing,
            ..Call::new(session, cwd, vec![cell])
        })
    }

    /// Starts its kernel, if it has none.
    pub(super) fn start(&self) -> Call {
        let SessionKey { session, cwd, kernel } = self.key.clone();
        self.equipped(Call::ensure_kernel(session, cwd, kernel, self.reset))
    }

    fn equipped(&self, mut call: Call) -> Call {
        if let Some(surroundings) = &self.surroundings {
            surroundings.equip(&mut call);
            // A terminal that is closed does not end what the session does.
            call.abandoned = Abandoned::GoOn;
        }
        call
    }

    /// Whether it is there when we have left.
    pub(super) fn stays(&self) -> bool {
        self.surroundings.is_some()
    }
}
