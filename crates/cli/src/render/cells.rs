//! Cells at a terminal: each with a line that says how it goes, and what it shows below, drawn again while it runs.
//!
//! What a cell shows may change until the cell is over: bars grow, displays are updated, `clear_output` takes everything
//! away. So it is drawn at the end of the screen, at most thirty times a second, and goes up and stays once the cell is
//! over. A cell that shows more than the screen has room for leaves its first outputs behind earlier.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cellwright_cell::{MimeBundle, Output, OutputChange, Stream};
use cellwright_output::{Counted, Display, visible};
use cellwright_session::{CallEvent, CallReport, CellStatus, KernelFate};

use super::block::{CellBlock, DisplayedBlock, PrintedBlock, StatusSection};
use super::preview::{CellLook, PreviewLines};
use super::shown::{self, DrawRoom, DrawState};
use super::status::{CellHeading, StatusMark, seconds};
use super::{CallRender, closing};
use crate::draw::code;
use crate::draw::screen::{LiveRow, LiveScreen};
use crate::draw::style::TextStyle;
use crate::draw::terminal::TerminalSize;
use crate::draw::wrap::{clipped, wrapped_line};
use crate::exit::PythonExit;

/// The time between two frames: thirty a second.
const FRAME: Duration = Duration::from_nanos(1_000_000_000 / 30);

/// The time between two frames in which only the clock goes on.
const CLOCK: Duration = Duration::from_millis(100);

/// A cell alone shows how long it has run only after this.
const SHORT: Duration = Duration::from_secs(1);

/// Cells that are shown before their turn.
const PENDING: usize = 3;

/// Cells that are named one by one when they were not run.
const UNRUN: usize = 5;

/// Values that a cell shows as they are; more of them are printed as text.
const MOST_DISPLAYED: usize = 200;

/// Columns before what a cell shows, below its heading.
const INDENT: &str = "  ";

/// Lines that are drawn at once, where all are shown.
const MOST_WAITING: usize = 2_000;

/// Draws the cells of a call.
pub(crate) struct CellRender<W: Write = io::Stdout> {
    screen: LiveScreen<W>,
    terminal: Box<dyn Fn() -> TerminalSize + Send>,
    look: CellLook,
    headings: CellHeadings,
    kernel: KernelFate,
    /// The cell that runs, or outputs of earlier ones that come when none does.
    open: Option<OpenCell>,
    /// Rows that stay, and wait for the next frame.
    settled: Vec<LiveRow>,
    /// Cells whose turn has not come.
    pending: VecDeque<usize>,
    began: Instant,
    drawn: Option<Instant>,
    is_dirty: bool,
    is_paused: bool,
    awaited: AwaitedNext,
}

/// What a call waits for when no cell runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AwaitedNext {
    /// A kernel: no cell has begun.
    Kernel,
    /// Its next cell, or its end.
    Cells,
    /// It is over.
    Nothing,
}

/// Which cells there are.
pub(crate) struct CellHeadings {
    /// What each is called.
    pub(crate) titles: Vec<Option<String>>,
    /// What stands before the title: `2/5`. One cell alone has neither.
    pub(crate) places: Vec<String>,
    /// The numbers that a person knows the cells by.
    pub(crate) numbers: Vec<String>,
    /// Whether each cell has a line that says how it goes.
    pub(crate) are_shown: bool,
    /// Their code, if it is shown.
    pub(crate) code: Option<Vec<String>>,
}

impl CellHeadings {
    /// The cells of a call, counted.
    pub(crate) fn counted(titles: Vec<Option<String>>) -> Self {
        let count = titles.len();
        let width = count.to_string().len();
        let places = if count > 1 {
            (1..=count).map(|at| format!("{at:>width$}/{count}")).collect()
        } else {
            vec![String::new()]
        };
        let numbers = (1..=count).map(|at| at.to_string()).collect();
        Self { titles, places, numbers, are_shown: count > 1, code: None }
    }

