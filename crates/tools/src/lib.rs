//! What agents can call.
//!
//! A [`Toolbox`] offers the same tools to MCP clients, to the command line and to cells (the tool bridge):
//! [`Toolbox::specs`] says what there is, [`Toolbox::call`] does it. Each [`ToolClient`] has its own workspace, its own memory of
//! what it has read, its own shell and its own sessions.
//!
//! Nothing here prints or reads the environment: [`ToolSettings`] say it all.

mod arguments;
mod arrival;
mod attention;
mod bash;
mod bridge;
mod client;
mod displays;
mod edit;
mod eval;
mod handle;
mod kernel;
mod mode;
mod notebook;
mod read;
mod reply;
mod report;
mod share;
mod shell;
mod shown;
mod spec;
mod timeout;
mod toolbox;
mod waits;
mod workspace;

pub use arrival::{CallLine, CallPlace};
pub use cellwright_session::daemon::DaemonDoor;
pub use client::{SessionHome, SessionNames, ToolClient};
pub use mode::{RunMode, UnknownMode};
pub use reply::{ReplyPart, ReplyRoom, ToolReply};
pub use spec::ToolSpec;
pub use toolbox::{
    BackgroundPolicy, CallContext, CallObserver, InputPrompter, NoAnswer, ProgressSink, PythonState,
    ReplyReader, ToolSettings, Toolbox,
};
pub use workspace::{OutsidePaths, PathError, Workspace};
