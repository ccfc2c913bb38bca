//! The lines of the protocol on an agent's standard streams.

use std::borrow::Cow;
use std::io;

use agent_client_protocol_schema::v1::{
    ContentBlock, ContentChunk, SessionNotification, SessionUpdate, TextContent,
};
use memchr::memmem;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::mpsc::{self, error::SendError};
use tracing::debug;

use super::connection::OutgoingLines;
use super::event::AgentEvent;
use super::log::AgentLog;

/// The longest line that is accepted.
const LONGEST: u64 = 1 << 30;

/// A line buffer that grew beyond this is shrunk again.
const USUAL: usize = 1 << 20;

/// Pieces of text are joined up to this many bytes.
const GATHERED: usize = 4 << 10;

/// The most bytes of a message in the log.
const LOGGED: usize = 64 << 10;

/// Writes lines to the agent until the queue ends. Then its input ends.
pub(super) async fn write(mut lines: OutgoingLines, mut stdin: pipe::Sender) -> io::Result<()> {
    while let Some(mut line) = lines.recv().await {
        debug!("to the agent: {}", beginning(&line));
        line.push('\n');
        stdin.write_all(line.as_bytes()).await?;
    }
    Ok(())
}

/// The beginning of a message, for the log.
fn beginning(line: &str) -> &str {
    &line[..line.floor_char_boundary(LOGGED)]
}

/// The lines of the agent, except session updates. These are many, and go to `events` directly; if
/// `events` is full, the agent waits. Pieces of one text that come together are joined. Lines that
/// are not JSON, such as a banner, go to the log.
pub(super) struct IncomingLines {
    reader: BufReader<pipe::Receiver>,
    line: Vec<u8>,
    events: mpsc::Sender<AgentEvent>,
    log: AgentLog,
}

impl IncomingLines {
    pub(super) fn new(stdout: pipe::Receiver, events: mpsc::Sender<AgentEvent>, log: AgentLog) -> Self {
        Self { reader: BufReader::with_capacity(64 * 1024, stdout), line: Vec::new(), events, log }
    }

    /// The next line. `None` after the last line, or if nobody receives the events any more.
    pub(super) async fn next(&mut self) -> io::Result<Option<String>> {
        let Self { reader, line, events, log } = self;
        let mut gathered: Option<GatheredText> = None;
        loop {
            // A text does not wait for pieces that have not come yet.
            if let Some(piece) = gathered.take_if(|piece| piece.is_long() || !has_line(reader.buffer()))
                && deliver(events, piece.into()).await.is_err()
            {
                return Ok(None);
            }
            if !next_line(reader, line).await? {
                return Ok(None);
            }
            let text = str::from_utf8(line).map_or_else(|_| String::from_utf8_lossy(line), Cow::Borrowed);
            debug!("from the agent: {}", beginning(text.trim_end()));
            let piece = TextPiece::of(&text);
            if let (Some(gathered), Some(piece)) = (&mut gathered, &piece)
                && gathered.session == piece.session
            {
                gathered.text.push_str(&piece.text);
                continue;
            }
            if let Some(before) = std::mem::replace(&mut gathered, piece.map(GatheredText::from))
                && deliver(events, before.into()).await.is_err()
            {
                return Ok(None);
            }
            if gathered.is_some() {
                continue;
            }
            if !line.trim_ascii_start().starts_with(b"{") {
                log.write(line);
                continue;
            }
            if let Some(update) = update(&text) {
                if deliver(events, update).await.is_err() {
                    return Ok(None);
                }
                continue;
            }
            return Ok(Some(text.into_owned()));
        }
    }
}

/// Fails if nobody receives the events any more.
async fn deliver(
    events: &mpsc::Sender<AgentEvent>,
    update: SessionNotification,
) -> Result<(), SendError<AgentEvent>> {
    events.send(AgentEvent::Update(Box::new(update))).await
}

fn has_line(buffer: &[u8]) -> bool {
    memchr::memchr(b'\n', buffer).is_some()
}

/// A reader of its own: `IncomingLines::next` looks at what is buffered, which codecs hide.
async fn next_line(reader: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    line.shrink_to(USUAL);
    let read = reader.take(LONGEST).read_until(b'\n', line).await?;
    if read as u64 == LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the agent sent a line of more than 1 GiB"));
    }
    Ok(read > 0)
}

/// The update in a line, if this version knows it.
fn update(line: &str) -> Option<SessionNotification> {
    #[derive(Deserialize)]
    struct UpdateLine<'a> {
        #[serde(borrow)]
        method: Cow<'a, str>,
        id: Option<IgnoredAny>,
        params: SessionNotification,
    }
    memmem::find(line.as_bytes(), b"session/update")?;
    let message: UpdateLine<'_> = serde_json::from_str(line).ok()?;
    (message.method == "session/update" && message.id.is_none()).then_some(message.params)
}

/// A piece of the answer's text.
#[derive(Debug, PartialEq)]
struct TextPiece<'a> {
    session: Cow<'a, str>,
    text: Cow<'a, str>,
}

