//! A prompt as the agent gets it, with the files, cells and pictures that it mentions.

mod notebook;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::{
    ContentBlock, EmbeddedResource, EmbeddedResourceResource, ImageContent, PromptCapabilities, ResourceLink,
    TextContent, TextResourceContents,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cellwright_notebook::Selector;

pub(crate) use self::notebook::{PromptAttachment, attachments};
use crate::cell_record::ShownPicture;
use crate::magic::{PromptReference, references};

/// Files up to this size are sent with the prompt. Of larger files only the name is sent.
const MOST: u64 = 512 * 1024;

/// The most pictures of notebooks and cells that are sent with one prompt.
const MOST_PICTURES: usize = 8;

/// The images that models accept, by file extension.
const IMAGES: [(&str, &str); 5] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UserPrompt {
    /// As typed.
    pub(crate) text: String,
    /// The cells that `#N` names. `None` if the cell does not exist.
    pub(crate) cells: Vec<(u32, Option<NamedCell>)>,
    pub(crate) attachments: Vec<PromptAttachment>,
    /// The variables that `$NAME` names.
    pub(crate) variables: Vec<NamedVariable>,
    /// What the person did in the notebook since the last turn.
    pub(crate) context: Option<String>,
}

/// A variable that a prompt names, as the agent should see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NamedVariable {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) picture: Option<ShownPicture>,
}

/// A cell that a prompt names, with what it has shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NamedCell {
    pub(crate) source: String,
    pub(crate) shown: String,
    pub(crate) pictures: Vec<ShownPicture>,
}

/// A prompt as an agent gets it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct PromptBlocks {
    pub(crate) blocks: Vec<ContentBlock>,
    /// What the user should know about the mentioned files and cells.
    pub(crate) remarks: Vec<String>,
}

impl UserPrompt {
    /// The blocks for an agent: the text as typed, then what `@path`, `#N` and attachments mention,
    /// in a form that this agent supports. Reads files.
    pub(crate) fn blocks(&self, workspace: &Path, can: &PromptCapabilities) -> PromptBlocks {
        let blocks = vec![ContentBlock::Text(TextContent::new(&self.text))];
        let mut sent = PromptBlocks { blocks, remarks: Vec::new() };
        let mut pictures = Vec::new();
        let mut seen = HashSet::new();
        for reference in references(&self.text) {
            let PromptReference::File { path: name, .. } = reference else { continue };
            if seen.insert(name.clone()) {
                pictures.extend(sent.add_file(&name, workspace, can));
            }
        }
        for (number, cell) in &self.cells {
            match cell {
                Some(cell) => {
                    let (uri, name) = (format!("notebook-cell:{number}"), format!("cell {number}"));
                    sent.blocks.push(text(uri, &name, cell.text(), can));
                    pictures.extend(cell.pictures.iter().cloned());
                }
                None => {
                    sent.remarks.push(format!("there is no cell #{number}: the agent only gets the text"));
                }
            }
        }
        for NamedVariable { name, text: described, picture } in &self.variables {
            let (uri, title) = (format!("notebook-variable:{name}"), format!("variable {name}"));
            sent.blocks.push(text(uri, &title, described.clone(), can));
            pictures.extend(picture.clone());
        }
        for PromptAttachment { name, picture } in &self.attachments {
            match picture {
                Some(picture) => pictures.push(picture.clone()),
                None => sent.remarks.push(format!(
                    "the saved notebook has no picture `{name}`: save it after you paste a picture into a \
                     markdown cell, or name a file with `@`"
                )),
            }
        }
        sent.add_pictures(pictures, can);
        if let Some(context) = &self.context {
            sent.blocks.push(text("notebook-context:".to_owned(), "notebook", context.clone(), can));
        }
        sent
    }
}

impl NamedCell {
    fn text(&self) -> String {
        if self.shown.is_empty() {
            return self.source.clone();
        }
        format!("{}\n# %% [output]\n{}", self.source.trim_end(), self.shown)
    }
}

