//! A notebook as Markdown, for sites and repositories.

use std::fmt::Write as _;

use cellwright_editing::view::OutputContent;
use cellwright_notebook::{CellKind, EncodedImage, Notebook, NotebookCell, NotebookOutput};

use super::PartTag;
use super::pictures::{extension, inline};

/// Where the pictures of a Markdown text are.
pub(crate) enum PictureStore {
    /// In files, in a folder of this name beside the text.
    Folder(String),
    /// In the text.
    Inline,
}

/// A picture to be written beside a Markdown text.
pub(crate) struct ExportedPicture {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

/// A notebook as Markdown.
pub(crate) struct MarkdownText {
    pub(crate) text: String,
    pub(crate) pictures: Vec<ExportedPicture>,
    store: PictureStore,
}

impl MarkdownText {
    /// The notebook's prose as it is, code in fences, and outputs as far as Markdown can show them.
    pub(crate) fn of(notebook: &Notebook, shows_code: bool, store: PictureStore) -> Self {
        let mut out = Self { text: String::new(), pictures: Vec::new(), store };
        let language = notebook.language().unwrap_or_else(|| "python".to_owned());
        for cell in notebook.cells().filter(|cell| PartTag::of(cell, "cell") != PartTag::Removed) {
            match cell.kind() {
                CellKind::Markdown => {
                    let text = out.with_attachments(&cell);
                    out.block(&text);
                }
                CellKind::Raw => out.block(&cell.source()),
                CellKind::Code => {
                    if shows_code && PartTag::of(&cell, "input") != PartTag::Removed {
                        out.fenced(&cell.source(), &language);
                    }
                    if PartTag::of(&cell, "output") != PartTag::Removed {
                        for (number, output) in cell.outputs().iter().enumerate() {
                            out.output(notebook, cell.index(), number, output);
                        }
                    }
                }
            }
        }
        out
    }

    fn output(&mut self, notebook: &Notebook, cell: usize, number: usize, output: &NotebookOutput<'_>) {
        let content = OutputContent::of(notebook, output);
        match OutputContent::table(output) {
            Some(table) => self.block(&table),
            None if content.is_markdown => self.block(&content.text),
            None => self.fenced(&content.text, "text"),
        }
        let shown = output
            .images()
            .into_iter()
            .find_map(|image| self.picture(&image, &format!("output_{cell}_{number}")));
        if let Some(address) = shown {
            self.block(&format!("![output {number} of cell {cell}]({address})"));
        }
    }

    /// The text of a cell, its attachments in files or in the text.
    fn with_attachments(&mut self, cell: &NotebookCell<'_>) -> String {
        let mut text = cell.source().into_owned();
        for (number, (name, images)) in cell.attachments().into_iter().enumerate() {
            let image = images.first();
            if let Some(address) =
                image.and_then(|it| self.picture(it, &format!("attachment_{}_{number}", cell.index())))
            {
                text = text.replace(&format!("attachment:{name}"), &address);
            }
        }
        text
    }

    /// The address of an image, stored under this name.
    fn picture(&mut self, image: &EncodedImage<'_>, name: &str) -> Option<String> {
        match &self.store {
            PictureStore::Inline => inline(image),
            PictureStore::Folder(folder) => {
                let name = format!("{name}.{}", extension(&image.mime)?);
                let address = format!("{folder}/{name}").replace(' ', "%20");
                self.pictures.push(ExportedPicture { name, bytes: image.bytes().ok()? });
                Some(address)
            }
        }
    }

    fn fenced(&mut self, text: &str, language: &str) {
        let text = text.trim_end_matches('\n');
        if !text.trim().is_empty() {
            let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
            let fence = "`".repeat(longest.max(2) + 1);
            self.block(&format!("{fence}{language}\n{text}\n{fence}"));
        }
    }

    fn block(&mut self, text: &str) {
        let text = text.trim_matches('\n');
        if !text.trim().is_empty() {
            let gap = if self.text.is_empty() { "" } else { "\n" };
            writeln!(self.text, "{gap}{text}").expect("a String takes everything");
        }
    }
}
