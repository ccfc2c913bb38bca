//! `cellwright notebook`

use std::path::PathBuf;

use anyhow::Context as _;
use cellwright_notebook::file::IfMissing;
use cellwright_notebook::{Action, CellKind, CellRef, NewCell, Outputs, text};
use clap::Subcommand;

use super::{Change, OldOutputs, input, named};

/// Edit a notebook cell by cell
///
/// A cell is named by its index, counting from 0, or by its id (`id:abcd1234`).
#[derive(Debug, clap::Args)]
pub(crate) struct NotebookCommand {
    #[command(subcommand)]
    action: ActionCommand,
}

#[derive(Debug, Subcommand)]
enum ActionCommand {
    /// Replace a cell's source
    Edit {
        #[command(flatten)]
        place: Place,
        /// The new source
        #[arg(
            long,
            allow_hyphen_values = true,
            conflicts_with = "source_file",
            required_unless_present = "source_file"
        )]
        source: Option<String>,
        /// A file with the new source (`-`: stdin)
        #[arg(long, value_name = "FILE")]
        source_file: Option<PathBuf>,
        #[command(flatten)]
        old_outputs: OldOutputs,
        #[command(flatten)]
        change: Change,
    },
    /// Add cells; creates the notebook if need be
    Insert {
        /// The notebook
        path: PathBuf,
        /// The index the first new cell gets, 0 to the number of cells (default: after the last)
        #[arg(long)]
        at: Option<usize>,
        /// code, markdown or raw
        #[arg(long = "type", default_value = "code")]
        kind: CellKind,
        /// A new cell's source; may be given several times
        #[arg(long, allow_hyphen_values = true, required_unless_present = "cells")]
        source: Vec<String>,
        /// A file with cell-marked text: one new cell for each marker (`-`: stdin)
        #[arg(long, value_name = "FILE", conflicts_with_all = ["source", "kind"])]
        cells: Option<PathBuf>,
        #[command(flatten)]
        change: Change,
    },
    /// Remove cells, and show what was removed
    Delete {
        /// The notebook
        path: PathBuf,
        /// Which cells: `4 5`, `4,5`, `2-7`, `id:abcd1234`
        #[arg(required = true, value_parser = CellRef::list)]
        cells: Vec<Vec<CellRef>>,
        #[command(flatten)]
        change: Change,
    },
    /// Move a cell
    Move {
        #[command(flatten)]
        place: Place,
        /// The index it gets
        to: usize,
        #[command(flatten)]
        change: Change,
    },
    /// Change a cell's type
    Retype {
        #[command(flatten)]
        place: Place,
        /// code, markdown or raw
        #[arg(value_name = "TYPE")]
        kind: CellKind,
        #[command(flatten)]
        change: Change,
    },
    /// Remove outputs and execution counts
    Clear {
        /// The notebook
        path: PathBuf,
        /// Which cells: `4 5`, `4,5`, `2-7`, `id:abcd1234` (default: all)
        #[arg(value_parser = CellRef::list)]
        cells: Vec<Vec<CellRef>>,
        #[command(flatten)]
        change: Change,
    },
}

#[derive(Debug, clap::Args)]
struct Place {
    /// The notebook
    path: PathBuf,
    /// Which cell
    cell: CellRef,
}

impl NotebookCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut if_missing = IfMissing::Fail;
        let mut outputs = Outputs::Clear;
        let (path, action, change) = match self.action {
            ActionCommand::Edit { place, source, source_file, old_outputs, change } => {
                outputs = old_outputs.into();
                let source = match (source, source_file) {
                    (Some(source), _) => source,
                    (None, Some(file)) => input(&file)?,
                    (None, None) => unreachable!("clap requires one of the two"),
                };
                (place.path, Action::Edit { cell: place.cell, source }, change)
            }
            ActionCommand::Insert { path, at, kind, source, cells, change } => {
                if_missing = IfMissing::Create;
                let cells = match cells {
                    Some(file) => marked_cells(&file)?,
                    None => source.into_iter().map(|source| NewCell::new(kind, source)).collect(),
                };
                anyhow::ensure!(!cells.is_empty(), "nothing to insert: the text has no cells");
                (path, Action::Insert { at, cells }, change)
            }
            ActionCommand::Delete { path, cells, change } => {
                (path, Action::Delete { cells: cells.concat() }, change)
            }
            ActionCommand::Move { place, to, change } => {
                (place.path, Action::Move { cell: place.cell, to }, change)
            }
            ActionCommand::Retype { place, kind, change } => {
                (place.path, Action::Retype { cell: place.cell, kind }, change)
            }
            ActionCommand::Clear { path, cells, change } => {
                (path, Action::Clear { cells: (!cells.is_empty()).then(|| cells.concat()) }, change)
            }
        };
        change.make(&path, if_missing, |notebook| {
            change.check_places(&path, notebook, action.named_cells())?;
            anyhow::Ok(notebook.act(&action, outputs)?)
        })
    }
}

fn marked_cells(file: &std::path::Path) -> anyhow::Result<Vec<NewCell>> {
    let cells = text::parse(&input(file)?).with_context(|| named(file))?;
    Ok(cells.into_iter().map(|cell| cell.cell).collect())
}
