//! Sessions on real Python.

mod bridge;
mod daemon;
mod faults;
mod gateway;
mod limits;
#[path = "../../../kernel/tests/support/servers.rs"]
#[allow(dead_code, reason = "the kernel's tests use more of it")]
mod servers;
mod state;
mod support;
