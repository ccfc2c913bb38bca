//! Completion, inspection, and whether a cell is complete. The kernel of code cells answers for code.

use std::path::Path;
use std::sync::Arc;

use cellwright_cell::{MimeBundle, MimeData};
use cellwright_jupyter::content::{
    CompleteReply, CompleteRequest, InspectReply, InspectRequest, IsCompleteReply,
};
use cellwright_kernel::{CodeCompleteness, Completions, Question, Reply};
use serde_json::{Value, json};

use super::cell_run::PromptKernel;
use super::magics::{command_line, mode, model, values};
use crate::companion::{CompanionKernel, CompanionPlace};
use crate::conversation::SessionFacts;
use crate::kernel_state::lock;
use crate::magic::{self, CellBody, CellMode, CompletionContext};
use cellwright_output::{visible, visible_line};

impl PromptKernel {
    /// The code of a cell, if the cursor is in it.
    fn code_at(&self, cell: &str, cursor: usize) -> Option<CodePlace<'_>> {
        let companion = self.state.companion.as_ref()?;
        let CellBody::Code(body) = magic::parse(cell, *lock(&self.state.cells)).ok()?.body else {
            return None;
        };
        let before = cell[..body.start].chars().count();
        let place = companion.place_of(&body.language).ok()?;
        (cursor >= before).then_some(CodePlace { companion, place, text: body.text, before })
    }

    pub(crate) async fn complete_cell(&self, asked: &CompleteRequest) -> CompleteReply {
        let Some(at) = self.code_at(&asked.code, asked.cursor_pos) else { return self.complete(asked) };
        let question = Question::Complete { code: at.text, cursor: asked.cursor_pos - at.before };
        match at.companion.ask(&at.place, question).await {
            Ok(Reply::Completions(Completions { matches, start, end })) => CompleteReply {
                matches,
                cursor_start: start + at.before,
                cursor_end: end + at.before,
                ..CompleteReply::default()
            },
            // It is busy, or does not start.
            _ => CompleteReply {
                cursor_start: asked.cursor_pos,
                cursor_end: asked.cursor_pos,
                ..CompleteReply::default()
            },
        }
    }

    pub(crate) async fn inspect_cell(&self, asked: &InspectRequest) -> InspectReply {
        let Some(at) = self.code_at(&asked.code, asked.cursor_pos) else { return self.inspect(asked) };
        let (cursor, detail) = (asked.cursor_pos - at.before, asked.detail_level);
        let question = Question::Inspect { code: at.text, cursor, detail };
        match at.companion.ask(&at.place, question).await {
            Ok(Reply::Inspection(Some(MimeBundle { data, metadata }))) => {
                InspectReply { found: true, data, metadata, ..InspectReply::default() }
            }
            _ => InspectReply::default(),
        }
    }

    pub(crate) async fn is_complete(&self, code: &str) -> IsCompleteReply {
        let Some(at) = self.code_at(code, usize::MAX) else {
            return is_complete(code, *lock(&self.state.cells));
        };
        let status =
            |status: &str| IsCompleteReply { status: status.to_owned(), ..IsCompleteReply::default() };
        match at.companion.ask(&at.place, Question::Completeness { code: at.text }).await {
            Ok(Reply::Completeness(CodeCompleteness::Complete)) => status("complete"),
            Ok(Reply::Completeness(CodeCompleteness::Incomplete { indent })) => {
                IsCompleteReply { indent, ..status("incomplete") }
            }
            Ok(Reply::Completeness(CodeCompleteness::Invalid)) => status("invalid"),
            _ => status("unknown"),
        }
    }

    pub(crate) fn complete(&self, asked: &CompleteRequest) -> CompleteReply {
        let folder = self.sessions.current().1.facts().choice.map(|choice| choice.launch.cwd);
        let workspace = folder.unwrap_or_else(|| self.state.workspace.clone());
        let files = move |folder: &str| entries(&workspace.join(folder));
        let found = magic::complete(
            &asked.code,
            asked.cursor_pos,
            &CompletionContext { files: Some(&files), ..self.known() },
        );
        // A client writes what an agent offers to its terminal.
        let offered =
            found.candidates.iter().filter(|candidate| visible_line(&candidate.text) == candidate.text);
        let types: Vec<Value> = offered
            .clone()
            .map(|candidate| {
                json!({
                    "text": candidate.text,
                    "type": candidate.kind,
                    "start": found.start,
                    "end": found.end,
                    "signature": visible(&candidate.about),
                })
            })
            .collect();
        CompleteReply {
            matches: offered.map(|candidate| candidate.text.clone()).collect(),
            cursor_start: found.start,
            cursor_end: found.end,
            metadata: serde_json::Map::from_iter([("_jupyter_types_experimental".to_owned(), types.into())]),
            ..CompleteReply::default()
        }
    }

    pub(crate) fn inspect(&self, asked: &InspectRequest) -> InspectReply {
        match magic::inspect(&asked.code, asked.cursor_pos, &self.known()) {
            Some(text) => InspectReply {
                found: true,
                data: MimeData::from_iter([("text/plain".to_owned(), (&*visible(&text)).into())]),
                ..InspectReply::default()
            },
            None => InspectReply::default(),
        }
    }

    /// All names that completion can offer now.
    fn known(&self) -> CompletionContext<'static> {
        let (_, all) = self.sessions.all();
        let facts: SessionFacts = self.sessions.current().1.facts();
        let agents = self.setup.agents.iter().map(|(name, launch)| (name.clone(), command_line(launch)));
        let sessions = all.iter().map(|(name, handle)| {
            (name.clone(), handle.facts().choice.map(|choice| choice.name).unwrap_or_default())
        });
        let current =
            facts.session.iter().map(|id| (id.to_string(), facts.title.clone().unwrap_or_default()));
        let current = current.filter(|(id, _)| !facts.stored.iter().any(|(known, _)| known == id));
        let stored = facts.stored.iter().cloned().chain(current);
        let unmarked = |(value, about): (String, String)| (value[2..].to_owned(), about);
        CompletionContext {
            agents: agents.collect(),
            sessions: sessions.collect(),
            stored_sessions: stored.collect(),
            modes: mode_names(&facts),
            models: model(&facts).map(values).into_iter().flatten().map(unmarked).collect(),
            options: facts
                .options
                .iter()
                .map(|option| (option.id.to_string(), option.name.clone()))
                .collect(),
            servers: self
                .sessions
                .servers()
                .iter()
                .map(|server| (server.name().to_owned(), String::new()))
                .collect(),
            commands: facts
                .commands
                .iter()
                .map(|known| (known.name.clone(), known.description.clone()))
                .collect(),
            cells: lock(&self.state.history).cells().to_vec(),
            variables: self.seen_variables(),
            files: None,
        }
    }
}

