//! Bytes to messages and back.
//!
//! The decoder takes any bytes in any split. What it holds is bounded by what has arrived and by the message
//! limit; a size in a header is checked before anything is set aside for it, and even then memory grows with the
//! bytes that come, not with the bytes that were promised.
//! <https://rfc.zeromq.org/spec/37/>

use std::io;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::WireMessage;

const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// Commands are metadata, subscriptions and heartbeats: small by nature.
const COMMAND_LIMIT: usize = 64 * 1024;
/// What a frame costs beyond its bytes: charged, so that a flood of empty frames meets the message limit.
pub(crate) const FRAME_COST: usize = 64;
const CHUNK: usize = 64 * 1024;
/// Larger bodies get memory of their own, which goes when the frame goes. Smaller ones share a chunk.
const SHARED_BODY: usize = CHUNK / 2;

/// Bytes that are not ZMTP 3, or more of it than we accept.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Reserved flag bits, or a command that claims to be continued.
    #[error("frame flags {0:#04x} do not exist")]
    Flags(u8),
    /// The frame, with those before it in the same message, would pass the limit.
    #[error("a message of at least {size} bytes is over the limit of {limit}")]
    TooLarge {
        /// As claimed by the peer.
        size: u64,
        /// As set by `SocketOptions::max_message`, or our own for commands.
        limit: usize,
    },
}

/// What a peer sent.
#[derive(Debug, PartialEq, Eq)]
pub enum IncomingFrames {
    /// A command's body, name included. Peers may send one between two frames of a message.
    Command(Bytes),
    /// All frames of a message.
    Message(WireMessage),
}

/// Turns a stream of bytes into messages and commands.
#[derive(Debug)]
pub struct FrameDecoder {
    buffer: BytesMut,
    large: Option<LargeFrame>,
    parts: WireMessage,
    cost: usize,
    limit: usize,
}

#[derive(Debug)]
struct LargeFrame {
    header: FrameHeader,
    body: Vec<u8>,
}

impl LargeFrame {
    fn missing(&self) -> usize {
        self.header.size - self.body.len()
    }
}

#[derive(Debug, Clone, Copy)]
struct FrameHeader {
    flags: u8,
    size: usize,
}

impl FrameDecoder {
    /// A decoder that takes commands only: no message may come before the handshake is over.
    pub fn for_handshake() -> Self {
        Self { buffer: BytesMut::new(), large: None, parts: Vec::new(), cost: 0, limit: 0 }
    }

    /// Takes messages of up to `limit` bytes from now on.
    pub fn accept_messages(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// The next message or command among the bytes read so far; `None` when more bytes are needed.
    pub fn next_incoming(&mut self) -> Result<Option<IncomingFrames>, FrameError> {
        while let Some((flags, body)) = self.next_frame()? {
            if flags & COMMAND != 0 {
                return Ok(Some(IncomingFrames::Command(body)));
            }
            self.parts.push(body);
            if flags & MORE == 0 {
                self.cost = 0;
                return Ok(Some(IncomingFrames::Message(std::mem::take(&mut self.parts))));
            }
        }
        Ok(None)
    }

    /// Reads once from `source`; 0 is its end. Cancel-safe: bytes are either read and kept or not read.
    pub async fn fill(&mut self, source: &mut (impl AsyncRead + Unpin)) -> io::Result<usize> {
        if let Some(large) = &mut self.large {
            let missing = large.missing();
            if large.body.len() == large.body.capacity() {
                large.body.reserve_exact(missing.min(large.body.len().max(CHUNK)));
            }
            return source.read_buf(&mut (&mut large.body).limit(missing)).await;
        }
        if self.buffer.capacity() - self.buffer.len() < CHUNK / 16 {
            self.buffer.reserve(CHUNK);
        }
        source.read_buf(&mut self.buffer).await
    }

    /// How many bytes of a large frame are there while others are missing.
    pub fn unfinished(&self) -> usize {
        self.large.as_ref().map_or(0, |large| large.body.len())
    }

    fn next_frame(&mut self) -> Result<Option<(u8, Bytes)>, FrameError> {
        if self.large.is_none() {
            let Some((header, length)) = parse_header(&self.buffer) else { return Ok(None) };
            let header = self.admit(header)?;
            if header.size <= SHARED_BODY {
                if self.buffer.len() < length + header.size {
                    return Ok(None);
                }
                self.buffer.advance(length);
                self.charge(header);
                return Ok(Some((header.flags, self.buffer.split_to(header.size).freeze())));
            }
            self.buffer.advance(length);
            self.charge(header);
            let body = self.buffer.split_to(header.size.min(self.buffer.len())).to_vec();
            self.large = Some(LargeFrame { header, body });
        }
        let whole = self.large.take_if(|large| large.missing() == 0);
        Ok(whole.map(|large| (large.header.flags, large.body.into())))
    }

    fn admit(&self, (flags, size): (u8, u64)) -> Result<FrameHeader, FrameError> {
        if flags & !(MORE | LONG | COMMAND) != 0 || flags & (COMMAND | MORE) == COMMAND | MORE {
            return Err(FrameError::Flags(flags));
        }
        let (used, limit) =
            if flags & COMMAND != 0 { (0, COMMAND_LIMIT) } else { (self.cost + FRAME_COST, self.limit) };
        match usize::try_from(size) {
            Ok(size) if size <= limit.saturating_sub(used) && used <= limit => {
                Ok(FrameHeader { flags, size })
            }
            _ => Err(FrameError::TooLarge { size: size.saturating_add(used as u64), limit }),
        }
    }

    fn charge(&mut self, header: FrameHeader) {
        if header.flags & COMMAND == 0 {
            self.cost += FRAME_COST + header.size;
        }
    }
}

fn parse_header(bytes: &[u8]) -> Option<((u8, u64), usize)> {
    let (&flags, rest) = bytes.split_first()?;
    if flags & LONG == 0 {
        return Some(((flags, u64::from(*rest.first()?)), 2));
    }
    Some(((flags, u64::from_be_bytes(*rest.first_chunk()?)), 9))
}

/// Appends the header of a message frame of `size` bytes.
pub(crate) fn put_part_header(out: &mut BytesMut, size: usize, more: bool) {
    put_header(out, if more { MORE } else { 0 }, size);
}

/// Appends a whole command.
pub(crate) fn put_command(out: &mut BytesMut, name: &str, body: &[u8]) {
    put_header(out, COMMAND, 1 + name.len() + body.len());
    out.put_u8(u8::try_from(name.len()).expect("command names are short"));
    out.put_slice(name.as_bytes());
    out.put_slice(body);
}

/// A command's name and what follows it.
pub(crate) fn split_command(command: &Bytes) -> Option<(&[u8], Bytes)> {
    let (&length, rest) = command.split_first()?;
    let name = rest.get(..usize::from(length))?;
    Some((name, command.slice(1 + name.len()..)))
}

fn put_header(out: &mut BytesMut, flags: u8, size: usize) {
    if let Ok(short) = u8::try_from(size) {
        out.put_slice(&[flags, short]);
    } else {
        out.put_u8(flags | LONG);
        out.put_u64(size as u64);
    }
}

#[cfg(test)]
mod tests;
