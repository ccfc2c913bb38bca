//! An agent's standard streams as the protocol's lines.

use std::borrow::Cow;
use std::io;

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, SessionNotification, SessionUpdate, TextContent,
};
use bytes::Bytes;
use futures_util::{Sink, SinkExt as _, Stream, stream};
use memchr::memmem;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio_util::codec::{BytesCodec, FramedWrite};

use super::event::Event;
use super::log::Log;

/// Longest line; an agent that sends a longer one has lost its mind.
const LONGEST: u64 = 1 << 30;

/// A line buffer that grew beyond this is given back.
const USUAL: usize = 1 << 20;

/// Lines for the agent.
pub(super) fn outgoing(
    stdin: impl AsyncWrite + Send + 'static,
) -> impl Sink<String, Error = io::Error> + Send + 'static {
    FramedWrite::new(stdin, BytesCodec::new()).with(async |mut line: String| {
        line.push('\n');
        Ok(Bytes::from(line))
    })
}

/// Lines from the agent, for the protocol engine. Updates of sessions, which can be very many, do not pass through it: they go
/// to `events` from here, and where `events` is full the agent waits. What is not JSON, such as a banner, goes to the log.
pub(super) fn incoming(
    stdout: pipe::Receiver,
    events: mpsc::Sender<Event>,
    log: Log,
) -> impl Stream<Item = io::Result<String>> + Send + 'static {
    let reader = BufReader::with_capacity(64 * 1024, stdout);
    stream::unfold((reader, Vec::new(), events, log), async |(mut reader, mut line, events, log)| {
        loop {
            match next_line(&mut reader, &mut line).await {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some((Err(error), (reader, line, events, log))),
            }
            if !line.trim_ascii_start().starts_with(b"{") {
                log.write(&line);
                continue;
            }
            let text = String::from_utf8_lossy(&line);
            if let Some(update) = update(&text) {
                if events.send(Event::Update(Box::new(update))).await.is_err() {
                    return None; // nobody listens to this agent any more
                }
                continue;
            }
            let text = text.into_owned();
            return Some((Ok(text), (reader, line, events, log)));
        }
    })
}

async fn next_line(reader: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    line.shrink_to(USUAL);
    let read = reader.take(LONGEST).read_until(b'\n', line).await?;
    if read as u64 == LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the agent sent a line of more than 1 GiB"));
    }
    Ok(read > 0)
}

/// The update in a line, when it is one that we know.
fn update(line: &str) -> Option<SessionNotification> {
    #[derive(Deserialize)]
    struct Notification<'a> {
        #[serde(borrow)]
        method: Cow<'a, str>,
        id: Option<IgnoredAny>,
        params: SessionNotification,
    }
    memmem::find(line.as_bytes(), b"session/update")?;
    if let Some(text) = text_chunk(line) {
        return Some(text);
    }
    let message: Notification<'_> = serde_json::from_str(line).ok()?;
    (message.method == "session/update" && message.id.is_none()).then_some(message.params)
}

/// The update in a line that is a piece of the answer's text and nothing else, which most are: read in half the time, for
/// the type of all updates has to look at each twice.
fn text_chunk(line: &str) -> Option<SessionNotification> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Notification<'a> {
        #[serde(borrow, rename = "jsonrpc")]
        _version: Cow<'a, str>,
        #[serde(borrow)]
        method: Cow<'a, str>,
        #[serde(borrow)]
        params: Params<'a>,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    struct Params<'a> {
        session_id: String,
        #[serde(borrow)]
        update: Update<'a>,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    struct Update<'a> {
        #[serde(borrow)]
        session_update: Cow<'a, str>,
        #[serde(borrow)]
        content: Text<'a>,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Text<'a> {
        #[serde(borrow, rename = "type")]
        kind: Cow<'a, str>,
        text: String,
    }
    let Notification { method, params: Params { session_id, update }, .. } =
        serde_json::from_str(line).ok()?;
    let plain = method == "session/update"
        && update.session_update == "agent_message_chunk"
        && update.content.kind == "text";
    let content = ContentBlock::Text(TextContent::new(update.content.text));
    plain.then(|| {
        SessionNotification::new(session_id, SessionUpdate::AgentMessageChunk(ContentChunk::new(content)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_of_text_is_read_as_any_update_is() {
        let line = |rest: &str, method: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"sessionId":"s\u00e9","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"a\n\"b\""}}{rest}}}}}}}"#
            )
        };
        let plain = line("", "session/update");
        let general: serde_json::Value = serde_json::from_str(&plain).expect("it is JSON");
        let general = serde_json::from_value(general["params"].clone()).expect("it is an update");
        assert_eq!(text_chunk(&plain), Some(general));
        // What says more is left to the type of all updates.
        let more = line(r#","messageId":"m""#, "session/update");
        assert_eq!(text_chunk(&more), None);
        let SessionUpdate::AgentMessageChunk(chunk) = update(&more).expect("it is an update").update else {
            panic!("it is a chunk");
        };
        assert!(chunk.message_id.is_some());
        assert_eq!(update(&line("", "session/updates")), None);
    }
}
