//! Kernels through the crate's public door.

mod conformance;
mod driver;
mod gateway;
mod runner;
mod zmq;
