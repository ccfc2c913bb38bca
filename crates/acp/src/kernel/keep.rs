//! `%keep`: the code that an agent ran becomes code cells.

use cellwright_editing::{LiveHome, LiveNotebooks as _, PageStep};
use serde_json::{Value, json};
use uuid::Uuid;

use super::cell_run::CellRun;
use crate::cell_record::{CellOutputRecord, RecordedOutput};
use crate::failure::{CellFailure, FailureKind};
use crate::kernel_state::lock;
use crate::magic::CellMode;
use crate::plain::{KeptCode, kept_code, new_code_cell};

impl CellRun<'_> {
    /// Carries out `%keep`. Returns what the cell shows, and what the client does.
    pub(super) async fn keep(&self, count: Option<u32>) -> Result<(String, Option<Value>), CellFailure> {
        let Some((record, kept)) = self.kept(count) else {
            let message = match count {
                Some(count) => format!("no agent ran code of the notebook in the cell #{count}"),
                None => "no agent ran code of the notebook in the last cells".to_owned(),
            };
            return Err(CellFailure::new(FailureKind::NothingToKeep, message));
        };
        let mode = *lock(&self.kernel.state.cells);
        let sources: Vec<String> = kept.iter().map(|code| source(code, mode)).collect();
        if let Some(cell) = record.cell.clone()
            && self.insert(cell, &sources, kept).await
        {
            let cells = if sources.len() == 1 {
                "a code cell".to_owned()
            } else {
                format!("{} code cells", sources.len())
            };
            return Ok((format!("the code is in {cells} below its prompt"), None));
        }
        let text = sources.join("\n\n");
        if self.cell.allow_stdin {
            let payload = json!({"source": "set_next_input", "text": text, "replace": false});
            return Ok(("the code is in the next cell".to_owned(), Some(payload)));
        }
        // Clients without a user take no proposals.
        Ok((text, None))
    }

    /// The code of a cell, or of the last cell that has any.
    fn kept(&self, count: Option<u32>) -> Option<(CellOutputRecord, Vec<KeptCode>)> {
        let history = lock(&self.kernel.state.history);
        let counts = history.cells().iter().rev().map(|(known, _)| *known);
        let mut counts = counts.filter(|known| count.is_none_or(|count| count == *known));
        counts.find_map(|known| {
            let record = lock(history.shown(known)?).clone();
            let kept = kept_code(&outputs(&record));
            (!kept.is_empty()).then_some((record, kept))
        })
    }

    /// Inserts code cells below a cell of the page that shows this notebook. False if no page takes them.
    async fn insert(&self, cell: String, sources: &[String], kept: Vec<KeptCode>) -> bool {
        let Some(place) = self.kernel.setup.notebook.clone() else { return false };
        let page = self.kernel.state.page.clone();
        let mut steps = Vec::new();
        let mut after = cell;
        for (source, code) in sources.iter().zip(kept) {
            let id = Uuid::new_v4().simple().to_string()[..8].to_owned();
            let cell = new_code_cell(&id, source, &code.outputs);
            steps.push(PageStep::Insert { after: Some(std::mem::replace(&mut after, id)), cell });
        }
        let inserted = tokio::task::spawn_blocking(move || {
            let LiveHome::Page(page) = page.find(&place.notebook) else { return false };
            page.read().and_then(|content| page.change(content.read_at, &steps)).is_ok()
        });
        inserted.await.unwrap_or_default()
    }
}

/// The code as a cell of this notebook.
fn source(code: &KeptCode, mode: CellMode) -> String {
    match (mode, code.language.as_str()) {
        (CellMode::Code, "python" | "") => code.source.clone(),
        (CellMode::Prompt, "python" | "") => format!("%%python\n{}", code.source),
        (CellMode::Code | CellMode::Prompt, other) => format!("%%{other}\n{}", code.source),
    }
}

/// What a cell has shown, in the format of notebooks.
fn outputs(record: &CellOutputRecord) -> Vec<Value> {
    let outputs = record.outputs().iter().map(|output| match output {
        RecordedOutput::Stream { name, text } => {
            let name = match name {
                cellwright_cell::Stream::Stdout => "stdout",
                cellwright_cell::Stream::Stderr => "stderr",
            };
            json!({"output_type": "stream", "name": name, "text": text})
        }
        RecordedOutput::Display(data) => json!({"output_type": "display_data", "metadata": {}, "data": data}),
    });
    outputs.collect()
}
