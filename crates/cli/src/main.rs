//! The `cellwright` command: arguments in, one job done, an exit code out.

mod agents;
mod caller;
mod commands;
mod config;
mod draw;
mod exit;
mod export;
mod host;
mod line;
mod log;
mod offer;
mod print;
mod render;
mod repl;
mod script;
mod show;
mod trusting;

use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::exit::{CommandExit, ErrorFormat};

/// Jupyter notebooks and live kernels for people and agents.
#[derive(Parser)]
#[command(name = "cellwright", version = commands::installation::VERSION, after_help = exit::CODES, max_term_width = 100)]
struct CommandLine {
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Subcommand)]
#[command(defer = true)]
enum CliCommand {
    // Boxed, for it has by far the most flags.
    Run(Box<commands::run::RunCommand>),
    Repl(commands::repl::ReplCommand),
    Attach(commands::attach::AttachCommand),
    Mcp(commands::mcp::ServeMcp),
    Tool(commands::tool::ToolCommand),
    Read(commands::read::ReadCommand),
    Show(commands::show::ShowCommand),
    Export(commands::export::ExportCommand),
    Write(commands::write::WriteCommand),
    Edit(commands::edit::EditCommand),
    Notebook(commands::notebook::NotebookCommand),
    Config(commands::config::ConfigCommand),
    Setup(commands::setup::SetupCommand),
    Doctor(commands::doctor::DoctorCommand),
    Session(commands::session::SessionCommand),
    Gateway(commands::gateway::GatewayCommand),
    Trust(commands::trust::TrustCommand),
    Kernel(commands::kernel::KernelCommand),
    Lab(commands::lab::LabCommand),
    Daemon(commands::daemon::DaemonCommand),
    #[command(name = "self")]
    Installation(commands::installation::SelfCommand),
}

impl CliCommand {
    fn run(self) -> anyhow::Result<CommandExit> {
        match self {
            Self::Run(run) => return run.run(),
            Self::Repl(repl) => return repl.run(),
            Self::Attach(attach) => return attach.run(),
            Self::Mcp(mcp) => mcp.run(),
            Self::Tool(tool) => return tool.run(),
            Self::Read(read) => read.run(),
            Self::Show(show) => show.run(),
            Self::Export(export) => export.run(),
            Self::Write(write) => write.run(),
            Self::Edit(edit) => edit.run(),
            Self::Notebook(notebook) => notebook.run(),
            Self::Config(config) => config.run(),
            Self::Setup(setup) => setup.run(),
            Self::Doctor(doctor) => return doctor.run(),
            Self::Session(session) => session.run(),
            Self::Gateway(gateway) => gateway.run(),
            Self::Trust(trust) => trust.run(),
            Self::Kernel(kernel) => kernel.run(),
            Self::Lab(lab) => lab.run(),
            Self::Daemon(daemon) => daemon.run(),
            Self::Installation(installation) => installation.run(),
        }
        .map(|()| CommandExit::Done)
    }
}

fn main() -> ExitCode {
    keep_environment_private();
    cellwright_kernel::startup::begin(config::asks_for_startup_times());
    let mut command = CommandLine::command();
    // The arguments of a command are looked at when it is called. Without one, the help is about all of them.
    let called = std::env::args_os().nth(1);
    let is_command =
        |name: &std::ffi::OsString| command.get_subcommands().any(|known| name == known.get_name());
    if !called.as_ref().is_some_and(is_command) {
        command.build();
    }
    let matches = match command.try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            // Arguments that could not be understood may ask for it all the same.
            let asks_for_json = std::env::args_os().any(|argument| argument == "--json");
            return exit::misused(&error, if asks_for_json { ErrorFormat::Json } else { ErrorFormat::Text })
                .into();
        }
    };
    let format = if asks_for_json(&matches) { ErrorFormat::Json } else { ErrorFormat::Text };
    let arguments = match CommandLine::from_arg_matches(&matches) {
        Ok(arguments) => arguments,
        Err(error) => return exit::misused(&error, format).into(),
    };
    arguments.command.run().unwrap_or_else(|error| exit::report(&error, format)).into()
}

/// Keeps cells, which run as the same user, from reading the variables that they do not get, and our memory.
fn keep_environment_private() {
    #[cfg(target_os = "linux")]
    // Where the system refuses, it is as it would be without.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Whether the command, or the one below it, was given `--json`.
fn asks_for_json(matches: &ArgMatches) -> bool {
    let here = matches.try_get_one::<bool>("json").is_ok_and(|json| json.copied().unwrap_or_default());
    here || matches.subcommand().is_some_and(|(_, matches)| asks_for_json(matches))
}
