//! Errors as text.

use std::error::Error;
use std::iter::successors;

/// An error and its causes: `could not start: no such file`.
pub fn with_causes(error: &dyn Error) -> String {
    successors(error.source(), |cause| (*cause).source())
        .fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
