//! For people: a line for each cell, and while one runs what it says last.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use cellwright_cell::{Output, OutputChange};
use cellwright_run::PlannedCell;
use cellwright_session::{CallEvent, CallReport, CellStatus, KernelFate};
use unicode_width::UnicodeWidthChar as _;

use super::{RunStyle, RunVerbosity};
use crate::draw::terminal::TerminalSize;

/// How often the last line is drawn while a cell prints.
const REDRAW: Duration = Duration::from_millis(50);

/// Columns of a label.
const LABEL: usize = 40;

/// Characters of what a cell printed last; no terminal is wider.
const LONGEST: usize = 400;

pub(super) struct ProgressLines {
    name: String,
    prefix: String,
    quiet: bool,
    /// A person looks, so a line may be drawn and erased.
    live: bool,
    kernel: KernelFate,
    /// The cell that runs, since when.
    running: Option<(usize, Instant)>,
    drawn: Option<Instant>,
    tail: String,
}

impl ProgressLines {
    pub(super) fn new(name: &str, style: RunStyle) -> Self {
        Self {
            name: name.to_owned(),
            prefix: if style.several { format!("{name}: ") } else { String::new() },
            quiet: style.verbosity == RunVerbosity::Failures,
            live: style.live && style.verbosity == RunVerbosity::Lines && io::stderr().is_terminal(),
            kernel: style.kernel,
            running: None,
            drawn: None,
            tail: String::new(),
        }
    }

    /// Time has passed.
    pub(super) fn tick(&mut self, cells: &[PlannedCell]) -> anyhow::Result<()> {
        self.drawn = None;
        self.draw(cells)
    }

    pub(super) fn event(&mut self, event: &CallEvent, cells: &[PlannedCell]) -> anyhow::Result<()> {
        match event {
            CallEvent::CellStarted { cell } => {
                (self.tail, self.drawn) = (String::new(), None);
                self.running = Some((*cell, Instant::now()));
                self.draw(cells)
            }
            CallEvent::Output { change: OutputChange::Added(Output::Text { text, .. }), .. } if self.live => {
                if let Some(line) = text.rsplit(['\n', '\r']).find(|line| !line.trim().is_empty()) {
                    self.tail = line.chars().filter(|c| !c.is_control()).take(LONGEST).collect();
                }
                self.draw(cells)
            }
            CallEvent::CellFinished(report) => {
                self.running = None;
                let how = match &report.status {
                    CellStatus::Error(exception) if report.may_raise => {
                        format!("raised {}, as it may", exception.name)
                    }
                    status => status.ending(self.kernel),
                };
                let seconds = report.duration.as_secs_f64();
                self.print_line(&format!("{} {how} ({seconds:.2} s)", heading(report.index, cells, LABEL)))
            }
            CallEvent::Notice(notice) => {
                let notice = notice.with_cells(|cell| cells[cell].index.to_string());
                self.print_line(&format!("note: {notice}"))
            }
            _ => Ok(()),
        }
    }

    /// What runs, for how long, and what it said last: on one line of the terminal, so that it can be erased.
    fn draw(&mut self, cells: &[PlannedCell]) -> anyhow::Result<()> {
        let Some((at, since)) = self.running else { return Ok(()) };
        if self.live && self.drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW) {
            self.drawn = Some(Instant::now());
            let seconds = since.elapsed().as_secs();
            let time = if seconds > 0 { format!("{seconds} s ") } else { String::new() };
            let columns = TerminalSize::on_stderr().unwrap_or_default().columns;
            // What it says last is the news: of a narrow terminal it gets a half.
            let label = LABEL.min(columns / 4);
            let line = format!("{} … {time}{}", heading(at, cells, label), self.tail);
            let line = format!("\r\x1b[K{}", fitting(&line, columns.saturating_sub(1)));
            io::stderr().lock().write_all(line.as_bytes())?;
        }
        Ok(())
    }

    /// A line that stays.
    pub(super) fn print_line(&mut self, text: &str) -> anyhow::Result<()> {
        if self.quiet { Ok(()) } else { self.error(text) }
    }

    /// A line that is shown in any case.
    pub(super) fn error(&mut self, text: &str) -> anyhow::Result<()> {
        let erase = if self.live { "\r\x1b[K" } else { "" };
        let line = format!("{erase}{}{}\n", self.prefix, text.trim_end());
        Ok(io::stderr().lock().write_all(line.as_bytes())?)
    }

    pub(super) fn end(
        &mut self,
        report: &CallReport,
        cells: &[PlannedCell],
        trouble: &[String],
    ) -> anyhow::Result<()> {
        let name = if self.prefix.is_empty() { format!("{}: ", self.name) } else { String::new() };
        if let Some(failed) = report.failed() {
            let planned = &cells[failed.index];
            let mut text = format!("{name}cell {} {}", planned.index, failed.status.ending(self.kernel));
            if let CellStatus::Error(exception) = &failed.status {
                let at = exception.line.and_then(|line| usize::try_from(line).ok()?.checked_sub(1));
                if let Some((at, source)) = at.and_then(|at| Some((at, planned.source.lines().nth(at)?))) {
                    text = format!("{text} in line {}:\n    {}", at + 1, source.trim());
                }
                text = format!("{text}\n{}", exception.traceback.join("\n"));
            }
            self.error(&text)?;
        }
        for line in trouble {
            self.error(line)?;
        }
        let done = report.cells.iter().filter(|cell| cell.succeeded()).count();
        let seconds = report.duration.as_secs_f64();
        let (of, noun) = match done {
            _ if !report.succeeded() => (format!(" of {}", cells.len()), "cells completed"),
            1 => (String::new(), "cell"),
            _ => (String::new(), "cells"),
        };
        self.print_line(&format!("{name}{done}{of} {noun} in {seconds:.2} s"))
    }
}

/// As much of a line as so many columns take.
fn fitting(line: &str, columns: usize) -> &str {
    let mut width = 0;
    let end = line.char_indices().find(|(_, character)| {
        width += character.width().unwrap_or(0);
        width > columns
    });
    let end = end.map_or(line.len(), |(at, _)| at);
    &line[..end]
}

/// `[3/12] cell 5  df.describe()`, with so many columns for the label.
fn heading(at: usize, cells: &[PlannedCell], columns: usize) -> String {
    let width = cells.len().to_string().len();
    let label: String = cells[at].label().chars().filter(|c| !c.is_control()).take(columns).collect();
    format!("[{:>width$}/{}] cell {:<3} {label:<columns$}", at + 1, cells.len(), cells[at].index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_takes_the_columns_it_is_given() {
        let cell = PlannedCell { index: 4, id: None, source: "numbers = range(100)".to_owned() };
        assert_eq!(heading(0, std::slice::from_ref(&cell), 10), "[1/1] cell 4   numbers = ");
        assert_eq!(heading(0, &[cell], 24), "[1/1] cell 4   numbers = range(100)    ");
    }

    #[test]
    fn a_line_is_cut_to_the_columns_its_characters_take() {
        assert_eq!(fitting("plain", 10), "plain");
        assert_eq!(fitting("plain", 3), "pla");
        assert_eq!(fitting("表計算", 5), "表計");
        assert_eq!(fitting("any", 0), "");
    }
}
