//! The one editor behind every door.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use cellwright_notebook::file::{FileError, Found, IfMissing, Need, SaveMethod, SaveSettings, Updated};
use cellwright_notebook::replace::Replacement;
use cellwright_notebook::text::TextCell;
use cellwright_notebook::{Action, CellRef, Edited, Fingerprint, Note, Notebook, Outputs};

use crate::content::NewContent;
use crate::coverage::Coverage;
use crate::document::{Document, fingerprint};
use crate::error::{EditingError, Unreadable};
use crate::guard::Guard;
use crate::history::{ChangeReach, HistoryStore, PastChange, Recorded, StoredChange, UndoSteps};
use crate::knowledge::{FileKnowledge, NotebookKnowledge};
use crate::memory::ReadMemory;
use crate::merge::merge;
use crate::refusal::Refusal;
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
    /// Refuse unless the file has this fingerprint. Then nothing else is asked of the caller.
    pub expect: Option<Fingerprint>,
    /// Change the file whatever the caller has seen of it.
    pub force: bool,
    /// What happens to the outputs of code cells whose source changes.
    pub outputs: Outputs,
}

impl ChangeOptions {
    /// Whether the caller vouches for the change itself.
    fn is_trusted(&self) -> bool {
        self.force || self.expect.is_some()
    }
}

/// Reads and changes files for one caller.
#[derive(Clone)]
pub struct Editor<'a> {
    pub(crate) memory: &'a dyn ReadMemory,
    history: Option<&'a HistoryStore>,
    save: SaveSettings,
}

/// A change that is to be made.
struct PlannedChange {
    edited: Edited,
    /// How much of the file it may change.
    reach: ChangeReach,
    notes: Vec<Note>,
    learnt: Learnt,
}

/// What a caller knows after its change.
enum Learnt {
    /// The sources that it gave for some cells.
    Cells(Vec<bool>),
    /// A text of all cells, of which it gave those sources.
    Text(Vec<bool>),
    /// All, without numbers that it had.
    All,
}

impl PlannedChange {
    /// A change that gives a source to new cells and to those it edits.
    fn of(edited: Edited, before: &Notebook) -> Self {
        let after = edited.notebook.as_ref().unwrap_or(before);
        let is_given = |(at, origin): (usize, &Option<usize>)| match origin {
            None => true,
            Some(origin) => before.cell(*origin).source() != after.cell(at).source(),
        };
        let given = edited.origins.iter().enumerate().map(is_given).collect();
        Self { edited, reach: ChangeReach::Cells, notes: Vec::new(), learnt: Learnt::Cells(given) }
    }
}

impl<'a> Editor<'a> {
    /// An editor for the caller with this memory. Without a history, changes cannot be undone.
    pub fn new(memory: &'a dyn ReadMemory, history: Option<&'a HistoryStore>) -> Self {
        Self { memory, history, save: SaveSettings::default() }
    }

    /// The same, saving as `save` says.
    #[must_use]
    pub fn saving(self, save: SaveSettings) -> Self {
        Self { save, ..self }
    }

