//! What the loop waits for. Everything here is cancel-safe.

use std::future::pending;
use std::sync::Arc;

use anyhow::Context as _;
use cellwright_session::{CallHandle, CallUpdate, SessionEvent, SessionFollower};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::ReplWake;
use crate::render::{CallRender, CellRender};

pub(super) struct ReplSignals {
    resized: Signal,
    interrupted: Signal,
    terminated: Signal,
    hung_up: Signal,
}

impl ReplSignals {
    pub(super) fn listen() -> anyhow::Result<Self> {
        let of = |kind| signal(kind).context("could not listen for signals");
        Ok(Self {
            resized: of(SignalKind::window_change())?,
            interrupted: of(SignalKind::interrupt())?,
            terminated: of(SignalKind::terminate())?,
            hung_up: of(SignalKind::hangup())?,
        })
    }

    pub(super) async fn next(&mut self) -> ReplWake {
        tokio::select! {
            _ = self.resized.recv() => ReplWake::Resized,
            _ = self.interrupted.recv() => ReplWake::Interrupted,
            _ = self.terminated.recv() => ReplWake::Terminated,
            _ = self.hung_up.recv() => ReplWake::Terminated,
        }
    }
}

/// Waits until a frame is due.
pub(super) async fn frame(drawing: Option<&CellRender>) {
    match drawing.and_then(CallRender::due) {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => pending().await,
    }
}

pub(super) async fn next_of(call: Option<&mut CallHandle>) -> CallUpdate {
    match call {
        Some(call) => call.next().await,
        None => pending().await,
    }
}

pub(super) async fn next_event(follower: Option<&mut SessionFollower>) -> Option<Arc<SessionEvent>> {
    match follower {
        Some(follower) => follower.read().await,
        None => pending().await,
    }
}
