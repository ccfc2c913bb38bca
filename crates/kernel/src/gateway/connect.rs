//! Connections to a server: direct or through a proxy, with TLS where its URL asks for it.
//!
//! REST requests and websockets both run on these, so both honour `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`,
//! `SSL_CERT_FILE` and `SSL_CERT_DIR`.

mod proxy;
mod tls;

use std::error::Error;
use std::io;
use std::iter::successors;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;
use url::{Host, Url};

use self::proxy::Route;
pub(super) use self::proxy::{HttpPurpose, Proxy};
use super::address::Address;
use super::rest::GatewayError;
use cellwright_cell::with_causes;

/// How long it may take to reach a server: its name, its proxy and TLS included.
const CONNECT: Duration = Duration::from_secs(5);

/// How long an address of a name may stay silent before the next one is tried beside it.
const NEXT_ADDRESS: Duration = Duration::from_millis(250);

/// A stream of bytes both ways, whatever it is made of.
pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// A connection to a server, ready for HTTP.
pub(super) struct HttpConnection {
    pub(super) stream: Box<dyn ByteStream>,
    /// The proxy that reads our requests: they name the whole URL then.
    pub(super) forwarder: Option<Proxy>,
}

impl HttpConnection {
    pub(super) async fn open(address: &Address, purpose: HttpPurpose) -> Result<Self, GatewayError> {
        match timeout(CONNECT, Self::open_in_any_time(address, purpose)).await {
            Ok(opened) => opened,
            Err(_) => Err(GatewayError::Timeout { address: address.to_string(), limit: CONNECT }),
        }
    }

    async fn open_in_any_time(address: &Address, purpose: HttpPurpose) -> Result<Self, GatewayError> {
        let url = address.url();
        let through_proxy = |proxy: &Proxy, failure: ConnectionFailure| GatewayError::Proxy {
            address: address.to_string(),
            proxy: proxy.to_string(),
            why: failure.why(),
        };
        let (mut stream, forwarder) = match proxy::route(proxy::of_environment(), url, purpose) {
            Route::Direct => {
                let foreign = || {
                    let why = "another process listens there than the gateway that was started";
                    ConnectionFailure::Broken(why.to_owned()).at(address)
                };
                // Asked twice: a socket that was there before and after is the one that took the connection.
                if !address.is_its_process() {
                    return Err(foreign());
                }
                let stream = tcp(url).await;
                if !address.is_its_process() {
                    return Err(foreign());
                }
                (stream.map_err(|error| ConnectionFailure::of(&error).at(address))?, None)
            }
            Route::Forwarded(proxy) => {
                let stream = proxy.connect().await.map_err(|failure| through_proxy(&proxy, failure))?;
                (stream, Some(proxy))
            }
            Route::Tunnel(proxy) => {
                (proxy.tunnel(url).await.map_err(|failure| through_proxy(&proxy, failure))?, None)
            }
        };
        if url.scheme() == "https" {
            stream = tls::secure(stream, url).await.map_err(|failure| failure.at(address))?;
        }
        Ok(Self { stream, forwarder })
    }
}

/// Why a connection could not be made, or broke.
#[derive(Debug)]
pub(super) enum ConnectionFailure {
    Tls(String),
    Broken(String),
}

impl ConnectionFailure {
    pub(super) fn of(error: &(dyn Error + 'static)) -> Self {
        let is_tls = successors(Some(error), |&cause| cause.source()).any(|cause| {
            // An `io::Error` does not count what it wraps among its causes.
            match cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
                Some(wrapped) => wrapped.is::<rustls::Error>(),
                None => cause.is::<rustls::Error>(),
            }
        });
        let why = with_causes(error);
        if is_tls { Self::Tls(why) } else { Self::Broken(why) }
    }

    pub(super) fn at(self, address: &Address) -> GatewayError {
        let address = address.to_string();
        match self {
            Self::Tls(why) => GatewayError::Tls { address, why },
            Self::Broken(why) => GatewayError::Unreachable { address, why },
        }
    }

    pub(super) fn why(self) -> String {
        let (Self::Tls(why) | Self::Broken(why)) = self;
        why
    }
}

/// Starts HTTP on a connection. It goes on for as long as the handle is kept.
pub(super) async fn http(
    stream: Box<dyn ByteStream>,
) -> hyper::Result<(SendRequest<Full<Bytes>>, AbortOnDropHandle<()>)> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let driver = async move {
        // The caller that waits for an answer gets the error.
        drop(connection.with_upgrades().await);
    };
    Ok((sender, AbortOnDropHandle::new(tokio::spawn(driver))))
}

/// Connects to whichever address of the URL's host answers first. They are tried in the system's order, which knows what
/// can be reached best; one that stays silent does not hold up the next.
async fn tcp(url: &Url) -> io::Result<Box<dyn ByteStream>> {
    let mut addresses = addresses(url).await?.into_iter();
    let mut attempts = FuturesUnordered::new();
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
    loop {
        let next = addresses.next();
        let may_have_more = next.is_some();
        attempts.extend(next.map(TcpStream::connect));
        tokio::select! {
            attempt = attempts.next() => match attempt {
                Some(Ok(stream)) => {
                    stream.set_nodelay(true)?;
                    return Ok(Box::new(PromptStream(stream)));
                }
                Some(Err(error)) => failure = error,
                None => return Err(failure),
            },
            () = sleep(NEXT_ADDRESS), if may_have_more => {}
        }
    }
}

async fn addresses(url: &Url) -> io::Result<Vec<SocketAddr>> {
    let port = url.port_or_known_default().unwrap_or_default();
    Ok(match url.host() {
        Some(Host::Domain(name)) => lookup_host((name, port)).await?.collect(),
        Some(Host::Ipv4(ip)) => vec![(ip, port).into()],
        Some(Host::Ipv6(ip)) => vec![(ip, port).into()],
        None => Vec::new(),
    })
}

/// A connection that acknowledges what it reads at once. A server that sends two small messages waits with the second for
/// the acknowledgement of the first, which systems delay by 40 ms.
struct PromptStream(TcpStream);

impl AsyncRead for PromptStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        #[cfg(target_os = "linux")]
        let _ = rustix::net::sockopt::set_tcp_quickack(&self.0, true); // slower without, and no worse
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for PromptStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
