//! What is shown of a notebook while it runs, and afterwards.

mod board;
mod junit;
mod lines;

use std::time::{Duration, Instant};

use cellwright_run::{FinishedRun, MeanwhileChange, PlannedCell, RunNote, RunPlan, RunRequest};
use cellwright_session::{CallEvent, CallReport, CellReport, CellStatus, KernelFate, NotRun};
use serde_json::{Value, json};

pub(super) use board::{BoardSeat, RunBoard};
pub(super) use junit::junit;

use self::lines::ProgressLines;
use super::check::CellDifference;
use crate::draw::look::LookArguments;
use crate::draw::style::TextStyle;
use crate::exit::one_line;
use crate::print;
use crate::render::{
    self, CallRender as _, CellHeadings, CellLook, CellRender, FullOutputs, PreviewLines, StatusMark,
};

/// How runs are shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunStyle {
    pub(super) verbosity: RunVerbosity,
    /// There are several notebooks: say which.
    pub(super) several: bool,
    /// One runs at a time, so a person can watch it.
    pub(super) live: bool,
    /// What becomes of the kernels afterwards.
    pub(super) kernel: KernelFate,
    /// How cells are drawn. `None` if there is no terminal to draw them on.
    pub(super) drawing: Option<DrawnRun>,
}

/// How the cells of a notebook are drawn while it runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DrawnRun {
    pub(crate) look: LookArguments,
    pub(crate) preview: PreviewLines,
    /// Their code is shown too.
    pub(crate) echo: bool,
}

/// What is shown of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunVerbosity {
    /// Every event, for programs.
    Json,
    /// A line for each cell.
    Lines,
    /// What failed.
    Failures,
}

/// Tells of one notebook.
pub(super) struct RunDisplay {
    name: String,
    style: RunStyle,
    cells: Vec<PlannedCell>,
    /// The cells that are tagged not to run.
    skipped: Vec<PlannedCell>,
    /// What helps if there is no such kernel as the notebook names.
    advice: Option<&'static str>,
    lines: ProgressLines,
    drawn: RunDrawing,
    /// The notebook that has the outputs.
    written: String,
    suite: TestSuite,
    /// The cells that do not show what is stored, if that is checked.
    differences: Option<Vec<CellDifference>>,
}

/// What is drawn of a notebook at a terminal.
enum RunDrawing {
    /// Nothing: its lines are printed.
    None,
    /// Its cells, from the time on that they are known.
    Cells(Option<Box<CellRender>>),
    /// A line among those of others.
    Seat(BoardSeat),
}

/// The result of a run, as a test suite.
#[derive(Debug, Default)]
pub(super) struct TestSuite {
    pub(super) name: String,
    pub(super) duration: Duration,
    pub(super) cases: Vec<TestCase>,
    /// Whether a page about it was written.
    pub(super) has_page: bool,
}

#[derive(Debug)]
pub(super) struct TestCase {
    /// Its cell's place in the notebook.
    pub(super) index: usize,
    name: String,
    duration: Duration,
    pub(super) end: CaseResult,
}

#[derive(Debug)]
pub(super) enum CaseResult {
    Passed,
    Skipped(String),
    Failed {
        message: String,
        details: String,
    },
    /// It shows something else than what is stored.
    Differs {
        message: String,
        lines: String,
    },
}

impl TestSuite {
    /// The first cell that failed, and in words what is wrong with it: the last line of a traceback says it best.
    pub(super) fn failed(&self) -> Option<(usize, &str)> {
        self.cases.iter().find_map(|case| match &case.end {
            CaseResult::Failed { message, details } => {
                let last = details.lines().rev().find(|line| !line.trim().is_empty());
                Some((case.index, last.filter(|_| message.starts_with("raised ")).unwrap_or(message)))
            }
            CaseResult::Differs { message, .. } => Some((case.index, message)),
            CaseResult::Passed | CaseResult::Skipped(_) => None,
        })
    }
}

