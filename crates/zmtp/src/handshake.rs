//! How two peers meet: greeting, NULL mechanism, READY.

use std::io;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::frame::{FrameDecoder, FrameError, IncomingFrames, put_command, split_command};

/// The type of a socket, as its peers see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SocketKind {
    Router,
    Dealer,
    XPub,
    Sub,
    Rep,
    Req,
}

impl SocketKind {
    fn name(self) -> &'static str {
        match self {
            Self::Router => "ROUTER",
            Self::Dealer => "DEALER",
            Self::XPub => "XPUB",
            Self::Sub => "SUB",
            Self::Rep => "REP",
            Self::Req => "REQ",
        }
    }

    fn peers(self) -> &'static [&'static str] {
        match self {
            Self::Router => &["DEALER", "REQ", "ROUTER"],
            Self::Dealer => &["ROUTER", "REP", "DEALER"],
            Self::XPub => &["SUB", "XSUB"],
            Self::Sub => &["PUB", "XPUB"],
            Self::Rep => &["REQ", "DEALER"],
            Self::Req => &["REP", "ROUTER"],
        }
    }
}

/// Why a connection ended, or never began.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionFault {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Frame(#[from] FrameError),
    #[error("the peer does not speak ZMTP 3")]
    NotZmtp,
    #[error("the peer wants the {0} mechanism; only NULL is spoken here")]
    Mechanism(String),
    #[error("a {ours} socket cannot talk to a {theirs} socket")]
    Mismatch { ours: &'static str, theirs: String },
    #[error("the peer refused: {0}")]
    Refused(String),
    #[error("malformed {0}")]
    Malformed(&'static str),
    #[error("no handshake in time")]
    HandshakeTimeout,
    #[error("the peer fell silent")]
    Silent,
    #[error(
        "the peer hung up during the handshake; it may want a security mechanism, only NULL is spoken here"
    )]
    HungUp,
    #[error("the peer sends {size} bytes before it has proved its identity")]
    Stranger { size: u64 },
    #[error("the peer closed the connection")]
    Closed,
}

/// What the handshake revealed about the peer.
pub(crate) struct PeerGreeting {
    pub(crate) identity: Bytes,
    /// ZMTP 3.1 knows heartbeats and sends subscriptions as commands; 3.0 sends them as messages.
    pub(crate) minor: u8,
}

const SIGNATURE: [u8; 10] = [0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f];
const MECHANISM: [u8; 20] = *b"NULL\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// Runs the handshake. The caller sets the deadline.
pub(crate) async fn shake_hands(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    decoder: &mut FrameDecoder,
    kind: SocketKind,
    identity: &[u8],
) -> Result<PeerGreeting, ConnectionFault> {
    let mut greeting = [0; 64];
    greeting[..10].copy_from_slice(&SIGNATURE);
    greeting[10..12].copy_from_slice(&[3, 1]);
    greeting[12..32].copy_from_slice(&MECHANISM);
    stream.write_all(&greeting).await?;

    // Read in steps: a peer that speaks another protocol may never send 64 bytes.
    let mut theirs = [0; 64];
    read_exact(stream, &mut theirs[..1]).await?;
    if theirs[0] != SIGNATURE[0] {
        return Err(ConnectionFault::NotZmtp);
    }
    read_exact(stream, &mut theirs[1..11]).await?;
    if theirs[9] & 1 == 0 || theirs[10] < 3 {
        return Err(ConnectionFault::NotZmtp);
    }
    read_exact(stream, &mut theirs[11..]).await?;
    let (minor, mechanism) = (theirs[11], &theirs[12..32]);
    if mechanism != MECHANISM {
        let name = String::from_utf8_lossy(mechanism);
        return Err(ConnectionFault::Mechanism(name.trim_end_matches('\0').to_owned()));
    }

    let mut ready = BytesMut::new();
    put_property(&mut ready, "Socket-Type", kind.name().as_bytes());
    if !identity.is_empty() {
        put_property(&mut ready, "Identity", identity);
    }
    let mut out = BytesMut::new();
    put_command(&mut out, "READY", &ready);
    stream.write_all(&out).await?;

    let (socket_type, identity) = read_ready(stream, decoder).await?;
    if kind.peers().iter().any(|name| name.as_bytes() == socket_type) {
        return Ok(PeerGreeting { identity, minor });
    }
    let theirs = String::from_utf8_lossy(&socket_type).into_owned();
    let mut refusal = BytesMut::new();
    put_command(&mut refusal, "ERROR", b"\x13Invalid socket type");
    stream.write_all(&refusal).await?;
    Err(ConnectionFault::Mismatch { ours: kind.name(), theirs })
}

/// If the mechanisms differ, libzmq closes the connection before it sends its own.
async fn read_exact(stream: &mut (impl AsyncRead + Unpin), bytes: &mut [u8]) -> Result<(), ConnectionFault> {
    match stream.read_exact(bytes).await {
        Err(end) if end.kind() == io::ErrorKind::UnexpectedEof => Err(ConnectionFault::HungUp),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(()),
    }
}

async fn read_ready(
    stream: &mut (impl AsyncRead + Unpin),
    decoder: &mut FrameDecoder,
) -> Result<(Bytes, Bytes), ConnectionFault> {
    let command = loop {
        match decoder.next_incoming()? {
            Some(IncomingFrames::Command(command)) => break command,
            Some(IncomingFrames::Message(_)) => return Err(ConnectionFault::Malformed("handshake")),
            None if decoder.fill(stream).await? == 0 => return Err(ConnectionFault::HungUp),
            None => {}
        }
    };
    let (name, mut rest) = split_command(&command).ok_or(ConnectionFault::Malformed("command"))?;
    match name {
        b"READY" => {}
        b"ERROR" => {
            let reason = rest.get(1..).unwrap_or_default();
            return Err(ConnectionFault::Refused(String::from_utf8_lossy(reason).into_owned()));
        }
        _ => return Err(ConnectionFault::Malformed("handshake")),
    }
    let (mut socket_type, mut identity) = (Bytes::new(), Bytes::new());
    while !rest.is_empty() {
        let (name, value) = take_property(&mut rest).ok_or(ConnectionFault::Malformed("READY"))?;
        if name.eq_ignore_ascii_case(b"Socket-Type") {
            socket_type = value;
        } else if name.eq_ignore_ascii_case(b"Identity") {
            // Copied, since it lives as long as the connection and would hold on to the read buffer.
            identity = Bytes::copy_from_slice(&value);
        }
    }
    // An identity that starts with zero is one that a ROUTER made up: claiming it would be hijacking.
    if identity.len() > 255 || identity.first() == Some(&0) {
        return Err(ConnectionFault::Malformed("identity"));
    }
    Ok((socket_type, identity))
}

fn put_property(out: &mut BytesMut, name: &str, value: &[u8]) {
    out.put_u8(u8::try_from(name.len()).expect("property names are short"));
    out.put_slice(name.as_bytes());
    out.put_u32(u32::try_from(value.len()).expect("property values are short"));
    out.put_slice(value);
}

fn take_property(rest: &mut Bytes) -> Option<(Bytes, Bytes)> {
    let name_length = usize::from(rest.try_get_u8().ok()?);
    let name = (rest.len() >= name_length).then(|| rest.split_to(name_length))?;
    let value_length = usize::try_from(rest.try_get_u32().ok()?).ok()?;
    let value = (rest.len() >= value_length).then(|| rest.split_to(value_length))?;
    Some((name, value))
}
