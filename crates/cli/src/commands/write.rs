//! `cellwright write`

use std::path::PathBuf;

use anyhow::Context as _;
use cellwright_notebook::file::{Expected, IfMissing};
use cellwright_notebook::{Change as CellChange, Notebook, TouchedCell, text};

use super::{Change, OldOutputs, input, named};
use crate::config::Places;
use crate::reads::{Part, Reads};

/// Replace a notebook's cells by a cell-marked text
///
/// Cells the text names by `cell:N` and does not change stay as they are, to the byte; the others are edited, added, moved or
/// removed. A notebook that is not there is created. Whole notebook JSON is taken too.
///
/// The text names cells by their place, so it is refused when the file has changed since `cellwright read` showed it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cellwright read nb.ipynb | sed 's/foo/bar/' | cellwright write nb.ipynb -
  printf '# %%%% [code]\\nprint(1)\\n' | cellwright write new.ipynb -")]
pub(crate) struct Write {
    /// The notebook
    path: PathBuf,
    /// The text (`-`: stdin)
    #[arg(value_name = "TEXT_FILE", default_value = "-")]
    text: PathBuf,
    /// Write even when the text speaks of a notebook that has changed since, or of a part of it
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    old_outputs: OldOutputs,
    #[command(flatten)]
    change: Change,
}

impl Write {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let text = input(&self.text)?;
        // A marked text starts with a marker, so this can only be meant as the notebook's own JSON.
        if text.trim_start_matches('\u{feff}').trim_start().starts_with('{') {
            return self.change.make(&self.path, IfMissing::Create, |notebook| {
                anyhow::Ok(notebook.replaced_by(Notebook::parse(text.clone().into_bytes())?))
            });
        }
        let cells = text::parse(&text).with_context(|| named(&self.text))?;
        let if_missing = if cells.is_empty() { IfMissing::Fail } else { IfMissing::Create };
        let places = Places::from(&std::env::vars_os().collect(), &std::env::current_dir()?);
        let reads = Reads::in_state(&places.state);
        // A text that names no cell of the file is a new notebook, whatever was read before.
        let names_cells = cells.iter().any(|cell| cell.origin.is_some());
        let (expected, part) = match (self.change.expected(), reads.last(&self.path)) {
            (Expected::Anything, Some((read, part))) if names_cells && !self.force => {
                (Expected::Snapshot(Box::new(read)), part)
            }
            (expected, _) => (expected, Part::Whole),
        };
        let made = self.change.save(&self.path, if_missing, &expected, |notebook| {
            let edited = notebook.write(&cells, self.old_outputs.into())?;
            let deletes = edited.report.cells.iter().any(|cell| cell.change == CellChange::Deleted);
            anyhow::ensure!(
                part == Part::Whole || !deletes,
                "only a part of the notebook was read last, and this text would delete the rest; read it whole, or use --force"
            );
            anyhow::Ok(edited)
        })?;
        // As long as no cell has moved, the text's numbers go on being right.
        let keeps_places = |cell: &TouchedCell| match cell.change {
            CellChange::Edited | CellChange::Retyped | CellChange::Cleared | CellChange::Altered => true,
            CellChange::Inserted | CellChange::Deleted | CellChange::Moved => false,
        };
        if made.report.cells.iter().all(keeps_places) {
            reads.remember(&self.path, &made.now, Part::Whole);
        }
        self.change.tell(&made)
    }
}
