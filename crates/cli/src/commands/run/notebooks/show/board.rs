//! Several notebooks at a terminal: a line for each that runs, one for each that is over, and a total.

use std::io::{self, Stdout};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cellwright_cell::{Output, OutputChange};
use cellwright_output::{Counted, visible};
use cellwright_session::CallEvent;

use crate::draw::screen::{LiveRow, LiveScreen};
use crate::draw::style::{StyledText, TextPen, TextStyle, painted};
use crate::draw::terminal::TerminalSize;
use crate::draw::traceback;
use crate::draw::wrap::{clipped, wrapped_line};
use crate::render::{CellHeading, StatusMark, seconds};

/// The time between two frames.
const FRAME: Duration = Duration::from_millis(33);

/// The time between two frames in which only the clock goes on.
const CLOCK: Duration = Duration::from_millis(100);

/// Notebooks that run and have a line of their own.
const MOST_LINES: usize = 12;

/// Characters of what a cell printed last; no terminal is wider.
const LONGEST: usize = 400;

/// What is drawn of notebooks that run at the same time.
pub(crate) struct RunBoard {
    screen: LiveScreen<Stdout>,
    pen: TextPen,
    /// Those that run, in the order of their beginning.
    running: Vec<BoardLine>,
    settled: Vec<LiveRow>,
    total: usize,
    finished: usize,
    failed: usize,
    began: Instant,
    drawn: Option<Instant>,
}

struct BoardLine {
    name: String,
    since: Instant,
    cells: usize,
    done: usize,
    /// What the cell that runs begins with, or what it printed last.
    label: String,
}

/// The place of one notebook on the board.
#[derive(Clone)]
pub(crate) struct BoardSeat {
    board: Arc<Mutex<RunBoard>>,
    name: String,
}

impl RunBoard {
    pub(crate) fn new(pen: TextPen, total: usize) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self {
            screen: LiveScreen::new(io::stdout()),
            pen,
            running: Vec::new(),
            settled: Vec::new(),
            total,
            finished: 0,
            failed: 0,
            began: Instant::now(),
            drawn: None,
        }))
    }

    /// All are over.
    pub(crate) fn close(board: &Mutex<Self>) -> anyhow::Result<()> {
        let mut board = lock(board);
        let total = board.total_line();
        board.settled.push(LiveRow::Text(total));
        board.total = 0;
        board.draw()
    }

    fn total_line(&self) -> String {
        let mut text =
            vec![(TextStyle::PLAIN.bold(), format!("{} of {} notebooks", self.finished, self.total))];
        if !self.running.is_empty() {
            text.push((TextStyle::CYAN, format!(" · {} running", self.running.len())));
        }
        if self.failed > 0 {
            text.push((TextStyle::RED, format!(" · {} failed", self.failed)));
        }
        text.push((TextStyle::DIM, format!(" · {}", seconds(self.began.elapsed()))));
        painted(&text, self.pen)
    }

    fn draw(&mut self) -> anyhow::Result<()> {
        let terminal = TerminalSize::on_stdout().unwrap_or_default();
        let mut rows = std::mem::take(&mut self.settled);
        let settled = rows.len();
        let room = MOST_LINES.min(terminal.rows.saturating_sub(3)).max(1);
        let shown = if self.running.len() > room { room - 1 } else { self.running.len() };
        rows.extend(
            self.running[..shown].iter().map(|line| LiveRow::Text(self.line(line, terminal.columns))),
        );
        if shown < self.running.len() {
            let more = Counted((self.running.len() - shown) as u64, "more");
            let note = format!("  … {} running", more.to_string().trim_end_matches('s'));
            rows.push(LiveRow::Text(self.pen.paint(TextStyle::DIM, &note).into_owned()));
        }
        if self.total > 0 {
            rows.push(LiveRow::Text(clipped(&self.total_line(), terminal.columns)));
        }
        self.drawn = Some(Instant::now());
        Ok(self.screen.draw(rows, settled, terminal)?)
    }

    /// `⠹ report.ipynb  3/12  df.describe()  4.2 s`
    fn line(&self, line: &BoardLine, columns: usize) -> String {
        let elapsed = line.since.elapsed();
        let (style, symbol) = StatusMark::Running(elapsed).symbol();
        let mut pieces: StyledText = vec![
            (style, symbol.to_owned()),
            (TextStyle::PLAIN.bold(), format!(" {}", line.name)),
            (TextStyle::DIM, format!("  {}", seconds(elapsed))),
        ];
        if line.cells > 0 {
            pieces.push((TextStyle::CYAN, format!("  {}/{}", line.done, line.cells)));
        }
        pieces.push((TextStyle::DIM, format!("  {}", line.label)));
        clipped(&painted(&pieces, self.pen), columns)
    }

    fn refresh(&mut self) -> anyhow::Result<()> {
        if self.drawn.is_none_or(|drawn| drawn.elapsed() >= FRAME) { self.draw() } else { Ok(()) }
    }

    fn settle(&mut self, text: &str, style: TextStyle) {
        let columns = TerminalSize::on_stdout().unwrap_or_default().columns;
        for line in visible(text.trim_end()).lines() {
            let line = self.pen.paint(style, line).into_owned();
            self.settled.extend(wrapped_line(&line, columns).into_iter().map(LiveRow::Text));
        }
    }
}

