//! The gateway's process: what is written down about it, and whether it is there and well.

use std::path::PathBuf;
use std::time::Duration;

use cellwright_process::Signal;
use rustix::process::{Pid, kill_process, kill_process_group};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::LOOK;
use crate::gateway::address::Address;
use crate::gateway::listener::{ListeningProcess, started};
use crate::gateway::rest::{GatewayError, RestClient};

const HEALTH: Duration = Duration::from_secs(3);
/// How often a gateway whose process lives is asked before it counts as broken: others' kernels end with it.
const HEALTH_ATTEMPTS: u32 = 3;

/// A gateway that runs.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct GatewayInfo {
    pub(super) pid: u32,
    /// When the process started, as the system counts: another that got its number later has another.
    pub(super) started: Option<u64>,
    pub(super) url: String,
    pub(super) token: String,
    pub(super) python: PathBuf,
}

impl GatewayInfo {
    pub(super) fn address(&self) -> Address {
        let address = Address::new(&self.url, Some(self.token.clone()));
        let process = ListeningProcess { pid: self.pid, started: self.started };
        address.expect("checked when it was read or made").of_process(process)
    }

    pub(super) async fn is_well(&self) -> Result<(), GatewayError> {
        RestClient::new(self.address()).kernelspecs(HEALTH).await.map(drop)
    }

    /// The same with patience, for a machine that is busy.
    pub(super) async fn is_well_at_last(&self) -> Result<(), GatewayError> {
        let mut last = self.is_well().await;
        for _ in 1..HEALTH_ATTEMPTS {
            if last.is_ok() {
                break;
            }
            sleep(LOOK).await;
            last = self.is_well().await;
        }
        last
    }

    /// Whether the very process that was started is there.
    pub(super) fn is_alive(&self) -> bool {
        match (started(self.pid), self.started) {
            (Some(now), Some(then)) => now == then,
            (None, Some(_)) => false,
            // The system does not show it: the number has to do.
            (_, None) => pid(self.pid).is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok()),
        }
    }

    /// Whether the process may be ended: a number may have been given to another. Where its start was not noted, it has to
    /// answer to its token.
    pub(super) async fn is_the_gateway(&self) -> bool {
        self.is_alive() && (self.started.is_some() || self.is_well().await.is_ok())
    }

    /// Signals it and its kernels' launchers; kernels have groups of their own, and end when it has.
    pub(super) fn signal(&self, signal: Signal) {
        let signal = match signal {
            Signal::SIGKILL => rustix::process::Signal::KILL,
            _ => rustix::process::Signal::TERM,
        };
        if let Some(pid) = pid(self.pid) {
            // Before it has left our session it has no group of its own.
            let _ = kill_process_group(pid, signal).or_else(|_| kill_process(pid, signal)); // it may have ended already
        }
    }
}

fn pid(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}
