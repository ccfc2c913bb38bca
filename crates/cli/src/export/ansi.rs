//! Text with a terminal's colours as HTML.

use std::fmt::Write as _;

use cellwright_cell::Stream;
use cellwright_output::{Colours, OutputLimits, OutputSink, escaped_html};

/// What a terminal would show of `text`, as HTML for a `<pre>`.
pub(crate) fn coloured_html(text: &str) -> String {
    let mut sink = OutputSink::new(OutputLimits::NONE, Colours::Kept);
    sink.write(Stream::Stdout, text.as_bytes());
    spans(&sink.finish().text)
}

/// The sequences of a sink as elements. Each of them states the whole style.
pub(super) fn spans(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    let mut parts = text.split("\x1b[");
    out.push_str(&escaped_html(parts.next().unwrap_or_default()));
    for part in parts {
        let Some((codes, text)) = part.split_once('m') else { continue };
        let look = SpanLook::of(codes);
        if text.is_empty() || look.is_plain() {
            out.push_str(&escaped_html(text));
            continue;
        }
        let (class, style) = (look.classes.join(" "), look.style);
        out.push_str("<span");
        for (name, value) in [("class", &class), ("style", &style)] {
            if !value.is_empty() {
                write!(out, " {name}=\"{value}\"").expect("a String takes everything");
            }
        }
        out.extend([">", &escaped_html(text), "</span>"]);
    }
    out
}

/// How a piece of text looks: classes for what the page's theme decides, a style for the rest.
#[derive(Default)]
struct SpanLook {
    classes: Vec<String>,
    style: String,
}

impl SpanLook {
    fn of(codes: &str) -> Self {
        let mut look = Self::default();
        let mut codes = codes.split(';').map_while(|code| code.parse::<u8>().ok());
        while let Some(code) = codes.next() {
            match code {
                1..=9 | 30..=37 | 40..=47 | 90..=97 | 100..=107 => look.classes.push(format!("s{code}")),
                38 | 48 => {
                    let property = if code == 38 { "color" } else { "background" };
                    let (red, green, blue) = if codes.next() == Some(5) {
                        let index = codes.next().unwrap_or_default();
                        if index < 16 {
                            // One of the named ones: 30 to 37 and 90 to 97, 40 to 47 and 100 to 107.
                            let first = if index < 8 { code - 8 } else { code + 44 };
                            look.classes.push(format!("s{}", first + index));
                            continue;
                        }
                        of_cube(index)
                    } else {
                        let mut part = || codes.next().unwrap_or_default();
                        (part(), part(), part())
                    };
                    write!(look.style, "{property}:#{red:02x}{green:02x}{blue:02x};")
                        .expect("a String takes everything");
                }
                _ => {}
            }
        }
        look
    }

    fn is_plain(&self) -> bool {
        self.classes.is_empty() && self.style.is_empty()
    }
}

/// A colour of xterm's table behind the sixteen that have names: a cube of colours, then greys.
fn of_cube(index: u8) -> (u8, u8, u8) {
    if let Some(grey) = index.checked_sub(232) {
        let grey = 8 + 10 * grey;
        return (grey, grey, grey);
    }
    let index = index.saturating_sub(16);
    let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
    (level(index / 36), level(index / 6 % 6), level(index % 6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_of_a_terminal_become_elements() {
        assert_eq!(coloured_html("a < b\rA\n"), "A < b\n".replace('<', "&lt;"));
        assert_eq!(coloured_html("\x1b[1;31mError\x1b[0m: x"), "<span class=\"s1 s31\">Error</span>: x");
        assert_eq!(
            coloured_html("\x1b[38;5;208mo\x1b[39m\x1b[48;5;9mr"),
            "<span style=\"color:#ff8700;\">o</span><span class=\"s101\">r</span>"
        );
        assert_eq!(
            coloured_html("\x1b[38;2;1;2;3mx\x1b[0m\x1b]0;title\x07y"),
            "<span style=\"color:#010203;\">x</span>y"
        );
    }
}