    /// The cells of a notebook: their indices there, and how they begin.
    pub(crate) fn of_notebook(cells: impl Iterator<Item = (usize, String)>) -> Self {
        let (numbers, titles): (Vec<_>, Vec<_>) =
            cells.map(|(index, label)| (index.to_string(), Some(label))).unzip();
        let (count, width) = (titles.len(), titles.len().to_string().len());
        let longest = numbers.iter().map(String::len).max().unwrap_or(0);
        let place =
            |(at, number): (usize, &String)| format!("{:>width$}/{count} cell {number:<longest$}", at + 1);
        let places = numbers.iter().enumerate().map(place).collect();
        Self { titles, places, numbers, are_shown: true, code: None }
    }

    fn of(&self, cell: usize) -> CellHeading<'_> {
        CellHeading {
            place: self.places.get(cell).map_or("", String::as_str),
            title: self.titles.get(cell).and_then(Option::as_deref).unwrap_or_default(),
        }
    }
}

struct OpenCell {
    /// `None` for outputs of earlier cells.
    cell: Option<usize>,
    since: Instant,
    blocks: Vec<CellBlock>,
    status: StatusSection,
    /// Its heading stays above already.
    is_begun: bool,
    /// Everything goes when the next output comes.
    clears_next: bool,
    displayed: usize,
}

impl OpenCell {
    fn new(cell: Option<usize>) -> Self {
        Self {
            cell,
            since: Instant::now(),
            blocks: Vec::new(),
            status: StatusSection::default(),
            is_begun: cell.is_none(),
            clears_next: false,
            displayed: 0,
        }
    }
}

impl CellRender {
    /// On the terminal of this process.
    pub(crate) fn at_terminal(look: CellLook, headings: CellHeadings, kernel: KernelFate) -> Self {
        let size = || TerminalSize::on_stdout().unwrap_or_default();
        Self::new(io::stdout(), Box::new(size), look, headings, kernel)
    }
}

impl<W: Write> CellRender<W> {
    pub(crate) fn new(
        out: W,
        terminal: Box<dyn Fn() -> TerminalSize + Send>,
        look: CellLook,
        headings: CellHeadings,
        kernel: KernelFate,
    ) -> Self {
        let pending = (0..headings.titles.len()).collect();
        Self {
            screen: LiveScreen::new(out),
            terminal,
            look,
            headings,
            kernel,
            open: None,
            settled: Vec::new(),
            pending,
            began: Instant::now(),
            drawn: None,
            is_dirty: true,
            is_paused: false,
            awaited: AwaitedNext::Kernel,
        }
    }

    /// A cell begins. What the one before left stays.
    pub(crate) fn begin(&mut self, cell: usize) -> anyhow::Result<()> {
        self.close_late();
        self.awaited = AwaitedNext::Cells;
        self.pending.retain(|pending| *pending > cell);
        self.open = Some(OpenCell::new(Some(cell)));
        self.refresh()
    }

    /// The cell that runs shows something; if none does, an earlier one.
    pub(crate) fn change(&mut self, change: &OutputChange) -> anyhow::Result<()> {
        self.apply(change);
        self.refresh()
    }

    /// The cell is over.
    pub(crate) fn finish(&mut self, cell: usize, mark: &StatusMark) -> anyhow::Result<()> {
        self.pending.retain(|pending| *pending != cell);
        let open = self.open.take().filter(|open| open.cell == Some(cell));
        let open = open.unwrap_or_else(|| OpenCell { since: Instant::now(), ..OpenCell::new(Some(cell)) });
        self.settle_cell(open, mark);
        self.draw()
    }

    /// A remark of ours, which stays.
    pub(crate) fn note(&mut self, text: &str) -> anyhow::Result<()> {
        match &mut self.open {
            Some(open) => open.blocks.push(CellBlock::Note(visible(text).into_owned())),
            None => self.settle_line(text, TextStyle::DIM),
        }
        self.refresh()
    }

