//! A long output in little room: its beginning, its end, and between them what is missing and where it is.

use std::fmt::Write as _;

use cellwright_output::Thousands;

use super::content::line_count;

/// The beginning and the end of a text, at most `room` bytes of it together, around a notice with the true sizes
/// and the way to the rest. `named` is the address of the whole text.
pub(super) fn cut(text: &str, room: usize, named: &str) -> String {
    let (head, tail) = ends(text, room);
    let omitted = &text[head..tail];
    let total = line_count(text);
    let first = TextPosition::of(text, head);
    // The first line that is shown again, if any is.
    let next = TextPosition::of(text, tail);
    let mut shown = text[..head].to_owned();
    if !shown.is_empty() && !shown.ends_with('\n') {
        shown.push('\n');
    }
    let last = if tail == text.len() { total } else { next.line - 1 };
    let from = first.byte + 1;
    let (what, way) = if first.byte == 0 && (next.byte == 0 || tail == text.len()) {
        let to = if last == total { String::new() } else { last.to_string() };
        (lines(first.line, last, total), format!("{named}:{}-{to}", first.line))
    } else if !omitted.trim_end_matches('\n').contains('\n') {
        let to = first.byte + omitted.trim_end_matches('\n').len();
        let [shown_from, to] = [from, to].map(|byte| Thousands(byte as u64));
        let what = format!("bytes {shown_from}-{to} of line {} of {total}", first.line);
        (what, format!("{named}:{}@{from}", first.line))
    } else {
        let (cut, rest) = (first.line, first.line + 1);
        let what =
            format!("line {cut} from byte {}, and {}", Thousands(from as u64), lines(rest, last, total));
        let to = if last == total { String::new() } else { last.to_string() };
        (what, format!("{named}:{cut}@{from},{rest}-{to}"))
    };
    let (missing, all) = (Thousands(omitted.len() as u64), Thousands(text.len() as u64));
    writeln!(shown, "[… {what}, {missing} of {all} bytes not shown; read {way}]")
        .expect("a String takes everything");
    if next.byte > 0 && tail < text.len() {
        shown.push('…');
    }
    shown.push_str(&text[tail..]);
    if !shown.ends_with('\n') {
        shown.push('\n');
    }
    shown
}

/// Where the gap begins and ends: between lines, unless a line is longer than the room there is.
fn ends(text: &str, room: usize) -> (usize, usize) {
    let head_room = room * 2 / 5;
    let head = text.floor_char_boundary(head_room);
    let head = match text[..head].rfind('\n') {
        Some(feed) => feed + 1,
        // A cut just before the line's end would leave nothing of it to read on from.
        None if text[head..].starts_with('\n') => text.floor_char_boundary(head.saturating_sub(1)),
        None => head,
    };
    let tail = text.ceil_char_boundary(text.len() - (room - head_room));
    let starts_line = tail > 0 && text.as_bytes()[tail - 1] == b'\n';
    let line = if starts_line { Some(tail) } else { text[tail..].find('\n').map(|feed| tail + feed + 1) };
    let line = line.filter(|line| *line < text.len());
    match line {
        Some(line) => (head, line),
        // All that is left is one line: of that the end can be shown too.
        None if !text[head..].trim_end_matches('\n').contains('\n') => (head, tail),
        None => (head, text.len()),
    }
}

/// A place in a text: the line, counting from 1, and how many of its bytes stand before it.
struct TextPosition {
    line: usize,
    byte: usize,
}

impl TextPosition {
    fn of(text: &str, at: usize) -> Self {
        let before = &text[..at];
        let start = before.rfind('\n').map_or(0, |feed| feed + 1);
        Self { line: memchr::memchr_iter(b'\n', before.as_bytes()).count() + 1, byte: at - start }
    }
}

fn lines(first: usize, last: usize, total: usize) -> String {
    if first == last {
        format!("line {first} of {total}")
    } else {
        format!("lines {first}-{last} of {total}")
    }
}
