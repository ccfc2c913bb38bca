//! `notebook`: changing and running a notebook cell by cell.

mod run;

use std::sync::Arc;

use cellwright_notebook::file::IfMissing;
use cellwright_notebook::{Action, CellKind, CellRef, NewCell, text};
use cellwright_run::Selection;
use schemars::JsonSchema;
use serde::Deserialize;

use self::run::{How, Wanted};
use crate::edit::{change_notebook, outputs};
use crate::reply::{Failure, Reply};
use crate::timeout::{self, Asked};
use crate::toolbox::{Context, Shared, blocking};
use crate::workspace::Place;

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
    /// Index from 0, or id. delete, clear and run take lists: `2,5-7`; run also `5-` (from there on) and `stale` (edited since it ran, and all after)
    cell: Option<Cell>,
    /// edit, insert: the cell's source; insert also takes cell-marked text of several (`# %% [code]`), then without type
    source: Option<String>,
    /// insert (default code), retype
    #[serde(rename = "type")]
    kind: Option<Kind>,
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
    Run,
}

/// Models write `3` as often as `"3"`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "an index from 0, or a text such as `3`, `2,5-7` or `id:abc`")]
enum Cell {
    Index(usize),
    Named(String),
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Code,
    Markdown,
    Raw,
}

pub(crate) async fn notebook(
    shared: &Arc<Shared>,
    arguments: NotebookArguments,
    context: &Context,
) -> Result<Reply, Failure> {
    let place = context.client.workspace().place(&arguments.path)?;
    if !place.is_notebook() {
        return Err(Failure::new(format!("{} is not an .ipynb file; use edit or write", place.named)));
    }
    let asked = Asked { seconds: arguments.timeout, background: arguments.background };
    let (timeout, note) = timeout::of(asked, shared.settings.timeout)?;
    let how = How {
        timeout,
        allow_errors: arguments.allow_errors,
        reset: arguments.reset,
        background: arguments.background,
    };
    let mut reply = if arguments.action == ActionName::Run {
        let wanted = arguments.cell.as_ref().map_or(Ok(Wanted::Some(Selection::All)), Cell::wanted)?;
        run::run(shared, context, &place, wanted, how).await?
    } else {
        let runs = arguments.run;
        let (reply, changed) = change(context, &place, arguments).await?;
        if runs && !changed.is_empty() {
            let ran = run::run(shared, context, &place, Wanted::Some(Selection::Cells(changed)), how);
            reply.followed_by(ran.await?)
        } else {
            reply
        }
    };
    if let Some(note) = note {
        reply.note(note);
    }
    Ok(reply)
}

/// Changes the notebook; says which cells `run` would run.
async fn change(
    context: &Context,
    place: &Place,
    arguments: NotebookArguments,
) -> Result<(Reply, Vec<CellRef>), Failure> {
    let (name, runs, keep_outputs) = (arguments.action, arguments.run, arguments.keep_outputs);
    if runs && !matches!(name, ActionName::Edit | ActionName::Insert) {
        return Err(Failure::new("`run` goes with edit and insert"));
    }
    let if_missing = match name {
        ActionName::Insert => IfMissing::Create,
        _ => IfMissing::Fail,
    };
    let action = arguments.action()?;
    let (client, place) = (Arc::clone(&context.client), place.clone());
    blocking(move || {
        let (reply, report) = change_notebook(&client, &place, if_missing, |notebook| {
            Ok(notebook.act(&action, outputs(keep_outputs))?)
        })?;
        let changed = match action {
            Action::Edit { cell, .. } => vec![cell],
            _ => report.cells.iter().map(|cell| CellRef::Index(cell.index)).collect(),
        };
        Ok((reply, changed))
    })
    .await
}

impl NotebookArguments {
    fn action(self) -> Result<Action, Failure> {
        let name = self.action;
        let needs = |what: &str| Failure::new(format!("{name:?} needs `{what}`").to_lowercase());
        let cells = self.cell.map(Cell::refs).transpose()?;
        let one = |cells: Option<Vec<CellRef>>| match cells.ok_or_else(|| needs("cell"))?.as_slice() {
            [cell] => Ok(cell.clone()),
            _ => Err(Failure::new(format!("{name:?} takes one cell").to_lowercase())),
        };
        Ok(match name {
            ActionName::Edit => {
                Action::Edit { cell: one(cells)?, source: self.source.ok_or_else(|| needs("source"))? }
            }
            ActionName::Insert => {
                if cells.is_some() {
                    return Err(Failure::new("insert takes `at`, not `cell`"));
                }
                let source = self.source.ok_or_else(|| needs("source"))?;
                let cells = match self.kind {
                    Some(kind) => vec![NewCell::new(kind.into(), source)],
                    None if text::is_marked(&source) => {
                        text::parse(&source)?.into_iter().map(|cell| cell.cell).collect()
                    }
                    None => vec![NewCell::new(CellKind::Code, source)],
                };
                Action::Insert { at: self.at, cells }
            }
            ActionName::Delete => Action::Delete { cells: cells.ok_or_else(|| needs("cell"))? },
            ActionName::Move => Action::Move { cell: one(cells)?, to: self.at.ok_or_else(|| needs("at"))? },
            ActionName::Retype => {
                Action::Retype { cell: one(cells)?, kind: self.kind.ok_or_else(|| needs("type"))?.into() }
            }
            ActionName::Clear => Action::Clear { cells },
            ActionName::Run => unreachable!("running is no edit"),
        })
    }
}

impl Cell {
    fn wanted(&self) -> Result<Wanted, Failure> {
        let text = match self {
            Self::Index(index) => index.to_string(),
            Self::Named(text) => text.clone(),
        };
        Wanted::parse(&text).map_err(|reason| Failure::new(format!("`cell`: {reason}")))
    }

    /// `3`, `"3"`, `"id:abc"`, `"2,5-7"`
    fn refs(self) -> Result<Vec<CellRef>, Failure> {
        let text = match self {
            Self::Index(index) => return Ok(vec![CellRef::Index(index)]),
            Self::Named(text) => text,
        };
        CellRef::list(&text).map_err(|reason| Failure::new(format!("`cell`: {reason}")))
    }
}

impl From<Kind> for CellKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Code => Self::Code,
            Kind::Markdown => Self::Markdown,
            Kind::Raw => Self::Raw,
        }
    }
}
