//! Against the real thing: `jupyter_client`, `jupyter_core`, `jupyter_server` and ipykernel.

mod connection;
mod corpus;
mod echo;
mod ipykernel;
mod messages;
mod paths;
mod python;
mod server;
