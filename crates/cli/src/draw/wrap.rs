//! Lines that fit: text with colours in it, broken where the room ends.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Columns between the tab stops of a terminal.
const TAB: usize = 8;

const RESET: &str = "\x1b[0m";

/// Breaks a line so that each part takes at most `room` columns. A colour that is on where a part ends is switched
/// off there and on again in the next, so that no gutter is painted. Tabs become spaces.
pub(crate) fn wrapped_line(line: &str, room: usize) -> Vec<String> {
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

/// As much of a text without colours as so many columns take.
pub(crate) fn fitting(text: &str, columns: usize) -> &str {
    if text.len() <= columns && text.is_ascii() {
        return text;
    }
    let mut used = 0;
    let end = text.grapheme_indices(true).find(|(_, grapheme)| {
        used += grapheme.width();
        used > columns
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// How many columns a line with colours takes.
pub(crate) fn columns(line: &str) -> usize {
    if !line.contains('\x1b') {
        return line.width();
    }
    let (mut rest, mut used) = (line, 0);
    while let Some(at) = rest.find('\x1b') {
        used += rest[..at].width();
        rest = &rest[at..];
        rest = &rest[colour(rest).map_or(1, str::len)..];
    }
    used + rest.width()
}

/// A line with colours in so many columns: what is longer ends with `…`. Tabs become spaces.
pub(crate) fn clipped(line: &str, room: usize) -> String {
    let is_short = line.len() <= room && !line.contains('\t');
    if is_short || (!line.contains('\t') && columns(line) <= room) {
        return line.to_owned();
    }
    // As much as can matter: a line may have megabytes.
    let near = &line[..line.floor_char_boundary(room.saturating_mul(16).saturating_add(256))];
    let mut parts = wrapped_line(near, room);
    if parts.len() < 2 {
        return parts.swap_remove(0);
    }
    let mut first = wrapped_line(&parts[0], room.saturating_sub(1).max(1)).swap_remove(0);
    first.push('…');
    first
}

/// The pieces of a word that is longer than a line.
pub(crate) fn broken(word: &str, room: usize) -> Vec<&str> {
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
    fn a_line_is_cut_to_the_columns_its_characters_take() {
        assert_eq!(fitting("plain", 10), "plain");
        assert_eq!(fitting("plain", 3), "pla");
        assert_eq!(fitting("表計算", 5), "表計");
        assert_eq!(fitting("any", 0), "");
        assert_eq!(clipped("plain", 5), "plain");
        assert_eq!(clipped("plain text", 5), "plai…");
        assert_eq!(clipped("表計算", 5), "表計…");
        assert_eq!(clipped("\x1b[31mplain text\x1b[0m", 5), "\x1b[31mplai\x1b[0m…");
        assert_eq!(columns("\x1b[1;31m表\x1b[0m👩\u{200d}👩\u{200d}👧"), 4);
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
