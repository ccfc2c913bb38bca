//! What goes with a prompt besides its words: what the person did since the last turn, and the variables that it names.

use std::collections::HashSet;
use std::time::Duration;

use cellwright_kernel::KernelVariable;
use cellwright_notebook::CellKind;
use cellwright_notebook::file::{ReadNeed, read_fingerprinted};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

use super::cell_run::CellRun;
use crate::cell_record::ShownPicture;
use crate::companion::{CompanionKernel, is_python};
use crate::conversation::{ConversationHandle, NamedVariable};
use crate::kernel_state::lock;
use crate::magic::{self, CellBody, CellMode, PromptReference, references};
use crate::notebook_context::{
    CodeCellRun, KnownNotebook, NotebookMoment, OutlineCell, PromptContext, described,
};

/// The bytes of what a cell showed that are looked at.
const MOST_SHOWN: usize = 4 << 10;

/// The most variables that are compared.
const MOST_VARIABLES: usize = 300;

/// A kernel that does not answer in this time is busy. A prompt does not wait for it.
const PATIENCE: Duration = Duration::from_secs(2);

/// What runs in the kernel to describe a variable.
const DESCRIBE: &str = include_str!("../../python/describe.py");

/// A value as [`DESCRIBE`] prints it.
#[derive(Debug, Default, Deserialize)]
struct DescribedValue {
    #[serde(rename = "type")]
    kind: String,
    text: String,
    png: Option<String>,
}

impl CellRun<'_> {
    /// Carries out `%context`.
    pub(super) async fn context(&self, setting: Option<bool>) -> String {
        if let Some(setting) = setting {
            *lock(&self.kernel.context) = setting;
        }
        if !*lock(&self.kernel.context) {
            return "prompts take nothing along; `%context on` changes that".to_owned();
        }
        let (name, handle) = self.kernel.sessions.current();
        match self.new_context(&name, &handle).await {
            Some(PromptContext { text, .. }) if setting.is_none() => {
                format!("the next prompt takes this along (`%context off` stops it):\n\n{text}")
            }
            Some(PromptContext { summary, .. }) => format!("the next prompt takes along: {summary}"),
            None => "prompts take along what you did since the last turn: nothing so far".to_owned(),
        }
    }

    /// What the next prompt to a session takes along.
    pub(super) async fn new_context(&self, name: &str, handle: &ConversationHandle) -> Option<PromptContext> {
        if !*lock(&self.kernel.context) {
            return None;
        }
        let session = handle.facts().session;
        let known = lock(&self.kernel.known).get(name).cloned().unwrap_or_default();
        // After `%session new` or `%agent use` another agent listens, which knows nothing.
        let known = if known.session == session { known } else { KnownNotebook::default() };
        known.changes(&self.moment(known.count).await)
    }

    /// The word on what a prompt takes along, once.
    pub(super) fn context_hint(&self, context: &PromptContext) -> Option<String> {
        if context.is_outline_alone {
            return None;
        }
        let was_said = std::mem::replace(&mut *lock(&self.kernel.context_said), true);
        (!was_said).then(|| {
            format!(
                "prompts take along what you did since the last turn (now: {}); `%context` shows it, and `%context off` \
                 stops it",
                context.summary
            )
        })
    }

    /// Notes that an agent knows the notebook as it is now, after its turn.
    pub(super) async fn note_known(&self, name: &str, handle: &ConversationHandle) {
        if !*lock(&self.kernel.context) {
            return;
        }
        let now = self.moment(self.count).await;
        let known = KnownNotebook::at(handle.facts().session, self.count, &now);
        lock(&self.kernel.known).insert(name.to_owned(), known);
    }

    /// The notebook now, with the code cells after this one.
    async fn moment(&self, after: u32) -> NotebookMoment {
        let mode = *lock(&self.kernel.state.cells);
        let (variables, cells) = tokio::join!(self.variables(), self.document(mode));
        let history = lock(&self.kernel.state.history);
        let since = history.cells().iter().filter(|(count, _)| *count > after && *count != self.count);
        let code = since.filter(|(_, source)| is_code(source, mode));
        let runs = code.map(|(count, source)| {
            let shown = history.shown(*count).map(|record| lock(record).text(MOST_SHOWN));
            CodeCellRun { count: *count, source: source.clone(), shown: shown.unwrap_or_default() }
        });
        NotebookMoment {
            runs: runs.collect(),
            ran: history.cells().iter().map(|(_, source)| source.clone()).collect::<HashSet<_>>(),
            variables,
            cells,
            prompt: self.id.clone(),
        }
    }

    /// The variables of the kernel of code cells, if it runs and is not busy.
    async fn variables(&self) -> Option<Vec<KernelVariable>> {
        let companion = self.kernel.state.companion.as_ref()?;
        let found = timeout(PATIENCE, companion.variables(MOST_VARIABLES)).await.ok()?.ok()?.listed;
        let names = found.iter().map(|it| (it.name.clone(), described(it))).collect();
        *lock(&self.kernel.variables) = names;
        Some(found)
    }

    /// The cells of the notebook: of the page that shows it, or else of its file.
    async fn document(&self, mode: CellMode) -> Vec<OutlineCell> {
        let Some(place) = self.kernel.setup.notebook.clone() else { return Vec::new() };
        let page = self.kernel.state.page.clone();
        // Both block.
        let read = tokio::task::spawn_blocking(move || match page.sources(&place.notebook) {
            Some(notebook) => cells_of_page(&notebook, mode),
            None => read_fingerprinted(&place.notebook, ReadNeed::Sources)
                .map(|(notebook, _)| {
                    let cells = notebook.cells().filter_map(|cell| {
                        let (id, kind) = (cell.id()?.into_owned(), cell.kind());
                        Some(outline_cell(id, kind, cell.source().into_owned(), mode))
                    });
                    cells.collect()
                })
                .unwrap_or_default(),
        });
        timeout(PATIENCE, read).await.ok().and_then(Result::ok).unwrap_or_default()
    }

    /// The variables that a prompt names, each with what an agent should see of it.
    pub(super) async fn named_variables(&self, text: &str) -> Vec<NamedVariable> {
        let mut names: Vec<String> = Vec::new();
        for reference in references(text) {
            if let PromptReference::Variable { name, .. } = reference
                && !names.contains(&name)
            {
                names.push(name);
            }
        }
        let Some(companion) = self.kernel.state.companion.as_ref().filter(|_| !names.is_empty()) else {
            return Vec::new();
        };
        // `$HOME` in a prompt is no variable of the kernel, and stays text.
        let known = self.variables().await.unwrap_or_default();
        let mut found = Vec::new();
        for variable in known.iter().filter(|it| names.contains(&it.name)) {
            found.push(named_variable(companion, variable).await);
        }
        found
    }
}

