//! `cellwright kernel run`

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use cellwright_acp::agent::{AgentFiles, AgentLaunch};
use cellwright_acp::catalog;
use cellwright_acp::companion::CompanionSetup;
use cellwright_acp::kernel::{self, KernelSetup, NotebookPlace, OwnServers};
use cellwright_acp::page::PageBridge;
use cellwright_acp::permission::ApprovalMode;
use cellwright_acp::tool_door::DoorSetup;
use cellwright_jupyter::ConnectionInfo;
use cellwright_tools::{DaemonDoor, ToolSettings};
use futures_util::FutureExt as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::{AgentKernel, LoadedConfig, LogLevel, NotebookTools, PermissionMode};
use crate::host::SessionKeeping;
use crate::offer::ToolOptions;
use crate::{agents, host};

/// Run as a kernel; Jupyter calls this
#[derive(Debug, clap::Args)]
pub(super) struct KernelRun {
    /// Jupyter's connection file
    #[arg(short = 'f', long, value_name = "FILE")]
    connection_file: PathBuf,
    /// The agent to start, as `cellwright kernel list` names it
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// What to do when an agent asks for permission: ask you, auto (allow) or deny
    #[arg(long, value_name = "MODE", value_parser = mode)]
    permissions: Option<ApprovalMode>,
    /// The program and arguments of an agent to use instead of the known ones
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

fn mode(name: &str) -> anyhow::Result<ApprovalMode> {
    name.parse().map_err(|()| anyhow::anyhow!("one of ask, auto, deny"))
}

impl KernelRun {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let connection = ConnectionInfo::read(&self.connection_file)?;
        let workspace = std::env::current_dir().context("the current folder is gone")?;
        // A kernel that dies is started again and again, and its reason is in a log that nobody
        // reads. This one starts, and its first cell shows what is wrong.
        let setup = match LoadedConfig::load(&workspace, Vec::new()) {
            Ok(config) => {
                log(&config.settings.agent);
                let page = PageBridge::default();
                match companion(&config, &workspace, &page) {
                    Ok(companion) => self.setup(&config, workspace, page, companion),
                    Err(error) => without_settings(workspace, format!("{error:#}")),
                }
            }
            Err(error) => without_settings(workspace, format!("{error:#}")),
        };
        let runtime = host::runtime()?;
        host::block_on(&runtime, async {
            let (end, interrupts) = (CancellationToken::new(), Arc::new(Notify::new()));
            let watching = until_told(end.clone(), Arc::clone(&interrupts))?.boxed();
            let watch = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(watching));
            kernel::run(&connection, setup, end, interrupts).await?;
            drop(watch);
            anyhow::Ok(())
        })
    }

    fn setup(
        self,
        config: &LoadedConfig,
        workspace: PathBuf,
        page: PageBridge,
        companion: CompanionSetup,
    ) -> KernelSetup {
        let agent = &config.settings.agent;
        let launch = |program: OsString, args: Vec<OsString>, env: &BTreeMap<String, String>| {
            let mut environment = config.environment.clone();
            environment.extend(env.iter().map(|(name, value)| (name.into(), value.into())));
            let files = if agent.files { AgentFiles::Offered } else { AgentFiles::Own };
            AgentLaunch {
                program,
                args,
                environment: environment.into_iter().collect(),
                cwd: workspace.clone(),
                files,
            }
        };
        let agents = match self.command.split_first() {
            Some((program, args)) => {
                let name = Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned();
                vec![(name, launch(program.clone(), args.to_vec(), &BTreeMap::new()))]
            }
            None => agents::all(config)
                .into_iter()
                .map(|agent| {
                    let args = agent.args.iter().map(OsString::from).collect();
                    (agent.name, launch(agent.command.into(), args, &agent.env))
                })
                .collect(),
        };
        let mode = self.permissions.unwrap_or(match agent.permissions {
            PermissionMode::Ask => ApprovalMode::Ask,
            PermissionMode::Auto => ApprovalMode::Auto,
            PermissionMode::Deny => ApprovalMode::Deny,
        });
        let environment = config.environment.clone().into_iter().collect();
        let notebook = notebook(config, &workspace);
        KernelSetup {
            workspace,
            agents,
            environment,
            agent: if self.command.is_empty() { self.agent.or_else(|| agent.default.clone()) } else { None },
            guidance: catalog::guidance(),
            approval: mode,
            grace: Duration::from_secs(5),
            debug_updates: agent.debug_updates.clone(),
            own_servers: OwnServers::new(agents::own_servers::of),
            notebook,
            page,
            companion: Some(companion),
            trouble: None,
        }
    }
}

