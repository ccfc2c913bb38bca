//! One websocket to a kernel behind a server.

mod head;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use cellwright_jupyter::websocket::{self, WebsocketError, WebsocketFrame};
use cellwright_jupyter::{Channel, JupyterMessage};
use futures_util::{SinkExt as _, StreamExt as _};
use http::HeaderValue;
use http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::error::{ProtocolError, SubProtocolError};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use self::head::WholeHead;
use super::address::Address;
use super::connect::{ByteStream, ConnectionFailure, HttpConnection, HttpPurpose};
use super::rest::{GatewayError, refusal};

/// How long a server may take to open a websocket; it may be waiting for the kernel.
const OPEN: Duration = Duration::from_secs(30);

/// The longest message. What a kernel shows may be large, what a server may make us hold has a limit.
const LONGEST: usize = 1 << 30;

/// An open websocket.
pub(super) struct Socket {
    stream: WebSocketStream<CountedStream>,
    pub(super) way: ServerDialect,
}

/// How a server is spoken to, found out once.
#[derive(Clone)]
pub(super) struct ServerDialect {
    framing: Framing,
    /// A server that keeps what a lost connection missed gives it to the next one with the same session.
    session: String,
    /// How many bytes have come since the last message.
    pub(super) arriving: Arc<AtomicUsize>,
}

#[derive(Clone, Copy)]
enum Framing {
    V1,
    Json,
}

/// What came.
pub(super) enum Arrival {
    Message(Channel, Box<JupyterMessage>),
    /// Something that needs no answer from us, or cannot be read.
    Other(Option<WebsocketError>),
}

impl Socket {
    /// Opens the channels of a kernel for the first time.
    pub(super) async fn open(address: &Address, kernel: &str, session: &str) -> Result<Self, GatewayError> {
        let new =
            ServerDialect { framing: Framing::V1, session: session.to_owned(), arriving: Arc::default() };
        if let Some(socket) = Self::within_limit(address, kernel, new).await? {
            return Ok(socket);
        }
        // An old server does not answer the offer, which ends the connection as the standard has it. Under the same
        // name the next one would be mixed up with it.
        let old = ServerDialect {
            framing: Framing::Json,
            session: format!("{session}-json"),
            arriving: Arc::default(),
        };
        Self::again(address, kernel, old).await
    }

    /// Opens the channels of a kernel as they were.
    pub(super) async fn again(
        address: &Address,
        kernel: &str,
        way: ServerDialect,
    ) -> Result<Self, GatewayError> {
        let opened = Self::within_limit(address, kernel, way).await?;
        opened.ok_or_else(|| GatewayError::NotJupyter {
            address: address.to_string(),
            why: "it no longer speaks as it did".to_owned(),
        })
    }

    async fn within_limit(
        address: &Address,
        kernel: &str,
        way: ServerDialect,
    ) -> Result<Option<Self>, GatewayError> {
        match timeout(OPEN, Box::pin(Self::shake_hands(address, kernel, way))).await {
            Ok(opened) => opened,
            Err(_) => Err(GatewayError::Timeout { address: address.to_string(), limit: OPEN }),
        }
    }

    /// None when the server does not know the framing.
    async fn shake_hands(
        address: &Address,
        kernel: &str,
        way: ServerDialect,
    ) -> Result<Option<Self>, GatewayError> {
        let unreachable =
            |error: &(dyn std::error::Error + 'static)| ConnectionFailure::of(error).at(address);
        let mut url = address.at(&format!("api/kernels/{kernel}/channels"));
        url.query_pairs_mut().append_pair("session_id", &way.session);
        let scheme = if url.scheme() == "https" { "wss" } else { "ws" };
        url.set_scheme(scheme).expect("a web scheme becomes another");
        let mut request = url.as_str().into_client_request().map_err(|error| unreachable(&error))?;
        let headers = request.headers_mut();
        if let Framing::V1 = way.framing {
            headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(websocket::V1));
        }
        if let Some(authorization) = address.authorization() {
            headers.insert(AUTHORIZATION, authorization.map_err(|error| unreachable(&error))?);
        }
        let connection = HttpConnection::open(address, HttpPurpose::Websocket).await?;
        let limits = WebSocketConfig::default().max_message_size(Some(LONGEST)).max_frame_size(Some(LONGEST));
        let stream = Box::new(WholeHead::new(connection.stream));
        let stream = CountedStream { stream, arriving: Arc::clone(&way.arriving) };
        let opened = client_async_with_config(request, stream, Some(limits)).await;
        match opened {
            Ok((stream, _)) => Ok(Some(Self { stream, way })),
            Err(tungstenite::Error::Protocol(ProtocolError::SecWebSocketSubProtocolError(
                SubProtocolError::NoSubProtocol,
            ))) => Ok(None),
            Err(tungstenite::Error::Http(answer)) => {
                let (head, text) = answer.into_parts();
                let text = text.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
                Err(refusal(address, &head, "such kernel", &text))
            }
            Err(error) => Err(unreachable(&error)),
        }
    }

