//! The owner of a file, and whether others may write it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::sync::OnceLock;

/// Who the files are of whose owners a user namespace does not show.
const OVERFLOW: u32 = 65_534;

pub(crate) fn ourselves() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether the owner can do with us what they like anyway, or is us.
pub(crate) fn is_relied_on(owner: u32) -> bool {
    owner == ourselves() || owner == 0
}

/// The same for a folder on the way: in a sandbox the system's own folders belong to nobody.
pub(crate) fn is_relied_on_above(owner: u32) -> bool {
    is_relied_on(owner) || owner == OVERFLOW && hides_root()
}

/// Whether we are in a user namespace that does not know the system's root.
fn hides_root() -> bool {
    static HIDES: OnceLock<bool> = OnceLock::new();
    *HIDES.get_or_init(|| {
        // Lines of: first number here, first number outside, how many.
        let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        let hides = |line: &str| {
            let numbers: Vec<u64> =
                line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
            matches!(numbers[..], [_, outside, count] if outside != 0 || count < u64::from(OVERFLOW))
        };
        !map.is_empty() && map.lines().all(hides)
    })
}

/// Whether other users may write it. Not counted: root's group, and the group that a user has alone, which has the
/// user's number.
pub(crate) fn others_write(found: &fs::Metadata) -> bool {
    let mode = found.mode();
    let is_own_group = found.gid() == 0
        || found.gid() == found.uid() && found.uid() == ourselves()
        || found.gid() == ourselves() && found.uid() == 0;
    mode & 0o002 != 0 || mode & 0o020 != 0 && !is_own_group
}
