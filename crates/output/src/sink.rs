//! The sink: takes what a run prints, in any chunks, and gives back what is worth showing.

use cellwright_cell::Stream;

use crate::{
    artifacts::{ArtifactKind, Artifacts},
    decode::Utf8Decoder,
    kept::KeptLines,
    lines::Extent,
    screen::{Colours, Screen},
    spill::Spill,
    truncation::{FullText, Truncation},
};

/// Room that the marker of a cut line needs, with any number in it.
const MARKER_ROOM: usize = 40;

/// How much of an output is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimits {
    /// Bytes of the first lines.
    pub head: usize,
    /// Bytes of the last lines, and what the head leaves unused.
    pub tail: usize,
    /// Bytes of one line.
    pub line: usize,
}

impl OutputLimits {
    /// Everything is shown, for programs: they must never be handed a text with a gap in it.
    pub const NONE: Self = Self { head: usize::MAX, tail: 0, line: usize::MAX };
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self { head: 20 * 1024, tail: 30 * 1024, line: 768 }
    }
}

/// The shown part of what a run printed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CapturedText {
    /// The text, with the notice of `truncation` on a line of its own where something was left out.
    pub text: String,
    /// What is missing, if anything.
    pub truncation: Option<Truncation>,
}

/// Takes the output of one run. Holds a bounded part of it; all of it goes to an artifact as soon as
/// it is more than a few pages, and stays there if not everything is shown. Never fails: an artifact that could not be
/// written is in the notice. Dropping it writes what is buffered and closes the artifact's file.
#[derive(Debug)]
pub struct OutputSink {
    limits: OutputLimits,
    colours: Colours,
    decoders: [Utf8Decoder; 2],
    screen: Screen,
    kept: KeptLines,
    spill: Spill,
    /// Why what was written is not all there was, if it is not.
    incomplete: Option<String>,
}

impl OutputSink {
    /// A sink that keeps no artifact.
    pub fn new(limits: OutputLimits, colours: Colours) -> Self {
        Self::with_spill(limits, colours, Spill::new(None, ArtifactKind::Log))
    }

    /// A sink that stores the full output among `artifacts` when it cannot all be shown.
    pub fn with_artifacts(limits: OutputLimits, colours: Colours, artifacts: &Artifacts) -> Self {
        Self::storing(limits, colours, artifacts, ArtifactKind::Log)
    }

    pub(crate) fn storing(
        limits: OutputLimits,
        colours: Colours,
        artifacts: &Artifacts,
        kind: ArtifactKind,
    ) -> Self {
        Self::with_spill(limits, colours, Spill::new(Some(artifacts.clone()), kind))
    }

    pub(crate) fn with_spill(limits: OutputLimits, colours: Colours, spill: Spill) -> Self {
        // A line that is longer than head and tail would not be shown at all.
        let longest = limits.head.max(limits.tail);
        let limits = OutputLimits { line: limits.line.min(longest - MARKER_ROOM.min(longest / 2)), ..limits };
        Self {
            limits,
            colours,
            decoders: Default::default(),
            screen: Screen::new(colours, limits.line),
            kept: KeptLines::new(limits.head, limits.tail),
            spill,
            incomplete: None,
        }
    }

    /// Takes bytes as they come from a stream. Each stream is decoded on its own; both are shown on one screen, as in a
    /// terminal.
    pub fn write(&mut self, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let (screen, kept, spill) = (&mut self.screen, &mut self.kept, &mut self.spill);
        self.decoders[stream as usize].decode(bytes, |text, raw| {
            spill.write(raw);
            screen.feed(text, kept);
        });
    }

    /// Says that what was written is not all there was. The notice does not call it the full output then.
    pub fn mark_incomplete(&mut self, why: impl Into<String>) {
        self.incomplete = Some(why.into());
    }

    /// Takes text for lines of its own, such as a displayed value.
    pub fn write_block(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.start_line();
        self.feed(text);
        self.start_line();
    }

    /// What comes next starts a new line.
    pub fn start_line(&mut self) {
        while !self.screen.at_fresh_line() {
            self.feed("\n");
        }
        if self.screen.is_styled() {
            self.feed("\x1b[0m");
        }
    }

