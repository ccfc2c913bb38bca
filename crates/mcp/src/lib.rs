//! The toolbox over the Model Context Protocol.
//!
//! [`serve_stdio`] serves the client that started us, [`HttpServer`] those that connect. Each client has its own [`Client`](cellwright_tools::ToolClient):
//! workspace, memory of what it read, sessions. What the tools do is left to `tools`; here is only what MCP adds: progress,
//! cancellation, elicitation, roots, resources, prompts, logging.
//!
//! It speaks versions of the protocol up to 2025-11-25. The next version has no connections that outlive a request, and
//! a live kernel needs one. Clients of that version fall back by themselves.

mod answer;
mod call;
mod host;
mod http;
mod log;
mod prompts;
mod resources;
mod server;
mod stdio;
mod wire;

pub use host::{McpHost, WorkspaceRoots};
pub use http::{HttpError, HttpOptions, HttpServer, TokenError, TokenFile};
pub use stdio::serve_stdio;
