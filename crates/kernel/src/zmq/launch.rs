//! Starting a kernel from its kernelspec, and finding one that runs.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use cellwright_jupyter::content::KernelInfoReply;
use cellwright_jupyter::{
    ConnectionFile, ConnectionFileError, ConnectionInfo, HeartbeatState, KernelClient, KernelFolder,
    KernelSpec, MessageContentError, MessageSession, ReservedAddresses, SpecError, UnsupportedConnection,
};
use cellwright_process::{ChildCommand, ChildProcess, SpawnError, StderrTarget};
use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout, timeout_at};

use super::last_words::last_words;
use super::tcp_kernels::{self, TcpKernels};
use super::{KernelProcess, OwnedKernel, ZmqTransport};
use crate::conversation::prepare;
use crate::driver::Graces;
use crate::environment::VariableRules;
use crate::event::Event;
use crate::execution::Background;
use crate::interpreter::PythonSearch;
use crate::kernel::Kernel;
use crate::kernelspecs::KernelspecPlaces;
use crate::outcome::Exit;
use crate::setup::Setup;

/// What ipykernel is started with in place of its own launcher.
const LAUNCH_IPYKERNEL: &str = include_str!("../../python/launch_ipykernel.py");

/// How much of a kernel's standard error is kept for error messages.
const STDERR_TAIL: usize = 4 << 10;

/// An installed kernel to be started.
#[derive(Clone, Debug)]
pub struct ZmqLaunch {
    /// The name of a kernelspec, or of a language.
    pub name: String,
    /// Where cells run, and whose Pythons' kernels are looked at.
    pub search: PythonSearch,
    /// Which variables of our environment it may see.
    pub rules: VariableRules,
    /// What the first cell of a Python kernel finds.
    pub setup: Setup,
    /// The folder for connection files and sockets.
    pub runtime: PathBuf,
    /// How to talk.
    pub link: ZmqLink,
    /// How long it may take until the first cell can run.
    pub ready_within: Duration,
    /// How long each step of stopping may take.
    pub graces: Graces,
}

/// How we and a kernel on this machine talk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZmqLink {
    /// Through Unix sockets, or by TCP if the kernel cannot use them.
    #[default]
    Auto,
    /// Through sockets in a folder that only the user can enter.
    Ipc,
    /// Through ports of the loopback interface.
    Tcp,
}

/// A kernel that already runs, no matter which program started it.
#[derive(Clone, Debug)]
pub struct ZmqAttach {
    /// Its connection file.
    pub file: PathBuf,
    /// How long it may take to answer.
    pub ready_within: Duration,
    /// How long it may take beyond that while its heart beats: it may be running a cell.
    pub busy_within: Duration,
    /// How long its heartbeat may stay unanswered before it counts as out of reach.
    pub silence: Duration,
    /// How long each step of stopping may take.
    pub graces: Graces,
}

/// A kernel that is ready for its first cell.
#[derive(Debug)]
pub struct ZmqKernel {
    /// The kernel.
    pub kernel: Kernel,
    /// What it says outside its cells.
    pub background: Background,
    /// What it says of itself.
    pub info: KernelInfoReply,
    /// Its kernelspec, when we started it.
    pub spec: Option<KernelSpec>,
    /// Its process, when we started it.
    pub pid: Option<u32>,
}

