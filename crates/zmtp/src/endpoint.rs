//! Where sockets live: `tcp://127.0.0.1:5555`, `tcp://[::1]:0`, `ipc:///run/user/1000/kernel-1`.

use std::fmt;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// An address to bind or to connect to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// A host (name or address, `*` for every interface when binding) and a port; 0 lets the system choose.
    Tcp {
        /// Without the brackets of an IPv6 address.
        host: String,
        /// 0 when binding means any free port.
        port: u16,
    },
    /// A Unix socket.
    Ipc(PathBuf),
}

/// The text is not an endpoint we know.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not an endpoint; expected `tcp://HOST:PORT` or `ipc://PATH`")]
pub struct EndpointError(String);

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let invalid = || EndpointError(text.to_owned());
        if let Some(path) = text.strip_prefix("ipc://").filter(|path| !path.is_empty()) {
            return Ok(Self::Ipc(path.into()));
        }
        let (host, port) =
            text.strip_prefix("tcp://").and_then(|rest| rest.rsplit_once(':')).ok_or_else(invalid)?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let port = if port == "*" { 0 } else { port.parse().map_err(|_| invalid())? };
        if host.is_empty() {
            return Err(invalid());
        }
        Ok(Self::Tcp { host: host.to_owned(), port })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "tcp://[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "tcp://{host}:{port}"),
            Self::Ipc(path) => write!(f, "ipc://{}", path.display()),
        }
    }
}

/// Either kind of byte stream.
pub(crate) trait EndpointStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> EndpointStream for S {}

impl Endpoint {
    pub(crate) async fn connect(&self) -> io::Result<Box<dyn EndpointStream>> {
        match self {
            Self::Tcp { host, port } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                // On this machine, with nobody listening, the system may choose the port we call as the one to call
                // from: the connection is then to ourselves, and would keep the real peer from binding.
                if stream.local_addr()? == stream.peer_addr()? {
                    return Err(io::ErrorKind::ConnectionRefused.into());
                }
                prompt(stream)
            }
            Self::Ipc(path) => Ok(Box::new(UnixStream::connect(path).await?)),
        }
    }
}

/// Small messages leave at once.
fn prompt(stream: TcpStream) -> io::Result<Box<dyn EndpointStream>> {
    stream.set_nodelay(true)?;
    Ok(Box::new(stream))
}

/// A bound endpoint. A Unix socket's file is removed on drop.
pub(crate) enum EndpointListener {
    Tcp(TcpListener),
    Ipc { listener: UnixListener, _file: SocketFile },
}

pub(crate) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0)); // it may have been removed before
    }
}

impl EndpointListener {
    /// Binds, and says where: the port is known when 0 was asked for.
    pub(crate) async fn bind(endpoint: &Endpoint) -> io::Result<(Self, Endpoint)> {
        match endpoint {
            Endpoint::Tcp { host, port } => {
                let address = if host == "*" { "0.0.0.0" } else { host.as_str() };
                let listener = TcpListener::bind((address, *port)).await?;
                let port = listener.local_addr()?.port();
                Ok((Self::Tcp(listener), Endpoint::Tcp { host: host.clone(), port }))
            }
            Endpoint::Ipc(path) => {
                let listener = bind_unix(path).await?;
                Ok((Self::Ipc { listener, _file: SocketFile(path.clone()) }, endpoint.clone()))
            }
        }
    }

    pub(crate) async fn accept(&self) -> io::Result<Box<dyn EndpointStream>> {
        match self {
            Self::Tcp(listener) => listener.accept().await.and_then(|(stream, _)| prompt(stream)),
            Self::Ipc { listener, .. } => Ok(Box::new(listener.accept().await?.0)),
        }
    }
}

/// A killed process leaves a socket file that nobody listens on. Such a file is replaced.
async fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(taken) if taken.kind() == io::ErrorKind::AddrInUse => match UnixStream::connect(path).await {
            Err(refused) if refused.kind() == io::ErrorKind::ConnectionRefused && is_socket(path) => {
                std::fs::remove_file(path)?;
                UnixListener::bind(path)
            }
            _ => Err(taken),
        },
        bound => bound,
    }
}

fn is_socket(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|file| file.file_type().is_socket())
}