impl RunDisplay {
    pub(super) fn new(request: &RunRequest, style: RunStyle, seat: Option<BoardSeat>) -> Self {
        let name = request.path.display().to_string();
        let written = request.output.as_ref().unwrap_or(&request.path).display().to_string();
        let drawn = match (seat, style.drawing) {
            (Some(seat), _) => RunDrawing::Seat(seat),
            (None, Some(_)) => RunDrawing::Cells(None),
            (None, None) => RunDrawing::None,
        };
        let suite = TestSuite { name: name.clone(), ..TestSuite::default() };
        Self {
            lines: ProgressLines::new(&name, style),
            name,
            style,
            cells: Vec::new(),
            skipped: Vec::new(),
            advice: None,
            drawn,
            written,
            suite,
            differences: None,
        }
    }

    pub(super) fn into_suite(self) -> TestSuite {
        self.suite
    }

    /// What was found so far, for a page about it.
    pub(super) fn suite(&mut self) -> &mut TestSuite {
        &mut self.suite
    }

    /// The cells that will run, by their places in the notebook.
    pub(super) fn indices(&self) -> Vec<usize> {
        self.cells.iter().map(|cell| cell.index).collect()
    }

    /// The outputs were compared with the stored ones.
    pub(super) fn checked(&mut self, differences: Vec<CellDifference>) {
        self.differences = Some(differences);
    }

    /// The run can begin.
    pub(super) fn plan(&mut self, plan: &RunPlan) -> anyhow::Result<()> {
        self.cells = plan.cells().to_vec();
        self.skipped = plan.skipped();
        if self.style.verbosity == RunVerbosity::Json {
            let cells = self.cells.iter().map(|cell| json!({ "cell": cell.index, "id": cell.id }));
            let cells: Vec<_> = cells.collect();
            self.json(json!({ "event": "started", "cells": cells, "total_cells": plan.total() }))?;
        }
        self.draw_cells(plan)
    }

    fn draw_cells(&mut self, plan: &RunPlan) -> anyhow::Result<()> {
        match (&mut self.drawn, self.style.drawing) {
            (RunDrawing::Seat(seat), _) => seat.plan(self.cells.len()),
            (RunDrawing::Cells(drawn), Some(DrawnRun { look, preview, echo })) => {
                let cells = self.cells.iter().map(|cell| cell.index).collect();
                // Outputs are in the notebook, whole.
                let full = FullOutputs::Notebook { path: self.written.clone(), cells };
                let mut look = CellLook::new(look, preview, full);
                look.language = plan.notebook().language().unwrap_or_else(|| "python".to_owned());
                let headings = self.cells.iter().map(|cell| (cell.index, cell.label().to_owned()));
                let mut headings = CellHeadings::of_notebook(headings);
                headings.code = echo.then(|| self.cells.iter().map(|cell| cell.source.clone()).collect());
                *drawn = Some(Box::new(CellRender::at_terminal(look, headings, self.style.kernel)));
                Ok(())
            }
            (RunDrawing::None | RunDrawing::Cells(_), _) => Ok(()),
        }
    }

    /// When [`RunDisplay::tick`] is to be called, if nothing happens before.
    pub(super) fn due(&self) -> Option<Instant> {
        match &self.drawn {
            RunDrawing::Cells(Some(cells)) => cells.due(),
            RunDrawing::Seat(seat) => Some(seat.due()),
            RunDrawing::None | RunDrawing::Cells(None) => None,
        }
    }

    /// A line that stays.
    fn print_line(&mut self, text: &str) -> anyhow::Result<()> {
        match &mut self.drawn {
            RunDrawing::Cells(Some(cells)) => cells.note(text),
            RunDrawing::Seat(seat) => seat.note(text, TextStyle::DIM),
            RunDrawing::None | RunDrawing::Cells(None) => self.lines.print_line(text),
        }
    }

