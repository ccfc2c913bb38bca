//! A running child and its group.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fmt, io, process, thread};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use rustix::process::{WaitId, WaitIdOptions, waitid};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::command::StderrTarget;
use crate::exit::ChildExit;
use crate::family::{self, DescendantProcess, strayed};
use crate::guard;
use crate::memory::oom_kills;

/// How long [`ChildProcess::wait`] lets the rest of standard error arrive after the child has ended. Only a
/// process that left the group can still hold the pipe by then.
const STDERR_SETTLES: Duration = Duration::from_millis(100);

/// A running child, leader of its own process group.
///
/// Whatever is left of the group is killed when the child has ended, and the whole group is killed
/// when this is dropped. So are descendants in other groups that were seen before the child ended.
pub struct ChildProcess {
    /// The other end of the child's standard input, when piped.
    pub stdin: Option<pipe::Sender>,
    /// The other end of the child's standard output, when piped.
    pub stdout: Option<pipe::Receiver>,
    /// The other end of the child's standard error, when piped.
    pub stderr: Option<pipe::Receiver>,
    process: process::Child,
    ended: Option<ChildExit>,
    /// Listens from before the first look at the child, so no end is missed.
    ends: Signals,
    /// Nothing has ended since the last look.
    looked: bool,
    tail: Option<StderrTail>,
    oom_kills_before: Option<u64>,
    /// Descendants in other groups, when last looked for.
    strayed: Mutex<Vec<DescendantProcess>>,
}

/// What the system does with a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// It was stopped (SIGSTOP, SIGTSTP) and not continued.
    Stopped,
    /// A debugger holds it.
    Traced,
    /// It waits for a disk or a file system, and can do nothing else.
    Waits,
    /// It runs, or sleeps of its own will.
    Other,
}

/// How long each step of [`ChildProcess::stop`] may take; a step without time is left out.
#[derive(Clone, Copy, Debug)]
pub struct StopGraces {
    /// The caller has asked the child to leave, in whatever way it understands.
    pub asked: Duration,
    /// After SIGINT to the group.
    pub interrupted: Duration,
    /// After SIGTERM to the group; then comes SIGKILL.
    pub terminated: Duration,
}

impl ChildProcess {
    pub(crate) fn adopt(mut process: process::Child, stderr: StderrTarget) -> io::Result<Self> {
        guard::watch(process.id());
        let pipes = (|| {
            let stdin = process.stdin.take().map(OwnedFd::from).map(pipe::Sender::from_owned_fd);
            let stdout = process.stdout.take().map(OwnedFd::from).map(pipe::Receiver::from_owned_fd);
            let stderr = process.stderr.take().map(OwnedFd::from).map(pipe::Receiver::from_owned_fd);
            let signals = signal(SignalKind::child())?;
            Ok((stdin.transpose()?, stdout.transpose()?, stderr.transpose()?, signals))
        })();
        let (stdin, stdout, stderr_pipe, ends) = match pipes {
            Ok(pipes) => pipes,
            Err(error) => {
                end(&mut process, &[]);
                return Err(error);
            }
        };
        let (stderr, tail) = match (stderr, stderr_pipe) {
            (StderrTarget::Tail(limit), Some(pipe)) => (None, Some(StderrTail::of(pipe, limit))),
            (_, pipe) => (pipe, None),
        };
        let oom_kills_before = oom_kills();
        Ok(Self {
            stdin,
            stdout,
            stderr,
            process,
            ended: None,
            ends,
            looked: false,
            tail,
            oom_kills_before,
            strayed: Mutex::default(),
        })
    }

    /// The child's process id, which is also its group's.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Looks for descendants that left the group; they end with the child. Call it before the child is asked to
    /// leave: once the child has ended, they have no parent to find them by.
    pub fn look_for_strayed(&self) {
        *self.strayed.lock().unwrap_or_else(PoisonError::into_inner) = strayed(self.process.id());
    }

    /// What the system does with it, as far as `/proc` shows.
    pub fn state(&self) -> Option<ProcessState> {
        Some(match family::state(self.process.id())? {
            'T' => ProcessState::Stopped,
            't' => ProcessState::Traced,
            'D' => ProcessState::Waits,
            _ => ProcessState::Other,
        })
    }

    /// The processor time it has used, in the system's coarse units and as far as `/proc` shows.
    pub fn processor_time(&self) -> Option<Duration> {
        family::processor_time(self.process.id())
    }

