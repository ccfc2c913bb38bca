//! The one editor behind every door.

mod undoing;
mod writing;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use cellwright_notebook::file::{FileError, IfMissing, ReadNeed, SaveSettings};
use cellwright_notebook::replace::TextReplacement;
use cellwright_notebook::{
    Action, CellRef, ChangeNote, EditedNotebook, Fingerprint, Notebook, OutputsAfterEdit,
};

use crate::coverage::ReadCoverage;
use crate::document::{ChangedDocument, NotebookDocument, fingerprint};
use crate::error::EditingError;
use crate::guard::ChangeGuard;
use crate::history::{ChangeFile, ChangeReach, HistoryStore, PastChange, StoredChange};
use crate::knowledge::{FileKnowledge, LineSource, NotebookKnowledge, OwnChange};
use crate::live::LiveNotebooks;
use crate::memory::ReadMemory;
use crate::report::EditReport;

/// A file, and what the caller calls it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileName {
    /// Where it is.
    pub path: PathBuf,
    /// What to call it in messages.
    pub named: String,
}

impl FileName {
    /// A file that is called by its path.
    pub fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), named: path.display().to_string() }
    }
}

/// How a change is made.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChangeOptions {
    /// Refuse unless the file has this fingerprint. Then numbers mean its cells, and other versions that the caller saw do
    /// not matter. A whole text must still not take away cells that the caller was not shown. A caller that knows nothing of
    /// the file has the fingerprint from a read elsewhere, and is trusted.
    pub expect: Option<Fingerprint>,
    /// Change the file whatever the caller has seen of it.
    pub force: bool,
    /// What happens to the outputs of code cells whose source changes.
    pub outputs: OutputsAfterEdit,
}

impl ChangeOptions {
    /// Whether the caller vouches for a change of cells that it names.
    pub(crate) fn is_trusted(&self) -> bool {
        self.force || self.expect.is_some()
    }
}

/// Reads and changes files for one caller.
#[derive(Clone)]
pub struct FileEditor<'a> {
    pub(crate) memory: &'a dyn ReadMemory,
    history: Option<&'a HistoryStore>,
    pub(crate) save: SaveSettings,
    live: Option<&'a dyn LiveNotebooks>,
}

/// A change to make.
struct PlannedChange {
    edited: EditedNotebook,
    /// How much of the file it may change.
    reach: ChangeReach,
    notes: Vec<ChangeNote>,
    learnt: KnowledgeUpdate,
}

/// What a caller knows after its change.
enum KnowledgeUpdate {
    /// The sources of some cells, and where the lines come from that are new in others.
    Cells(Vec<bool>, LineSource),
    /// A text of all cells, put into what others changed: which of the sources it gave.
    Merged(Vec<bool>),
    /// A text of all cells, whose numbers mean the notebook as it was.
    Text,
    /// All, without numbers that it had.
    All,
}

impl PlannedChange {
    /// A change that gives a source to new cells and to those it edits.
    fn of(edited: EditedNotebook, before: &Notebook) -> Self {
        let after = edited.notebook.as_ref().unwrap_or(before);
        let is_given = |(at, origin): (usize, &Option<usize>)| match origin {
            None => true,
            Some(origin) => before.cell(*origin).source() != after.cell(at).source(),
        };
        let given = edited.origins.iter().enumerate().map(is_given).collect();
        Self {
            edited,
            reach: ChangeReach::Cells,
            notes: Vec::new(),
            learnt: KnowledgeUpdate::Cells(given, LineSource::Caller),
        }
    }
}

impl<'a> FileEditor<'a> {
    /// An editor for the caller with this memory. Without a history, changes cannot be undone.
    pub fn new(memory: &'a dyn ReadMemory, history: Option<&'a HistoryStore>) -> Self {
        Self { memory, history, save: SaveSettings::default(), live: None }
    }

    /// The same, saving as `save` says.
    #[must_use]
    pub fn saving(self, save: SaveSettings) -> Self {
        Self { save, ..self }
    }

    /// The same for notebooks that may be open in pages. What is open is read and changed there.
    #[must_use]
    pub fn with_live(self, live: Option<&'a dyn LiveNotebooks>) -> Self {
        Self { live, ..self }
    }

