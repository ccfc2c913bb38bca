//! `cellwright setup`

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use cellwright_kernel::interpreter::{PythonSearch, create_managed};
use cellwright_kernel::runner::RunnerReady;
use cellwright_kernel::{LaunchError, RunnerLaunch};
use cellwright_process::{ChildCommand, StderrTarget};

use super::install::on_path;
use crate::config::LoadedConfig;
use crate::{host, print};

/// How many bytes of pip's errors are shown.
const COMPLAINT: usize = 4000;

/// Prepare this machine
#[derive(Debug, clap::Args)]
pub(crate) struct SetupCommand {
    #[command(subcommand)]
    what: SetupTarget,
}

#[derive(Debug, clap::Subcommand)]
enum SetupTarget {
    Python(SetupPython),
}

/// Make a Python environment for folders that have none
///
/// Cellwright uses it if a project has no environment of its own, before the Python on PATH. uv makes it if uv is on
/// PATH. Running the command again changes nothing; with --with it adds packages.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cellwright setup python
  cellwright setup python --with ipython,numpy,pandas,matplotlib
  cellwright setup python --force --python 3.12")]
struct SetupPython {
    /// Packages to install in it, separated by commas
    #[arg(long, value_name = "PACKAGES", value_delimiter = ',')]
    with: Vec<String>,
    /// The Python to make it from
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Replace the environment, with everything that is installed in it
    #[arg(long)]
    force: bool,
}

impl SetupCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let SetupTarget::Python(python) = self.what;
        host::block_on(&host::small_runtime()?, python.make())
    }
}

impl SetupPython {
    async fn make(self) -> anyhow::Result<()> {
        let folder = std::env::current_dir().context("the current folder is gone")?;
        let config = LoadedConfig::load(&folder, Vec::new())?;
        let launch = host::launch(&config, &folder);
        let venv = config.places.managed_python();
        let there = venv.exists();
        if there && !self.force {
            return self.add_to(&launch, &venv).await;
        }
        let base = self.base(&launch).await?;
        // It must look the same from everywhere: what the current folder pins is the project's business.
        let search = PythonSearch { cwd: config.places.data.clone(), ..launch.search.clone() };
        std::fs::create_dir_all(&search.cwd)
            .with_context(|| format!("could not make {}", search.cwd.display()))?;
        create_managed(&search, &venv, base.as_deref(), &self.with).await?;
        let python = started(&launch, &venv).await?;
        let made = if there { "replaced" } else { "made" };
        let with = if uv(&launch) { "uv" } else { "python -m venv" };
        print::plain(&format!("{made} {} by {with}: {}{}\n", venv.display(), named(&python), self.packages()))
    }

    /// Leaves an environment that works as it is, except for packages that were asked for.
    async fn add_to(&self, launch: &RunnerLaunch, venv: &Path) -> anyhow::Result<()> {
        let python = started(launch, venv).await.map_err(|error| {
            let message =
                "it does not work; `cellwright setup python --force` replaces it, with its packages";
            error.context(message).context(venv.display().to_string())
        })?;
        anyhow::ensure!(
            self.python.is_none(),
            "{} already exists, with {}; --force replaces it with another one",
            venv.display(),
            named(&python)
        );
        if !self.with.is_empty() {
            install(launch, &venv.join("bin/python"), &self.with).await?;
        }
        print::plain(&format!("{} is there: {}{}\n", venv.display(), named(&python), self.packages()))
    }

    /// The Python to make it from: the one cells would run with if there were no managed one. `uv` can do without.
    async fn base(&self, launch: &RunnerLaunch) -> anyhow::Result<Option<PathBuf>> {
        let mut launch = launch.clone();
        launch.search.managed = None;
        launch.search.explicit = self.python.clone();
        match launch.start().await {
            Ok(launched) => Ok(Some(launched.python.executable)),
            Err(LaunchError::NoInterpreter { .. }) => Ok(None),
            // uv knows versions that are nowhere on PATH, and fetches those that are nowhere at all.
            Err(LaunchError::Explicit { .. }) if uv(&launch) => Ok(self.python.clone()),
            Err(error) => Err(error.into()),
        }
    }

    fn packages(&self) -> String {
        if self.with.is_empty() { String::new() } else { format!(", with {}", self.with.join(", ")) }
    }
}

/// Starts a kernel in the environment, as a call would.
async fn started(launch: &RunnerLaunch, venv: &Path) -> Result<RunnerReady, anyhow::Error> {
    let mut launch = launch.clone();
    launch.search.explicit = Some(venv.to_owned());
    Ok(launch.start().await?.python)
}

fn uv(launch: &RunnerLaunch) -> bool {
    on_path(&launch.search.variables, "uv").is_some()
}

fn named(python: &RunnerReady) -> String {
    format!("{} {}", python.implementation, python.version)
}

/// Installs packages with the environment's own pip, which `create_managed` put there.
async fn install(launch: &RunnerLaunch, python: &Path, packages: &[String]) -> anyhow::Result<()> {
    let pip = ChildCommand::new(python, &launch.search.variables)
        .args(["-I", "-m", "pip", "install", "--disable-pip-version-check"])
        .args(packages)
        .stderr(StderrTarget::Tail(COMPLAINT));
    let mut pip = pip.spawn()?;
    let exit = pip.wait().await;
    anyhow::ensure!(exit.success(), "pip {exit}, saying: {}", pip.stderr_tail().trim_end());
    Ok(())
}
