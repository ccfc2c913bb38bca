//! What an agent wrote to its standard error.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Bytes kept; what is older is forgotten.
const KEPT: usize = 1 << 20;

/// The last of what an agent wrote, for those who ask. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct AgentLog(Arc<Mutex<LogBuffer>>);

#[derive(Debug, Default)]
struct LogBuffer {
    bytes: VecDeque<u8>,
    forgotten: u64,
}

/// A moment in a log.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogMark(u64);

impl AgentLog {
    /// Now.
    pub fn mark(&self) -> LogMark {
        let kept = self.kept();
        LogMark(kept.forgotten + kept.bytes.len() as u64)
    }

    /// What was written since, or as much as is kept of it.
    pub fn since(&self, mark: LogMark) -> String {
        let kept = self.kept();
        let skip = usize::try_from(mark.0.saturating_sub(kept.forgotten)).unwrap_or(usize::MAX);
        let bytes: Vec<u8> = kept.bytes.iter().copied().skip(skip).collect();
        // The cut may have gone through a character.
        let start = bytes.iter().take(3).take_while(|&&byte| byte & 0xC0 == 0x80).count();
        String::from_utf8_lossy(&bytes[start..]).into_owned()
    }

    /// All that is kept.
    pub fn text(&self) -> String {
        self.since(LogMark::default())
    }

    /// Bytes that were written and are no longer kept.
    pub fn forgotten(&self) -> u64 {
        self.kept().forgotten
    }

    pub(super) fn write(&self, bytes: &[u8]) {
        let mut kept = self.kept();
        kept.bytes.extend(bytes);
        let surplus = kept.bytes.len().saturating_sub(KEPT);
        kept.bytes.drain(..surplus);
        kept.forgotten += surplus as u64;
    }

    /// Reads to the end, so that an agent that writes much never waits.
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
    fn the_last_of_a_long_log_is_kept_and_its_beginning_counted() {
        let log = AgentLog::default();
        log.write("é".repeat(KEPT).as_bytes());
        let mark = log.mark();
        log.write(b"end");
        assert_eq!(log.since(mark), "end");
        assert_eq!(log.forgotten(), KEPT as u64 + 3);
        let text = log.text();
        assert!(text.starts_with('é') && text.ends_with("éend"), "cut between characters");
    }
}
