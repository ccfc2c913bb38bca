//! The toolbox over the Model Context Protocol.
//!
//! [`serve_stdio`] serves the client that started us, [`HttpServer`] those that connect. Each client has its own [`Client`](cellwright_tools::ToolClient):
//! workspace, memory of what it read, sessions. What the tools do is left to `tools`; here is only what MCP adds: progress,
//! cancellation, elicitation, roots, resources, prompts, logging.
//!
//! It speaks all versions of the protocol up to 2026-07-28 on stdin and stdout. Over HTTP that version has no sessions,
//! and a live kernel belongs to one, so 2025-11-25 is the newest there. Clients fall back by themselves.

mod answer;
mod arrival;
mod attached;
mod call;
mod host;
mod http;
mod instructions;
mod log;
mod profile;
mod prompts;
mod resources;
mod server;
mod stdio;
mod watching;
mod wire;

pub use attached::{AttachedCall, AttachedHost};
pub use host::{McpHost, WorkspaceRoots};
pub use http::{HttpError, HttpOptions, HttpServer, TokenError, TokenFile};
pub use stdio::{serve_connection, serve_stdio};
