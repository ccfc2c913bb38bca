//! `read`: notebooks as marked text, text files, images, stored outputs.

mod artifact;

use cellwright_editing::view::{NotebookView, OutputView};
use cellwright_editing::{NotebookRead, ReadRequest, ShownLines, page};
use cellwright_notebook::select::NotebookPart;
use cellwright_notebook::{Fingerprint, Notebook, Target};
use cellwright_output::Image;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use self::artifact::{ARTIFACT, artifact};
use crate::displays::ReplyDisplays;
use crate::reply::{ToolFailure, ToolReply};
use crate::toolbox::{CallContext, ToolSettings};
use crate::workspace::ResolvedPath;

/// Images of a notebook shown in one reply.
const IMAGES: usize = 4;

/// Addresses listed of those that are not shown.
const LISTED: usize = 20;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ReadArguments {
    /// File or `artifact://ID`, may end in a selector: lines `a.py:10-40` `:50+20` `:-30`, cells `a.ipynb#3` `#2,5-7` `#5-` `#id:abc` `#"Heading"`, an output `a.ipynb#7.0`, an attachment `a.ipynb#3:x.png`, `a.ipynb:raw` for JSON
    path: String,
    /// Notebooks: also show saved outputs
    outputs: Option<OutputsArgument>,
    /// Show only lines matching this regular expression, numbered
    search: Option<String>,
}

impl ReadArguments {
    /// A part of a notebook with its outputs.
    pub(crate) fn with_outputs(path: String) -> Self {
        Self { path, outputs: Some(OutputsArgument::Text), search: None }
    }
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum OutputsArgument {
    None,
    Summary,
    Text,
}

/// Blocks on files.
pub(crate) fn read(
    settings: &ToolSettings,
    context: &CallContext,
    arguments: &ReadArguments,
) -> Result<ToolReply, ToolFailure> {
    if arguments.path.starts_with(ARTIFACT) {
        let budget = settings.budget(context);
        return artifact(settings, &arguments.path, arguments.search.as_deref(), budget);
    }
    let workspace = context.client.workspace();
    let exists = |path: &str| workspace.place(path).is_ok_and(|place| place.exists);
    let Target { path, selector } = Target::parse(&arguments.path, exists)?;
    let place = workspace.file(&path)?;
    let search = arguments.search.as_deref().map(page::pattern).transpose()?;
    let budget = settings.budget(context);
    let outputs = match arguments.outputs {
        None | Some(OutputsArgument::None) => OutputView::None,
        Some(OutputsArgument::Summary) => OutputView::Summary,
        Some(OutputsArgument::Text) => OutputView::Page { budget },
    };
    let request = ReadRequest { selector: &selector, outputs, search: search.as_ref(), budget };
    if place.is_notebook() {
        return notebook(settings, context, &place, &request);
    }
    if selector.part != NotebookPart::Whole || arguments.outputs.is_some() {
        return Err(ToolFailure::new(format!(
            "{path} is not a notebook: it has lines, but no cells and no outputs"
        )));
    }
    text(settings, context, &place, &request)
}

fn notebook(
    settings: &ToolSettings,
    context: &CallContext,
    place: &ResolvedPath,
    request: &ReadRequest<'_>,
) -> Result<ToolReply, ToolFailure> {
    let read = settings.editor(context).read(&place.file_name(), request)?;
    let NotebookRead { notebook, fingerprint, view, shown, remembered: _ } = read; // in this process
    let mut reply = reply(&shown);
    for note in &view.notes {
        reply.note(format!("[{note}]"));
    }
    let Some(notebook) = notebook else {
        return Ok(reply.with(json!({
            "path": place.named, "lines": view.text.lines().count(), "fingerprint": fingerprint.to_string(),
        })));
    };
    if request.search.is_none() {
        show_images(settings, &place.named, &notebook, &view, &mut reply);
    }
    Ok(reply.with(json!({
        "path": place.named, "cells": notebook.len(), "language": notebook.language(),
        "fingerprint": fingerprint.to_string(),
    })))
}

fn reply(shown: &ShownLines) -> ToolReply {
    let mut reply = ToolReply::text(shown.text());
    shown.notes().iter().for_each(|note| reply.note(note.clone()));
    reply
}

fn show_images(
    settings: &ToolSettings,
    named: &str,
    notebook: &Notebook,
    view: &NotebookView,
    reply: &mut ToolReply,
) {
    let mut displays = ReplyDisplays::default();
    for labelled in view.images.iter().take(IMAGES) {
        match labelled.load(notebook) {
            Ok(image) => {
                reply.note(format!("[image {named}{}]", labelled.label));
                displays.image(settings, &image, reply);
            }
            Err(error) => reply.note(format!("[{error}]")),
        }
    }
    let rest = view.images.get(IMAGES..).unwrap_or_default();
    if rest.is_empty() {
        return;
    }
    let listed = rest.iter().take(LISTED).map(|image| format!("{named}{}", image.label));
    let listed = listed.collect::<Vec<_>>().join(", ");
    let more = match rest.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more, whose addresses have the same form"),
    };
    let noun = if rest.len() == 1 { "image" } else { "images" };
    reply.note(format!("[{} more {noun} not shown; read each by its address: {listed}{more}]", rest.len()));
}

fn text(
    settings: &ToolSettings,
    context: &CallContext,
    place: &ResolvedPath,
    request: &ReadRequest<'_>,
) -> Result<ToolReply, ToolFailure> {
    let (editor, file) = (settings.editor(context), place.file_name());
    let bytes = editor.read_bytes(&file)?;
    let (size, fingerprint) = (bytes.len(), Fingerprint::of(&bytes));
    let binary = || ToolFailure::new(format!("{} is a binary file of {size} bytes, not text", place.named));
    let has_zeros = bytes.contains(&0);
    let (text, is_lossy) = match String::from_utf8(bytes.clone()) {
        Ok(_) if has_zeros => return Err(binary()),
        Ok(text) => (text, false),
        Err(_) if has_zeros || imagelike(&bytes) => {
            let image = Image::new(bytes).ok_or_else(binary)?;
            return Ok(ToolReply { content: vec![settings.bounded(&image)], ..ToolReply::default() });
        }
        Err(_) => (String::from_utf8_lossy(&bytes).into_owned(), true),
    };
    let shown = ShownLines::of(&place.named, &text, request)
        .map_err(|error| ToolFailure::from(error).about(&place.named))?;
    let mut reply = reply(&shown);
    if is_lossy {
        reply.note("[the file is not UTF-8: what could not be read is shown as \u{fffd}]");
    }
    let lines = text.lines().count();
    let remembered = editor.saw_text(&file, &bytes, lines, shown.seen_lines());
    if let Err(error) = remembered {
        reply.note(format!(
            "[it could not be remembered what you read ({error}): `write` will ask for `force`]"
        ));
    }
    Ok(reply.with(json!({
        "path": place.named, "bytes": size, "lines": lines, "fingerprint": fingerprint.to_string(),
    })))
}

/// Whether the bytes begin like an image that may hold no zero byte.
fn imagelike(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x89PNG") || bytes.starts_with(b"\xff\xd8\xff") || bytes.starts_with(b"GIF8")
}
