//! A Jupyter kernel whose language is an ACP agent.
//!
//! [`kernel`] is the kernel. [`agent`] runs one agent and speaks the Agent Client Protocol with it.
//! Between the modules of this crate travel the protocol's own types
//! (`agent_client_protocol_schema::v1`).

pub mod agent;
pub mod catalog;
mod cell_history;
mod cell_output;
mod cell_record;
mod client;
pub mod companion;
mod conversation;
mod failure;
pub mod kernel;
mod kernel_state;
pub mod lab_extension;
mod magic;
pub mod markdown;
mod notebook_calls;
mod notebook_context;
pub mod page;
pub mod permission;
pub mod plain;
pub mod spec;
mod task;
mod tool_calls;
pub mod tool_door;
mod tool_kind;
mod turn;
mod view;
