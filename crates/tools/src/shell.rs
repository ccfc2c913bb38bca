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

use cellwright_cell::Stream;
use cellwright_kernel::environment::EnvVars;
use cellwright_output::{Artifacts, CapturedText, Colours, OutputLimits, OutputSink};
use cellwright_process::{ChildCommand, ChildProcess, StdoutTarget, StopGraces};
use futures_util::FutureExt as _;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

pub(crate) use self::state::LoginShell;
use crate::toolbox::{ProgressSink, ReplyReader};

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

/// The leader: runs the rest of its arguments, writes the status to descriptor 3, and stays until descriptor 4 closes. The
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
pub(crate) struct ClientShells {
    environment: EnvVars,
    artifacts: Artifacts,
    limits: OutputLimits,
    state: state::ShellState,
    known: Mutex<ShellTable>,
}

#[derive(Debug, Default)]
struct ShellTable {
    last: u64,
    shells: Vec<Arc<ShellCommand>>,
}

/// One command.
pub(crate) struct ShellCommand {
    pub(crate) number: u64,
    /// How the command begins.
    pub(crate) title: String,
    pub(crate) began: Instant,
    shared: Arc<CommandState>,
    phase: watch::Receiver<CommandPhase>,
    /// Someone has heard how the command itself ended.
    is_told: AtomicBool,
    _task: AbortOnDropHandle<()>,
}

/// What the command's task and its followers share.
struct CommandState {
    /// What was printed since it was last shown.
    sink: Mutex<Option<OutputSink>>,
    progress: Mutex<Option<Arc<dyn ProgressSink>>>,
    reader: ReplyReader,
    stop: CancellationToken,
    why: Mutex<Option<CommandStop>>,
}

