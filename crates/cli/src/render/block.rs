//! What a cell shows, in blocks: printed text, displayed values, an error.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cellwright_cell::{Exception, MimeBundle, Stream};
use cellwright_output::{ArtifactKind, CapturedText, Counted, OutputLimits, OutputSink, visible_coloured};

use super::preview::{CellLook, FullOutputs, PreviewLines, clamped, ends_of, hidden};
use super::shown::{self, DrawRoom, DrawState};
use crate::draw::screen::LiveRow;
use crate::draw::style::TextStyle;
use crate::draw::wrap::clipped;
use crate::draw::{traceback, tree};

/// Status events that are kept of a cell.
const MOST_EVENTS: usize = 200;

/// Status events that a preview shows.
const FEW_EVENTS: usize = 5;

/// Numbers of pictures; terminals keep them apart by their ids.
static PICTURES: AtomicU32 = AtomicU32::new(0);

/// One output, or text that belongs together.
pub(super) enum CellBlock {
    Printed(Box<PrintedBlock>),
    Displayed(DisplayedBlock),
    Raised(Exception),
    /// A remark of ours.
    Note(String),
}

/// What was printed. Bounded: what is not shown is in an artifact, or in the notebook.
pub(super) struct PrintedBlock {
    sink: OutputSink,
    last: Stream,
    /// Lines that are complete, where all are shown.
    complete: Vec<String>,
}

/// A value. It is drawn when a frame needs it, for there may be thousands of updates between two frames.
pub(super) struct DisplayedBlock {
    content: Arc<MimeBundle>,
    id: Option<String>,
    number: u32,
    drawn: Option<DrawnContent>,
}

/// How a value looks in so many columns.
struct DrawnContent {
    columns: usize,
    state: DrawState,
    rows: Vec<LiveRow>,
}

impl PrintedBlock {
    pub(super) fn new(look: &CellLook) -> Self {
        Self { sink: sink(look), last: Stream::Stdout, complete: Vec::new() }
    }

    pub(super) fn print(&mut self, stream: Stream, text: &str, look: &CellLook) {
        if stream != self.last && !look.pen.is_plain() {
            // What goes to stderr is distinguished, unless it has colours of its own.
            let style: &[u8] = if stream == Stream::Stderr { b"\x1b[33m" } else { b"\x1b[39m" };
            self.sink.write(stream, style);
        }
        self.last = stream;
        let end = match look.preview {
            PreviewLines::All => text.rfind('\n').map(|at| at + 1),
            PreviewLines::Collapsed(_) => None,
        };
        let (complete, rest) = text.split_at(end.unwrap_or(0));
        if !complete.is_empty() {
            self.sink.write(stream, complete.as_bytes());
            let sink = std::mem::replace(&mut self.sink, sink(look));
            self.complete.extend(sink.finish().text.lines().map(str::to_owned));
        }
        self.sink.write(stream, rest.as_bytes());
    }

    /// Bytes of lines that wait to be drawn.
    pub(super) fn waiting(&self) -> usize {
        self.complete.len()
    }

    fn rows(&mut self, look: &CellLook, room: DrawRoom) -> Vec<String> {
        let CapturedText { text, truncation } = self.sink.snapshot();
        let notice = truncation.as_ref().map(ToString::to_string).unwrap_or_default();
        let text = if notice.is_empty() { text } else { text.replacen(&format!("{notice}\n"), "", 1) };
        let text = visible_coloured(text.trim_end_matches('\n'));
        let lines: Vec<_> = if text.is_empty() { Vec::new() } else { text.split('\n').collect() };
        let most = match look.preview {
            PreviewLines::Collapsed(most) => most,
            PreviewLines::All => usize::MAX,
        };
        let omitted = truncation.as_ref().map_or(0, |truncation| truncation.omitted.lines);
        let is_cut = omitted > 0 || lines.len() > most.saturating_add(1);
        let shown = if is_cut { &lines[lines.len().saturating_sub(most)..] } else { &lines[..] };
        let count = omitted + (lines.len() - shown.len()) as u64;
        let mut rows = Vec::new();
        if room.state == DrawState::Live {
            if count > 0 {
                rows.push(look.note(&format!("… {} above", Counted(count, "line"))));
            }
            rows.extend(shown.iter().map(|line| clipped(line, room.columns)));
            return rows;
        }
        let cut = truncation.as_ref().map_or(0, |truncation| truncation.cut.lines);
        if count > 0 || cut > 0 {
            let way = match &truncation {
                Some(truncation) => look.way_to_stored(room.cell, &truncation.full),
                None => look.way_to(room.cell, &text, ArtifactKind::Log),
            };
            let note = if count > 0 {
                hidden(count, " above", &way)
            } else {
                format!("… {} cut · {way}", Counted(cut, "long line"))
            };
            rows.extend(look.note_rows(&note, room.columns));
        }
        rows.extend(shown.iter().flat_map(|line| clamped(line, room.columns, look.pen)));
        rows
    }
}

/// A sink for text whose end is shown, or all of it line by line.
fn sink(look: &CellLook) -> OutputSink {
    let colours = look.pen.kept_colours();
    match (look.preview, &look.full) {
        (PreviewLines::All, _) => {
            let limits = OutputLimits { head: usize::MAX, tail: 0, line: CellLook::limits().line };
            OutputSink::new(limits, colours)
        }
        (PreviewLines::Collapsed(_), FullOutputs::Artifacts(artifacts)) => {
            OutputSink::with_artifacts(CellLook::limits(), colours, artifacts)
        }
        (PreviewLines::Collapsed(_), FullOutputs::Notebook { .. } | FullOutputs::Nowhere) => {
            OutputSink::new(CellLook::limits(), colours)
        }
    }
}

