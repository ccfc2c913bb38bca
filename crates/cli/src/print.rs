//! What the commands print.

use std::io::{self, IsTerminal as _, Write as _};

use cellwright_output::{visible, visible_coloured};
use serde::Serialize;

/// How a command answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args)]
pub(crate) struct OutputFormat {
    /// Print one line of JSON; errors are JSON too, on stderr
    #[arg(long)]
    pub(crate) json: bool,
}

/// Writes text. A terminal does not act on what is in it: it may come from a file.
pub(crate) fn plain(text: &str) -> anyhow::Result<()> {
    if io::stdout().is_terminal() { raw(&visible(text)) } else { raw(text) }
}

/// The same for text that has colours of ours.
pub(crate) fn coloured(text: &str) -> anyhow::Result<()> {
    if io::stdout().is_terminal() { raw(&visible_coloured(text)) } else { raw(text) }
}

/// Writes text as it is: what a program prints that the user runs, and pictures.
pub(crate) fn raw(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// Prints a note on stderr, which is not part of the answer.
pub(crate) fn note(text: &str) {
    remark(&format!("note: {text}"));
}

/// Prints a line on stderr, harmless for a terminal.
pub(crate) fn remark(line: &str) {
    // A closed stderr does not fail the command.
    let _ = writeln!(io::stderr().lock(), "{}", visible(line));
}

/// Prints a line on stderr as it is.
pub(crate) fn line(text: &str) {
    // A closed stderr does not fail the command.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Writes a value as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    plain(&(serde_json::to_string(value)? + "\n"))
}
