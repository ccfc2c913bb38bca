//! From settings to sessions: what this process runs cells with.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use cellwright_kernel::environment::{EnvVars, VariableRules};
use cellwright_kernel::gateway::{Address, SharedGateway};
use cellwright_kernel::interpreter::PythonSearch;
use cellwright_kernel::zmq::ZmqLink;
use cellwright_kernel::{Gateways, RunnerLaunch, StartAny, StartRunner};
use cellwright_output::Artifacts;
use cellwright_session::bridge::OfCallers;
use cellwright_session::daemon::{self, DaemonDoor, DaemonPlace, DaemonSpawn};
use cellwright_session::{
    Call, CallSettings, OutputSettings, ResetPolicy, Retry, SessionClient, SessionError, SessionId,
    SessionSettings,
};
use futures_util::FutureExt as _;
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;

use crate::config::{self, LoadedConfig};
use crate::log;

/// What async commands run on: one thread for the call, one for a kernel that must not wait for it.
pub(crate) fn runtime() -> anyhow::Result<Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.context("could not start the runtime")
}

/// What commands run on that start no kernel: this thread.
pub(crate) fn small_runtime() -> anyhow::Result<Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("could not start the runtime")
}

/// Runs a command to its end. Boxed: the runtime's part is compiled once for all commands that end alike.
pub(crate) fn block_on<T>(runtime: &Runtime, command: impl Future<Output = T>) -> T {
    runtime.block_on(command.boxed_local())
}

/// How sessions behave, as the user's settings say. What goes on in them is logged from here on.
pub(crate) fn session_settings(config: &LoadedConfig, folder: &Path) -> SessionSettings {
    let config::UserSettings { kernel, session, .. } = &config.settings;
    log::begin(kernel.trace);
    let mut settings = SessionSettings::new(launcher(config, folder));
    settings.limits.sessions = session.limit;
    settings.limits.idle = Duration::from_secs(session.idle);
    settings.limits.memory = (session.memory > 0).then_some(session.memory << 20);
    settings.timeout = Duration::from_secs(kernel.timeout);
    settings.retry = match kernel.retry {
        config::RetryMode::Never => Retry::Never,
        config::RetryMode::Once => Retry::Once,
    };
    settings.resets = match session.reset {
        config::SimultaneousResets::Refuse => ResetPolicy::Refuse,
        config::SimultaneousResets::Join => ResetPolicy::Join,
    };
    settings.output = report_settings(config);
    settings.modules = config.places.modules();
    settings
}

/// What reports hold of outputs.
pub(crate) fn report_settings(config: &LoadedConfig) -> OutputSettings {
    let output = &config.settings.output;
    let mut settings = OutputSettings { artifacts: Some(artifacts(config)), ..OutputSettings::default() };
    // Two fifths for the beginning: the end, where the error is, gets more.
    settings.limits.head = output.budget / 5 * 2;
    settings.limits.tail = output.budget - settings.limits.head;
    settings.limits.line = output.columns;
    settings
}

/// How kernels of every kind are started.
fn launcher(config: &LoadedConfig, folder: &Path) -> StartAny {
    let config::UserSettings { kernel, gateway, .. } = &config.settings;
    let address = gateway.url.as_ref().map(|url| Address::new(url, gateway.token.clone()));
    StartAny {
        runner: StartRunner { template: launch(config, folder) },
        runtime: config.places.runtime.join("kernels"),
        link: match kernel.link {
            config::KernelLink::Auto => ZmqLink::Auto,
            config::KernelLink::Ipc => ZmqLink::Ipc,
            config::KernelLink::Tcp => ZmqLink::Tcp,
        },
        gateways: match address {
            Some(Ok(address)) => Gateways::At(address),
            Some(Err(invalid)) => Gateways::Invalid(invalid.to_string()),
            None => Gateways::Shared(shared_gateway(config, folder).folder),
        },
    }
}

/// The gateway that the user's processes share.
pub(crate) fn shared_gateway(config: &LoadedConfig, folder: &Path) -> SharedGateway {
    let RunnerLaunch { search, rules, .. } = launch(config, folder);
    SharedGateway { folder: config.places.runtime.join("gateway"), search, rules }
}

