//! Starting a runner: on the first Python that works, which only a start can show.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, io};

use cellwright_cell::{Output, OutputChange};
use cellwright_process::{ChildCommand, StderrTarget, StdoutTarget};
use futures_util::future::BoxFuture;
use tokio::time::timeout;

use super::files::{self, RunnerScript};
use super::inherited::InheritedVariables;
use super::lines::LineBuffer;
use super::order::{NextPiece, StreamOrder};
use super::pipe::{Outbox, Pipe};
use super::wakeups::Wakeups;
use super::wire::{Configure, PROTOCOL, RunnerMessage, RunnerReady, ToRunner};
use super::{CHUNK, LONGEST_MESSAGE, RunnerLife, RunnerTransport};
use crate::driver::Graces;
use crate::environment::VariableRules;
use crate::event::Event;
use crate::execution::Background;
use crate::interpreter::{Candidate, PythonSearch};
use crate::kernel::Kernel;
use crate::outcome::Exit;
use crate::setup::Setup;
use crate::startup;
use crate::token::random_token;
use crate::transport::Incoming;

/// Where the runner finds the pipes for messages.
const REQUESTS: i32 = 3;
const REPLIES: i32 = 4;
const QUESTIONS: i32 = 5;

/// How much of what a failed start printed is reported.
const LAST_WORDS: usize = 2000;

/// A Python kernel to be started.
#[derive(Clone, Debug)]
pub struct RunnerLaunch {
    /// Where to look for Python, and where cells run.
    pub search: PythonSearch,
    /// Which variables of our environment it may see.
    pub rules: VariableRules,
    /// What its first cell finds.
    pub setup: Setup,
    /// The folder for files that can be made again.
    pub cache: PathBuf,
    /// How long a Python may take to answer.
    pub ready_within: Duration,
    /// How long an extension module may run before it is interrupted.
    pub modules_within: Duration,
    /// How long each step of stopping may take.
    pub graces: Graces,
    /// Log every message.
    pub trace: bool,
}

/// A kernel that has started.
#[derive(Debug)]
pub struct RunnerKernel {
    /// The kernel.
    pub kernel: Kernel,
    /// What it says outside its cells.
    pub background: Background,
    /// The Python it runs, and how that was found.
    pub candidate: Candidate,
    /// The Python it runs, by its own account.
    pub python: RunnerReady,
    /// What was looked at before and could not be used.
    pub rejected: Vec<RejectedPython>,
}

/// No kernel could be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// No Python works.
    #[error("no working Python found; {}", list(rejected))]
    NoInterpreter {
        /// What was tried.
        rejected: Vec<RejectedPython>,
    },
    /// The Python that was asked for does not work.
    #[error("`{}` cannot run cells: {}", rejected.python.display(), rejected.why)]
    Explicit {
        /// Why not.
        rejected: RejectedPython,
    },
    /// There is no such folder to work in.
    #[error("`{}` is not a folder to run in", cwd.display())]
    NoDirectory {
        /// The folder.
        cwd: PathBuf,
    },
    /// The runner's files could not be written.
    #[error("could not write the runner to `{}`, nor to `{}`; set XDG_CACHE_HOME to a folder that can be written",
        cache.display(), files::temporary().display())]
    Unpack {
        /// The cache folder.
        cache: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl LaunchError {
    /// The number of the system's error that kept us from starting a process, if one did.
    pub fn system_error(&self) -> Option<i32> {
        match self {
            Self::NoInterpreter { rejected } => rejected.iter().find_map(RejectedPython::system_error),
            Self::Explicit { rejected } => rejected.system_error(),
            Self::NoDirectory { .. } => None,
            Self::Unpack { source, .. } => source.raw_os_error(),
        }
    }
}

fn list(rejected: &[RejectedPython]) -> String {
    let mut reasons: Vec<_> = rejected.iter().map(ToString::to_string).collect();
    // Another Python does not help a system that starts none.
    if !rejected.iter().any(|rejected| rejected.system_error().is_some()) {
        reasons.push("install Python 3.8 or newer, or name one".into());
    }
    reasons.join("; ")
}

/// A Python that was looked at and not used.
#[derive(Clone, Debug)]
pub struct RejectedPython {
    /// Its path.
    pub python: PathBuf,
    /// How it was found.
    pub origin: crate::interpreter::PythonOrigin,
    /// Why it was not used.
    pub why: Rejection,
}

impl RejectedPython {
    fn system_error(&self) -> Option<i32> {
        match self.why {
            Rejection::NotStarted { code, .. } => code,
            Rejection::Missing(_)
            | Rejection::Ended { .. }
            | Rejection::Silent(_)
            | Rejection::Unfit(_)
            | Rejection::Protocol(_) => None,
        }
    }
}

impl fmt::Display for RejectedPython {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ({}): {}", self.python.display(), self.origin, self.why)
    }
}

