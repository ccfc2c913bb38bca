//! Sessions that outlive their client: the same sessions, in a small process per user, behind a Unix socket.
//!
//! [`serve`] is that process, [`connect`] gives a [`SessionClient`](crate::SessionClient) that behaves like one of this process. The
//! socket lies in a folder of the user's own, and both sides check the user at the other end. Both must be the same version: a
//! daemon of another version exits if it has nothing to lose; otherwise the client reports it.
//!
//! One connection represents the client and stays open as long as it lives; each request has a connection of its
//! own, so a slow reader of one call holds up nothing else. Messages are JSON after their length.

mod client;
mod server;
mod start;
mod tools;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use cellwright_kernel::{InputAnswer, Question};
use cellwright_ownership::{PrivateFolderError, private_folder};
use futures_util::{SinkExt as _, StreamExt as _};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::net::UnixStream;
use tokio_util::bytes::Bytes;
use tokio_util::codec::{Framed, LengthDelimitedCodec};

pub(crate) use client::{DaemonConnection, FollowedSession};
pub use server::{ReadSettings, ServeSettings, serve};
pub use start::{DaemonDoor, DaemonSpawn, connect, leave_terminal};

use crate::bridge::ToolCallError;
use crate::call::{Call, CallEvent, Turn};
use crate::comm::Comm;
use crate::identity::SessionKey;
use crate::jobs::JobId;
use crate::journal::FollowFrom;
use crate::report::CallReport;
use crate::sessions::Force;

/// The longest message: a display of 256 MiB in base64, and what surrounds it.
const LONGEST: usize = 512 << 20;

/// Where a user's daemon is.
#[derive(Clone, Debug)]
pub struct DaemonPlace {
    folder: PathBuf,
}

/// A daemon could not be run or reached.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// Another one runs.
    #[error("a session daemon is already running at `{}`", socket.display())]
    Running {
        /// Its socket.
        socket: PathBuf,
    },
    /// Its folder is not the user's alone.
    #[error("the runtime folder cannot be used")]
    Folder(#[from] PrivateFolderError),
    /// A file could not be used.
    #[error("could not {action} `{}`", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// It was started and did not come up.
    #[error("the session daemon did not start: {0}")]
    NotStarted(String),
    /// It is of another version and has sessions.
    #[error(
        "a session daemon of version {theirs} still has sessions, and this is version {ours}; end them with that version, or stop the daemon (process {pid})"
    )]
    OtherVersion {
        /// Its version.
        theirs: String,
        /// Ours.
        ours: String,
        /// Its process.
        pid: u32,
    },
    /// It said something else than expected, or nothing.
    #[error("the session daemon did not answer as expected: {0}")]
    Confused(String),
}

impl DaemonPlace {
    /// The daemon whose socket and lock lie in `folder`, which should be the user's runtime folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.join("sessions.sock")
    }

    /// Where its diagnostics go when it is started by a client.
    pub fn log(&self) -> PathBuf {
        self.folder.join("sessions.log")
    }

    /// Held as long as it runs: a lock of the system ends with its process, so none is ever stale.
    fn lock(&self) -> PathBuf {
        self.folder.join("sessions.lock")
    }

    /// Held while a client starts it.
    fn start_lock(&self) -> PathBuf {
        self.folder.join("sessions.start")
    }

    /// Makes the folder, for its owner alone.
    fn prepare(&self) -> Result<(), DaemonError> {
        Ok(private_folder(&self.folder)?)
    }
}

/// The first words, which must not change between versions.
#[derive(Serialize, Deserialize)]
struct Hello {
    version: String,
}

/// The answer to [`Hello`], which must not change either.
#[derive(Serialize, Deserialize)]
struct Welcome {
    version: String,
    pid: u32,
}

/// What a connection is for.
#[derive(Serialize, Deserialize)]
enum ConnectionPurpose {
    /// Leave if there is nothing to lose; answered by whether it does. Must not change between versions.
    Retire,
    /// To stand for a client; answered by its number.
    Join,
    /// To ask something for a client.
    Request { client: u64, request: DaemonRequest },
}

#[derive(Serialize, Deserialize)]
pub(crate) enum DaemonRequest {
    Call(Box<Call>),
    Sessions,
    Variables {
        key: SessionKey,
        limit: usize,
    },
    Ask {
        key: SessionKey,
        question: Question,
    },
    Say {
        key: SessionKey,
        comm: Box<Comm>,
    },
    /// Answered by a result, and then by [`SessionEvent`](crate::SessionEvent)s.
    Follow {
        key: SessionKey,
        from: FollowFrom,
    },
    Interrupt {
        key: SessionKey,
    },
    Restart {
        key: SessionKey,
        force: Force,
    },
    End {
        key: SessionKey,
        force: Force,
    },
    Jobs,
    Wait {
        job: JobId,
        at_most: std::time::Duration,
    },
    StopJob {
        job: JobId,
    },
    ForgetJob {
        job: JobId,
    },
}

/// What a client says during a call.
#[derive(Serialize, Deserialize)]
enum CallMessage {
    Stop,
    Detach,
    /// The report has arrived.
    Received,
    Answer(InputAnswer),
    /// What the cell is whose turn has come.
    Turn(Turn),
    /// The result of a tool.
    ToolAnswer {
        number: u64,
        value: Result<Value, ToolCallError>,
    },
}

/// What a daemon says during a call, once it was accepted.
#[derive(Serialize, Deserialize)]
enum DaemonMessage {
    Event(CallEvent),
    Input {
        cell: usize,
        prompt: String,
        password: bool,
    },
    /// A cell's turn has come.
    Turn {
        cell: usize,
    },
    /// A cell calls a tool.
    Tool {
        number: u64,
        session: SessionKey,
        name: String,
        args: Value,
    },
    Finished(Arc<CallReport>),
}

/// One end of a connection.
struct DaemonWire {
    framed: Framed<UnixStream, LengthDelimitedCodec>,
}

impl DaemonWire {
    /// Over a connection to the same user; refuses anyone else.
    fn new(stream: UnixStream) -> io::Result<Self> {
        let peer = stream.peer_cred()?.uid();
        if peer != rustix::process::geteuid().as_raw() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the other end is another user's"));
        }
        let codec = LengthDelimitedCodec::builder().max_frame_length(LONGEST).new_codec();
        Ok(Self { framed: Framed::new(stream, codec) })
    }

    async fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        self.framed.send(encode(message)?).await
    }

    /// The next message; an error also when the other end has left. Cancel-safe.
    async fn receive<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        decode(self.framed.next().await)
    }
}

fn encode(message: &impl Serialize) -> io::Result<Bytes> {
    Ok(serde_json::to_vec(message)?.into())
}

fn decode<T: DeserializeOwned, B: AsRef<[u8]>>(frame: Option<io::Result<B>>) -> io::Result<T> {
    let frame = frame.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))??;
    Ok(serde_json::from_slice(frame.as_ref())?)
}
