//! `cellwright trust`

use std::path::PathBuf;

use anyhow::Context as _;
use cellwright_ownership::TrustAnswer;
use serde_json::json;

use crate::config::LoadedConfig;
use crate::print::{self, OutputFormat};
use crate::trusting;

/// Let the settings, modules and Python environments of a project be used
///
/// What a project brings could run any program as you, so it is used only after you trust the project's folder. The
/// answer holds until the folder's owner, its settings or its modules change. Folders without such files need no
/// trust. The setting `trust.folders` trusts everything below a folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cellwright trust
  cellwright trust ~/src/analysis
  cellwright trust --list
  cellwright trust --remove ~/src/analysis")]
pub(crate) struct TrustCommand {
    /// A folder of the project [default: the current folder]
    path: Option<PathBuf>,
    /// List the answers that were given
    #[arg(long, conflicts_with_all = ["path", "remove"])]
    list: bool,
    /// Forget the answers about the folder and those in it
    #[arg(long)]
    remove: bool,
    #[command(flatten)]
    format: OutputFormat,
}

impl TrustCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let here = std::env::current_dir().context("the current folder is gone")?;
        let folder = self.path.as_ref().map_or_else(|| here.clone(), |path| here.join(path));
        if !self.list && !self.remove {
            let root = trusting::trust(&folder)?;
            return self.say(&json!({ "trusted": root }), &format!("{} is trusted\n", root.display()));
        }
        let config = LoadedConfig::load(&here, Vec::new())?;
        let records = config.places.trust_records();
        if self.remove {
            let removed = records.remove(&folder).context("it could not be stored")?;
            let text = match removed {
                0 => format!("there is no answer about {}\n", folder.display()),
                _ => format!("forgot what was answered about {}\n", folder.display()),
            };
            return self.say(&json!({ "removed": removed }), &text);
        }
        let rows = records.entries().into_iter().map(|entry| {
            let state = match (records.answer(&entry.folder), entry.answer) {
                (Some(_), TrustAnswer::Trusted) => "trusted",
                (Some(_), TrustAnswer::Declined) => "declined",
                (Some(_), TrustAnswer::Told) => "not answered",
                (None, _) => "changed since",
            };
            (entry.folder, state)
        });
        let rows: Vec<_> = rows.collect();
        let lines = rows.iter().map(|(folder, state)| format!("{state:<13} {}", folder.display()));
        let mut text = lines.collect::<Vec<_>>().join("\n");
        if !text.is_empty() {
            text.push('\n');
        }
        let rows: Vec<_> =
            rows.iter().map(|(folder, state)| json!({ "folder": folder, "state": state })).collect();
        self.say(&json!(rows), if text.is_empty() { "no answers\n" } else { &text })
    }

    fn say(&self, value: &serde_json::Value, text: &str) -> anyhow::Result<()> {
        if self.format.json { print::json(value) } else { print::plain(text) }
    }
}