    /// Forgets what was printed so far, also in the artifact.
    pub fn clear(&mut self) {
        self.screen = Screen::new(self.colours, self.limits.line);
        self.kept = KeptLines::new(self.limits.head, self.limits.tail);
        self.spill.clear();
        self.incomplete = None;
    }

    /// A copy that keeps no artifact, to see what more output would make of it.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self {
            limits: self.limits,
            colours: self.colours,
            decoders: self.decoders.clone(),
            screen: self.screen.clone(),
            kept: self.kept.clone(),
            spill: Spill::new(None, ArtifactKind::Log),
            incomplete: self.incomplete.clone(),
        }
    }

    /// What would be captured if the run ended now. The artifact it may name holds all of that already.
    pub fn snapshot(&mut self) -> CapturedText {
        let (spill, incomplete) = (&mut self.spill, &self.incomplete);
        captured(&self.screen, self.kept.clone(), self.limits.line, || {
            spill.full_text().short_of(incomplete.as_deref())
        })
    }

    /// The end of the run.
    pub fn finish(mut self) -> CapturedText {
        let mut spill = self.finish_decoding();
        let incomplete = self.incomplete;
        let captured = captured(&self.screen, self.kept, self.limits.line, || {
            spill.full_text().short_of(incomplete.as_deref())
        });
        if captured.truncation.is_none() {
            // Everything is shown: what the artifact has more are states that were overwritten.
            spill.clear();
        }
        captured
    }

    /// The end of a text that is stored already.
    pub(crate) fn finish_as(mut self, full: FullText) -> CapturedText {
        self.finish_decoding();
        captured(&self.screen, self.kept, self.limits.line, || full)
    }

    /// Bytes held in memory.
    #[cfg(test)]
    pub(crate) fn held_bytes(&self) -> usize {
        self.screen.held_bytes() + self.kept.held_bytes() + self.spill.held_bytes()
    }

    fn feed(&mut self, text: &str) {
        self.spill.write(text.as_bytes());
        self.screen.feed(text, &mut self.kept);
    }

    fn finish_decoding(&mut self) -> Spill {
        let mut spill = std::mem::replace(&mut self.spill, Spill::new(None, ArtifactKind::Log));
        for decoder in &mut self.decoders {
            decoder.finish(|text, raw| {
                spill.write(raw);
                self.screen.feed(text, &mut self.kept);
            });
        }
        spill
    }
}

fn captured(
    screen: &Screen,
    mut kept: KeptLines,
    line_cap: usize,
    full: impl FnOnce() -> FullText,
) -> CapturedText {
    screen.show_rest(&mut kept);
    let (head, omitted, tail) = kept.finish();
    let (head_cut, tail_cut) = (head.cut_before(head.len()), tail.cut_before(tail.len()));
    let cut = Extent { lines: head_cut.lines + tail_cut.lines, bytes: head_cut.bytes + tail_cut.bytes };
    let mut text = head.as_str().to_owned();
    if omitted.lines == 0 && cut.lines == 0 {
        text.push_str(tail.as_str());
        return CapturedText { text, truncation: None };
    }
    let (all_head, all_tail) = (head.extent_before(head.len()), tail.extent_before(tail.len()));
    let truncation = Truncation {
        total: Extent {
            lines: all_head.lines + omitted.lines + all_tail.lines,
            bytes: all_head.bytes + omitted.bytes + all_tail.bytes,
        },
        head: Extent { bytes: all_head.bytes - head_cut.bytes, ..all_head },
        omitted,
        tail: Extent { bytes: all_tail.bytes - tail_cut.bytes, ..all_tail },
        cut,
        line_cap,
        full: full(),
    };
    // Where lines are missing; after everything when lines were only cut.
    let notice = format!("{truncation}\n");
    if omitted.lines > 0 {
        text.push_str(&notice);
        text.push_str(tail.as_str());
    } else {
        text.push_str(tail.as_str());
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&notice);
    }
    CapturedText { text, truncation: Some(truncation) }
}
