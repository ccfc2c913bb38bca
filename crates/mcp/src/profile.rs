//! What each known client does with a reply, in one table.
//!
//! Measured with the real clients: docs/decisions/2026-11-18-replies-fit-their-clients.md has the facts and how they
//! were found.

use std::time::Duration;

use cellwright_tools::ReplyRoom;
use rmcp::model::Implementation;

/// How replies are shaped for one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClientProfile {
    /// What of a reply reaches the client's model, and when it must come.
    pub(crate) room: ReplyRoom,
    pub(crate) structured: StructuredContent,
    pub(crate) progress: ProgressPolicy,
    pub(crate) failed_images: FailedImages,
    /// Whether tools carry hints that only this client reads.
    pub(crate) hints: ToolHints,
}

/// Whether a reply carries its facts as data too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StructuredContent {
    Sent,
    /// The client's model would see it instead of the text, or beside the text and at the price of both.
    Withheld,
    /// Without any, the client reads the first text as JSON and takes that for it, and refuses the reply if it is a
    /// bare number. So it gets an empty object.
    Empty,
}

/// Whether the client is sent progress that it asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgressPolicy {
    Sent,
    /// The client drops a server whose progress arrives together with the reply.
    Withheld,
}

/// What the client does with the images of a reply that is flagged as an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailedImages {
    Kept,
    /// It drops them, or hands them to its model as text. So such a reply is not flagged, and says in words that the
    /// call failed.
    Lost,
    /// Nobody has looked. The reply is flagged, and names artifacts that hold the images.
    Unknown,
}

/// Hints in a tool's `_meta`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolHints {
    None,
    /// `anthropic/alwaysLoad` and `anthropic/maxResultSizeChars`.
    Anthropic,
}

/// An unknown client.
const UNKNOWN: ClientProfile = ClientProfile {
    // Many clients give up after a minute.
    room: ReplyRoom { bytes: usize::MAX, lines: usize::MAX, patience: Some(Duration::from_secs(50)) },
    structured: StructuredContent::Withheld,
    progress: ProgressPolicy::Sent,
    failed_images: FailedImages::Unknown,
    hints: ToolHints::None,
};

/// Characters of a reply that we ask Claude Code to show whole. Its own limit is 50,000.
pub(crate) const CLAUDE_CHARACTERS: u64 = 200_000;

/// Known clients, by a part of the name that they introduce themselves by.
const KNOWN: [(&str, ClientProfile); 6] = [
    ("claude", ClientProfile { failed_images: FailedImages::Lost, hints: ToolHints::Anthropic, ..UNKNOWN }),
    // Its model gets 12,000 characters: the beginning and the end. It waits 300 seconds.
    (
        "codex",
        ClientProfile {
            room: ReplyRoom { bytes: 10 * 1024, patience: Some(Duration::from_secs(280)), ..UNKNOWN.room },
            failed_images: FailedImages::Kept,
            ..UNKNOWN
        },
    ),
    // It waits 600 seconds.
    (
        "gemini",
        ClientProfile {
            room: ReplyRoom { patience: Some(Duration::from_secs(580)), ..UNKNOWN.room },
            structured: StructuredContent::Empty,
            failed_images: FailedImages::Lost,
            ..UNKNOWN
        },
    ),
    // Its model gets the first 2,000 lines and 50 KB. It waits 60 seconds.
    (
        "opencode",
        ClientProfile {
            room: ReplyRoom { bytes: 44 * 1024, lines: 1_900, ..UNKNOWN.room },
            failed_images: FailedImages::Lost,
            ..UNKNOWN
        },
    ),
    // It waits 300 seconds.
    (
        "qwen",
        ClientProfile {
            room: ReplyRoom { bytes: 50 * 1024, patience: Some(Duration::from_secs(280)), ..UNKNOWN.room },
            progress: ProgressPolicy::Withheld,
            failed_images: FailedImages::Lost,
            ..UNKNOWN
        },
    ),
    // It gives up after 30 seconds, whatever it is sent. Its model gets 40 KB.
    (
        "omp-coding-agent",
        ClientProfile {
            room: ReplyRoom { bytes: 36 * 1024, lines: usize::MAX, patience: Some(Duration::from_secs(25)) },
            failed_images: FailedImages::Kept,
            ..UNKNOWN
        },
    ),
];

impl ClientProfile {
    /// The profile of the client that introduced itself like this.
    pub(crate) fn of(client: Option<&Implementation>) -> Self {
        let name = client.map(|client| client.name.to_lowercase()).unwrap_or_default();
        KNOWN.iter().find(|(part, _)| name.contains(part)).map_or(UNKNOWN, |(_, profile)| *profile)
    }

    /// The same, with the facts as data for a client that asks for them.
    #[must_use]
    pub(crate) fn structured_if(self, is_asked: bool) -> Self {
        let structured = if is_asked { StructuredContent::Sent } else { self.structured };
        Self { structured, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_known_by_the_names_they_use() {
        let of = |name: &str| ClientProfile::of(Some(&Implementation::new(name, "1")));
        assert_eq!(of("qwen-cli-mcp-client-cellwright").progress, ProgressPolicy::Withheld);
        assert_eq!(of("codex-mcp-client").room.bytes, 10 * 1024);
        assert_eq!(of("claude-code").hints, ToolHints::Anthropic);
        assert_eq!(of("omp-coding-agent").room.patience, Some(Duration::from_secs(25)));
        assert_eq!(of("opencode").room.lines, 1_900);
        assert_eq!(of("gemini-cli-mcp-client").failed_images, FailedImages::Lost);
        assert_eq!(of("another"), UNKNOWN);
        assert_eq!(ClientProfile::of(None), UNKNOWN);
    }

    #[test]
    fn no_client_gets_a_structured_copy_unless_it_asks() {
        for (_, profile) in KNOWN {
            assert_ne!(profile.structured, StructuredContent::Sent);
        }
        assert_eq!(UNKNOWN.structured_if(true).structured, StructuredContent::Sent);
    }
}
