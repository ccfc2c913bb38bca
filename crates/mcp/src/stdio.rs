//! The client that started us, on stdin and stdout, or one at the other end of a socket.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use cellwright_tools::CallLine;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rmcp::model::ErrorData;
use rmcp::service::{
    RoleServer, RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage, serve_server_with_ct,
};
use rmcp::transport::{Transport, stdio_pipes};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::arrival;
use crate::host::McpHost;
use crate::server::ClientServer;
use crate::wire::{self, RefusedMessage};

/// Largest message. A notebook may come as one string.
const LARGEST: usize = 64 * 1024 * 1024;

/// How long calls may continue after the client has closed our stdin: a script that pipes requests in wants the replies.
const LAST_REPLIES: Duration = Duration::from_secs(1);

/// Serves stdin and stdout until the client closes stdin or `stop` is cancelled. Calls that run then are stopped.
pub fn serve_stdio(host: McpHost, stop: CancellationToken) -> BoxFuture<'static, io::Result<()>> {
    Box::pin(async move {
        let calls = stop.child_token();
        let server = ClientServer::new(Arc::new(host), calls.clone(), None)?;
        let (reader, writer) = stdio_pipes();
        serve(server, Box::new(reader), Box::new(writer), calls, stop).await
    })
}

/// Serves a client at the other end of a connection, until it leaves or `stop` is cancelled.
pub fn serve_connection(
    host: McpHost,
    connection: UnixStream,
    stop: CancellationToken,
) -> BoxFuture<'static, io::Result<()>> {
    Box::pin(async move {
        let calls = stop.child_token();
        let server = ClientServer::new(Arc::new(host), calls.clone(), None)?;
        let (reader, writer) = connection.into_split();
        serve(server, Box::new(reader), Box::new(writer), calls, stop).await
    })
}

async fn serve(
    server: ClientServer,
    reader: ClientInput,
    writer: ClientOutput,
    calls: CancellationToken,
    stop: CancellationToken,
) -> io::Result<()> {
    let transport = MessageLines {
        reader: BufReader::with_capacity(64 * 1024, reader),
        line: Vec::new(),
        discarding: false,
        writer: Arc::new(Mutex::new(writer)),
        calls,
        line_of_calls: CallLine::default(),
    };
    match serve_server_with_ct(server, transport, stop).await {
        Ok(running) => drop(running.waiting().await),
        // The client left, or we were stopped, before it introduced itself.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {}
        Err(error) => return Err(io::Error::other(error)),
    }
    Ok(())
}

/// Where lines come from.
type ClientInput = Box<dyn AsyncRead + Send + Unpin>;

/// Where lines go.
type ClientOutput = Box<dyn AsyncWrite + Send + Unpin>;

/// One JSON message a line.
///
/// Lines are read here and not by a codec of `tokio-util`: after a line that is too long, its reader ends once before it goes
/// on, which rmcp takes for the end of the client. The other two bounded readers differ on purpose: `acp` gives an agent up
/// whose line is too long and must see what is already there, and the runner's lines are borrowed from a chunk.
struct MessageLines {
    reader: BufReader<ClientInput>,
    /// What came of a line so far; kept here so that `receive` is cancel-safe.
    line: Vec<u8>,
    /// The rest of the line is of a message too large to keep.
    discarding: bool,
    writer: Arc<Mutex<ClientOutput>>,
    calls: CancellationToken,
    /// Calls in the order of their lines.
    line_of_calls: CallLine,
}

enum LineRead {
    Line,
    TooLarge,
    End,
}

impl MessageLines {
    /// Reads up to the end of a line. Cancel-safe.
    async fn read(&mut self) -> LineRead {
        loop {
            let available = match self.reader.fill_buf().await {
                // A last line may lack its end.
                Ok([]) if std::mem::take(&mut self.discarding) => return LineRead::TooLarge,
                Ok([]) if !self.line.is_empty() => return LineRead::Line,
                Ok([]) => return LineRead::End,
                Ok(available) => available,
                Err(error) => {
                    tracing::warn!(%error, "could not read stdin");
                    return LineRead::End;
                }
            };
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            let too_large = self.line.len() + taken > LARGEST;
            if !self.discarding && !too_large {
                self.line.extend_from_slice(&available[..taken]);
            }
            self.reader.consume(taken);
            if too_large {
                self.line.clear();
                self.discarding = true;
            }
            if end.is_some() {
                return if std::mem::take(&mut self.discarding) {
                    LineRead::TooLarge
                } else {
                    LineRead::Line
                };
            }
        }
    }

    /// Answers a message that could not be read. In a task of its own: the receiving future may be dropped
    /// at any await, and with it the answer, or half of it.
    fn refuse(&self, refused: &RefusedMessage) {
        let sent = send_line(Arc::clone(&self.writer), refused.answer());
        tokio::spawn(
            async {
                if let Err(error) = sent.await {
                    tracing::warn!(%error, "could not write to stdout");
                }
            }
            .boxed(),
        );
    }
}

impl Transport<RoleServer> for MessageLines {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        send(Arc::clone(&self.writer), message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            match self.read().await {
                LineRead::Line => {}
                LineRead::TooLarge => {
                    let why = format!("a message may have at most {LARGEST} bytes");
                    self.refuse(&RefusedMessage::unread(ErrorData::invalid_request(why, None)));
                    continue;
                }
                LineRead::End => {
                    let calls = self.calls.clone();
                    // Ends by itself, and with it what the calls started.
                    drop(tokio::spawn(
                        async move {
                            tokio::time::sleep(LAST_REPLIES).await;
                            calls.cancel();
                        }
                        .boxed(),
                    ));
                    return None;
                }
            }
            let line = std::mem::take(&mut self.line);
            if line.trim_ascii().is_empty() {
                continue;
            }
            match wire::message(&line) {
                Ok(mut message) => {
                    arrival::mark(&mut message, &self.line_of_calls);
                    return Some(message);
                }
                Err(refused) => self.refuse(&refused),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.writer.lock().await.shutdown().await
    }
}

async fn send(writer: Arc<Mutex<ClientOutput>>, message: TxJsonRpcMessage<RoleServer>) -> io::Result<()> {
    send_line(writer, serde_json::to_vec(&message)?).await
}

async fn send_line(writer: Arc<Mutex<ClientOutput>>, mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    let mut writer = writer.lock().await;
    writer.write_all(&line).await?;
    writer.flush().await
}
