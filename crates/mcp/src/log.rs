//! Log messages to a client.
#![expect(deprecated, reason = "logging is deprecated by a version of MCP that we do not speak")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
use rmcp::service::{Peer, RoleServer};

/// Log messages to one client, from the level it asked for on.
#[derive(Clone)]
pub(crate) struct ClientLog {
    least: Arc<AtomicU8>,
}

impl Default for ClientLog {
    fn default() -> Self {
        Self { least: Arc::new(AtomicU8::new(severity(LoggingLevel::Info))) }
    }
}

impl ClientLog {
    pub(crate) fn set_level(&self, level: LoggingLevel) {
        self.least.store(severity(level), Ordering::Relaxed);
    }

    pub(crate) async fn send(&self, peer: &Peer<RoleServer>, level: LoggingLevel, text: String) {
        tracing::debug!(?level, %text, "sent a log message to a client");
        if severity(level) >= self.least.load(Ordering::Relaxed) {
            let message = LoggingMessageNotificationParam::new(level, text.into()).with_logger("cellwright");
            drop(peer.notify_logging_message(message).await); // the client may have left
        }
    }
}

fn severity(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
