//! What to start, and with which descriptors and environment.

use std::ffi::{OsStr, OsString};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::{io, process};

use command_fds::{CommandFdExt, FdMapping};

use crate::child::ChildProcess;
use crate::guard;

/// A child process to be started.
///
/// Its environment is exactly what [`ChildCommand::new`] was given: nothing is inherited.
pub struct ChildCommand {
    inner: process::Command,
    descriptors: Vec<FdMapping>,
    stderr: StderrTarget,
}

/// Where the child's standard input comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StdinSource {
    /// End of file at once.
    Null,
    /// [`ChildProcess::stdin`].
    Piped,
}

/// Where the child's standard output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StdoutTarget {
    /// Nowhere.
    Null,
    /// [`ChildProcess::stdout`].
    Piped,
}

/// Where the child's standard error goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StderrTarget {
    /// Nowhere.
    Null,
    /// [`ChildProcess::stderr`].
    Piped,
    /// Its last bytes, at most this many, are kept for [`ChildProcess::stderr_tail`].
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

impl ChildCommand {
    /// A program and the whole environment it will see. A program without a slash is looked up in
    /// the `PATH` of that environment.
    pub fn new<K: AsRef<OsStr>, V: AsRef<OsStr>>(
        program: impl AsRef<OsStr>,
        environment: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let mut inner = process::Command::new(program);
        inner.env_clear().envs(environment).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { inner, descriptors: Vec::new(), stderr: StderrTarget::Null }
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

    /// Where standard input comes from. The default is [`StdinSource::Null`].
    #[must_use]
    pub fn stdin(mut self, stdin: StdinSource) -> Self {
        self.inner.stdin(match stdin {
            StdinSource::Null => Stdio::null(),
            StdinSource::Piped => Stdio::piped(),
        });
        self
    }

    /// Where standard output goes. The default is [`StdoutTarget::Null`].
    #[must_use]
    pub fn stdout(mut self, stdout: StdoutTarget) -> Self {
        self.inner.stdout(match stdout {
            StdoutTarget::Null => Stdio::null(),
            StdoutTarget::Piped => Stdio::piped(),
        });
        self
    }

    /// Where standard error goes. The default is [`StderrTarget::Null`].
    #[must_use]
    pub fn stderr(mut self, stderr: StderrTarget) -> Self {
        self.inner.stderr(match stderr {
            StderrTarget::Null => Stdio::null(),
            StderrTarget::Piped | StderrTarget::Tail(_) => Stdio::piped(),
        });
        self.stderr = stderr;
        self
    }

    /// Lets none of the child's descendants outlive this process, not even those that left its group and lost their
    /// parents, as long as they keep their environment.
    #[must_use]
    pub fn mark_descendants(mut self) -> Self {
        self.inner.env(guard::MARK_VARIABLE, guard::mark());
        self
    }

    /// Hands `descriptor` to the child as number `number`; our copy is closed once it runs.
    #[must_use]
    pub fn descriptor(mut self, number: RawFd, descriptor: OwnedFd) -> Self {
        self.descriptors.push(FdMapping { parent_fd: descriptor, child_fd: number });
        self
    }

    /// Starts the child in a group of its own. Needs a tokio runtime with I/O enabled.
    pub fn spawn(mut self) -> Result<ChildProcess, SpawnError> {
        let program = OsString::from(self.inner.get_program());
        let stderr = self.stderr;
        self.start(stderr).map_err(|source| {
            // The system's error is the same as for a missing program.
            let missing = self.inner.get_current_dir().filter(|folder| !folder.is_dir());
            let source = match missing {
                Some(folder) => {
                    let why = format!("the folder it would run in is gone: {}", folder.display());
                    io::Error::new(io::ErrorKind::NotFound, why)
                }
                None => source,
            };
            SpawnError { program: program.to_string_lossy().into_owned(), source }
        })
    }

    fn start(&mut self, stderr: StderrTarget) -> io::Result<ChildProcess> {
        // Mapping descriptors needs a hook between fork and exec, which costs the fast way to
        // start a process; a child without extra descriptors does not pay for it.
        if !self.descriptors.is_empty() {
            self.inner
                .fd_mappings(std::mem::take(&mut self.descriptors))
                .map_err(|collision| io::Error::new(io::ErrorKind::InvalidInput, collision))?;
        }
        ChildProcess::adopt(self.inner.process_group(0).spawn()?, stderr)
    }
}