    pub(crate) fn document(&self, file: &FileName) -> NotebookDocument<'_> {
        NotebookDocument::of(&file.path, &self.save, self.live)
    }

    /// Reads a notebook, and which file it is. What is then shown of it must be reported by [`FileEditor::saw`].
    pub fn open(&self, file: &FileName, need: ReadNeed) -> Result<(Notebook, Fingerprint), EditingError> {
        self.document(file).read(need).map_err(|error: EditingError| error.called(&file.named))
    }

    /// Remembers what was shown of a notebook. If that fails, a later change may be refused.
    pub fn saw(
        &self,
        file: &FileName,
        (notebook, fingerprint): (&Notebook, Fingerprint),
        coverage: &ReadCoverage,
    ) -> std::io::Result<()> {
        let key = self.document(file).key();
        if coverage.is_whole(notebook.len()) && self.memory.knows_whole(&key, fingerprint) {
            return Ok(());
        }
        let mut knowledge = self.knowledge(&key).unwrap_or_default();
        knowledge.saw(notebook, fingerprint, coverage);
        self.memory.remember(&key, FileKnowledge::Notebook(knowledge))
    }

    pub(crate) fn knowledge(&self, key: &Path) -> Option<NotebookKnowledge> {
        match self.memory.recall(key)? {
            FileKnowledge::Notebook(knowledge) => Some(knowledge),
            FileKnowledge::Text(_) => None,
        }
    }

    /// Whether the cells to run are those that the caller knows, with the text that it knows.
    pub(crate) fn check_known(
        &self,
        file: &FileName,
        notebook: &Notebook,
        cells: &[CellRef],
    ) -> Result<(), EditingError> {
        let knowledge = self.knowledge(&self.document(file).key());
        let checked = ChangeGuard::new(knowledge.as_ref(), notebook).check_unchanged(cells);
        checked.map_err(|refusal| EditingError::refused(&file.named, refusal))
    }

    /// Replaces exact strings in a notebook's marked text.
    pub fn replace_text(
        &self,
        file: &FileName,
        replacements: &[TextReplacement],
        options: &ChangeOptions,
    ) -> Result<EditReport, EditingError> {
        let failed = |error| EditingError::replace_text(&file.named, error);
        self.change(file, IfMissing::Fail, options, |now, knowledge| {
            let replaced = now.replace_in_text(replacements).map_err(failed)?;
            let edited = now.with_replaced_text(&replaced, options.outputs).map_err(failed)?;
            let guard = ChangeGuard::new(knowledge, now);
            if !options.is_trusted() {
                let checked = guard.check_named(&replaced.cells).and_then(|()| guard.check_edited(&edited));
                checked.map_err(|refusal| EditingError::refused(&file.named, refusal))?;
            }
            let mut planned = PlannedChange::of(edited, now);
            // The caller gave a part of the source. It knows all of it if it did so before.
            if let KnowledgeUpdate::Cells(given, _) = &mut planned.learnt {
                for (given, origin) in given.iter_mut().zip(&planned.edited.origins) {
                    *given &= origin.is_some_and(|origin| guard.has_seen(&now.cell(origin)));
                }
            }
            Ok(planned)
        })
    }

    /// Does an action.
    pub fn act(
        &self,
        file: &FileName,
        action: &Action,
        options: &ChangeOptions,
    ) -> Result<EditReport, EditingError> {
        let if_missing = match action {
            Action::Insert { .. } => IfMissing::Create,
            _ => IfMissing::Fail,
        };
        self.change(file, if_missing, options, |now, knowledge| {
            if !options.is_trusted() {
                let checked = ChangeGuard::new(knowledge, now).check_action(action);
                checked.map_err(|refusal| EditingError::refused(&file.named, refusal))?;
            }
            let edited = now.act(action, options.outputs);
            Ok(PlannedChange::of(edited.map_err(|error| EditingError::edit(&file.named, error))?, now))
        })
    }

    /// The changes of a notebook that are kept, the latest first.
    pub fn history(&self, file: &FileName) -> Vec<PastChange> {
        let key = self.document(file).key();
        self.history.map(|history| history.changes(&key)).unwrap_or_default()
    }

    fn change(
        &self,
        file: &FileName,
        if_missing: IfMissing,
        options: &ChangeOptions,
        plan: impl Fn(&Notebook, Option<&NotebookKnowledge>) -> Result<PlannedChange, EditingError>,
    ) -> Result<EditReport, EditingError> {
        self.change_undoing(file, if_missing, options, None, plan)
    }

    fn change_undoing(
        &self,
        file: &FileName,
        if_missing: IfMissing,
        options: &ChangeOptions,
        undoes: Option<u64>,
        plan: impl Fn(&Notebook, Option<&NotebookKnowledge>) -> Result<PlannedChange, EditingError>,
    ) -> Result<EditReport, EditingError> {
        let document = self.document(file);
        let key = document.key();
        if options.expect.is_some() && !file.path.exists() && if_missing == IfMissing::Create {
            return Err(EditingError::Gone { named: file.named.clone() });
        }
        let known = self.knowledge(&key);
        if if_missing == IfMissing::Create {
            make_folder(file, || plan(&Notebook::empty(), known.as_ref()).map(drop))?;
        }
        let recorded = PendingRecord::default();
        let changed = document.change(if_missing, |now| {
            recorded.withdraw();
            if options.expect.is_some() {
                check_expected(file, options, fingerprint(now))?;
            }
            let PlannedChange { edited, reach, notes, learnt } = plan(now, known.as_ref())?;
            let after = edited.notebook.as_ref().unwrap_or(now);
            let mut knowledge = known.clone().unwrap_or_default();
            let own = |given, new_lines| {
                let origins = &edited.origins[..];
                OwnChange { before: now, after, origins, given, new_lines }
            };
            match &learnt {
                KnowledgeUpdate::All => knowledge.wrote_all(after),
                KnowledgeUpdate::Cells(given, new_lines) => knowledge.changed_cells(&own(given, *new_lines)),
                KnowledgeUpdate::Merged(given) => knowledge.wrote_text(&own(given, LineSource::Caller)),
                KnowledgeUpdate::Text => knowledge.replaced_cells(&own(&[], LineSource::Caller)),
            }
            let mut report_notes = notes;
            // An undo that finds everything undone is recorded, too: the next one goes further back.
            if edited.notebook.is_some() || undoes.is_some() {
                let change = StoredChange { undoes, ..StoredChange::of(now, after, &edited, reach) };
                report_notes.extend(self.record(file, &key, &change, options, &recorded)?);
            }
            let now_is = fingerprint(after);
            let mut report = edited.report;
            report.notes.splice(0..0, report_notes);
            Ok((edited.notebook, (report, now_is, knowledge)))
        });
        let ChangedDocument { outcome, note } = changed.map_err(|error: EditingError| {
            recorded.withdraw();
            error.called(&file.named)
        })?;
        recorded.keep();
        let (mut report, fingerprint, knowledge) = outcome;
        report.notes.extend(note);
        if known.as_ref() != Some(&knowledge) {
            drop(self.memory.remember(&key, FileKnowledge::Notebook(knowledge))); // a later change is refused then
        }
        Ok(EditReport { path: file.named.clone(), report, fingerprint })
    }

    /// Stores a change before the file is saved: whatever ends us, what was there can be had back. A change that takes
    /// something away is refused if that cannot be stored, unless the caller insists.
    fn record(
        &self,
        file: &FileName,
        key: &Path,
        change: &StoredChange,
        options: &ChangeOptions,
        pending: &PendingRecord,
    ) -> Result<Option<ChangeNote>, EditingError> {
        let Some(history) = self.history else { return Ok(None) };
        match history.record(key, change) {
            Ok(recorded) => {
                pending.0.replace(Some(recorded));
                Ok(None)
            }
            Err(source) if change.undo.takes_away() && !options.force => {
                let (named, folder) = (file.named.clone(), history.folder().to_owned());
                Err(EditingError::NotKept { named, folder, source })
            }
            Err(source) => {
                let reason = history.unwritable(&source).to_string();
                Ok(Some(ChangeNote::CannotBeUndone { reason }))
            }
        }
    }
}

