//! Outputs and how they change.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::mime::MimeBundle;

/// A standard stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Standard output.
    #[default]
    Stdout,
    /// Standard error.
    Stderr,
}

/// A change to what a cell shows, in the order the cell made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum OutputChange {
    /// One more output.
    Added(Output),
    /// Every display under this name shows something else now, also those of earlier cells.
    Updated {
        /// Which display.
        display_id: String,
        /// What it shows.
        content: Arc<MimeBundle>,
    },
    /// All outputs so far go: now, or when the next output comes.
    Cleared {
        /// Wait for the next output.
        wait: bool,
    },
}

/// Something to show. Cheap to clone, except for its text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Output {
    /// Printed text, in pieces of any size.
    Text {
        /// Where it was printed.
        stream: Stream,
        /// What was printed; bytes that are not UTF-8 appear as U+FFFD.
        text: String,
    },
    /// A value shown by `display()` or its like.
    Display {
        /// The value.
        content: Arc<MimeBundle>,
        /// Under which name it can be updated.
        display_id: Option<String>,
    },
    /// The value of the last expression.
    Result {
        /// The value.
        content: Arc<MimeBundle>,
        /// The number the kernel gave it.
        count: Option<u64>,
    },
    /// The exception that ended the cell.
    Error(Exception),
}

/// An exception as the kernel reported it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exception {
    /// Its class.
    pub name: String,
    /// What it says.
    pub message: String,
    /// The traceback as printed, line by line.
    pub traceback: Vec<String>,
    /// The line of the cell it came from, counted from 1.
    pub line: Option<u64>,
}

impl Stream {
    /// Its name in Jupyter's messages and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }

    /// The stream of this name. A stream of the kernel's own counts as standard output.
    pub fn named(name: &str) -> Self {
        if name == Self::Stderr.name() { Self::Stderr } else { Self::Stdout }
    }
}

impl<'de> Deserialize<'de> for Stream {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StreamName;
        impl serde::de::Visitor<'_> for StreamName {
            type Value = Stream;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the name of a stream")
            }

            fn visit_str<E>(self, name: &str) -> Result<Stream, E> {
                Ok(Stream::named(name))
            }
        }
        deserializer.deserialize_str(StreamName)
    }
}

impl Output {
    /// Printed text.
    pub fn text(stream: Stream, text: impl Into<String>) -> Self {
        Self::Text { stream, text: text.into() }
    }

    /// About how many bytes it takes.
    pub fn weight(&self) -> usize {
        match self {
            Self::Text { text, .. } => text.len(),
            Self::Display { content, .. } | Self::Result { content, .. } => content.weight(),
            Self::Error(exception) => exception.weight(),
        }
    }
}

impl OutputChange {
    /// About how many bytes it takes.
    pub fn weight(&self) -> usize {
        match self {
            Self::Added(output) => output.weight(),
            Self::Updated { content, .. } => content.weight(),
            Self::Cleared { .. } => 0,
        }
    }
}

impl Exception {
    /// About how many bytes it takes.
    pub fn weight(&self) -> usize {
        self.name.len() + self.message.len() + self.traceback.iter().map(String::len).sum::<usize>()
    }
}

/// About how many bytes a value takes.
pub fn json_weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(json_weight).sum(),
        Value::Object(members) => members.iter().map(|(key, value)| key.len() + json_weight(value)).sum(),
    }
}
