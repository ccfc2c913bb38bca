//! Whether a notebook still shows what it showed: a fresh run's outputs beside the stored ones.
//!
//! What the marks in cells mean, which parts of outputs count and how a file of replacements is written are nbval's.
//! <https://nbval.readthedocs.io/en/latest/>

mod marks;
mod replacements;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use cellwright_cell::Stream;
use cellwright_notebook::file;
use cellwright_notebook::select::CellSelection;
use cellwright_notebook::{
    CellKind, CellRef, Notebook, NotebookCell, NotebookOutput, OutputKind, line_hunks,
};
use cellwright_output::{Colours, OutputLimits, OutputSink, indented_json};
use cellwright_run::{CodeSelection, ErrorPolicy, RunRequest};
use cellwright_session::{CallReport, CellStatus, KernelFate};

use self::marks::CheckMarks;
use self::replacements::TextReplacements;

/// Which outputs are compared, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum CheckMode {
    /// All, without addresses, temporary paths and measured times
    Usual,
    /// All, character by character
    Exact,
    /// Only those of cells marked `NBVAL_CHECK_OUTPUT`
    Lax,
}

/// How outputs are compared.
#[derive(Debug)]
pub(super) struct OutputCheck {
    mode: CheckMode,
    replacements: TextReplacements,
}

/// One notebook that is checked.
pub(super) struct NotebookCheck<'a> {
    rules: &'a OutputCheck,
    stored: Notebook,
    /// Where the run writes, so that the notebook stays as it is.
    folder: tempfile::TempDir,
}

/// A cell that does not show what it showed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CellDifference {
    pub(super) cell: usize,
    /// In one line.
    pub(super) summary: String,
    /// What differs: lines with `-` are stored, lines with `+` are new.
    pub(super) lines: String,
}

impl OutputCheck {
    /// Reads the file of replacements, if there is one.
    pub(super) fn new(mode: CheckMode, sanitize: Option<&Path>) -> anyhow::Result<Self> {
        let own = sanitize.map(|path| {
            let text = crate::commands::input(path)?;
            TextReplacements::parse(&text).with_context(|| format!("could not use {}", path.display()))
        });
        let mut replacements = own.transpose()?.unwrap_or_default();
        if mode != CheckMode::Exact {
            replacements.add_usual();
        }
        Ok(Self { mode, replacements })
    }

    /// Turns a run into one whose outputs are compared with those of its notebook. Blocks on files.
    pub(super) fn prepare(&self, request: &mut RunRequest) -> anyhow::Result<NotebookCheck<'_>> {
        let stored = file::read(&request.path)?;
        let folder = tempfile::tempdir().context("could not make a folder for the fresh outputs")?;
        let mut cells: Vec<_> = match &request.cells {
            CodeSelection::All => (0..stored.len()).collect(),
            CodeSelection::Cells(cells) => cells.resolve(&stored)?,
            CodeSelection::From(cell) => (stored.locate(cell)?..stored.len()).collect(),
        };
        cells.retain(|index| !CheckMarks::of(&stored.cell(*index)).is_skipped);
        let one = |index| CellSelection::one(CellRef::Index(index));
        request.cells = CodeSelection::Cells(cells.into_iter().map(one).collect());
        request.output = Some(folder.path().join(request.path.file_name().unwrap_or_default()));
        // An exception is a difference, and those of later cells are of interest too.
        request.errors = ErrorPolicy::Allow;
        request.history = None;
        Ok(NotebookCheck { rules: self, stored, folder })
    }
}

impl NotebookCheck<'_> {
    /// What differs, by the file that the run wrote. Blocks on files.
    pub(super) fn differences(
        &self,
        file: &Path,
        report: &CallReport,
        cells: &[usize],
    ) -> anyhow::Result<Vec<CellDifference>> {
        debug_assert!(file.starts_with(self.folder.path()), "the notebook itself is not written");
        let fresh = file::read(file)?;
        let ran = report.cells.iter().zip(cells).filter(|(_, cell)| **cell < self.stored.len());
        let differences = ran.filter_map(|(report, cell)| {
            let raised = match &report.status {
                CellStatus::Error(exception) => Some(exception),
                CellStatus::Ok | CellStatus::Unknown => None,
                // What stopped it is reported anyway.
                _ => return None,
            };
            let (stored, fresh) = (self.stored.cell(*cell), fresh.cell(*cell));
            if let Some(exception) = raised.filter(|_| !CheckMarks::of(&stored).may_raise) {
                let summary = report.status.ending(KernelFate::Ends);
                return Some(CellDifference { cell: *cell, summary, lines: exception.traceback.join("\n") });
            }
            self.rules.difference(&stored, &fresh)
        });
        Ok(differences.collect())
    }
}

