//! A run that is planned, and what is written before it can begin.

use std::cell::RefCell;
use std::path::Path;
use std::{fs, io};

use cellwright_editing::{RunEntry, RunHistory};
use cellwright_notebook::file::{self, FileError, FoundFile, IfMissing, TrackedFile};
use cellwright_notebook::{EditedNotebook, NoSuchCell, Notebook};

use crate::note::RunNote;
use crate::parameters;
use crate::plan::{CodeSelection, NotebookHome, PlanError, RunPlan, RunRequest, home};

/// A run that is planned. Nothing was changed yet.
#[derive(Debug)]
pub struct RunDraft {
    request: RunRequest,
    source: Notebook,
    home: NotebookHome,
}

impl RunDraft {
    /// Reads the notebook, and finds out whether what is wanted can be done to it. Blocks on files.
    pub fn of(request: RunRequest) -> Result<Self, PlanError> {
        let real = fs::canonicalize(&request.path);
        file::recover(&request.path, &request.save)?;
        let source = file::read(&request.path)?;
        let home = home(real.as_deref().unwrap_or(&request.path), &source);
        PreparedCells::of(&source, &request)?;
        Ok(Self { request, source, home })
    }

    /// Where the cells will run.
    pub fn home(&self) -> &NotebookHome {
        &self.home
    }

    /// The notebook as it was read.
    pub fn notebook(&self) -> &Notebook {
        &self.source
    }

    /// Whether [`RunDraft::write`] changes a file.
    pub fn changes_files(&self) -> bool {
        self.request.output.is_some() || !self.request.parameters.is_empty()
    }

    /// Puts parameters in, and makes the file for the outputs. What that replaces, and the outputs that the run will
    /// replace, are kept for undo. Blocks on files.
    pub fn write(self) -> Result<RunPlan, PlanError> {
        let is_changed = self.changes_files();
        let Self { request, source, home } = self;
        let path = request.output.as_ref().unwrap_or(&request.path);
        let change = DraftChange {
            request: &request,
            source: &source,
            path,
            history: RunHistory::new(request.history.clone(), path),
            entry: RefCell::default(),
        };
        let written = if is_changed { Some(change.write()?) } else { None };
        let history = change.history;
        let file = TrackedFile::open(path, &request.save)?;
        let (chosen, note, is_kept) = match written {
            // The old outputs in a new copy are in the notebook that it is a copy of.
            Some(WrittenDraft { chosen, note, is_new }) => {
                let is_kept = is_new || matches!(note, Some(RunNote::ReplacedFile { .. }));
                (chosen, note, is_kept)
            }
            None => (chosen(file.notebook(), &request.cells)?, None, false),
        };
        let mut plan = RunPlan::new(file, &chosen, &request, home, history);
        plan.notes.extend(note);
        if !is_kept {
            plan.keep_outputs();
        }
        Ok(plan)
    }
}

/// The change of a file before its cells can run.
struct DraftChange<'a> {
    request: &'a RunRequest,
    source: &'a Notebook,
    /// The file for the outputs.
    path: &'a Path,
    history: RunHistory,
    /// What is stored for undo before the file is saved. If it is not saved, this is withdrawn.
    entry: RefCell<RunEntry>,
}

/// What was written.
struct WrittenDraft {
    /// Which cells are to run.
    chosen: Vec<usize>,
    note: Option<RunNote>,
    /// There was no such file before.
    is_new: bool,
}

/// What a file becomes, if something else than it is; which cells are to run; what was replaced.
type DraftContent<Content> = (Option<Content>, (Vec<usize>, Option<RunNote>));

