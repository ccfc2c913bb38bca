//! Text printed to one stream, as a terminal would show it: what was overwritten is gone, escape sequences stay.

use std::borrow::Cow;

/// Overwriting in longer lines is left as it was printed: nobody draws progress there, and each change costs the whole line.
const LONGEST_ROW: usize = 64 * 1024;

#[derive(Debug, Clone, Default)]
pub(super) struct Printed {
    text: String,
    /// Where the last line starts.
    line: usize,
    /// The column where printing goes on, when that is not the end of the last line.
    cursor: Option<usize>,
    beyond: Option<Beyond>,
}

/// Text that had no room.
#[derive(Debug, Clone, Default)]
struct Beyond {
    bytes: usize,
    /// Its end.
    tail: String,
    /// Where all of it is.
    whole: Option<String>,
}

impl Printed {
    pub(super) fn push(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            let overwrites = self.cursor.is_some() || piece.contains(['\r', '\x08']);
            if overwrites && self.text.len() - self.line + piece.len() <= LONGEST_ROW {
                let mut row = Row::of(&self.text[self.line..], self.cursor);
                row.print(piece.trim_end_matches('\n'));
                self.text.truncate(self.line);
                self.cursor = row.write(&mut self.text);
                if piece.ends_with('\n') {
                    self.text.push('\n');
                }
            } else {
                self.text.push_str(piece);
            }
            if piece.ends_with('\n') {
                (self.line, self.cursor) = (self.text.len(), None);
            }
        }
    }

    /// Takes text there is no room for; remembers the last `tail` bytes of it.
    pub(super) fn push_beyond(&mut self, text: &str, tail: usize) {
        if text.is_empty() {
            return;
        }
        let beyond = self.beyond.get_or_insert_default();
        beyond.bytes += text.len();
        beyond.tail.push_str(&text[text.ceil_char_boundary(text.len().saturating_sub(tail))..]);
        if beyond.tail.len() > 2 * tail {
            let excess = beyond.tail.ceil_char_boundary(beyond.tail.len() - tail);
            beyond.tail.drain(..excess);
        }
    }

    pub(super) fn kept_whole(&mut self, place: &str) {
        if let Some(beyond) = &mut self.beyond {
            beyond.whole = Some(place.to_owned());
        }
    }

    pub(super) fn text(&self) -> Cow<'_, str> {
        let Some(Beyond { bytes, tail, whole }) = &self.beyond else {
            return Cow::Borrowed(&self.text);
        };
        let missing = bytes - tail.len();
        let place = whole.as_ref().map(|place| format!("; all of it: {place}")).unwrap_or_default();
        let line_end = if self.text.ends_with('\n') { "" } else { "\n" };
        format!("{}{line_end}[… {missing} bytes not kept in the notebook{place}]\n{tail}", self.text).into()
    }
}

/// The last line while it is written over.
struct Row {
    glyphs: Vec<Glyph>,
    /// Escape sequences after the last character.
    end: String,
    cursor: usize,
}

/// A character and the escape sequences before it.
struct Glyph {
    before: String,
    character: char,
}

impl Glyph {
    fn blank() -> Self {
        Self { before: String::new(), character: ' ' }
    }
}

impl Row {
    fn of(line: &str, cursor: Option<usize>) -> Self {
        let mut row = Self { glyphs: Vec::with_capacity(line.len()), end: String::new(), cursor: 0 };
        row.print(line);
        row.cursor = cursor.unwrap_or(row.cursor);
        row
    }