impl DisplayedBlock {
    pub(super) fn new(content: &Arc<MimeBundle>, id: Option<&str>) -> Self {
        Self {
            content: Arc::clone(content),
            id: id.map(str::to_owned),
            number: 1 + PICTURES.fetch_add(1, Ordering::Relaxed),
            drawn: None,
        }
    }

    /// Shows something else if it has this name; says whether it does.
    pub(super) fn update(&mut self, id: &str, content: &Arc<MimeBundle>) -> bool {
        let is_it = self.id.as_deref() == Some(id);
        if is_it {
            self.content = Arc::clone(content);
            self.number = 1 + PICTURES.fetch_add(1, Ordering::Relaxed);
            self.drawn = None;
        }
        is_it
    }

    pub(super) fn may_change(&self) -> bool {
        self.id.is_some()
    }

    fn rows(&mut self, look: &CellLook, room: DrawRoom) -> Vec<LiveRow> {
        match &self.drawn {
            Some(DrawnContent { columns, state, rows }) if *columns == room.columns => {
                // A picture that stays is the one that is on the screen already.
                let has_picture = rows.iter().any(|row| matches!(row, LiveRow::Picture(_)));
                if *state == room.state || has_picture {
                    return rows.clone();
                }
            }
            Some(_) | None => {}
        }
        let rows = shown::rows(&self.content, look, room, self.number);
        self.drawn = Some(DrawnContent { columns: room.columns, state: room.state, rows: rows.clone() });
        rows
    }
}

impl CellBlock {
    pub(super) fn rows(&mut self, look: &CellLook, room: DrawRoom) -> Vec<LiveRow> {
        let lines = match self {
            Self::Displayed(block) => return block.rows(look, room),
            Self::Printed(block) => block.rows(look, room),
            Self::Raised(exception) => raised(exception, look, room),
            Self::Note(text) => look.note_rows(text, room.columns),
        };
        lines.into_iter().map(LiveRow::Text).collect()
    }

    /// The rows that can be let go of before the block is over: complete lines, where all are shown.
    pub(super) fn complete_rows(&mut self, look: &CellLook, room: DrawRoom) -> Vec<LiveRow> {
        let Self::Printed(block) = self else { return Vec::new() };
        let lines = std::mem::take(&mut block.complete);
        let rows = lines.iter().flat_map(|line| clamped(&visible_coloured(line), room.columns, look.pen));
        rows.map(LiveRow::Text).collect()
    }
}

fn raised(exception: &Exception, look: &CellLook, room: DrawRoom) -> Vec<String> {
    let Exception { name, message, traceback, line: _ } = exception;
    let text = if traceback.is_empty() { format!("{name}: {message}") } else { traceback.join("\n") };
    let rows = traceback::lines(&text, &look.language, room.columns, look.pen);
    let PreviewLines::Collapsed(lines) = look.preview.of_traceback() else { return rows };
    let note = |count: usize| {
        let way = match room.state {
            DrawState::Live => String::new(),
            DrawState::Settled => look.way_to(room.cell, &text, ArtifactKind::Log),
        };
        look.note(&hidden(count as u64, "", &way))
    };
    ends_of(&rows, lines, note).unwrap_or(rows)
}

/// The status events of a cell, which have a section of their own.
#[derive(Default)]
pub(super) struct StatusSection {
    /// The last ones, as JSON.
    events: VecDeque<String>,
    count: u64,
}

impl StatusSection {
    pub(super) fn add(&mut self, event: &str) {
        self.count += 1;
        self.events.push_back(event.to_owned());
        if self.events.len() > MOST_EVENTS {
            self.events.pop_front();
        }
    }

    pub(super) fn rows(&self, look: &CellLook, columns: usize) -> Vec<LiveRow> {
        if self.events.is_empty() {
            return Vec::new();
        }
        let title = look.pen.paint(TextStyle::MAGENTA, "◆ status").into_owned();
        let mut rows = vec![format!("{title}{}", look.note(&format!(" · {}", Counted(self.count, "event"))))];
        let room = columns.saturating_sub(2).max(1);
        match look.preview {
            PreviewLines::Collapsed(_) => {
                let last = self.events.iter().skip(self.events.len().saturating_sub(FEW_EVENTS));
                let hidden = self.count - last.len() as u64;
                if hidden > 0 {
                    rows.push(look.note(&format!("  … {} before", Counted(hidden, "event"))));
                }
                rows.extend(last.map(|event| format!("  {}", tree::summary(event, room, look.pen))));
            }
            PreviewLines::All => {
                let trees = self.events.iter().flat_map(|event| {
                    let lines = tree::lines(event, look.preview.tree(), room, look.pen);
                    lines.into_iter().enumerate().map(|(at, line)| {
                        let mark = if at == 0 { "• " } else { "  " };
                        format!("{mark}{line}")
                    })
                });
                rows.extend(trees);
            }
        }
        rows.into_iter().map(|row| LiveRow::Text(clipped(&row, columns))).collect()
    }
}
