//! `cellwright write`

use std::path::PathBuf;

use anyhow::Context as _;
use cellwright_notebook::file::{Expected, FileError, IfMissing};
use cellwright_notebook::{Change as CellChange, Note, Notebook, Snapshot, text};

use super::{Change, Made, OldOutputs, input, named, save};
use crate::reads::{Part, Reads};

/// Replace a notebook's cells by a cell-marked text
///
/// Cells the text names by `cell:N` and does not change stay as they are, to the byte; the others are edited, added, moved or
/// removed. A notebook that is not there is created. Whole notebook JSON is taken too.
///
/// The text names cells by their place, so it is refused when the file has changed since `cellwright read` showed it; so is JSON.
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
        let reads = Reads::here()?;
        let last = reads.last(&self.path);
        // A marked text starts with a marker, so this can only be meant as the notebook's own JSON.
        let is_json = text.trim_start_matches('\u{feff}').trim_start().starts_with('{');
        let (made, shown) =
            if is_json { self.write_json(text, last)? } else { self.write_marked(&text, last)? };
        let is_new = made.report.notes.contains(&Note::Created);
        // If it can not be noted, a later write is refused.
        drop(match shown {
            Some(shown) => reads.remember(&self.path, &made.now, shown),
            // What was read before was another notebook.
            None if is_new || self.force || self.change.is_expected() => reads.forget(&self.path),
            None => Ok(()),
        });
        self.change.tell(&made.report, Some(made.now.fingerprint()))
    }

    /// Writes, and says what is to be noted of it.
    fn write_json(
        &self,
        text: String,
        last: Option<(Snapshot, Part)>,
    ) -> anyhow::Result<(Made<Snapshot>, Option<Part>)> {
        let new = Notebook::parse(text.into_bytes()).with_context(|| self.path.display().to_string())?;
        // Who never read it goes on without being asked: a program that makes the notebook anew each time.
        let noted = last.is_some().then_some(Part::Json);
        let expected = self.expected(last.map(|(read, _)| read));
        let made = save(
            &self.path,
            IfMissing::Create,
            &expected,
            |notebook| anyhow::Ok(notebook.replaced_by(new.clone())),
            Snapshot::of,
        )?;
        Ok((made, noted))
    }

    /// Writes, and says what is to be noted of it.
    fn write_marked(
        &self,
        text: &str,
        last: Option<(Snapshot, Part)>,
    ) -> anyhow::Result<(Made<Snapshot>, Option<Part>)> {
        let cells = text::parse(text).with_context(|| named(&self.text))?;
        let if_missing = if cells.is_empty() { IfMissing::Fail } else { IfMissing::Create };
        // A text that names no cell of the file is a new notebook, whatever was read before.
        let names_cells = cells.iter().any(|cell| cell.origin.is_some());
        let part = last.as_ref().map(|(_, part)| *part);
        let expected = self.expected(last.map(|(read, _)| read).filter(|_| names_cells));
        let is_sure = self.force || self.change.is_expected();
        let made = save(
            &self.path,
            if_missing,
            &expected,
            |notebook| {
                let edited = notebook.write(&cells, self.old_outputs.into())?;
                let deletes = edited.report.cells.iter().any(|cell| cell.change == CellChange::Deleted);
                match part {
                    _ if is_sure => {}
                    None => anyhow::ensure!(
                        !names_cells || notebook.is_empty(),
                        "this text names cells by their place, and nothing tells which state of the notebook it speaks of; \
                         read it first, or use --expect or --force"
                    ),
                    Some(Part::Json) if names_cells => {
                        let what = "its JSON was written".to_owned();
                        return Err(FileError::Changed { path: self.path.clone(), what }.into());
                    }
                    Some(Part::Some) => anyhow::ensure!(
                        !deletes,
                        "only a part of the notebook was read last, and this text would delete the rest; read it whole, or use --force"
                    ),
                    Some(Part::Whole | Part::Json) => {}
                }
                anyhow::Ok(edited)
            },
            Snapshot::of,
        )?;
        // As long as no cell has moved, the text's numbers go on being right.
        let keeps_places = !made.report.cells.iter().any(|cell| cell.change.moves_cells());
        let is_numbered = || cells.iter().enumerate().all(|(place, cell)| cell.origin == Some(place));
        let noted = (keeps_places || is_numbered()).then_some(Part::Whole);
        Ok((made, noted))
    }

    /// What the file must be: what the caller says, else what it read; anything by force.
    fn expected(&self, read: Option<Snapshot>) -> Expected {
        match (self.change.expected(), read) {
            (Expected::Anything, Some(read)) if !self.force => Expected::Snapshot(Box::new(read)),
            (expected, _) => expected,
        }
    }
}
