//! Text printed to one stream, as a terminal would show it: what was overwritten is gone, escape sequences stay.
//! However the text was cut into pieces, the same is shown.

use std::borrow::Cow;

use super::row::{EscapeSequence, PrintedRow};

/// Overwriting in longer lines is left as it was printed: nobody draws progress there.
const LONGEST_ROW: usize = 64 * 1024;

#[derive(Debug, Clone, Default)]
pub(crate) struct PrintedText {
    text: String,
    last: PrintedLine,
    /// The beginning of an escape sequence whose end has not come.
    unfinished: String,
}

/// The last line, from where it is more than plain text.
#[derive(Debug, Clone, Default)]
enum PrintedLine {
    /// Nothing in it was written over: it is the end of the text, from here on.
    #[default]
    Plain,
    /// It is written over; the text ends before it.
    Drawn(PrintedRow),
    /// It is too long to be written over.
    Raw,
}

impl PrintedText {
    pub(super) fn push(&mut self, text: &str) {
        let whole;
        let mut text = text;
        if !self.unfinished.is_empty() {
            whole = std::mem::take(&mut self.unfinished) + text;
            text = &whole;
        }
        let (text, unfinished) = text.split_at(EscapeSequence::unfinished(text));
        self.unfinished.push_str(unfinished);
        for piece in text.split_inclusive('\n') {
            let line = piece.strip_suffix('\n').unwrap_or(piece);
            self.push_line(line);
            if line.len() < piece.len() {
                self.end_line();
            }
        }
    }

    fn push_line(&mut self, line: &str) {
        let mut rest = line;
        while !rest.is_empty() {
            rest = match &mut self.last {
                PrintedLine::Raw => {
                    self.text.push_str(rest);
                    ""
                }
                PrintedLine::Plain => {
                    let (plain, over) = rest.split_at(EscapeSequence::first_control(rest));
                    self.text.push_str(plain);
                    if !over.is_empty() {
                        let start = memchr::memrchr(b'\n', self.text.as_bytes()).map_or(0, |at| at + 1);
                        if self.text.len() - start > LONGEST_ROW {
                            self.last = PrintedLine::Raw;
                        } else {
                            self.last = PrintedLine::Drawn(PrintedRow::of(&self.text[start..]));
                            self.text.truncate(start);
                        }
                    }
                    over
                }
                PrintedLine::Drawn(row) => {
                    let rest = row.print(rest, LONGEST_ROW);
                    if !rest.is_empty() {
                        row.write(&mut self.text);
                        self.last = PrintedLine::Raw;
                    }
                    rest
                }
            };
        }
    }

    fn end_line(&mut self) {
        if let PrintedLine::Drawn(row) = std::mem::take(&mut self.last) {
            row.write(&mut self.text);
        }
        self.text.push('\n');
    }

    /// How many bytes [`PrintedText::text`] has.
    pub(super) fn len(&self) -> usize {
        let drawn = if let PrintedLine::Drawn(row) = &self.last { row.len() } else { 0 };
        self.text.len() + drawn + self.unfinished.len()
    }

    /// Drops about so many bytes from the beginning, and says how many it were.
    pub(super) fn cut(&mut self, bytes: usize) -> usize {
        if self.text.len() < bytes
            && let PrintedLine::Drawn(row) = &self.last
        {
            row.write(&mut self.text);
            self.last = PrintedLine::Raw;
        }
        let end = self.text.ceil_char_boundary(bytes.min(self.text.len()));
        self.text.drain(..end);
        end
    }

    pub(crate) fn text(&self) -> Cow<'_, str> {
        if !matches!(self.last, PrintedLine::Drawn(_)) && self.unfinished.is_empty() {
            return Cow::Borrowed(&self.text);
        }
        let mut text = self.text.clone();
        if let PrintedLine::Drawn(row) = &self.last {
            row.write(&mut text);
        }
        text.push_str(&self.unfinished);
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(pieces: &[&str]) -> String {
        let mut printed = PrintedText::default();
        for piece in pieces {
            printed.push(piece);
            assert_eq!(printed.len(), printed.text().len());
        }
        printed.text().into_owned()
    }

    #[track_caller]
    fn check(pieces: &[&str], expected: &str) {
        assert_eq!(shown(pieces), expected);
        assert_eq!(shown(&[&pieces.concat()]), expected);
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
    fn an_escape_sequence_cut_in_two_is_one() {
        check(&["\r\x1b[3", "1mAB\x1b[0m\rXY\n"], "XY\x1b[0m\n");
        check(&["a\r\x1b", "[", "K", "b"], "b");
        check(&["a\x1b[3"], "a\x1b[3");
        check(&["a\x1b[3\nb\x1b", "\nc"], "a\x1b[3\nb\x1b\nc");
        check(&["\x1b]0;title", "\rstill\x1b", "\\x\ry"], "y");
    }

    #[test]
    fn an_escape_sequence_that_is_none_does_not_swallow_what_follows() {
        check(&["a\r\x1b[3\rb"], "b");
        check(&["a\r\x1b]no end\r\nb\rc"], "\x1b]no end\ra\nc");
        let long = format!("\x1b]{}\rx", "y".repeat(10_000));
        check(&["a\r", &long], &format!("x{}", &long[2..long.len() - 2]));
    }

    #[test]
    fn k27_a_fast_progress_bar_is_one_line_however_much_of_it_comes_at_once() {
        let frames: Vec<_> = (0..100_000).map(|i| format!("\r{i:6} {}", "#".repeat(60))).collect();
        let bar = frames.concat();
        check(&[&bar], &format!(" 99999 {}", "#".repeat(60)));
    }

    #[test]
    fn a_line_that_is_too_long_to_be_drawn_on_is_left_as_it_was_printed() {
        let long = "x".repeat(LONGEST_ROW + 1);
        let printed = format!("{long}\ry\nz\rw");
        check(&[&printed], &format!("{long}\ry\nw"));
        let drawn = format!("a\r{long}\ry");
        check(&[&drawn], &format!("{long}\ry"));
    }

    proptest! {
        #[test]
        fn however_it_is_cut_the_same_text_shows_the_same(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "a", "é", "bc", "\r", "\x08", "\n", "\x1b", "\x1b[", "3", "1m", "\x1b[31m", "\x1b[K", "\x1b[2K",
                    "\x1b]", "\x07", "\x1b\\", "\x1b(", "B", " ",
                ]),
                0..40,
            ),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let text = parts.concat();
            let mut cuts: Vec<_> =
                cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<_> = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect();
            prop_assert_eq!(shown(&pieces), shown(&[&text]));
        }
    }
}
