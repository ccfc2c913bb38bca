//! Whose folders and files these are, on a machine that others use too.
//!
//! [`private_folder`] makes and checks the folders for sockets, tokens and code of ours. [`LockedFolder`] is one that
//! goes with its process. [`reliable_above`] says how far up a project may be looked for, and [`FolderTrust`] whether
//! what a project brings may run. [`Doorway`] keeps strangers
//! from crowding out those who have shown a token. What the folders are for is left to the callers.

mod above;
mod doorway;
mod locked;
mod owner;
mod private;
mod trust;

pub use above::{is_reliable_entry, reliable_above};
pub use doorway::{DoorVisitor, Doorway, TurnedAway};
pub use locked::{Leftovers, LockedFolder};
pub use private::{PrivateFolderError, is_usable_parent, private_folder};
pub use trust::{FolderTrust, TrustAnswer, TrustEntry, TrustRecords, TrustedRoots, UntrustedFolder};
