//! A tool's reply and spec as MCP has them.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cellwright_output::Artifacts;
use cellwright_tools::{ReplyPart, ToolReply, ToolSpec};
use rmcp::model::{CallToolResult, ContentBlock, MetaObject, Tool, ToolAnnotations};
use serde_json::{Map, Value};

use crate::profile::{CLAUDE_CHARACTERS, ClientProfile, FailedImages, StructuredContent, ToolHints};

/// In `_meta` of a result: what `isError` would be if the client did not drop the images of errors.
const FAILED: &str = "cellwright/isError";

/// In `_meta` of a call, or an experimental capability: the client wants `structuredContent`.
pub(crate) const WANTS_STRUCTURE: &str = "cellwright/structuredContent";

/// The tools that a model needs before it thinks of searching for them.
const ALWAYS_LOADED: [&str; 2] = ["eval", "notebook"];

pub(crate) fn result(mut reply: ToolReply, profile: ClientProfile, artifacts: &Artifacts) -> CallToolResult {
    let has_images = reply.content.iter().any(|part| matches!(part, ReplyPart::Image(_)));
    let unflagged = reply.is_error && has_images && profile.failed_images == FailedImages::Lost;
    if unflagged {
        reply.content.insert(0, ReplyPart::Note("[this call failed; the error is below]".to_owned()));
    }
    if reply.is_error && has_images && profile.failed_images == FailedImages::Unknown {
        name_images(&mut reply, artifacts);
    }
    let content = reply.content.into_iter().map(block).collect();
    let mut result = if reply.is_error && !unflagged {
        CallToolResult::error(content)
    } else {
        CallToolResult::success(content)
    };
    if unflagged {
        result.meta = Some(meta([(FAILED, true.into())]));
    }
    result.structured_content = match profile.structured {
        StructuredContent::Sent => reply.structured,
        StructuredContent::Withheld => None,
        StructuredContent::Empty => Some(Value::Object(Map::new())),
    };
    result
}

/// Stores the images and names them, for a client that may drop those of errors.
fn name_images(reply: &mut ToolReply, artifacts: &Artifacts) {
    let images = reply.content.iter().filter_map(|part| match part {
        ReplyPart::Image(image) => Some(image),
        ReplyPart::Text(_) | ReplyPart::Note(_) => None,
    });
    let names: Vec<_> = images
        .filter_map(|image| artifacts.save(image.format.kind(), &image.bytes).ok())
        .map(|id| id.to_string())
        .collect();
    if !names.is_empty() {
        let note = format!("[if you do not see the images, read them: {}]", names.join(", "));
        reply.content.push(ReplyPart::Note(note));
    }
}

pub(crate) fn block(content: ReplyPart) -> ContentBlock {
    match content {
        ReplyPart::Text(text) | ReplyPart::Note(text) => ContentBlock::text(text),
        ReplyPart::Image(image) => {
            ContentBlock::image(BASE64_STANDARD.encode(&image.bytes), image.format.mime())
        }
    }
}

pub(crate) fn tool(spec: ToolSpec, profile: ClientProfile) -> Tool {
    let mut annotations =
        ToolAnnotations::with_title(spec.title).read_only(spec.read_only).destructive(spec.destructive);
    if !spec.read_only && !spec.destructive {
        // Its user is asked elsewhere. Some clients review all other calls.
        annotations = annotations.open_world(false);
    }
    let mut tool =
        Tool::new(spec.name, spec.description, Arc::new(spec.schema)).with_annotations(annotations);
    if profile.hints == ToolHints::Anthropic {
        let mut hints = meta([("anthropic/maxResultSizeChars", CLAUDE_CHARACTERS.into())]);
        if ALWAYS_LOADED.contains(&spec.name) {
            hints.0.insert("anthropic/alwaysLoad".to_owned(), true.into());
        }
        tool.meta = Some(hints);
    }
    tool
}

fn meta<const N: usize>(entries: [(&str, Value); N]) -> MetaObject {
    MetaObject(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}
