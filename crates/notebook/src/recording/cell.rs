//! What is kept of one cell: everything up to a limit, and of what comes beyond it the end.

use std::collections::VecDeque;
use std::sync::Arc;

use cellwright_cell::{Exception, MimeBundle, Output, Stream};

use super::{CellLimit, CellOutputs, Joint, PrintedText, Results, RunOutput, Stability};

/// Bytes kept from the end of a cell that shows too much.
const TAIL: usize = 64 * 1024;

/// What an output costs beside its content: a cell that shows little very often is bounded too.
const OUTPUT: usize = 512;

/// The outputs of one cell, for a notebook.
#[derive(Debug, Default)]
pub(super) struct CellRecord {
    pub(super) results: Results,
    /// What the outputs cost, those beyond the limit left out.
    weight: usize,
}

impl CellOutputs for CellRecord {
    type Settings = CellLimit;

    fn new(_: &CellLimit, _: usize) -> Self {
        Self::default()
    }

    fn print(&mut self, limit: &CellLimit, stream: Stream, text: &str, joint: Joint) {
        let is_full = self.results.beyond.is_some();
        let rest = if is_full { text } else { self.print_within(limit.bytes, stream, text, joint) };
        if !rest.is_empty() {
            self.beyond().print(stream, rest);
        }
    }

    /// Keeps it while there is room, or else a note on what it was.
    fn add(&mut self, limit: &CellLimit, mut output: Output, _: Stability) -> Option<usize> {
        if !self.has_room(limit, output.weight()) {
            match &mut output {
                Output::Display { content, .. } | Output::Result { content, .. } => {
                    *content = limit.note(content);
                }
                Output::Error(raised) => shorten(raised),
                Output::Text { .. } => {}
            }
        }
        let output = RunOutput::Shown(output);
        let weight = output.weight();
        if !self.has_room(limit, weight - OUTPUT) {
            self.beyond().push(output);
            return None;
        }
        self.weight += weight;
        let outputs = Arc::make_mut(&mut self.results.outputs);
        outputs.push(output);
        Some(outputs.len() - 1)
    }

    /// Shows something else in a display, or the note when there is no room for it.
    fn update(&mut self, limit: &CellLimit, place: usize, content: &Arc<MimeBundle>) -> bool {
        let outputs = Arc::make_mut(&mut self.results.outputs);
        let Some(RunOutput::Shown(Output::Display { content: shown, .. })) = outputs.get_mut(place) else {
            return false;
        };
        let others = self.weight - shown.weight();
        let fits = others.saturating_add(content.weight()) <= limit.bytes;
        *shown = if fits { Arc::clone(content) } else { limit.note(content) };
        self.weight = others + shown.weight();
        true
    }

    fn can_update(&self, place: usize) -> bool {
        place < self.results.outputs.len()
    }

    fn clear(&mut self, _: &CellLimit) {
        self.results.outputs = Arc::default();
        self.results.beyond = None;
        self.weight = 0;
    }
}

impl CellRecord {
    /// Prints what there is room for, and returns the rest. What is overwritten makes room.
    fn print_within<'a>(&mut self, limit: usize, stream: Stream, text: &'a str, joint: Joint) -> &'a str {
        let outputs = Arc::make_mut(&mut self.results.outputs);
        if joint == Joint::Begins {
            if self.weight + OUTPUT + char::MAX.len_utf8() > limit {
                return text;
            }
            self.weight += OUTPUT;
            outputs.push(RunOutput::Stream { name: stream, printed: PrintedText::default() });
        }
        let Some(RunOutput::Stream { printed, .. }) = outputs.last_mut() else {
            unreachable!("it is there, or was just put there: what had no room is beyond")
        };
        let mut rest = text;
        while !rest.is_empty() {
            let fits = rest.floor_char_boundary(limit.saturating_sub(self.weight));
            if fits == 0 {
                break;
            }
            let before = printed.len();
            printed.push(&rest[..fits]);
            self.weight = self.weight + printed.len() - before;
            rest = &rest[fits..];
        }
        rest
    }

    /// Whether there is room for one more output of so many bytes.
    fn has_room(&self, limit: &CellLimit, bytes: usize) -> bool {
        self.results.beyond.is_none()
            && self.weight.saturating_add(OUTPUT).saturating_add(bytes) <= limit.bytes
    }

    fn beyond(&mut self) -> &mut OverflowOutput {
        Arc::make_mut(self.results.beyond.get_or_insert_default())
    }
}

