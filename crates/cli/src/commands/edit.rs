//! `cellwright edit`

use std::path::PathBuf;

use anyhow::Context as _;
use cellwright_editing::FileName;
use cellwright_notebook::replace::{Matches, TextReplacement};
use serde::Deserialize;

use super::{ChangeArguments, OldOutputs, input, is_text, named};
use crate::exit::WrongArguments;

/// Replace exact strings in a notebook's cell-marked text, or in a text file
///
/// Each old text must match exactly once, unless you give --all. No other byte changes. An edit of a cell that
/// others changed since you read it is refused.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cellwright edit nb.ipynb --old 'n = 10' --new 'n = 1000'
  cellwright edit nb.ipynb --old df1 --new frame --all
  echo '[{\"old\": \"a\", \"new\": \"b\", \"all\": true}]' | cellwright edit nb.ipynb --edits -")]
pub(crate) struct EditCommand {
    /// The notebook, or a text file
    path: PathBuf,
    /// The text to replace; can be repeated, each with its own --new
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, required_unless_present = "edits")]
    old: Vec<String>,
    /// The replacement
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    new: Vec<String>,
    /// Replace every match
    #[arg(long)]
    all: bool,
    /// A JSON file with [{"old": …, "new": …, "all": false}, …] (`-`: stdin)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["old", "new", "all"])]
    edits: Option<PathBuf>,
    #[command(flatten)]
    old_outputs: OldOutputs,
    #[command(flatten)]
    change: ChangeArguments,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EditJson {
    old: String,
    new: String,
    #[serde(default)]
    all: bool,
}

impl EditCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let replacements = self.replacements()?;
        let options = self.change.options(self.old_outputs.into());
        let file = FileName::of(&self.path);
        if self.path.is_file() && is_text(&self.path) {
            return self.change.print(
                &self.change.caller.with_editor(|editor| editor.edit_text(&file, &replacements, &options))?,
            );
        }
        self.change.report(&self.path, |editor| editor.replace_text(&file, &replacements, &options))
    }

    fn replacements(&self) -> anyhow::Result<Vec<TextReplacement>> {
        let matches = |all: bool| if all { Matches::All } else { Matches::One };
        let Some(edits) = &self.edits else {
            anyhow::ensure!(
                self.old.len() == self.new.len(),
                WrongArguments("each --old needs a --new, and each --new an --old")
            );
            let pairs = self.old.iter().cloned().zip(self.new.iter().cloned());
            return Ok(pairs
                .map(|(old, new)| TextReplacement { old, new, matches: matches(self.all) })
                .collect());
        };
        let edits: Vec<EditJson> = serde_json::from_str(&input(edits)?)
            .with_context(|| format!("{} is not a list of edits", named(edits)))?;
        Ok(edits
            .into_iter()
            .map(|EditJson { old, new, all }| TextReplacement { old, new, matches: matches(all) })
            .collect())
    }
}
