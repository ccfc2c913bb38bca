//! Child processes that leave nothing behind.
//!
//! Every child runs in a process group of its own, sees only the environment its caller lists, is
//! stopped politely and then firmly, is reaped, and is described truthfully when it ends. Dropping
//! a [`ChildProcess`] kills its whole group and the descendants that left it. If this process dies before
//! it can clean up, a guard process kills the groups that are left.
//!
//! What runs in a child, and what its output means, is left to the caller.

mod child;
mod command;
mod exit;
mod family;
mod guard;
mod memory;

pub use child::{ChildProcess, ProcessState, StopGraces};
pub use command::{ChildCommand, SpawnError, StderrTarget, StdinSource, StdoutTarget};
pub use exit::ChildExit;
pub use family::is_zombie;
pub use memory::group_memory;
pub use nix::sys::signal::Signal;
