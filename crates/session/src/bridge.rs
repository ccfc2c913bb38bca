//! The tool bridge: cells call the tools of the client that runs them, over HTTP on this machine.
//!
//! `POST /v1/tool` with `{"session", "name", "args"}` is answered by `{"ok": true, "value"}` or `{"ok": false, "error"}`. Each
//! session has a token of its own, so no cell can speak for another session. Values are handed on whole.

mod server;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use cellwright_kernel::random_token;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::server::BridgeServer;
use crate::identity::SessionKey;

/// The tools that cells may call.
pub trait ToolHost: Send + Sync + 'static {
    /// Calls a tool and returns its value whole, or what went wrong. Dropped when the cell stops waiting.
    ///
    /// The caller's session is busy meanwhile: a tool that ran cells in the same session would wait for itself, so refuse
    /// that.
    fn call(&self, scope: ToolScope, name: String, args: Value) -> ToolAnswer<'_>;
}

/// What a tool will return.
pub type ToolAnswer<'a> = BoxFuture<'a, Result<Value, ToolCallError>>;

/// Why a tool returned no value. The text is raised in the cell.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, thiserror::Error)]
#[error("{0}")]
pub struct ToolCallError(pub String);

impl From<&str> for ToolCallError {
    fn from(why: &str) -> Self {
        Self(why.to_owned())
    }
}

impl fmt::Debug for dyn ToolHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToolHost")
    }
}

/// For sessions whose calls bring their own tools: there are no others.
#[derive(Debug, Default)]
pub struct OfCallers;

impl ToolHost for OfCallers {
    fn call(&self, _: ToolScope, _: String, _: Value) -> ToolAnswer<'_> {
        Box::pin(async { Err("no call runs here at the moment that has brought tools".into()) })
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

/// The caller of a tool.
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

type Scopes = Arc<Mutex<HashMap<String, BridgePass>>>;

#[derive(Clone)]
struct BridgePass {
    token: String,
    scope: ToolScope,
    caller: Caller,
}

/// A session's access to the bridge; gone with this.
pub(crate) struct BridgeAccess {
    pub(crate) url: String,
    pub(crate) token: String,
    pub(crate) scope: String,
    scopes: Scopes,
}

impl Drop for BridgeAccess {
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
        let server = BridgeServer { host, address, scopes: Arc::clone(&scopes), tasks: tasks.clone(), stop };
        tasks.spawn(Arc::new(server).serve(listener));
        Ok(Self { address, scopes })
    }

    /// Lets a session in. Its cells have the tools of `caller`, or else those the bridge was opened with.
    pub(crate) fn admit(&self, session: SessionKey, caller: Caller) -> BridgeAccess {
        let (token, scope) = (random_token(), random_token());
        let pass = BridgePass { token: token.clone(), scope: ToolScope { session }, caller };
        self.scopes.lock().unwrap_or_else(PoisonError::into_inner).insert(scope.clone(), pass);
        BridgeAccess {
            url: format!("http://{}", self.address),
            token,
            scope,
            scopes: Arc::clone(&self.scopes),
        }
    }
}
