//! What the fuzzer starts from and has found, held to the laws of its target, `fuzz/fuzz_targets/jupyter_messages.rs`.

use std::path::Path;

use bytes::Bytes;
use cellwright_jupyter::content::StreamOutput;
use cellwright_jupyter::websocket::{self, WebsocketFrame};
use cellwright_jupyter::{JsonText, MessageDecoder, SigningKey, StreamText};

#[test]
fn any_bytes_are_read_without_a_panic_and_written_back_as_they_were() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/jupyter_messages");
    let (mut messages, mut texts) = (0, 0);
    for file in std::fs::read_dir(folder).expect("the corpus is there") {
        let path = file.expect("an entry").path();
        let bytes = Bytes::from(std::fs::read(&path).expect("readable"));

        let frames: Vec<_> = bytes.split(|byte| *byte == b'\n').map(Bytes::copy_from_slice).collect();
        let key = SigningKey::new("");
        if let Ok(message) = MessageDecoder::new(key.clone()).decode(frames.clone()) {
            messages += 1;
            let mut unsigned = frames;
            unsigned[message.identities.len() + 1].clear();
            if message.parent.is_some() {
                assert_eq!(key.encode(&message), unsigned, "{}", path.display());
            }
        }
        if let Ok((channel, message)) = websocket::decode_v1(&bytes) {
            messages += 1;
            let WebsocketFrame::Binary(again) = websocket::encode_v1(&channel, &message) else {
                panic!("v1 is binary")
            };
            assert_eq!(websocket::decode_v1(&again).expect("ours").1.content, message.content);
        }
        for frame in [WebsocketFrame::Text(bytes.clone()), WebsocketFrame::Binary(bytes.clone())] {
            messages += u32::from(websocket::decode_json(&frame).is_ok());
        }
        let content = JsonText::from(bytes);
        if let (Ok(stream), Ok(whole)) = (StreamText::parse(&content), content.parse::<StreamOutput>()) {
            texts += 1;
            let mut text = String::new();
            stream.for_each(|piece| text.push_str(piece));
            assert_eq!(text, whole.text, "{}", path.display());
        }
    }
    // Seeds that nothing reads would lead the fuzzer nowhere.
    assert!(messages >= 6 && texts >= 3, "{messages} messages and {texts} texts were read");
}
