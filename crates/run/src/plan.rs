//! What a run will do.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use cellwright_editing::{HistoryStore, RunEntry, RunHistory};
use cellwright_kernel::KernelChoice;
use cellwright_notebook::file::{FileError, SaveSettings, TrackedFile};
use cellwright_notebook::select::CellSelection;
use cellwright_notebook::{CellKind, CellRef, EditError, Fingerprint, NoSuchCell, Notebook, NotebookCell};
use cellwright_session::{
    Call, CellRequest, CollectMode, OutputSettings, Reset, SessionClient, SessionError, SessionId, Timeout,
    Turns,
};
use futures_util::future::BoxFuture;

use crate::displays::EarlierDisplay;
use crate::draft::RunDraft;
use crate::note::RunNote;
use crate::parameters::{Parameter, UnwritableParameter};
use crate::running::NotebookRun;

/// Bytes of outputs a notebook keeps of one cell, unless someone says otherwise.
const LIMIT: usize = 32 << 20;

/// A run someone wants.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The notebook.
    pub path: PathBuf,
    /// Where the outputs go. `None` means the notebook itself.
    pub output: Option<PathBuf>,
    /// Which of its cells.
    pub cells: CodeSelection,
    /// Values for its parameters.
    pub parameters: Vec<Parameter>,
    /// What an exception means.
    pub errors: ErrorPolicy,
    /// The time each cell has.
    pub timeout: Timeout,
    /// Whether to begin with a fresh kernel.
    pub reset: Reset,
    /// Whether cells keep when they ran.
    pub timing: bool,
    /// Bytes of outputs kept of one cell.
    pub limit: usize,
    /// What the report holds of outputs, and where what fits neither there nor into the notebook goes.
    pub report: OutputSettings,
    /// How the notebook is saved.
    pub save: SaveSettings,
    /// Where what the run replaces is kept for undo.
    pub history: Option<HistoryStore>,
    /// Replace text also if it cannot be kept. Outputs are replaced in any case.
    pub force: bool,
}

impl RunRequest {
    /// A run of all cells, in place, up to the first exception.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            output: None,
            cells: CodeSelection::All,
            parameters: Vec::new(),
            errors: ErrorPolicy::Stop,
            timeout: Timeout::Default,
            reset: Reset::No,
            timing: true,
            limit: LIMIT,
            report: OutputSettings::default(),
            save: SaveSettings::default(),
            history: None,
            force: false,
        }
    }
}

/// Some cells of a notebook. Only code is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodeSelection {
    /// All.
    All,
    /// These, in the order of the notebook.
    Cells(CellSelection),
    /// This one and all after it.
    From(CellRef),
}

/// What an exception in a cell that is not tagged `raises-exception` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorPolicy {
    /// The run ends.
    Stop,
    /// The run goes on.
    Allow,
}

/// A cell that will run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedCell {
    /// Its place in the notebook.
    pub index: usize,
    /// Its id, if it has one of its own.
    pub id: Option<String>,
    /// What it says.
    pub source: String,
}

impl PlannedCell {
    /// How to name it in one line: what it begins with.
    pub fn label(&self) -> &str {
        let mut lines = self.source.lines().map(str::trim).filter(|line| !line.is_empty());
        let first = lines.clone().find(|line| !line.starts_with('#'));
        first.or_else(|| lines.next()).unwrap_or_default()
    }
}

/// Where a notebook's cells run: its own session, in its folder, on the kernel it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotebookHome {
    /// The session's name.
    pub session: String,
    /// The notebook's folder.
    pub cwd: PathBuf,
    /// The kernel that its metadata names. `None` if any Python will do.
    pub kernel: Option<KernelChoice>,
}

