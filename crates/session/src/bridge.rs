//! The tool bridge: cells call the tools of whoever runs them, over HTTP on this machine.
//!
//! `POST /v1/tool` with `{"session", "name", "args"}` is answered by `{"ok": true, "value"}` or `{"ok": false, "error"}`. Each
//! session has a token of its own, so no cell can speak for another session. Values are handed on whole.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::routing::post;
use axum::{Json, Router};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::identity::SessionKey;

/// The longest request: arguments may hold whole files.
const LONGEST_REQUEST: usize = 64 << 20;

/// The tools that cells may call.
pub trait ToolHost: Send + Sync + 'static {
    /// Calls a tool and returns its value whole, or what went wrong. Dropped when the cell stops waiting.
    ///
    /// The caller's session is busy meanwhile: a tool that ran cells in the same session would wait for itself, so refuse
    /// that.
    fn call(&self, scope: ToolScope, name: String, args: Value) -> BoxFuture<'_, Result<Value, String>>;
}

impl fmt::Debug for dyn ToolHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToolHost")
    }
}

/// For sessions whose calls bring their tools: there are none but theirs.
#[derive(Debug, Default)]
pub struct OfCallers;

impl ToolHost for OfCallers {
    fn call(&self, _: ToolScope, _: String, _: Value) -> BoxFuture<'_, Result<Value, String>> {
        Box::pin(async { Err("no call runs here at the moment that has brought tools".to_owned()) })
    }
}

/// The tools of the call that runs in a session, if it has brought any.
#[derive(Clone, Default)]
pub(crate) struct Caller(Arc<Mutex<Option<Arc<dyn ToolHost>>>>);

impl Caller {
    pub(crate) fn set(&self, tools: Option<Arc<dyn ToolHost>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = tools;
    }

    fn get(&self) -> Option<Arc<dyn ToolHost>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Who calls a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolScope {
    /// The session whose cell calls.
    pub session: SessionKey,
}

/// The server, one for all sessions.
pub(crate) struct Bridge {
    address: SocketAddr,
    scopes: Scopes,
}

type Scopes = Arc<Mutex<HashMap<String, Pass>>>;

#[derive(Clone)]
struct Pass {
    token: String,
    scope: ToolScope,
    caller: Caller,
}

/// A session's access to the bridge; gone with this.
pub(crate) struct Access {
    pub(crate) url: String,
    pub(crate) token: String,
    pub(crate) scope: String,
    scopes: Scopes,
}

impl Drop for Access {
    fn drop(&mut self) {
        self.scopes.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.scope);
    }
}

impl Bridge {
    /// Listens on this machine until `stop`.
    pub(crate) async fn open(
        host: Arc<dyn ToolHost>,
        tasks: &TaskTracker,
        stop: CancellationToken,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let scopes = Scopes::default();
        let router = Router::new()
            .route("/v1/tool", post(answer))
            .layer(DefaultBodyLimit::max(LONGEST_REQUEST))
            .with_state(Arc::new(Desk { host, address, scopes: Arc::clone(&scopes) }));
        let serving = axum::serve(listener, router);
        tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                ended = async { serving.await } => {
                    if let Err(error) = ended {
                        tracing::warn!(%error, "the tool bridge has ended");
                    }
                }
            }
        });
        Ok(Self { address, scopes })
    }

    /// Lets a session in. Its cells have the tools of `caller`, or else those the bridge was opened with.
    pub(crate) fn admit(&self, session: SessionKey, caller: Caller) -> Access {
        let (token, scope) = (random(), random());
        let pass = Pass { token: token.clone(), scope: ToolScope { session }, caller };
        self.scopes.lock().unwrap_or_else(PoisonError::into_inner).insert(scope.clone(), pass);
        Access { url: format!("http://{}", self.address), token, scope, scopes: Arc::clone(&self.scopes) }
    }
}

struct Desk {
    host: Arc<dyn ToolHost>,
    address: SocketAddr,
    scopes: Scopes,
}

#[derive(Deserialize)]
struct Request {
    session: String,
    name: String,
    #[serde(default)]
    args: Map<String, Value>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Answer {
    Value { ok: bool, value: Value },
    Error { ok: bool, error: String },
}

impl Answer {
    fn refusal(why: impl Into<String>) -> Json<Self> {
        Json(Self::Error { ok: false, error: why.into() })
    }
}

async fn answer(
    State(desk): State<Arc<Desk>>,
    headers: HeaderMap,
    request: Result<Json<Request>, axum::extract::rejection::JsonRejection>,
) -> (StatusCode, Json<Answer>) {
    // A browser that was led here by a name of its own, or by a page, is no cell of ours.
    let named = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    if named != Some(&desk.address.to_string()) || headers.contains_key(header::ORIGIN) {
        return (StatusCode::FORBIDDEN, Answer::refusal("only for cells of this machine"));
    }
    let bearer = headers.get(header::AUTHORIZATION).and_then(|given| given.to_str().ok());
    let bearer = bearer.and_then(|given| given.strip_prefix("Bearer ")).unwrap_or_default().to_owned();
    let request = match request {
        Ok(Json(request)) => request,
        Err(rejection) => return (rejection.status(), Answer::refusal(rejection.body_text())),
    };
    let pass = desk.scopes.lock().unwrap_or_else(PoisonError::into_inner).get(&request.session).cloned();
    let Some(Pass { scope, caller, .. }) = pass.filter(|pass| same(&pass.token, &bearer)) else {
        return (StatusCode::UNAUTHORIZED, Answer::refusal("unknown session or wrong token"));
    };
    let host = caller.get().unwrap_or_else(|| Arc::clone(&desk.host));
    match host.call(scope, request.name, Value::Object(request.args)).await {
        Ok(value) => (StatusCode::OK, Json(Answer::Value { ok: true, value })),
        Err(error) => (StatusCode::OK, Answer::refusal(error)),
    }
}

/// Compares in a time that tells nothing of where they differ.
fn same(ours: &str, theirs: &str) -> bool {
    ours.len() == theirs.len() && ours.bytes().zip(theirs.bytes()).fold(0, |acc, (a, b)| acc | (a ^ b)) == 0
}

fn random() -> String {
    let mut random = [0; 16];
    getrandom::fill(&mut random).expect("the system has random bytes");
    format!("{:032x}", u128::from_le_bytes(random))
}
