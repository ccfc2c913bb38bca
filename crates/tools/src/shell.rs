//! Shell commands: in the foreground, in the background, and what they leave behind.
//!
//! A command runs under a small leader that outlives it, so that its processes keep their group: what it leaves
//! running goes on under a handle instead of being lost or killed, and ends with the client at the latest.

mod leftovers;
mod state;

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cellwright_kernel::environment::Variables;
use cellwright_output::{Artifacts, Captured, Colours, Limits, Sink, Stream};
use cellwright_process::{ChildCommand, ChildProcess, StdoutTarget, StopGraces};
use futures_util::FutureExt as _;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

pub(crate) use self::state::Login;
use crate::toolbox::{Progress, Reader};

/// How long the last output of a command may take to arrive when something still holds its pipe.
const LINGER: Duration = Duration::from_millis(100);

/// How often it is looked whether what a command left has ended.
const LOOK: Duration = Duration::from_secs(1);

/// Commands that run or have left something running; one more is refused.
const MOST_RUNNING: usize = 64;

/// Finished commands in the background whose output is kept.
const MOST_FINISHED: usize = 32;

/// Longest command. The system takes a little more.
const LONGEST: usize = 100 * 1024;

/// How long each step of stopping may take.
const GRACES: StopGraces = StopGraces {
    asked: Duration::ZERO,
    interrupted: Duration::from_secs(2),
    terminated: Duration::from_secs(2),
};

/// The leader: runs the rest of its arguments, tells the status on descriptor 3, and stays until descriptor 4 closes. The
/// traps do nothing, so that a signal to the group ends the command but not its leader.
const LEADER: &str = r#"
trap : INT TERM
"$BASH" "$@" 2>&1 3>&- 4<&-
status=$?
exec 1>&- 2>&-
echo "$status" >&3
exec 3>&-
read -r _ <&4
"#;

/// The shell commands of one client.
#[derive(Debug)]
pub(crate) struct Shells {
    environment: Variables,
    artifacts: Artifacts,
    limits: Limits,
    state: state::State,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    last: u64,
    shells: Vec<Arc<Shell>>,
}

/// One command.
pub(crate) struct Shell {
    pub(crate) number: u64,
    /// How the command begins.
    pub(crate) title: String,
    pub(crate) began: Instant,
    shared: Arc<Shared>,
    phase: watch::Receiver<Phase>,
    /// Someone has heard how the command itself ended.
    is_told: AtomicBool,
    _task: AbortOnDropHandle<()>,
}

/// What the command's task and those who follow it have in common.
struct Shared {
    /// What was printed since it was last shown.
    sink: Mutex<Option<Sink>>,
    progress: Mutex<Option<Arc<dyn Progress>>>,
    reader: Reader,
    stop: CancellationToken,
    why: Mutex<Option<Stop>>,
}

/// How far a command has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phase {
    Running,
    /// It is over, but has left processes running.
    Left(Ended),
    Over(Ended),
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) how: How,
    pub(crate) duration: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum How {
    Code(i32),
    Stopped(Stop),
    /// The leader is gone without a word.
    Lost(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    TimedOut(Duration),
    Cancelled,
}

/// What to run.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) command: &'a str,
    /// Where the first command starts; later ones start where the one before ended.
    pub(crate) start: &'a Path,
    /// Where this command runs, if not there.
    pub(crate) cwd: Option<&'a Path>,
    /// What it changes of folder and environment is kept for the next.
    pub(crate) keeps_state: bool,
    pub(crate) reader: Reader,
}

