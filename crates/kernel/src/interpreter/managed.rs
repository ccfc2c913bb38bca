//! The virtual environment we manage: for machines without one of their own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cellwright_process::{ChildCommand, ChildProcess, SpawnError, StderrTarget};
use futures_util::future::BoxFuture;
use tokio::time::timeout;

use super::PythonSearch;

/// How long making the environment or installing into it may take.
const LIMIT: Duration = Duration::from_mins(10);

/// How much of a tool's error output is reported.
const COMPLAINT: usize = 4000;

/// The managed environment could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// There is nothing to make it with.
    #[error("neither `uv` nor a Python was found to make `{}` with; install one of them", venv.display())]
    NoTool {
        /// Where it was to be.
        venv: PathBuf,
    },
    /// A tool could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// A tool failed.
    #[error("`{command}` {how}{}", if said.is_empty() { String::new() } else { format!(", saying: {}", said.trim_end()) })]
    Failed {
        /// What was run.
        command: String,
        /// How it ended.
        how: String,
        /// The end of what it printed.
        said: String,
    },
}

/// Rebuilds the virtual environment `venv`, with `uv` if it is on `PATH` and otherwise with `python`,
/// and installs `packages` into it. Returns its Python.
pub fn create_managed<'a>(
    search: &'a PythonSearch,
    venv: &'a Path,
    python: Option<&'a Path>,
    packages: &'a [String],
) -> BoxFuture<'a, Result<PathBuf, SetupError>> {
    Box::pin(async move {
        let uv = search.on_path("uv").next();
        let made = venv.join("bin/python");
        match (&uv, python) {
            (Some(uv), python) => {
                let command = ChildCommand::new(uv, &search.variables)
                    .args(["venv", "--clear", "--seed"])
                    .current_dir("/");
                let command =
                    python.into_iter().fold(command, |command, python| command.arg("--python").arg(python));
                run("uv venv", command.arg(venv)).await?;
            }
            (None, Some(python)) => {
                let command = ChildCommand::new(python, &search.variables) // A `venv.py` in the current folder is not what is meant.
                    .args(["-I", "-m", "venv", "--clear"])
                    .current_dir("/");
                run("python -m venv", command.arg(venv)).await?;
            }
            (None, None) => return Err(SetupError::NoTool { venv: venv.into() }),
        }
        if packages.is_empty() {
            return Ok(made);
        }
        let install = match &uv {
            Some(uv) => {
                ChildCommand::new(uv, &search.variables).args(["pip", "install", "--python"]).arg(&made)
            }
            None => ChildCommand::new(&made, &search.variables).args(["-I", "-m", "pip", "install"]),
        };
        run("pip install", install.args(packages)).await?;
        Ok(made)
    })
}

async fn run(name: &str, command: ChildCommand) -> Result<(), SetupError> {
    let mut child: ChildProcess = command.stderr(StderrTarget::Tail(COMPLAINT)).spawn()?;
    let how = match timeout(LIMIT, child.wait()).await {
        Ok(exit) if exit.success() => return Ok(()),
        Ok(exit) => exit.to_string(),
        Err(_) => format!("took longer than {} seconds", LIMIT.as_secs()),
    };
    Err(SetupError::Failed { command: name.into(), how, said: child.stderr_tail() })
}
