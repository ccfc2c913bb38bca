//! Any frames and websocket messages are read without a panic; what was read is written back byte for byte, and a stream's
//! text is the same read at once or in pieces.
#![no_main]

use bytes::Bytes;
use cellwright_jupyter::content::StreamOutput;
use cellwright_jupyter::websocket::{self, WebsocketFrame};
use cellwright_jupyter::{JsonText, MessageDecoder, SigningKey, StreamText};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // Frames hold JSON and ids, which need no line feed: so that a corpus can be read and written by hand.
    let frames: Vec<Bytes> = bytes.split(|byte| *byte == b'\n').map(Bytes::copy_from_slice).collect();
    let key = SigningKey::new("");
    if let Ok(message) = MessageDecoder::new(key.clone()).decode(frames.clone()) {
        let mut unsigned = frames;
        unsigned[message.identities.len() + 1].clear();
        if message.parent.is_some() {
            assert_eq!(key.encode(&message), unsigned);
        }
    }

    let bytes = Bytes::copy_from_slice(bytes);
    if let Ok((channel, message)) = websocket::decode_v1(&bytes) {
        let again = websocket::encode_v1(&channel, &message);
        let WebsocketFrame::Binary(again) = again else { panic!("v1 is binary") };
        assert_eq!(websocket::decode_v1(&again).expect("ours").1.content, message.content);
    }
    for frame in [WebsocketFrame::Text(bytes.clone()), WebsocketFrame::Binary(bytes.clone())] {
        let _ = websocket::decode_json(&frame);
    }

    let content = JsonText::from(bytes);
    if let (Ok(stream), Ok(whole)) = (StreamText::parse(&content), content.parse::<StreamOutput>()) {
        let mut text = String::new();
        stream.for_each(|piece| text.push_str(piece));
        assert_eq!(text, whole.text);
    }
});