    pub(super) async fn send(
        &mut self,
        channel: Channel,
        message: &JupyterMessage,
    ) -> Result<(), ConnectionFailure> {
        let frame = match self.way.framing {
            Framing::V1 => websocket::encode_v1(channel.name(), message),
            Framing::Json => websocket::encode_json(channel.name(), message)
                .map_err(|error| ConnectionFailure::of(&error))?,
        };
        let frame = match frame {
            WebsocketFrame::Binary(bytes) => tungstenite::Message::Binary(bytes),
            WebsocketFrame::Text(text) => {
                tungstenite::Message::Text(Utf8Bytes::try_from(text).expect("JSON is UTF-8"))
            }
        };
        self.stream.send(frame).await.map_err(|error| ConnectionFailure::of(&error))
    }

    pub(super) async fn ping(&mut self) -> Result<(), ConnectionFailure> {
        let ping = tungstenite::Message::Ping(Bytes::new());
        self.stream.send(ping).await.map_err(|error| ConnectionFailure::of(&error))
    }

    /// What comes next; `Err` with the reason when the connection is lost. Cancel-safe.
    pub(super) async fn recv(&mut self) -> Result<Arrival, ConnectionFailure> {
        let next = self.stream.next().await;
        self.way.arriving.store(0, Ordering::Relaxed);
        let frame = match next {
            Some(Ok(tungstenite::Message::Binary(bytes))) => WebsocketFrame::Binary(bytes),
            Some(Ok(tungstenite::Message::Text(text))) => WebsocketFrame::Text(text.into()),
            Some(Ok(tungstenite::Message::Close(reason))) => {
                let reason = reason.map(|reason| format!(" ({})", reason.reason)).unwrap_or_default();
                let why = format!("the server closed the connection{reason}");
                return Err(ConnectionFailure::Broken(why));
            }
            Some(Ok(_)) => return Ok(Arrival::Other(None)),
            Some(Err(error)) => return Err(ConnectionFailure::of(&error)),
            None => {
                let why = "the server closed the connection".to_owned();
                return Err(ConnectionFailure::Broken(why));
            }
        };
        let decoded = match (self.way.framing, &frame) {
            (Framing::V1, WebsocketFrame::Binary(bytes)) => websocket::decode_v1(bytes),
            // A server's own words may come in the old way.
            (Framing::V1, WebsocketFrame::Text(_)) | (Framing::Json, _) => websocket::decode_json(&frame),
        };
        Ok(match decoded {
            Ok((channel, message)) => match Channel::from_name(&channel) {
                Some(channel) => Arrival::Message(channel, Box::new(message)),
                None => Arrival::Other(None),
            },
            Err(error) => Arrival::Other(Some(error)),
        })
    }

    pub(super) async fn close(mut self) {
        drop(self.stream.close(None).await); // the connection may be lost already
    }
}

/// Counts what it reads.
struct CountedStream {
    stream: Box<dyn ByteStream>,
    arriving: Arc<AtomicUsize>,
}

impl AsyncRead for CountedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.arriving.fetch_add(buffer.filled().len() - before, Ordering::Relaxed);
        read
    }
}

impl AsyncWrite for CountedStream {
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
