//! Writing all of a notebook: as marked text, as JSON, or over a file that is not a notebook.

use cellwright_notebook::file::{FileError, IfMissing};
use cellwright_notebook::text::TextCell;
use cellwright_notebook::{ChangeNote, Fingerprint, Notebook};

use super::{
    ChangeOptions, FileEditor, FileName, KnowledgeUpdate, PendingRecord, PlannedChange, check_expected,
};
use crate::content::NewContent;
use crate::document::{ChangedDocument, fingerprint};
use crate::error::{EditingError, UnreadableNotebook};
use crate::guard::ChangeGuard;
use crate::history::{ChangeReach, StoredChange, StoredContent, UndoSteps};
use crate::knowledge::{FileKnowledge, NotebookKnowledge};
use crate::merge::merge;
use crate::refusal::EditRefusal;
use crate::report::EditReport;

impl FileEditor<'_> {
    /// Replaces a notebook's cells by those of a text, or the whole notebook by JSON. Creates the notebook if need be.
    pub fn write(
        &self,
        file: &FileName,
        content: &NewContent,
        options: &ChangeOptions,
    ) -> Result<EditReport, EditingError> {
        let if_missing = match content {
            NewContent::Marked(cells) if cells.is_empty() => IfMissing::Fail,
            NewContent::Marked(_) | NewContent::Json(_) => IfMissing::Create,
        };
        if let NewContent::Json(json) = content {
            valid(file, json, options)?;
        }
        let written = self.change(file, if_missing, options, |now, knowledge| match content {
            NewContent::Json(json) => planned_json(file, json, now, knowledge, options),
            NewContent::Marked(cells) => planned_text(file, cells, now, knowledge, options),
        });
        match written {
            Err(EditingError::File(error @ FileError::Parse { .. })) if !options.force => {
                Err(EditingError::Unreadable { reason: UnreadableNotebook(error) })
            }
            Err(EditingError::File(FileError::Parse { .. })) => self.overwrite(file, content, options),
            written => written,
        }
    }

    /// Replaces a file that is not a notebook, because the caller insists.
    fn overwrite(
        &self,
        file: &FileName,
        content: &NewContent,
        options: &ChangeOptions,
    ) -> Result<EditReport, EditingError> {
        let empty = Notebook::empty();
        let edited = match content {
            NewContent::Json(json) => empty.replaced_by((**json).clone()),
            NewContent::Marked(cells) => {
                empty.write(cells, options.outputs).map_err(|error| EditingError::edit(&file.named, error))?
            }
        };
        let after = edited.notebook.unwrap_or(empty);
        let total = edited.report.total;
        let document = self.document(file);
        let key = document.key();
        let recorded = PendingRecord::default();
        let changed = document.change_bytes(|now| {
            recorded.withdraw();
            check_expected(file, options, Fingerprint::of(now))?;
            if Notebook::parse(now.to_vec()).is_ok() {
                let what = "it is a notebook now".to_owned();
                return Err(EditingError::File(FileError::Changed { path: file.path.clone(), what }));
            }
            let noun = if total == 1 { "cell" } else { "cells" };
            let change = StoredChange {
                action: "write".to_owned(),
                summary: format!("replaced a file that was not a notebook ({total} {noun} now)"),
                undoes: None,
                after: fingerprint(&after).to_string(),
                sources_after: None,
                undo: UndoSteps::Whole { content: StoredContent::of(now) },
            };
            let note = self.record(file, &key, &change, options, &recorded)?;
            Ok((Some(after.text().as_bytes().to_vec()), note))
        });
        let ChangedDocument { outcome: kept, note } = changed.map_err(|error| {
            recorded.withdraw();
            error.called(&file.named)
        })?;
        recorded.keep();
        let mut report = edited.report;
        report.notes.push(ChangeNote::Overwritten);
        report.notes.extend(kept.into_iter().chain(note));
        let mut knowledge = NotebookKnowledge::default();
        knowledge.wrote_all(&after);
        drop(self.memory.remember(&key, FileKnowledge::Notebook(knowledge))); // a later write is refused then
        Ok(EditReport { path: file.named.clone(), report, fingerprint: fingerprint(&after) })
    }
}

fn planned_json(
    file: &FileName,
    json: &Notebook,
    now: &Notebook,
    knowledge: Option<&NotebookKnowledge>,
    options: &ChangeOptions,
) -> Result<PlannedChange, EditingError> {
    let guard = ChangeGuard::new(knowledge, now);
    let refused = |refusal| EditingError::refused(&file.named, refusal);
    if !options.is_trusted() {
        guard.check_file_seen().map_err(refused)?;
    }
    let repairs: Vec<_> = json.check().into_iter().filter_map(|problem| problem.repair).collect();
    let repaired = json.repaired(&repairs);
    let notes = if repaired.is_some() { json.repair_notes(&repairs) } else { Vec::new() };
    let edited = now.replaced_by(repaired.unwrap_or_else(|| json.clone()));
    if let (Some(expected), false) = (options.expect, options.force) {
        guard.check_taken_away(&edited, expected).map_err(refused)?;
    }
    Ok(PlannedChange { edited, reach: ChangeReach::File, notes, learnt: KnowledgeUpdate::All })
}

fn planned_text(
    file: &FileName,
    cells: &[TextCell],
    now: &Notebook,
    knowledge: Option<&NotebookKnowledge>,
    options: &ChangeOptions,
) -> Result<PlannedChange, EditingError> {
    let written = |cells: &[TextCell]| {
        now.write(cells, options.outputs).map_err(|error| EditingError::edit(&file.named, error))
    };
    let refused = |refusal| EditingError::refused(&file.named, refusal);
    let guard = ChangeGuard::new(knowledge, now);
    // A text for an empty notebook is all new, whatever its numbers once meant; an empty one is refused as such.
    let is_unasked = options.force || now.is_empty() || cells.is_empty();
    let names_cells = cells.iter().any(|cell| cell.origin.is_some());
    if is_unasked || options.expect.is_some() || !names_cells {
        let edited = written(cells)?;
        match options.expect {
            _ if is_unasked => {}
            Some(expected) => guard.check_taken_away(&edited, expected).map_err(refused)?,
            None => guard.check_all_seen().map_err(refused)?,
        }
        let (reach, notes) = (ChangeReach::Cells, Vec::new());
        return Ok(PlannedChange { edited, reach, notes, learnt: KnowledgeUpdate::Text });
    }
    let knowledge = knowledge.ok_or(EditRefusal::NeverRead).map_err(refused)?;
    let merged = merge(cells, knowledge, now).map_err(refused)?;
    let given = merged.cells.iter().map(|cell| cell.is_known).collect();
    let cells: Vec<_> = merged.cells.into_iter().map(|cell| cell.cell).collect();
    Ok(PlannedChange {
        edited: written(&cells)?,
        reach: ChangeReach::Cells,
        notes: merged.notes,
        learnt: KnowledgeUpdate::Merged(given),
    })
}

/// Whether nbformat would accept a notebook after repairs.
fn valid(file: &FileName, json: &Notebook, options: &ChangeOptions) -> Result<(), EditingError> {
    let problem = json.check().into_iter().find(|problem| problem.is_invalid() && problem.repair.is_none());
    match problem {
        Some(problem) if !options.force => Err(EditingError::Invalid { named: file.named.clone(), problem }),
        Some(_) | None => Ok(()),
    }
}
