//! `cellwright doctor`

mod clients;
mod folders;
mod kernels;
mod python;
mod report;

use anyhow::Context as _;

use crate::config::Config;
use crate::exit::Exit;
use crate::host;
use crate::print::{self, Format};
use report::{Check, Report, Section};

/// Tell what works here, what does not, and what helps
///
/// Looks for Python, starts a kernel and runs a cell by the same steps as `run` and `mcp`; looks at installed Jupyter kernels,
/// the programs that use our tools, folders and settings. Changes nothing. Exits with 1 when cells can not run.
#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    format: Format,
}

impl Doctor {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let runtime = host::runtime()?;
        let report = host::block_on(&runtime, examine())?;
        // A kernel's last threads must not keep us: whatever they hold is gone with the process.
        runtime.shutdown_background();
        if self.format.json {
            print::json(&report)?;
        } else {
            print::plain(&report.text())?;
        }
        Ok(if report.healthy() { Exit::Done } else { Exit::Failed })
    }
}

async fn examine() -> anyhow::Result<Report> {
    let folder = std::env::current_dir().context("the current folder is gone")?;
    let mut report = Report::default();
    let config = match Config::load(&folder, Vec::new()) {
        Ok(config) => config,
        Err(error) => {
            // Every other command stops here too.
            let told = crate::exit::one_line(error.as_ref());
            let fix = "correct it; `cellwright config` tells whether that helped";
            report.add(Check::broken(Section::Settings, told).fix(fix));
            let told = "not looked at: nothing starts before the settings are right";
            report.add(Check::note(Section::Python, told));
            return Ok(report);
        }
    };
    settings(&config, &mut report);
    folders::examine(&config, &mut report);
    let pythons = python::examine(&config, &folder, &mut report).await;
    kernels::examine(&config, &pythons, &mut report).await;
    clients::examine(&config, &folder, &mut report);
    folders::leftovers(&config, &mut report);
    Ok(report)
}

fn settings(config: &Config, report: &mut Report) {
    for path in [Some(config.places.user_settings()), config.places.project_settings()].into_iter().flatten()
    {
        report.add(if path.exists() {
            Check::good(Section::Settings, path.display().to_string())
        } else {
            Check::note(Section::Settings, format!("{}: none, so defaults", path.display()))
        });
    }
}
