//! Undoing changes.

use cellwright_notebook::file::IfMissing;
use cellwright_notebook::{ChangeNote, ChangeReport, EditedNotebook, Fingerprint, Notebook, NotebookCell};

use super::{
    ChangeOptions, FileEditor, FileName, KnowledgeUpdate, PendingRecord, PlannedChange, check_expected,
};
use crate::document::ChangedDocument;
use crate::error::EditingError;
use crate::history::{
    ChangeReach, StoredChange, StoredContent, UndoError, UndoSteps, undone, with_old_results,
};
use crate::knowledge::{FileKnowledge, LineSource, NotebookKnowledge, OwnChange, SeenSources};
use crate::report::EditReport;

impl FileEditor<'_> {
    /// Undoes a change: the one with this number, or else the latest that was not undone.
    pub fn undo(
        &self,
        file: &FileName,
        number: Option<u64>,
        options: &ChangeOptions,
    ) -> Result<EditReport, EditingError> {
        let failed = |error| EditingError::undo(&file.named, error);
        let history = self.history.ok_or(UndoError::Nothing).map_err(failed)?;
        let key = self.document(file).key();
        let (number, change) = history.to_undo(&key, number).map_err(failed)?;
        match &change.undo {
            UndoSteps::Cells(steps) => {
                self.undo_in_cells(file, number, options, |now| undone(steps, now, number, options.force))
            }
            UndoSteps::Results { cells } => self.undo_in_cells(file, number, options, |now| {
                with_old_results(cells, now, number, options.force)
            }),
            UndoSteps::Whole { content } => self.undo_whole(file, number, &change, content, options),
        }
    }

    /// Undoes a change of cells; `undone` makes the notebook without it.
    fn undo_in_cells(
        &self,
        file: &FileName,
        number: u64,
        options: &ChangeOptions,
        undone: impl Fn(&Notebook) -> Result<EditedNotebook, UndoError>,
    ) -> Result<EditReport, EditingError> {
        self.change_undoing(file, IfMissing::Fail, options, Some(number), |now, knowledge| {
            let edited = undone(now).map_err(|error| EditingError::undo(&file.named, error))?;
            let given =
                restored_cells(now, edited.notebook.as_ref().unwrap_or(now), &edited.origins, knowledge);
            let learnt = KnowledgeUpdate::Cells(given, LineSource::History);
            let notes = vec![ChangeNote::Undid { change: number }];
            Ok(PlannedChange { edited, reach: ChangeReach::Cells, notes, learnt })
        })
    }

    /// Undoes a change that replaced all of a file, which may not have been a notebook, nor be one now.
    fn undo_whole(
        &self,
        file: &FileName,
        number: u64,
        change: &StoredChange,
        content: &StoredContent,
        options: &ChangeOptions,
    ) -> Result<EditReport, EditingError> {
        let failed = |error| EditingError::undo(&file.named, error);
        let before = content.bytes().ok_or(UndoError::Unusable { number }).map_err(failed)?;
        let restored = Notebook::parse(before.clone()).ok();
        let document = self.document(file);
        let key = document.key();
        let recorded = PendingRecord::default();
        let changed = document.change_bytes(|now| {
            recorded.withdraw();
            let is = Fingerprint::of(now);
            check_expected(file, options, is)?;
            let replaced = Notebook::parse(now.to_vec()).ok();
            if !options.force && !change.left(now, replaced.as_ref()) {
                return Err(failed(UndoError::ReplacedSince { number }));
            }
            let (mut report, origins) = whole_report(replaced.as_ref(), restored.as_ref());
            let undo = StoredChange {
                action: report.action.to_owned(),
                summary: report.to_string().lines().next().unwrap_or_default().to_owned(),
                undoes: Some(number),
                after: Fingerprint::of(&before).to_string(),
                sources_after: None,
                undo: UndoSteps::Whole { content: StoredContent::of(now) },
            };
            let note = self.record(file, &key, &undo, options, &recorded)?;
            report.notes.splice(0..0, std::iter::once(ChangeNote::Undid { change: number }).chain(note));
            Ok(((before != now).then(|| before.clone()), (report, replaced, origins)))
        });
        let ChangedDocument { outcome: (mut report, replaced, origins), note } =
            changed.map_err(|error| {
                recorded.withdraw();
                error.called(&file.named)
            })?;
        recorded.keep();
        report.notes.extend(note);
        match (self.knowledge(&key), replaced, &restored) {
            (Some(mut knowledge), Some(replaced), Some(restored)) => {
                let given = restored_cells(&replaced, restored, &origins, Some(&knowledge));
                knowledge.changed_cells(&OwnChange {
                    before: &replaced,
                    after: restored,
                    origins: &origins,
                    given: &given,
                    new_lines: LineSource::History,
                });
                // If this fails, a later change is refused.
                drop(self.memory.remember(&key, FileKnowledge::Notebook(knowledge)));
            }
            (None, _, _) => {}
            (Some(_), _, _) => self.memory.forget(&key),
        }
        Ok(EditReport { path: file.named.clone(), report, fingerprint: Fingerprint::of(&before) })
    }
}

/// Which cells came back with a source that the caller has seen. Others' text may come back, too, which it has not.
fn restored_cells(
    before: &Notebook,
    after: &Notebook,
    origins: &[Option<usize>],
    knowledge: Option<&NotebookKnowledge>,
) -> Vec<bool> {
    let seen = SeenSources::of(knowledge);
    // If others changed the cell too, the caller knows another version of it.
    let knew = |cell: &NotebookCell<'_>| {
        let known = knowledge.and_then(|knowledge| knowledge.known_as(cell));
        known.is_none_or(|(_, known)| known.says_what(cell))
    };
    let is_restored = |(at, origin): (usize, &Option<usize>)| {
        let cell = after.cell(at);
        let before = origin.map(|origin| before.cell(origin));
        let is_kept =
            |before: &NotebookCell<'_>| before.kind() == cell.kind() && before.source() == cell.source();
        seen.has(&cell) && before.is_none_or(|before| !is_kept(&before) && knew(&before))
    };
    origins.iter().enumerate().map(is_restored).collect()
}

/// What is reported when a whole file takes the place of another, and which cells were which.
fn whole_report(
    replaced: Option<&Notebook>,
    restored: Option<&Notebook>,
) -> (ChangeReport, Vec<Option<usize>>) {
    let Some(restored) = restored else {
        let report =
            ChangeReport { action: "undo", cells: Vec::new(), total: 0, notes: vec![ChangeNote::PutBack] };
        return (report, Vec::new());
    };
    let EditedNotebook { mut report, origins, .. } = match replaced {
        Some(replaced) => replaced.replaced_by(restored.clone()),
        None => Notebook::empty().replaced_by(restored.clone()),
    };
    report.action = "undo";
    (report, origins)
}
