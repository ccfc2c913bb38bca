//! A prompt as the agent gets it, with the files and cells that it mentions.

use std::collections::HashSet;
use std::path::Path;

use agent_client_protocol_schema::v1::{
    ContentBlock, EmbeddedResource, EmbeddedResourceResource, ImageContent, PromptCapabilities, ResourceLink,
    TextContent, TextResourceContents,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::magic::{PromptReference, references};

/// Files up to this size are sent with the prompt. Of larger files only the name is sent.
const MOST: u64 = 512 * 1024;

/// The images that models accept, by file extension.
const IMAGES: [(&str, &str); 5] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UserPrompt {
    /// As typed.
    pub(crate) text: String,
    /// The cells that `#N` names, with their sources. `None` if the cell does not exist.
    pub(crate) cells: Vec<(u32, Option<String>)>,
}

/// A prompt as an agent gets it.
#[derive(Debug, PartialEq)]
pub(crate) struct PromptBlocks {
    pub(crate) blocks: Vec<ContentBlock>,
    /// What the user should know about the mentioned files and cells.
    pub(crate) remarks: Vec<String>,
}

impl UserPrompt {
    /// The blocks for an agent: the text as typed, then what `@path` and `#N` mention, in a form
    /// that this agent supports. Reads files.
    pub(crate) fn blocks(&self, workspace: &Path, can: &PromptCapabilities) -> PromptBlocks {
        let mut blocks = vec![ContentBlock::Text(TextContent::new(&self.text))];
        let mut remarks = Vec::new();
        let mut seen = HashSet::new();
        for reference in references(&self.text) {
            let PromptReference::File { path: name, .. } = reference else { continue };
            let path = workspace.join(&name);
            if !seen.insert(name.clone()) {
                continue;
            }
            if path.is_file() {
                if is_large(&path) {
                    remarks.push(format!("`{name}` is larger than 512 kB: the agent only gets its name"));
                }
                blocks.push(file(&path, can));
            } else if name.contains(['.', '/']) && !path.exists() {
                // Other words, such as `@name`, are rarely files.
                remarks.push(format!("there is no file `{name}`: the agent only gets the text"));
            }
        }
        for (number, source) in &self.cells {
            match source {
                Some(source) => {
                    let uri = format!("notebook-cell:{number}");
                    blocks.push(text(uri, &format!("cell {number}"), source.clone(), can));
                }
                None => {
                    remarks.push(format!("there is no cell #{number}: the agent only gets the text"));
                }
            }
        }
        PromptBlocks { blocks, remarks }
    }
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
        let prompt = UserPrompt { text: text.clone(), cells: vec![(2, Some("x = 1".to_owned()))] };
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
        let sent = UserPrompt { text: text.clone(), cells: vec![(77, None)] }
            .blocks(folder.path(), &PromptCapabilities::new());
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
}
