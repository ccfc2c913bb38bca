//! Choosing and starting kernels of every transport.

mod any;
mod choice;
mod existing;

use std::fmt;
use std::path::PathBuf;

use futures_util::future::BoxFuture;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::environment::EnvVars;
use crate::execution::Background;
use crate::kernel::Kernel;
use crate::runner::{LaunchError, RunnerLaunch};
use crate::setup::Setup;

pub use any::{Gateways, StartAny};
pub use choice::{InvalidKernelChoice, KernelChoice};
pub use existing::ExistingKernel;

/// A way to start kernels.
pub trait Launcher: Send + Sync + 'static {
    /// Starts a kernel. It may return before the setup is done, if cells wait for it.
    fn start(&self, start: KernelStart) -> BoxFuture<'_, Result<StartedKernel, StartError>>;
}

/// A kernel to be started.
#[derive(Clone, Debug)]
pub struct KernelStart {
    /// Which.
    pub kernel: KernelChoice,
    /// In which folder.
    pub cwd: PathBuf,
    /// What its first cell finds.
    pub setup: Setup,
    /// The environment it inherits, as far as the rules let it. `None` means this process's.
    pub variables: Option<EnvVars>,
}

/// A kernel that has started.
#[derive(Debug)]
pub struct StartedKernel {
    /// The kernel.
    pub kernel: Kernel,
    /// What it says outside its cells.
    pub background: Background,
    /// What it is.
    pub about: AboutKernel,
    /// What the user should know about the choice.
    pub warnings: Vec<String>,
}

/// What a kernel is, by its own account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AboutKernel {
    /// Its language and version, such as `CPython 3.12.4`.
    pub language: String,
    /// The program that runs.
    pub program: Option<PathBuf>,
    /// How it was found.
    pub origin: Option<String>,
    /// Its process, when it runs here.
    pub pid: Option<u32>,
}

impl fmt::Display for AboutKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.language)?;
        if let Some(program) = &self.program {
            write!(f, " at {}", program.display())?;
        }
        if let Some(origin) = &self.origin {
            write!(f, " ({origin})")?;
        }
        Ok(())
    }
}

/// A kernel could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No runner could be started.
    #[error(transparent)]
    Launch(LaunchError),
    /// This process has no descriptors left, or the system no processes.
    #[error("the system has no room for another kernel")]
    Exhausted(#[source] Box<StartError>),
    /// Another kind of kernel could not be started.
    #[error("{0}")]
    Other(String),
}

/// Starts our runner, after a template.
#[derive(Clone, Debug)]
pub struct StartRunner {
    /// Its working folder, its choice of Python and its setup are replaced by what a session asks for.
    pub template: RunnerLaunch,
}

impl Launcher for StartRunner {
    fn start(&self, start: KernelStart) -> BoxFuture<'_, Result<StartedKernel, StartError>> {
        Box::pin(async move {
            let mut launch = self.template.clone();
            let KernelChoice::Python { named } = start.kernel else {
                return Err(StartError::Other(format!("`{}` is not a kernel of the runner", start.kernel)));
            };
            launch.search.cwd = start.cwd;
            launch.search.explicit = named.or(launch.search.explicit);
            launch.setup = start.setup;
            if let Some(variables) = start.variables {
                launch.search.variables = variables;
            }
            let launched = launch.start().await.map_err(StartError::from)?;
            let python = launched.python;
            Ok(StartedKernel {
                kernel: launched.kernel,
                background: launched.background,
                about: AboutKernel {
                    language: format!("{} {}", python.implementation, python.version),
                    program: Some(launched.candidate.python),
                    origin: Some(launched.candidate.origin.to_string()),
                    pid: Some(python.pid),
                },
                warnings: launched.rejected.iter().map(|rejected| format!("not used: {rejected}")).collect(),
            })
        })
    }
}

impl From<LaunchError> for StartError {
    fn from(error: LaunchError) -> Self {
        // EAGAIN is what `fork` says when there are too many processes.
        let exhaustion = [Errno::AGAIN, Errno::NFILE, Errno::MFILE];
        if error.system_error().is_some_and(|code| exhaustion.contains(&Errno::from_raw_os_error(code))) {
            Self::Exhausted(Box::new(Self::Launch(error)))
        } else {
            Self::Launch(error)
        }
    }
}
