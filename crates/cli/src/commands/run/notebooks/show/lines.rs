//! For people: a line for each cell, and while one runs what it says last.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use cellwright_kernel::Output;
use cellwright_run::PlannedCell;
use cellwright_session::{CallEvent, CallReport, CellStatus, OutputChange};

use super::{Style, Told};
use crate::render;

/// How often the last line is drawn while a cell prints.
const REDRAW: Duration = Duration::from_millis(50);

/// Columns of a label.
const LABEL: usize = 40;

pub(super) struct Lines {
    name: String,
    prefix: String,
    quiet: bool,
    /// A person looks, so a line may be drawn and erased.
    live: bool,
    drawn: Option<Instant>,
    tail: String,
}

impl Lines {
    pub(super) fn new(name: &str, style: Style) -> Self {
        Self {
            name: name.to_owned(),
            prefix: if style.several { format!("{name}: ") } else { String::new() },
            quiet: style.told == Told::Failures,
            live: style.live && style.told == Told::Lines && io::stderr().is_terminal(),
            drawn: None,
            tail: String::new(),
        }
    }

    pub(super) fn event(&mut self, event: &CallEvent, cells: &[PlannedCell]) -> anyhow::Result<()> {
        match event {
            CallEvent::CellStarted { cell } => {
                (self.tail, self.drawn) = (String::new(), None);
                self.draw(*cell, cells)
            }
            CallEvent::Output { cell, change: OutputChange::Added(Output::Text { text, .. }) }
                if self.live =>
            {
                if let Some(line) = text.rsplit(['\n', '\r']).find(|line| !line.trim().is_empty()) {
                    self.tail = line.chars().filter(|c| !c.is_control()).take(LABEL).collect();
                }
                self.draw(*cell, cells)
            }
            CallEvent::CellFinished(report) => {
                let how = match &report.status {
                    CellStatus::Error(exception) if report.may_raise => {
                        format!("raised {}, as it may", exception.name)
                    }
                    status => render::how_it_ended(status),
                };
                let seconds = report.duration.as_secs_f64();
                self.told(&format!("{} {how} ({seconds:.2} s)", heading(report.index, cells)))
            }
            CallEvent::Notice(notice) => self.told(&format!("note: {notice}")),
            _ => Ok(()),
        }
    }

    fn draw(&mut self, at: usize, cells: &[PlannedCell]) -> anyhow::Result<()> {
        if self.live && self.drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW) {
            self.drawn = Some(Instant::now());
            let line = format!("\r\x1b[K{} … {}", heading(at, cells), self.tail);
            io::stderr().lock().write_all(line.as_bytes())?;
        }
        Ok(())
    }

    /// A line that stays.
    pub(super) fn told(&mut self, text: &str) -> anyhow::Result<()> {
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
            let mut text = format!("{name}cell {} {}", planned.index, render::how_it_ended(&failed.status));
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
        self.told(&format!("{name}{done}{of} {noun} in {seconds:.2} s"))
    }
}

/// `[3/12] cell 5  df.describe()`
fn heading(at: usize, cells: &[PlannedCell]) -> String {
    let width = cells.len().to_string().len();
    let label: String = cells[at].label().chars().filter(|c| !c.is_control()).take(LABEL).collect();
    format!("[{:>width$}/{}] cell {:<3} {label:<LABEL$}", at + 1, cells.len(), cells[at].index)
}
