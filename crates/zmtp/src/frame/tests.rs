use futures_util::FutureExt;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const LIMIT: usize = 1 << 20;

/// Decodes `bytes` as they come in pieces of the given sizes, checking what is held after each piece.
fn decode(bytes: &[u8], pieces: &[usize], limit: usize) -> (Vec<IncomingFrames>, Option<FrameError>) {
    let mut decoder = FrameDecoder::for_handshake();
    decoder.accept_messages(limit);
    let (mut incoming, mut rest, mut arrived) = (Vec::new(), bytes, 0);
    for piece in pieces.iter().copied().chain(std::iter::repeat(usize::MAX)) {
        let (mut now, later) = rest.split_at(piece.min(rest.len()));
        rest = later;
        while !now.is_empty() {
            arrived +=
                decoder.fill(&mut now).now_or_never().expect("bytes are there").expect("a slice reads");
            loop {
                match decoder.next_incoming() {
                    Ok(Some(next)) => incoming.push(next),
                    Ok(None) => break,
                    Err(error) => return (incoming, Some(error)),
                }
            }
            let held =
                decoder.buffer.capacity() + decoder.large.as_ref().map_or(0, |large| large.body.capacity());
            assert!(held <= 2 * arrived + 4 * CHUNK, "{held} bytes held for {arrived} that came");
        }
        if rest.is_empty() {
            return (incoming, None);
        }
    }
    unreachable!("the last piece takes everything")
}

/// What the fuzzer starts from and has found, held to the law of its target, `fuzz/fuzz_targets/zmtp_frames.rs`.
#[test]
fn the_fuzzers_corpus_says_the_same_in_pieces_as_at_once() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/zmtp_frames");
    let mut read = 0;
    for file in std::fs::read_dir(folder).expect("the corpus is there") {
        let path = file.expect("an entry").path();
        let input = std::fs::read(&path).expect("readable");
        let (piece, bytes) = input.split_first().expect("its first byte is the size of the pieces");
        let pieces = vec![usize::from(*piece) + 1; bytes.len()];
        let whole = decode(bytes, &[], LIMIT);
        read += whole.0.len();
        assert_eq!(decode(bytes, &pieces, LIMIT), whole, "{}", path.display());
    }
    assert!(read >= 8, "{read} messages and commands were read");
}

fn encode(incoming: &[IncomingFrames]) -> BytesMut {
    let mut out = BytesMut::new();
    for one in incoming {
        match one {
            IncomingFrames::Command(body) => {
                put_header(&mut out, COMMAND, body.len());
                out.put_slice(body);
            }
            IncomingFrames::Message(message) => {
                for (index, frame) in message.iter().enumerate() {
                    put_part_header(&mut out, frame.len(), index + 1 < message.len());
                    out.put_slice(frame);
                }
            }
        }
    }
    out
}

fn body() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        8 => 0..300_usize,
        1 => SHARED_BODY - 2..SHARED_BODY + 2,
        1 => CHUNK..4 * CHUNK,
    ]
    .prop_map(|size| Bytes::from(vec![size.to_le_bytes()[0]; size]))
}

fn incoming() -> impl Strategy<Value = IncomingFrames> {
    prop_oneof![
        1 => vec(any::<u8>(), 0..300).prop_map(|body| IncomingFrames::Command(body.into())),
        4 => vec(body(), 1..4).prop_map(IncomingFrames::Message),
    ]
}

proptest! {
    #[test]
    fn what_was_encoded_is_decoded_whatever_the_split(
        sent in vec(incoming(), 0..8),
        pieces in vec(1..100_000_usize, 0..64),
    ) {
        let (received, error) = decode(&encode(&sent), &pieces, LIMIT);
        prop_assert_eq!(error, None);
        prop_assert_eq!(received, sent);
    }

    #[test]
    fn any_bytes_in_any_split_are_survived_and_split_does_not_matter(
        noise in vec(any::<u8>(), 0..2048),
        pieces in vec(1..64_usize, 0..64),
    ) {
        // Half of the bytes are small, so that flags and sizes often make sense.
        let bytes: Vec<u8> = noise.iter().map(|&byte| if byte < 128 { byte & 7 } else { byte }).collect();
        let whole = decode(&bytes, &[], LIMIT);
        prop_assert_eq!(decode(&bytes, &pieces, LIMIT), whole);
    }
}

#[test]
fn a_header_that_claims_2_to_the_45_is_refused_before_anything_is_set_aside() {
    let mut bytes = vec![LONG];
    bytes.extend((1_u64 << 45).to_be_bytes());
    let expected = FrameError::TooLarge { size: (1 << 45) + FRAME_COST as u64, limit: LIMIT };
    assert_eq!(decode(&bytes, &[], LIMIT), (vec![], Some(expected)));
}

#[test]
fn memory_follows_the_bytes_that_came_and_not_those_promised() {
    let mut bytes = vec![LONG];
    bytes.extend((1_u64 << 45).to_be_bytes());
    bytes.extend([7; 1000]);
    assert_eq!(decode(&bytes, &[500], usize::MAX), (vec![], None));
}

#[test]
fn a_flood_of_empty_frames_meets_the_message_limit() {
    let bytes = [MORE, 0].repeat(LIMIT / FRAME_COST + 1);
    let (incoming, error) = decode(&bytes, &[], LIMIT);
    assert_eq!(incoming, []);
    assert!(matches!(error, Some(FrameError::TooLarge { .. })), "{error:?}");
}

#[test]
fn messages_are_refused_during_the_handshake() {
    assert_eq!(
        decode(&[0, 1, 7], &[], 0),
        (vec![], Some(FrameError::TooLarge { size: 1 + FRAME_COST as u64, limit: 0 }))
    );
}

#[test]
fn a_command_between_two_frames_of_a_message_comes_first_and_the_message_whole() {
    let bytes = [MORE, 1, b'a', COMMAND, 1, b'!', 0, 1, b'b'];
    let expected = vec![
        IncomingFrames::Command(Bytes::from_static(b"!")),
        IncomingFrames::Message(vec![Bytes::from_static(b"a"), Bytes::from_static(b"b")]),
    ];
    assert_eq!(decode(&bytes, &[1; 9], LIMIT), (expected, None));
}

#[test]
fn a_large_frame_does_not_keep_its_memory_in_the_decoder() {
    let mut bytes = BytesMut::new();
    put_part_header(&mut bytes, 8 * CHUNK, false);
    bytes.resize(bytes.len() + 8 * CHUNK, 0);
    bytes.put_slice(&[0, 1, b'x']);
    let mut decoder = FrameDecoder::for_handshake();
    decoder.accept_messages(LIMIT);
    let mut source = &bytes[..];
    while !source.is_empty() {
        decoder.fill(&mut source).now_or_never().expect("ready").expect("a slice reads");
        while decoder.next_incoming().expect("well formed").is_some() {}
    }
    assert!(decoder.large.is_none());
    assert!(decoder.buffer.capacity() <= 2 * CHUNK, "{}", decoder.buffer.capacity());
}