    /// A line that is shown in any case.
    fn error(&mut self, text: &str) -> anyhow::Result<()> {
        match &mut self.drawn {
            RunDrawing::Cells(Some(cells)) => cells.warn(text),
            RunDrawing::Seat(seat) => seat.note(text, TextStyle::RED),
            RunDrawing::None | RunDrawing::Cells(None) => self.lines.error(text),
        }
    }

    pub(super) fn event(&mut self, event: &CallEvent) -> anyhow::Result<()> {
        if self.style.verbosity == RunVerbosity::Json {
            let mut line = render::event_json(event);
            if let CallEvent::Notice(notice) = event {
                let cells = &self.cells;
                line["text"] = notice.with_cells(|cell| cells[cell].index.to_string()).to_string().into();
            }
            if let Some(cell) =
                line.get("cell").and_then(Value::as_u64).and_then(|cell| usize::try_from(cell).ok())
            {
                line["cell"] = self.cells[cell].index.into();
                line["id"] = self.cells[cell].id.clone().into();
            }
            return self.json(line);
        }
        match &mut self.drawn {
            RunDrawing::Cells(Some(cells)) => cells.event(event),
            RunDrawing::Seat(seat) => {
                if let CallEvent::Notice(notice) = event {
                    let notice = notice.with_cells(|cell| self.cells[cell].index.to_string());
                    return seat.note(&format!("note: {notice}"), TextStyle::DIM);
                }
                seat.event(event, |cell| self.cells[cell].label().to_owned())
            }
            RunDrawing::None | RunDrawing::Cells(None) => self.lines.event(event, &self.cells),
        }
    }

    /// Time has passed.
    pub(super) fn tick(&mut self) -> anyhow::Result<()> {
        match &mut self.drawn {
            RunDrawing::Cells(Some(cells)) => cells.tick(),
            RunDrawing::Seat(seat) => seat.tick(),
            RunDrawing::None | RunDrawing::Cells(None) => self.lines.tick(&self.cells),
        }
    }

    /// Others changed a cell before its turn.
    pub(super) fn changed(&mut self, at: usize, change: &MeanwhileChange) -> anyhow::Result<()> {
        let cell = &mut self.cells[at];
        let (how, consequence) = match change {
            MeanwhileChange::Edited(source) => {
                cell.source.clone_from(source);
                ("edited", "what it says now is run")
            }
            MeanwhileChange::Removed => ("removed", "it is not run"),
        };
        let index = cell.index;
        if self.style.verbosity == RunVerbosity::Json {
            let id = cell.id.clone();
            return self.json(json!({ "event": "cell_changed", "cell": index, "id": id, "how": how }));
        }
        self.print_line(&format!("note: cell {index} was {how} by others before its turn: {consequence}"))
    }

    /// What these cells left is in the file.
    pub(super) fn saved(&mut self, cells: &[usize]) -> anyhow::Result<()> {
        if self.style.verbosity == RunVerbosity::Json {
            let cells: Vec<_> = cells.iter().map(|cell| self.cells[*cell].index).collect();
            self.json(json!({ "event": "saved", "cells": cells }))?;
        }
        Ok(())
    }

    /// Outputs could not be saved. They are kept, and tried again with the next.
    pub(super) fn not_saved(&mut self, why: &str) -> anyhow::Result<()> {
        if self.style.verbosity == RunVerbosity::Json {
            return self.json(json!({ "event": "not_saved", "why": why }));
        }
        self.error(&format!("warning: the outputs could not be saved, which is tried again: {why}"))
    }

    /// Nothing had to be run.
    pub(super) fn end_without_cells(&mut self, notes: &[RunNote]) -> anyhow::Result<()> {
        self.collect_skipped();
        if self.style.verbosity == RunVerbosity::Json {
            let notes: Vec<_> = notes.iter().map(ToString::to_string).collect();
            let line = json!({ "event": "finished", "ok": true, "failed_cell": null, "notes": notes });
            return self.json(line);
        }
        self.notes(notes)?;
        match &self.drawn {
            RunDrawing::Seat(seat) => seat.finish(&StatusMark::Ok(Duration::ZERO), "no cell to run", None),
            RunDrawing::None | RunDrawing::Cells(_) => self.print_line("no cell to run"),
        }
    }

