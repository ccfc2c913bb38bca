//! What a cell shows while it runs.
//!
//! These are the words of every floor: the kernel says them, sessions and notebooks keep them, the
//! doors show them. They cross the daemon's socket as they are.

mod causes;
mod output;

pub use causes::with_causes;
pub use output::{Exception, MimeBundle, Output, OutputChange, Stream, json_weight};
