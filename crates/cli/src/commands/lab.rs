//! `cellwright lab`

use std::path::PathBuf;

use anyhow::Context as _;
use cellwright_acp::lab_extension;
use clap::Subcommand;
use serde_json::json;

use super::kernel::{python_prefix, surroundings, variable};
use crate::config::LoadedConfig;
use crate::print::{self, OutputFormat};

/// Show changes of agents at once in open notebooks: an extension for JupyterLab and Notebook 7
#[derive(Debug, clap::Args)]
pub(crate) struct LabCommand {
    #[command(subcommand)]
    action: LabSubcommand,
}

#[derive(Debug, Subcommand)]
enum LabSubcommand {
    /// Install the extension; reload open pages to use it
    Install {
        #[command(flatten)]
        place: LabPlace,
    },
    /// Remove the extension
    Uninstall {
        #[command(flatten)]
        place: LabPlace,
    },
    /// Show where the extension is installed
    Status {
        #[command(flatten)]
        format: OutputFormat,
    },
}

#[derive(Debug, clap::Args)]
struct LabPlace {
    /// For you, in every environment (the default)
    #[arg(long, group = "place")]
    user: bool,
    /// In the active Python environment: `VIRTUAL_ENV`, `CONDA_PREFIX`, or that of the python3 on PATH
    #[arg(long, group = "place")]
    sys_prefix: bool,
    /// In the Python environment in this folder
    #[arg(long, group = "place", value_name = "FOLDER")]
    prefix: Option<PathBuf>,
}

impl LabPlace {
    /// The folder of extensions.
    fn folder(&self, config: &LoadedConfig) -> anyhow::Result<PathBuf> {
        let shared = match &self.prefix {
            Some(prefix) => std::path::absolute(prefix)?.join("share/jupyter"),
            None if self.sys_prefix => {
                let prefix = python_prefix(config).context(
                    "there is no Python environment in use: VIRTUAL_ENV and CONDA_PREFIX are not set and PATH has no python3",
                )?;
                prefix.path.join("share/jupyter")
            }
            None => surroundings(config, &|name| variable(config, name)).data_dir(),
        };
        Ok(shared.join("labextensions"))
    }
}

impl LabCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let config = LoadedConfig::load(&std::env::current_dir()?, Vec::new())?;
        match self.action {
            LabSubcommand::Install { place } => {
                let folder = lab_extension::install(&place.folder(&config)?)?;
                print::plain(&format!(
                    "installed the extension in {}\nReload the pages of JupyterLab or Notebook that are open.\n",
                    folder.display()
                ))
            }
            LabSubcommand::Uninstall { place } => {
                let folder = place.folder(&config)?;
                let was_there = lab_extension::remove(&folder)?;
                let done = if was_there { "removed the extension from" } else { "no extension is in" };
                print::plain(&format!("{done} {}\n", folder.display()))
            }
            LabSubcommand::Status { format } => status(&config, format),
        }
    }
}

fn status(config: &LoadedConfig, format: OutputFormat) -> anyhow::Result<()> {
    let folders = surroundings(config, &|name| variable(config, name)).data_path();
    let found: Vec<_> =
        folders.iter().filter_map(|folder| lab_extension::installed(&folder.join("labextensions"))).collect();
    if format.json {
        let extensions = found
            .iter()
            .map(|one| json!({"folder": one.folder, "version": one.version, "current": one.is_current}));
        return print::json(&json!({"extensions": extensions.collect::<Vec<_>>()}));
    }
    if found.is_empty() {
        return print::plain("the extension is not installed; `cellwright lab install` does it\n");
    }
    let line = |one: &lab_extension::InstalledLabExtension| {
        let age = if one.is_current {
            ""
        } else {
            ", not that of this program: `cellwright lab install` replaces it"
        };
        format!("{}  (cellwright {}{age})\n", one.folder.display(), one.version)
    };
    print::plain(&found.iter().map(line).collect::<String>())
}
