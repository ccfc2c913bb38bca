//! Notebooks through the crate's public door.

mod format;
mod hazards;
mod in_place;
mod laws;
mod layout;
mod nesting;
mod recording;