/// Why a Python cannot run cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// There is no program to start.
    Missing(String),
    /// The system did not start it.
    NotStarted {
        /// What the system said.
        why: String,
        /// The number it gave the error.
        code: Option<i32>,
    },
    /// It ended before it answered.
    Ended {
        /// How.
        exit: Exit,
        /// The end of what it printed.
        said: String,
    },
    /// It did not answer in time.
    Silent(Duration),
    /// It answered that it cannot, being too old for example.
    Unfit(String),
    /// It speaks another protocol than we do.
    Protocol(u64),
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(why) | Self::NotStarted { why, .. } | Self::Unfit(why) => f.write_str(why),
            Self::Ended { exit, said } if said.is_empty() => write!(f, "{exit} before it answered"),
            Self::Ended { exit, said } => write!(f, "{exit} before it answered, saying: {}", said.trim_end()),
            Self::Silent(limit) => write!(f, "it did not answer within {} seconds", limit.as_secs_f32()),
            Self::Protocol(theirs) => write!(f, "it speaks protocol {theirs}, not {PROTOCOL}"),
        }
    }
}

/// What became of one Python that was looked at.
#[derive(Clone, Debug)]
pub enum ExaminedPython {
    /// It works. The first of these is the one that runs cells.
    Works(Candidate, RunnerReady),
    /// It does not.
    Rejected(RejectedPython),
}

impl RunnerLaunch {
    /// A launch with the usual limits.
    pub fn new(search: PythonSearch, cache: impl Into<PathBuf>) -> Self {
        Self {
            search,
            rules: VariableRules::default(),
            setup: Setup::default(),
            cache: cache.into(),
            ready_within: Duration::from_secs(10),
            modules_within: Duration::from_mins(1),
            graces: Graces::default(),
            trace: false,
        }
    }