    fn notes(&mut self, notes: &[RunNote]) -> anyhow::Result<()> {
        notes.iter().try_for_each(|note| {
            // Lost outputs are shown even with `--quiet`.
            if note.is_loss() {
                self.error(&format!("warning: {note}"))
            } else {
                self.print_line(&format!("note: {note}"))
            }
        })
    }

    /// It is over. Has the reason if what it ran with could not be recorded.
    pub(super) fn end(&mut self, finished: &FinishedRun, unrecorded: Option<&str>) -> anyhow::Result<()> {
        let FinishedRun { report, kept, saved, .. } = finished;
        if !saved.is_empty() {
            self.saved(saved)?;
        }
        self.collect(report);
        let mut trouble: Vec<String> =
            report.error.iter().map(|error| self.advised(one_line(error))).collect();
        if let Some(side) = &kept.side {
            trouble.push(format!(
                "{}, so the outputs were not written into the notebook; they are in {}",
                side.why,
                side.path.display()
            ));
        }
        trouble.extend(
            kept.failed.iter().map(|error| format!("the outputs were not saved: {}", one_line(error))),
        );
        trouble.extend(unrecorded.map(str::to_owned));
        let differences = self.differences.take();
        let differing = differences.as_deref().unwrap_or_default();
        if self.style.verbosity == RunVerbosity::Json {
            for CellDifference { cell, summary, lines } in differing {
                self.json(
                    json!({ "event": "difference", "cell": cell, "summary": summary, "lines": lines }),
                )?;
            }
            let failed = report.failed().map(|cell| self.cells[cell.index].index);
            return self.json(json!({
                "event": "finished",
                "ok": report.succeeded() && differing.is_empty() && kept.failed.is_none() && kept.side.is_none() && unrecorded.is_none(),
                "failed_cell": failed,
                "error": trouble.first(),
                "merged": kept.merged,
                "in_place": kept.in_place,
                "side_file": kept.side.as_ref().map(|side| &side.path),
                "notes": kept.notes.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "seconds": report.duration.as_secs_f64(),
            }));
        }
        if kept.in_place {
            self.print_line(
                "note: the notebook was written in place: it cannot be replaced by a renamed file",
            )?;
        }
        self.notes(&kept.notes)?;
        for CellDifference { cell, summary, lines } in differing {
            self.error(&format!("cell {cell} {summary}\n{lines}"))?;
        }
        match &mut self.drawn {
            RunDrawing::Cells(Some(cells)) => {
                let wrong: Vec<_> = cells.failure(report).into_iter().chain(trouble).collect();
                cells.conclude(report, &wrong)?;
            }
            RunDrawing::Seat(seat) => {
                let seat = seat.clone();
                self.finish_seat(&seat, report, &trouble)?;
            }
            RunDrawing::None | RunDrawing::Cells(None) => {
                self.lines.end(report, &self.cells, &trouble)?;
            }
        }
        if differences.is_none() {
            return Ok(());
        }
        self.print_line(&match differing.len() {
            0 => "the outputs are those that are stored".to_owned(),
            count => format!(
                "{} not show what is stored",
                if count == 1 { "1 cell does".to_owned() } else { format!("{count} cells do") }
            ),
        })
    }

    fn finish_seat(
        &mut self,
        seat: &BoardSeat,
        report: &CallReport,
        trouble: &[String],
    ) -> anyhow::Result<()> {
        let done = report.cells.iter().filter(|cell| cell.succeeded()).count();
        let (mark, summary, traceback) = if let Some(failed) = report.failed() {
            let index = self.cells[failed.index].index;
            let how = format!("cell {index} {}", failed.status.ending(self.style.kernel));
            (StatusMark::Failed(report.duration, how), String::new(), Some(details(failed)))
        } else {
            let mark = if report.succeeded() && trouble.is_empty() {
                StatusMark::Ok(report.duration)
            } else {
                StatusMark::Failed(report.duration, String::new())
            };
            (mark, format!("{done} of {} cells", self.cells.len()), None)
        };
        seat.finish(&mark, &summary, traceback.as_deref())?;
        trouble.iter().try_for_each(|line| seat.note(line, TextStyle::RED))
    }