impl DraftChange<'_> {
    fn write(&self) -> Result<WrittenDraft, PlanError> {
        let is_copy = self.request.output.is_some();
        let if_missing = if is_copy { IfMissing::Create } else { IfMissing::Fail };
        let change = |now: &Notebook| {
            self.entry.take().withdraw();
            if is_copy { self.copy_over(now) } else { self.with_parameters(now) }
        };
        let written = file::update_with(&self.request.save, self.path, if_missing, change);
        let written = match written {
            Err(PlanError::File(source @ FileError::Parse { .. })) if is_copy && !self.request.force => {
                Err(PlanError::OtherFile { path: self.path.to_owned(), source })
            }
            Err(PlanError::File(FileError::Parse { .. })) if is_copy => {
                file::update_bytes(&self.request.save, self.path, |now| self.copy_over_file(now))
            }
            written => written,
        };
        let written = written.inspect_err(|_| self.entry.take().withdraw())?;
        let (chosen, note) = written.outcome;
        Ok(WrittenDraft { chosen, note, is_new: written.found == FoundFile::Nothing })
    }

    /// The copy of the source that takes the place of `now`.
    fn copy_over(&self, now: &Notebook) -> Result<DraftContent<Notebook>, PlanError> {
        let PreparedCells { edited, chosen } = PreparedCells::of(self.source, self.request)?;
        let copy = edited.and_then(|edited| edited.notebook).unwrap_or_else(|| self.source.clone());
        // A file that does not exist is handed over as an empty notebook.
        if [copy.text(), Notebook::empty().text()].contains(&now.text()) {
            return Ok((Some(copy), (chosen, None)));
        }
        let unkept = self.kept(self.history.keep_notebook(now, &copy))?;
        let note = RunNote::ReplacedFile { path: self.path.to_owned(), unkept };
        Ok((Some(copy), (chosen, Some(note))))
    }

    /// The same for a file that is not a notebook, because the caller insists.
    fn copy_over_file(&self, now: &[u8]) -> Result<DraftContent<Vec<u8>>, PlanError> {
        self.entry.take().withdraw();
        let PreparedCells { edited, chosen } = PreparedCells::of(self.source, self.request)?;
        let copy = edited.and_then(|edited| edited.notebook).unwrap_or_else(|| self.source.clone());
        let unkept = self.kept(self.history.keep_file(now, &copy))?;
        let note = RunNote::ReplacedFile { path: self.path.to_owned(), unkept };
        Ok((Some(copy.text().as_bytes().to_vec()), (chosen, Some(note))))
    }

    /// The notebook with the parameters in it.
    fn with_parameters(&self, now: &Notebook) -> Result<DraftContent<Notebook>, PlanError> {
        let PreparedCells { edited, chosen } = PreparedCells::of(now, self.request)?;
        let Some(edited) = edited else { return Ok((None, (chosen, None))) };
        let unkept = self.kept(self.history.keep_parameters(now, &edited))?;
        let note = unkept.map(|reason| RunNote::UnkeptParameters { reason });
        Ok((edited.notebook, (chosen, note)))
    }

    /// Why something could not be stored, if the caller goes on without that.
    fn kept(&self, stored: io::Result<RunEntry>) -> Result<Option<String>, PlanError> {
        match stored {
            Ok(stored) => {
                self.entry.replace(stored);
                Ok(None)
            }
            Err(error) if self.request.force => Ok(Some(error.to_string())),
            Err(source) => Err(PlanError::Unkept { path: self.path.to_owned(), source }),
        }
    }
}

/// What is put into a notebook before it runs, if something is, and which of its cells are wanted then.
struct PreparedCells {
    edited: Option<EditedNotebook>,
    chosen: Vec<usize>,
}

impl PreparedCells {
    fn of(notebook: &Notebook, request: &RunRequest) -> Result<Self, PlanError> {
        // A caller that names a cell names one of the notebook as it is.
        let chosen = chosen(notebook, &request.cells)?;
        Ok(match parameters::inject(notebook, &request.parameters)? {
            Some(injected) => {
                let chosen = injected.chosen(chosen);
                Self { edited: Some(injected.edited), chosen }
            }
            None => Self { edited: None, chosen },
        })
    }
}

fn chosen(notebook: &Notebook, cells: &CodeSelection) -> Result<Vec<usize>, NoSuchCell> {
    Ok(match cells {
        CodeSelection::All => (0..notebook.len()).collect(),
        CodeSelection::From(cell) => (notebook.locate(cell)?..notebook.len()).collect(),
        CodeSelection::Cells(cells) => {
            let mut chosen = cells.resolve(notebook)?;
            chosen.sort_unstable();
            chosen
        }
    })
}