/// Makes the folder of a new file once it is certain that the file can be created: a refusal leaves no folder behind.
fn make_folder(
    file: &FileName,
    can_be_created: impl FnOnce() -> Result<(), EditingError>,
) -> Result<(), EditingError> {
    let Some(folder) = file.path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists())
    else {
        return Ok(());
    };
    can_be_created()?;
    std::fs::create_dir_all(folder).map_err(|source| {
        EditingError::File(FileError::Io {
            path: file.named.clone().into(),
            attempt: "make its folder",
            source,
        })
    })
}

pub(crate) fn check_expected(
    file: &FileName,
    options: &ChangeOptions,
    now: Fingerprint,
) -> Result<(), EditingError> {
    match options.expect {
        Some(expected) if expected != now => Err(EditingError::Unexpected { named: file.named.clone(), now }),
        Some(_) | None => Ok(()),
    }
}

/// A change that is stored while the file is not yet saved.
#[derive(Default)]
struct PendingRecord(RefCell<Option<ChangeFile>>);

impl PendingRecord {
    /// The file was saved: the oldest changes may go for it.
    fn keep(&self) {
        if let Some(recorded) = self.0.take() {
            recorded.prune_older();
        }
    }

    /// Removes it again: the file was not saved.
    fn withdraw(&self) {
        if let Some(recorded) = self.0.take() {
            recorded.withdraw();
        }
    }
}
