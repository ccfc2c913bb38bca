//! `cellwright kernel`

mod install;
mod run;

pub(crate) use install::installed;

use clap::Subcommand;

pub(super) use self::install::{python_prefix, surroundings, variable};

use crate::config::LoadedConfig;
use crate::print::OutputFormat;

/// Install and run the agent kernel: its cells are prompts to any ACP agent, in any Jupyter client
#[derive(Debug, clap::Args)]
pub(crate) struct KernelCommand {
    #[command(subcommand)]
    action: KernelSubcommand,
}

#[derive(Debug, Subcommand)]
enum KernelSubcommand {
    Install(install::KernelInstall),
    /// List the installed agent kernels and the available agents
    List {
        #[command(flatten)]
        format: OutputFormat,
    },
    /// Remove agent kernels
    Remove {
        /// The kernels, as `list` names them
        #[arg(required = true)]
        names: Vec<String>,
    },
    Run(run::KernelRun),
}

impl KernelCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let config = || LoadedConfig::load(&std::env::current_dir()?, Vec::new());
        match self.action {
            KernelSubcommand::Install(install) => install.run(&config()?),
            KernelSubcommand::List { format } => install::list(&config()?, format),
            KernelSubcommand::Remove { names } => install::remove(&config()?, &names),
            KernelSubcommand::Run(run) => run.run(),
        }
    }
}
