//! What the commands print.

use std::io::{self, Write as _};

use cellwright_notebook::{Change, Fingerprint, Report, TouchedCell, text};
use serde::Serialize;

/// How a command answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args)]
pub(crate) struct Format {
    /// Answer with one line of JSON; an error is one too, on stderr
    #[arg(long)]
    pub(crate) json: bool,
}

/// Writes text as it is.
pub(crate) fn plain(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// Tells something on stderr that is not part of the answer.
pub(crate) fn note(text: &str) {
    // Who can not be told goes on without it.
    let _ = writeln!(io::stderr().lock(), "note: {text}");
}

/// Writes a value as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    plain(&(serde_json::to_string(value)? + "\n"))
}

/// What an edit answers with `--json`.
#[derive(Serialize)]
struct ReportJson<'a> {
    action: &'a str,
    cells: Vec<CellJson<'a>>,
    total_cells: usize,
    notes: Vec<String>,
    fingerprint: String,
}

#[derive(Serialize)]
struct CellJson<'a> {
    change: &'a str,
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    r#type: &'a str,
    source: &'a str,
}

impl<'a> From<&'a TouchedCell> for CellJson<'a> {
    fn from(cell: &'a TouchedCell) -> Self {
        Self {
            change: cell.change.name(),
            index: cell.index,
            id: cell.id.as_deref(),
            r#type: cell.kind.name(),
            source: &cell.source,
        }
    }
}

/// Tells what an edit did: as JSON when the file's fingerprint is given, else as text.
pub(crate) fn report(report: &Report, fingerprint: Option<Fingerprint>) -> anyhow::Result<()> {
    let Some(fingerprint) = fingerprint else {
        let mut told = format!("{report}\n");
        // What is gone from the file is shown here for the last time.
        for cell in report.cells.iter().filter(|cell| cell.change == Change::Deleted) {
            told.push_str(&text::print_one(cell.index, cell.kind, &cell.source));
        }
        return plain(&told);
    };
    json(&ReportJson {
        action: report.action,
        cells: report.cells.iter().map(CellJson::from).collect(),
        total_cells: report.total,
        notes: report.notes.iter().map(ToString::to_string).collect(),
        fingerprint: fingerprint.to_string(),
    })
}
