//! `read`: notebooks as marked text, text files, images, stored outputs.

use cellwright_notebook::file::{self, Need};
use cellwright_notebook::select::LineRange;
use cellwright_notebook::{Fingerprint, Notebook, OutputView, Selector};
use cellwright_output::{Artifact, ArtifactId, Image, Limits};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::client::Client;
use crate::page;
use crate::reply::{Content, Failure, Reply};
use crate::seen::{Memory, Sight};
use crate::text_file;
use crate::toolbox::{Reader, Settings};
use crate::workspace::{Place, Workspace};

/// What an artifact's address begins with.
const ARTIFACT: &str = "artifact://";

/// Images of a notebook's outputs shown in one reply.
const IMAGES: usize = 4;

/// Largest stored image that is looked at.
const LARGEST_IMAGE: u64 = 64 * 1024 * 1024;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ReadArguments {
    /// File or `artifact://ID`, may end in a selector: lines `a.py:10-40` `:50+20` `:-30`, cells `a.ipynb#3` `#3-7` `#id:abc`, `a.ipynb:raw` for JSON
    path: String,
    /// Notebooks: also show saved outputs
    outputs: Option<Outputs>,
    /// Show only lines matching this regular expression, numbered
    search: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Outputs {
    None,
    Summary,
    Text,
}

/// Blocks on files.
pub(crate) fn read(
    settings: &Settings,
    client: &Client,
    arguments: &ReadArguments,
    reader: Reader,
) -> Result<Reply, Failure> {
    if arguments.path.starts_with(ARTIFACT) {
        return artifact(settings, arguments, reader);
    }
    let workspace = client.workspace();
    // A file whose name happens to look like a selector is that file.
    let (named, selector) = match workspace.place(&arguments.path) {
        Ok(place) if place.exists => (arguments.path.as_str(), Selector::default()),
        _ => Selector::split(&arguments.path),
    };
    let place =
        workspace.file(named).map_err(|error| wrong_range(&workspace, named).unwrap_or(error.into()))?;
    if place.is_notebook() {
        return notebook(settings, client, &place, &selector, arguments, reader)
            .map_err(|failure| failure.about(named));
    }
    if selector.cells.is_some() || arguments.outputs.is_some() {
        return Err(Failure::new(format!(
            "{named} is not a notebook: it has lines, but no cells and no outputs"
        )));
    }
    text(settings, client, &place, &selector, arguments, reader)
}

/// Of a file that is not there, whether it is one that is with lines that can not be, as in `a.txt:5-2`.
fn wrong_range(workspace: &Workspace, named: &str) -> Option<Failure> {
    let (file, lines) = named.rsplit_once(':')?;
    let is_meant = !lines.is_empty() && lines.bytes().all(|byte| b"0123456789-+,".contains(&byte));
    (is_meant && workspace.file(file).is_ok()).then(|| {
        Failure::new(format!(
            "`{lines}` is no range of lines of {file}; they count from 1: `:10-40`, `:10-`, `:50+20`, `:-30`"
        ))
    })
}

fn notebook(
    settings: &Settings,
    client: &Client,
    place: &Place,
    selector: &Selector,
    arguments: &ReadArguments,
    reader: Reader,
) -> Result<Reply, Failure> {
    let outputs = match arguments.outputs {
        None | Some(Outputs::None) => OutputView::None,
        Some(Outputs::Summary) => OutputView::Summary,
        Some(Outputs::Text) => OutputView::Text { budget: reader.budget() },
    };
    let need = if outputs == OutputView::None && !selector.raw { Need::Sources } else { Need::All };
    let read = file::read_for(&place.path, need);
    let (notebook, snapshot) = read.map_err(|error| client.in_callers_words(place, error))?;
    let text = if selector.raw {
        notebook.text().to_owned()
    } else {
        notebook.view(selector.cells.as_ref(), outputs)?
    };
    // Lines are counted in what is shown, so the way on names the same cells.
    let named = match &selector.lines[..] {
        [] => arguments.path.as_str(),
        _ => arguments.path.rsplit_once(':').map_or(arguments.path.as_str(), |(before, _)| before),
    };
    let mut reply = match &arguments.search {
        Some(search) => page::search(named, &text, &selector.lines, &page::pattern(search)?)?,
        None => page::lines(named, &text, &selector.lines, reader.budget())?,
    };
    if let OutputView::Text { .. } = outputs
        && arguments.search.is_none()
    {
        show_images(settings, &notebook, selector, &mut reply)?;
    }
    let language = notebook.language();
    let structured = json!({
        "path": place.named, "cells": notebook.len(), "language": language,
        "fingerprint": snapshot.fingerprint().to_string(),
    });
    // Without a selector it is all of it; what does not fit on a page says how to go on.
    let is_whole = selector.cells.is_none() && selector.lines.is_empty() && arguments.search.is_none();
    let sight = if is_whole { Sight::All } else { Sight::Some };
    client.seen().remember_notebook(&place.path, snapshot, sight);
    Ok(reply.with(structured))
}

fn show_images(
    settings: &Settings,
    notebook: &Notebook,
    selector: &Selector,
    reply: &mut Reply,
) -> Result<(), Failure> {
    let cells = selector.cells.as_ref().map_or(Ok(0..notebook.len()), |cells| cells.resolve(notebook))?;
    let outputs = cells.flat_map(|index| notebook.cell(index).outputs());
    let images = outputs.flat_map(|output| {
        output.images().into_iter().take(1).filter_map(|image| image.bytes().ok()).collect::<Vec<_>>()
    });
    let mut left = 0;
    for (count, bytes) in images.enumerate() {
        match Image::new(bytes) {
            Some(image) if count < IMAGES => reply.content.push(settings.bounded(&image)),
            _ => left += 1,
        }
    }
    if left > 0 {
        reply.note(format!("[{left} more images not shown; read fewer cells]"));
    }
    Ok(())
}

fn text(
    settings: &Settings,
    client: &Client,
    place: &Place,
    selector: &Selector,
    arguments: &ReadArguments,
    reader: Reader,
) -> Result<Reply, Failure> {
    let bytes = text_file::read(place)?;
    let fingerprint = Fingerprint::of(&bytes);
    let size = bytes.len();
    let (text, lossy) = match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => (text, false),
        Ok(text) => return Err(binary(place, text.len())),
        Err(error) => {
            let bytes = error.into_bytes();
            if bytes.contains(&0) || imagelike(&bytes) {
                return match Image::new(bytes) {
                    Some(image) => Ok(Reply { content: vec![settings.bounded(&image)], ..Reply::default() }),
                    None => Err(binary(place, size)),
                };
            }
            (String::from_utf8_lossy(&bytes).into_owned(), true)
        }
    };
    let mut reply = match &arguments.search {
        Some(search) => page::search(&place.named, &text, &selector.lines, &page::pattern(search)?)?,
        None => page::lines(&place.named, &text, &selector.lines, reader.budget())?,
    };
    if lossy {
        reply.note("[the file is not UTF-8: what could not be read is shown as \u{fffd}]");
    }
    client.seen().remember(&place.path, Memory::Text(fingerprint));
    Ok(reply.with(json!({
        "path": place.named, "bytes": size, "lines": text.lines().count(), "fingerprint": fingerprint.to_string(),
    })))
}

