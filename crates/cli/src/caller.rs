//! The caller of this command. What one caller has read does not count for another.
//!
//! A caller is what `CELLWRIGHT_CALLER` (or `--session`) says, or else the nearest program above us that is not a shell or a
//! wrapper such as `timeout` or `uv`, or else the terminal. So the commands of one agent share what they have read, and so
//! do those of one terminal.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;

use crate::config::env;

/// Programs that start a command for somebody else.
const WRAPPERS: [&str; 34] = [
    "ash", "bash", "busybox", "cargo", "csh", "dash", "direnv", "doas", "elvish", "env", "fish", "just",
    "ksh", "mksh", "nice", "nohup", "npx", "nu", "pixi", "poetry", "rc", "sh", "stdbuf", "strace", "su",
    "sudo", "tcsh", "time", "timeout", "uv", "uvx", "xargs", "xonsh", "zsh",
];

/// How far up to look.
const GENERATIONS: usize = 32;

/// The name of the caller of this process.
pub(crate) fn name(environment: &HashMap<OsString, OsString>, session: Option<&str>) -> String {
    if let Some(session) = session {
        return format!("session {session}");
    }
    match environment.get(&OsString::from(env::CALLER)) {
        Some(caller) if !caller.is_empty() => format!("caller {}", caller.to_string_lossy()),
        Some(_) | None => of_processes(),
    }
}

fn of_processes() -> String {
    let Some(own) = ProcessStat::of(std::process::id()) else {
        // Without /proc, the process group's leader is the best there is.
        return format!("parent {}", std::os::unix::process::parent_id());
    };
    let terminal = own.terminal;
    let mut process = own;
    for _ in 0..GENERATIONS {
        let Some(parent) = ProcessStat::of(process.parent) else { break };
        // A terminal emulator, a remote login or the system's first process: we are at the terminal's own shell.
        if parent.id <= 1 || parent.terminal != terminal {
            break;
        }
        process = parent;
        if !process.is_wrapper() {
            return format!("process {} started at {}", process.id, process.started);
        }
    }
    // The shell that the terminal belongs to; its number and start together are never used twice.
    match ProcessStat::of(process.session) {
        Some(leader) => format!("terminal {terminal} of process {} started at {}", leader.id, leader.started),
        None => format!("process {} started at {}", process.id, process.started),
    }
}

/// What `/proc` says of a process.
struct ProcessStat {
    id: u32,
    name: String,
    parent: u32,
    session: u32,
    terminal: i32,
    started: u64,
}

impl ProcessStat {
    fn of(id: u32) -> Option<Self> {
        // In one read: the system makes a new text for each read.
        let mut stat = [0; 1024];
        let length = File::open(format!("/proc/{id}/stat")).and_then(|mut file| file.read(&mut stat)).ok()?;
        let stat = String::from_utf8_lossy(&stat[..length]);
        let (before, after) = stat.rsplit_once(") ")?;
        let name = before.split_once(" (")?.1.to_owned();
        let fields: Vec<_> = after.split_ascii_whitespace().collect();
        // Fields 4 (parent), 6 (session), 7 (terminal) and 22 (start) of proc_pid_stat(5); the first here is field 3.
        Some(Self {
            id,
            name,
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            terminal: fields.get(4)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }

    fn is_wrapper(&self) -> bool {
        let name = self.name.trim_start_matches('-');
        WRAPPERS.binary_search(&name).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_known_by_its_name_or_else_by_its_process() {
        let named = |name: &str| [("CELLWRIGHT_CALLER".into(), name.into())].into();
        assert_eq!(name(&named("a"), None), "caller a");
        assert_eq!(name(&named("a"), Some("work")), "session work");
        let unnamed = name(&HashMap::new(), None);
        assert_eq!(name(&named(""), None), unnamed);
        assert!(unnamed.starts_with("process ") || unnamed.starts_with("terminal "), "{unnamed}");
    }

    #[test]
    fn wrappers_are_sorted_for_the_search() {
        assert!(WRAPPERS.is_sorted());
    }
}