    /// Signals every process of the group. Does nothing once the child has ended.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        if matches!(signal, Signal::SIGTERM | Signal::SIGKILL) && self.ended.is_none() {
            self.look_for_strayed();
        }
        match self.ended {
            None => killpg(group(&self.process), signal).map_err(io::Error::from),
            Some(_) => Ok(()),
        }
    }

    /// Waits for the child's end, kills what is left of its group, and reaps it. Cancel-safe; later
    /// calls return the same exit.
    pub fn wait(&mut self) -> BoxFuture<'_, ChildExit> {
        Box::pin(async move {
            loop {
                if !self.looked || self.ended.is_some() {
                    if let Some(exit) = self.try_wait() {
                        if let Some(tail) = &mut self.tail {
                            tail.settle().await;
                        }
                        return exit;
                    }
                    self.looked = true;
                }
                self.ends.recv().await;
                self.looked = false;
            }
        })
    }

    /// The exit, if the child has ended. Does what [`ChildProcess::wait`] does at the end, without waiting.
    pub fn try_wait(&mut self) -> Option<ChildExit> {
        if self.ended.is_none() {
            // A look that leaves the zombie in place: its number, and the group's, stay ours until
            // the group is dead and the guard has forgotten it.
            let pid = rustix::process::Pid::from_child(&self.process);
            let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            match waitid(WaitId::Pid(pid), look) {
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                Ok(Some(_)) => {
                    let noted =
                        std::mem::take(self.strayed.get_mut().unwrap_or_else(PoisonError::into_inner));
                    let status = end(&mut self.process, &noted);
                    let oom =
                        oom_kills().zip(self.oom_kills_before).is_some_and(|(now, before)| now > before);
                    self.ended =
                        Some(status.map_or(ChildExit::Unknown, |status| ChildExit::new(status, oom)));
                }
                Err(_) => {
                    guard::forget(self.process.id());
                    self.ended = Some(ChildExit::Unknown);
                }
            }
        }
        self.ended
    }

    /// Stops the child politely, then firmly: waits for one that was asked, interrupts, terminates,
    /// kills. Cancel-safe, but a cancelled stop starts over.
    pub fn stop(&mut self, graces: StopGraces) -> BoxFuture<'_, ChildExit> {
        Box::pin(async move {
            let steps = [
                (None, graces.asked),
                (Some(Signal::SIGINT), graces.interrupted),
                (Some(Signal::SIGTERM), graces.terminated),
            ];
            for (signal, grace) in steps.into_iter().filter(|(_, grace)| !grace.is_zero()) {
                if let Some(signal) = signal {
                    drop(self.signal(signal)); // one that cannot be signalled meets the next step
                }
                if let Ok(exit) = timeout(grace, self.wait()).await {
                    return exit;
                }
            }
            drop(self.signal(Signal::SIGKILL)); // fails only when there is nothing left to kill
            self.wait().await
        })
    }

    /// The last of what the child wrote to standard error, when it was started with
    /// [`StderrTarget::Tail`].
    pub fn stderr_tail(&self) -> String {
        self.tail.as_ref().map(StderrTail::text).unwrap_or_default()
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.look_for_strayed();
            let noted = std::mem::take(self.strayed.get_mut().unwrap_or_else(PoisonError::into_inner));
            end(&mut self.process, &noted);
        }
    }
}

impl fmt::Debug for ChildProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child").field("id", &self.id()).field("ended", &self.ended).finish_non_exhaustive()
    }
}

fn group(process: &process::Child) -> Pid {
    Pid::from_raw(i32::try_from(process.id()).expect("process ids fit pid_t"))
}

/// Kills the group and the processes that left it, and reaps its leader. Returns the status if the leader had ended.
fn end(process: &mut process::Child, strayed: &[DescendantProcess]) -> Option<process::ExitStatus> {
    let _ = killpg(group(process), Signal::SIGKILL); // nobody left is what we want
    strayed.iter().for_each(DescendantProcess::kill);
    guard::forget(process.id());
    if let Ok(Some(status)) = process.try_wait() {
        return Some(status);
    }
    // A killed process ends soon, but not at once. The thread ends with it.
    let pid = rustix::process::Pid::from_child(process);
    let reaper = thread::Builder::new().name("process-reaper".into()).stack_size(128 * 1024);
    let reaper = reaper.spawn(move || waitid(WaitId::Pid(pid), WaitIdOptions::EXITED));
    drop(reaper); // without a thread it stays a zombie until we end
    None
}

/// The last bytes of a pipe, read by a task that ends with the pipe or with this.
struct StderrTail {
    kept: Arc<Mutex<VecDeque<u8>>>,
    reader: JoinHandle<()>,
}

impl StderrTail {
    fn of(mut pipe: pipe::Receiver, limit: usize) -> Self {
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let reader = tokio::spawn(
            {
                let kept = Arc::clone(&kept);
                async move {
                    let mut chunk = vec![0; 8 * 1024];
                    while let Ok(read @ 1..) = pipe.read(&mut chunk).await {
                        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                        kept.extend(&chunk[..read]);
                        let surplus = kept.len().saturating_sub(limit);
                        kept.drain(..surplus);
                    }
                }
            }
            .boxed(),
        );
        Self { kept, reader }
    }

    async fn settle(&mut self) {
        if !self.reader.is_finished() {
            drop(timeout(STDERR_SETTLES, &mut self.reader).await); // what came by then is what we have
        }
    }

    fn text(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (front, back) = kept.as_slices();
        let bytes = [front, back].concat();
        // The cut may have gone through a character.
        let start = bytes.iter().position(|byte| byte & 0xC0 != 0x80).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[start.min(3)..]).into_owned()
    }
}

impl Drop for StderrTail {
    fn drop(&mut self) {
        self.reader.abort();
    }
}
