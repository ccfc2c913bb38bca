//! A cell's text as the agent gets it, with the files and cells it mentions.

use std::collections::HashSet;
use std::path::Path;

use agent_client_protocol::v1::schema::{
    ContentBlock, EmbeddedResource, EmbeddedResourceResource, ImageContent, PromptCapabilities, ResourceLink,
    TextContent, TextResourceContents,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::magic::{Reference, references};

/// Files up to this size travel with the prompt; of larger ones only the name.
const MOST: u64 = 512 * 1024;

/// Images that models take, by ending.
const IMAGES: [(&str, &str); 5] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
];

/// What a user asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Prompt {
    /// As typed.
    pub(super) text: String,
    /// The cells that `#N` in it names, with their sources.
    pub(super) cells: Vec<(u32, String)>,
}

impl Prompt {
    /// Blocks for an agent: the text as it is, and behind it what `@path` and `#N` mention, in the way this agent takes it.
    /// Reads files.
    pub(super) fn blocks(&self, workspace: &Path, can: &PromptCapabilities) -> Vec<ContentBlock> {
        let mut blocks = vec![ContentBlock::Text(TextContent::new(&self.text))];
        let mut seen = HashSet::new();
        for reference in references(&self.text) {
            if let Reference::File { path, .. } = reference
                && seen.insert(path.clone())
            {
                let path = Some(workspace.join(path)).filter(|path| path.is_file());
                blocks.extend(path.map(|path| file(&path, can)));
            }
        }
        for (number, source) in &self.cells {
            let uri = format!("notebook-cell:{number}");
            blocks.push(text(uri, &format!("cell {number}"), source.clone(), can));
        }
        blocks
    }
}

fn file(path: &Path, can: &PromptCapabilities) -> ContentBlock {
    let uri = format!("file://{}", path.display());
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let link = || ContentBlock::ResourceLink(ResourceLink::new(name.clone(), uri.clone()));
    if path.metadata().is_ok_and(|metadata| metadata.len() > MOST) {
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
    fn mentioned_files_and_cells_travel_with_the_prompt() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a.txt"), "text").expect("written");
        std::fs::write(folder.path().join("b.png"), [1, 2]).expect("written");
        let text = "look at @a.txt, @b.png and @none (see #2) mail me@a.txt".to_owned();
        let prompt = Prompt { text: text.clone(), cells: vec![(2, "x = 1".to_owned())] };
        let all = PromptCapabilities::new().image(true).embedded_context(true);
        let uri = |name: &str| format!("file://{}", folder.path().join(name).display());
        let resource = |text: &str, uri: String| {
            let contents = TextResourceContents::new(text, uri);
            ContentBlock::Resource(EmbeddedResource::new(EmbeddedResourceResource::TextResourceContents(
                contents,
            )))
        };
        assert_eq!(
            prompt.blocks(folder.path(), &all),
            [
                ContentBlock::Text(TextContent::new(&text)),
                resource("text", uri("a.txt")),
                ContentBlock::Image(ImageContent::new("AQI=", "image/png").uri(uri("b.png"))),
                resource("x = 1", "notebook-cell:2".to_owned()),
            ]
        );
        assert_eq!(
            prompt.blocks(folder.path(), &PromptCapabilities::new()),
            [
                ContentBlock::Text(TextContent::new(&text)),
                ContentBlock::ResourceLink(ResourceLink::new("a.txt", uri("a.txt"))),
                ContentBlock::ResourceLink(ResourceLink::new("b.png", uri("b.png"))),
                ContentBlock::Text(TextContent::new("cell 2:\nx = 1")),
            ]
        );
    }
}