    /// Lines that a person must see, at the end.
    pub(crate) fn warn(&mut self, text: &str) -> anyhow::Result<()> {
        self.settle_line(text, TextStyle::RED);
        self.draw()
    }

    /// All is over: nothing is waited for any more.
    pub(crate) fn close(&mut self) -> anyhow::Result<()> {
        self.close_late();
        self.awaited = AwaitedNext::Nothing;
        let unrun: Vec<_> = self.pending.drain(..).collect();
        self.unrun(&unrun, "not run");
        self.draw()
    }

    /// The call is over, and this went wrong beyond what its cells have shown.
    pub(crate) fn conclude(&mut self, report: &CallReport, wrong: &[String]) -> anyhow::Result<()> {
        self.close()?;
        for line in wrong {
            self.settle_line(line, TextStyle::RED);
        }
        if self.headings.are_shown {
            let (done, count) =
                (report.cells.iter().filter(|cell| cell.succeeded()).count(), report.cells.len());
            let of = if done == count { String::new() } else { format!(" of {count}") };
            let noun = if done == 1 && done == count { "cell" } else { "cells" };
            self.settle_line(&format!("{done}{of} {noun} · {}", seconds(report.duration)), TextStyle::DIM);
        }
        self.draw()
    }

    /// What a person calls the cell that ended a call, and how it ended.
    pub(crate) fn failure(&self, report: &CallReport) -> Option<String> {
        let name =
            |cell: usize| format!("cell {}", self.headings.numbers.get(cell).map_or("", String::as_str));
        closing::failure(report, report.failed()?, name, self.kernel)
    }

    /// Twice as many lines are shown where a person answers.
    pub(crate) fn make_interactive(&mut self) {
        if let PreviewLines::Collapsed(_) = self.look.preview {
            self.look.preview = PreviewLines::INTERACTIVE;
        }
    }

    fn apply(&mut self, change: &OutputChange) {
        let look = &self.look;
        let open = self.open.get_or_insert_with(|| OpenCell::new(None));
        match change {
            OutputChange::Cleared { wait: true } => open.clears_next = true,
            OutputChange::Cleared { wait: false } => open.blocks.clear(),
            OutputChange::Updated { display_id, content } => {
                let mut displayed = open.blocks.iter_mut().filter_map(|block| match block {
                    CellBlock::Displayed(displayed) => Some(displayed),
                    CellBlock::Printed(_) | CellBlock::Raised(_) | CellBlock::Note(_) => None,
                });
                // All of its places change.
                let found = displayed
                    .by_ref()
                    .filter_map(|block| block.update(display_id, content).then_some(()))
                    .count();
                if found == 0 {
                    // It went up with an earlier cell, where nothing can be changed: this is what it shows now.
                    Self::display(open, look, content, Some(display_id));
                }
            }
            OutputChange::Added(output) => {
                if std::mem::take(&mut open.clears_next) {
                    open.blocks.clear();
                }
                match output {
                    Output::Text { stream, text } => Self::print(open, look, *stream, text),
                    Output::Display { content, display_id } => {
                        Self::display(open, look, content, display_id.as_deref());
                    }
                    Output::Result { content, .. } => Self::display(open, look, content, None),
                    Output::Error(exception) => match PythonExit::of(exception) {
                        Some(exit) if self.kernel == KernelFate::Ends => {
                            let message = exit.message.map(|message| message + "\n");
                            Self::print(open, look, Stream::Stderr, message.as_deref().unwrap_or_default());
                        }
                        Some(_) | None => open.blocks.push(CellBlock::Raised(exception.clone())),
                    },
                }
            }
        }
    }

    fn print(open: &mut OpenCell, look: &CellLook, stream: Stream, text: &str) {
        if text.is_empty() {
            return;
        }
        if !matches!(open.blocks.last(), Some(CellBlock::Printed(_))) {
            open.blocks.push(CellBlock::Printed(Box::new(PrintedBlock::new(look))));
        }
        if let Some(CellBlock::Printed(printed)) = open.blocks.last_mut() {
            printed.print(stream, text, look);
        }
    }

