//! Whether a command has left processes running.

use std::fs;

/// Whether there is a living process in the group besides its leader. Without `/proc` the answer is no, and what is left
/// ends with the command.
pub(super) fn in_group(leader: u32) -> bool {
    let Ok(processes) = fs::read_dir("/proc") else { return false };
    processes.flatten().any(|process| {
        let id = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        id.is_some_and(|id| id != leader)
            && fs::read_to_string(process.path().join("stat")).is_ok_and(|stat| lives_in(&stat, leader))
    })
}

/// `pid (name) state parent group …`; a name may hold spaces and parentheses. A zombie is not alive.
fn lives_in(stat: &str, group: u32) -> bool {
    let Some((_, rest)) = stat.rsplit_once(") ") else { return false };
    let mut fields = rest.split(' ');
    let alive = fields.next().is_some_and(|state| !matches!(state, "Z" | "X"));
    alive && fields.nth(1).and_then(|field| field.parse().ok()) == Some(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_read_past_any_name() {
        assert!(lives_in("12 (a) b (c)) S 1 77 77 0 -1", 77));
        assert!(!lives_in("12 (a) Z 1 77 77 0 -1", 77));
        assert!(!lives_in("12 (a) S 77 1 77 0 -1", 77));
    }
}
