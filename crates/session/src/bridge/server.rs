//! The bridge's side of HTTP.
//!
//! Strangers are turned away by their headers; connections, bodies and the time they take are bounded.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use cellwright_ownership::{DoorVisitor, Doorway};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use subtle::ConstantTimeEq as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{BridgePass, Scopes, ToolHost};

const PATH: &str = "/v1/tool";

/// The longest request: arguments may hold whole files.
const LONGEST_REQUEST: usize = 64 << 20;

/// Connections at once of cells, which may call tools from many threads, and of those who have shown no token.
const CONNECTIONS: usize = 256;
const STRANGERS: usize = 64;

/// The longest headers.
const HEADERS: usize = 32 << 10;

/// How long a cell may take to send its headers, and how long for its body.
const SENDING: Duration = Duration::from_secs(30);

/// How much of a stranger's body is read, and for how long, so that the stranger gets to read why.
const OF_STRANGERS: usize = 1 << 20;
const FOR_STRANGERS: Duration = Duration::from_secs(2);

/// Answers the calls of all sessions.
pub(super) struct BridgeServer {
    pub(super) host: Arc<dyn ToolHost>,
    pub(super) address: SocketAddr,
    pub(super) scopes: Scopes,
    pub(super) tasks: TaskTracker,
    pub(super) stop: CancellationToken,
}

#[derive(Deserialize)]
struct ToolRequest {
    session: String,
    name: String,
    #[serde(default)]
    args: Map<String, Value>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum BridgeAnswer {
    Value { ok: bool, value: Value },
    Error { ok: bool, error: String },
}

struct BridgeRefusal(StatusCode, String);

impl BridgeRefusal {
    fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Self(status, why.into())
    }
}

