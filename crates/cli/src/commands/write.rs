//! `cellwright write`

use std::path::PathBuf;

use cellwright_editing::{FileName, NewContent};

use super::{ChangeArguments, OldOutputs, input, is_text, named};
use crate::exit::WrongArguments;

/// Replace a notebook's cells with cell-marked text, or a text file's content
///
/// A cell that the text names (`cell:N`) and does not change keeps every byte. Other cells are edited, added, moved
/// or removed. A notebook that does not exist is created. The text can also be a whole notebook as JSON.
///
/// A file is a notebook if its name ends in .ipynb or if it contains one. Every other file gets the text as it is.
///
/// The text is compared with what you read. Changes that others have made to other cells since then are merged. The
/// text is refused if you and others changed the same cell, or if it would replace something you have not read.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cellwright read nb.ipynb | sed 's/foo/bar/' | cellwright write nb.ipynb -
  printf '# %%%% [code]\\nprint(1)\\n' | cellwright write new.ipynb -")]
pub(crate) struct WriteCommand {
    /// The notebook, or a text file
    path: PathBuf,
    /// The text (`-`: stdin)
    #[arg(value_name = "TEXT_FILE", default_value = "-")]
    text: PathBuf,
    #[command(flatten)]
    old_outputs: OldOutputs,
    #[command(flatten)]
    change: ChangeArguments,
}

impl WriteCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        anyhow::ensure!(
            !self.path.as_os_str().is_empty(),
            WrongArguments("the path of the notebook is empty")
        );
        let text = input(&self.text)?;
        if is_text(&self.path) {
            let (file, options) = (FileName::of(&self.path), self.change.options(self.old_outputs.into()));
            return self
                .change
                .print(&self.change.caller.with_editor(|editor| editor.write_text(&file, &text, &options))?);
        }
        let content = NewContent::parse(&text);
        // A fault of JSON is the notebook's, one of marked text the input's.
        let content = content.map_err(|error| match error {
            cellwright_editing::ContentError::Json(error) => {
                anyhow::Error::new(error).context(self.path.display().to_string())
            }
            cellwright_editing::ContentError::Marked(error) => {
                anyhow::Error::new(error).context(named(&self.text))
            }
        })?;
        let options = self.change.options(self.old_outputs.into());
        self.change.report(&self.path, |editor| editor.write(&FileName::of(&self.path), &content, &options))
    }
}
