//! Commands that an agent runs through us.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    CreateTerminalRequest, TerminalExitStatus, TerminalId, TerminalOutputResponse,
};
use cellwright_process::{ChildCommand, ChildExit, ChildProcess, Signal, StopGraces};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::task;

/// The output that is kept if the agent sets no limit.
const USUAL_LIMIT: usize = 16 << 20;

/// The names of terminals begin with this. A number follows.
const NAME: &str = "terminal-";

/// The output that is kept for the view.
const MOST_UNSEEN: usize = 256 * 1024;

/// How long to wait for the rest of the output after a command has ended.
const LINGER: Duration = Duration::from_millis(100);

const GRACES: StopGraces = StopGraces {
    asked: Duration::ZERO,
    interrupted: Duration::from_millis(500),
    terminated: Duration::from_millis(500),
};

/// The commands of one agent. They end with it.
#[derive(Debug, Default)]
pub(super) struct AgentTerminals {
    known: Mutex<HashMap<TerminalId, Arc<AgentTerminal>>>,
    /// The news of commands that were released.
    unseen: Mutex<Vec<TerminalNews>>,
    last: AtomicU64,
    news: Arc<Notify>,
}

/// What a command wrote since the last look, and how it ended, if it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TerminalNews {
    pub(crate) terminal: TerminalId,
    /// What it wrote. Of a very long output, the end.
    pub(crate) output: Vec<u8>,
    /// How it ended. Reported once.
    pub(crate) exit: Option<ChildExit>,
}

/// A command that runs or has ended.
#[derive(Debug)]
pub(super) struct AgentTerminal {
    output: Arc<Mutex<TerminalBuffer>>,
    ended: watch::Receiver<Option<ChildExit>>,
    kill: CancellationToken,
    _task: AbortOnDropHandle<()>,
}

impl AgentTerminals {
    /// Starts a command in a group of its own.
    pub(super) fn create(
        &self,
        request: &CreateTerminalRequest,
        environment: &[(OsString, OsString)],
        cwd: &Path,
    ) -> io::Result<TerminalId> {
        let added = request.env.iter().map(|pair| (pair.name.clone().into(), pair.value.clone().into()));
        let environment = environment.iter().cloned().chain(added);
        // Some agents send a whole command line as the command.
        let command = if request.args.is_empty() && !Path::new(&request.command).exists() {
            ChildCommand::new("/bin/sh", environment).args(["-c", &request.command])
        } else {
            ChildCommand::new(&request.command, environment).args(&request.args)
        };
        // One pipe for both streams keeps their order.
        let (reader, writer) = io::pipe()?;
        let child = command
            .current_dir(request.cwd.as_deref().unwrap_or(cwd))
            .mark_descendants()
            .descriptor(1, writer.try_clone()?.into())
            .descriptor(2, writer.into())
            .spawn()
            .map_err(|error| error.source)?;
        let reader = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
        let limit = request
            .output_byte_limit
            .map_or(USUAL_LIMIT, |limit| usize::try_from(limit).unwrap_or(usize::MAX).min(USUAL_LIMIT));
        let output = Arc::new(Mutex::new(TerminalBuffer { limit, ..TerminalBuffer::default() }));
        let (sender, ended) = watch::channel(None);
        let kill = CancellationToken::new();
        let news = Arc::clone(&self.news);
        let task = task::spawn(run(child, reader, Arc::clone(&output), sender, kill.clone(), news));
        let terminal = AgentTerminal { output, ended, kill, _task: task };
        let id = TerminalId::new(format!("{NAME}{}", self.last.fetch_add(1, Ordering::Relaxed) + 1));
        self.known().insert(id.clone(), Arc::new(terminal));
        Ok(id)
    }

    /// Whether a terminal was made here, also if it was released since.
    pub(super) fn made(&self, id: &TerminalId) -> bool {
        let number = id.0.strip_prefix(NAME).and_then(|number| number.parse().ok());
        number.is_some_and(|number: u64| number > 0 && number <= self.last.load(Ordering::Relaxed))
    }

    pub(super) fn get(&self, id: &TerminalId) -> Option<Arc<AgentTerminal>> {
        self.known().get(id).map(Arc::clone)
    }