    fn print(&mut self, text: &str) {
        let mut before = String::new();
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            let mut length = character.len_utf8();
            match character {
                '\r' => {
                    self.leave(&mut before);
                    self.cursor = 0;
                }
                '\x08' => {
                    self.leave(&mut before);
                    self.cursor = self.cursor.saturating_sub(1);
                }
                '\x1b' => {
                    length = escape_length(rest);
                    match &rest[..length] {
                        "\x1b[K" | "\x1b[0K" => self.erase(),
                        "\x1b[2K" => {
                            self.glyphs[..self.cursor].fill_with(Glyph::blank);
                            self.erase();
                        }
                        other => before.push_str(other),
                    }
                }
                character => {
                    let before = std::mem::take(&mut before);
                    if let Some(old) = self.glyphs.get_mut(self.cursor) {
                        *old = Glyph { before, character };
                    } else {
                        let before = std::mem::take(&mut self.end) + &before;
                        self.glyphs.push(Glyph { before, character });
                    }
                    self.cursor += 1;
                }
            }
            rest = &rest[length..];
        }
        self.leave(&mut before);
    }

    /// Puts escape sequences where the cursor stands, in the place of those that were left there before: a progress
    /// bar that ends in a reset of colours does so a million times.
    fn leave(&mut self, before: &mut String) {
        if before.is_empty() {
            return;
        }
        let place = match self.glyphs.get_mut(self.cursor) {
            Some(next) => &mut next.before,
            None => &mut self.end,
        };
        *place = std::mem::take(before);
    }

    /// Erases from the cursor on.
    fn erase(&mut self) {
        self.glyphs.truncate(self.cursor);
        self.end.clear();
    }

    /// Appends the row, and says where printing goes on unless that is its end.
    fn write(self, text: &mut String) -> Option<usize> {
        for Glyph { before, character } in &self.glyphs {
            text.push_str(before);
            text.push(*character);
        }
        text.push_str(&self.end);
        (self.cursor < self.glyphs.len()).then_some(self.cursor)
    }
}

/// The length of the escape sequence `text` starts with; of all of it when it has not ended.
fn escape_length(text: &str) -> usize {
    let body = &text[1..];
    let end = match body.as_bytes().first() {
        Some(b'[') => body[1..].find(|c: char| ('@'..='~').contains(&c)).map(|at| at + 2),
        Some(b']') => body.find('\x07').map(|at| at + 1).or_else(|| body.find("\x1b\\").map(|at| at + 2)),
        Some(_) => body.chars().next().map(char::len_utf8),
        None => None,
    };
    end.map_or(text.len(), |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pieces: &[&str], shown: &str) {
        let mut printed = Printed::default();
        for piece in pieces {
            printed.push(piece);
        }
        assert_eq!(printed.text(), shown);
        // However it was cut, the same text shows the same.
        let mut whole = Printed::default();
        whole.push(&pieces.concat());
        assert_eq!(whole.text(), shown);
    }

    #[test]
    fn what_was_overwritten_is_gone() {
        check(&["abc\rx"], "xbc");
        check(&["abc\r", "x", "y\nz"], "xyc\nz");
        check(&[" 10%\r 50%\r100%\ndone\r\n", "x\r"], "100%\ndone\nx");
        check(&["ab\x08\x08c", "d", "e"], "cde");
        check(&["\x08\x08ab\n\x08c"], "ab\nc");
        check(&["a", "\x08", "b\r\n"], "b\n");
    }

    #[test]
    fn escape_sequences_take_no_room() {
        check(&["\x1b[31mred\x1b[0m\n"], "\x1b[31mred\x1b[0m\n");
        check(&["\x1b[31m10\x1b[0m\r\x1b[32m20\x1b[0m"], "\x1b[32m20\x1b[0m");
        check(&["a long line\r\x1b[2Kshort"], "short");
        check(&["a long line\r\x1b[Kshort"], "short");
        check(&["a\r\x1b]8;;http://x\x07b"], "\x1b]8;;http://x\x07b");
    }

    #[test]
    fn of_too_much_the_beginning_and_the_end_are_kept() {
        let mut printed = Printed::default();
        printed.push("head");
        for _ in 0..1000 {
            printed.push_beyond("é....\n", 10);
        }
        let text = printed.text().into_owned();
        let (before, tail) = text.split_once("]\n").unwrap();
        assert!(before.starts_with("head\n[… ") && tail.len() <= 20 && tail.ends_with("....\n"), "{text}");
        let missing: usize = before.split(' ').nth(1).unwrap().parse().unwrap();
        assert_eq!(missing + tail.len(), 7000);
    }
}
