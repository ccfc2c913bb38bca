//! Comms: conversations of code in a kernel with code in a frontend, such as widgets have.

use bytes::Bytes;
use serde_json::{Map, Value};

/// One message on a comm, from the kernel or to it.
#[derive(Clone, Debug, PartialEq)]
pub struct CommMessage {
    /// Which comm. The side that opens one chooses its id.
    pub comm: String,
    /// What it does.
    pub kind: CommKind,
    /// The target's own.
    pub data: Map<String, Value>,
    /// Facts about it, such as the version of a target's protocol.
    pub metadata: Map<String, Value>,
    /// Binary data that `data` refers to.
    pub buffers: Vec<Bytes>,
}

/// What a message on a comm does.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum CommKind {
    /// It opens the comm.
    Open {
        /// What should answer on the other side.
        target: String,
    },
    /// It says something.
    Message,
    /// It closes the comm.
    Close,
}

/// What becomes of the comm messages of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Comms {
    /// They are dropped, unread.
    #[default]
    Dropped,
    /// They come as [`Event::Comm`](crate::Event::Comm): of the cell that caused them, the others as background.
    Forwarded,
}

/// A comm that is open in a kernel.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct OpenComm {
    /// Its id.
    pub comm: String,
    /// What answers on the other side.
    pub target: String,
}

/// What is asked of a kernel about its comms.
#[derive(Clone, Debug)]
pub enum CommRequest {
    /// Take this.
    Say(CommMessage),
    /// Which are open?
    List {
        /// Only those of this target.
        target: Option<String>,
    },
}

impl CommMessage {
    /// A message without metadata and buffers.
    pub fn new(comm: impl Into<String>, kind: CommKind, data: Map<String, Value>) -> Self {
        Self { comm: comm.into(), kind, data, metadata: Map::new(), buffers: Vec::new() }
    }
}
