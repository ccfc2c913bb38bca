//! What a cell shows while it runs.
//!
//! These are the words of every floor: the kernel says them, sessions and notebooks keep them, the
//! doors show them. They cross the daemon's socket as they are.

mod causes;
mod json;
mod mime;
mod output;
mod timestamp;

pub use causes::with_causes;
pub use json::{ExactJson, escaped_unit, repaired, rounded_number};
pub use mime::{MimeBundle, MimeData, MimeValue, is_json};
pub use output::{Exception, Output, OutputChange, Stream, json_weight};
pub use timestamp::{timestamp, utc_time};