    /// Starts a kernel on the first Python that works.
    ///
    /// Starting is the test: no other process is spent on one that works. The first cell may be sent
    /// at once; it runs when the setup is done.
    pub fn start(&self) -> BoxFuture<'_, Result<RunnerKernel, LaunchError>> {
        Box::pin(async move {
            startup::stage("kernel asked for");
            let script = self.script()?;
            startup::stage("runner's files in place");
            let mut rejected = Vec::new();
            for lead in self.search.leads() {
                let outcome = match lead.candidate(&self.search).await {
                    None => continue,
                    Some(Ok(candidate)) => match self.try_start(&script, &candidate).await {
                        Ok((runner, python)) => {
                            startup::stage("Python answered");
                            let (kernel, background) = Kernel::start(runner, self.graces, Some(python.pid));
                            return Ok(RunnerKernel { kernel, background, candidate, python, rejected });
                        }
                        Err(why) => {
                            RejectedPython { python: candidate.python, origin: candidate.origin, why }
                        }
                    },
                    Some(Err(rejected)) => rejected,
                };
                tracing::debug!(%outcome, "a Python was not used");
                if self.search.explicit.is_some() {
                    return Err(LaunchError::Explicit { rejected: outcome });
                }
                rejected.push(outcome);
            }
            Err(LaunchError::NoInterpreter { rejected })
        })
    }

    /// Tries every Python in the order of [`RunnerLaunch::start`], in the same way, and keeps none.
    pub fn examine(&self) -> BoxFuture<'_, Result<Vec<ExaminedPython>, LaunchError>> {
        Box::pin(async move {
            let script = self.script()?;
            let mut examined = Vec::new();
            for lead in self.search.leads() {
                examined.push(match lead.candidate(&self.search).await {
                    None => continue,
                    Some(Ok(candidate)) => match self.try_start(&script, &candidate).await {
                        Ok((_, python)) => ExaminedPython::Works(candidate, python),
                        Err(why) => ExaminedPython::Rejected(RejectedPython {
                            python: candidate.python,
                            origin: candidate.origin,
                            why,
                        }),
                    },
                    Some(Err(rejected)) => ExaminedPython::Rejected(rejected),
                });
            }
            Ok(examined)
        })
    }

    /// The runner on disk, once it is clear that there is a folder to run in.
    fn script(&self) -> Result<RunnerScript, LaunchError> {
        if !self.search.cwd.is_dir() {
            // The system would report it as a missing program.
            return Err(LaunchError::NoDirectory { cwd: self.search.cwd.clone() });
        }
        RunnerScript::unpack(&self.cache)
            .map_err(|source| LaunchError::Unpack { cache: self.cache.clone(), source })
    }

    async fn try_start(
        &self,
        script: &RunnerScript,
        candidate: &Candidate,
    ) -> Result<(RunnerTransport, RunnerReady), Rejection> {
        let mut runner = self.spawn(script, candidate)?;
        match timeout(self.ready_within, runner.ready()).await {
            Ok(ready) => ready.map(|ready| (runner, ready)),
            Err(_) => Err(Rejection::Silent(self.ready_within)),
        }
    }

    fn spawn(&self, script: &RunnerScript, candidate: &Candidate) -> Result<RunnerTransport, Rejection> {
        let not_started =
            |error: io::Error| Rejection::NotStarted { why: error.to_string(), code: error.raw_os_error() };
        let (their_requests, requests) = io::pipe().map_err(not_started)?;
        let (replies, their_replies) = io::pipe().map_err(not_started)?;
        let (their_questions, questions) = io::pipe().map_err(not_started)?;
        for ours in [requests.as_fd(), replies.as_fd(), questions.as_fd()] {
            rustix::io::ioctl_fionbio(ours, true).map_err(|errno| not_started(errno.into()))?;
        }
        let environment = candidate.environment(self.rules.pass(&self.search.variables));
        let mut child = ChildCommand::new(&candidate.python, environment)
            .arg(&script.path)
            .current_dir(&self.search.cwd)
            .stdout(StdoutTarget::Piped)
            .stderr(StderrTarget::Piped)
            .descriptor(REQUESTS, their_requests.into())
            .descriptor(REPLIES, their_replies.into())
            .descriptor(QUESTIONS, their_questions.into())
            .spawn()
            .map_err(|error| not_started(error.source))?;
        startup::stage("Python's process started");
        let stdout = child.stdout.take().expect("stdout was piped");
        let stderr = child.stderr.take().expect("stderr was piped");
        let nonce = random_token();
        let mut runner = RunnerTransport {
            outbox: Outbox::new(requests.into()),
            questions: Outbox::new(questions.into()),
            inherited: InheritedVariables::new(&self.search.variables, &self.rules, &self.setup),
            frames: Pipe::new(replies.into()),
            stdout: Pipe::new(stdout.into_nonblocking_fd().map_err(not_started)?),
            stderr: Pipe::new(stderr.into_nonblocking_fd().map_err(not_started)?),
            wakeups: Wakeups::new(),
            _script: script.clone(),
            child,
            order: StreamOrder::new(&nonce),
            lines: LineBuffer::new(LONGEST_MESSAGE),
            sent: VecDeque::new(),
            cell: None,
            ready: VecDeque::new(),
            loading: None,
            modules_within: self.modules_within,
            configured: false,
            computed: None,
            life: RunnerLife::Alive,
            trace: self.trace,
            chunk: vec![0; CHUNK],
        };
        runner.frames.watch().map_err(not_started)?;
        // Written before the process is up: it finds them waiting.
        runner.write(&ToRunner::Hello { protocol: PROTOCOL, nonce });
        // The process starts there; one that JSON cannot name needs no second word.
        let cwd = self.search.cwd.to_str().map(Into::into);
        let configure = Configure { cwd, setup: self.setup.clone() };
        runner.write(&ToRunner::Configure(configure));
        Ok(runner)
    }
}

impl RunnerTransport {
    /// Waits for the runner to answer.
    async fn ready(&mut self) -> Result<RunnerReady, Rejection> {
        loop {
            match (self.order.next(), &self.life) {
                (Some(NextPiece::Message(RunnerMessage::Ready(ready))), _) if ready.protocol == PROTOCOL => {
                    return Ok(ready);
                }
                (Some(NextPiece::Message(RunnerMessage::Ready(ready))), _) => {
                    return Err(Rejection::Protocol(ready.protocol));
                }
                (Some(NextPiece::Message(RunnerMessage::Unfit(why))), _) => {
                    return Err(Rejection::Unfit(why));
                }
                (Some(said), _) => self.translate(said),
                (None, RunnerLife::Ended(exit)) => {
                    return Err(Rejection::Ended { exit: exit.clone(), said: self.last_words() });
                }
                (None, RunnerLife::Alive | RunnerLife::HungUp { .. } | RunnerLife::Disowned) => {
                    self.fill().await;
                }
            }
        }
    }

    fn last_words(&self) -> String {
        let mut said: String = self
            .ready
            .iter()
            .filter_map(|incoming| match incoming {
                Incoming::Event {
                    event: Event::Output(OutputChange::Added(Output::Text { text, .. })),
                    ..
                } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        if let Some(surplus) = said.len().checked_sub(LAST_WORDS) {
            said.drain(..said.ceil_char_boundary(surplus));
        }
        said
    }
}
