//! Text with colours and attributes, and how it is broken into lines.

use std::borrow::Cow;
use std::fmt::Write as _;

use cellwright_output::Colours;
use unicode_width::UnicodeWidthStr as _;

use super::wrap::broken;

/// How a piece of text looks: SGR attributes and a colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TextStyle {
    /// Bit `n` is the attribute that SGR `n` switches on.
    attributes: u16,
    /// SGR's number for the colour; 0 for the terminal's own.
    colour: u8,
}

impl TextStyle {
    pub(crate) const PLAIN: Self = Self { attributes: 0, colour: 0 };
    pub(crate) const DIM: Self = Self::PLAIN.with(2);
    pub(crate) const REVERSE: Self = Self::PLAIN.with(7);
    pub(crate) const RED: Self = Self::of(31);
    pub(crate) const GREEN: Self = Self::of(32);
    pub(crate) const YELLOW: Self = Self::of(33);
    pub(crate) const BLUE: Self = Self::of(34);
    pub(crate) const MAGENTA: Self = Self::of(35);
    pub(crate) const CYAN: Self = Self::of(36);

    const fn of(colour: u8) -> Self {
        Self { attributes: 0, colour }
    }

    pub(crate) const fn bold(self) -> Self {
        self.with(1)
    }

    pub(crate) const fn italic(self) -> Self {
        self.with(3)
    }

    pub(crate) const fn underlined(self) -> Self {
        self.with(4)
    }

    pub(crate) const fn struck(self) -> Self {
        self.with(9)
    }

    pub(crate) const fn coloured(self, like: Self) -> Self {
        Self { colour: like.colour, ..self }
    }

    const fn with(self, attribute: u8) -> Self {
        Self { attributes: self.attributes | 1 << attribute, ..self }
    }
}

/// Writes styles, or leaves them out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextPen {
    /// The terminal's own colours, readable on a dark background and on most light ones.
    Colours,
    /// Darker ones, on a background that is known to be light.
    DarkColours,
    Plain,
}

impl TextPen {
    /// Whether it writes no styles.
    pub(crate) fn is_plain(self) -> bool {
        self == Self::Plain
    }

    /// What a text that has colours of its own keeps of them.
    pub(crate) fn kept_colours(self) -> Colours {
        if self.is_plain() { Colours::Dropped } else { Colours::Kept }
    }

    /// SGR's code for a colour. On white, the usual green, yellow and cyan are too bright to read.
    fn colour(self, colour: u8) -> String {
        let darker = match (self, colour) {
            (Self::DarkColours, 32) => 28,
            (Self::DarkColours, 33) => 130,
            (Self::DarkColours, 36) => 30,
            _ => return colour.to_string(),
        };
        format!("38;5;{darker}")
    }

    /// The text in this style. No style spans a line's end: pagers show lines by themselves.
    pub(crate) fn paint(self, style: TextStyle, text: &str) -> Cow<'_, str> {
        if self == Self::Plain || style == TextStyle::PLAIN || text.is_empty() {
            return Cow::Borrowed(text);
        }
        let attributes = (1..=9_u8).filter(|bit| style.attributes & (1 << bit) != 0);
        let mut codes: Vec<String> = attributes.map(|bit| bit.to_string()).collect();
        codes.extend((style.colour != 0).then(|| self.colour(style.colour)));
        let codes = codes.join(";");
        let mut painted = String::with_capacity(text.len() + 16);
        for line in text.split_inclusive('\n') {
            let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
            if !line.is_empty() {
                write!(painted, "\x1b[{codes}m{line}\x1b[0m").expect("a String takes everything");
            }
            painted.push_str(end);
        }
        Cow::Owned(painted)
    }
}

/// Pieces of one paragraph, each in its style.
pub(crate) type StyledText = Vec<(TextStyle, String)>;

/// How many columns the pieces take on one line.
pub(crate) fn width(pieces: &StyledText) -> usize {
    pieces.iter().map(|(_, text)| text.width()).sum()
}

/// The pieces on one line.
pub(crate) fn painted(pieces: &StyledText, pen: TextPen) -> String {
    pieces.iter().map(|(style, text)| pen.paint(*style, text)).collect()
}

