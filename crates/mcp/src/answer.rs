//! A tool's reply and spec as MCP has them.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cellwright_tools::{ReplyPart, ToolReply, ToolSpec};
use rmcp::model::{CallToolResult, ContentBlock, Implementation, Tool, ToolAnnotations};

/// Which parts of a reply a client can be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StructuredContent {
    Sent,
    /// The client's model would see the structured part instead of the text.
    Withheld,
}

impl StructuredContent {
    /// Codex and Claude Code show their model only `structuredContent` if there is any, so the output would be lost.
    pub(crate) fn for_client(client: Option<&Implementation>) -> Self {
        let name = client.map(|client| client.name.to_lowercase()).unwrap_or_default();
        if name.contains("codex") || name.contains("claude") { Self::Withheld } else { Self::Sent }
    }
}

pub(crate) fn result(reply: ToolReply, structured: StructuredContent) -> CallToolResult {
    let content = reply.content.into_iter().map(block).collect();
    let mut result =
        if reply.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = match structured {
        StructuredContent::Sent => reply.structured,
        StructuredContent::Withheld => None,
    };
    result
}

pub(crate) fn block(content: ReplyPart) -> ContentBlock {
    match content {
        ReplyPart::Text(text) | ReplyPart::Note(text) => ContentBlock::text(text),
        ReplyPart::Image(image) => {
            ContentBlock::image(BASE64_STANDARD.encode(&image.bytes), image.format.mime())
        }
    }
}

pub(crate) fn tool(spec: ToolSpec) -> Tool {
    let annotations =
        ToolAnnotations::with_title(spec.title).read_only(spec.read_only).destructive(spec.destructive);
    Tool::new(spec.name, spec.description, Arc::new(spec.schema)).with_annotations(annotations)
}
