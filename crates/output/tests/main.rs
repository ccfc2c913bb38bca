//! Outputs through the crate's public door.

mod artifacts;
mod display;
mod laws;
mod printed;
mod sink;
mod terminal;