/// How far a command has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandPhase {
    Running,
    /// It is over, but has left processes running.
    Left(CommandEnd),
    Over(CommandEnd),
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandEnd {
    pub(crate) how: CommandResult,
    pub(crate) duration: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandResult {
    Code(i32),
    Stopped(CommandStop),
    /// The leader is gone without a word.
    Lost(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandStop {
    TimedOut(Duration),
    Cancelled,
}

/// What to run.
#[derive(Debug)]
pub(crate) struct ShellRequest<'a> {
    pub(crate) command: &'a str,
    /// Where the first command starts; later ones start where the one before ended.
    pub(crate) start: &'a Path,
    /// Where this command runs, if not there.
    pub(crate) cwd: Option<&'a Path>,
    /// What it changes of folder and environment is kept for the next.
    pub(crate) keeps_state: bool,
    pub(crate) reader: ReplyReader,
}

/// Why a command could not be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandStartError {
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

impl ClientShells {
    pub(crate) fn new(
        environment: EnvVars,
        login: Arc<LoginShell>,
        artifacts: Artifacts,
        limits: OutputLimits,
    ) -> Self {
        Self { environment, artifacts, limits, state: state::ShellState::new(login), known: Mutex::default() }
    }

    /// Commands of the client's model, which run one after the other.
    pub(crate) fn line(&self) -> &crate::arrival::CallLine {
        &self.state.line
    }

    /// Starts a command. The second value is a note to show.
    pub(crate) async fn start(
        &self,
        run: &ShellRequest<'_>,
        progress: Option<Arc<dyn ProgressSink>>,
    ) -> Result<(Arc<ShellCommand>, Option<String>), CommandStartError> {
        match run.command {
            command if command.trim().is_empty() => return Err(CommandStartError::Empty),
            command if command.contains('\0') => return Err(CommandStartError::Nul),
            command if command.len() > LONGEST => return Err(CommandStartError::TooLong(command.len())),
            _ => {}
        }
        let prepared =
            self.state.prepare(run, &self.environment).await.map_err(CommandStartError::Prepare)?;
        let shell = self.spawn(run, &prepared, progress)?;
        Ok((shell, prepared.warning))
    }

    fn spawn(
        &self,
        run: &ShellRequest<'_>,
        prepared: &state::ShellArguments,
        progress: Option<Arc<dyn ProgressSink>>,
    ) -> Result<Arc<ShellCommand>, CommandStartError> {
        let mut known = self.known();
        if known.shells.iter().filter(|shell| !shell.is_over()).count() >= MOST_RUNNING {
            return Err(CommandStartError::TooMany);
        }
        let (status, status_end) = pipe_pair().map_err(CommandStartError::Prepare)?;
        let (held_end, held) = io::pipe().map_err(CommandStartError::Prepare)?;
        let child = ChildCommand::new("bash", &self.environment)
            .args(["-c", LEADER, "cellwright"])
            .args(&prepared.arguments)
            .current_dir(run.start)
            .stdout(StdoutTarget::Piped)
            .descriptor(3, status_end)
            .descriptor(4, held_end.into())
            .spawn()?;
        let shared = Arc::new(CommandState {
            sink: Mutex::new(Some(self.sink(run.reader))),
            reader: run.reader,
            progress: Mutex::new(progress),
            stop: CancellationToken::new(),
            why: Mutex::default(),
        });
        let (phase_sender, phase) = watch::channel(CommandPhase::Running);
        let began = Instant::now();
        let task = CommandTask {
            child,
            status,
            held: Some(held.into()),
            shared: Arc::clone(&shared),
            phase: phase_sender,
            began,
        };
        known.last += 1;
        let shell = Arc::new(ShellCommand {
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
    pub(crate) fn list(&self) -> Vec<Arc<ShellCommand>> {
        self.known().shells.clone()
    }

    pub(crate) fn named(&self, number: u64) -> Option<Arc<ShellCommand>> {
        self.known().shells.iter().find(|shell| shell.number == number).map(Arc::clone)
    }

    /// Forgets a command whose end has been reported, and the oldest of those nobody asked about.
    pub(crate) fn forget(&self, shown: &ShellCommand) {
        let mut known = self.known();
        known.shells.retain(|shell| shell.number != shown.number || !shell.is_over());
        while known.shells.iter().filter(|shell| shell.is_over()).count() > MOST_FINISHED {
            let oldest = known.shells.iter().position(|shell| shell.is_over()).expect("there are some");
            known.shells.remove(oldest);
        }
    }

    /// What a command printed since it was last asked. More can come while it runs.
    pub(crate) fn take_output(&self, shell: &ShellCommand) -> CapturedText {
        let next = (!shell.is_over()).then(|| self.sink(shell.shared.reader));
        let mut sink = lock(&shell.shared.sink);
        match std::mem::replace(&mut *sink, next) {
            Some(sink) => sink.finish(),
            None => CapturedText { text: String::new(), truncation: None },
        }
    }

    fn sink(&self, reader: ReplyReader) -> OutputSink {
        match reader {
            ReplyReader::Model => OutputSink::with_artifacts(self.limits, Colours::Dropped, &self.artifacts),
            ReplyReader::Program => OutputSink::new(OutputLimits::NONE, Colours::Dropped),
        }
    }

    fn known(&self) -> MutexGuard<'_, ShellTable> {
        lock(&self.known)
    }
}

impl ShellCommand {
    pub(crate) fn phase(&self) -> CommandPhase {
        self.phase.borrow().clone()
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(*self.phase.borrow(), CommandPhase::Over(_))
    }

    /// Someone hears how the command itself ended; what it left goes on.
    pub(crate) fn end_is_told(&self) {
        self.is_told.store(true, Ordering::Relaxed);
    }

    /// Whether only what it left is of interest, be that running or over by now.
    pub(crate) fn is_leftover(&self) -> bool {
        matches!(*self.phase.borrow(), CommandPhase::Left(_)) || self.is_told.load(Ordering::Relaxed)
    }

    /// Waits until the command itself is over. Cancel-safe.
    pub(crate) async fn ended(&self) -> CommandPhase {
        self.reaches(|phase| *phase != CommandPhase::Running).await
    }

    /// Waits until nothing is left of it. Cancel-safe.
    pub(crate) async fn over(&self) -> CommandPhase {
        self.reaches(|phase| matches!(phase, CommandPhase::Over(_))).await
    }

    /// Begins to stop the command and what it left.
    pub(crate) fn stop(&self, why: CommandStop) {
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

    async fn reaches(&self, reached: impl Fn(&CommandPhase) -> bool) -> CommandPhase {
        let mut phase = self.phase.clone();
        match phase.wait_for(|phase| reached(phase)).await {
            Ok(phase) => phase.clone(),
            Err(_) => self.phase(), // its task ended with the last phase
        }
    }
}

impl std::fmt::Debug for ShellCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shell")
            .field("number", &self.number)
            .field("phase", &self.phase())
            .finish_non_exhaustive()
    }
}

struct CommandTask {
    child: ChildProcess,
    status: pipe::Receiver,
    /// As long as this is open, the leader stays.
    held: Option<OwnedFd>,
    shared: Arc<CommandState>,
    phase: watch::Sender<CommandPhase>,
    began: Instant,
}

impl CommandTask {
    async fn run(mut self) {
        let stdout = self.child.stdout.take().expect("stdout was piped");
        let mut output = CommandOutput {
            stdout: Some(stdout),
            chunk: vec![0; 64 * 1024],
            shared: Arc::clone(&self.shared),
        };
        let stop = self.shared.stop.clone();
        let ended = stop.run_until_cancelled(self.command(&mut output)).await;
        if let Some(ended) = &ended
            && self.leaves_something(&output).await
        {
            self.phase.send_replace(CommandPhase::Left(ended.clone()));
            stop.run_until_cancelled(self.leftovers(&mut output)).await;
        }
        drop(self.held.take());
        if stop.is_cancelled() {
            self.stop(&mut output).await;
        } else {
            self.child.wait().await;
        }
        let over = ended.unwrap_or_else(|| {
            let why = lock(&self.shared.why).unwrap_or(CommandStop::Cancelled);
            CommandEnd { how: CommandResult::Stopped(why), duration: self.began.elapsed() }
        });
        self.phase.send_replace(CommandPhase::Over(over));
    }

    /// Follows the command to its end, and its output for as long as that takes to arrive.
    async fn command(&mut self, output: &mut CommandOutput) -> CommandEnd {
        // The leader writes its line at once, so one read has it all.
        let mut line = [0; 16];
        let status = loop {
            tokio::select! {
                () = output.take() => {}
                status = self.status.read(&mut line) => break status,
            }
        };
        let status = status.ok().and_then(|length| str::from_utf8(&line[..length]).ok()?.trim().parse().ok());
        let how = match status {
            Some(code) => CommandResult::Code(code),
            None => CommandResult::Lost(self.child.wait().await.to_string()),
        };
        let ended = CommandEnd { how, duration: self.began.elapsed() };
        let lingers = async {
            while output.is_open() {
                output.take().await;
            }
        };
        drop(timeout(LINGER, lingers).await); // longer means that something else prints
        ended
    }

    /// Follows what the command left until there is nothing of it any more.
    async fn leftovers(&mut self, output: &mut CommandOutput) {
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

    async fn leaves_something(&self, output: &CommandOutput) -> bool {
        let group = self.child.id();
        output.is_open()
            || tokio::task::spawn_blocking(move || leftovers::in_group(group)).await.unwrap_or(false)
    }

    /// Politely, then firmly; what it prints meanwhile is kept.
    async fn stop(&mut self, output: &mut CommandOutput) {
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
struct CommandOutput {
    /// Gone at its end.
    stdout: Option<pipe::Receiver>,
    chunk: Vec<u8>,
    shared: Arc<CommandState>,
}

impl CommandOutput {
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

impl CommandState {
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
