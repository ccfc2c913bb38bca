//! `edit` and `write`: changing files by text.

use cellwright_editing::{ChangeOptions, EditReport, NewContent, TextReport};
use cellwright_notebook::replace::{Matches, TextReplacement};
use cellwright_notebook::{Fingerprint, OutputsAfterEdit};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::reply::{ToolFailure, ToolReply};
use crate::toolbox::{CallContext, ToolSettings};

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct EditArguments {
    /// File to change
    path: String,
    /// Text to replace, exactly as `read` shows it; must match once
    old: String,
    /// What comes in its place
    new: String,
    /// Replace every match
    #[serde(default)]
    all: bool,
    /// Notebooks: keep the outputs of edited cells
    #[serde(default)]
    keep_outputs: bool,
    /// Refuse unless the file has this fingerprint
    expect: Option<String>,
    /// Change it even if it changed since you read it
    #[serde(default)]
    force: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct WriteArguments {
    /// File to create or replace
    path: String,
    /// The whole new text. For .ipynb: cell-marked text (`# %% [code] cell:3` keeps cell 3 with its metadata, `# %% [markdown]` is a new cell) or notebook JSON
    content: String,
    /// Notebooks: keep the outputs of edited cells
    #[serde(default)]
    keep_outputs: bool,
    /// Refuse unless the file has this fingerprint
    expect: Option<String>,
    /// Overwrite it even if it changed since you read it, or you have not read all of it
    #[serde(default)]
    force: bool,
}

/// Blocks on files.
pub(crate) fn edit(
    settings: &ToolSettings,
    caller: &CallContext,
    arguments: EditArguments,
) -> Result<ToolReply, ToolFailure> {
    let EditArguments { path, old, new, all, keep_outputs, expect, force } = arguments;
    let place = caller.client.workspace().file(&path)?;
    let options = options(expect.as_deref(), force, keep_outputs)?;
    let matches = if all { Matches::All } else { Matches::One };
    let replacement = TextReplacement { old, new, matches };
    let (editor, file) = (settings.editor(caller), place.file_name());
    if place.is_notebook() {
        return Ok(reply(&editor.replace_text(&file, &[replacement], &options)?));
    }
    Ok(text_reply(&editor.edit_text(&file, &[replacement], &options)?))
}

/// Blocks on files.
pub(crate) fn write(
    settings: &ToolSettings,
    caller: &CallContext,
    arguments: WriteArguments,
) -> Result<ToolReply, ToolFailure> {
    let WriteArguments { path, content, keep_outputs, expect, force } = arguments;
    let place = caller.client.workspace().place(&path)?;
    let options = options(expect.as_deref(), force, keep_outputs)?;
    let (editor, file) = (settings.editor(caller), place.file_name());
    if place.is_notebook() {
        let content =
            NewContent::parse(&content).map_err(|error| ToolFailure::from(error).about(&place.named))?;
        return Ok(reply(&editor.write(&file, &content, &options)?));
    }
    Ok(text_reply(&editor.write_text(&file, &content, &options)?))
}

/// How a change is made, as a call says.
pub(crate) fn options(
    expect: Option<&str>,
    force: bool,
    keep_outputs: bool,
) -> Result<ChangeOptions, ToolFailure> {
    let expect = expect.map(str::parse::<Fingerprint>).transpose();
    let expect = expect.map_err(|error| {
        ToolFailure::new(format!(
            "`expect`: {error}; replies of read, edit, write and notebook have it in their structured content, as \
             `fingerprint`"
        ))
    })?;
    Ok(ChangeOptions {
        expect,
        force,
        outputs: if keep_outputs { OutputsAfterEdit::Keep } else { OutputsAfterEdit::Clear },
    })
}

/// What is said of a change of a notebook.
pub(crate) fn reply(report: &EditReport) -> ToolReply {
    let structured = serde_json::to_value(report).expect("texts and numbers are JSON");
    ToolReply::text(report.to_string()).with(structured)
}

/// What is said of a change of a text file.
fn text_reply(report: &TextReport) -> ToolReply {
    let structured = serde_json::to_value(report).expect("texts and numbers are JSON");
    ToolReply::text(report.to_string()).with(structured)
}
