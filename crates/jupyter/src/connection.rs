//! How to reach a kernel: connection files, and addresses for kernels about to start.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use cellwright_zmtp::Endpoint;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::net::TcpSocket;
use uuid::Uuid;

use crate::Channel;
use crate::kernel_folder::KernelFolder;
use cellwright_ownership::private_folder;

/// What a connection file says. Fields we do not know, among them the keys of encrypted connections, are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConnectionInfo {
    /// How the sockets are reached.
    #[serde(default)]
    pub transport: SocketTransport,
    /// A host; with [`SocketTransport::Ipc`] the path that every socket's path starts with.
    #[serde(default = "localhost")]
    pub ip: String,
    /// Requests.
    pub shell_port: u16,
    /// Requests that must not wait behind a cell.
    pub control_port: u16,
    /// The kernel's questions to the user.
    pub stdin_port: u16,
    /// Outputs and status, for everyone.
    pub iopub_port: u16,
    /// Signs of life.
    pub hb_port: u16,
    /// Signs every message; empty for none.
    #[serde(default)]
    pub key: String,
    /// How it signs.
    #[serde(default = "hmac_sha256")]
    pub signature_scheme: String,
    /// Which kernelspec was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_name: Option<String>,
    /// Fields we do not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// How sockets are reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SocketTransport {
    /// Over the network.
    #[default]
    Tcp,
    /// Through Unix sockets.
    Ipc,
}

fn localhost() -> String {
    "127.0.0.1".to_owned()
}

fn hmac_sha256() -> String {
    "hmac-sha256".to_owned()
}

/// Why a connection file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionFileError {
    /// It cannot be read.
    #[error("could not read connection file `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not a connection file.
    #[error("`{}` is not a connection file", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
}

/// A kernel is reached in a way we do not speak.
#[derive(Debug, thiserror::Error)]
pub enum UnsupportedConnection {
    /// Another hash.
    #[error("signature scheme `{0}` is not supported; only hmac-sha256 is")]
    SignatureScheme(String),
    /// CURVE.
    #[error("the kernel wants an encrypted connection (CurveZMQ), which is not supported")]
    Encryption,
}

impl ConnectionInfo {
    /// Reads a connection file.
    pub fn read(path: &Path) -> Result<Self, ConnectionFileError> {
        let text = std::fs::read(path)
            .map_err(|source| ConnectionFileError::Read { path: path.to_owned(), source })?;
        serde_json::from_slice(&text)
            .map_err(|source| ConnectionFileError::Malformed { path: path.to_owned(), source })
    }

    /// A connection on this machine with a new key. Port 0 lets a server choose.
    pub fn local(
        transport: SocketTransport,
        ip: String,
        [shell, control, stdin, iopub, hb]: [u16; 5],
    ) -> Self {
        Self {
            transport,
            ip,
            shell_port: shell,
            control_port: control,
            stdin_port: stdin,
            iopub_port: iopub,
            hb_port: hb,
            key: Uuid::new_v4().to_string(),
            signature_scheme: hmac_sha256(),
            kernel_name: None,
            extra: Map::new(),
        }
    }

    /// Where a channel's socket is.
    pub fn endpoint(&self, channel: Channel) -> Endpoint {
        self.address(match channel {
            Channel::Shell => self.shell_port,
            Channel::Control => self.control_port,
            Channel::Stdin => self.stdin_port,
            Channel::Iopub => self.iopub_port,
        })
    }

    /// Where the heartbeat's socket is.
    pub fn heartbeat_endpoint(&self) -> Endpoint {
        self.address(self.hb_port)
    }

    fn address(&self, port: u16) -> Endpoint {
        match self.transport {
            SocketTransport::Tcp => Endpoint::Tcp { host: self.ip.clone(), port },
            SocketTransport::Ipc => Endpoint::Ipc(format!("{}-{port}", self.ip).into()),
        }
    }

    /// Says so when we cannot talk to this kernel at all.
    pub fn check_supported(&self) -> Result<(), UnsupportedConnection> {
        let present = |name| self.extra.get(name).is_some_and(|key: &Value| !key.is_null() && key != "");
        if !self.key.is_empty() && self.signature_scheme != hmac_sha256() {
            return Err(UnsupportedConnection::SignatureScheme(self.signature_scheme.clone()));
        }
        if present("curve_publickey") || present("curve_serverkey") {
            return Err(UnsupportedConnection::Encryption);
        }
        Ok(())
    }
}

/// A connection file of ours, readable by its owner only, removed on drop.
#[derive(Debug)]
pub struct ConnectionFile {
    path: PathBuf,
}

impl ConnectionFile {
    /// Writes `kernel-ID.json` into a folder, which is made when missing. Nobody sees half a file.
    pub fn create(folder: &Path, info: &ConnectionInfo) -> io::Result<Self> {
        private_folder(folder)?;
        let path = folder.join(format!("kernel-{}.json", Uuid::new_v4()));
        let mut file = tempfile::NamedTempFile::new_in(folder)?; // 0600 from the start
        file.write_all(&serde_json::to_vec_pretty(info)?)?;
        file.persist_noclobber(&path).map_err(|failed| failed.error)?;
        Ok(Self { path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ConnectionFile {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.path)); // the kernel may have removed it first
    }
}

/// Addresses that belong to a kernel about to start. Keep it until the kernel has ended.
#[derive(Debug)]
pub struct ReservedAddresses {
    /// For the connection file.
    pub info: ConnectionInfo,
    #[expect(dead_code, reason = "held for what its drop frees")]
    ports: Vec<TcpSocket>,
}

/// The longest path of a Unix socket that every system takes, with room for `-5`.
pub(crate) const SOCKET_PATH: usize = 100;

impl ReservedAddresses {
    /// Unix sockets in a folder, which goes with them.
    pub fn ipc(folder: &KernelFolder) -> io::Result<Self> {
        let ip = folder.path().join("s").to_string_lossy().into_owned();
        if ip.len() > SOCKET_PATH {
            let message = format!("`{ip}` is too long for a Unix socket; choose a shorter folder");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let info = ConnectionInfo::local(SocketTransport::Ipc, ip, [1, 2, 3, 4, 5]);
        Ok(Self { info, ports: Vec::new() })
    }

    /// Five free ports.
    ///
    /// On Linux they stay bound, without listening. Then the system does not hand them out as free ports, but the kernel
    /// gets them, because it asks for them by number and with `SO_REUSEADDR`, as `ZeroMQ` does. On other systems they are
    /// freed here; if another process takes one meanwhile, the start fails and must be tried again.
    pub fn tcp(ip: IpAddr) -> io::Result<Self> {
        let mut ports = [0; 5];
        let mut sockets = Vec::new();
        for port in &mut ports {
            let socket = if ip.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            socket.set_reuseaddr(true)?;
            socket.bind(SocketAddr::new(ip, 0))?;
            *port = socket.local_addr()?.port();
            sockets.push(socket);
        }
        if !cfg!(target_os = "linux") {
            sockets.clear();
        }
        let info = ConnectionInfo::local(SocketTransport::Tcp, ip.to_string(), ports);
        Ok(Self { info, ports: sockets })
    }
}
