//! What to start, and with which descriptors and environment.

use std::ffi::{OsStr, OsString};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::{io, process};

use command_fds::{CommandFdExt, FdMapping};

use crate::child::Child;

/// A child process to be started.
///
/// Its environment is exactly what [`Command::new`] was given: nothing is inherited.
pub struct Command {
    inner: process::Command,
    descriptors: Vec<FdMapping>,
    stderr: Stderr,
}

/// Where the child's standard input comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// End of file at once.
    Null,
    /// [`Child::stdin`].
    Piped,
}

/// Where the child's standard output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdout {
    /// Nowhere.
    Null,
    /// [`Child::stdout`].
    Piped,
}

/// Where the child's standard error goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stderr {
    /// Nowhere.
    Null,
    /// [`Child::stderr`].
    Piped,
    /// Its last bytes, at most this many, are kept for [`Child::stderr_tail`].
    Tail(usize),
}

/// A program could not be started.
#[derive(Debug, thiserror::Error)]
#[error("could not start `{program}`")]
pub struct SpawnError {
    /// The program as it was named.
    pub program: String,
    /// Why.
    #[source]
    pub source: io::Error,
}

impl Command {
    /// A program and the whole environment it will see. A program without a slash is looked up in
    /// the `PATH` of that environment.
    pub fn new<K: AsRef<OsStr>, V: AsRef<OsStr>>(
        program: impl AsRef<OsStr>,
        environment: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let mut inner = process::Command::new(program);
        inner.env_clear().envs(environment).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { inner, descriptors: Vec::new(), stderr: Stderr::Null }
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.inner.arg(arg);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.inner.args(args);
        self
    }

    /// The directory the child starts in.
    #[must_use]
    pub fn current_dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.inner.current_dir(dir);
        self
    }

    /// Where standard input comes from; [`Stdin::Null`] unless told.
    #[must_use]
    pub fn stdin(mut self, stdin: Stdin) -> Self {
        self.inner.stdin(match stdin {
            Stdin::Null => Stdio::null(),
            Stdin::Piped => Stdio::piped(),
        });
        self
    }

    /// Where standard output goes; [`Stdout::Null`] unless told.
    #[must_use]
    pub fn stdout(mut self, stdout: Stdout) -> Self {
        self.inner.stdout(match stdout {
            Stdout::Null => Stdio::null(),
            Stdout::Piped => Stdio::piped(),
        });
        self
    }

    /// Where standard error goes; [`Stderr::Null`] unless told.
    #[must_use]
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.inner.stderr(match stderr {
            Stderr::Null => Stdio::null(),
            Stderr::Piped | Stderr::Tail(_) => Stdio::piped(),
        });
        self.stderr = stderr;
        self
    }

    /// Hands `descriptor` to the child as number `number`; our copy is closed once it runs.
    #[must_use]
    pub fn descriptor(mut self, number: RawFd, descriptor: OwnedFd) -> Self {
        self.descriptors.push(FdMapping { parent_fd: descriptor, child_fd: number });
        self
    }

    /// Starts the child in a group of its own. Needs a tokio runtime with I/O enabled.
    pub fn spawn(mut self) -> Result<Child, SpawnError> {
        let program = OsString::from(self.inner.get_program());
        let stderr = self.stderr;
        self.start(stderr)
            .map_err(|source| SpawnError { program: program.to_string_lossy().into_owned(), source })
    }

    fn start(&mut self, stderr: Stderr) -> io::Result<Child> {
        // Mapping descriptors needs a hook between fork and exec, which costs the fast way to
        // start a process; a child without extra descriptors does not pay for it.
        if !self.descriptors.is_empty() {
            self.inner
                .fd_mappings(std::mem::take(&mut self.descriptors))
                .map_err(|collision| io::Error::new(io::ErrorKind::InvalidInput, collision))?;
        }
        Child::adopt(self.inner.process_group(0).spawn()?, stderr)
    }
}
