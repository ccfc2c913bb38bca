//! What programs print, generated. The tests inside the crate and those of its public door both use it.

use proptest::prelude::*;

/// Texts made of everything that terminals treat differently, and of bytes that are not text.
pub(crate) fn printed() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => "[a-z ]{0,12}".prop_map(String::into_bytes),
        4 => Just(b"\n".to_vec()),
        1 => Just(b"\r\n".to_vec()),
        2 => Just(b"\r".to_vec()),
        2 => Just(b"\x08".to_vec()),
        1 => Just(b"\t".to_vec()),
        2 => "\\PC{1,4}".prop_map(String::into_bytes),
        1 => Just("e\u{301}👩‍👩‍👧漢".as_bytes().to_vec()),
        2 => "\x1b\\[[0-9;]{0,4}[ABCDEFGJKm]".prop_map(String::into_bytes),
        1 => "\x1b\\[[1-6][0-9][AF]".prop_map(String::into_bytes),
        1 => "\x1b[\\]P_][a-z]{0,5}(\x07|\x1b\\\\)?".prop_map(String::into_bytes),
        1 => "\x1b[(EDM]".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 1..6),
        1 => "[a-z]{60,90}".prop_map(String::into_bytes),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}
