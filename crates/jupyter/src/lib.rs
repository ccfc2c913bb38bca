//! The Jupyter wire, both ways.
//!
//! [`JupyterMessage`] and [`content`] are what is said; [`SigningKey`] and [`MessageDecoder`] sign and check it; [`KernelClient`] talks to a kernel over
//! ZeroMQ, [`KernelServer`] is the kernel's side; [`websocket`] frames the same messages for Jupyter's servers.
//! [`KernelSpec`] and [`JupyterEnvironment`] find installed kernels, [`ConnectionInfo`], [`ConnectionFile`], [`KernelFolder`] and
//! [`ReservedAddresses`] say where a kernel listens. Versions 5.3 to 5.5 of the messaging protocol are spoken; message types and fields that are not
//! known here pass through unharmed. Processes, sessions and policy are left to others.

mod client;
mod codec;
mod connection;
pub mod content;
mod heartbeat;
mod json;
mod kernel_folder;
mod kernelspec;
mod message;
mod paths;
mod server;
mod stream_text;
pub mod websocket;

pub use client::{ClientSender, KernelClient};
pub use codec::{DecodeError, MessageDecoder, SigningKey};
pub use connection::{
    ConnectionFile, ConnectionFileError, ConnectionInfo, ReservedAddresses, SocketTransport,
    UnsupportedConnection,
};
pub use heartbeat::HeartbeatState;
pub use json::JsonText;
pub use kernel_folder::KernelFolder;
pub use kernelspec::{InterruptMode, KernelJson, KernelSpec, SpecError};
pub use message::{JupyterMessage, MessageContentError, MessageHeader, MessageSession, PROTOCOL_VERSION};
pub use paths::{JupyterEnvironment, PythonPrefix};
pub use server::{BindError, ClientMessage, ClientRequest, CloseReport, KernelServer, ServerSender};
pub use stream_text::{StreamPieces, StreamText};

/// Which socket a message travels on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Channel {
    /// Requests.
    Shell,
    /// Requests that must not wait behind a cell.
    Control,
    /// The kernel's questions to the user.
    Stdin,
    /// Outputs and status, for everyone.
    Iopub,
}

impl Channel {
    /// Its name in websocket messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Control => "control",
            Self::Stdin => "stdin",
            Self::Iopub => "iopub",
        }
    }

    /// The channel of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Shell, Self::Control, Self::Stdin, Self::Iopub]
            .into_iter()
            .find(|channel| channel.name() == name)
    }
}
