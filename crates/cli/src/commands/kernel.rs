//! `cellwright kernel`

mod install;
mod run;

use clap::Subcommand;

use crate::config::Config;
use crate::print::Format;

/// The agent kernel: cells as prompts to any ACP agent, in any Jupyter client
#[derive(Debug, clap::Args)]
pub(crate) struct KernelCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Install(install::Install),
    /// List the agent kernels that are installed, and the agents there are
    List {
        #[command(flatten)]
        format: Format,
    },
    /// Remove agent kernels
    Remove {
        /// Which ones, as `list` names them
        #[arg(required = true)]
        names: Vec<String>,
    },
    Run(run::Run),
}

impl KernelCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let config = || Config::load(&std::env::current_dir()?, Vec::new());
        match self.action {
            Action::Install(install) => install.run(&config()?),
            Action::List { format } => install::list(&config()?, format),
            Action::Remove { names } => install::remove(&config()?, &names),
            Action::Run(run) => run.run(),
        }
    }
}