/// Why a command could not be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("the command is empty")]
    Empty,
    #[error("the command holds a NUL character")]
    Nul,
    #[error("the command has {0} bytes, too many to start; write it to a file and run that")]
    TooLong(usize),
    #[error("{MOST_RUNNING} commands are running; end one with kernel interrupt")]
    TooMany,
    #[error("could not prepare the shell")]
    Prepare(#[source] io::Error),
    #[error(transparent)]
    Spawn(#[from] cellwright_process::SpawnError),
}

impl Shells {
    pub(crate) fn new(
        environment: Variables,
        login: Arc<Login>,
        artifacts: Artifacts,
        limits: Limits,
    ) -> Self {
        Self { environment, artifacts, limits, state: state::State::new(login), known: Mutex::default() }
    }

    /// Starts a command; what comes with it is to be told.
    pub(crate) async fn start(
        &self,
        run: &Run<'_>,
        progress: Option<Arc<dyn Progress>>,
    ) -> Result<(Arc<Shell>, Option<String>), StartError> {
        match run.command {
            command if command.trim().is_empty() => return Err(StartError::Empty),
            command if command.contains('\0') => return Err(StartError::Nul),
            command if command.len() > LONGEST => return Err(StartError::TooLong(command.len())),
            _ => {}
        }
        let prepared = self.state.prepare(run, &self.environment).await.map_err(StartError::Prepare)?;
        let shell = self.spawn(run, &prepared, progress)?;
        Ok((shell, prepared.warning))
    }

    fn spawn(
        &self,
        run: &Run<'_>,
        prepared: &state::Prepared,
        progress: Option<Arc<dyn Progress>>,
    ) -> Result<Arc<Shell>, StartError> {
        let mut known = self.known();
        if known.shells.iter().filter(|shell| !shell.is_over()).count() >= MOST_RUNNING {
            return Err(StartError::TooMany);
        }
        let (status, status_end) = pipe_pair().map_err(StartError::Prepare)?;
        let (held_end, held) = io::pipe().map_err(StartError::Prepare)?;
        let child = ChildCommand::new("bash", &self.environment)
            .args(["-c", LEADER, "cellwright"])
            .args(&prepared.arguments)
            .current_dir(run.start)
            .stdout(StdoutTarget::Piped)
            .descriptor(3, status_end)
            .descriptor(4, held_end.into())
            .spawn()?;
        let shared = Arc::new(Shared {
            sink: Mutex::new(Some(self.sink(run.reader))),
            reader: run.reader,
            progress: Mutex::new(progress),
            stop: CancellationToken::new(),
            why: Mutex::default(),
        });
        let (phase_sender, phase) = watch::channel(Phase::Running);
        let began = Instant::now();
        let task = Task {
            child,
            status,
            held: Some(held.into()),
            shared: Arc::clone(&shared),
            phase: phase_sender,
            began,
        };
        known.last += 1;
        let shell = Arc::new(Shell {
            number: known.last,
            title: title(run.command),
            began,
            shared,
            phase,
            is_told: AtomicBool::new(false),
            _task: AbortOnDropHandle::new(tokio::spawn(task.run().boxed())),
        });
        known.shells.push(Arc::clone(&shell));
        Ok(shell)
    }

    /// Commands that run, have left something running, or are over and not asked for.
    pub(crate) fn list(&self) -> Vec<Arc<Shell>> {
        self.known().shells.clone()
    }

    pub(crate) fn named(&self, number: u64) -> Option<Arc<Shell>> {
        self.known().shells.iter().find(|shell| shell.number == number).map(Arc::clone)
    }

    /// Forgets a command whose end has been told, and the oldest of those nobody asked for.
    pub(crate) fn forget(&self, told: &Shell) {
        let mut known = self.known();
        known.shells.retain(|shell| shell.number != told.number || !shell.is_over());
        while known.shells.iter().filter(|shell| shell.is_over()).count() > MOST_FINISHED {
            let oldest = known.shells.iter().position(|shell| shell.is_over()).expect("there are some");
            known.shells.remove(oldest);
        }
    }

    /// What a command printed since it was last asked. More can come while it runs.
    pub(crate) fn take_output(&self, shell: &Shell) -> Captured {
        let next = (!shell.is_over()).then(|| self.sink(shell.shared.reader));
        let mut sink = lock(&shell.shared.sink);
        match std::mem::replace(&mut *sink, next) {
            Some(sink) => sink.finish(),
            None => Captured { text: String::new(), truncation: None },
        }
    }

    fn sink(&self, reader: Reader) -> Sink {
        match reader {
            Reader::Model => Sink::with_artifacts(self.limits, Colours::Dropped, &self.artifacts),
            Reader::Program => Sink::new(Limits::NONE, Colours::Dropped),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }
}

impl Shell {
    pub(crate) fn phase(&self) -> Phase {
        self.phase.borrow().clone()
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(*self.phase.borrow(), Phase::Over(_))
    }

    /// Someone hears how the command itself ended; what it left goes on.
    pub(crate) fn end_is_told(&self) {
        self.is_told.store(true, Ordering::Relaxed);
    }

    /// Whether only what it left is of interest, be that running or over by now.
    pub(crate) fn is_leftover(&self) -> bool {
        matches!(*self.phase.borrow(), Phase::Left(_)) || self.is_told.load(Ordering::Relaxed)
    }

    /// Waits until the command itself is over. Cancel-safe.
    pub(crate) async fn ended(&self) -> Phase {
        self.reaches(|phase| *phase != Phase::Running).await
    }

    /// Waits until nothing is left of it. Cancel-safe.
    pub(crate) async fn over(&self) -> Phase {
        self.reaches(|phase| matches!(phase, Phase::Over(_))).await
    }

    /// Begins to stop the command and what it left.
    pub(crate) fn stop(&self, why: Stop) {
        lock(&self.shared.why).get_or_insert(why);
        self.shared.stop.cancel();
    }

    /// Nobody follows it any more.
    pub(crate) fn stop_progress(&self) {
        *lock(&self.shared.progress) = None;
    }

    /// What it printed since it was last shown, without taking it.
    pub(crate) fn peek(&self) -> String {
        lock(&self.shared.sink).as_mut().map(|sink| sink.snapshot().text).unwrap_or_default()
    }

    async fn reaches(&self, reached: impl Fn(&Phase) -> bool) -> Phase {
        let mut phase = self.phase.clone();
        match phase.wait_for(|phase| reached(phase)).await {
            Ok(phase) => phase.clone(),
            Err(_) => self.phase(), // its task ended with the last phase
        }
    }
}

impl std::fmt::Debug for Shell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shell")
            .field("number", &self.number)
            .field("phase", &self.phase())
            .finish_non_exhaustive()
    }
}

