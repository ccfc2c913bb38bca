//! `notebook`: changing and running a notebook cell by cell.

pub(crate) mod background;
mod page_run;
mod run;

use std::sync::Arc;

use cellwright_editing::{ChangeOptions, EditReport, FileEditor, FileName, PastChange};
use cellwright_notebook::select::CellSelection;
use cellwright_notebook::{Action, CellKind, CellRef, NewCell, text};
use cellwright_run::CodeSelection;
use schemars::JsonSchema;
use serde::Deserialize;

use self::run::{CellChoice, NotebookRunOptions};
use crate::edit;
use crate::mode::RunMode;
use crate::reply::{ToolFailure, ToolReply, shortened};
use crate::timeout::{self, TimeoutRequest};
use crate::toolbox::{CallContext, ToolboxState, blocking};
use crate::workspace::ResolvedPath;

pub(crate) use self::run::session_of;

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "models fill flat arguments right; each is a switch of its own"
)]
pub(crate) struct NotebookArguments {
    action: ActionName,
    /// The .ipynb file
    path: String,
    /// Index from 0, or id. All but edit take lists: `2,5-7`, `5-` (from there on), `"Heading"` (its section); run also `stale` (edited since it ran, and all after)
    cell: Option<CellArgument>,
    /// edit, insert: the cell's source; insert also takes cell-marked text of several (`# %% [code]`), then without type
    source: Option<String>,
    /// insert (default code), retype
    #[serde(rename = "type")]
    kind: Option<CellKindArgument>,
    /// insert, move: index the cell gets; insert without it appends
    at: Option<usize>,
    /// edit: keep the old outputs
    #[serde(default)]
    keep_outputs: bool,
    /// edit, insert: run the cell too
    #[serde(default)]
    run: bool,
    /// run: seconds a cell may take, 1-600 (default 30)
    timeout: Option<f64>,
    /// run: go on after cells that raise
    #[serde(default)]
    allow_errors: bool,
    /// run: start with a fresh kernel
    #[serde(default)]
    reset: bool,
    /// run: return at once with a handle; follow it with the kernel tool
    #[serde(default)]
    background: bool,
    /// undo: number of the change, as history lists it (default the latest)
    change: Option<u64>,
    /// Refuse unless the file has this fingerprint
    expect: Option<String>,
    /// Change it even if it changed since you read it
    #[serde(default)]
    force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ActionName {
    Edit,
    Insert,
    Delete,
    Move,
    Retype,
    Clear,
    Undo,
    History,
    Run,
}

/// Models write `3` as often as `"3"`, and `[0, 1]` for several.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "an index from 0, or a text such as `3`, `2,5-7` or `id:abc`")]
enum CellArgument {
    Index(usize),
    Named(String),
    /// `2.0`
    #[schemars(skip)]
    Number(f64),
    #[schemars(skip)]
    Several(Vec<CellArgument>),
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum CellKindArgument {
    Code,
    Markdown,
    Raw,
}

pub(crate) async fn notebook(
    shared: &Arc<ToolboxState>,
    arguments: NotebookArguments,
    context: &CallContext,
) -> Result<ToolReply, ToolFailure> {
    let place = context.client.workspace().place(&arguments.path)?;
    if !place.is_notebook() {
        return Err(ToolFailure::new(format!(
            "{} is not a notebook (.ipynb); use edit or write",
            place.named
        )));
    }
    arguments.refuse_strays()?;
    if shared.settings.mode == RunMode::EditOnly && (arguments.run || arguments.action == ActionName::Run) {
        return Err(ToolFailure::new("cells are not run here: the tool mode is edit-only"));
    }
    let asked = TimeoutRequest { seconds: arguments.timeout, background: arguments.background };
    let (timeout, note) = timeout::of(asked, shared.settings.timeout)?;
    let options = edit::options(arguments.expect.as_deref(), arguments.force, arguments.keep_outputs)?;
    let how = NotebookRunOptions {
        timeout,
        allow_errors: arguments.allow_errors,
        reset: arguments.reset,
        background: arguments.background,
        options,
    };
    let mut reply = if arguments.action == ActionName::Run {
        let wanted =
            arguments.cell.as_ref().map_or(Ok(CellChoice::Some(CodeSelection::All)), CellArgument::wanted)?;
        run::run(shared, context, &place, wanted, how).await?
    } else if arguments.action == ActionName::History {
        let (shared, caller, file) = (Arc::clone(shared), context.clone(), place.file_name());
        blocking(move || Ok(history(&shared.settings.editor(&caller).history(&file)))).await?
    } else {
        let runs = arguments.run;
        let (reply, changed) = change(shared, context, &place, arguments, options).await?;
        if runs && !changed.is_empty() {
            let cells = changed.into_iter().map(CellSelection::one).collect();
            // The file was expected to be as it was before the change.
            let how = NotebookRunOptions { options: ChangeOptions { expect: None, ..options }, ..how };
            let ran = run::run(shared, context, &place, CellChoice::Some(CodeSelection::Cells(cells)), how);
            // The change is made whatever becomes of the run. A caller that hears only of a refusal makes it again.
            reply.followed_by(ran.await.unwrap_or_else(|refused| not_run(&refused)))
        } else {
            reply
        }
    };
    if let Some(note) = note {
        reply.note(note);
    }
    Ok(reply)
}

/// What is said of a run that did not begin, after a change that was made.
fn not_run(refused: &ToolFailure) -> ToolReply {
    ToolReply::error(shortened(&format!("[the change is in the file, but it was not run: {refused}]")))
}

/// Changes the notebook; says which cells `run` would run.
async fn change(
    shared: &Arc<ToolboxState>,
    context: &CallContext,
    place: &ResolvedPath,
    arguments: NotebookArguments,
    options: ChangeOptions,
) -> Result<(ToolReply, Vec<CellRef>), ToolFailure> {
    let runs = arguments.run;
    if runs && !matches!(arguments.action, ActionName::Edit | ActionName::Insert) {
        return Err(ToolFailure::new("`run` goes with edit and insert"));
    }
    let what = if arguments.action == ActionName::Undo {
        NotebookChange::Undo(arguments.change)
    } else {
        NotebookChange::Act(arguments.work()?)
    };
    let (shared, caller, file) = (Arc::clone(shared), context.clone(), place.file_name());
    blocking(move || {
        let editor = shared.settings.editor(&caller);
        let (report, edited) = match what {
            NotebookChange::Undo(number) => (editor.undo(&file, number, &options)?, None),
            NotebookChange::Act(work) => {
                let action = work.action(&editor, &file, &options)?;
                let report = editor.act(&file, &action, &options)?;
                match action {
                    Action::Edit { cell, .. } => (report, Some(cell)),
                    _ => (report, None),
                }
            }
        };
        let changed = changed_cells(&report, edited);
        Ok((edit::reply(&report), changed))
    })
    .await
}

/// The cells that a change made or edited, by id where they have one: others may add cells above them at any moment.
fn changed_cells(report: &EditReport, edited: Option<CellRef>) -> Vec<CellRef> {
    let cells: Vec<_> = report
        .report
        .cells
        .iter()
        .map(|cell| match &cell.id {
            Some(id) => CellRef::Id(id.clone()),
            None => CellRef::Index(cell.index),
        })
        .collect();
    // An edit that changed nothing reports no cell.
    if cells.is_empty() { edited.into_iter().collect() } else { cells }
}

/// A change that a call asks for.
enum NotebookChange {
    Act(CellWork),
    Undo(Option<u64>),
}

fn history(changes: &[PastChange]) -> ToolReply {
    let line = |change: &PastChange| {
        format!("{}: {}, {change}", change.number, cellwright_cell::utc_time(change.time))
    };
    let lines = changes.iter().map(line).collect::<Vec<_>>().join("\n");
    let text = if lines.is_empty() { "no change can be undone".to_owned() } else { lines };
    ToolReply::text(text).with(serde_json::json!({ "changes": changes }))
}

/// An action whose cells are not looked up yet.
enum CellWork {
    Edit { cell: CellSelection, source: String },
    Insert { at: Option<usize>, cells: Vec<NewCell> },
    Delete { cells: CellSelection },
    Move { cells: CellSelection, to: usize },
    Retype { cells: CellSelection, kind: CellKind },
    Clear { cells: Option<CellSelection> },
}

impl CellWork {
    /// The action on the notebook as it is. Blocks on files.
    fn action(
        self,
        editor: &FileEditor<'_>,
        file: &FileName,
        options: &ChangeOptions,
    ) -> Result<Action, ToolFailure> {
        let chosen = |cells: &CellSelection| editor.choose_cells(file, cells, options);
        Ok(match self {
            Self::Edit { cell, source } => match &chosen(&cell)?[..] {
                [cell] => Action::Edit { cell: cell.clone(), source },
                cells => {
                    return Err(ToolFailure::new(format!(
                        "edit takes one cell; `{cell}` is {} cells",
                        cells.len()
                    )));
                }
            },
            Self::Insert { at, cells } => Action::Insert { at, cells },
            Self::Delete { cells } => Action::Delete { cells: chosen(&cells)? },
            Self::Move { cells, to } => Action::Move { cells: chosen(&cells)?, to },
            Self::Retype { cells, kind } => Action::Retype { cells: chosen(&cells)?, kind },
            Self::Clear { cells } => Action::Clear { cells: cells.map(|cells| chosen(&cells)).transpose()? },
        })
    }
}

impl NotebookArguments {
    /// Refuses what undo and history would ignore: the caller means something else.
    fn refuse_strays(&self) -> Result<(), ToolFailure> {
        let instead = match self.action {
            ActionName::Undo => "it undoes a whole change, the latest or the one that `change` names",
            ActionName::History => "it lists the changes of the whole notebook",
            _ if self.change.is_some() => return Err(ToolFailure::new("`change` goes with undo")),
            _ => return Ok(()),
        };
        let strays = [
            ("cell", self.cell.is_some()),
            ("source", self.source.is_some()),
            ("type", self.kind.is_some()),
            ("at", self.at.is_some()),
            ("run", self.run),
        ];
        match strays.into_iter().find(|(_, is_given)| *is_given) {
            Some((stray, _)) => {
                let name = format!("{:?}", self.action).to_lowercase();
                Err(ToolFailure::new(format!("{name} takes no `{stray}`: {instead}")))
            }
            None => Ok(()),
        }
    }