impl PromptBlocks {
    /// Adds a file. Returns the pictures of a notebook.
    fn add_file(&mut self, name: &str, workspace: &Path, can: &PromptCapabilities) -> Vec<ShownPicture> {
        let path = workspace.join(name);
        if let Some((path, selector)) = named_notebook(&path, name, workspace)
            && let Some(notebook) = notebook::marked_text(&path, &selector, name)
        {
            self.blocks.push(text(uri(&path), name, notebook.text, can));
            return notebook.pictures;
        }
        if path.is_file() {
            if is_large(&path) {
                self.remarks.push(format!("`{name}` is larger than 512 kB: the agent only gets its name"));
            }
            self.blocks.push(file(&path, can));
        } else if name.contains(['.', '/']) && !path.exists() {
            // Other words, such as `@name`, are rarely files.
            self.remarks.push(format!("there is no file `{name}`: the agent only gets the text"));
        }
        Vec::new()
    }

    fn add_pictures(&mut self, pictures: Vec<ShownPicture>, can: &PromptCapabilities) {
        let count = pictures.len();
        let sent = if can.image { count.min(MOST_PICTURES) } else { 0 };
        let images = pictures.into_iter().take(sent);
        self.blocks.extend(images.map(|it| ContentBlock::Image(ImageContent::new(it.data, it.mime))));
        if count > 0 && !can.image {
            self.remarks.push(format!("the agent takes no pictures: {count} of them are not sent"));
        } else if count > sent {
            self.remarks.push(format!("only the first {sent} of {count} pictures are sent"));
        }
    }
}

/// A notebook by its name, or a part of one as in `nb.ipynb#3`.
fn named_notebook(path: &Path, name: &str, workspace: &Path) -> Option<(PathBuf, Selector)> {
    let is_notebook = |path: &Path| path.is_file() && path.extension().is_some_and(|it| it == "ipynb");
    if is_notebook(path) {
        return Some((path.to_owned(), Selector::default()));
    }
    let (file, selector) = Selector::split(name);
    let path = workspace.join(file);
    is_notebook(&path).then_some((path, selector))
}

fn is_large(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.len() > MOST)
}

fn uri(path: &Path) -> String {
    use std::fmt::Write as _;
    use std::os::unix::ffi::OsStrExt as _;
    let mut uri = "file://".to_owned();
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(byte.into()),
            byte if byte.is_ascii_alphanumeric() => uri.push(byte.into()),
            byte => write!(uri, "%{byte:02X}").expect("strings take everything"),
        }
    }
    uri
}

fn file(path: &Path, can: &PromptCapabilities) -> ContentBlock {
    let uri = uri(path);
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let link = || ContentBlock::ResourceLink(ResourceLink::new(name.clone(), uri.clone()));
    if is_large(path) {
        return link();
    }
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    if let Some((_, mime)) = IMAGES.iter().find(|(known, _)| can.image && *known == ending)
        && let Ok(bytes) = std::fs::read(path)
    {
        return ContentBlock::Image(ImageContent::new(BASE64.encode(bytes), *mime).uri(uri));
    }
    match std::fs::read_to_string(path) {
        Ok(content) if can.embedded_context => text(uri, &name, content, can),
        Ok(_) | Err(_) => link(),
    }
}