impl BridgeServer {
    /// Serves until it is stopped; then what is under way is dropped.
    pub(super) async fn serve(self: Arc<Self>, listener: TcpListener) {
        let doorway = Doorway::new(STRANGERS, CONNECTIONS);
        loop {
            match self.stop.run_until_cancelled(listener.accept()).await {
                None => return,
                Some(Ok((stream, _))) => {
                    let server = Arc::clone(&self);
                    let (visitor, turned_away) = doorway.enter();
                    self.tasks.spawn(async move {
                        let connection = server.connection(stream, &visitor);
                        tokio::select! {
                            _ = server.stop.run_until_cancelled(connection) => {}
                            _ = turned_away => tracing::debug!("a stranger made room for another"),
                        }
                    });
                }
                // Out of descriptors, most likely; cells that are done make room.
                Some(Err(error)) => {
                    tracing::warn!(%error, "the tool bridge could not accept a connection");
                    sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// Serves one connection. A call whose caller hangs up is dropped.
    async fn connection(&self, stream: TcpStream, visitor: &DoorVisitor) {
        drop(stream.set_nodelay(true)); // slower without, but no worse
        let service =
            service_fn(async |request| Ok::<_, Infallible>(respond(self.answer(request, visitor).await)));
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(SENDING)
            .max_buf_size(HEADERS)
            .serve_connection(TokioIo::new(stream), service);
        if let Err(error) = served.await {
            tracing::debug!(%error, "a connection to the tool bridge ended");
        }
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        visitor: &DoorVisitor,
    ) -> Result<BridgeAnswer, BridgeRefusal> {
        let (head, mut body) = request.into_parts();
        let (key, pass) = match self.admit(&head) {
            Ok(admitted) => admitted,
            Err(refusal) => {
                self.discard(body, OF_STRANGERS, FOR_STRANGERS);
                return Err(refusal);
            }
        };
        if !visitor.recognise() {
            let why = "too many calls are open; try again";
            return Err(BridgeRefusal::new(StatusCode::SERVICE_UNAVAILABLE, why));
        }
        let request = match received(&mut body).await {
            Ok(request) => read(&head, &request)?,
            Err(refusal) => {
                self.discard(body, usize::MAX, SENDING);
                return Err(refusal);
            }
        };
        if request.session != key {
            return Err(stranger());
        }
        let host = pass.caller.get().unwrap_or_else(|| Arc::clone(&self.host));
        Ok(match host.call(pass.scope, request.name, Value::Object(request.args)).await {
            Ok(value) => BridgeAnswer::Value { ok: true, value },
            Err(error) => BridgeAnswer::Error { ok: false, error: error.0 },
        })
    }

    /// The session whose token comes with the request.
    fn admit(&self, head: &Parts) -> Result<(String, BridgePass), BridgeRefusal> {
        let header = |name| head.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        // A browser that was led here by a name of its own, or by a page, is no cell of ours.
        if header(HOST) != Some(&self.address.to_string()) || head.headers.contains_key(ORIGIN) {
            return Err(BridgeRefusal::new(StatusCode::FORBIDDEN, "only for cells of this machine"));
        }
        if head.uri.path() != PATH {
            return Err(BridgeRefusal::new(StatusCode::NOT_FOUND, format!("the only path is {PATH}")));
        }
        if head.method != Method::POST {
            return Err(BridgeRefusal::new(StatusCode::METHOD_NOT_ALLOWED, "the only method is POST"));
        }
        let token = header(AUTHORIZATION).and_then(|given| given.strip_prefix("Bearer ")).unwrap_or_default();
        let scopes = self.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        let known = scopes.iter().find(|(_, pass)| pass.token.as_bytes().ct_eq(token.as_bytes()).into());
        known.map(|(key, pass)| (key.clone(), pass.clone())).ok_or_else(stranger)
    }

    /// Reads on while the refusal is sent: a client that still sends when we hang up could not read it.
    fn discard(&self, mut body: Incoming, most: usize, within: Duration) {
        let reading = async move {
            let mut left = most;
            while left > 0
                && let Some(Ok(frame)) = body.frame().await
            {
                left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            }
        };
        self.tasks.spawn(self.stop.clone().run_until_cancelled_owned(timeout(within, reading)));
    }
}

fn stranger() -> BridgeRefusal {
    BridgeRefusal::new(StatusCode::UNAUTHORIZED, "unknown session or wrong token")
}

/// The whole of a body, if it is not too large and not too long in coming.
async fn received(body: &mut Incoming) -> Result<Bytes, BridgeRefusal> {
    let too_large = || {
        let why = format!("a call may have at most {LONGEST_REQUEST} bytes");
        BridgeRefusal::new(StatusCode::PAYLOAD_TOO_LARGE, why)
    };
    if body.size_hint().lower() > LONGEST_REQUEST as u64 {
        return Err(too_large());
    }
    match timeout(SENDING, Limited::new(body, LONGEST_REQUEST).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(BridgeRefusal::new(StatusCode::BAD_REQUEST, "the call could not be read")),
        Err(_) => Err(BridgeRefusal::new(StatusCode::REQUEST_TIMEOUT, "the call took too long to arrive")),
    }
}

fn read(head: &Parts, body: &[u8]) -> Result<ToolRequest, BridgeRefusal> {
    // Web pages cannot send this type to another site without asking it first.
    let kind = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        let why = "a call is sent with `Content-Type: application/json`";
        return Err(BridgeRefusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    serde_json::from_slice(body).map_err(|error| {
        let status = if error.is_data() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::BAD_REQUEST };
        BridgeRefusal::new(status, format!("the call could not be read: {error}"))
    })
}

fn respond(answer: Result<BridgeAnswer, BridgeRefusal>) -> Response<Full<Bytes>> {
    let (status, answer) = match answer {
        Ok(answer) => (StatusCode::OK, answer),
        Err(BridgeRefusal(status, error)) => (status, BridgeAnswer::Error { ok: false, error }),
    };
    let body = serde_json::to_vec(&answer).expect("an answer can be written");
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
    }
    response
}

#[cfg(test)]
mod tests;