/// No kernel could be started, or reached.
#[derive(Debug, thiserror::Error)]
pub enum ZmqStartError {
    /// There is no such kernel, or its description cannot be used.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// Its description has no command.
    #[error("the kernelspec in `{}` has no command", resource_dir.display())]
    NoCommand {
        /// Where the description is.
        resource_dir: PathBuf,
    },
    /// There is no such folder to work in.
    #[error("`{}` is not a folder to run in", cwd.display())]
    NoDirectory {
        /// The folder.
        cwd: PathBuf,
    },
    /// Its sockets or its connection file could not be made.
    #[error("could not prepare a connection in `{}`", runtime.display())]
    Connection {
        /// The runtime folder.
        runtime: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Its program does not start.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// It ended before it was ready.
    #[error("kernel `{name}`: {exit} before it was ready{}", said(stderr))]
    Ended {
        /// Which kernel.
        name: String,
        /// How.
        exit: Exit,
        /// The end of what it wrote to standard error.
        stderr: String,
    },
    /// It did not get ready in time.
    #[error(
        "kernel `{name}` was not ready within {} second{}{}{}",
        limit.as_secs_f32(), if *limit == Duration::from_secs(1) { "" } else { "s" }, trouble.as_ref().map_or_else(String::new, |why| format!(" ({why})")), said(stderr)
    )]
    NotReady {
        /// Which kernel, or its connection file.
        name: String,
        /// How long it had.
        limit: Duration,
        /// What kept us from talking.
        trouble: Option<String>,
        /// The end of what it wrote to standard error.
        stderr: String,
    },
    /// What it says of itself cannot be read.
    #[error("kernel `{name}` answers in a way we do not understand")]
    Answer {
        /// Which kernel.
        name: String,
        /// Why.
        #[source]
        source: MessageContentError,
    },
    /// A connection file that cannot be used.
    #[error(transparent)]
    File(#[from] ConnectionFileError),
    /// It is reached in a way we do not speak.
    #[error(transparent)]
    Unsupported(#[from] UnsupportedConnection),
}

fn said(stderr: &str) -> String {
    let stderr = stderr.trim();
    if stderr.is_empty() { String::new() } else { format!("; it said: {stderr}") }
}

impl ZmqLaunch {
    /// A launch with the usual limits.
    pub fn new(name: impl Into<String>, search: PythonSearch, runtime: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            search,
            rules: VariableRules::default(),
            setup: Setup::default(),
            runtime: runtime.into(),
            link: ZmqLink::default(),
            ready_within: Duration::from_mins(1),
            graces: Graces::default(),
        }
    }

    /// Starts the kernel and waits until it is ready for its first cell.
    pub fn start(&self) -> BoxFuture<'_, Result<ZmqKernel, ZmqStartError>> {
        Box::pin(async move {
            if !self.search.cwd.is_dir() {
                return Err(ZmqStartError::NoDirectory { cwd: self.search.cwd.clone() });
            }
            let places = KernelspecPlaces::around(&self.search).await;
            let spec = places.find(&self.name)?;
            let known = TcpKernels::in_folder(&self.runtime);
            let link = match self.link {
                ZmqLink::Auto if known.has(&spec) => ZmqLink::Tcp,
                chosen => chosen,
            };
            let failed = match self.start_over(link, &places, &spec, Vec::new()).await {
                Err(error) if link == ZmqLink::Auto && error.may_be_the_link() && !is_ipykernel(&spec) => {
                    error
                }
                decided => return decided,
            };
            let warning = Event::Warning(format!(
                "kernel `{}` does not start with Unix sockets, so it is used by TCP: other users of this machine can read \
                 what passes",
                spec.name
            ));
            // What it says of Unix sockets is the first answer, and so the one to report if TCP does not help.
            let started =
                self.start_over(ZmqLink::Tcp, &places, &spec, vec![warning]).await.map_err(|_| failed)?;
            known.add(&spec);
            Ok(started)
        })
    }

    async fn start_over(
        &self,
        link: ZmqLink,
        places: &KernelspecPlaces,
        spec: &KernelSpec,
        mut events: Vec<Event>,
    ) -> Result<ZmqKernel, ZmqStartError> {
        let deadline = Instant::now() + self.ready_within;
        let began = Instant::now();
        let name = spec.name.clone();
        let (mut owned, info) = self.spawn(link, places, spec)?;
        let mut client = KernelClient::connect(&info, session())?;
        let folder = owned.folder.path().to_owned();
        let elsewhere = async {
            match link {
                ZmqLink::Auto => tcp_kernels::binds_elsewhere(&folder).await,
                ZmqLink::Ipc | ZmqLink::Tcp => std::future::pending().await,
            }
        };
        let ready = tokio::select! {
            biased; // a kernel that answered and then died counts as one that was ready
            ready = timeout_at(deadline, client.ready()) => ready,
            exit = owned.child.wait() => {
                let stderr = last_words(&owned.child);
                return Err(ZmqStartError::Ended { name, exit: Exit::Process(exit), stderr });
            }
            () = elsewhere => {
                return Err(ZmqStartError::NotReady {
                    name,
                    limit: began.elapsed(),
                    trouble: Some("it does not use the Unix sockets it was given".to_owned()),
                    stderr: last_words(&owned.child),
                });
            }
        };
        let not_ready = |trouble, child: &ChildProcess| ZmqStartError::NotReady {
            name: spec.name.clone(),
            limit: self.ready_within,
            trouble,
            stderr: last_words(child),
        };
        let info = match ready {
            Ok(Ok(info)) => info,
            Ok(Err(source)) => return Err(ZmqStartError::Answer { name, source }),
            Err(_) => return Err(not_ready(client.trouble(), &owned.child)),
        };
        let pid = owned.child.id();
        let mut zmq = ZmqTransport::new(client, KernelProcess::Ours(Box::new(owned)));
        if info.language_info.name == "python" {
            let prepared = timeout_at(deadline, prepare(&mut zmq, &self.setup, &self.search.cwd)).await;
            let KernelProcess::Ours(owned) = &zmq.process else { unreachable!("we started it") };
            match prepared {
                Ok(Ok(prepared)) => events.extend(prepared),
                Ok(Err(exit)) => {
                    return Err(ZmqStartError::Ended { name, exit, stderr: last_words(&owned.child) });
                }
                Err(_) => return Err(not_ready(Some("its setup does not end".to_owned()), &owned.child)),
            }
        }
        zmq.conversation.begin_with(events);
        let (kernel, background) = Kernel::start(zmq, self.graces, Some(pid));
        Ok(ZmqKernel { kernel, background, info, spec: Some(spec.clone()), pid: Some(pid) })
    }

    fn spawn(
        &self,
        link: ZmqLink,
        places: &KernelspecPlaces,
        spec: &KernelSpec,
    ) -> Result<(OwnedKernel, ConnectionInfo), ZmqStartError> {
        let connection = |source| ZmqStartError::Connection { runtime: self.runtime.clone(), source };
        let folder = KernelFolder::new_in(&self.runtime).map_err(connection)?;
        let reserved = match link {
            ZmqLink::Auto | ZmqLink::Ipc => ReservedAddresses::ipc(&folder),
            ZmqLink::Tcp => ReservedAddresses::tcp(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        };
        let mut reserved = reserved.map_err(connection)?;
        reserved.info.kernel_name = Some(spec.name.clone());
        let file = ConnectionFile::create(folder.path(), &reserved.info).map_err(connection)?;
        let variables = self.rules.pass(&self.search.variables);
        let (command, mut variables) = places.command(spec, file.path(), variables);
        let command = lossless(command);
        let Some((program, arguments)) = command.split_first() else {
            return Err(ZmqStartError::NoCommand { resource_dir: spec.resource_dir.clone() });
        };
        // Kernels end when this process is gone.
        variables.insert("JPY_PARENT_PID".into(), std::process::id().to_string().into());
        let child = ChildCommand::new(program, variables)
            .args(arguments)
            .current_dir(&self.search.cwd)
            .stderr(StderrTarget::Tail(STDERR_TAIL))
            .spawn()?;
        let info = reserved.info.clone();
        let interrupt_mode = spec.description.interrupt_mode;
        let owned =
            OwnedKernel { child, interrupt_mode, ending: false, _file: file, _reserved: reserved, folder };
        Ok((owned, info))
    }
}

