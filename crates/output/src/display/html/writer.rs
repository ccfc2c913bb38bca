//! Markdown, written word by word.

/// Most characters before each line of nested lists and quotes: what is nested deeper is not moved further in.
const WIDEST_PREFIX: usize = 40;

/// Markdown that grows at its end. White space and marks are put off until a word follows: so there are none at the
/// ends of blocks, and none around nothing.
#[derive(Default)]
pub(super) struct Writer {
    out: String,
    gap: Gap,
    /// What each line begins with: of quotes, and of the items of lists.
    prefix: String,
    /// How much of the prefix the lines before the next word have in common.
    common: usize,
    /// What a line begins with that has no word yet (`- `, `## `), and how much of the prefix is before it.
    marker: Option<(usize, String)>,
    marks: Vec<(WordMark, MarkState)>,
    /// The mark that ended last, where its words began, and where it ended.
    ended: Option<(WordMark, usize, usize)>,
    is_flat: bool,
}

/// How far in a line begins: by the prefix, and by what marks it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Level {
    prefix: usize,
    marker: usize,
}

/// What is between two words, at least.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    #[default]
    Nothing,
    Space,
    /// A line break that means no more than a space.
    Wrap,
    /// A line break within a paragraph.
    Break,
    Line,
    Paragraph,
}

/// What marks a run of words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WordMark {
    Bold,
    Italic,
    Struck,
    Quoted,
    Raised,
    Link(String),
}

enum MarkState {
    /// No word followed yet.
    Waiting,
    /// Its words begin here.
    Written(usize),
    /// A link that a block ended: its address is not repeated.
    Over,
}

impl Writer {
    /// One that writes all on one line, as in a cell of a table.
    pub(super) fn flat() -> Self {
        Self { is_flat: true, ..Self::default() }
    }

    pub(super) fn finish(mut self) -> String {
        self.interrupt_marks();
        self.out
    }

    /// Text whose white space means no more than a space.
    pub(super) fn text(&mut self, text: &str) {
        let is_blank = |ch: char| ch.is_ascii_whitespace() || ch == '\u{a0}';
        let mut rest = text;
        while !rest.is_empty() {
            let (blank, after) = rest.split_at(rest.find(|ch| !is_blank(ch)).unwrap_or(rest.len()));
            let (word, next) = after.split_at(after.find(is_blank).unwrap_or(after.len()));
            if !blank.is_empty() {
                // Text that was set in lines keeps them, unless a line would begin as a list or a heading does.
                let is_inside = rest.len() < text.len() && word.starts_with(char::is_alphabetic);
                self.separate(if is_inside && blank.contains('\n') { Gap::Wrap } else { Gap::Space });
            }
            if !word.is_empty() {
                self.word(word);
            }
            rest = next;
        }
    }

    /// Text as it is.
    pub(super) fn word(&mut self, word: &str) {
        self.begin();
        self.out.push_str(word);
    }

