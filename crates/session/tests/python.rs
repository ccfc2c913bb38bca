//! Sessions on real Python.

mod bridge;
mod daemon;
mod faults;
mod following;
mod gateway;
mod limits;
mod state;
mod support;