fn text(uri: String, name: &str, content: String, can: &PromptCapabilities) -> ContentBlock {
    if can.embedded_context {
        let contents = TextResourceContents::new(content, uri);
        let resource = EmbeddedResourceResource::TextResourceContents(contents);
        ContentBlock::Resource(EmbeddedResource::new(resource))
    } else {
        ContentBlock::Text(TextContent::new(format!("{name}:\n{content}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentioned_files_and_cells_are_sent_with_the_prompt() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a.txt"), "text").expect("written");
        std::fs::write(folder.path().join("b.png"), [1, 2]).expect("written");
        let text = "look at @a.txt, @b.png and @none (see #2) mail me@a.txt".to_owned();
        let cell = NamedCell { source: "x = 1".to_owned(), ..NamedCell::default() };
        let prompt = UserPrompt { text: text.clone(), cells: vec![(2, Some(cell))], ..UserPrompt::default() };
        let all = PromptCapabilities::new().image(true).embedded_context(true);
        let uri = |name: &str| format!("file://{}", folder.path().join(name).display());
        let resource = |text: &str, uri: String| {
            let contents = TextResourceContents::new(text, uri);
            ContentBlock::Resource(EmbeddedResource::new(EmbeddedResourceResource::TextResourceContents(
                contents,
            )))
        };
        assert_eq!(
            prompt.blocks(folder.path(), &all).blocks,
            [
                ContentBlock::Text(TextContent::new(&text)),
                resource("text", uri("a.txt")),
                ContentBlock::Image(ImageContent::new("AQI=", "image/png").uri(uri("b.png"))),
                resource("x = 1", "notebook-cell:2".to_owned()),
            ]
        );
        assert_eq!(
            prompt.blocks(folder.path(), &PromptCapabilities::new()).blocks,
            [
                ContentBlock::Text(TextContent::new(&text)),
                ContentBlock::ResourceLink(ResourceLink::new("a.txt", uri("a.txt"))),
                ContentBlock::ResourceLink(ResourceLink::new("b.png", uri("b.png"))),
                ContentBlock::Text(TextContent::new("cell 2:\nx = 1")),
            ]
        );
    }

    #[test]
    fn missing_and_large_files_are_reported() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("large é.txt"), vec![b'x'; 600_000]).expect("written");
        let text = "@missing.txt @\"large é.txt\" @someone #77".to_owned();
        let prompt = UserPrompt { text: text.clone(), cells: vec![(77, None)], ..UserPrompt::default() };
        let sent = prompt.blocks(folder.path(), &PromptCapabilities::new());
        let uri = format!("file://{}/large%20%C3%A9.txt", folder.path().display());
        assert_eq!(
            sent,
            PromptBlocks {
                blocks: vec![
                    ContentBlock::Text(TextContent::new(&text)),
                    ContentBlock::ResourceLink(ResourceLink::new("large é.txt", uri)),
                ],
                remarks: vec![
                    "there is no file `missing.txt`: the agent only gets the text".to_owned(),
                    "`large é.txt` is larger than 512 kB: the agent only gets its name".to_owned(),
                    "there is no cell #77: the agent only gets the text".to_owned(),
                ],
            }
        );
    }

    #[test]
    fn pictures_are_sent_to_agents_that_take_them() {
        let picture = ShownPicture { mime: "image/png".to_owned(), data: "AQI=".to_owned() };
        let pictures = vec![picture.clone(); MOST_PICTURES];
        let cell = NamedCell { source: "plot".to_owned(), shown: "a plot\n".to_owned(), pictures };
        let attached = |picture| PromptAttachment { name: "a.png".to_owned(), picture };
        let prompt = UserPrompt {
            text: "what is #1".to_owned(),
            cells: vec![(1, Some(cell))],
            attachments: vec![attached(Some(picture)), attached(None)],
            ..UserPrompt::default()
        };
        let can = PromptCapabilities::new().image(true);
        let PromptBlocks { blocks, remarks } = prompt.blocks(Path::new("/"), &can);
        let shown = ContentBlock::Text(TextContent::new("cell 1:\nplot\n# %% [output]\na plot\n"));
        assert_eq!(blocks[1], shown);
        assert_eq!(blocks.len(), 2 + MOST_PICTURES);
        assert!(remarks[0].starts_with("the saved notebook has no picture `a.png`"), "{remarks:?}");
        assert_eq!(remarks[1], "only the first 8 of 9 pictures are sent");
        let blind = prompt.blocks(Path::new("/"), &PromptCapabilities::new());
        assert_eq!(blind.remarks[1], "the agent takes no pictures: 9 of them are not sent");
    }
}
