//! Text of others for a terminal, which acts on control characters.
//!
//! This is the one place that makes such text harmless: names of files, contents of notebooks, words of agents. Only
//! what a program that the user runs prints while it runs goes to the terminal as it is.

use std::borrow::Cow;

/// `text` with control and invisible characters escaped, except line feeds and tabs.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, ColourSequences::Escaped)
}

/// [`visible`] text in one line, for a name that must not look like several.
pub fn visible_line(text: &str) -> String {
    visible(text).replace('\n', "\\u{a}")
}

/// [`visible`] text whose colours stay: sequences that only change how characters look.
pub fn visible_coloured(text: &str) -> Cow<'_, str> {
    escaped(text, ColourSequences::Kept)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ColourSequences {
    Kept,
    Escaped,
}

fn escaped(text: &str, colours: ColourSequences) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(acts) {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        let c = special.chars().next().expect("it was found");
        let mut length = c.len_utf8();
        match c {
            '\r' if special.starts_with("\r\n") => {}
            // Part of one picture or of a word in scripts that need it. After ASCII it only hides.
            '\u{200C}' | '\u{200D}' if out.chars().next_back().is_some_and(|last| !last.is_ascii()) => {
                out.push(c);
            }
            '\u{1b}'
                if colours == ColourSequences::Kept
                    && let Some(sequence) = colour(special) =>
            {
                out.push_str(sequence);
                length = sequence.len();
            }
            c => out.extend(c.escape_unicode()),
        }
        rest = &special[length..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The sequence at the start of `text` if it only chooses colours and attributes.
fn colour(text: &str) -> Option<&str> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';' && c != ':')?;
    parameters[end..].starts_with('m').then(|| &text[..="\u{1b}[".len() + end])
}

/// Characters that move the cursor, hide others or change their order.
fn acts(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
        || matches!(
            c,
            '\u{61C}'
                | '\u{180E}'
                | '\u{200B}'..='\u{200F}'
                | '\u{2028}'..='\u{202E}'
                | '\u{2060}'..='\u{2069}'
                | '\u{FEFF}'
                | '\u{FFF9}'..='\u{FFFB}'
                | '\u{E0001}'..='\u{E007F}'
        )
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
        assert_eq!(visible("a\u{200d}b"), "a\\u{200d}b");
    }

    #[test]
    fn pictures_and_words_of_several_characters_stay_whole() {
        for text in ["👩\u{200d}💻", "می\u{200c}خواهم"] {
            assert_eq!(visible(text), text);
        }
    }

    #[test]
    fn colours_stay_where_they_are_asked_for_and_nothing_else_does() {
        assert_eq!(visible_coloured("\u{1b}[1;31mred\u{1b}[0m"), "\u{1b}[1;31mred\u{1b}[0m");
        assert_eq!(visible("\u{1b}[1mx"), "\\u{1b}[1mx");
        for (text, shown) in [
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("\u{1b}[31", "\\u{1b}[31"),
            ("\u{1b}[?1049hm", "\\u{1b}[?1049hm"),
            ("\u{1b}[31m\u{202e}", "\u{1b}[31m\\u{202e}"),
            ("\u{1b}\u{1b}[m", "\\u{1b}\u{1b}[m"),
        ] {
            assert_eq!(visible_coloured(text), shown);
        }
    }
}