/// The modes that `%agent mode` accepts.
fn mode_names(facts: &SessionFacts) -> Vec<(String, String)> {
    if let Some(option) = mode(facts) {
        return values(option).into_iter().map(|(value, about)| (value[2..].to_owned(), about)).collect();
    }
    let modes = facts.modes.iter().flat_map(|modes| &modes.available_modes);
    modes.map(|mode| (mode.id.to_string(), mode.name.clone())).collect()
}

/// The names in a folder. Those of folders end in a slash.
fn entries(folder: &Path) -> Vec<String> {
    let Ok(read) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> = read
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some(if entry.path().is_dir() { name + "/" } else { name })
        })
        .collect();
    names.sort();
    names
}

/// The code of a cell, and the kernel that runs it.
struct CodePlace<'a> {
    companion: &'a CompanionKernel,
    place: Arc<CompanionPlace>,
    text: String,
    /// Characters of the cell before it.
    before: usize,
}

/// Whether Enter runs a prompt. It does not after a backslash, or after a `%%` line without a
/// prompt.
fn is_complete(code: &str, mode: CellMode) -> IsCompleteReply {
    let is_empty =
        |cell: &magic::ParsedCell| matches!(&cell.body, CellBody::Prompt { text, .. } if text.is_empty());
    let waits = |cell: &magic::ParsedCell| is_empty(cell) && code.trim_start().starts_with("%%");
    let status = match magic::parse(code, mode) {
        _ if code.ends_with('\\') => "incomplete",
        Ok(cell) if waits(&cell) => "incomplete",
        Ok(_) => "complete",
        Err(_) => "invalid",
    };
    IsCompleteReply { status: status.to_owned(), ..IsCompleteReply::default() }
}