struct Task {
    child: ChildProcess,
    status: pipe::Receiver,
    /// As long as this is open, the leader stays.
    held: Option<OwnedFd>,
    shared: Arc<Shared>,
    phase: watch::Sender<Phase>,
    began: Instant,
}

impl Task {
    async fn run(mut self) {
        let stdout = self.child.stdout.take().expect("stdout was piped");
        let mut output =
            Output { stdout: Some(stdout), chunk: vec![0; 64 * 1024], shared: Arc::clone(&self.shared) };
        let stop = self.shared.stop.clone();
        let ended = stop.run_until_cancelled(self.command(&mut output)).await;
        if let Some(ended) = &ended
            && self.leaves_something(&output).await
        {
            self.phase.send_replace(Phase::Left(ended.clone()));
            stop.run_until_cancelled(self.leftovers(&mut output)).await;
        }
        drop(self.held.take());
        if stop.is_cancelled() {
            self.stop(&mut output).await;
        } else {
            self.child.wait().await;
        }
        let over = ended.unwrap_or_else(|| {
            let why = lock(&self.shared.why).unwrap_or(Stop::Cancelled);
            Ended { how: How::Stopped(why), duration: self.began.elapsed() }
        });
        self.phase.send_replace(Phase::Over(over));
    }

    /// Follows the command to its end, and its output for as long as that takes to arrive.
    async fn command(&mut self, output: &mut Output) -> Ended {
        // The leader writes its line at once, so one read has it all.
        let mut line = [0; 16];
        let told = loop {
            tokio::select! {
                () = output.take() => {}
                told = self.status.read(&mut line) => break told,
            }
        };
        let told = told.ok().and_then(|length| str::from_utf8(&line[..length]).ok()?.trim().parse().ok());
        let how = match told {
            Some(code) => How::Code(code),
            None => How::Lost(self.child.wait().await.to_string()),
        };
        let ended = Ended { how, duration: self.began.elapsed() };
        let lingers = async {
            while output.is_open() {
                output.take().await;
            }
        };
        drop(timeout(LINGER, lingers).await); // longer means that something else prints
        ended
    }

    /// Follows what the command left until there is nothing of it any more.
    async fn leftovers(&mut self, output: &mut Output) {
        while self.leaves_something(output).await {
            let look = sleep(LOOK);
            tokio::pin!(look);
            loop {
                tokio::select! {
                    () = output.take() => {}
                    () = &mut look => break,
                }
            }
        }
    }

    async fn leaves_something(&self, output: &Output) -> bool {
        let group = self.child.id();
        output.is_open()
            || tokio::task::spawn_blocking(move || leftovers::in_group(group)).await.unwrap_or(false)
    }

    /// Politely, then firmly; what it prints meanwhile is kept.
    async fn stop(&mut self, output: &mut Output) {
        let stopping = self.child.stop(GRACES);
        tokio::pin!(stopping);
        loop {
            tokio::select! {
                _ = &mut stopping => break,
                () = output.take() => {}
            }
        }
        while output.is_open() && timeout(LINGER, output.take()).await.is_ok() {}
    }
}

/// What a command prints, on its way to the sink.
struct Output {
    /// Gone at its end.
    stdout: Option<pipe::Receiver>,
    chunk: Vec<u8>,
    shared: Arc<Shared>,
}

impl Output {
    fn is_open(&self) -> bool {
        self.stdout.is_some()
    }

    /// Takes what comes next; waits for ever when nothing can. Cancel-safe.
    async fn take(&mut self) {
        let Some(stdout) = &mut self.stdout else { return std::future::pending().await };
        match stdout.read(&mut self.chunk).await {
            Ok(length @ 1..) => self.shared.take(&self.chunk[..length]),
            Ok(0) | Err(_) => self.stdout = None,
        }
    }
}

impl Shared {
    fn take(&self, bytes: &[u8]) {
        if let Some(sink) = &mut *lock(&self.sink) {
            sink.write(Stream::Stdout, bytes);
        }
        if let Some(progress) = &*lock(&self.progress) {
            progress.text(&String::from_utf8_lossy(bytes));
        }
    }
}

fn pipe_pair() -> io::Result<(pipe::Receiver, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((pipe::Receiver::from_owned_fd(reader.into())?, writer.into()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn title(command: &str) -> String {
    const LONGEST: usize = 60;
    let line = command.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
