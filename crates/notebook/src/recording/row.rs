//! A line while it is written over.

/// The longest escape sequence that is recognised. Images travel in longer ones, but not in a line that is overwritten.
const LONGEST_ESCAPE: usize = 4096;

/// The escape sequence that the ESC at the start of a text begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EscapeSequence {
    /// A sequence of so many bytes.
    Ended(usize),
    /// More text is needed to decide.
    Unfinished,
}

impl EscapeSequence {
    /// As the shape of the sequence says. A character that cannot belong to it ends it, as the end of its line does, and
    /// so does one that takes too long: a stray ESC must not swallow what follows.
    pub(crate) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let last = bytes.len().min(LONGEST_ESCAPE);
        let is_intermediate = |byte: &u8| (b' '..=b'/').contains(byte);
        let end = match bytes.get(1) {
            None => None,
            Some(b'[') => {
                let end = bytes[2..last].iter().position(|byte| !(b' '..=b'?').contains(byte));
                end.map(|at| at + 2).map(|at| if (b'@'..=b'~').contains(&bytes[at]) { at + 1 } else { at })
            }
            Some(b']' | b'P' | b'X' | b'^' | b'_') => string_end(&bytes[..last]),
            Some(_) => {
                let end = bytes[1..last].iter().position(|byte| !is_intermediate(byte)).map(|at| at + 1);
                end.map(|at| if (b'0'..=b'~').contains(&bytes[at]) { at + 1 } else { at })
            }
        };
        match end {
            Some(end) => Self::Ended(end),
            None if bytes.len() >= LONGEST_ESCAPE => Self::Ended(1),
            None => Self::Unfinished,
        }
    }

    /// How much of the line that `text` begins belongs to the sequence.
    pub(crate) fn length(self, text: &str) -> usize {
        match self {
            Self::Ended(length) => length,
            Self::Unfinished => text.len(),
        }
    }

    /// Where in a line the first character is that is written over others, escape sequences left out.
    pub(super) fn first_control(line: &str) -> usize {
        let mut from = 0;
        while let Some(at) = line[from..].find(['\r', '\x08', '\x1b']) {
            from += at;
            if !line[from..].starts_with('\x1b') {
                return from;
            }
            from += Self::of(&line[from..]).length(&line[from..]);
        }
        line.len()
    }

    /// Where an incomplete sequence at the end of the text begins. Without one, the end of the text.
    pub(super) fn unfinished(text: &str) -> usize {
        let mut from = text.rfind('\n').map_or(0, |at| at + 1);
        while let Some(at) = text[from..].find('\x1b') {
            from += at;
            match Self::of(&text[from..]) {
                Self::Ended(length) => from += length,
                Self::Unfinished => return from,
            }
        }
        text.len()
    }
}

/// Where a title or link ends: after BEL or `ESC \`, before another ESC or the end of the line.
fn string_end(bytes: &[u8]) -> Option<usize> {
    let end = 2 + bytes[2..].iter().position(|byte| matches!(byte, b'\x07' | b'\x1b' | b'\n'))?;
    match (bytes[end], bytes.get(end + 1)) {
        (b'\x07', _) => Some(end + 1),
        (b'\x1b', Some(b'\\')) => Some(end + 2),
        (b'\x1b', None) => None,
        _ => Some(end),
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct PrintedRow {
    glyphs: Vec<PrintedGlyph>,
    /// Escape sequences after the last character.
    end: String,
    cursor: usize,
    /// Escape sequences since the last character was printed.
    pending: String,
    /// Bytes of all that is not pending.
    len: usize,
}

/// A character and the escape sequences before it.
#[derive(Debug, Clone)]
struct PrintedGlyph {
    before: String,
    character: char,
}

impl PrintedGlyph {
    fn len(&self) -> usize {
        self.before.len() + self.character.len_utf8()
    }
}

impl PrintedRow {
    pub(super) fn of(line: &str) -> Self {
        let mut row = Self::default();
        row.print(line, usize::MAX);
        row
    }

    /// How many bytes it has.
    pub(super) fn len(&self) -> usize {
        if self.pending.is_empty() {
            self.len
        } else {
            self.len - self.at_cursor().len() + self.pending.len()
        }
    }

    /// Prints as much of a line as can be: a row longer than `longest` is not written over any more. Returns what is left.
    pub(super) fn print<'a>(&mut self, text: &'a str, longest: usize) -> &'a str {
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            let mut length = character.len_utf8();
            match character {
                '\r' | '\x08' => {
                    self.leave();
                    if self.glyphs.len() > longest {
                        return rest;
                    }
                    self.cursor = if character == '\r' { 0 } else { self.cursor.saturating_sub(1) };
                }
                '\x1b' => {
                    length = EscapeSequence::of(rest).length(rest);
                    match &rest[..length] {
                        "\x1b[K" | "\x1b[0K" => self.erase(),
                        "\x1b[2K" => {
                            self.blank();
                            self.erase();
                        }
                        other => self.pending.push_str(other),
                    }
                }
                character => self.put(character),
            }
            rest = &rest[length..];
        }
        rest
    }

    fn put(&mut self, character: char) {
        let mut glyph = PrintedGlyph { before: std::mem::take(&mut self.pending), character };
        self.len += glyph.len();
        if let Some(old) = self.glyphs.get_mut(self.cursor) {
            self.len -= old.len();
            *old = glyph;
        } else {
            glyph.before.insert_str(0, &std::mem::take(&mut self.end));
            self.glyphs.push(glyph);
        }
        self.cursor += 1;
    }

    /// Puts escape sequences where the cursor stands, in the place of those that were left there before: a progress
    /// bar that ends in a reset of colours does so a million times.
    fn leave(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        self.len = self.len();
        let pending = std::mem::take(&mut self.pending);
        match self.glyphs.get_mut(self.cursor) {
            Some(next) => next.before = pending,
            None => self.end = pending,
        }
    }

    /// The escape sequences at the cursor.
    fn at_cursor(&self) -> &str {
        self.glyphs.get(self.cursor).map_or(&self.end, |next| &next.before)
    }

    /// Erases from the cursor on.
    fn erase(&mut self) {
        self.glyphs.truncate(self.cursor);
        self.end.clear();
        self.len = self.glyphs.iter().map(PrintedGlyph::len).sum();
    }

    /// Erases up to the cursor.
    fn blank(&mut self) {
        for glyph in &mut self.glyphs[..self.cursor] {
            *glyph = PrintedGlyph { before: String::new(), character: ' ' };
        }
    }

    /// Appends it.
    pub(super) fn write(&self, text: &mut String) {
        let mut left = self.clone();
        left.leave();
        for PrintedGlyph { before, character } in &left.glyphs {
            text.push_str(before);
            text.push(*character);
        }
        text.push_str(&left.end);
    }
}
