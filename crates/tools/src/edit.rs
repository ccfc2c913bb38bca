//! `edit` and `write`: changing files by text.

use cellwright_notebook::file::{self, Expected, IfMissing};
use cellwright_notebook::replace::{Matches, Replaced, Replacement, TextKind, replace};
use cellwright_notebook::text::{self, TextCell};
use cellwright_notebook::{Change, Edited, Fingerprint, Notebook, Report, Snapshot};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::Client;
use crate::reply::{Failure, Reply};
use crate::seen::{Memory, Sight};
use crate::text_file;
use crate::workspace::Place;

/// Bytes of deleted cells shown for the last time.
const FAREWELL: usize = 8 * 1024;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct EditArguments {
    /// File to change
    path: String,
    /// Text to replace, exactly as `read` shows it; must match once
    old: String,
    /// What comes in its place
    new: String,
    /// Replace every match
    #[serde(default)]
    all: bool,
    /// Notebooks: keep the outputs of edited cells
    #[serde(default)]
    keep_outputs: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct WriteArguments {
    /// File to create or replace
    path: String,
    /// The whole new text. For .ipynb: cell-marked text (`# %% [code] cell:3` keeps cell 3 with its metadata, `# %% [markdown]` is a new cell) or notebook JSON
    content: String,
    /// Notebooks: keep the outputs of edited cells
    #[serde(default)]
    keep_outputs: bool,
}

/// Blocks on files.
pub(crate) fn edit(client: &Client, arguments: EditArguments) -> Result<Reply, Failure> {
    let EditArguments { path, old, new, all, keep_outputs } = arguments;
    let place = client.workspace().file(&path)?;
    let matches = if all { Matches::All } else { Matches::One };
    let replacement = Replacement { old, new, matches };
    if place.is_notebook() {
        let changed = change_notebook(client, &place, IfMissing::Fail, |notebook| {
            let text = notebook.to_marked_text();
            let replaced = replace(&text, TextKind::Marked, std::slice::from_ref(&replacement))?;
            let mut edited = notebook.write(&text::parse(&replaced.text)?, outputs(keep_outputs))?;
            edited.report.action = "edit";
            Ok(edited)
        });
        return changed.map(|(reply, _)| reply);
    }
    if replacement.old.is_empty() {
        return Err(Failure::new(
            "`old` is empty; to add text, give the line it stands beside, and both in `new`",
        )
        .about(&path));
    }
    let before = text_file::read_text(&place)?;
    let fingerprint = Fingerprint::of(before.as_bytes());
    if let Some(Memory::Text(seen)) = client.seen().memory(&place.path)
        && seen != fingerprint
    {
        return Err(text_file::TextFileError::Changed { named: place.named }.into());
    }
    let Replaced { text: after, lines } = replace(&before, TextKind::Plain, &[replacement])
        .map_err(|error| Failure::from(error).about(&path))?;
    text_file::replace(&place, Some(fingerprint), after.as_bytes())?;
    remember_text(client, &place, &after);
    let noun = if lines.len() == 1 { "line" } else { "lines" };
    let told = format!("replaced {} in {path}, {noun} {}", times(lines.len()), listed(&lines));
    Ok(Reply::text(told).with(json!({ "path": path, "replaced": lines.len(), "lines": lines })))
}

/// Blocks on files.
pub(crate) fn write(client: &Client, arguments: WriteArguments) -> Result<Reply, Failure> {
    let WriteArguments { path, content, keep_outputs } = arguments;
    let place = client.workspace().place(&path)?;
    if place.is_notebook() {
        // Before anything is made: a text that is refused leaves no folder behind.
        let content = Content::of(&content).map_err(|failure| failure.about(&place.named))?;
        if !place.exists
            && let Some(folder) = place.path.parent()
        {
            std::fs::create_dir_all(folder).map_err(|error| Failure::from(error).about(&path))?;
        }
        let names_cells = content.names_cells();
        let expected = if names_cells { client.expected_whole(&place) } else { client.expected(&place) };
        let saw_a_part = names_cells && client.saw_only_a_part(&place);
        let sight = if names_cells { Sight::OwnChange } else { Sight::All };
        let changed = change_as_expected(client, &place, IfMissing::Create, &expected, sight, |notebook| {
            let edited = match &content {
                Content::Json(json) => notebook.replaced_by(json.clone()),
                Content::Marked(cells) => notebook.write(cells, outputs(keep_outputs))?,
            };
            if saw_a_part && edited.report.cells.iter().any(|cell| cell.change == Change::Deleted) {
                return Err(Failure::new(
                    "you have not read all of the notebook, and this text would delete cells of it; read it whole first",
                ));
            }
            Ok(edited)
        });
        return changed.map(|(reply, _)| reply);
    }
    let seen = match client.seen().memory(&place.path) {
        Some(Memory::Text(seen)) => Some(seen),
        Some(Memory::Notebook { .. }) | None => None,
    };
    text_file::replace(&place, seen.filter(|_| place.exists), content.as_bytes())?;
    remember_text(client, &place, &content);
    let lines = content.lines().count();
    let noun = if lines == 1 { "line" } else { "lines" };
    let told = match (place.exists, seen) {
        (false, _) => format!("created {path}, {lines} {noun}"),
        (true, Some(_)) => format!("replaced {path}, now {lines} {noun}"),
        (true, None) => format!("replaced {path}, which you had not read, now {lines} {noun}"),
    };
    Ok(Reply::text(told)
        .with(json!({ "path": path, "created": !place.exists, "lines": lines, "bytes": content.len() })))
}

/// What a notebook's new text means.
enum Content {
    Json(Notebook),
    Marked(Vec<TextCell>),
}

impl Content {
    /// Whether it speaks of cells by their place.
    fn names_cells(&self) -> bool {
        match self {
            Self::Json(_) => false,
            Self::Marked(cells) => cells.iter().any(|cell| cell.origin.is_some()),
        }
    }

    fn of(text: &str) -> Result<Self, Failure> {
        // A marked text starts with a marker, so this can only be meant as the notebook's own JSON.
        if text.trim_start_matches('\u{feff}').trim_start().starts_with('{') {
            return Ok(Self::Json(Notebook::parse(text.as_bytes().to_vec())?));
        }
        Ok(Self::Marked(text::parse(text)?))
    }
}

/// Changes a notebook that is as the client last saw it, and tells what was done.
pub(crate) fn change_notebook(
    client: &Client,
    place: &Place,
    if_missing: IfMissing,
    change: impl Fn(&Notebook) -> Result<Edited, Failure>,
) -> Result<(Reply, Report), Failure> {
    change_as_expected(client, place, if_missing, &client.expected(place), Sight::OwnChange, change)
}

fn change_as_expected(
    client: &Client,
    place: &Place,
    if_missing: IfMissing,
    expected: &Expected,
    sight: Sight,
    change: impl Fn(&Notebook) -> Result<Edited, Failure>,
) -> Result<(Reply, Report), Failure> {
    let changed = file::update(&place.path, if_missing, expected, |notebook| {
        let Edited { notebook: changed, report } =
            change(notebook).map_err(|failure| ChangeError::Failed(failure.about(&place.named)))?;
        let snapshot = Snapshot::of(changed.as_ref().unwrap_or(notebook));
        Ok((changed, (report, snapshot)))
    });
    let (report, snapshot) = changed.map_err(|error| match error {
        ChangeError::Failed(failure) => failure,
        ChangeError::File(error) => client.in_callers_words(place, error),
    })?;
    let structured = report_json(place, &report, &snapshot);
    // The places it knew are those of other cells then.
    let is_moved = sight == Sight::OwnChange && report.cells.iter().any(|cell| cell.change.moves_cells());
    client.seen().remember_notebook(&place.path, snapshot, if is_moved { Sight::Some } else { sight });
    Ok((Reply::text(in_words(&report)).with(structured), report))
}

/// What can go wrong inside [`file::update`].
enum ChangeError {
    Failed(Failure),
    File(file::FileError),
}

impl From<file::FileError> for ChangeError {
    fn from(error: file::FileError) -> Self {
        Self::File(error)
    }
}

fn in_words(report: &Report) -> String {
    let mut told = report.to_string();
    for cell in report.cells.iter().filter(|cell| cell.change == Change::Deleted) {
        let text = text::print_one(cell.index, cell.kind, &cell.source);
        if told.len() + text.len() > FAREWELL {
            break;
        }
        told.push('\n');
        told.push_str(text.trim_end_matches('\n'));
    }
    told
}

fn report_json(place: &Place, report: &Report, now: &Snapshot) -> Value {
    let cells = report.cells.iter().map(|cell| {
        json!({
            "change": cell.change.name(), "index": cell.index, "id": cell.id, "type": cell.kind.name(),
            "source": cell.source,
        })
    });
    json!({
        "path": place.named, "action": report.action, "cells": cells.collect::<Vec<_>>(),
        "total_cells": report.total, "notes": report.notes.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "fingerprint": now.fingerprint().to_string(),
    })
}

pub(crate) fn outputs(keep: bool) -> cellwright_notebook::Outputs {
    if keep { cellwright_notebook::Outputs::Keep } else { cellwright_notebook::Outputs::Clear }
}

fn remember_text(client: &Client, place: &Place, text: &str) {
    client.seen().remember(&place.path, Memory::Text(Fingerprint::of(text.as_bytes())));
}

fn times(count: usize) -> String {
    if count == 1 { "1 match".to_owned() } else { format!("{count} matches") }
}

fn listed(lines: &[usize]) -> String {
    const LISTED: usize = 10;
    let shown = lines.iter().take(LISTED).map(usize::to_string).collect::<Vec<_>>().join(", ");
    if lines.len() > LISTED { format!("{shown} and more") } else { shown }
}
