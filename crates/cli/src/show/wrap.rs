//! Lines that fit: text with colours in it, broken where the room ends.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Columns between the tab stops of a terminal.
const TAB: usize = 8;

const RESET: &str = "\x1b[0m";

/// Breaks a line so that each part takes at most `room` columns. A colour that is on where a part ends is switched
/// off there and on again in the next, so that no gutter is painted. Tabs become spaces.
pub(super) fn wrapped_line(line: &str, room: usize) -> Vec<String> {
    let is_plain = line.bytes().all(|byte| (b' '..0x7f).contains(&byte));
    if is_plain && line.len() <= room {
        return vec![line.to_owned()];
    }
    let mut parts = vec![String::new()];
    let mut used = 0;
    // The colours that are on.
    let mut active = String::new();
    let mut rest = line;
    while !rest.is_empty() {
        let part = parts.last_mut().expect("there is a part");
        if let Some(sequence) = colour(rest) {
            if is_reset(sequence) {
                active.clear();
            }
            if !matches!(sequence, RESET | "\x1b[m") {
                active.push_str(sequence);
            }
            part.push_str(sequence);
            rest = &rest[sequence.len()..];
            continue;
        }
        let grapheme = rest.graphemes(true).next().expect("there is text left");
        rest = &rest[grapheme.len()..];
        let (text, width) = match grapheme {
            "\t" => ("        ", TAB - used % TAB),
            _ => (grapheme, grapheme.width()),
        };
        if used + width > room && used > 0 {
            if !active.is_empty() {
                part.push_str(RESET);
            }
            parts.push(active.clone());
            used = 0;
            if grapheme == "\t" {
                continue; // it has moved to the next line
            }
        }
        let part = parts.last_mut().expect("there is a part");
        part.push_str(if grapheme == "\t" { &text[..width.min(room)] } else { text });
        used += width;
    }
    parts
}

/// The sequence of colours and attributes that a text starts with.
fn colour(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("\x1b[")?;
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == ';' || c == ':'))?;
    rest[end..].starts_with('m').then(|| &text[..=2 + end])
}

/// Whether a sequence switches off what was on, whatever it switches on itself.
fn is_reset(sequence: &str) -> bool {
    let codes = &sequence[2..sequence.len() - 1];
    codes.is_empty() || codes == "0" || codes.starts_with("0;")
}

/// The pieces of a word that is longer than a line.
pub(super) fn broken(word: &str, room: usize) -> Vec<&str> {
    let (mut pieces, mut start, mut used) = (Vec::new(), 0, 0);
    for (at, grapheme) in word.grapheme_indices(true) {
        let width = grapheme.width();
        if used + width > room && used > 0 {
            pieces.push(&word[start..at]);
            (start, used) = (at, 0);
        }
        used += width;
    }
    pieces.push(&word[start..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_where_the_room_ends() {
        assert_eq!(wrapped_line("abcdefg", 3), ["abc", "def", "g"]);
        assert_eq!(wrapped_line("", 3), [""]);
        assert_eq!(wrapped_line("中文字", 5), ["中文", "字"]);
        assert_eq!(wrapped_line("a👩‍👩‍👧b", 3), ["a👩‍👩‍👧", "b"]);
        assert_eq!(wrapped_line("a\tb", 10), ["a       b"]);
        assert_eq!(wrapped_line("abcdefgh\tb", 10), ["abcdefgh", "b"]);
    }

    #[test]
    fn a_colour_goes_on_in_the_next_line_and_not_through_the_gutter() {
        assert_eq!(
            wrapped_line("\x1b[1;31mabcd\x1b[0mef", 3),
            ["\x1b[1;31mabc\x1b[0m", "\x1b[1;31md\x1b[0mef"]
        );
        assert_eq!(wrapped_line("\x1b[0;32mabc\x1b[md", 2), ["\x1b[0;32mab\x1b[0m", "\x1b[0;32mc\x1b[md"]);
        assert_eq!(wrapped_line("\x1b[31ma\x1b[0;1mb", 1), ["\x1b[31ma\x1b[0;1m\x1b[0m", "\x1b[0;1mb"]);
    }
}