    fn display(open: &mut OpenCell, look: &CellLook, content: &Arc<MimeBundle>, id: Option<&str>) {
        // Looked at without its image, which need not be decoded for this.
        if let Some(status) = Display::beside_image(&content.data, true).status {
            open.status.add(status.text());
            if !content.data.iter().any(|(mime, _)| mime.starts_with("text/") || mime.starts_with("image/")) {
                return;
            }
        }
        open.displayed += 1;
        if open.displayed > MOST_DISPLAYED && look.preview != PreviewLines::All {
            return Self::print(open, look, Stream::Stdout, &shown::text_of(content));
        }
        open.blocks.push(CellBlock::Displayed(DisplayedBlock::new(content, id)));
    }

    /// Outputs of earlier cells that came when none ran go up.
    fn close_late(&mut self) {
        if let Some(open) = self.open.take() {
            let mark = StatusMark::Ok(open.since.elapsed());
            self.settle_cell(open, &mark);
        }
    }

    fn room(&self, cell: Option<usize>, state: DrawState) -> DrawRoom {
        let terminal = (self.terminal)();
        let indent = if self.headings.are_shown && cell.is_some() { INDENT.len() } else { 0 };
        DrawRoom { terminal, columns: terminal.columns.saturating_sub(indent).max(1), indent, cell, state }
    }

    /// The rows of a cell that is over.
    fn settle_cell(&mut self, mut open: OpenCell, mark: &StatusMark) {
        let room = self.room(open.cell, DrawState::Settled);
        let has_heading = self.headings.are_shown && !open.is_begun;
        if has_heading && let Some(cell) = open.cell {
            let heading = self.heading(cell, mark, room.terminal);
            self.settled.push(heading);
            self.settle_code(cell, room);
        }
        for block in &mut open.blocks {
            let mut rows = block.complete_rows(&self.look, room);
            rows.extend(block.rows(&self.look, room));
            self.settled.extend(indented(rows, self.indent(open.cell)));
        }
        let status = open.status.rows(&self.look, room.columns);
        self.settled.extend(indented(status, self.indent(open.cell)));
        let Some(cell) = open.cell else { return };
        if self.headings.are_shown {
            if open.is_begun {
                let heading = self.heading(cell, mark, room.terminal);
                self.settled.push(heading);
            }
            return;
        }
        // A cell alone says how it went if that is not plain to see.
        let is_quick = match mark {
            StatusMark::Ok(took) => *took < SHORT,
            StatusMark::NotRun(_) | StatusMark::Waiting => true,
            _ => false,
        };
        if !is_quick {
            let heading =
                CellHeading { place: "", title: "" }.line(mark, room.terminal.columns, self.look.pen);
            self.settled.push(LiveRow::Text(heading));
        }
    }

