//! Content other than the answer's text: pictures, sounds, links, files.

use agent_client_protocol_schema::v1::{ContentBlock, EmbeddedResourceResource, ResourceLink};
use cellwright_output::{Colours, OutputLimits, OutputSink};
use serde_json::{Map, Value};

use super::OutputData;
use super::html::{data_address, escape, folded, link, pre};

/// The limits for one long text that is not the agent's answer. A notice in the gap says what is
/// missing.
const LIMITS: OutputLimits = OutputLimits { head: 16 * 1024, tail: 48 * 1024, line: 2_000 };

/// The pictures that Jupyter's clients show.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// A sink for what a tool printed, as a terminal would show it.
pub(super) fn screen() -> OutputSink {
    OutputSink::new(LIMITS, Colours::Dropped)
}

/// `text`, shortened if it is long.
pub(super) fn bounded(text: &str) -> String {
    let mut sink = screen();
    sink.write_block(text);
    sink.finish().text.trim_end().to_owned()
}

/// Content as HTML and as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RenderedContent {
    pub(super) html: String,
    pub(super) plain: String,
}

impl RenderedContent {
    pub(super) fn bundle(self) -> OutputData {
        bundle([("text/html", self.html), ("text/plain", self.plain)])
    }
}

pub(super) fn bundle<const N: usize>(alternatives: [(&str, String); N]) -> OutputData {
    alternatives.into_iter().map(|(mime, text)| (mime.to_owned(), Value::String(text))).collect()
}

/// The display of one block. Pictures keep the MIME type that Jupyter knows, so that other tools
/// find them.
pub(super) fn display(block: &ContentBlock) -> OutputData {
    if let ContentBlock::Image(image) = block
        && PICTURES.contains(&image.mime_type.as_str())
        && data_address("image", &image.mime_type, &image.data).is_some()
    {
        let mut data = Map::new();
        data.insert(image.mime_type.clone(), image.data.clone().into());
        data.insert("text/plain".to_owned(), picture(image.uri.as_deref()).into());
        return data;
    }
    rendered(block).bundle()
}

/// Whether a display is a picture that Jupyter knows.
pub(super) fn is_picture(data: &OutputData) -> bool {
    PICTURES.iter().any(|mime| data.contains_key(*mime))
}

/// A block inside a card.
pub(super) fn rendered(block: &ContentBlock) -> RenderedContent {
    match block {
        ContentBlock::Text(text) => text_part(&text.text),
        ContentBlock::Image(image) => {
            let plain = picture(image.uri.as_deref());
            let html = match data_address("image", &image.mime_type, &image.data) {
                Some(address) => {
                    format!(
                        "<img src=\"{}\" alt=\"{}\" style=\"max-width:100%\">",
                        escape(&address),
                        escape(&plain)
                    )
                }
                None => escape(&unreadable(&image.mime_type)).into_owned(),
            };
            RenderedContent { html, plain }
        }
        ContentBlock::Audio(audio) => {
            let html = match data_address("audio", &audio.mime_type, &audio.data) {
                Some(address) => format!("<audio controls src=\"{}\"></audio>", escape(&address)),
                None => escape(&unreadable(&audio.mime_type)).into_owned(),
            };
            RenderedContent { html, plain: "[sound]".to_owned() }
        }
        ContentBlock::ResourceLink(resource) => resource_link(resource),
        ContentBlock::Resource(resource) => match &resource.resource {
            EmbeddedResourceResource::TextResourceContents(text) => {
                let body = bounded(&text.text);
                RenderedContent {
                    html: folded(&text.uri, &pre(&body)),
                    plain: format!("{}\n{body}", text.uri),
                }
            }
            EmbeddedResourceResource::BlobResourceContents(blob) => {
                let bytes = blob.blob.len() / 4 * 3;
                let plain = format!("{} (about {bytes} bytes of binary data)", blob.uri);
                RenderedContent { html: escape(&plain).into_owned(), plain }
            }
            _ => unknown(),
        },
        _ => unknown(),
    }
}

fn resource_link(resource: &ResourceLink) -> RenderedContent {
    let words = resource.title.as_ref().unwrap_or(&resource.name);
    let about = resource.description.as_ref().map(|about| format!(": {about}")).unwrap_or_default();
    RenderedContent {
        html: format!("{}{}", link(words, &resource.uri), escape(&about)),
        plain: format!("{words} <{}>{about}", resource.uri),
    }
}

/// The text of a tool, without the code fence that agents put around it.
fn text_part(text: &str) -> RenderedContent {
    let plain = bounded(unfenced(text));
    let lines = plain.lines().count();
    let html = if lines > 12 { folded(&format!("{lines} lines"), &pre(&plain)) } else { pre(&plain) };
    RenderedContent { html: if plain.is_empty() { String::new() } else { html }, plain }
}

fn unfenced(text: &str) -> &str {
    let trimmed = text.trim();
    let inner = || {
        let body = trimmed.strip_prefix("```")?.strip_suffix("```")?;
        let (info, body) = body.split_once('\n')?;
        (!info.contains('`') && !body.contains("```")).then_some(body)
    };
    inner().unwrap_or(text)
}

fn picture(uri: Option<&str>) -> String {
    uri.map_or_else(|| "[picture]".to_owned(), |uri| format!("[picture {uri}]"))
}

fn unreadable(mime: &str) -> String {
    format!("[content of type {mime} that cannot be shown]")
}

fn unknown() -> RenderedContent {
    let plain = "[content of a kind this version does not know]".to_owned();
    RenderedContent { html: plain.clone(), plain }
}