/// The home of the notebook at `path`, links resolved.
pub fn home(path: &Path, notebook: &Notebook) -> NotebookHome {
    /// What a session's name may have, with room for a prefix.
    const LONGEST: usize = 80;
    let name = path.file_name().map_or(Cow::Borrowed("notebook"), |name| name.to_string_lossy());
    let name = name.replace(char::is_control, "\u{fffd}");
    let session = if name.len() <= LONGEST {
        name
    } else {
        format!("{}…{}", &name[..name.floor_char_boundary(LONGEST - 36)], Fingerprint::of(name.as_bytes()))
    };
    let cwd = path.parent().map_or_else(|| PathBuf::from("/"), Path::to_owned);
    NotebookHome { session, cwd, kernel: kernel(notebook) }
}

fn kernel(notebook: &Notebook) -> Option<KernelChoice> {
    // What Jupyter calls the Python it was installed with: any will do.
    const USUAL: [&str; 4] = ["python", "python2", "python3", "ipython"];
    let name = notebook.kernel_name().or_else(|| notebook.language())?;
    let is_usual = name.trim().is_empty() || USUAL.contains(&name.to_lowercase().as_str());
    (!is_usual).then(|| KernelChoice::Jupyter { name: name.into() })
}

/// Why a run cannot begin. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The file.
    #[error(transparent)]
    File(#[from] FileError),
    /// A cell that is not there.
    #[error(transparent)]
    NoSuchCell(#[from] NoSuchCell),
    /// Parameters that the notebook's language cannot be given.
    #[error(transparent)]
    Parameters(#[from] UnwritableParameter),
    /// Parameters that could not be put in.
    #[error("the parameters could not be put into the notebook")]
    Injection(#[from] EditError),
    /// The file for the outputs holds something else than a notebook, and the caller did not insist.
    #[error("nothing was run; use force to replace {}", path.display())]
    OtherFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: FileError,
    },
    /// Text that would be replaced could not be kept, and the caller did not insist.
    #[error(
        "nothing was run: undo could not keep what {} is now; make the folder writable, or use force to replace it \
         without undo",
        path.display()
    )]
    Unkept {
        /// The file that would be changed.
        path: PathBuf,
        /// Why it could not be kept.
        source: io::Error,
    },
}

/// A run that can begin.
#[derive(Debug)]
pub struct RunPlan {
    pub(crate) file: TrackedFile,
    pub(crate) cells: Vec<PlannedCell>,
    pub(crate) timing: bool,
    pub(crate) limit: usize,
    pub(crate) report: OutputSettings,
    pub(crate) earlier: Vec<EarlierDisplay>,
    pub(crate) history: RunHistory,
    /// What is stored of the outputs that the run replaces.
    pub(crate) entry: RunEntry,
    pub(crate) notes: Vec<RunNote>,
    requests: Vec<CellRequest>,
    home: NotebookHome,
}

impl RunPlan {
    /// Reads the notebook, puts parameters in, and makes the file for the outputs. Blocks on files.
    pub fn make(request: &RunRequest) -> Result<Self, PlanError> {
        RunDraft::of(request.clone())?.write()
    }

    pub(crate) fn new(
        file: TrackedFile,
        chosen: &[usize],
        request: &RunRequest,
        home: NotebookHome,
        history: RunHistory,
    ) -> Self {
        let notebook = file.notebook();
        let (mut cells, mut requests) = (Vec::new(), Vec::new());
        let mut ids = HashMap::new();
        for id in notebook.cells().filter_map(|cell| cell.id()) {
            *ids.entry(id.into_owned()).or_insert(0) += 1;
        }
        // Others may have removed some a moment ago.
        let there = chosen.iter().filter(|index| **index < notebook.len());
        for cell in there.map(|index| notebook.cell(*index)).filter(is_run) {
            let source = cell.source();
            let mut cell_request = CellRequest::new(source.clone());
            cell_request.name = Some(format!("cell {}", cell.index()));
            cell_request.timeout = request.timeout;
            cell_request.may_raise =
                request.errors == ErrorPolicy::Allow || is_tagged(&cell, "raises-exception");
            if cells.is_empty() {
                cell_request.reset = request.reset;
            }
            requests.push(cell_request);
            // One that several cells have names none of them.
            let id = cell.id().map(Cow::into_owned).filter(|id| ids[id] == 1);
            cells.push(PlannedCell { index: cell.index(), id, source: source.into_owned() });
        }
        let (timing, limit, report) = (request.timing, request.limit, request.report.clone());
        let (earlier, entry, notes) = (Vec::new(), RunEntry::default(), Vec::new());
        Self { file, cells, timing, limit, report, earlier, history, entry, notes, requests, home }
    }