    fn work(self) -> Result<CellWork, ToolFailure> {
        let name = self.action;
        let needs = |what: &str| ToolFailure::new(format!("{name:?} needs `{what}`").to_lowercase());
        let cells = self.cell.as_ref().map(CellArgument::selection).transpose()?;
        let need_cells = |cells: Option<CellSelection>| cells.ok_or_else(|| needs("cell"));
        Ok(match name {
            ActionName::Edit => CellWork::Edit {
                cell: need_cells(cells)?,
                source: self.source.ok_or_else(|| needs("source"))?,
            },
            ActionName::Insert => {
                if cells.is_some() {
                    return Err(ToolFailure::new("insert takes `at`, not `cell`"));
                }
                let source = self.source.ok_or_else(|| needs("source"))?;
                let cells = match self.kind {
                    Some(kind) => vec![NewCell::new(kind.into(), source)],
                    None if text::is_marked(&source) => {
                        text::parse(&source)?.into_iter().map(|cell| cell.cell).collect()
                    }
                    None => vec![NewCell::new(CellKind::Code, source)],
                };
                CellWork::Insert { at: self.at, cells }
            }
            ActionName::Delete => CellWork::Delete { cells: need_cells(cells)? },
            ActionName::Move => {
                CellWork::Move { cells: need_cells(cells)?, to: self.at.ok_or_else(|| needs("at"))? }
            }
            ActionName::Retype => CellWork::Retype {
                cells: need_cells(cells)?,
                kind: self.kind.ok_or_else(|| needs("type"))?.into(),
            },
            ActionName::Clear => CellWork::Clear { cells },
            ActionName::Run | ActionName::Undo | ActionName::History => {
                unreachable!("these are no edits by cell")
            }
        })
    }
}

impl CellArgument {
    fn wanted(&self) -> Result<CellChoice, ToolFailure> {
        CellChoice::parse(&self.text()?).map_err(|reason| ToolFailure::new(format!("`cell`: {reason}")))
    }

    /// `3`, `"3"`, `"id:abc"`, `"2,5-7"`, `"5-"`, `[0, 1]`
    fn selection(&self) -> Result<CellSelection, ToolFailure> {
        self.text()?.parse().map_err(|reason| ToolFailure::new(format!("`cell`: {reason}")))
    }

    /// As a list is written.
    fn text(&self) -> Result<String, ToolFailure> {
        match self {
            Self::Index(index) => Ok(index.to_string()),
            Self::Named(text) => Ok(text.clone()),
            Self::Number(number) if *number >= 0.0 && number.fract() == 0.0 => Ok(format!("{number:.0}")),
            Self::Number(number) => {
                Err(ToolFailure::new(format!("`cell`: {number} is not an index; they count from 0")))
            }
            Self::Several(cells) => {
                Ok(cells.iter().map(Self::text).collect::<Result<Vec<_>, _>>()?.join(","))
            }
        }
    }
}

impl From<CellKindArgument> for CellKind {
    fn from(kind: CellKindArgument) -> Self {
        match kind {
            CellKindArgument::Code => Self::Code,
            CellKindArgument::Markdown => Self::Markdown,
            CellKindArgument::Raw => Self::Raw,
        }
    }
}
