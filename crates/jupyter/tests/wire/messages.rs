use bytes::Bytes;
use cellwright_cell::Stream;
use cellwright_jupyter::content::{ExecuteRequest, MessageContent, StreamOutput};
use cellwright_jupyter::{
    DecodeError, JsonText, JupyterMessage, MessageDecoder, MessageHeader, MessageSession, SigningKey,
    websocket,
};
use serde_json::{Value, json};

use crate::python::{Peer, to_bytes, to_text};

/// A message with everything a message can have.
fn rich(session: &MessageSession) -> JupyterMessage {
    let content = json!({"text": "né \u{1f980}\n\"\\", "unknown": {"deep": [1, 1.5, null]}});
    let mut message = session.message_of_type("made_up", JsonText::of(&content));
    message.identities = vec![Bytes::from_static(b"client"), Bytes::from_static(b"\x00\xff")];
    message
        .with_parent(&session.message(&ExecuteRequest::default()).header.for_subshell("sub"))
        .with_metadata(&json!({"tags": ["a"]}))
        .with_buffers(vec![Bytes::from_static(b"\x00raw"), Bytes::new()])
}

fn value(text: &Bytes) -> Value {
    serde_json::from_slice(text).expect("JSON")
}

#[tokio::test]
async fn jupyter_client_reads_what_we_sign_and_we_read_what_it_signs() {
    let mut peer = Peer::start();
    let session = MessageSession::new("ours");
    for key in ["b5a2-secret", ""] {
        let sent = rich(&session);
        let frames = to_text(&SigningKey::new(key).encode(&sent));
        let read = peer.call("deserialize", json!({"key": key, "frames": frames})).await;
        assert_eq!(read["identities"], json!(to_text(&sent.identities)));
        assert_eq!(read["msg_type"], "made_up");
        assert_eq!(read["msg_id"], sent.header.msg_id());
        assert_eq!(read["parent_header"]["subshell_id"], "sub");
        assert_eq!(read["metadata"], value(sent.metadata.bytes()));
        assert_eq!(read["content"], value(sent.content.bytes()));
        assert_eq!(read["buffers"], json!(to_text(&sent.buffers)));
        let date = read["header"]["date"].as_str().expect("a date");
        let parsed_as_utc = date.ends_with("+00:00");
        assert!(parsed_as_utc, "jupyter_client parsed our date to {date}");

        let content = json!({"text": "né \u{1f980}", "unknown": [1]});
        let written = peer
            .call(
                "serialize",
                json!({"key": key, "msg_type": "made_up", "content": content, "metadata": {"m": 1},
                       "identities": to_text(&sent.identities), "buffers": to_text(&sent.buffers)}),
            )
            .await;
        let frames: Vec<_> = written["frames"].as_array().expect("frames").iter().map(to_bytes).collect();
        let received = MessageDecoder::new(SigningKey::new(key)).decode(frames).expect("a message");
        assert_eq!(received.identities, sent.identities);
        assert_eq!(json!(received.header.msg_id()), written["msg_id"]);
        assert_eq!(received.parent.as_ref().map(MessageHeader::msg_type), Some("cause"));
        assert_eq!(value(received.metadata.bytes()), json!({"m": 1}));
        assert_eq!(value(received.content.bytes()), content);
        assert_eq!(received.buffers, sent.buffers);
    }
}

#[test]
fn a_wrong_key_an_altered_part_and_a_missing_part_are_refused() {
    let key = SigningKey::new("right");
    let frames = key.encode(&rich(&MessageSession::new("ours")));
    let refused =
        |key: &str, frames: &[Bytes]| MessageDecoder::new(SigningKey::new(key)).decode(frames.to_vec()).err();
    assert!(matches!(refused("wrong", &frames), Some(DecodeError::Signature)));
    // Identities, delimiter, signature, header, parent, metadata, content.
    for part in 3..8 {
        let mut altered = frames.clone();
        altered[part] = Bytes::from_static(b"{}");
        assert!(matches!(refused("right", &altered), Some(DecodeError::Signature)), "part {part}");
    }
    for length in 0..8 {
        assert!(refused("right", &frames[..length]).is_some(), "{length} frames");
        assert!(refused("", &frames[..length]).is_some(), "{length} frames, unsigned");
    }
    assert!(refused("right", &frames).is_none());
}

#[test]
fn a_message_that_came_before_is_refused_where_replays_matter() {
    let key = SigningKey::new("secret");
    let frames = key.encode(&rich(&MessageSession::new("ours")));
    let mut careful = MessageDecoder::new(key.clone()).refusing_replays();
    assert!(careful.decode(frames.clone()).is_ok());
    assert!(matches!(careful.decode(frames.clone()), Err(DecodeError::Replayed)));
    let mut trusting = MessageDecoder::new(key);
    assert!(trusting.decode(frames.clone()).is_ok());
    assert!(trusting.decode(frames).is_ok());
}

