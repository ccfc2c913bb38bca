//! Messages as Jupyter's servers frame them on websockets. Encoding and decoding only.
//!
//! Two framings exist. `v1.kernel.websocket.jupyter.org`, asked for as the websocket's subprotocol, leaves the parts as
//! they are; the older one wraps them in one JSON object, in a text frame, or in a binary one when there are buffers.
//! Neither is signed, and neither has routing frames.
//! <https://jupyter-server.readthedocs.io/en/latest/developers/websocket-protocols.html>

use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::message::{JupyterMessage, MessageHeader};

/// The subprotocol to ask for.
pub const V1: &str = "v1.kernel.websocket.jupyter.org";

/// A websocket message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebsocketFrame {
    /// UTF-8 text.
    Text(Bytes),
    /// Bytes.
    Binary(Bytes),
}

/// A websocket message that is not a Jupyter message.
#[derive(Debug, thiserror::Error)]
pub enum WebsocketError {
    /// Offsets that do not fit.
    #[error("malformed websocket message: {0}")]
    Layout(&'static str),
    /// Text that is not JSON, or lacks a part.
    #[error("malformed JSON in a websocket message")]
    Json(#[from] serde_json::Error),
}

/// Frames a message in the `v1` way.
pub fn encode_v1(channel: &str, message: &JupyterMessage) -> WebsocketFrame {
    let parent = parent_text(message);
    let parts = [message.header.text(), &parent, message.metadata.bytes(), message.content.bytes()];
    let parts = parts.into_iter().chain(&message.buffers).map(|part| &part[..]);
    let parts: Vec<&[u8]> = [channel.as_bytes()].into_iter().chain(parts).collect();

    let mut offset = 8 * (parts.len() + 2);
    let mut out = BytesMut::with_capacity(offset + parts.iter().map(|part| part.len()).sum::<usize>());
    out.put_u64_le(parts.len() as u64 + 1);
    out.put_u64_le(offset as u64);
    for part in &parts {
        offset += part.len();
        out.put_u64_le(offset as u64);
    }
    for part in parts {
        out.put_slice(part);
    }
    WebsocketFrame::Binary(out.freeze())
}

/// Reads a binary frame of the `v1` framing: channel and message. The parts share the frame's memory.
pub fn decode_v1(frame: &Bytes) -> Result<(String, JupyterMessage), WebsocketError> {
    let mut table = frame.clone();
    let count = table.try_get_u64_le().map_err(|_| WebsocketError::Layout("too short"))?;
    let offsets: Vec<_> = (0..count).map_while(|_| table.try_get_u64_le().ok()).collect();
    if offsets.len() as u64 != count {
        return Err(WebsocketError::Layout("too short"));
    }
    let part = |ends: &[u64]| slice(frame, ends[0], ends[1]);
    let parts = offsets.windows(2).map(part).collect::<Option<Vec<_>>>();
    let parts = parts.ok_or(WebsocketError::Layout("offsets outside of the message"))?;
    let [channel, header, parent, metadata, content, buffers @ ..] = parts.as_slice() else {
        return Err(WebsocketError::Layout("too few parts"));
    };
    let channel = String::from_utf8_lossy(channel).into_owned();
    Ok((channel, message([header, parent, metadata, content].map(Bytes::clone), buffers.to_vec())?))
}

#[derive(Serialize)]
struct OutgoingJson<'a> {
    channel: &'a str,
    header: &'a RawValue,
    parent_header: &'a RawValue,
    metadata: &'a RawValue,
    content: &'a RawValue,
    buffers: [(); 0],
}

#[derive(Deserialize)]
struct IncomingJson<'a> {
    channel: String,
    #[serde(borrow)]
    header: &'a RawValue,
    #[serde(borrow, default)]
    parent_header: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

/// Frames a message in the older, JSON way.
pub fn encode_json(channel: &str, message: &JupyterMessage) -> Result<WebsocketFrame, WebsocketError> {
    let parent = parent_text(message);
    let text = serde_json::to_vec(&OutgoingJson {
        channel,
        header: serde_json::from_slice(message.header.text())?,
        parent_header: serde_json::from_slice(&parent)?,
        metadata: serde_json::from_slice(message.metadata.bytes())?,
        content: serde_json::from_slice(message.content.bytes())?,
        buffers: [],
    })?;
    if message.buffers.is_empty() {
        return Ok(WebsocketFrame::Text(text.into()));
    }
    let too_large = |_| WebsocketError::Layout("over 4 GiB");
    let parts: Vec<&[u8]> =
        [&text[..]].into_iter().chain(message.buffers.iter().map(|part| &part[..])).collect();
    let mut out = BytesMut::new();
    let mut offset = 4 * (parts.len() + 1);
    out.put_u32(u32::try_from(parts.len()).map_err(too_large)?);
    for part in &parts {
        out.put_u32(u32::try_from(offset).map_err(too_large)?);
        offset += part.len();
    }
    for part in parts {
        out.put_slice(part);
    }
    Ok(WebsocketFrame::Binary(out.freeze()))
}

/// Reads a frame of the JSON framing: channel and message. The parts share the frame's memory.
pub fn decode_json(frame: &WebsocketFrame) -> Result<(String, JupyterMessage), WebsocketError> {
    let (text, buffers) = match frame {
        WebsocketFrame::Text(text) => (text.clone(), Vec::new()),
        WebsocketFrame::Binary(bytes) => split_binary(bytes)?,
    };
    let incoming: IncomingJson<'_> = serde_json::from_slice(&text)?;
    let part = |raw: Option<&RawValue>| {
        raw.filter(|raw| raw.get() != "null")
            .map_or(Bytes::from_static(b"{}"), |raw| text.slice_ref(raw.get().as_bytes()))
    };
    let parts =
        [Some(incoming.header), incoming.parent_header, incoming.metadata, incoming.content].map(part);
    Ok((incoming.channel, message(parts, buffers)?))
}

fn split_binary(bytes: &Bytes) -> Result<(Bytes, Vec<Bytes>), WebsocketError> {
    let mut table = bytes.clone();
    let count = table.try_get_u32().map_err(|_| WebsocketError::Layout("too short"))?;
    let mut offsets: Vec<_> = (0..count).map_while(|_| table.try_get_u32().ok()).map(u64::from).collect();
    if offsets.len() as u64 != u64::from(count) || offsets.is_empty() {
        return Err(WebsocketError::Layout("too short"));
    }
    offsets.push(bytes.len() as u64);
    let parts = offsets.windows(2).map(|ends| slice(bytes, ends[0], ends[1])).collect::<Option<Vec<_>>>();
    let mut parts = parts.ok_or(WebsocketError::Layout("offsets outside of the message"))?;
    let buffers = parts.split_off(1);
    Ok((parts.remove(0), buffers))
}

fn slice(bytes: &Bytes, start: u64, end: u64) -> Option<Bytes> {
    let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
    (start <= end && end <= bytes.len()).then(|| bytes.slice(start..end))
}

fn parent_text(message: &JupyterMessage) -> Bytes {
    message.parent.as_ref().map_or(Bytes::from_static(b"{}"), |parent| parent.text().clone())
}

fn message(
    [header, parent, metadata, content]: [Bytes; 4],
    buffers: Vec<Bytes>,
) -> Result<JupyterMessage, WebsocketError> {
    Ok(JupyterMessage {
        identities: Vec::new(),
        header: MessageHeader::parse(header)?.ok_or(WebsocketError::Layout("an empty header"))?,
        parent: MessageHeader::parse(parent)?,
        metadata: metadata.into(),
        content: content.into(),
        buffers,
    })
}
