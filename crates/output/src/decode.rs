//! Bytes to text, across chunks.

/// Text is decoded in pieces of at most this size, so that garbage, which grows when decoded, stays bounded.
const PIECE: usize = 64 * 1024;

/// A UTF-8 decoder that keeps a character split between chunks until the rest of it comes.
/// Bytes that are no UTF-8 become U+FFFD, as many as `String::from_utf8_lossy` makes of the whole.
#[derive(Debug, Clone, Default)]
pub(crate) struct Utf8Decoder {
    /// The beginning of a character: at most three bytes.
    pending: Vec<u8>,
}

impl Utf8Decoder {
    /// Calls `take` with each piece of text and the bytes it was made of.
    pub(crate) fn decode(&mut self, mut bytes: &[u8], mut take: impl FnMut(&str, &[u8])) {
        while !self.pending.is_empty() && !bytes.is_empty() {
            self.pending.push(bytes[0]);
            match str::from_utf8(&self.pending) {
                Ok(text) => {
                    take(text, &self.pending);
                    self.pending.clear();
                }
                Err(error) if error.error_len().is_none() => {}
                Err(_) => {
                    // The new byte does not belong: it is looked at afresh below.
                    self.pending.pop();
                    self.finish(&mut take);
                    continue;
                }
            }
            bytes = &bytes[1..];
        }
        while !bytes.is_empty() {
            let piece = &bytes[..bytes.len().min(PIECE)];
            let whole = piece.len() - incomplete_len(piece);
            if whole == 0 {
                self.pending.extend_from_slice(piece);
                return;
            }
            let piece = &piece[..whole];
            // Checking first is several times faster where all is well.
            match str::from_utf8(piece) {
                Ok(text) => take(text, piece),
                Err(_) => take(&String::from_utf8_lossy(piece), piece),
            }
            bytes = &bytes[whole..];
        }
    }

    /// The end of the stream: a character that never became whole is one U+FFFD.
    pub(crate) fn finish(&mut self, mut take: impl FnMut(&str, &[u8])) {
        if !self.pending.is_empty() {
            take("\u{fffd}", &self.pending);
            self.pending.clear();
        }
    }
}

/// How many bytes at the end begin a character that is not complete.
fn incomplete_len(bytes: &[u8]) -> usize {
    let lead = |back: &usize| bytes.get(bytes.len().wrapping_sub(*back)).is_some_and(|byte| *byte >= 0xc0);
    let Some(back) = (1..=3).find(lead) else { return 0 };
    match str::from_utf8(&bytes[bytes.len() - back..]) {
        Err(error) if error.error_len().is_none() => back,
        _ => 0,
    }
}
