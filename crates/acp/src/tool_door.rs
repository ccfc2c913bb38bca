//! The door for agents to the tools of their notebook: an MCP server in this process, behind a socket.
//!
//! An agent gets `cellwright mcp --attach` as a server. That program passes lines on to the socket. The socket is in a
//! folder of the user alone, and a connection must be the same user's and name the token of a session that is open.

mod gate;
mod served;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_client_protocol_schema::v1::{EnvVariable, McpServer, McpServerStdio};
use cellwright_kernel::random_token;
use cellwright_mcp::{AttachedHost, McpHost, WorkspaceRoots, serve_connection};
use cellwright_ownership::{Leftovers, LockedFolder, private_folder};
use cellwright_tools::{OutsidePaths, SessionNames, Toolbox};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

pub(crate) use self::served::{BegunCall, INTRODUCES, ServedSession, ToolEvent, introduction};
use crate::kernel_state::lock;
use crate::task;

/// What the server is called. It hides a server of the user's own with this name in most agents.
pub(crate) const NAME: &str = "cellwright";

/// What it is called where the user's own server would win.
pub(crate) const OTHER_NAME: &str = "cellwrightnotebook";

/// The variables that tell [`SOCKET`] and token to the program that passes lines on.
pub const SOCKET: &str = "CELLWRIGHT_ATTACH";
/// See [`SOCKET`].
pub const TOKEN: &str = "CELLWRIGHT_ATTACH_TOKEN";

/// What the door answers to a token that it knows.
pub const WELCOME: &[u8] = b"ok\n";

/// How long a connection may take to name its token.
const GREETS_WITHIN: Duration = Duration::from_secs(5);

/// The longest token.
const LONGEST_TOKEN: usize = 128;

/// The name that the folders of doors begin with.
const PREFIX: &str = "door-";

/// How agents reach the door.
#[derive(Debug, Clone)]
pub struct DoorSetup {
    /// The program that passes lines on: this one.
    pub program: PathBuf,
    /// The user's folder for sockets.
    pub runtime: PathBuf,
}

/// Sessions by their tokens.
type KnownTokens = Arc<Mutex<HashMap<String, Arc<ServedSession>>>>;

/// The door of a kernel. It opens when an agent is about to use it.
#[derive(Debug)]
pub(crate) struct ToolDoor {
    setup: DoorSetup,
    toolbox: Toolbox,
    cwd: PathBuf,
    tokens: KnownTokens,
    open: Mutex<Option<OpenDoor>>,
}

#[derive(Debug)]
struct OpenDoor {
    socket: PathBuf,
    _folder: LockedFolder,
    _listening: AbortOnDropHandle<()>,
}

/// A session's right to the tools. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct DoorPass {
    tokens: KnownTokens,
    token: String,
    /// What the agent starts.
    pub(crate) server: McpServer,
}

impl ToolDoor {
    pub(crate) fn new(setup: DoorSetup, toolbox: Toolbox, cwd: &Path) -> Self {
        Self { setup, toolbox, cwd: cwd.to_owned(), tokens: Arc::default(), open: Mutex::default() }
    }

    /// Lets a session in, under a token of its own.
    pub(crate) fn admit(&self, session: Arc<ServedSession>, name: &str) -> io::Result<DoorPass> {
        let socket = self.socket()?;
        let token = random_token();
        lock(&self.tokens).insert(token.clone(), session);
        let socket = socket.to_string_lossy().into_owned();
        let env = vec![EnvVariable::new(SOCKET, socket), EnvVariable::new(TOKEN, token.clone())];
        let arguments = vec!["mcp".to_owned(), "--attach".to_owned()];
        let server = McpServerStdio::new(name, self.setup.program.clone()).args(arguments).env(env);
        Ok(DoorPass { tokens: Arc::clone(&self.tokens), token, server: McpServer::Stdio(server) })
    }

    /// Where the door is. Opens it if needed.
    fn socket(&self) -> io::Result<PathBuf> {
        let mut open = lock(&self.open);
        if let Some(open) = &*open {
            return Ok(open.socket.clone());
        }
        private_folder(&self.setup.runtime).map_err(io::Error::other)?;
        let folder = LockedFolder::new_in(&self.setup.runtime, PREFIX, Leftovers::Everything)?;
        let socket = folder.path().join("s");
        let listener = UnixListener::bind(&socket)?;
        let host = McpHost {
            toolbox: self.toolbox.clone(),
            start: self.cwd.clone(),
            roots: WorkspaceRoots::Fixed(Vec::new()),
            outside: OutsidePaths::Refused,
            names: SessionNames::shared(NAME.parse().expect("a valid name")),
            daemon: None,
            warm_up: false,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            attached: None,
        };
        let listening = task::spawn(listen(listener, host, Arc::clone(&self.tokens)));
        *open = Some(OpenDoor { socket: socket.clone(), _folder: folder, _listening: listening });
        Ok(socket)
    }
}

impl Drop for DoorPass {
    fn drop(&mut self) {
        lock(&self.tokens).remove(&self.token);
    }
}

async fn listen(listener: UnixListener, host: McpHost, tokens: KnownTokens) {
    let mut serving = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(serving.spawn(serve(stream, host.clone(), Arc::clone(&tokens)))),
                Err(error) => {
                    tracing::warn!(%error, "no agent can reach the tools");
                    tokio::time::sleep(Duration::from_secs(1)).await; // out of descriptors, say
                }
            },
            Some(_) = serving.join_next() => {}
        }
    }
}

async fn serve(mut stream: UnixStream, host: McpHost, tokens: KnownTokens) {
    let Ok(Ok(Some(session))) = timeout(GREETS_WITHIN, admitted(&mut stream, &tokens)).await else {
        return tracing::warn!("a connection without a valid token was refused");
    };
    let host = McpHost { attached: Some(session as Arc<dyn AttachedHost>), ..host };
    if let Err(error) = serve_connection(host, stream, CancellationToken::new()).await {
        tracing::debug!(%error, "an agent left its tools");
    }
}

/// The session that a connection is for. `None` for another user's, or with an unknown token.
async fn admitted(stream: &mut UnixStream, tokens: &KnownTokens) -> io::Result<Option<Arc<ServedSession>>> {
    if stream.peer_cred()?.uid() != rustix::process::geteuid().as_raw() {
        return Ok(None);
    }
    let mut token = Vec::new();
    loop {
        match stream.read_u8().await? {
            b'\n' => break,
            _ if token.len() == LONGEST_TOKEN => return Ok(None),
            byte => token.push(byte),
        }
    }
    let session = String::from_utf8(token).ok().and_then(|token| lock(tokens).get(&token).cloned());
    if session.is_some() {
        stream.write_all(WELCOME).await?;
    }
    Ok(session)
}