    /// Forgets a command, and kills it if it runs. Its last output stays for
    /// [`AgentTerminals::news`].
    pub(super) fn release(&self, id: &TerminalId) -> bool {
        let Some(terminal) = self.known().remove(id) else { return false };
        terminal.kill.cancel();
        let rest = terminal.news(id);
        self.unseen.lock().unwrap_or_else(PoisonError::into_inner).extend(rest);
        self.news.notify_one();
        true
    }

    /// Waits until a command writes something or ends. Cancel-safe.
    pub(super) async fn changed(&self) {
        self.news.notified().await;
    }

    /// The news of all commands.
    pub(super) fn news(&self) -> Vec<TerminalNews> {
        let known = self.known();
        let mut news = std::mem::take(&mut *self.unseen.lock().unwrap_or_else(PoisonError::into_inner));
        news.extend(known.iter().filter_map(|(id, terminal)| terminal.news(id)));
        news
    }

    fn known(&self) -> MutexGuard<'_, HashMap<TerminalId, Arc<AgentTerminal>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AgentTerminal {
    /// What it wrote, and how it ended, if it did.
    pub(super) fn output(&self) -> TerminalOutputResponse {
        let ended = *self.ended.borrow();
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        TerminalOutputResponse::new(String::from_utf8_lossy(&output.bytes), output.truncated)
            .exit_status(ended.map(status))
    }

    /// What it wrote since the last call. Reports its end once.
    fn news(&self, id: &TerminalId) -> Option<TerminalNews> {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let (unseen, exit) = (std::mem::take(&mut output.unseen), output.exit.take());
        (!unseen.is_empty() || exit.is_some()).then(|| TerminalNews {
            terminal: id.clone(),
            output: unseen,
            exit,
        })
    }

    pub(super) async fn wait(&self) -> TerminalExitStatus {
        let mut ended = self.ended.clone();
        let exit = ended.wait_for(Option::is_some).await.ok().and_then(|exit| *exit);
        status(exit.unwrap_or(ChildExit::Unknown))
    }

    /// Stops it. Its output stays.
    pub(super) async fn kill(&self) {
        self.kill.cancel();
        self.wait().await;
    }
}

/// The last bytes of an output.
#[derive(Debug, Default)]
struct TerminalBuffer {
    bytes: Vec<u8>,
    limit: usize,
    truncated: bool,
    /// For [`AgentTerminals::news`].
    unseen: Vec<u8>,
    exit: Option<ChildExit>,
}

impl TerminalBuffer {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.unseen.extend_from_slice(bytes);
        if self.unseen.len() > MOST_UNSEEN {
            self.unseen.drain(..MOST_UNSEEN / 2);
        }
        // Cutting is rare, so that a long output is not moved for every piece.
        if self.bytes.len() > self.limit.saturating_mul(2) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if let Some(surplus @ 1..) = self.bytes.len().checked_sub(self.limit) {
            let boundary = self.bytes[surplus..].iter().take_while(|&&byte| byte & 0xC0 == 0x80).count();
            self.bytes.drain(..surplus + boundary);
            self.truncated = true;
        }
    }
}

async fn run(
    mut child: ChildProcess,
    mut reader: pipe::Receiver,
    output: Arc<Mutex<TerminalBuffer>>,
    ended: watch::Sender<Option<ChildExit>>,
    kill: CancellationToken,
    news: Arc<Notify>,
) {
    let keep = |bytes: &[u8]| {
        output.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
        news.notify_one();
    };
    let mut chunk = vec![0; 32 * 1024];
    let mut open = true;
    let exit = loop {
        tokio::select! {
            read = reader.read(&mut chunk), if open => match read {
                Ok(read @ 1..) => keep(&chunk[..read]),
                Ok(0) | Err(_) => open = false,
            },
            exit = child.wait() => break exit,
            () = kill.cancelled() => break child.stop(GRACES).await,
        }
    };
    while let Ok(Ok(read @ 1..)) = timeout(LINGER, reader.read(&mut chunk)).await {
        keep(&chunk[..read]);
    }
    {
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        output.cut();
        output.exit = Some(exit);
    }
    ended.send_replace(Some(exit));
    news.notify_one();
}

