//! The descendants of a process, also those that left its group.

use std::fs;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A process. Its start time distinguishes it from a later one with the same number.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DescendantProcess {
    pid: u32,
    started: u64,
}

impl DescendantProcess {
    /// Kills it, if it is still there.
    pub(crate) fn kill(&self) {
        if group_and_start(self.pid).is_some_and(|(_, started)| started == self.started)
            && let Ok(pid) = i32::try_from(self.pid)
        {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL); // nobody there is what we want
        }
    }
}

/// The descendants of a group's leader that are in other groups, as far as `/proc` shows. A process whose parent has
/// ended is not found.
pub(crate) fn strayed(leader: u32) -> Vec<DescendantProcess> {
    let mut strayed = Vec::new();
    let mut parents = vec![leader];
    while let Some(parent) = parents.pop() {
        for pid in children(parent) {
            parents.push(pid);
            if let Some((group, started)) = group_and_start(pid)
                && group != leader
            {
                strayed.push(DescendantProcess { pid, started });
            }
        }
    }
    strayed
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Fields 5 and 22 of `/proc/PID/stat`; field 2, the name, may hold spaces and parentheses.
fn group_and_start(pid: u32) -> Option<(u32, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let group = fields.nth(2)?.parse().ok()?;
    let started = fields.nth(16)?.parse().ok()?;
    Some((group, started))
}

/// Field 3 of `/proc/PID/stat`.
pub(crate) fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Whether a process has ended and waits for its parent to notice. False where there is no `/proc`.
pub fn is_zombie(pid: u32) -> bool {
    matches!(state(pid), Some('Z' | 'X'))
}

/// Fields 14 and 15 of `/proc/PID/stat`, in ticks of the clock.
pub(crate) fn processor_time(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let user: u64 = fields.nth(11)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let ticks = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok()??;
    Some(Duration::from_millis((user + system) * 1000 / u64::try_from(ticks).ok()?))
}
