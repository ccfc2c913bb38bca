//! Our sockets against libzmq's, through pyzmq, in both roles.

mod ours_binds;
mod ours_connects;
mod python;

use std::time::Duration;

use bytes::Bytes;
use cellwright_zmtp::{Endpoint, Heartbeat, WireMessage};

const SMALL_MESSAGES: usize = 100_000;
const BIG: usize = 64 << 20;

fn message(frames: &[&[u8]]) -> WireMessage {
    frames.iter().map(|frame| Bytes::copy_from_slice(frame)).collect()
}

fn loopback() -> Endpoint {
    "tcp://127.0.0.1:0".parse().expect("an endpoint")
}

/// An endpoint of each kind; the folder holds the Unix socket.
fn endpoints() -> (tempfile::TempDir, [Endpoint; 2]) {
    let folder = tempfile::tempdir().expect("a folder");
    let ipc = Endpoint::Ipc(folder.path().join("socket"));
    (folder, [loopback(), ipc])
}

fn quick_heartbeat() -> Heartbeat {
    Heartbeat { interval: Duration::from_millis(20), timeout: Duration::from_secs(2) }
}

fn big_body() -> Bytes {
    (0..=255).collect::<Vec<u8>>().repeat(BIG / 256).into()
}