/// What came when the outputs were full.
#[derive(Debug, Clone, Default)]
pub(super) struct OverflowOutput {
    /// The end of it.
    last: VecDeque<RunOutput>,
    weight: usize,
    /// Bytes of text that are gone.
    bytes: usize,
    /// Displays and errors that are gone.
    others: usize,
    /// Where all text is.
    whole: Option<String>,
}

impl OverflowOutput {
    pub(super) fn last(&self) -> impl Iterator<Item = &RunOutput> {
        self.last.iter()
    }

    /// A line on what is gone, if something is.
    pub(super) fn notice(&self) -> Option<String> {
        let outputs = if self.others == 1 { "output" } else { "outputs" };
        let missing = match (self.bytes, self.others) {
            (0, 0) => return None,
            (bytes, 0) => format!("{bytes} bytes"),
            (bytes, others) => format!("{bytes} bytes and {others} {outputs}"),
        };
        let place = self.whole.as_ref().map(|place| format!("; all of it: {place}")).unwrap_or_default();
        Some(format!("[… {missing} not kept in the notebook{place}]"))
    }

    pub(super) fn kept_whole(&mut self, place: &str) {
        self.whole = Some(place.to_owned());
    }

    fn print(&mut self, stream: Stream, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(TAIL));
            if !matches!(self.last.back(), Some(RunOutput::Stream { name, .. }) if *name == stream) {
                self.last.push_back(RunOutput::Stream { name: stream, printed: PrintedText::default() });
                self.weight += OUTPUT;
            }
            if let Some(RunOutput::Stream { printed, .. }) = self.last.back_mut() {
                let before = printed.len();
                printed.push(piece);
                self.weight = self.weight + printed.len() - before;
            }
            self.cut();
            rest = after;
        }
    }

    fn push(&mut self, output: RunOutput) {
        self.weight += output.weight();
        self.last.push_back(output);
        self.cut();
    }

    /// Drops from the beginning what is too much; why a cell failed goes last.
    fn cut(&mut self) {
        // Not for every piece: what is left is moved.
        if self.weight <= 2 * TAIL {
            return;
        }
        while self.weight > TAIL && self.last.len() > usize::from(self.is_one_error()) {
            let at = self.last.iter().position(|output| !output.is_error()).unwrap_or(0);
            let excess = self.weight - TAIL;
            if let RunOutput::Stream { printed, .. } = &mut self.last[at]
                && printed.len() > excess
            {
                let gone = printed.cut(excess);
                self.weight -= gone;
                self.bytes += gone;
                if gone > 0 {
                    continue;
                }
            }
            let Some(output) = self.last.remove(at) else { return };
            self.weight -= output.weight();
            match output {
                RunOutput::Stream { printed, .. } => self.bytes += printed.len(),
                RunOutput::Shown(_) => self.others += 1,
            }
        }
    }

    fn is_one_error(&self) -> bool {
        self.last.len() == 1 && self.last.front().is_some_and(RunOutput::is_error)
    }
}

impl RunOutput {
    fn is_error(&self) -> bool {
        matches!(self, Self::Shown(Output::Error(_)))
    }

    fn weight(&self) -> usize {
        OUTPUT
            + match self {
                Self::Stream { printed, .. } => printed.len(),
                Self::Shown(shown) => shown.weight(),
            }
    }
}

/// Keeps as much of what it says, and of the end of its traceback, as fits into a tail.
fn shorten(raised: &mut Exception) {
    const KEPT: usize = TAIL / 4;
    for text in [&mut raised.name, &mut raised.message] {
        let missing = text.len().saturating_sub(KEPT);
        if missing > 0 {
            text.truncate(text.floor_char_boundary(KEPT));
            text.push_str(&gone(missing));
        }
    }
    let mut missing = raised.traceback.iter().map(String::len).sum::<usize>().saturating_sub(KEPT);
    if missing > 0 {
        let notice = gone(missing);
        raised.traceback.retain_mut(|line| {
            let cut = line.ceil_char_boundary(missing.min(line.len()));
            missing -= cut.min(missing);
            line.drain(..cut);
            cut == 0 || !line.is_empty()
        });
        raised.traceback.insert(0, notice);
    }
}

fn gone(bytes: usize) -> String {
    format!("[… {bytes} bytes not kept in the notebook]")
}