    fn document(&self, file: &FileName) -> Document<'_> {
        Document::file(&file.path, &self.save)
    }

    /// Reads a notebook, and which file it is. What is then shown of it must be reported by [`Editor::saw`].
    pub fn open(&self, file: &FileName, need: Need) -> Result<(Notebook, Fingerprint), EditingError> {
        self.document(file).read(need).map_err(|error| EditingError::File(error.called(&file.named)))
    }

    /// Remembers what was shown of a notebook. If that fails, a later change may be refused.
    pub fn saw(
        &self,
        file: &FileName,
        (notebook, fingerprint): (&Notebook, Fingerprint),
        coverage: &Coverage,
    ) -> std::io::Result<()> {
        let key = self.document(file).key();
        if coverage.is_whole(notebook.len()) && self.memory.knows_whole(&key, fingerprint) {
            return Ok(());
        }
        let mut knowledge = self.knowledge(&key).unwrap_or_default();
        knowledge.saw(notebook, fingerprint, coverage);
        self.memory.remember(&key, FileKnowledge::Notebook(knowledge))
    }

    fn knowledge(&self, key: &Path) -> Option<NotebookKnowledge> {
        match self.memory.recall(key)? {
            FileKnowledge::Notebook(knowledge) => Some(knowledge),
            FileKnowledge::Text(_) => None,
        }
    }

    /// Whether cells that are to be run are those that the caller knows, and say what it knows.
    pub fn check_run(
        &self,
        file: &FileName,
        notebook: &Notebook,
        cells: &[CellRef],
    ) -> Result<(), EditingError> {
        let knowledge = self.knowledge(&self.document(file).key());
        let checked = Guard::new(knowledge.as_ref(), notebook).check_run(cells);
        checked.map_err(|refusal| EditingError::refused(&file.named, refusal))
    }

    /// Replaces exact strings in a notebook's marked text.
    pub fn replace_text(
        &self,
        file: &FileName,
        replacements: &[Replacement],
        options: &ChangeOptions,
    ) -> Result<EditReport, EditingError> {
        self.change(file, IfMissing::Fail, options, |now, knowledge| {
            let edited = now.replace_text(replacements, options.outputs);
            let edited = edited.map_err(|error| EditingError::replace_text(&file.named, error))?;
            let guard = Guard::new(knowledge, now);
            if !options.is_trusted() {
                guard.check_edited(&edited).map_err(|refusal| EditingError::refused(&file.named, refusal))?;
            }
            let mut planned = PlannedChange::of(edited, now);
            // The caller gave a part of the source. It knows all of it if it did so before.
            if let Learnt::Cells(given) = &mut planned.learnt {
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
                let checked = Guard::new(knowledge, now).check_action(action);
                checked.map_err(|refusal| EditingError::refused(&file.named, refusal))?;
            }
            let edited = now.act(action, options.outputs);
            Ok(PlannedChange::of(edited.map_err(|error| EditingError::edit(&file.named, error))?, now))
        })
    }

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
                Err(EditingError::Unreadable { reason: Unreadable(error) })
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
        let document = self.document(file);
        let before =
            document.overwrite(&after).map_err(|error| EditingError::File(error.called(&file.named)))?;
        let mut report = edited.report;
        report.notes.push(Note::Overwritten);
        let key = document.key();
        if let Some(history) = self.history {
            let change = StoredChange {
                action: report.action.to_owned(),
                summary: report.to_string().lines().next().unwrap_or_default().to_owned(),
                undoes: None,
                after: fingerprint(&after).to_string(),
                undo: UndoSteps::Whole { text: String::from_utf8_lossy(&before).into_owned() },
            };
            drop(history.record(&key, &change)); // the caller asked for what was there to go
        }
        let mut knowledge = NotebookKnowledge::default();
        knowledge.wrote_all(&after);
        drop(self.memory.remember(&key, FileKnowledge::Notebook(knowledge))); // a later write is refused then
        Ok(EditReport { path: file.named.clone(), report, fingerprint: fingerprint(&after) })
    }

    /// Undoes a change: the one with this number, else the latest that was not undone.
    pub fn undo(
        &self,
        file: &FileName,
        number: Option<u64>,
        options: &ChangeOptions,
    ) -> Result<EditReport, EditingError> {
        let failed = |error| EditingError::undo(&file.named, error);
        let history = self.history.ok_or(crate::UndoError::Nothing).map_err(failed)?;
        let key = self.document(file).key();
        let (number, change) = history.to_undo(&key, number).map_err(failed)?;
        self.change_undoing(file, IfMissing::Fail, options, Some(number), |now, _| {
            let edited = change.undone_in(now, number, options.force).map_err(failed)?;
            // What comes back may be others' text, which the caller has not seen.
            let learnt = Learnt::Cells(vec![false; edited.origins.len()]);
            Ok(PlannedChange {
                edited,
                reach: change.undo.reach(),
                notes: vec![Note::Undid { change: number }],
                learnt,
            })
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
        let recorded: RefCell<Option<Recorded>> = RefCell::new(None);
        let changed = document.change(if_missing, |now| {
            withdraw(&recorded);
            if let Some(expected) = options.expect
                && fingerprint(now) != expected
            {
                return Err(EditingError::Unexpected { named: file.named.clone(), now: fingerprint(now) });
            }
            let PlannedChange { edited, reach, notes, learnt } = plan(now, known.as_ref())?;
            let after = edited.notebook.as_ref().unwrap_or(now);
            let mut knowledge = known.clone().unwrap_or_default();
            let is_given = |given: &[bool], at: usize| given.get(at).copied().unwrap_or(false);
            match &learnt {
                Learnt::All => knowledge.wrote_all(after),
                Learnt::Cells(given) => {
                    knowledge.changed_cells(now, after, &edited.origins, |at| is_given(given, at));
                }
                Learnt::Text(given) => {
                    knowledge.wrote_text(now, after, &edited.origins, |at| is_given(given, at));
                }
            }
            if let (Some(history), Some(_)) = (self.history, &edited.notebook) {
                let change = StoredChange { undoes, ..StoredChange::of(now, after, &edited, reach) };
                // Before the file changes: whatever ends us, what was there can be had back.
                *recorded.borrow_mut() = history.record(&key, &change).ok();
            }
            let now_is = fingerprint(after);
            let mut report = edited.report;
            report.notes.splice(0..0, notes);
            Ok((edited.notebook, (report, now_is, knowledge)))
        });
        let Updated { outcome, found, saved } = changed.map_err(|error| {
            withdraw(&recorded);
            match error {
                EditingError::File(error) => EditingError::File(error.called(&file.named)),
                error => error,
            }
        })?;
        let (mut report, fingerprint, knowledge) = outcome;
        if found == Found::Nothing {
            report.notes.push(Note::Created);
        }
        if saved == Some(SaveMethod::InPlace) {
            report.notes.push(Note::InPlace);
        }
        if known.as_ref() != Some(&knowledge) {
            drop(self.memory.remember(&key, FileKnowledge::Notebook(knowledge))); // a later change is refused then
        }
        Ok(EditReport { path: file.named.clone(), report, fingerprint })
    }
}

fn planned_json(
    file: &FileName,
    json: &Notebook,
    now: &Notebook,
    knowledge: Option<&NotebookKnowledge>,
    options: &ChangeOptions,
) -> Result<PlannedChange, EditingError> {
    if !options.is_trusted() {
        let checked = Guard::new(knowledge, now).check_all_seen();
        checked.map_err(|refusal| EditingError::refused(&file.named, refusal))?;
    }
    let repairs: Vec<_> = json.check().into_iter().filter_map(|problem| problem.repair).collect();
    let repaired = json.repaired(&repairs);
    let notes = if repaired.is_some() { vec![Note::Repaired] } else { Vec::new() };
    let edited = now.replaced_by(repaired.unwrap_or_else(|| json.clone()));
    Ok(PlannedChange { edited, reach: ChangeReach::File, notes, learnt: Learnt::All })
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
    let names_cells = cells.iter().any(|cell| cell.origin.is_some());
    // A text for an empty notebook is all new, whatever its numbers once meant; an empty one is refused as such.
    if options.is_trusted() || now.is_empty() || cells.is_empty() {
        let learnt = Learnt::Text(vec![true; cells.len()]);
        return Ok(PlannedChange {
            edited: written(cells)?,
            reach: ChangeReach::Cells,
            notes: Vec::new(),
            learnt,
        });
    }
    let refused = |refusal| EditingError::refused(&file.named, refusal);
    if !names_cells {
        Guard::new(knowledge, now).check_all_seen().map_err(refused)?;
        let learnt = Learnt::Text(vec![true; cells.len()]);
        return Ok(PlannedChange {
            edited: written(cells)?,
            reach: ChangeReach::Cells,
            notes: Vec::new(),
            learnt,
        });
    }
    let knowledge = knowledge.ok_or(Refusal::NeverRead).map_err(refused)?;
    let merged = merge(cells, knowledge, now).map_err(refused)?;
    let given = merged.cells.iter().map(|cell| cell.is_known).collect();
    let cells: Vec<_> = merged.cells.into_iter().map(|cell| cell.cell).collect();
    Ok(PlannedChange {
        edited: written(&cells)?,
        reach: ChangeReach::Cells,
        notes: merged.notes,
        learnt: Learnt::Text(given),
    })
}

/// Whether nbformat would accept a notebook, but for what can be repaired.
fn valid(file: &FileName, json: &Notebook, options: &ChangeOptions) -> Result<(), EditingError> {
    let problem = json.check().into_iter().find(|problem| problem.is_invalid() && problem.repair.is_none());
    match problem {
        Some(problem) if !options.force => Err(EditingError::Invalid { named: file.named.clone(), problem }),
        Some(_) | None => Ok(()),
    }
}

/// Makes the folder of a file that is to be created, if it can be: what is refused leaves no folder behind.
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

fn withdraw(recorded: &RefCell<Option<Recorded>>) {
    if let Some(recorded) = recorded.borrow_mut().take() {
        recorded.withdraw();
    }
}
