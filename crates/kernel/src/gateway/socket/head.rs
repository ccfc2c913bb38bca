//! The head of a server's answer, in one piece.
//!
//! Some tunnels deliver a few bytes at a time. tungstenite takes a head that arrives so for an attack.

use std::io;
use std::mem::take;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Most bytes that are held back; what is longer is passed on as it comes.
const LONGEST: usize = 64 * 1024;

/// A connection that holds the beginning of what it reads back until the empty line after a head has come.
pub(super) struct WholeHead<S> {
    stream: S,
    head: AnswerHead,
}

enum AnswerHead {
    /// What of it has come.
    Arriving(Vec<u8>),
    /// What of it has not been read.
    Whole(Vec<u8>),
    /// All of it was read.
    Read,
}

impl<S> WholeHead<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, head: AnswerHead::Arriving(Vec::new()) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WholeHead<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, head } = &mut *self;
        loop {
            match head {
                AnswerHead::Arriving(bytes) => {
                    let mut chunk = [0; 4096];
                    let mut read = ReadBuf::new(&mut chunk);
                    ready!(Pin::new(&mut *stream).poll_read(context, &mut read))?;
                    bytes.extend_from_slice(read.filled());
                    let is_whole = bytes.windows(4).any(|end| end == b"\r\n\r\n");
                    if is_whole || read.filled().is_empty() || bytes.len() > LONGEST {
                        *head = AnswerHead::Whole(take(bytes));
                    }
                }
                AnswerHead::Whole(bytes) => {
                    let count = bytes.len().min(buffer.remaining());
                    buffer.put_slice(&bytes[..count]);
                    bytes.drain(..count);
                    if bytes.is_empty() {
                        *head = AnswerHead::Read;
                    }
                    return Poll::Ready(Ok(()));
                }
                AnswerHead::Read => return Pin::new(stream).poll_read(context, buffer),
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WholeHead<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
    use tokio_tungstenite::client_async;
    use tokio_tungstenite::tungstenite::Message;
    use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

    use super::*;

    /// A server's side of a connection that carries seven bytes at a time: it greets, and says one word.
    async fn greet(stream: DuplexStream) {
        let mut stream = BufReader::new(stream);
        let mut key = String::new();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await.unwrap();
            match line.split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("sec-websocket-key") => {
                    value.trim().clone_into(&mut key);
                }
                None if line == "\r\n" => break,
                Some(_) | None => {}
            }
        }
        let padding = "x".repeat(2_000);
        let head = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Padding: {padding}\r\n\
             Sec-WebSocket-Accept: {}\r\n\r\n",
            derive_accept_key(key.as_bytes())
        );
        // A client that sees an attack is gone by now.
        drop(stream.write_all(head.as_bytes()).await);
        drop(stream.write_all(b"\x81\x02hi").await);
    }

    #[tokio::test]
    async fn an_answer_that_arrives_seven_bytes_at_a_time_is_no_attack() {
        let (ours, theirs) = tokio::io::duplex(7);
        let (opened, ()) = tokio::join!(
            async {
                let (mut stream, _) = client_async("ws://h/", WholeHead::new(ours)).await.unwrap();
                stream.next().await.unwrap().unwrap()
            },
            greet(theirs)
        );
        assert_eq!(opened, Message::text("hi"));
        // What it is for.
        let (ours, theirs) = tokio::io::duplex(7);
        let (refused, ()) = tokio::join!(client_async("ws://h/", ours), greet(theirs));
        assert_eq!(refused.unwrap_err().to_string(), "Attack attempt detected");
    }
}
