//! What a prompt takes from notebooks: a whole notebook as marked text, and pictures by name.

use std::path::Path;

use cellwright_editing::view::{NotebookView, OutputView, ViewRequest};
use cellwright_notebook::{EncodedImage, Notebook, Selector};

use crate::cell_record::ShownPicture;
use crate::kernel::NotebookPlace;

/// The text of a notebook with its outputs. Long outputs are shortened to fit.
const BUDGET: usize = 64 * 1024;

/// Larger notebooks are not read.
const MOST: u64 = 64 << 20;

/// A notebook, or a part of it, for an agent.
#[derive(Debug)]
pub(super) struct NotebookText {
    pub(super) text: String,
    pub(super) pictures: Vec<ShownPicture>,
}

/// Reads a notebook as marked text with outputs. `name` is what the user calls it. `None` if it is
/// not a notebook, is too large, or has no such part.
pub(super) fn marked_text(path: &Path, selector: &Selector, name: &str) -> Option<NotebookText> {
    let notebook = read(path)?;
    let outputs = OutputView::Page { budget: BUDGET };
    let view = NotebookView::of(&notebook, &ViewRequest { selector, outputs, named: name }).ok()?;
    let pictures = view.images.iter().filter_map(|image| {
        let image = image.load(&notebook).ok()?;
        Some(ShownPicture::new(image.format.mime(), &image.bytes))
    });
    Some(NotebookText { pictures: pictures.collect(), text: view.text })
}

fn read(path: &Path) -> Option<Notebook> {
    let metadata = path.metadata().ok()?;
    let bytes = (metadata.is_file() && metadata.len() <= MOST).then(|| std::fs::read(path).ok())??;
    Notebook::parse(bytes).ok()
}

/// A picture that a prompt names, with its data if the saved notebook has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PromptAttachment {
    pub(crate) name: String,
    pub(crate) picture: Option<ShownPicture>,
}

/// The pictures that a prompt names as `attachment:NAME`. Clients send none with a cell, so they come
/// from the saved notebook. Of several with one name, the nearest at or above the cell counts.
pub(crate) fn attachments(
    prompt: &str,
    place: Option<&NotebookPlace>,
    cell: Option<&str>,
) -> Vec<PromptAttachment> {
    let names = named(prompt);
    if names.is_empty() {
        return Vec::new();
    }
    let Some(notebook) = place.and_then(|place| read(&place.notebook)) else {
        return names.into_iter().map(|name| PromptAttachment { name, picture: None }).collect();
    };
    let own = notebook.cells().position(|known| cell.is_some() && known.id().as_deref() == cell);
    let attached = |index: usize| notebook.cell(index).attachments();
    let last = own.map_or(notebook.len(), |own| own + 1);
    let nearest = (0..last).rev().chain(last..notebook.len());
    let nearest: Vec<_> = nearest.flat_map(attached).collect();
    let find = |name: String| {
        let images = nearest.iter().find(|(known, _)| *known == *name).map(|(_, images)| images);
        let picture = images.and_then(|images| images.iter().find_map(picture));
        PromptAttachment { name, picture }
    };
    names.into_iter().map(find).collect()
}

fn picture(image: &EncodedImage<'_>) -> Option<ShownPicture> {
    let decoded = cellwright_output::Image::new(image.bytes().ok()?)?;
    Some(ShownPicture::new(decoded.format.mime(), &decoded.bytes))
}

/// The names after `attachment:`, as in `![](attachment:plot.png)`.
fn named(prompt: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (_, rest) in prompt.match_indices("attachment:").map(|(at, mark)| (at, &prompt[at + mark.len()..])) {
        let end = rest.find(|c: char| c.is_whitespace() || matches!(c, ')' | '"' | '\'' | '>' | ']'));
        let name = decoded(rest[..end.unwrap_or(rest.len())].trim_end_matches(['.', ',', ';', '?', '!']));
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// A name without `%20` and the like.
fn decoded(name: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let [first, later @ ..] = rest {
        let hex = later.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.filter(|_| *first == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &later[2..] } else { later };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIXEL: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

    #[test]
    fn attachments_are_named_as_in_markdown() {
        let prompt = "What is ![a](attachment:my%20plot.png), and attachment:b.png? (attachment:b.png)";
        assert_eq!(named(prompt), ["my plot.png", "b.png"]);
    }

    #[test]
    fn a_picture_comes_from_the_nearest_cell_above_the_prompt() {
        let home = tempfile::tempdir().expect("a folder");
        let other = PIXEL.replacen("iVBOR", "jVBOR", 1);
        let cell = |id: &str, data: &str| {
            serde_json::json!({"cell_type": "markdown", "id": id, "metadata": {}, "source": "",
                "attachments": {"a.png": {"image/png": data}}})
        };
        let code = serde_json::json!({"cell_type": "code", "id": "prompt", "metadata": {}, "source": "",
            "outputs": [], "execution_count": null});
        let cells = [cell("far", &other), cell("near", PIXEL), code, cell("below", &other)];
        let text = serde_json::json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
        let notebook = home.path().join("nb.ipynb");
        std::fs::write(&notebook, text.to_string()).expect("written");
        let place = NotebookPlace { notebook, conversations: home.path().to_owned() };
        let found = attachments("see attachment:a.png and attachment:b.png", Some(&place), Some("prompt"));
        let picture = ShownPicture { mime: "image/png".to_owned(), data: PIXEL.to_owned() };
        let expected = [("a.png", Some(picture)), ("b.png", None)];
        let expected = expected.map(|(name, picture)| PromptAttachment { name: name.to_owned(), picture });
        assert_eq!(found, expected);
        assert_eq!(attachments("see attachment:b.png", None, None), expected[1..]);
    }
}
