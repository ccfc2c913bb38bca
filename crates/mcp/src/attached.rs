//! Tools that work for a program of ours, which decides about each call.

use std::time::Duration;

use cellwright_tools::{ReplyRoom, ToolReply, ToolSpec};
use futures_util::future::BoxFuture;
use rmcp::model::MetaObject;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

/// The program that the tools work for.
pub trait AttachedHost: Send + Sync {
    /// The tools, as the client sees them.
    fn specs(&self) -> Vec<ToolSpec>;

    /// What the client's model reads before it has seen any tool.
    fn instructions(&self) -> String;

    /// The client was sent the list of tools.
    fn listed(&self);

    /// Carries out a call.
    fn call(&self, call: AttachedCall) -> BoxFuture<'_, ToolReply>;
}

/// A call of the client.
#[derive(Debug)]
pub struct AttachedCall {
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// What the client's own user interface calls it, if the client says so.
    pub id: Option<String>,
    /// Cancelled when the client does not want the reply any more.
    pub stop: CancellationToken,
    /// How much of the reply the client's model gets, and when it must come.
    pub room: ReplyRoom,
}

/// Where clients name the call by the id that they show.
const IDS: [&str; 2] = ["claudecode/toolUseId", "callId"];

/// The id that the client shows the call by.
pub(crate) fn shown_id(meta: &MetaObject) -> Option<String> {
    IDS.iter().find_map(|name| meta.0.get(*name)?.as_str().map(str::to_owned))
}

/// The longest that a call may take here: it goes on after its reply.
const PATIENCE: Duration = Duration::from_secs(50);

/// The room of a reply that may come before its cells have ended.
pub(crate) fn room(room: ReplyRoom) -> ReplyRoom {
    ReplyRoom { patience: Some(room.patience.map_or(PATIENCE, |patience| patience.min(PATIENCE))), ..room }
}