/// A variable as an agent should see it: a table with its columns and first rows, a picture as a picture.
async fn named_variable(companion: &CompanionKernel, variable: &KernelVariable) -> NamedVariable {
    let name = variable.name.clone();
    let line = described(variable);
    let of_python =
        if is_python(&companion.place().key.kernel) { described_value(companion, &name).await } else { None };
    let Some(DescribedValue { kind, text, png }) = of_python else {
        return NamedVariable { name, text: line, picture: None };
    };
    let picture = png.map(|data| ShownPicture { mime: "image/png".to_owned(), data });
    NamedVariable { text: format!("{name}: {kind}\n{text}").trim_end().to_owned(), name, picture }
}

async fn described_value(companion: &CompanionKernel, name: &str) -> Option<DescribedValue> {
    let (program, name) = (serde_json::to_string(DESCRIBE).ok()?, serde_json::to_string(name).ok()?);
    let code = format!("exec({program}, {{'__name__': 'describe', 'value': globals()[{name}]}})");
    let printed = companion.printed_by(code).await?;
    printed.lines().rev().find_map(|line| serde_json::from_str(line).ok())
}

fn is_code(source: &str, mode: CellMode) -> bool {
    magic::parse(source, mode).is_ok_and(|cell| matches!(cell.body, CellBody::Code(_)))
}

fn outline_cell(id: String, kind: CellKind, source: String, mode: CellMode) -> OutlineCell {
    let kind = match kind {
        CellKind::Code if is_code(&source, mode) => "code",
        CellKind::Code => "prompt",
        CellKind::Markdown => "markdown",
        CellKind::Raw => "raw",
    };
    OutlineCell { id, kind, source }
}

fn cells_of_page(notebook: &Value, mode: CellMode) -> Vec<OutlineCell> {
    let cells = notebook["cells"].as_array().map(Vec::as_slice).unwrap_or_default();
    let cells = cells.iter().filter_map(|cell| {
        let source = match &cell["source"] {
            Value::String(source) => source.clone(),
            Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
            _ => return None,
        };
        let kind = match cell["cell_type"].as_str()? {
            "markdown" => CellKind::Markdown,
            "code" => CellKind::Code,
            _ => CellKind::Raw,
        };
        Some(outline_cell(cell["id"].as_str()?.to_owned(), kind, source, mode))
    });
    cells.collect()
}

impl super::cell_run::PromptKernel {
    /// The names and descriptions of variables as they were last seen, for completion.
    pub(crate) fn seen_variables(&self) -> Vec<(String, String)> {
        lock(&self.variables).clone()
    }
}
