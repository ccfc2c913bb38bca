//! Text of an agent for a terminal, which acts on control characters.

use std::borrow::Cow;

/// `text` with control and invisible characters escaped, except line feeds and tabs.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' if rest.peek() == Some(&'\n') => {}
            c if acts(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// [`visible`] text in one line, for a name that must not look like several.
pub(crate) fn visible_line(text: &str) -> String {
    visible(text).replace('\n', "\\u{a}")
}

/// Characters that move the cursor, hide others or change their order.
fn acts(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
        || matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_get_no_escape_sequences() {
        assert_eq!(visible("a\tb\r\nc"), "a\tb\nc");
        assert_eq!(visible("\u{1b}]52;c;eA==\u{7}"), "\\u{1b}]52;c;eA==\\u{7}");
        assert_eq!(visible_line("Allow\n  2) Reject"), "Allow\\u{a}  2) Reject");
        assert_eq!(visible("\u{9b}2J\r\u{202e}x"), "\\u{9b}2J\\u{d}\\u{202e}x");
    }
}
