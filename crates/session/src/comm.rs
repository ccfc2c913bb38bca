//! Comm messages on their way to a caller.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cellwright_cell::json_weight;
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

impl Comm {
    /// About how many bytes it takes.
    pub(crate) fn weight(&self) -> usize {
        let fields = self.data.iter().chain(&self.metadata);
        let buffers = self.buffers.iter().filter_map(|buffer| buffer.base64.as_ref()).map(String::len);
        fields.map(|(name, value)| name.len() + json_weight(value)).chain(buffers).sum()
    }
}

/// A buffer that was not passed on is empty.
impl From<Comm> for CommMessage {
    fn from(comm: Comm) -> Self {
        let Comm { comm, kind, data, metadata, buffers } = comm;
        let bytes = |buffer: CommBuffer| BASE64_STANDARD.decode(buffer.base64.unwrap_or_default());
        let buffers = buffers.into_iter().map(|buffer| bytes(buffer).unwrap_or_default().into());
        Self { comm, kind, data, metadata, buffers: buffers.collect() }
    }
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
