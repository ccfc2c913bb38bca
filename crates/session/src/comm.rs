//! Comm messages on their way to a caller.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cellwright_kernel::{CommKind, CommMessage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How many bytes of the buffers of one message are passed on.
const BUFFERS: usize = 1 << 20;

/// A message of the kernel on a comm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comm {
    /// Which comm.
    pub comm: String,
    /// What the message does.
    pub kind: CommKind,
    /// What it says.
    pub data: Map<String, Value>,
    /// Facts about it.
    pub metadata: Map<String, Value>,
    /// Its binary data.
    pub buffers: Vec<CommBuffer>,
}

/// Binary data of a comm message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommBuffer {
    /// How many bytes it has.
    pub bytes: usize,
    /// Its bytes in base64. `None` for a buffer that exceeds what is passed on of a message.
    pub base64: Option<String>,
}

impl From<CommMessage> for Comm {
    fn from(message: CommMessage) -> Self {
        let CommMessage { comm, kind, data, metadata, buffers } = message;
        let mut room = BUFFERS;
        let buffers = buffers.iter().map(|buffer| {
            let left = room.checked_sub(buffer.len());
            room = left.unwrap_or(room);
            CommBuffer { bytes: buffer.len(), base64: left.map(|_| BASE64_STANDARD.encode(buffer)) }
        });
        Self { comm, kind, data, metadata, buffers: buffers.collect() }
    }
}