    /// Keeps the outputs that the run will replace.
    pub(crate) fn keep_outputs(&mut self) {
        let cells: Vec<_> = self.cells.iter().map(|cell| cell.index).collect();
        let (entry, unkept) = self.history.keep_outputs(self.file.notebook(), &cells, "ran code");
        self.entry = entry;
        self.notes.extend(unkept.into_iter().map(RunNote::UnkeptOutputs));
    }

    /// What is replaced already, or will be and cannot be kept.
    pub fn notes(&self) -> &[RunNote] {
        &self.notes
    }

    /// The code of the notebook that is tagged not to run.
    pub fn skipped(&self) -> Vec<PlannedCell> {
        let skipped = self.file.notebook().cells().filter(|cell| {
            cell.kind() == CellKind::Code
                && !cell.source().trim().is_empty()
                && is_tagged(cell, "skip-execution")
        });
        let planned = skipped.map(|cell| PlannedCell {
            index: cell.index(),
            id: cell.id().map(Cow::into_owned),
            source: cell.source().into_owned(),
        });
        planned.collect()
    }

    /// The cells that will run; maybe none.
    pub fn cells(&self) -> &[PlannedCell] {
        &self.cells
    }

    /// The same, with displays of earlier runs, which its cells may update.
    #[must_use]
    pub fn with_displays(self, earlier: Vec<EarlierDisplay>) -> Self {
        Self { earlier, ..self }
    }

    /// Where they will run.
    pub fn home(&self) -> &NotebookHome {
        &self.home
    }

    /// The notebook that will hold the outputs, as it is.
    pub fn notebook(&self) -> &Notebook {
        self.file.notebook()
    }

    /// How many cells the notebook has.
    pub fn total(&self) -> usize {
        self.file.notebook().len()
    }

    /// The call that runs the cells, in `session` of the notebook's folder; `usual` is the kernel for notebooks that name none.
    pub fn call(&self, session: SessionId, usual: &KernelChoice) -> Call {
        let mut call = Call::new(session, &self.home.cwd, self.requests.clone());
        call.kernel = self.home.kernel_or(usual);
        call.turns = Turns::Asked;
        call.collect = CollectMode::Nothing;
        call
    }

    /// Runs the cells by `call`, which [`RunPlan::call`] made.
    pub fn start(
        self,
        client: &SessionClient,
        call: Call,
    ) -> BoxFuture<'_, Result<NotebookRun, SessionError>> {
        Box::pin(async move {
            match client.call(call).await {
                Ok(running) => Ok(NotebookRun::new(running, self)),
                Err(error) => {
                    self.entry.withdraw();
                    Err(error)
                }
            }
        })
    }
}

/// Whether a cell runs when all do.
pub(crate) fn is_run(cell: &NotebookCell<'_>) -> bool {
    cell.kind() == CellKind::Code && !cell.source().trim().is_empty() && !is_tagged(cell, "skip-execution")
}

fn is_tagged(cell: &NotebookCell<'_>, tag: &str) -> bool {
    cell.tags().iter().any(|found| found == tag)
}

impl NotebookHome {
    /// The notebook's kernel, or the usual one. If the usual one is on a server, named kernels run there too.
    pub fn kernel_or(&self, usual: &KernelChoice) -> KernelChoice {
        match (&self.kernel, usual) {
            (Some(KernelChoice::Jupyter { name }), KernelChoice::Gateway { .. }) => {
                KernelChoice::Gateway { name: Some(name.clone()) }
            }
            (Some(kernel), _) => kernel.clone(),
            (None, usual) => usual.clone(),
        }
    }
}
