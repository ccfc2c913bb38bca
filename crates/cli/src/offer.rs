//! What is offered to callers of tools, by flags and settings.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use cellwright_editing::{DiskMemory, ReadMemory};
use cellwright_session::SessionId;
use cellwright_tools::{BackgroundPolicy, DaemonDoor, OutsidePaths, RunMode, SessionNames, ToolSettings};
use futures_util::FutureExt as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::caller;
use crate::config::{KernelMode, LoadedConfig, env};
use crate::host::{self, SessionKeeping};

/// What every command takes that offers tools.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ToolOptions {
    /// A folder that file tools may use, instead of the current folder or the client's roots; can be repeated
    #[arg(long, value_name = "FOLDER")]
    root: Vec<PathBuf>,
    /// Let file tools use every path
    #[arg(long)]
    allow_outside: bool,
    /// Which tools that run code to offer: both, py-only (no bash), bash-only (no eval) or edit-only (none)
    #[arg(long, value_name = "MODE")]
    tools: Option<RunMode>,
    /// Run calls that name no session in this one, which the session daemon keeps for later calls
    #[arg(long, value_name = "NAME")]
    session: Option<SessionId>,
}

impl ToolOptions {
    /// How the tools work.
    pub(crate) fn settings(
        &self,
        config: &LoadedConfig,
        start: &Path,
        sessions: &cellwright_session::SessionSettings,
    ) -> anyhow::Result<ToolSettings> {
        let launch = host::launch(config, start);
        let seconds = |seconds: u64| (seconds > 0).then(|| Duration::from_secs(seconds));
        Ok(ToolSettings {
            mode: self.tools.unwrap_or(config.settings.tools.mode),
            artifacts: host::artifacts(config),
            limits: sessions.output.limits,
            kernel: config.settings.kernel.default.parse().context("kernel.default")?,
            lifetime: match config.settings.kernel.mode {
                KernelMode::Session => cellwright_session::SessionMode::Session,
                KernelMode::PerCall => cellwright_session::SessionMode::PerCall,
            },
            images: cellwright_output::ImageLimits::default(),
            timeout: seconds(config.settings.kernel.timeout),
            background: seconds(config.settings.output.background_after)
                .map_or(BackgroundPolicy::Asked, BackgroundPolicy::After),
            environment: launch.rules.pass(&config.environment),
            shell_snapshot: env::SHELL_SNAPSHOT
                .iter()
                .find_map(|name| config.environment.get(OsStr::new(name)).filter(|file| !file.is_empty()))
                .map(PathBuf::from),
            launch,
            history: Some(config.places.history()),
            live: None,
            save: config.places.save_settings(),
        })
    }

    /// What the caller of this process has read.
    pub(crate) fn memory(&self, config: &LoadedConfig) -> Arc<dyn ReadMemory> {
        let caller = caller::name(&config.environment, self.session.as_ref().map(SessionId::as_str));
        Arc::new(DiskMemory::of_caller(&config.places.state.join("reads"), &caller))
    }

    /// What sessions are called.
    pub(crate) fn names(&self) -> SessionNames {
        let session = self.session.clone();
        SessionNames::shared(session.unwrap_or_else(|| "default".parse().expect("a valid name")))
    }

    /// The daemon, if sessions are to outlive the caller.
    pub(crate) fn daemon(&self, config: &LoadedConfig, start: &Path) -> anyhow::Result<Option<DaemonDoor>> {
        let outlives = self.session.is_some() || config.settings.session.shared;
        let keeping = SessionKeeping::of(self.session.as_ref());
        let door = || {
            let settings = host::call_settings(config, start, keeping)?;
            Ok(DaemonDoor { settings: Some(settings), ..host::daemon_door(config)? })
        };
        outlives.then(door).transpose()
    }

    /// The folders that were named, if any.
    pub(crate) fn roots(&self, config: &LoadedConfig) -> anyhow::Result<Vec<PathBuf>> {
        let folders = if self.root.is_empty() { &config.settings.files.roots } else { &self.root };
        for folder in folders {
            anyhow::ensure!(folder.is_dir(), "{} is not a folder", folder.display());
        }
        Ok(folders.clone())
    }

    /// What happens to paths elsewhere.
    pub(crate) fn outside(&self, config: &LoadedConfig) -> OutsidePaths {
        if self.allow_outside || config.settings.files.allow_outside {
            OutsidePaths::Allowed
        } else {
            OutsidePaths::Refused
        }
    }
}

/// Cancelled by the first SIGTERM, SIGINT or SIGHUP.
pub(crate) fn stopped_by_signal() -> anyhow::Result<CancellationToken> {
    let stop = CancellationToken::new();
    cancelled_by(&stop, [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()])?;
    Ok(stop)
}

/// Cancels a token at the first of these signals.
pub(crate) fn cancelled_by(
    token: &CancellationToken,
    kinds: impl IntoIterator<Item = SignalKind>,
) -> anyhow::Result<()> {
    for kind in kinds {
        let (mut signals, token) = (signal(kind).context("could not listen for signals")?, token.clone());
        // Ends with the process.
        drop(tokio::spawn(
            async move {
                signals.recv().await;
                token.cancel();
            }
            .boxed(),
        ));
    }
    Ok(())
}