/// Breaks the pieces between words so that lines fit into `room` columns. A word longer than that is broken.
pub(crate) fn wrapped(pieces: &StyledText, room: usize) -> Vec<StyledText> {
    let mut lines = vec![StyledText::new()];
    let mut used = 0;
    // A word may be made of several styles: it is kept until its end is known.
    let (mut word, mut space) = (StyledText::new(), None);
    for (style, text) in pieces {
        for part in text.split_inclusive([' ', '\n']) {
            let (letters, end) = match part.strip_suffix([' ', '\n']) {
                Some(letters) => (letters, part.chars().next_back()),
                None => (part, None),
            };
            if !letters.is_empty() {
                word.push((*style, letters.to_owned()));
            }
            if let Some(end) = end {
                place(&mut lines, &mut used, &mut word, space.take(), room);
                if end == '\n' {
                    lines.push(StyledText::new());
                    used = 0;
                } else {
                    space = Some(*style);
                }
            }
        }
    }
    place(&mut lines, &mut used, &mut word, space, room);
    lines
}

/// Sets a word at the end of the last line, or on a new one.
fn place(
    lines: &mut Vec<StyledText>,
    used: &mut usize,
    word: &mut StyledText,
    space: Option<TextStyle>,
    room: usize,
) {
    let length = width(word);
    if length == 0 {
        return;
    }
    if let Some(style) = space
        && *used > 0
    {
        if *used + 1 + length.min(room) > room {
            lines.push(StyledText::new());
            *used = 0;
        } else {
            append(lines, (style, " ".to_owned()));
            *used += 1;
        }
    }
    if length <= room.saturating_sub(*used) {
        *used += length;
        word.drain(..).for_each(|piece| append(lines, piece));
        return;
    }
    for (style, text) in word.drain(..) {
        for grapheme in broken(&text, 1) {
            if *used + grapheme.width() > room && *used > 0 {
                lines.push(StyledText::new());
                *used = 0;
            }
            *used += grapheme.width();
            append(lines, (style, grapheme.to_owned()));
        }
    }
}

/// Adds to the last line; what looks alike is one piece.
fn append(lines: &mut [StyledText], (style, text): (TextStyle, String)) {
    let line = lines.last_mut().expect("there is a line");
    match line.last_mut() {
        Some((last, before)) if *last == style => before.push_str(&text),
        Some(_) | None => line.push((style, text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[(TextStyle, &str)], room: usize) -> Vec<String> {
        let pieces = pieces.iter().map(|(style, text)| (*style, (*text).to_owned())).collect();
        wrapped(&pieces, room).iter().map(|line| painted(line, TextPen::Plain)).collect()
    }

    #[test]
    fn lines_are_broken_between_words_whatever_their_style() {
        let bold = TextStyle::PLAIN.bold();
        let pieces = [(TextStyle::PLAIN, "one "), (bold, "two"), (TextStyle::PLAIN, ", three  four")];
        assert_eq!(lines(&pieces, 9), ["one two,", "three", "four"]);
        assert_eq!(lines(&[(bold, "a\nb longerthanthat c")], 5), ["a", "b", "longe", "rthan", "that", "c"]);
        assert_eq!(lines(&[(bold, "ab"), (TextStyle::PLAIN, "cdefg h")], 4), ["abcd", "efg", "h"]);
        assert_eq!(lines(&[(bold, "中文 中文")], 8), ["中文", "中文"]);
    }

    #[test]
    fn no_style_spans_the_end_of_a_line() {
        assert_eq!(
            TextPen::Colours.paint(TextStyle::RED.bold(), "a\n\nb"),
            "\x1b[1;31ma\x1b[0m\n\n\x1b[1;31mb\x1b[0m"
        );
        assert_eq!(TextPen::Plain.paint(TextStyle::RED, "a"), "a");
    }

    #[test]
    fn bright_colours_are_darker_on_a_light_background() {
        assert_eq!(TextPen::DarkColours.paint(TextStyle::YELLOW.bold(), "a"), "\x1b[1;38;5;130ma\x1b[0m");
        assert_eq!(TextPen::DarkColours.paint(TextStyle::RED, "a"), "\x1b[31ma\x1b[0m");
    }
}
