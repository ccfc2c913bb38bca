//! Clients that connect: streamable HTTP on one address.
//!
//! Every request needs the bearer token, a `Host` that is ours and, from a browser, an `Origin` that we know. Bodies,
//! connections and sessions are bounded, and a client that sends too slowly is disconnected.

mod clients;
mod replies;
mod token;

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use cellwright_ownership::{DoorVisitor, Doorway};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use subtle::ConstantTimeEq as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use self::clients::HttpClients;
use self::replies::HttpSessions;
use self::token::ServerToken;
pub use self::token::{TokenError, TokenFile};
use crate::arrival;
use crate::host::McpHost;
use crate::server::ClientServer;
use crate::wire::{self, RefusedMessage};

/// Largest request.
const LARGEST: usize = 64 * 1024 * 1024;

/// Connections at once of those who have shown the token, and of those who have not.
const CONNECTIONS: usize = 256;
const STRANGERS: usize = 64;

/// Clients at once. One more replaces the client that has been silent for longest and has no stream open: many clients
/// leave without saying so.
const CLIENTS: usize = 64;

/// How long a client may take to send its headers, and how long for its body.
const SENDING: Duration = Duration::from_secs(30);

/// The longest headers.
const HEADERS: usize = 32 << 10;

/// How long a client may be silent before its session ends. Long, because an agent that thinks for an hour still wants
/// its variables.
const SILENCE: Duration = Duration::from_hours(8);

/// How soon a client whose connection broke is asked to come back. Its calls may have time limits.
const COMES_BACK: Duration = Duration::from_millis(500);

/// How long connections may take to end when we do.
const FAREWELL: Duration = Duration::from_secs(2);

/// Where to listen, and which clients may connect.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The address; port 0 for any free one.
    pub address: SocketAddr,
    /// Which file has the token.
    pub token: TokenFile,
    /// Further names we are reached by.
    pub hosts: Vec<String>,
    /// Web pages that may call us, as `https://example.org`.
    pub origins: Vec<String>,
}

/// Why the server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The address is not available.
    #[error("could not listen on {address}")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// There is no token.
    #[error(transparent)]
    Token(#[from] TokenError),
}

/// A server that listens already.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    token: ServerToken,
    options: HttpOptions,
}

impl HttpServer {
    /// Listens, and finds or makes the token.
    pub async fn bind(options: HttpOptions) -> Result<Self, HttpError> {
        let asked = options.address;
        let failed = |source| HttpError::Bind { address: asked, source };
        let listener = TcpListener::bind(asked).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let token = ServerToken::of(options.token.clone(), address)?;
        Ok(Self { listener, address, token, options })
    }

    /// Where clients connect to.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// What clients have to send.
    pub fn token(&self) -> &str {
        &self.token.text
    }

    /// The file that has it.
    pub fn token_file(&self) -> &Path {
        &self.token.path
    }

    /// Serves until `stop` is cancelled; then all sessions end.
    pub fn serve(self, mut host: McpHost, stop: CancellationToken) -> BoxFuture<'static, io::Result<()>> {
        Box::pin(async move {
            // Once for all clients: not every client that comes and goes needs a kernel.
            let trial = std::mem::take(&mut host.warm_up).then(|| host.clone());
            let trial = stop.child_token().run_until_cancelled_owned(async {
                if let Some(host) = trial {
                    host.try_python().await;
                }
            });
            let trial = AbortOnDropHandle::new(tokio::spawn(trial.boxed()));
            let gate = Arc::new(HttpGate::new(&self, host, &stop));
            let doorway = Doorway::new(STRANGERS, CONNECTIONS);
            let connections = TaskTracker::new();
            loop {
                let accepted = tokio::select! {
                    () = stop.cancelled() => break,
                    accepted = self.listener.accept() => accepted,
                };
                match accepted {
                    Ok((stream, _)) => {
                        let (gate, stop) = (Arc::clone(&gate), stop.clone());
                        let (visitor, turned_away) = doorway.enter();
                        connections.spawn(
                            async move {
                                let served = gate.connection(stream, stop, &visitor);
                                tokio::select! {
                                    () = served => {}
                                    _ = turned_away => tracing::debug!("a stranger made room for another"),
                                }
                            }
                            .boxed(),
                        );
                    }
                    // Out of descriptors, most likely; clients that go make room.
                    Err(error) => {
                        tracing::warn!(%error, "could not accept a connection");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                }
            }
            drop(trial);
            connections.close();
            drop(timeout(FAREWELL, connections.wait()).await); // connections that are still open are cut
            Ok(())
        })
    }
}