    /// It could not be run.
    pub(super) fn failed(&mut self, why: &str) {
        let end = CaseResult::Failed { message: why.to_owned(), details: String::new() };
        self.suite.cases.push(TestCase {
            index: 0,
            name: "the notebook".to_owned(),
            duration: Duration::ZERO,
            end,
        });
        let printed = if self.style.verbosity == RunVerbosity::Json {
            self.json(json!({ "event": "finished", "ok": false, "error": why }))
        } else if let RunDrawing::Seat(seat) = &self.drawn {
            seat.finish(&StatusMark::Failed(Duration::ZERO, why.to_owned()), "", None)
        } else {
            self.error(&format!("error: {why}"))
        };
        drop(printed); // the reader of our output has gone
    }

    fn json(&self, mut line: Value) -> anyhow::Result<()> {
        if self.style.several {
            line["notebook"] = self.name.as_str().into();
        }
        print::json(&line)
    }

    fn collect(&mut self, report: &CallReport) {
        self.suite.duration = report.duration;
        for (cell, planned) in report.cells.iter().zip(&self.cells) {
            let name = format!("cell {}: {}", planned.index, planned.label());
            let differs = self.differences.iter().flatten().find(|it| it.cell == planned.index);
            let end = match &cell.status {
                _ if differs.is_some() => {
                    let CellDifference { summary, lines, .. } = differs.expect("it was looked at");
                    CaseResult::Differs { message: summary.clone(), lines: lines.clone() }
                }
                _ if cell.succeeded() => CaseResult::Passed,
                CellStatus::NotRun(NotRun::AfterFailure) => {
                    CaseResult::Skipped("an earlier cell failed".to_owned())
                }
                CellStatus::NotRun(NotRun::Withdrawn) => {
                    CaseResult::Skipped("others removed it before its turn".to_owned())
                }
                CellStatus::NotRun(NotRun::Stopped) => CaseResult::Skipped("the run was stopped".to_owned()),
                CellStatus::NotRun(NotRun::Error) => CaseResult::Failed {
                    message: report.error.as_ref().map(|error| one_line(error)).unwrap_or_default(),
                    details: String::new(),
                },
                _ => CaseResult::Failed {
                    message: cell.status.ending(self.style.kernel),
                    details: details(cell),
                },
            };
            self.suite.cases.push(TestCase { index: planned.index, name, duration: cell.duration, end });
        }
        self.collect_skipped();
    }

    fn collect_skipped(&mut self) {
        let cases = self.skipped.iter().map(|skipped| TestCase {
            index: skipped.index,
            name: format!("cell {}: {}", skipped.index, skipped.label()),
            duration: Duration::ZERO,
            end: CaseResult::Skipped("it is tagged `skip-execution`".to_owned()),
        });
        self.suite.cases.extend(cases);
        self.suite.cases.sort_by_key(|case| case.index);
    }

    /// What to advise if there is no such kernel as the notebook names.
    pub(super) fn advise(&mut self, advice: Option<&'static str>) {
        self.advice = advice;
    }

    /// An error, with what helps.
    pub(super) fn advised(&self, error: String) -> String {
        match self.advice {
            Some(advice) if error.contains("no kernel named `") => format!("{error}; {advice}"),
            Some(_) | None => error,
        }
    }
}

fn details(cell: &CellReport) -> String {
    match &cell.status {
        CellStatus::Error(exception) => exception.traceback.join("\n"),
        _ => cell.output.text.text.clone(),
    }
}
