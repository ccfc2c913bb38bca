//! `cellwright notebook`

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use cellwright_editing::{FileName, PastChange};
use cellwright_notebook::select::CellSelection;
use cellwright_notebook::{Action, CellKind, CellRef, NewCell, OutputsAfterEdit, text};
use clap::Subcommand;

use super::{CallerArguments, ChangeArguments, OldOutputs, input, is_text, named};
use crate::print::{self, OutputFormat};

/// Edit a notebook cell by cell
///
/// Cells are named by index, counting from 0, by id (`id:abcd1234`) or by section (`"A heading"`).
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
        place: OneCell,
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
        change: ChangeArguments,
    },
    /// Add cells; a notebook that does not exist is created
    Insert {
        /// The notebook
        path: PathBuf,
        /// The index of the first new cell [default: after the last cell]
        #[arg(long)]
        at: Option<usize>,
        /// code, markdown or raw
        #[arg(long = "type", default_value = "code")]
        kind: CellKind,
        /// The source of a new cell; can be repeated
        #[arg(long, allow_hyphen_values = true, required_unless_present = "cells")]
        source: Vec<String>,
        /// A file with cell-marked text: one new cell for each marker (`-`: stdin)
        #[arg(long, value_name = "FILE", conflicts_with_all = ["source", "kind"])]
        cells: Option<PathBuf>,
        #[command(flatten)]
        change: ChangeArguments,
    },
    /// Delete cells, and show what was deleted
    Delete {
        /// The notebook
        path: PathBuf,
        /// Which cells: `4 5`, `4,5`, `2-7`, `5-`, `id:abcd1234`, `"A heading"`
        #[arg(required = true)]
        cells: Vec<CellSelection>,
        #[command(flatten)]
        change: ChangeArguments,
    },
    /// Move cells
    Move {
        #[command(flatten)]
        place: SomeCells,
        /// The new index of the first of these cells
        to: usize,
        #[command(flatten)]
        change: ChangeArguments,
    },
    /// Change the type of cells
    Retype {
        #[command(flatten)]
        place: SomeCells,
        /// code, markdown or raw
        #[arg(value_name = "TYPE")]
        kind: CellKind,
        #[command(flatten)]
        change: ChangeArguments,
    },
    /// Remove outputs and execution counts
    Clear {
        /// The notebook
        path: PathBuf,
        /// Which cells: `4 5`, `4,5`, `2-7`, `5-`, `id:abcd1234`, `"A heading"` [default: all]
        cells: Vec<CellSelection>,
        #[command(flatten)]
        change: ChangeArguments,
    },
    /// Undo a change made by Cellwright, and keep what others changed since
    #[command(mut_arg("force", |force| force.help("Undo it even if others changed the same cells since")))]
    Undo {
        /// The notebook
        path: PathBuf,
        /// The number of the change, as `history` lists it [default: the latest that is not undone]
        number: Option<u64>,
        #[command(flatten)]
        change: ChangeArguments,
    },
    /// List the changes that can be undone, latest first
    History {
        /// The notebook
        path: PathBuf,
        #[command(flatten)]
        caller: CallerArguments,
        #[command(flatten)]
        format: OutputFormat,
    },
}

#[derive(Debug, clap::Args)]
struct OneCell {
    /// The notebook
    path: PathBuf,
    /// Which cell
    cell: CellSelection,
}

#[derive(Debug, clap::Args)]
struct SomeCells {
    /// The notebook
    path: PathBuf,
    /// Which cells: `4`, `4,5`, `2-7`, `5-`, `id:abcd1234`, `"A heading"`
    #[arg(value_name = "CELLS")]
    cells: CellSelection,
}

/// Turns cells that were named into an action on the notebook as it is.
type MakeAction = Box<dyn FnOnce(Vec<CellRef>) -> anyhow::Result<Action>>;

impl NotebookCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut outputs = OutputsAfterEdit::Clear;
        let (path, cells, make, change): (_, _, MakeAction, _) = match self.action {
            ActionCommand::Undo { path, number, change } => {
                let options = change.options(OutputsAfterEdit::Clear);
                return change.report(&path, |editor| editor.undo(&FileName::of(&path), number, &options));
            }
            ActionCommand::History { path, caller, format } => return history(&path, &caller, format),
            ActionCommand::Edit { place, source, source_file, old_outputs, change } => {
                outputs = old_outputs.into();
                let source = match (source, source_file) {
                    (Some(source), _) => source,
                    (None, Some(file)) => input(&file)?,
                    (None, None) => unreachable!("clap requires one of the two"),
                };
                let edit = move |cells: Vec<CellRef>| {
                    let count = cells.len();
                    let [cell] = <[_; 1]>::try_from(cells)
                        .map_err(|_| anyhow::anyhow!("edit takes one cell; {count} are named"))?;
                    Ok(Action::Edit { cell, source })
                };
                (place.path, place.cell, Box::new(edit), change)
            }
            ActionCommand::Insert { path, at, kind, source, cells, change } => {
                let cells = match cells {
                    Some(file) => marked_cells(&file)?,
                    None => source.into_iter().map(|source| NewCell::new(kind, source)).collect(),
                };
                anyhow::ensure!(!cells.is_empty(), "nothing to insert: the text has no cells");
                let insert = move |_| Ok(Action::Insert { at, cells });
                (path, CellSelection::default(), Box::new(insert), change)
            }
            ActionCommand::Delete { path, cells, change } => {
                (path, cells.into_iter().collect(), Box::new(|cells| Ok(Action::Delete { cells })), change)
            }
            ActionCommand::Move { place, to, change } => {
                (place.path, place.cells, Box::new(move |cells| Ok(Action::Move { cells, to })), change)
            }
            ActionCommand::Retype { place, kind, change } => {
                (place.path, place.cells, Box::new(move |cells| Ok(Action::Retype { cells, kind })), change)
            }
            ActionCommand::Clear { path, cells, change } => {
                let are_named = !cells.is_empty();
                let clear = move |cells| Ok(Action::Clear { cells: are_named.then_some(cells) });
                (path, cells.into_iter().collect(), Box::new(clear), change)
            }
        };
        anyhow::ensure!(!is_text(&path), "{} is not a notebook (.ipynb); use edit or write", path.display());
        let (options, file) = (change.options(outputs), FileName::of(&path));
        change.report(&path, |editor| {
            let action = make(editor.choose_cells(&file, &cells, &options)?)?;
            anyhow::Ok(editor.act(&file, &action, &options)?)
        })
    }
}

fn history(path: &Path, caller: &CallerArguments, format: OutputFormat) -> anyhow::Result<()> {
    let changes = caller.with_editor(|editor| anyhow::Ok(editor.history(&FileName::of(path))))?;
    if format.json {
        return print::json(&changes);
    }
    if changes.is_empty() {
        return print::plain("no change can be undone\n");
    }
    let line = |change: &PastChange| {
        format!("{:>4}  {}  {change}\n", change.number, cellwright_cell::utc_time(change.time))
    };
    print::plain(&changes.iter().map(line).collect::<String>())
}

fn marked_cells(file: &Path) -> anyhow::Result<Vec<NewCell>> {
    let cells = text::parse(&input(file)?).with_context(|| named(file))?;
    Ok(cells.into_iter().map(|cell| cell.cell).collect())
}
