//! Any bytes, in any split, leave the frame decoder alive and say the same as when they came at once.
#![no_main]

use cellwright_zmtp::frame::{FrameDecoder, FrameError, IncomingFrames};
use futures_util::FutureExt as _;
use libfuzzer_sys::fuzz_target;

fn decode(mut bytes: &[u8], piece: usize) -> (Vec<IncomingFrames>, Option<FrameError>) {
    let mut decoder = FrameDecoder::for_handshake();
    decoder.accept_messages(1 << 20);
    let mut incoming = Vec::new();
    while !bytes.is_empty() {
        let (mut now, later) = bytes.split_at(piece.min(bytes.len()));
        bytes = later;
        while !now.is_empty() {
            decoder.fill(&mut now).now_or_never().expect("bytes are there").expect("a slice reads");
            loop {
                match decoder.next_incoming() {
                    Ok(Some(next)) => incoming.push(next),
                    Ok(None) => break,
                    Err(error) => return (incoming, Some(error)),
                }
            }
        }
    }
    (incoming, None)
}

// The first byte says how the others are split.
fuzz_target!(|input: &[u8]| {
    let Some((piece, bytes)) = input.split_first() else { return };
    assert_eq!(decode(bytes, usize::from(*piece) + 1), decode(bytes, usize::MAX));
});