impl BoardSeat {
    /// A notebook's turn has come.
    pub(crate) fn take(board: &Arc<Mutex<RunBoard>>, name: &str) -> Self {
        let name = visible(name).into_owned();
        let line =
            BoardLine { name: name.clone(), since: Instant::now(), cells: 0, done: 0, label: String::new() };
        lock(board).running.push(line);
        Self { board: Arc::clone(board), name }
    }

    /// It has these cells to run.
    pub(super) fn plan(&self, cells: usize) -> anyhow::Result<()> {
        self.with_line(|line| line.cells = cells)
    }

    /// Something happened; `label` is what a cell begins with.
    pub(super) fn event(&self, event: &CallEvent, label: impl Fn(usize) -> String) -> anyhow::Result<()> {
        match event {
            CallEvent::CellStarted { cell } => {
                let label = visible(&label(*cell)).into_owned();
                self.with_line(|line| line.label = label)
            }
            CallEvent::CellFinished(_) => self.with_line(|line| line.done += 1),
            CallEvent::Output { change: OutputChange::Added(Output::Text { text, .. }), .. } => {
                let last = text.rsplit(['\n', '\r']).find(|line| !line.trim().is_empty());
                let Some(last) = last else { return Ok(()) };
                let last = last.chars().filter(|c| !c.is_control()).take(LONGEST).collect::<String>();
                self.with_line(|line| line.label = visible(&last).into_owned())
            }
            CallEvent::Queued { .. }
            | CallEvent::KernelStarted(_)
            | CallEvent::LateBefore(_)
            | CallEvent::Late(_)
            | CallEvent::Turn { .. }
            | CallEvent::Output { .. }
            | CallEvent::Comm { .. }
            | CallEvent::Input { .. }
            | CallEvent::Stopping { .. }
            | CallEvent::Notice(_) => self.with_line(|_| ()),
        }
    }

    /// A line that stays, with the notebook's name before it.
    pub(super) fn note(&self, text: &str, style: TextStyle) -> anyhow::Result<()> {
        let mut board = lock(&self.board);
        board.settle(&format!("{}: {text}", self.name), style);
        board.refresh()
    }

    /// It is over. `wrong` is what went wrong, if something did, and the traceback to it.
    pub(super) fn finish(
        &self,
        mark: &StatusMark,
        summary: &str,
        traceback: Option<&str>,
    ) -> anyhow::Result<()> {
        let mut board = lock(&self.board);
        board.running.retain(|line| line.name != self.name);
        board.finished += 1;
        board.failed += usize::from(!matches!(mark, StatusMark::Ok(_)));
        let columns = TerminalSize::on_stdout().unwrap_or_default().columns;
        let heading = CellHeading { place: "", title: &self.name };
        let line = heading.line(mark, columns, board.pen);
        let gap = if summary.is_empty() { "" } else { "  " };
        let summary = board.pen.paint(TextStyle::DIM, &format!("{gap}{}", visible(summary))).into_owned();
        board
            .settled
            .extend(wrapped_line(&format!("{line}{summary}"), columns).into_iter().map(LiveRow::Text));
        if let Some(traceback) = traceback.filter(|text| !text.is_empty()) {
            let lines = traceback::lines(traceback, "python", columns.saturating_sub(2).max(1), board.pen);
            board.settled.extend(lines.into_iter().map(|line| LiveRow::Text(format!("  {line}"))));
        }
        board.draw()
    }

    /// When the clock is to go on.
    pub(super) fn due(&self) -> Instant {
        lock(&self.board).drawn.map_or_else(Instant::now, |drawn| drawn + CLOCK)
    }

    pub(super) fn tick(&self) -> anyhow::Result<()> {
        lock(&self.board).refresh()
    }

    fn with_line(&self, change: impl FnOnce(&mut BoardLine)) -> anyhow::Result<()> {
        let mut board = lock(&self.board);
        if let Some(line) = board.running.iter_mut().find(|line| line.name == self.name) {
            change(line);
        }
        board.refresh()
    }
}

fn lock(board: &Mutex<RunBoard>) -> MutexGuard<'_, RunBoard> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}