/// How code cells run, and what agents may call.
fn companion(config: &LoadedConfig, workspace: &Path, page: &PageBridge) -> anyhow::Result<CompanionSetup> {
    let sessions = host::session_settings(config, workspace);
    let tools = ToolOptions::default().settings(config, workspace, &sessions)?;
    let tools = ToolSettings { live: Some(Arc::new(page.clone())), ..tools };
    let settings = Some(host::call_settings(config, workspace, SessionKeeping::Named)?);
    let daemon = Some(DaemonDoor { settings, ..host::daemon_door(config)? });
    let program = std::env::current_exe().context("could not find this program")?;
    let door = match config.settings.agent.tools {
        NotebookTools::Notebook => Some(DoorSetup { program, runtime: config.places.runtime.clone() }),
        NotebookTools::None => None,
    };
    Ok(CompanionSetup { tools, sessions, daemon, door })
}

/// The notebook that Jupyter Server started this kernel for. Consoles and runs without a server
/// name none.
fn notebook(config: &LoadedConfig, workspace: &Path) -> Option<NotebookPlace> {
    let named = config.environment.get(OsStr::new("JPY_SESSION_NAME"))?;
    let notebook = workspace.join(named);
    let is_notebook = notebook.extension().is_some_and(|ending| ending == "ipynb");
    let conversations = config.places.state.join("conversations");
    is_notebook.then_some(NotebookPlace { notebook, conversations })
}

/// A kernel that can only report why its settings cannot be used.
fn without_settings(workspace: PathBuf, trouble: String) -> KernelSetup {
    KernelSetup {
        workspace,
        agents: Vec::new(),
        environment: std::env::vars_os().collect(),
        agent: None,
        guidance: trouble.clone(),
        approval: ApprovalMode::Deny,
        grace: Duration::from_secs(5),
        debug_updates: Vec::new(),
        own_servers: OwnServers::new(|_| Vec::new()),
        notebook: None,
        page: PageBridge::default(),
        companion: None,
        trouble: Some(trouble),
    }
}

/// Logs to standard error, which Jupyter shows where it was started.
fn log(settings: &AgentKernel) {
    let level = match settings.log {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    // Updates that were asked for by name are not kept back by the level.
    let updates = if settings.debug_updates.is_empty() { LevelFilter::OFF } else { LevelFilter::INFO };
    // Libraries' own logs are only for the most detailed level.
    let others = if level == LevelFilter::DEBUG { level } else { LevelFilter::ERROR };
    let ours = Targets::new().with_default(others).with_target("cellwright", level);
    let wanted = ours.with_target(kernel::UPDATES, updates);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    tracing_subscriber::registry().with(lines.with_filter(wanted)).init();
}

/// Ends the kernel at a signal, or when the process that started it has gone, as Jupyter's own kernels do.
/// An interrupt mostly comes by message; the signal means the same.
fn until_told(
    end: CancellationToken,
    interrupts: Arc<Notify>,
) -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let parent = std::env::var_os("JPY_PARENT_PID").map(|_| parent_id());
    let mut look = interval(Duration::from_secs(1));
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    Ok(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => break,
                _ = interrupt.recv() => interrupts.notify_one(),
                _ = look.tick(), if parent.is_some() => if parent != Some(parent_id()) { break },
            }
        }
        end.cancel();
    })
}