fn status(exit: ChildExit) -> TerminalExitStatus {
    match exit {
        ChildExit::Code(code) => TerminalExitStatus::new().exit_code(u32::try_from(code).ok()),
        ChildExit::Signal { number, .. } => {
            let name = Signal::try_from(number).map_or_else(|_| number.to_string(), |name| name.to_string());
            TerminalExitStatus::new().signal(name)
        }
        ChildExit::Unknown => TerminalExitStatus::new(),
    }
}

/// The command line, quoted for a shell.
pub(super) fn line(request: &CreateTerminalRequest) -> String {
    if request.args.is_empty() {
        return request.command.clone();
    }
    shell_words::join([&request.command].into_iter().chain(&request.args))
}

/// The folder in which a command starts.
pub(super) fn folder(request: &CreateTerminalRequest, cwd: &Path) -> PathBuf {
    request.cwd.clone().unwrap_or_else(|| cwd.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Vec<(OsString, OsString)> {
        vec![("PATH".into(), "/usr/bin:/bin".into())]
    }

    async fn finished(request: CreateTerminalRequest) -> TerminalOutputResponse {
        let terminals = AgentTerminals::default();
        let id = terminals.create(&request, &environment(), Path::new("/")).expect("it starts");
        let terminal = terminals.get(&id).expect("it is known");
        terminal.wait().await;
        terminal.output()
    }

    #[tokio::test]
    async fn both_streams_arrive_in_order_with_the_exit_code() {
        let output =
            finished(CreateTerminalRequest::new("s", "echo one; echo two >&2; echo three; exit 3")).await;
        assert_eq!(output.output, "one\ntwo\nthree\n");
        assert_eq!(output.exit_status, Some(TerminalExitStatus::new().exit_code(3)));
        assert!(!output.truncated);
    }

    #[tokio::test]
    async fn the_end_of_a_long_output_is_kept() {
        let request = CreateTerminalRequest::new("s", "/bin/sh")
            .args(vec!["-c".into(), "i=0; while [ $i -lt 200 ]; do echo é$i; i=$((i+1)); done".into()])
            .output_byte_limit(20);
        let output = finished(request).await;
        assert!(output.truncated);
        assert!(output.output.len() <= 20 && output.output.ends_with("é199\n"), "{}", output.output);
        assert!(!output.output.contains('\u{FFFD}'));
    }

    #[tokio::test]
    async fn killing_ends_the_children_of_a_command_too() {
        let terminals = AgentTerminals::default();
        let request = CreateTerminalRequest::new("s", "sleep 600 & echo started; sleep 600");
        let id = terminals.create(&request, &environment(), Path::new("/")).expect("it starts");
        let terminal = terminals.get(&id).expect("it is known");
        terminal.kill().await;
        assert!(terminal.output().exit_status.is_some());
        assert!(terminals.release(&id) && !terminals.release(&id));
    }

    #[tokio::test]
    async fn the_last_output_of_a_released_command_is_reported() {
        let terminals = AgentTerminals::default();
        for _ in 0..50 {
            let request = CreateTerminalRequest::new("s", "seq 1 2000; echo tail; exit 3");
            let id = terminals.create(&request, &environment(), Path::new("/")).expect("it starts");
            terminals.get(&id).expect("it is known").wait().await;
            assert!(terminals.release(&id));
            let news = terminals.news();
            let [TerminalNews { terminal, output, exit }] = news.as_slice() else { panic!("{news:?}") };
            assert_eq!((terminal, *exit), (&id, Some(ChildExit::Code(3))));
            assert!(output.ends_with(b"2000\ntail\n"));
        }
        assert_eq!(terminals.news(), []);
    }

    #[tokio::test]
    async fn a_missing_program_is_an_error() {
        let terminals = AgentTerminals::default();
        let request = CreateTerminalRequest::new("s", "/no/such/program").args(vec!["x".into()]);
        let error = terminals.create(&request, &environment(), Path::new("/")).expect_err("no such program");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