/// xeus kernels greet each subscriber so; the message was reported as malformed.
#[test]
fn a_parent_and_metadata_of_null_are_none() {
    let message = MessageSession::new("xeus").message_of_type("iopub_welcome", JsonText::of(&json!({})));
    let mut frames = SigningKey::new("").encode(&message);
    // Delimiter, signature, header, parent, metadata, content.
    frames[3] = Bytes::from_static(b"null");
    frames[4] = Bytes::from_static(b"null");
    let read = MessageDecoder::new(SigningKey::new("")).decode(frames).unwrap();
    assert!(read.parent.is_none());
    assert_eq!(read.header.msg_type(), "iopub_welcome");
}

/// A websocket carries no routing frames.
fn on_the_web(session: &MessageSession) -> JupyterMessage {
    JupyterMessage { identities: Vec::new(), ..rich(session) }
}

fn binary(frame: websocket::WebsocketFrame) -> Bytes {
    match frame {
        websocket::WebsocketFrame::Binary(bytes) => bytes,
        websocket::WebsocketFrame::Text(text) => panic!("{text:?} is text"),
    }
}

#[tokio::test]
async fn jupyter_server_reads_our_v1_frames_and_we_read_its() {
    let mut peer = Peer::start();
    let sent = on_the_web(&MessageSession::new("ours"));
    let frame = binary(websocket::encode_v1("shell", &sent));
    let read = peer.call("websocket_v1", json!({"frame": to_text(&[frame])[0]})).await;
    assert_eq!(read["channel"], "shell");
    assert_eq!(to_bytes(&read["parts"][0]), sent.header.text());
    let (channel, received) = websocket::decode_v1(&to_bytes(&read["again"])).expect("a message");
    assert_eq!((channel.as_str(), received), ("shell", sent));
}

#[tokio::test]
async fn jupyter_server_reads_our_json_frames_and_we_read_its() {
    let mut peer = Peer::start();
    let sent = on_the_web(&MessageSession::new("ours"));
    let frame = binary(websocket::encode_json("shell", &sent).expect("encodes"));
    let read = peer.call("websocket_json", json!({"frame": to_text(&[frame])[0]})).await;
    assert_eq!(read["message"]["channel"], "shell");
    assert_eq!(read["message"]["content"], value(sent.content.bytes()));
    let again = websocket::WebsocketFrame::Binary(to_bytes(&read["again"]));
    let (channel, received) = websocket::decode_json(&again).expect("a message");
    assert_eq!(channel, "shell");
    assert_eq!(received.header.msg_id(), sent.header.msg_id());
    assert_eq!(received.buffers, sent.buffers);

    let without_buffers = JupyterMessage { buffers: Vec::new(), ..sent };
    let frame = websocket::encode_json("iopub", &without_buffers).expect("encodes");
    assert!(matches!(frame, websocket::WebsocketFrame::Text(_)));
    assert_eq!(websocket::decode_json(&frame).expect("a message"), ("iopub".to_owned(), without_buffers));
}

#[test]
fn broken_websocket_messages_are_errors() {
    let whole = binary(websocket::encode_v1("shell", &on_the_web(&MessageSession::new("ours"))));
    for length in 0..whole.len().min(200) {
        assert!(websocket::decode_v1(&whole.slice(..length)).is_err(), "{length} bytes");
    }
    let mut claims_much = whole.to_vec();
    claims_much[..8].fill(0xff);
    assert!(websocket::decode_v1(&claims_much.into()).is_err());
    for bytes in [&b""[..], b"\0\0\0\x01", b"\xff\xff\xff\xff\0\0\0\0", b"\0\0\0\x02\0\0\0\xff\0\0\0\x01{}"] {
        assert!(
            websocket::decode_json(&websocket::WebsocketFrame::Binary(bytes.into())).is_err(),
            "{bytes:?}"
        );
    }
}

#[test]
fn contents_keep_what_they_do_not_know_and_forgive_null() {
    let text = json!({"name": "stdout", "text": null, "newer": {"than": "us"}});
    let message = MessageSession::new("ours").message_of_type(StreamOutput::TYPE, JsonText::of(&text));
    let stream: StreamOutput = message.parse().expect("a stream");
    assert_eq!((&stream.name, stream.text.as_str()), (&Stream::Stdout, ""));
    assert_eq!(serde_json::to_value(&stream).expect("JSON")["newer"], text["newer"]);
}
