//! The standard error of an agent.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The most bytes that are kept. Older ones are dropped.
const KEPT: usize = 1 << 20;

/// The end of what an agent wrote. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct AgentLog(Arc<Mutex<LogBuffer>>);

#[derive(Debug, Default)]
struct LogBuffer {
    bytes: VecDeque<u8>,
}

impl AgentLog {
    /// All that is kept.
    pub(crate) fn text(&self) -> String {
        let kept = self.kept();
        let bytes: Vec<u8> = kept.bytes.iter().copied().collect();
        // The cut may be inside a character.
        let start = bytes.iter().take(3).take_while(|&&byte| byte & 0xC0 == 0x80).count();
        String::from_utf8_lossy(&bytes[start..]).into_owned()
    }

    pub(super) fn write(&self, bytes: &[u8]) {
        let mut kept = self.kept();
        kept.bytes.extend(bytes);
        let surplus = kept.bytes.len().saturating_sub(KEPT);
        kept.bytes.drain(..surplus);
    }

    /// Reads to the end, so that an agent never waits for its log to be read.
    pub(super) async fn drain(self, mut pipe: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; 16 * 1024];
        while let Ok(read @ 1..) = pipe.read(&mut chunk).await {
            self.write(&chunk[..read]);
        }
    }

    fn kept(&self) -> MutexGuard<'_, LogBuffer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_log_is_kept() {
        let log = AgentLog::default();
        log.write("é".repeat(KEPT).as_bytes());
        log.write(b"end");
        let text = log.text();
        assert!(text.len() <= KEPT);
        assert!(text.starts_with('é') && text.ends_with("éend"), "cut between characters");
    }
}