impl ZmqAttach {
    /// A kernel with the usual limits.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            ready_within: Duration::from_secs(10),
            busy_within: Duration::from_mins(1),
            silence: Duration::from_secs(10),
            graces: Graces::default(),
        }
    }

    /// Connects to the kernel and waits for its answer. It is not prepared: its folder, its environment and its
    /// names are its owner's.
    pub fn start(&self) -> BoxFuture<'_, Result<ZmqKernel, ZmqStartError>> {
        Box::pin(async move {
            let mut client = KernelClient::connect(&ConnectionInfo::read(&self.file)?, session())?;
            let name = self.file.display().to_string();
            let mut limit = self.ready_within;
            let mut answer = timeout(limit, client.ready_though_busy()).await;
            if answer.is_err() && *client.pulse().borrow() == HeartbeatState::Beating {
                limit += self.busy_within;
                answer = timeout(self.busy_within, client.ready_though_busy()).await;
            }
            let Ok(info) = answer else {
                let alive = "it is alive: busy with a cell, or the key in the file is not its key";
                let alive = (*client.pulse().borrow() == HeartbeatState::Beating).then(|| alive.to_owned());
                let trouble = client.trouble().or(alive);
                return Err(ZmqStartError::NotReady { name, limit, trouble, stderr: String::new() });
            };
            let info = info.map_err(|source| ZmqStartError::Answer { name, source })?;
            let pulse = client.pulse();
            let zmq = ZmqTransport::new(
                client,
                KernelProcess::Theirs {
                    pulse,
                    silence: self.silence,
                    attached: Instant::now(),
                    is_lost: false,
                },
            );
            let (kernel, background) = Kernel::start(zmq, self.graces, None);
            Ok(ZmqKernel { kernel, background, info, spec: None, pid: None })
        })
    }
}

fn session() -> MessageSession {
    MessageSession::new("cellwright")
}

impl ZmqStartError {
    /// Whether a kernel that cannot use Unix sockets would fail like this.
    fn may_be_the_link(&self) -> bool {
        matches!(self, Self::Ended { .. } | Self::NotReady { .. })
    }
}

/// Whether it is ipykernel itself, which uses every link.
fn is_ipykernel(spec: &KernelSpec) -> bool {
    module_at(&spec.description.argv).is_some()
}

/// ipykernel by our launcher, with which a reader that is slow loses nothing; other commands as they are.
fn lossless(mut command: Vec<String>) -> Vec<String> {
    if let Some(at) = module_at(&command) {
        command.splice(at..at + 2, ["-c".to_owned(), LAUNCH_IPYKERNEL.to_owned()]);
    }
    command
}

/// Where a command names ipykernel as the module to run.
fn module_at(command: &[String]) -> Option<usize> {
    command
        .windows(2)
        .position(|pair| pair[0] == "-m" && ["ipykernel_launcher", "ipykernel"].contains(&pair[1].as_str()))
}
