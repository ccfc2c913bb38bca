//! What is missing from a captured text, and where the whole of it is.

use std::fmt;

use crate::{
    artifacts::ArtifactId,
    lines::{Counted, Extent, Thousands},
};

/// What a captured text leaves out. Its `Display` is the notice in the text.
///
/// The numbers add up: `head`, `omitted` and `tail` together are `total`, in lines and, with the
/// bytes of `cut`, in bytes. Line numbers are those of the artifact as [`Artifact::lines`](crate::Artifact::lines) reads it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Truncation {
    /// All that was printed, as a terminal shows it.
    pub total: Extent,
    /// What the text shows before the gap.
    pub head: Extent,
    /// The lines left out.
    pub omitted: Extent,
    /// What the text shows after the gap.
    pub tail: Extent,
    /// The shown lines that were cut at `line_cap`, and how many of their bytes are missing.
    pub cut: Extent,
    /// Most bytes shown of one line.
    pub line_cap: usize,
    /// Where everything can be read.
    pub full: FullText,
}

/// Where the whole of a truncated output is.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum FullText {
    /// All of it is in this artifact.
    Artifact(ArtifactId),
    /// This artifact holds all that came, but not all that there was.
    Incomplete {
        /// What came.
        id: ArtifactId,
        /// Why more did not.
        reason: String,
    },
    /// The artifact could not be written to its end.
    Partial {
        /// It holds the beginning.
        id: ArtifactId,
        /// How many bytes of the raw output are in it.
        bytes: u64,
        /// Why it ends there.
        reason: String,
    },
    /// Nothing could be written.
    Lost {
        /// Why not.
        reason: String,
    },
    /// Nobody asked for it to be kept.
    NotKept,
}

impl FullText {
    /// The same, of an output that is incomplete for this reason.
    pub(crate) fn short_of(self, reason: Option<&str>) -> Self {
        match (self, reason) {
            (Self::Artifact(id), Some(reason)) => Self::Incomplete { id, reason: reason.to_owned() },
            (full, _) => full,
        }
    }

    /// The artifact that holds all or the beginning of the output.
    pub fn artifact(&self) -> Option<&ArtifactId> {
        match self {
            Self::Artifact(id) | Self::Incomplete { id, .. } | Self::Partial { id, .. } => Some(id),
            Self::Lost { .. } | Self::NotKept => None,
        }
    }
}

impl Truncation {
    /// What of the text is shown and where the rest is: for the first and the last line of a reply. Clients that
    /// shorten replies themselves often drop the middle, and with it the notice there.
    pub fn summary(&self) -> String {
        let total = Counted(self.total.lines, "line");
        let shown = match (self.head.lines, self.tail.lines) {
            _ if self.omitted.lines == 0 => {
                let verb = if self.cut.lines == 1 { "is" } else { "are" };
                format!("{} of {total} {verb} cut", Thousands(self.cut.lines))
            }
            (0, 0) => format!("none of {total} is shown"),
            (0, tail) => format!("of {total} the last {} are shown", Thousands(tail)),
            (head, 0) => format!("of {total} the first {} are shown", Thousands(head)),
            (head, tail) => {
                format!("of {total} the first {} and the last {} are shown", Thousands(head), Thousands(tail))
            }
        };
        format!("{shown}. {}", self.full)
    }
}

impl fmt::Display for FullText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Artifact(id) => write!(f, "Full output: {id}"),
            Self::Incomplete { id, reason } => write!(f, "What there is of it: {id}; {reason}"),
            Self::Partial { id, bytes, reason } => {
                write!(f, "Only the first {} are in {id}: {reason}", Counted(*bytes, "byte"))
            }
            Self::Lost { reason } => write!(f, "The full output could not be kept: {reason}"),
            Self::NotKept => f.write_str("The full output was not kept"),
        }
    }
}

impl fmt::Display for Truncation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        let (total, omitted, cut) = (self.total, self.omitted, self.cut);
        if omitted.lines > 0 {
            let first = self.head.lines + 1;
            let last = self.head.lines + omitted.lines;
            write!(f, "… {} of {} omitted: ", Thousands(omitted.lines), Counted(total.lines, "line"))?;
            if first == last {
                write!(f, "line {first}")?;
            } else {
                write!(f, "lines {first}-{last}")?;
            }
            write!(f, ", {} of {}. ", Thousands(omitted.bytes), Counted(total.bytes, "byte"))?;
        }
        if cut.lines > 0 {
            let (lines, missing) = (Counted(cut.lines, "shown line"), Counted(cut.bytes, "byte"));
            write!(f, "{lines} cut at {} bytes, {missing} missing. ", Thousands(self.line_cap as u64))?;
        }
        write!(f, "{}", self.full)?;
        f.write_str("]")
    }
}
