//! Sessions through the crate's public door.

mod outputs;
mod policies;
mod python;
