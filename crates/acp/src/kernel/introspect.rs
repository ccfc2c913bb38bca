//! Completion, inspection, and whether a cell is complete.

use std::path::Path;

use cellwright_cell::MimeData;
use cellwright_jupyter::content::{
    CompleteReply, CompleteRequest, InspectReply, InspectRequest, IsCompleteReply,
};
use serde_json::{Value, json};

use super::cell_run::PromptKernel;
use super::magics::{command_line, mode, model, values};
use crate::conversation::SessionFacts;
use crate::kernel_state::lock;
use crate::magic::{self, CompletionContext};
use cellwright_output::{visible, visible_line};

impl PromptKernel {
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

/// Whether Enter runs the code. It does not after a backslash, or after a `%%` line without a
/// prompt.
pub(crate) fn is_complete(code: &str) -> IsCompleteReply {
    let waits = |cell: &magic::ParsedCell| cell.prompt.is_empty() && code.trim_start().starts_with("%%");
    let status = match magic::parse(code) {
        _ if code.ends_with('\\') => "incomplete",
        Ok(cell) if waits(&cell) => "incomplete",
        Ok(_) => "complete",
        Err(_) => "invalid",
    };
    IsCompleteReply { status: status.to_owned(), ..IsCompleteReply::default() }
}