    fn indent(&self, cell: Option<usize>) -> &'static str {
        if self.headings.are_shown && cell.is_some() { INDENT } else { "" }
    }

    fn heading(&self, cell: usize, mark: &StatusMark, terminal: TerminalSize) -> LiveRow {
        LiveRow::Text(self.headings.of(cell).line(mark, terminal.columns, self.look.pen))
    }

    /// The code of a cell, if it is shown, twice as long as an output.
    fn settle_code(&mut self, cell: usize, room: DrawRoom) {
        let rows = self.code(cell, room);
        self.settled.extend(rows);
    }

    fn code(&self, cell: usize, room: DrawRoom) -> Vec<LiveRow> {
        let Some(source) = self.headings.code.as_ref().and_then(|code| code.get(cell)) else {
            return Vec::new();
        };
        code_rows(source, &self.look, room.columns)
            .into_iter()
            .map(|row| LiveRow::Text(format!("{}{row}", self.indent(Some(cell)))))
            .collect()
    }

    fn settle_line(&mut self, text: &str, style: TextStyle) {
        let terminal = (self.terminal)();
        for line in visible(text.trim_end()).lines() {
            let painted = self.look.pen.paint(style, line).into_owned();
            self.settled.extend(wrapped_line(&painted, terminal.columns).into_iter().map(LiveRow::Text));
        }
    }

    /// Cells that were not run: each, if they are few.
    fn unrun(&mut self, cells: &[usize], why: &'static str) {
        if !self.headings.are_shown {
            return;
        }
        let terminal = (self.terminal)();
        let mark = StatusMark::NotRun(why);
        let named = if cells.len() > UNRUN { UNRUN - 1 } else { cells.len() };
        for cell in &cells[..named] {
            let heading = self.heading(*cell, &mark, terminal);
            self.settled.push(heading);
        }
        if named < cells.len() {
            let more = format!("○ {} {why}", Counted((cells.len() - named) as u64, "more cell"));
            self.settle_line(&more, TextStyle::DIM);
        }
    }

    /// Draws, now or soon.
    fn refresh(&mut self) -> anyhow::Result<()> {
        self.is_dirty = true;
        let is_waiting = self.open.as_ref().is_some_and(|open| {
            matches!(open.blocks.last(), Some(CellBlock::Printed(printed)) if printed.waiting() > MOST_WAITING)
        });
        if is_waiting || self.drawn.is_none_or(|drawn| drawn.elapsed() >= FRAME) {
            self.draw()
        } else {
            Ok(())
        }
    }

    /// Draws a frame.
    fn draw(&mut self) -> anyhow::Result<()> {
        if self.is_paused {
            return Ok(());
        }
        let terminal = (self.terminal)();
        let capacity = LiveScreen::<W>::capacity(terminal);
        self.let_go(terminal);
        let mut live = self.live_rows(terminal);
        while live.len() > capacity && self.leave_first_behind(terminal) {
            live = self.live_rows(terminal);
        }
        if live.len() > capacity {
            live.drain(..live.len() - capacity);
        }
        let mut rows = std::mem::take(&mut self.settled);
        let settled = rows.len();
        rows.extend(live);
        (self.drawn, self.is_dirty) = (Some(Instant::now()), false);
        Ok(self.screen.draw(rows, settled, terminal)?)
    }

    /// Where everything is shown, what cannot change any more goes up at once.
    fn let_go(&mut self, terminal: TerminalSize) {
        if self.look.preview != PreviewLines::All {
            return;
        }
        let Some(open) = &mut self.open else { return };
        let has_lines =
            matches!(open.blocks.last(), Some(CellBlock::Printed(printed)) if printed.waiting() > 0);
        let may_change =
            |block: &CellBlock| matches!(block, CellBlock::Displayed(displayed) if displayed.may_change());
        if !has_lines && (open.blocks.len() < 2 || open.blocks.iter().any(may_change)) {
            return;
        }
        while self.open.as_ref().is_some_and(|open| open.blocks.len() > 1) {
            self.leave_first_behind(terminal);
        }
        self.begin_heading(terminal);
        let (indent, room) = (self.open_indent(), self.room(self.open_cell(), DrawState::Settled));
        let look = &self.look;
        if let Some(block) = self.open.as_mut().and_then(|open| open.blocks.first_mut()) {
            let rows = block.complete_rows(look, room);
            self.settled.extend(indented(rows, indent));
        }
    }

    fn open_cell(&self) -> Option<usize> {
        self.open.as_ref().and_then(|open| open.cell)
    }

    fn open_indent(&self) -> &'static str {
        self.indent(self.open_cell())
    }

    /// The heading of the open cell stays from now on.
    fn begin_heading(&mut self, terminal: TerminalSize) {
        let Some(open) = self.open.as_mut().filter(|open| !open.is_begun) else { return };
        open.is_begun = true;
        if let (Some(cell), true) = (open.cell, self.headings.are_shown) {
            let heading = self.heading(cell, &StatusMark::Begun, terminal);
            self.settled.push(heading);
            self.settle_code(cell, self.room(Some(cell), DrawState::Settled));
        }
    }

    /// Leaves the first output of the open cell behind, for there is no room for all. Not the last one, which may still grow.
    fn leave_first_behind(&mut self, terminal: TerminalSize) -> bool {
        if self.open.as_ref().is_none_or(|open| open.blocks.len() < 2) {
            return false;
        }
        self.begin_heading(terminal);
        let (indent, room) = (self.open_indent(), self.room(self.open_cell(), DrawState::Settled));
        let Some(open) = &mut self.open else { return false };
        let mut block = open.blocks.remove(0);
        let mut rows = block.complete_rows(&self.look, room);
        rows.extend(block.rows(&self.look, room));
        self.settled.extend(indented(rows, indent));
        true
    }

    /// The rows that may change: the open cell, and the next ones.
    fn live_rows(&mut self, terminal: TerminalSize) -> Vec<LiveRow> {
        let mut rows = Vec::new();
        let (indent, room) = (self.open_indent(), self.room(self.open_cell(), DrawState::Live));
        let has_lines = self.headings.are_shown;
        let mut clock = None;
        if let Some(mut open) = self.open.take() {
            let elapsed = open.since.elapsed();
            let mark = StatusMark::Running(elapsed);
            if let Some(cell) = open.cell.filter(|_| has_lines && !open.is_begun) {
                rows.push(self.heading(cell, &mark, terminal));
                rows.extend(self.code(cell, room));
            }
            for block in &mut open.blocks {
                rows.extend(indented(block.rows(&self.look, room), indent));
            }
            rows.extend(indented(open.status.rows(&self.look, room.columns), indent));
            if let Some(cell) = open.cell {
                if has_lines && open.is_begun {
                    rows.push(self.heading(cell, &mark, terminal));
                } else if !has_lines && elapsed >= SHORT {
                    clock = Some((elapsed, ""));
                }
            }
            self.open = Some(open);
        } else if self.awaited == AwaitedNext::Kernel && self.began.elapsed() >= SHORT && self.drawn.is_some()
        {
            clock = Some((self.began.elapsed(), "waiting for the kernel"));
        }
        if let Some((elapsed, what)) = clock {
            let heading = CellHeading { place: "", title: what };
            rows.push(LiveRow::Text(heading.line(
                &StatusMark::Running(elapsed),
                terminal.columns,
                self.look.pen,
            )));
        }
        if has_lines && self.awaited != AwaitedNext::Nothing {
            rows.extend(self.pending_rows(terminal));
        }
        rows
    }

    fn pending_rows(&self, terminal: TerminalSize) -> Vec<LiveRow> {
        let shown = if self.pending.len() > PENDING { PENDING - 1 } else { self.pending.len() };
        let mut rows: Vec<_> = self
            .pending
            .iter()
            .take(shown)
            .map(|cell| self.heading(*cell, &StatusMark::Waiting, terminal))
            .collect();
        let left = self.pending.len() - shown;
        if left > 0 {
            rows.push(LiveRow::Text(self.look.note(&format!("○ {}", Counted(left as u64, "more cell")))));
        }
        rows
    }
}

