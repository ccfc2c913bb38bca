//! A folder for the files of one kernel.

use std::io;
use std::path::Path;

use cellwright_ownership::{Leftovers, LockedFolder, private_folder};

use crate::connection::SOCKET_PATH;

/// How folders are called: this in a folder of ours, that in one that is everyone's.
const PREFIX: &str = "k";
const PREFIX_AMONG_OTHERS: &str = "cellwright-k";

/// A folder for a kernel's sockets and connection file, for the user alone. Removed on drop; what a process that was
/// killed left behind is removed when the next folder is made.
#[derive(Debug)]
pub struct KernelFolder {
    folder: LockedFolder,
}

impl KernelFolder {
    /// Makes a folder in `parent`, which is made when missing, or among the system's temporary files when `parent` is too
    /// deep for Unix sockets or cannot be written. A `parent` that others have a hand in is refused.
    pub fn new_in(parent: &Path) -> io::Result<Self> {
        let temporary = std::env::temp_dir();
        let is_deep = !fits(parent, PREFIX) && fits(&temporary, PREFIX_AMONG_OTHERS);
        let made = if is_deep { Ok(()) } else { private_folder(parent) };
        let is_elsewhere = match made {
            Ok(()) => is_deep,
            Err(error) if error.is_unwritable() => true,
            Err(error) => return Err(error.into()),
        };
        let (parent, prefix) =
            if is_elsewhere { (&*temporary, PREFIX_AMONG_OTHERS) } else { (parent, PREFIX) };
        let folder = LockedFolder::new_in(parent, prefix, Leftovers::Named(is_of_a_kernel))?;
        Ok(Self { folder })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Whether sockets in a folder below have paths that the system takes.
fn fits(parent: &Path, prefix: &str) -> bool {
    parent.as_os_str().len() + LockedFolder::name_length(prefix) + "/s".len() <= SOCKET_PATH
}

/// Whether it is a socket or a connection file, by its name.
fn is_of_a_kernel(name: &str) -> bool {
    let connection = name.strip_prefix("kernel-").and_then(|rest| rest.strip_suffix(".json"));
    name.starts_with("s-") || connection.is_some()
}