impl OutputCheck {
    /// How the fresh outputs of a cell differ from the stored ones, if they count and do.
    fn difference(&self, stored: &NotebookCell<'_>, fresh: &NotebookCell<'_>) -> Option<CellDifference> {
        let of = |summary: &str, lines| CellDifference {
            cell: stored.index(),
            summary: summary.to_owned(),
            lines,
        };
        let usual = self.mode != CheckMode::Lax;
        let outputs = stored.outputs();
        if stored.execution_count().is_none() && !outputs.is_empty() {
            return Some(of("has outputs, but no execution count: it was not run as a whole", String::new()));
        }
        let is_compared = CheckMarks::of(stored).is_compared.unwrap_or(usual);
        if !is_compared || stored.execution_count().is_none() || stored.kind() != CellKind::Code {
            return None;
        }
        let (old, new) = (self.parts(&outputs), self.parts(&fresh.outputs()));
        let names: std::collections::BTreeSet<_> = old.keys().chain(new.keys()).collect();
        let mut lines = String::new();
        for name in names {
            let (old, new) = (old.get(name), new.get(name));
            if old != new {
                let text =
                    |values: Option<&Vec<String>>| values.map(|values| values.join("\n")).unwrap_or_default();
                writeln!(lines, "{name}").expect("a String takes everything");
                lines.push_str(&line_diff(&text(old), &text(new)));
            }
        }
        (!lines.is_empty()).then(|| of("shows something else than what is stored", lines))
    }

    /// What counts of outputs: by stream, type or kind, each value in order. Streams are one text each.
    fn parts(&self, outputs: &[NotebookOutput<'_>]) -> BTreeMap<String, Vec<String>> {
        let mut parts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut streams: BTreeMap<String, String> = BTreeMap::new();
        let mut add =
            |name: String, text: &str| parts.entry(name).or_default().push(self.replacements.apply(text));
        for output in outputs {
            match output.kind() {
                OutputKind::Stream(name) => {
                    streams.entry(name).or_default().push_str(&output.stream_text().unwrap_or_default());
                }
                OutputKind::Error => add("error".to_owned(), &output.error_line()),
                OutputKind::Result | OutputKind::Display | OutputKind::Other(_) => {
                    for (mime, value) in output.bundle().iter().flat_map(cellwright_cell::MimeData::iter) {
                        // The ids of widgets are new in each run.
                        if mime != "application/vnd.jupyter.widget-view+json" {
                            let text = value.text().map_or_else(
                                || indented_json(value.json().text()),
                                std::borrow::Cow::into_owned,
                            );
                            add(mime.to_owned(), &text);
                        }
                    }
                    // Libraries draw the same picture with other bytes. That there is one is what counts.
                    for image in output.images() {
                        add(image.mime, "a picture");
                    }
                }
            }
        }
        for (name, text) in streams {
            let mut sink = OutputSink::new(OutputLimits::NONE, Colours::Dropped);
            sink.write(Stream::Stdout, text.as_bytes());
            add(name, &sink.finish().text);
        }
        parts
    }
}

/// The lines that differ, with what is around them.
fn line_diff(old: &str, new: &str) -> String {
    /// Lines around a change.
    const CONTEXT: usize = 2;
    const PATIENCE: Duration = Duration::from_millis(200);
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let mut out = String::new();
    let mut write = |mark: char, line: &str| {
        writeln!(out, "  {mark} {line}").expect("a String takes everything");
    };
    for (at, hunk) in line_hunks(&old, &new, CONTEXT, PATIENCE).into_iter().enumerate() {
        if at > 0 {
            write(' ', "…");
        }
        for run in hunk {
            if run.is_kept {
                old[run.old].iter().for_each(|line| write(' ', line));
            } else {
                old[run.old].iter().for_each(|line| write('-', line));
                new[run.new].iter().for_each(|line| write('+', line));
            }
        }
    }
    out
}

/// The file of the fresh outputs.
pub(super) fn written(kept: &cellwright_run::KeptResults) -> PathBuf {
    kept.side.as_ref().map_or_else(|| kept.path.clone(), |side| side.path.clone())
}