    /// Lines of their own.
    pub(super) fn block<'a>(&mut self, lines: impl IntoIterator<Item = &'a str>) {
        self.separate(Gap::Paragraph);
        for line in lines {
            self.word(line);
            self.gap = self.most(Gap::Line);
        }
        self.separate(Gap::Paragraph);
    }

    /// What comes next is at least this far from what was before.
    pub(super) fn separate(&mut self, gap: Gap) {
        // What only a marker is before stays beside it.
        if self.marker.is_none() || self.is_flat {
            let gap = self.most(gap);
            if gap > Gap::Break {
                self.interrupt_marks();
            }
            self.gap = self.gap.max(gap);
        }
    }

    pub(super) fn line_break(&mut self) {
        self.separate(if self.gap >= Gap::Break { Gap::Paragraph } else { Gap::Break });
    }

    /// Marks the words that follow, until [`close`](Self::close). `false` if they have that mark already.
    pub(super) fn open(&mut self, mark: WordMark) -> bool {
        let is_new = self.marks.iter().all(|(open, _)| *open != mark);
        if is_new {
            self.marks.push((mark, MarkState::Waiting));
        }
        is_new
    }

    /// Ends the mark opened last.
    pub(super) fn close(&mut self) {
        if let Some((mark, MarkState::Written(start))) = self.marks.pop() {
            end_mark(&mut self.out, &mark, start);
            self.ended = Some((mark, start, self.out.len()));
        }
    }

    /// An item of a list, until [`end_item`](Self::end_item) is given what this returns.
    pub(super) fn start_item(&mut self, marker: &str) -> Level {
        self.separate(Gap::Line);
        let outer = self.level();
        self.mark_line(marker);
        self.indent(&" ".repeat(marker.len()));
        outer
    }

    pub(super) fn end_item(&mut self, outer: Level) {
        self.leave(outer);
        self.interrupt_marks();
        // The next one follows, whatever this one ended with.
        self.gap = self.most(Gap::Line);
    }

    /// A quote, until [`end_quote`](Self::end_quote) is given what this returns.
    pub(super) fn start_quote(&mut self) -> Level {
        self.separate(Gap::Paragraph);
        let outer = self.level();
        if self.marker.is_some() {
            self.mark_line("> ");
        }
        self.indent("> ");
        outer
    }

    pub(super) fn end_quote(&mut self, outer: Level) {
        self.separate(Gap::Paragraph);
        self.leave(outer);
    }

    /// A heading, until [`end_heading`](Self::end_heading) is given what this returns.
    pub(super) fn start_heading(&mut self, level: usize) -> bool {
        self.separate(Gap::Paragraph);
        self.mark_line(&format!("{} ", "#".repeat(level)));
        std::mem::replace(&mut self.is_flat, true)
    }

    pub(super) fn end_heading(&mut self, was_flat: bool) {
        self.is_flat = was_flat;
        self.marker = None;
        self.separate(Gap::Paragraph);
    }

    /// Whether the next word is the first one of a list's item.
    pub(super) fn begins_item(&self) -> bool {
        self.marker.is_some()
    }

    pub(super) fn is_flat(&self) -> bool {
        self.is_flat
    }

    /// The gap, or what there can be of it on one line.
    fn most(&self, gap: Gap) -> Gap {
        if self.is_flat { gap.min(Gap::Space) } else { gap }
    }

    fn level(&self) -> Level {
        Level { prefix: self.prefix.len(), marker: self.marker.as_ref().map_or(0, |(_, line)| line.len()) }
    }

    fn leave(&mut self, outer: Level) {
        // Nothing is left of an item without words.
        self.marker = self.marker.take().filter(|_| outer.marker > 0).map(|(before, mut line)| {
            line.truncate(outer.marker);
            (before, line)
        });
        self.prefix.truncate(outer.prefix);
        self.common = self.common.min(outer.prefix);
    }

    fn mark_line(&mut self, marker: &str) {
        if !self.is_flat {
            let (_, line) = self.marker.get_or_insert((self.prefix.len(), String::new()));
            if line.len() < WIDEST_PREFIX {
                line.push_str(marker);
            }
        }
    }

    fn indent(&mut self, by: &str) {
        if !self.is_flat && self.prefix.len() < WIDEST_PREFIX {
            self.prefix.push_str(by);
        }
    }

    /// Writes what was held back until a word follows.
    fn begin(&mut self) {
        let gap = std::mem::take(&mut self.gap);
        let (length, marker) = self.marker.take().unwrap_or((self.prefix.len(), String::new()));
        let prefix = &self.prefix[..length.min(self.prefix.len())];
        let is_first = self.out.is_empty();
        match gap {
            Gap::Nothing => {}
            _ if is_first => {}
            Gap::Space => self.out.push(' '),
            Gap::Break => self.out.push_str("  \n"),
            Gap::Wrap | Gap::Line => self.out.push('\n'),
            Gap::Paragraph => {
                self.out.push('\n');
                self.out.push_str(self.prefix[..self.common].trim_end());
                self.out.push('\n');
            }
        }
        if is_first || gap >= Gap::Wrap {
            self.out.push_str(prefix);
            self.out.push_str(&marker);
        }
        self.common = self.prefix.len();
        for (mark, state) in &mut self.marks {
            if !matches!(state, MarkState::Waiting) {
                continue;
            }
            let start = match &self.ended {
                // One mark instead of two that touch: `**a****b**` is not bold.
                Some((ended, start, end))
                    if ended == mark && *end == self.out.len() && mark.is_same_at_both_ends() =>
                {
                    self.out.truncate(end - mark.opening().len());
                    *start
                }
                Some(_) | None => {
                    self.out.push_str(mark.opening());
                    self.out.len()
                }
            };
            *state = MarkState::Written(start);
        }
    }

    /// Marks end with a block, and go on in the next one.
    fn interrupt_marks(&mut self) {
        for (mark, state) in self.marks.iter_mut().rev() {
            if let MarkState::Written(start) = *state {
                end_mark(&mut self.out, mark, start);
                *state = if matches!(mark, WordMark::Link(_)) { MarkState::Over } else { MarkState::Waiting };
            }
        }
    }
}

fn end_mark(out: &mut String, mark: &WordMark, start: usize) {
    match mark {
        WordMark::Link(address) if address.contains("://") && out[start..] == **address => {
            out.remove(start - 1);
        }
        WordMark::Link(address) => {
            out.push_str("](");
            out.push_str(&destination(address));
            out.push(')');
        }
        WordMark::Raised => {}
        WordMark::Bold | WordMark::Italic | WordMark::Struck | WordMark::Quoted => {
            out.push_str(mark.opening());
        }
    }
}

/// An address as Markdown has it in links.
pub(super) fn destination(address: &str) -> String {
    let address: String = address.chars().filter(|ch| !ch.is_control() && !matches!(ch, '<' | '>')).collect();
    if address.contains([' ', '(', ')']) { format!("<{address}>") } else { address }
}

impl WordMark {
    fn is_same_at_both_ends(&self) -> bool {
        matches!(self, Self::Bold | Self::Italic | Self::Struck)
    }

    fn opening(&self) -> &'static str {
        match self {
            Self::Bold => "**",
            Self::Italic => "*",
            Self::Struck => "~~",
            Self::Quoted => "\"",
            Self::Raised => "^",
            Self::Link(_) => "[",
        }
    }
}