type HttpAnswer = Response<BoxBody<Bytes, Infallible>>;

/// What a request has to pass before the protocol.
struct HttpGate {
    token: String,
    service: StreamableHttpService<ClientServer, HttpSessions>,
    clients: Arc<HttpSessions>,
    guests: HttpClients,
}

impl HttpGate {
    fn new(server: &HttpServer, host: McpHost, stop: &CancellationToken) -> Self {
        let mut clients = LocalSessionManager::default();
        clients.session_config.keep_alive = Some(SILENCE);
        clients.session_config.sse_retry = Some(COMES_BACK);
        let clients = Arc::new(HttpSessions::new(clients));
        let mut config = StreamableHttpServerConfig::default()
            .with_cancellation_token(stop.child_token())
            .with_max_request_body_bytes(LARGEST)
            .with_sse_retry(Some(COMES_BACK))
            .with_allowed_hosts(server.hosts());
        config = if server.options.origins.is_empty() {
            config.enforce_origin_validation()
        } else {
            config.with_allowed_origins(server.options.origins.clone())
        };
        let (host, stop) = (Arc::new(host), stop.clone());
        let last = AtomicU64::new(0);
        let factory = move || {
            let number = last.fetch_add(1, Ordering::Relaxed) + 1;
            ClientServer::new(Arc::clone(&host), stop.child_token(), Some(number))
        };
        let service = StreamableHttpService::new(factory, Arc::clone(&clients), config);
        Self { token: server.token.text.clone(), service, clients, guests: HttpClients::default() }
    }