fn binary(place: &Place, size: usize) -> Failure {
    Failure::new(format!("{} is a binary file of {size} bytes, not text", place.named))
}

/// Whether the bytes begin like an image that may hold no zero byte.
fn imagelike(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x89PNG") || bytes.starts_with(b"\xff\xd8\xff") || bytes.starts_with(b"GIF8")
}

fn artifact(settings: &Settings, arguments: &ReadArguments, reader: Reader) -> Result<Reply, Failure> {
    // The scheme has a colon of its own, so the selector is looked for behind it.
    let (id, selector) = Selector::split(&arguments.path[ARTIFACT.len()..]);
    let artifact = settings.artifacts.open(&id.parse::<ArtifactId>()?)?;
    let structured = json!({ "artifact": artifact.id.to_string(), "kind": artifact.kind.to_string(), "bytes": artifact.bytes });
    if !artifact.kind.is_text() {
        let image = artifact.content(LARGEST_IMAGE)?.and_then(Image::new);
        let image = image.ok_or_else(|| {
            Failure::new(format!(
                "{} is no text and no image; it is at {}",
                artifact.id,
                artifact.path.display()
            ))
        })?;
        return Ok(Reply {
            content: vec![settings.bounded(&image)],
            structured: Some(structured),
            is_error: false,
        });
    }
    let ranges = match &selector.lines[..] {
        [] => vec![LineRange::FromTo(1, None)],
        ranges => ranges.to_vec(),
    };
    if let Some(search) = &arguments.search {
        let pattern = page::pattern(search)?;
        let (mut hits, mut next, mut long_lines) = (Vec::new(), None, 0);
        for range in ranges {
            let wanted = match range {
                LineRange::FromTo(from, to) => from as u64..=to.map_or(u64::MAX, |to| to as u64),
                LineRange::Last(count) => {
                    (line_count(&artifact)? + 1).saturating_sub(count as u64)..=u64::MAX
                }
            };
            let found = artifact.search(wanted, page::HITS - hits.len(), |line| pattern.is_match(line))?;
            hits.extend(found.hits.into_iter().map(|hit| (hit.line, hit.text)));
            long_lines += found.long_lines;
            next = found.next;
            if next.is_some() {
                break;
            }
        }
        let mut reply = page::found(&artifact.id.to_string(), hits.into_iter(), next);
        if long_lines > 0 {
            reply.note(format!(
                "[{long_lines} lines are so long that only their first mebibyte was searched]"
            ));
        }
        return Ok(reply.with(structured));
    }
    let mut reply = Reply::default();
    for range in ranges {
        match range {
            LineRange::FromTo(from, to) => {
                let page =
                    artifact.lines(from as u64..=to.map_or(u64::MAX, |to| to as u64), reader.budget())?;
                if page.lines == 0 {
                    return Err(Failure::new(format!("{} has no line {from}", artifact.id)));
                }
                reply.content.push(Content::Text(page.text));
                let asked_for_more = to.is_none_or(|to| page.next.is_some_and(|next| next <= to as u64));
                if let Some(next) = page.next.filter(|_| asked_for_more) {
                    reply.note(format!(
                        "[lines {}-{}; go on with {}:{next}-]",
                        page.first,
                        next - 1,
                        artifact.id
                    ));
                }
            }
            LineRange::Last(count) => {
                let limits = Limits { head: 0, tail: reader.budget(), line: reader.budget() };
                let captured = artifact.ends(limits)?;
                let tail = captured.text.lines().rev().take(count).collect::<Vec<_>>();
                reply
                    .content
                    .push(Content::Text(tail.into_iter().rev().collect::<Vec<_>>().join("\n") + "\n"));
            }
        }
    }
    Ok(reply.with(structured))
}

fn line_count(artifact: &Artifact) -> Result<u64, Failure> {
    let captured = artifact.ends(Limits::default())?;
    let shown = captured.text.lines().count() as u64;
    Ok(captured.truncation.map_or(shown, |truncation| truncation.total.lines))
}