impl<'a> TextPiece<'a> {
    /// Parses a line that holds a piece of text and nothing else, as most do. This takes half the
    /// time, because the type of all updates parses each line twice.
    fn of(line: &'a str) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct TextLine<'a> {
            #[serde(borrow, rename = "jsonrpc")]
            _version: Cow<'a, str>,
            #[serde(borrow)]
            method: Cow<'a, str>,
            #[serde(borrow)]
            params: TextParams<'a>,
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "camelCase")]
        struct TextParams<'a> {
            #[serde(borrow)]
            session_id: Cow<'a, str>,
            #[serde(borrow)]
            update: TextUpdate<'a>,
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "camelCase")]
        struct TextUpdate<'a> {
            #[serde(borrow)]
            session_update: Cow<'a, str>,
            #[serde(borrow)]
            content: TextBlock<'a>,
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct TextBlock<'a> {
            #[serde(borrow, rename = "type")]
            kind: Cow<'a, str>,
            #[serde(borrow)]
            text: Cow<'a, str>,
        }
        let TextLine { method, params: TextParams { session_id, update }, .. } =
            serde_json::from_str(line).ok()?;
        let plain = method == "session/update"
            && update.session_update == "agent_message_chunk"
            && update.content.kind == "text";
        plain.then_some(Self { session: session_id, text: update.content.text })
    }
}

/// Joined pieces of one session's text.
struct GatheredText {
    session: String,
    text: String,
}

impl GatheredText {
    /// Whether it is long enough to send.
    fn is_long(&self) -> bool {
        self.text.len() >= GATHERED
    }
}

impl From<TextPiece<'_>> for GatheredText {
    fn from(TextPiece { session, text }: TextPiece<'_>) -> Self {
        Self { session: session.into_owned(), text: text.into_owned() }
    }
}

impl From<GatheredText> for SessionNotification {
    fn from(GatheredText { session, text }: GatheredText) -> Self {
        let content = ContentBlock::Text(TextContent::new(text));
        Self::new(session, SessionUpdate::AgentMessageChunk(ContentChunk::new(content)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_of_text_parses_like_any_update() {
        let line = |rest: &str, method: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"sessionId":"s\u00e9","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"a\n\"b\""}}{rest}}}}}}}"#
            )
        };
        let plain = line("", "session/update");
        let general: serde_json::Value = serde_json::from_str(&plain).expect("it is JSON");
        let general: SessionNotification =
            serde_json::from_value(general["params"].clone()).expect("it is an update");
        let piece = TextPiece::of(&plain).expect("it is a piece of text");
        assert_eq!(SessionNotification::from(GatheredText::from(piece)), general);
        // Lines that hold more are left to the type of all updates.
        let more = line(r#","messageId":"m""#, "session/update");
        assert_eq!(TextPiece::of(&more), None);
        let SessionUpdate::AgentMessageChunk(chunk) = update(&more).expect("it is an update").update else {
            panic!("it is a chunk");
        };
        assert!(chunk.message_id.is_some());
        assert_eq!(update(&line("", "session/updates")), None);
    }

    #[tokio::test]
    async fn pieces_that_come_together_are_joined_in_order() {
        let piece = |session: &str, text: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{session}","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}"#
            )
        };
        let long = "x".repeat(GATHERED);
        let said_answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let said = [
            piece("a", "1"),
            piece("a", "2"),
            piece("b", "3"),
            "a banner".to_owned(),
            piece("b", "4"),
            piece("b", "5").replace("agent_message_chunk", "agent_thought_chunk"),
            piece("b", &long),
            piece("b", "6"),
            said_answer.to_owned(),
            piece("b", "7"),
        ];
        let (mut sender, receiver) = pipe::pipe().expect("a pipe");
        let bytes = said.map(|line| line + "\n").concat();
        sender.write_all(bytes.as_bytes()).await.expect("it fits");
        drop(sender);
        let (events, mut inbox) = mpsc::channel(64);
        let mut lines = IncomingLines::new(receiver, events, AgentLog::default());
        let answer = lines.next().await.expect("it can be read");
        assert_eq!(answer.as_deref().map(str::trim_end), Some(said_answer), "the answer");
        assert_eq!(lines.next().await.expect("it can be read"), None);
        drop(lines);
        let mut texts = Vec::new();
        while let Some(AgentEvent::Update(update)) = inbox.recv().await {
            let (kind, chunk) = match update.update {
                SessionUpdate::AgentMessageChunk(chunk) => ("says", chunk),
                SessionUpdate::AgentThoughtChunk(chunk) => ("thinks", chunk),
                other => panic!("{other:?}"),
            };
            let ContentBlock::Text(text) = chunk.content else { panic!("it is text") };
            texts.push(format!("{} {kind} {}", update.session_id, text.text.replace(&long, "long")));
        }
        assert_eq!(
            texts,
            ["a says 12", "b says 3", "b says 4", "b thinks 5", "b says long", "b says 6", "b says 7"]
        );
    }
}