    async fn connection(self: Arc<Self>, stream: TcpStream, stop: CancellationToken, visitor: &DoorVisitor) {
        drop(stream.set_nodelay(true)); // slower without, but no worse
        let service = service_fn(|request| {
            let gate = Arc::clone(&self);
            async move { Ok::<_, Infallible>(gate.answer(request, visitor).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(SENDING)
            .max_buf_size(HEADERS)
            .serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended");
        }
    }

    async fn answer(&self, request: Request<Incoming>, visitor: &DoorVisitor) -> HttpAnswer {
        if !self.is_authorized(&request) {
            let mut answer = refusal(
                StatusCode::UNAUTHORIZED,
                "send the token cellwright printed when it started as `Authorization: Bearer TOKEN`",
            );
            answer.headers_mut().insert(WWW_AUTHENTICATE, "Bearer".parse().expect("a valid header"));
            return answer;
        }
        if !visitor.recognise() {
            return refusal(StatusCode::SERVICE_UNAVAILABLE, "too many connections are open; close one");
        }
        if request.uri().path() != "/mcp" {
            return refusal(StatusCode::NOT_FOUND, "the only path is /mcp");
        }
        let visit = session_of(request.headers()).map(|id| self.guests.visit(id));
        if visit.is_none() && !self.has_room().await {
            return refusal(StatusCode::SERVICE_UNAVAILABLE, "too many clients are connected; close one");
        }
        let (mut parts, body) = request.into_parts();
        let body = match received(body).await {
            Ok(body) => body,
            Err(refusal) => return refusal,
        };
        let leaves = parts.method == Method::DELETE;
        let is_json = parts
            .headers
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
        if let Some(visit) = visit.as_ref().filter(|_| parts.method == Method::POST) {
            arrival::mark_post(&mut parts, &body, visit.calls());
        }
        let body = wire::without_lone_surrogates(&body).map_or(body, Bytes::from);
        let mut answer = self.service.handle(Request::from_parts(parts, Full::new(body.clone()))).await;
        if is_json
            && answer.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE
            && let Err(refused) = wire::message(&body)
        {
            return malformed(&refused);
        }
        if leaves && answer.status() == StatusCode::ACCEPTED {
            // The Python SDK takes this alone for a success.
            *answer.status_mut() = StatusCode::NO_CONTENT;
        }
        match visit.or_else(|| session_of(answer.headers()).map(|id| self.guests.visit(id))) {
            Some(visit) => answer.map(|body| visit.until_sent(body).boxed()),
            None => answer,
        }
    }

    /// Whether one more client can come; one that seems to have left makes room for it.
    async fn has_room(&self) -> bool {
        let silent = {
            let sessions = self.clients.local.sessions.read().await;
            let silent = self.guests.longest_silent(sessions.keys());
            if sessions.len() < CLIENTS {
                return true;
            }
            silent
        };
        let Some(silent) = silent else { return false };
        if let Err(error) = self.clients.close_session(&silent).await {
            tracing::warn!(%error, "a client that was silent could not be let go");
        }
        true
    }

    fn is_authorized(&self, request: &Request<Incoming>) -> bool {
        let header =
            request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let token = header.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        token.is_some_and(|(_, token)| token.trim().as_bytes().ct_eq(self.token.as_bytes()).into())
    }
}

/// The whole of a body, if it is not too large and not too long in coming.
async fn received<B>(body: B) -> Result<Bytes, HttpAnswer>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>>,
{
    match timeout(SENDING, Limited::new(body, LARGEST).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let why = format!("a request may have at most {LARGEST} bytes");
            Err(refusal(StatusCode::PAYLOAD_TOO_LARGE, &why))
        }
        Ok(Err(_)) => Err(refusal(StatusCode::BAD_REQUEST, "the body could not be read")),
        Err(_) => Err(refusal(StatusCode::REQUEST_TIMEOUT, "the body took too long to arrive")),
    }
}

impl HttpServer {
    /// The names by which clients on this machine reach us, and those given by `--host`.
    fn hosts(&self) -> Vec<String> {
        let mut hosts = self.options.hosts.clone();
        hosts.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
        if !matches!(self.address.ip(), ip if ip.is_unspecified() || ip.is_loopback()) {
            hosts.push(match self.address.ip() {
                IpAddr::V4(ip) => ip.to_string(),
                IpAddr::V6(ip) => ip.to_string(),
            });
        }
        hosts
    }
}

/// The client's session, as its requests and the answer to its first one name it.
fn session_of(headers: &HeaderMap) -> Option<&str> {
    headers.get("mcp-session-id").and_then(|id| id.to_str().ok())
}

fn refusal(status: StatusCode, why: &str) -> HttpAnswer {
    let body = Full::new(Bytes::from(format!("{why}\n"))).boxed();
    Response::builder()
        .status(status)
        .header(CONTENT_TYPE, "text/plain")
        .body(body)
        .expect("a valid response")
}

/// The type is right, what is in it is not.
fn malformed(refused: &RefusedMessage) -> HttpAnswer {
    Response::builder()
        .status(StatusCode::BAD_REQUEST)
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(refused.answer())).boxed())
        .expect("a valid response")
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{StreamExt as _, stream};
    use http_body_util::StreamBody;
    use hyper::body::Frame;

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_end_is_refused_in_time() {
        let begins = stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"{")))]);
        let refused = received(StreamBody::new(begins.chain(stream::pending()))).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::REQUEST_TIMEOUT);
        assert_eq!(received(Full::new(Bytes::from_static(b"{}"))).await.unwrap(), "{}");
    }
}
