//! Tracebacks in colours: where it happened, the lines of code, and last what was wrong.

use cellwright_cell::Stream;
use cellwright_output::{OutputLimits, OutputSink, visible_coloured};

use super::code;
use super::style::{StyledText, TextPen, TextStyle, painted, wrapped};
use super::wrap::wrapped_line;

const PLACE: TextStyle = TextStyle::CYAN;
const WRONG: TextStyle = TextStyle::RED.bold();

/// A traceback as lines of at most `room` columns. Colours that the kernel gave it stay.
pub(crate) fn lines(traceback: &str, language: &str, room: usize, pen: TextPen) -> Vec<String> {
    let mut sink = OutputSink::new(OutputLimits::NONE, pen.kept_colours());
    sink.write(Stream::Stderr, traceback.as_bytes());
    let text = sink.finish().text;
    let text = visible_coloured(text.trim_end());
    if text.contains('\x1b') || pen.is_plain() {
        return text.split('\n').flat_map(|line| wrapped_line(line, room)).collect();
    }
    let lines: Vec<_> = text.split('\n').collect();
    // What was wrong begins at the last line that is not indented and names an exception.
    let wrong = lines.iter().rposition(|line| is_exception(line)).unwrap_or(0);
    let mut shown = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        match line.strip_prefix("  ") {
            _ if number == wrong => shown.extend(exception(line, room, pen)),
            Some(rest) if number < wrong => shown.extend(frame(rest, language, room, pen)),
            _ if number < wrong && is_exception(line) => shown.extend(exception(line, room, pen)),
            _ => {
                let style = if number < wrong { TextStyle::DIM } else { TextStyle::PLAIN };
                let painted = |part: String| pen.paint(style, &part).into_owned();
                shown.extend(wrapped_line(line, room).into_iter().map(painted));
            }
        }
    }
    shown
}

/// `ValueError: …`, `a.b.Error`
fn is_exception(line: &str) -> bool {
    let name = line.split(':').next().unwrap_or_default();
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    name.starts_with(|c: char| c.is_alphabetic() || c == '_') && name.chars().all(is_name)
}

fn exception(line: &str, room: usize, pen: TextPen) -> Vec<String> {
    let (name, message) = line.split_at(line.find(':').unwrap_or(line.len()));
    let text = vec![(WRONG, name.to_owned()), (TextStyle::PLAIN.bold(), message.to_owned())];
    wrapped(&text, room).iter().map(|line| painted(line, pen)).collect()
}

/// A line of a frame, without the two columns it is indented by.
fn frame(line: &str, language: &str, room: usize, pen: TextPen) -> Vec<String> {
    let is_mark = !line.trim().is_empty() && line.trim().chars().all(|c| "^~".contains(c));
    let line = match place(line) {
        _ if is_mark => pen.paint(WRONG, line).into_owned(),
        Some(pieces) => painted(&pieces, pen),
        None => code::coloured(line, language, pen).unwrap_or_else(|| line.to_owned()),
    };
    wrapped_line(&format!("  {line}"), room)
}

/// `File "script.py", line 4, in f`
fn place(line: &str) -> Option<StyledText> {
    let (path, rest) = line.strip_prefix("File \"")?.split_once("\", line ")?;
    let (number, then) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
    let dim = |text: &str| (TextStyle::DIM, text.to_owned());
    let mut pieces = vec![
        dim("File \""),
        (PLACE, path.to_owned()),
        dim("\", line "),
        (TextStyle::PLAIN.bold(), number.to_owned()),
    ];
    match then.strip_prefix(", in ") {
        Some(name) => pieces.extend([dim(", in "), (TextStyle::BLUE, name.to_owned())]),
        None => pieces.push(dim(then)),
    }
    Some(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACEBACK: &str = "Traceback (most recent call last):
  File \"<script.py, cell 2>\", line 4, in <module>
    mean(x for x in 'ab')
    ~~~~^^^^
ZeroDivisionError: division by zero
a note on it";

    #[test]
    fn a_traceback_shows_where_and_what() {
        let shown = lines(TRACEBACK, "python", 80, TextPen::Colours).join("\n").replace('\x1b', "␛");
        insta::assert_snapshot!(shown);
        assert_eq!(lines(TRACEBACK, "python", 80, TextPen::Plain).join("\n"), TRACEBACK);
    }

    #[test]
    fn colours_of_a_kernel_stay_and_what_moves_the_cursor_goes() {
        let shown = lines("\x1b[31mValueError\x1b[0m: \x1b]0;x\x07no\u{202e}", "", 80, TextPen::Colours);
        assert_eq!(shown, ["\x1b[0;31mValueError\x1b[0m: no\\u{202e}"]);
    }
}
