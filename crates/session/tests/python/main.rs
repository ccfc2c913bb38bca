//! Sessions on real Python.

mod bridge;
mod daemon;
mod faults;
mod limits;
mod state;
mod support;