/// How the runner is started.
pub(crate) fn launch(config: &LoadedConfig, folder: &Path) -> RunnerLaunch {
    let config::UserSettings { python, environment, kernel, .. } = &config.settings;
    let search = PythonSearch {
        explicit: python.path.clone(),
        cwd: folder.to_owned(),
        variables: config.environment.clone(),
        managed: Some(config.places.managed_python()),
        trust: config.trust(),
    };
    let mut launch = RunnerLaunch::new(search, &config.places.cache);
    launch.rules = VariableRules { allow: environment.allow.clone(), deny: environment.deny.clone() };
    launch.trace = kernel.trace;
    launch
}

/// Where whole outputs are kept.
pub(crate) fn artifacts(config: &LoadedConfig) -> Artifacts {
    Artifacts::new(config.settings.output.artifacts.clone().unwrap_or_else(|| artifacts_folder(config)))
}

fn artifacts_folder(config: &LoadedConfig) -> PathBuf {
    config.places.state.join("artifacts")
}

/// How long a session of the daemon stays unused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionKeeping {
    /// For hours: a person gave it its name, to come back to it.
    Named,
    /// As long as any session.
    Unnamed,
}

impl SessionKeeping {
    /// By the name that a person gave, if one did.
    pub(crate) fn of(name: Option<&SessionId>) -> Self {
        if name.is_some() { Self::Named } else { Self::Unnamed }
    }
}

/// A client's settings, as they travel to the daemon.
#[derive(Debug, Serialize, Deserialize)]
struct ClientConfig {
    settings: config::UserSettings,
    places: config::UserFolders,
    folder: PathBuf,
}

/// The settings that calls in the daemon obey: those in force in `folder`.
pub(crate) fn call_settings(
    config: &LoadedConfig,
    folder: &Path,
    keeping: SessionKeeping,
) -> anyhow::Result<CallSettings> {
    let mut settings = config.settings.clone();
    if keeping == SessionKeeping::Named {
        settings.session.idle = settings.session.named_idle;
    }
    let folder = std::path::absolute(folder).context("the current folder is gone")?;
    let client = ClientConfig { settings, places: config.places.clone(), folder };
    CallSettings::pack(&client).context("the settings cannot be sent to the session daemon")
}

/// What the daemon makes of them.
pub(crate) fn client_settings(sent: &CallSettings) -> Result<SessionSettings, SessionError> {
    let unreadable = |error: serde_json::Error| SessionError::Daemon(format!("a client's settings: {error}"));
    let ClientConfig { settings, places, folder } = sent.unpack().map_err(unreadable)?;
    let config = LoadedConfig::of_client(settings, places);
    Ok(SessionSettings { tools: Some(Arc::new(OfCallers)), ..session_settings(&config, &folder) })
}

/// What a call brings to the daemon.
#[derive(Debug, Clone)]
pub(crate) struct ClientSurroundings {
    variables: EnvVars,
    settings: CallSettings,
}

impl ClientSurroundings {
    pub(crate) fn of(
        config: &LoadedConfig,
        folder: &Path,
        session: Option<&SessionId>,
    ) -> anyhow::Result<Self> {
        let settings = call_settings(config, folder, SessionKeeping::of(session))?;
        Ok(Self { variables: config.environment.clone(), settings })
    }

    pub(crate) fn equip(&self, call: &mut Call) {
        call.variables = Some(self.variables.clone());
        call.settings = Some(self.settings.clone());
    }
}

/// Joins the user's session daemon, and starts one if none runs.
pub(crate) async fn daemon_client(config: &LoadedConfig) -> anyhow::Result<SessionClient> {
    Ok(daemon::connect(&daemon_door(config)?).await?)
}

/// The way to the user's session daemon.
pub(crate) fn daemon_door(config: &LoadedConfig) -> anyhow::Result<DaemonDoor> {
    let program = std::env::current_exe().context("could not find this program")?;
    let spawn = DaemonSpawn { program, arguments: vec!["daemon".into()] };
    Ok(DaemonDoor { place: daemon_place(config), version: VERSION, spawn, settings: None })
}

/// Where the user's session daemon is.
pub(crate) fn daemon_place(config: &LoadedConfig) -> DaemonPlace {
    DaemonPlace::new(&config.places.runtime)
}

/// The program's version, which daemon and client must share.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
