//! `cellwright self`

mod completion;
mod footprint;

use clap::CommandFactory as _;
use serde::Serialize;

use self::completion::CompletedShell;
use crate::print::{self, OutputFormat};

/// Manage this installation: its files, shell completions, and how to remove it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cellwright self paths
  cellwright self completions bash > ~/.local/share/bash-completion/completions/cellwright
  cellwright self uninstall")]
pub(crate) struct SelfCommand {
    #[command(subcommand)]
    action: SelfAction,
}

#[derive(Debug, clap::Subcommand)]
enum SelfAction {
    /// Show where the program and its files are, and how much space they take
    Paths(OutputFormat),
    /// Show what an uninstall removes; with --yes, remove it
    ///
    /// Removes entries in the settings of MCP clients, agent kernels, and the folders that `self paths` shows. Your own
    /// settings and modules stay unless you add --settings. The program itself stays: the last line of the answer names the
    /// command that removes it.
    Uninstall(footprint::UninstallArguments),
    /// Print a script that completes commands, flags and values in a shell
    Completions {
        /// The shell
        shell: CompletedShell,
    },
    /// Print what could stand at the end of a command line
    #[command(hide = true)]
    Complete {
        /// The words of the line, the program first; the last one is completed
        #[arg(last = true)]
        words: Vec<String>,
    },
}

impl SelfCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.action {
            SelfAction::Paths(format) => footprint::print_paths(format),
            SelfAction::Uninstall(arguments) => arguments.run(),
            SelfAction::Completions { shell } => print::plain(shell.script()),
            SelfAction::Complete { words } => {
                let mut command = crate::CommandLine::command();
                command.build();
                print::plain(&completion::candidates(&command, &words))
            }
        }
    }
}

/// What `cellwright --version` prints: the version, and the commit and profile of the build.
pub(crate) const VERSION: &str = env!("PROGRAM_VERSION");

/// One line of a list in JSON.
fn print_lines(format: OutputFormat, value: &impl Serialize, text: &str) -> anyhow::Result<()> {
    if format.json { print::json(value) } else { print::plain(text) }
}
