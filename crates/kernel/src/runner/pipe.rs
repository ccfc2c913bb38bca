//! The pipes to a runner: read at once, watched or left alone, written without waiting.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::Duration;
use std::{future, io};

use rustix::io::Errno;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::time::sleep;

/// A system that cannot watch more files is asked again after this long.
const ASKED_AGAIN: Duration = Duration::from_millis(2);

/// The reading end of a pipe.
pub(super) struct Pipe {
    end: OwnedFd,
    /// A duplicate that the runtime knows: it wakes us when something comes.
    watched: Option<Receiver>,
}

impl Pipe {
    /// A pipe that is left alone. It has to be one that does not block.
    pub(super) fn new(end: OwnedFd) -> Self {
        Self { end, watched: None }
    }

    /// Has the runtime wake us from now on.
    pub(super) fn watch(&mut self) -> io::Result<()> {
        if self.watched.is_none() {
            self.watched = Some(self.end.try_clone().and_then(Receiver::from_owned_fd_unchecked)?);
        }
        Ok(())
    }

    /// Is not woken for any more.
    pub(super) fn leave_alone(&mut self) {
        self.watched = None;
    }

    /// Waits until there may be something to read; for ever when it is left alone. Cancel-safe.
    pub(super) async fn readable(&self) {
        match &self.watched {
            Some(watched) => drop(watched.readable().await), // an error shows when it is read
            None => future::pending().await,
        }
    }

    /// Reads what is there now: `Some(0)` at the end, `None` when nothing is there.
    ///
    /// Asks the system even when the runtime has not heard of data yet. A frame must be known before the
    /// text that follows it is shown, and a mark that is there already is not worth another wake-up.
    pub(super) fn read(&self, chunk: &mut [u8]) -> Option<usize> {
        let mut answer = None;
        if let Some(watched) = &self.watched {
            // The closure only runs if tokio has heard of data. If it returns `WouldBlock`, tokio forgets that there was data.
            drop(watched.try_io(|| {
                let read = self.read_now(chunk);
                answer = Some(read);
                let emptied = read.is_none_or(|read| 0 < read && read < chunk.len());
                if emptied { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
            }));
        }
        answer.unwrap_or_else(|| self.read_now(chunk))
    }

    /// Whether something is there to be read now; the end is not.
    pub(super) fn has_more(&self) -> bool {
        rustix::io::ioctl_fionread(&self.end).is_ok_and(|bytes| bytes > 0)
    }

    fn read_now(&self, chunk: &mut [u8]) -> Option<usize> {
        loop {
            match rustix::io::read(&self.end, &mut *chunk) {
                Ok(read) => return Some(read),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return None,
                Err(_) => return Some(0), // a broken pipe has nothing more to say
            }
        }
    }
}

/// The writing end of a pipe and what it could not take yet.
pub(super) struct Outbox {
    end: OwnedFd,
    waiting: VecDeque<u8>,
    /// A duplicate that the runtime knows, while something waits.
    watched: Option<Sender>,
}

impl Outbox {
    /// It has to be a pipe that does not block.
    pub(super) fn new(end: OwnedFd) -> Self {
        Self { end, waiting: VecDeque::new(), watched: None }
    }

    /// Writes what the pipe takes now and keeps the rest.
    pub(super) fn write(&mut self, bytes: Vec<u8>) {
        if self.waiting.is_empty() {
            self.waiting = bytes.into();
        } else {
            self.waiting.extend(bytes);
        }
        self.flush();
    }

    /// Writes what the pipe takes now.
    pub(super) fn flush(&mut self) {
        while !self.waiting.is_empty() {
            let write = || Ok(rustix::io::write(&self.end, self.waiting.as_slices().0)?);
            let written = match &self.watched {
                Some(watched) => watched.try_io(write),
                None => write(),
            };
            match written {
                Ok(written) => drop(self.waiting.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The runner is gone; reading will show it.
                Err(_) => self.waiting.clear(),
            }
        }
        self.watched = None;
    }

    /// Waits until what waits can be written; for ever when nothing does. Cancel-safe.
    pub(super) async fn writable(&mut self) {
        if self.waiting.is_empty() {
            future::pending::<()>().await;
        }
        if self.watched.is_none() {
            self.watched = self.end.try_clone().and_then(Sender::from_owned_fd_unchecked).ok();
        }
        match &self.watched {
            Some(watched) => drop(watched.writable().await), // an error shows when it is written
            None => sleep(ASKED_AGAIN).await,
        }
    }
}
