//! `cellwright doctor`

mod clients;
mod folders;
mod kernels;
mod python;
mod report;

use anyhow::Context as _;

use crate::config::LoadedConfig;
use crate::exit::CommandExit;
use crate::host;
use crate::print::{self, OutputFormat};
use kernels::KernelStarts;
use report::{DoctorCheck, DoctorReport, DoctorTopic};

/// Check what works on this machine, and show how to fix what does not
///
/// Finds Python, starts a kernel and runs a cell the same way as `run` and `mcp`. Starts every installed Jupyter kernel,
/// and checks programs that use the tools, folders and settings. Changes nothing. Exits with 1 if cells cannot run.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorCommand {
    /// Do not start the installed Jupyter kernels; only check that their programs exist
    #[arg(long)]
    no_start: bool,
    #[command(flatten)]
    format: OutputFormat,
}

impl DoctorCommand {
    pub(crate) fn run(self) -> anyhow::Result<CommandExit> {
        let runtime = host::runtime()?;
        let start = if self.no_start { KernelStarts::Skipped } else { KernelStarts::Tried };
        let report = host::block_on(&runtime, examine(start))?;
        // A kernel's last threads must not keep us: whatever they hold is gone with the process.
        runtime.shutdown_background();
        if self.format.json {
            print::json(&report)?;
        } else {
            print::coloured(&report.text())?;
        }
        Ok(if report.healthy() { CommandExit::Done } else { CommandExit::Failed })
    }
}

async fn examine(starts: KernelStarts) -> anyhow::Result<DoctorReport> {
    let folder = std::env::current_dir().context("the current folder is gone")?;
    let mut report = DoctorReport::default();
    let config = match LoadedConfig::load(&folder, Vec::new()) {
        Ok(config) => config,
        Err(error) => {
            // Every other command stops here too.
            let message = crate::exit::one_line(error.as_ref());
            let fix = "correct it, then check it with `cellwright config`";
            report.add(DoctorCheck::broken(DoctorTopic::Settings, message).fix(fix));
            let message = "not checked: nothing starts until the settings are right";
            report.add(DoctorCheck::note(DoctorTopic::Python, message));
            return Ok(report);
        }
    };
    settings(&config, &mut report);
    if let Some(project) = config.untrusted(&folder) {
        let brings: Vec<_> = project.brings.iter().map(|path| path.display().to_string()).collect();
        let check = DoctorCheck::note(
            DoctorTopic::Settings,
            format!("not trusted, so not used and not started: {}", brings.join(", ")),
        );
        let fix = format!("cellwright trust {}", shell_words::quote(&project.root.to_string_lossy()));
        report.add(check.fix(fix).details(serde_json::json!({ "untrusted": brings })));
    }
    folders::examine(&config, &mut report);
    let pythons = python::examine(&config, &folder, &mut report).await;
    kernels::examine(&config, &folder, &pythons, starts, &mut report).await;
    clients::examine(&config, &folder, &mut report);
    folders::leftovers(&config, &mut report);
    Ok(report)
}

fn settings(config: &LoadedConfig, report: &mut DoctorReport) {
    for path in [Some(config.places.user_settings()), config.places.project_settings()].into_iter().flatten()
    {
        report.add(if path.exists() {
            DoctorCheck::good(DoctorTopic::Settings, path.display().to_string())
        } else {
            DoctorCheck::note(DoctorTopic::Settings, format!("{}: none, so defaults", path.display()))
        });
    }
}