/// Rows of code in colours, within twice the lines of an output.
pub(crate) fn code_rows(source: &str, look: &CellLook, columns: usize) -> Vec<String> {
    let source = visible(source);
    let source = source.trim_matches('\n');
    let coloured = code::coloured(source, &look.language, look.pen).unwrap_or_else(|| source.to_owned());
    let lines: Vec<_> = coloured.split('\n').collect();
    let most = match look.preview.of_code() {
        PreviewLines::Collapsed(most) if lines.len() > most + 1 => most,
        PreviewLines::Collapsed(_) | PreviewLines::All => lines.len(),
    };
    let bar = look.note("│ ");
    let room = columns.saturating_sub(2).max(1);
    let mut rows: Vec<_> = lines[..most]
        .iter()
        .flat_map(|line| wrapped_line(line, room))
        .map(|line| format!("{bar}{line}"))
        .collect();
    if most < lines.len() {
        let note = format!("… {} of code", Counted((lines.len() - most) as u64, "more line"));
        rows.push(clipped(&look.note(&note), columns));
    }
    rows
}

fn indented(rows: Vec<LiveRow>, indent: &str) -> Vec<LiveRow> {
    if indent.is_empty() {
        return rows;
    }
    let shift = |row| match row {
        LiveRow::Text(text) if text.is_empty() => LiveRow::Text(text),
        LiveRow::Text(text) => LiveRow::Text(format!("{indent}{text}")),
        LiveRow::Picture(picture) => LiveRow::Picture(picture),
        LiveRow::Covered => LiveRow::Covered,
    };
    rows.into_iter().map(shift).collect()
}

