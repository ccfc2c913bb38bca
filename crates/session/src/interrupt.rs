//! What became of an interrupt.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::report::CellStatus;
use crate::sessions::{InterruptDefence, InterruptResult};

/// How long a cell may take to end after an interrupt before it is reported to go on.
const REACTS_WITHIN: Duration = Duration::from_secs(3);

/// SIGINT in the masks that the system shows.
const SIGINT_BIT: u64 = 1 << 1;

/// Waits for the end of a cell that was interrupted.
pub(crate) async fn outcome(
    mut status: watch::Receiver<Option<CellStatus>>,
    process: Option<u32>,
) -> InterruptResult {
    match timeout(REACTS_WITHIN, status.wait_for(Option::is_some)).await {
        Ok(Ok(status)) => InterruptResult::Ended(status.clone().expect("waited for it")),
        // The call ended without a word on its cell.
        Ok(Err(_)) => InterruptResult::NothingRan,
        Err(_) => InterruptResult::GoesOn(process.map_or(InterruptDefence::Unknown, defence)),
    }
}

/// What a process does with SIGINT, by the system's account. The leader of a kernel's group is the interpreter.
fn defence(process: u32) -> InterruptDefence {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{process}/status")) else {
        return InterruptDefence::Unknown; // it is gone, or this system has no such files
    };
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let has_sigint = |name| {
        let mask = field(name).and_then(|mask| u64::from_str_radix(mask, 16).ok());
        mask.is_some_and(|mask| mask & SIGINT_BIT != 0)
    };
    if field("State:").is_some_and(|state| state.starts_with(['T', 't'])) {
        InterruptDefence::Stopped
    } else if has_sigint("SigIgn:") {
        InterruptDefence::Ignored
    } else if has_sigint("SigBlk:") {
        InterruptDefence::Blocked
    } else {
        InterruptDefence::Unknown
    }
}
