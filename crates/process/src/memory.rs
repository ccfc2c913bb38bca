//! How much memory a group of processes uses, and whether the machine ran out of it.

use std::fs;

/// Resident memory in bytes of all processes in a group, or `None` if `/proc` does not show it.
///
/// Pages that processes share are counted once for each of them. Reads `/proc` for every process of
/// the machine: a few milliseconds, blocking.
pub fn group_memory(group: u32) -> Option<u64> {
    let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok()??;
    let page = u64::try_from(page).ok()?;
    let mut pages = None;
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
            && let Ok(stat) = fs::read_to_string(entry.path().join("stat"))
            && let Some((member_of, resident)) = group_and_pages(&stat)
            && member_of == group
        {
            *pages.get_or_insert(0) += resident;
        }
    }
    pages.map(|pages: u64| pages * page)
}

/// Fields 5 and 24 of `/proc/PID/stat`; field 2, the name, may hold spaces and parentheses.
fn group_and_pages(stat: &str) -> Option<(u32, u64)> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let group = fields.nth(2)?.parse().ok()?;
    let pages = fields.nth(18)?.parse().ok()?;
    Some((group, pages))
}

/// How many processes the system has killed for lack of memory since it started.
pub(crate) fn oom_kills() -> Option<u64> {
    let counters = fs::read_to_string("/proc/vmstat").ok()?;
    counters.lines().find_map(|line| line.strip_prefix("oom_kill "))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::group_and_pages;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let stat =
            "42 (a ) b) S 1 77 77 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 5 1000 123 18446744073709551615 1";
        assert_eq!(group_and_pages(stat), Some((77, 123)));
    }
}