impl<W: Write> CallRender for CellRender<W> {
    fn event(&mut self, event: &CallEvent) -> anyhow::Result<()> {
        match event {
            CallEvent::CellStarted { cell } => self.begin(*cell),
            CallEvent::Output { change, .. } | CallEvent::Late(change) => self.change(change),
            CallEvent::LateBefore(late) => {
                let text = Output::text(Stream::Stdout, late.collected.text.text.clone());
                match &late.changes {
                    Some(changes) => changes.iter().try_for_each(|change| self.change(change))?,
                    None => self.change(&OutputChange::Added(text))?,
                }
                self.close_late();
                self.refresh()
            }
            CallEvent::CellFinished(report) => {
                let mark = match &report.status {
                    CellStatus::Error(exception)
                        if self.kernel == KernelFate::Ends && PythonExit::of(exception).is_some() =>
                    {
                        StatusMark::Ok(report.duration)
                    }
                    status => StatusMark::of(status, report.duration, report.may_raise),
                };
                // Cells that were not run are named together, at the end.
                if matches!(mark, StatusMark::NotRun("not run")) {
                    Ok(())
                } else {
                    self.finish(report.index, &mark)
                }
            }
            CallEvent::Queued { behind } => {
                let calls =
                    if *behind == 1 { "another call".to_owned() } else { format!("{behind} other calls") };
                self.note(&format!("waiting for {calls} in this session"))
            }
            CallEvent::Notice(notice) => {
                let numbers = &self.headings.numbers;
                let text =
                    notice.with_cells(|cell| numbers.get(cell).cloned().unwrap_or_default()).to_string();
                self.note(&format!("note: {text}"))
            }
            CallEvent::KernelStarted(_)
            | CallEvent::Input { .. }
            | CallEvent::Comm { .. }
            | CallEvent::Turn { .. }
            | CallEvent::Stopping { .. } => Ok(()),
        }
    }

    fn end(&mut self, report: &CallReport) -> anyhow::Result<()> {
        let lines = closing::lines(report, &self.headings.titles, self.kernel);
        self.conclude(report, &lines)
    }

    fn due(&self) -> Option<Instant> {
        if self.is_paused || self.awaited == AwaitedNext::Nothing {
            return None;
        }
        let wait = if self.is_dirty { FRAME } else { CLOCK };
        Some(self.drawn.unwrap_or(self.began) + wait)
    }

    fn tick(&mut self) -> anyhow::Result<()> {
        self.draw()
    }

    fn pause(&mut self) -> anyhow::Result<()> {
        self.make_interactive();
        let terminal = (self.terminal)();
        self.begin_heading(terminal);
        let (indent, room) = (self.open_indent(), self.room(self.open_cell(), DrawState::Settled));
        if let Some(open) = &mut self.open {
            for mut block in std::mem::take(&mut open.blocks) {
                let mut rows = block.complete_rows(&self.look, room);
                rows.extend(block.rows(&self.look, room));
                self.settled.extend(indented(rows, indent));
            }
        }
        let rows = std::mem::take(&mut self.settled);
        let count = rows.len();
        self.screen.draw(rows, count, terminal)?;
        self.is_paused = true;
        Ok(())
    }

    fn resume(&mut self) -> anyhow::Result<()> {
        self.is_paused = false;
        self.screen.leave();
        self.refresh()
    }
}

#[cfg(test)]
mod tests;
