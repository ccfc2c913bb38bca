//! What a tool answers.

use std::error::Error;
use std::fmt::Write as _;
use std::time::Duration;

use cellwright_cell::with_causes;
use cellwright_output::Image;
use serde_json::Value;

/// The answer to a call: for a model to read, and for a program to take apart.
#[derive(Debug, Clone, Default)]
pub struct ToolReply {
    /// What to show, in order.
    pub content: Vec<ReplyPart>,
    /// The same facts as data. Holds no text that `content` has: clients hand both to their model.
    pub structured: Option<Value>,
    /// What was asked for was not done, or the code that was run failed.
    pub is_error: bool,
}

/// A part of a reply.
#[derive(Debug, Clone)]
pub enum ReplyPart {
    /// Text as it was printed, or as a file has it.
    Text(String),
    /// A remark of ours, apart from the text so that this can be used as it is.
    Note(String),
    /// An image within the limits of the toolbox.
    Image(Image),
}

impl ToolReply {
    /// A reply of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![ReplyPart::Text(text.into())], ..Self::default() }
    }

    /// A reply that says why something was not done.
    pub fn error(why: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(why) }
    }

    /// Adds what programs read.
    #[must_use]
    pub fn with(mut self, structured: Value) -> Self {
        self.structured = Some(structured);
        self
    }

    /// Adds a remark of ours.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.content.push(ReplyPart::Note(note.into()));
    }

    /// Says first and last what is not shown: clients that shorten a reply themselves keep its ends.
    pub(crate) fn frame(&mut self, notices: &[String]) {
        /// Notices one by one; a call may have a hundred cells.
        const MOST: usize = 5;
        let Some(first) = notices.get(..notices.len().min(MOST)).filter(|first| !first.is_empty()) else {
            return;
        };
        let mut notice = first.join("\n");
        if notices.len() > MOST {
            let more = notices.len() - MOST;
            write!(notice, "\n[{more} more outputs are shortened]").expect("a String takes everything");
        }
        self.content.insert(0, ReplyPart::Note(notice.clone()));
        self.note(notice);
    }

    /// This reply and the one that follows it. If both have a fact, the later one counts.
    pub(crate) fn followed_by(mut self, next: Self) -> Self {
        self.content.extend(next.content);
        self.is_error |= next.is_error;
        match (&mut self.structured, next.structured) {
            (Some(Value::Object(first)), Some(Value::Object(next))) => {
                first.insert("run".to_owned(), Value::Object(next));
            }
            (structured, next) => *structured = structured.take().or(next),
        }
        self
    }

    /// All text of the reply.
    pub fn to_text(&self) -> String {
        let texts = self.content.iter().map(|content| match content {
            ReplyPart::Text(text) | ReplyPart::Note(text) => text.clone(),
            ReplyPart::Image(image) => format!("[{image}]"),
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// How much of a reply reaches a client's model, and how long the client waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyRoom {
    /// Bytes of text.
    pub bytes: usize,
    /// Lines of text.
    pub lines: usize,
    /// How long a call may take before it must be answered; `None` for as long as the settings allow.
    pub patience: Option<Duration>,
}

impl Default for ReplyRoom {
    /// A client that passes everything on and waits for ever.
    fn default() -> Self {
        Self { bytes: usize::MAX, lines: usize::MAX, patience: None }
    }
}

/// Why a tool did not do what was asked, in words for the caller.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ToolFailure(String);

impl ToolFailure {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }

    /// Says first what it is about.
    pub(crate) fn about(self, what: impl std::fmt::Display) -> Self {
        Self(format!("{what}: {}", self.0))
    }
}

impl std::fmt::Display for ToolFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// An error with its causes. `ToolFailure` itself is no `Error`, so that every error converts.
impl<E: Error> From<E> for ToolFailure {
    fn from(error: E) -> Self {
        Self(with_causes(&error))
    }
}

impl From<ToolFailure> for ToolReply {
    fn from(failure: ToolFailure) -> Self {
        Self::error(shortened(&failure.0))
    }
}

/// What was wrong may have been megabytes long, and messages quote it.
pub(crate) fn shortened(why: &str) -> String {
    const END: usize = 1000;
    if why.len() <= 2 * END {
        return why.to_owned();
    }
    let (head, tail) = (why.floor_char_boundary(END), why.ceil_char_boundary(why.len() - END));
    format!("{} … {}", &why[..head], &why[tail..])
}
