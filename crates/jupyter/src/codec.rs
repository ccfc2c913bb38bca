//! Messages to signed frames and back.

use std::collections::{HashSet, VecDeque};

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::message::{JupyterMessage, MessageHeader};

const DELIMITER: &[u8] = b"<IDS|MSG>";
/// How many signatures are remembered against replays; as many as `jupyter_client` keeps.
const REMEMBERED: usize = 1 << 16;

type SignatureBytes = [u8; 32];

/// A connection's key: signs what we send, checks what we receive. An empty key signs and checks nothing.
#[derive(Clone)]
pub struct SigningKey(Option<Hmac<Sha256>>);

impl SigningKey {
    /// A key as a connection file has it.
    pub fn new(key: &str) -> Self {
        let hmac = || Hmac::new_from_slice(key.as_bytes()).expect("a key may have any length");
        Self((!key.is_empty()).then(hmac))
    }

    /// The frames of a message, routing frames first.
    pub fn encode(&self, message: &JupyterMessage) -> Vec<Bytes> {
        let parent =
            message.parent.as_ref().map_or(Bytes::from_static(b"{}"), |parent| parent.text().clone());
        let (metadata, content) = (message.metadata.bytes().clone(), message.content.bytes().clone());
        let parts = [message.header.text().clone(), parent, metadata, content];
        let mut frames = message.identities.clone();
        frames.push(Bytes::from_static(DELIMITER));
        frames.push(self.sign(&parts));
        frames.extend(parts);
        frames.extend(message.buffers.iter().cloned());
        frames
    }

    fn sign(&self, parts: &[Bytes]) -> Bytes {
        let Some(hmac) = self.0.clone() else { return Bytes::new() };
        let digest = absorb(hmac, parts).finalize().into_bytes();
        digest.iter().flat_map(|byte| [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]).collect()
    }

    /// The signature's bytes when it is right; compared in constant time.
    fn verify(&self, signature: &[u8], parts: &[Bytes]) -> Result<Option<SignatureBytes>, DecodeError> {
        let Some(hmac) = self.0.clone() else { return Ok(None) };
        let digest = unhex(signature).ok_or(DecodeError::Signature)?;
        absorb(hmac, parts).verify_slice(&digest).map_err(|_| DecodeError::Signature)?;
        Ok(Some(digest))
    }
}

fn absorb(mut hmac: Hmac<Sha256>, parts: &[Bytes]) -> Hmac<Sha256> {
    for part in parts {
        hmac.update(part);
    }
    hmac
}

const HEX: &[u8; 16] = b"0123456789abcdef";

fn unhex(text: &[u8]) -> Option<SignatureBytes> {
    let nibble = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let mut digest = SignatureBytes::default();
    if text.len() != 2 * digest.len() {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(text.chunks_exact(2)) {
        *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
    }
    Some(digest)
}

/// Why frames are not a message we take.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Fewer frames than a message has, or no delimiter.
    #[error("not a Jupyter message: {0}")]
    Frames(&'static str),
    /// Wrong key, or altered on the way.
    #[error("the signature is wrong; do both sides use the same key?")]
    Signature,
    /// Signed by the right key, but seen before.
    #[error("the message was already received")]
    Replayed,
    /// The header is not a header.
    #[error("malformed header")]
    Header(#[source] serde_json::Error),
}

/// Checks and reads messages that arrive.
pub struct MessageDecoder {
    key: SigningKey,
    seen: Option<SeenSignatures>,
}

#[derive(Default)]
struct SeenSignatures {
    digests: HashSet<SignatureBytes>,
    order: VecDeque<SignatureBytes>,
}

impl MessageDecoder {
    /// A decoder for a key.
    pub fn new(key: SigningKey) -> Self {
        Self { key, seen: None }
    }

    /// The same, refusing a message that came before: the last 65,536 are remembered.
    #[must_use]
    pub fn refusing_replays(self) -> Self {
        Self { seen: Some(SeenSignatures::default()), ..self }
    }

    /// Reads a message from its frames, routing frames included.
    pub fn decode(&mut self, mut frames: Vec<Bytes>) -> Result<JupyterMessage, DecodeError> {
        let delimiter = frames.iter().position(|frame| *frame == DELIMITER);
        let signed = frames.split_off(delimiter.ok_or(DecodeError::Frames("no delimiter"))?);
        let [_, signature, parts @ ..] = signed.as_slice() else {
            return Err(DecodeError::Frames("too short"));
        };
        let (parts, buffers) = parts.split_at_checked(4).ok_or(DecodeError::Frames("too short"))?;
        let digest = self.key.verify(signature, parts)?;
        if let (Some(digest), Some(seen)) = (digest, &mut self.seen) {
            seen.note(digest)?;
        }
        let [header, parent, metadata, content] = parts else { unreachable!("split at four") };
        let header = MessageHeader::parse(header.clone()).map_err(DecodeError::Header)?;
        Ok(JupyterMessage {
            identities: frames,
            header: header.ok_or(DecodeError::Frames("an empty header"))?,
            parent: MessageHeader::parse(parent.clone()).map_err(DecodeError::Header)?,
            metadata: metadata.clone().into(),
            content: content.clone().into(),
            buffers: buffers.to_vec(),
        })
    }
}

impl SeenSignatures {
    fn note(&mut self, digest: SignatureBytes) -> Result<(), DecodeError> {
        if !self.digests.insert(digest) {
            return Err(DecodeError::Replayed);
        }
        self.order.push_back(digest);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.digests.remove(&oldest);
        }
        Ok(())
    }
}
