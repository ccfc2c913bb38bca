//! What the commands print.

use std::io::{self, Write as _};

use serde::Serialize;

/// How a command answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args)]
pub(crate) struct OutputFormat {
    /// Print one line of JSON; errors are JSON too, on stderr
    #[arg(long)]
    pub(crate) json: bool,
}

/// Writes text as it is.
pub(crate) fn plain(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// Prints a note on stderr, which is not part of the answer.
pub(crate) fn note(text: &str) {
    // A closed stderr does not fail the command.
    let _ = writeln!(io::stderr().lock(), "note: {text}");
}

/// Writes a value as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    plain(&(serde_json::to_string(value)? + "\n"))
}
