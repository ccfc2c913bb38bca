//! Python with colours. It distinguishes strings, comments, numbers and names, no more: a cell may be half a program.

use super::{COMMENT, DEFINED, KEYWORD, MAGIC, NUMBER, STRING, blank, number};
use crate::draw::style::TextStyle;

const KEYWORDS: &[&str] = &[
    "and", "as", "assert", "async", "await", "break", "case", "class", "continue", "def", "del", "elif",
    "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "match",
    "nonlocal", "not", "or", "pass", "raise", "return", "try", "type", "while", "with", "yield",
];
/// Keywords only where a statement starts with them; names anywhere else.
const SOFT: &[&str] = &["case", "match", "type"];
const CONSTANTS: &[&str] = &["True", "False", "None", "self", "cls"];
/// Cell magics whose body is Python still.
const PYTHON_MAGICS: &[&str] = &["capture", "prun", "python", "python3", "time", "timeit"];

/// The source in pieces; together they are the source.
pub(crate) fn pieces(source: &str) -> Vec<(TextStyle, &str)> {
    let mut pieces = Vec::new();
    let mut rest = source;
    if let Some(body) = source.strip_prefix("%%") {
        let name = body.split(|c: char| c.is_whitespace()).next().unwrap_or_default();
        let line = source.find('\n').unwrap_or(source.len());
        pieces.push((MAGIC, &source[..line]));
        rest = &source[line..];
        if !PYTHON_MAGICS.contains(&name) {
            pieces.push((TextStyle::PLAIN, rest));
            return pieces;
        }
    }
    let mut before = TokenContext { starts_line: true, defines: false };
    while !rest.is_empty() {
        let (style, length) = next(rest, &before);
        let (piece, after) = rest.split_at(length);
        before.see(piece);
        pieces.push((style, piece));
        rest = after;
    }
    pieces
}

/// What matters of the text before a token.
struct TokenContext {
    /// Only white space since the last line's end.
    starts_line: bool,
    /// `def` or `class`, and white space.
    defines: bool,
}

impl TokenContext {
    fn see(&mut self, piece: &str) {
        let is_space = piece.trim().is_empty();
        self.starts_line = piece.ends_with('\n') || (self.starts_line && is_space);
        self.defines = matches!(piece, "def" | "class") || (self.defines && is_space);
    }
}

/// The style and length of the first token.
fn next(rest: &str, before: &TokenContext) -> (TextStyle, usize) {
    let first = rest.chars().next().expect("there is text left");
    let line = rest.find('\n').unwrap_or(rest.len());
    let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    match first {
        '#' => (COMMENT, line),
        '%' if before.starts_line && rest[1..].starts_with(|c: char| c.is_alphabetic() || c == '%') => {
            let name = rest[1..].find(|c: char| c.is_whitespace()).map_or(rest.len(), |at| at + 1);
            (MAGIC, name)
        }
        '!' if before.starts_line => (MAGIC, line),
        '@' if before.starts_line => {
            let end = rest[1..].find(|c: char| !c.is_alphanumeric() && c != '_' && c != '.');
            (MAGIC, end.map_or(rest.len(), |at| at + 1))
        }
        '"' | '\'' => (STRING, string(rest)),
        '0'..='9' => (NUMBER, number(rest)),
        '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => (NUMBER, number(rest)),
        _ if first.is_alphabetic() || first == '_' => {
            let name = &rest[..word];
            if rest[word..].starts_with(['"', '\'']) && is_prefix(name) {
                return (STRING, word + string(&rest[word..]));
            }
            (name_style(name, &rest[word..], before), word)
        }
        _ if first.is_whitespace() => (TextStyle::PLAIN, blank(rest)),
        _ => (TextStyle::PLAIN, first.len_utf8()),
    }
}

fn name_style(name: &str, after: &str, before: &TokenContext) -> TextStyle {
    let is_statement =
        before.starts_line && after.starts_with(' ') && !after.trim_start().starts_with(['=', '.', ',', ':']);
    match name {
        _ if before.defines => DEFINED,
        _ if SOFT.contains(&name) => {
            if is_statement {
                KEYWORD
            } else {
                TextStyle::PLAIN
            }
        }
        _ if KEYWORDS.contains(&name) => KEYWORD,
        _ if CONSTANTS.contains(&name) => NUMBER,
        _ => TextStyle::PLAIN,
    }
}

fn is_prefix(name: &str) -> bool {
    name.len() <= 2 && name.bytes().all(|byte| b"rbuft".contains(&byte.to_ascii_lowercase()))
}

/// The length of a string that starts with its quote. Without an end it goes to the line's end, or to the text's.
fn string(rest: &str) -> usize {
    let quote = &rest[..1];
    let triple = quote.repeat(3);
    let end = if rest.starts_with(&triple) { triple.as_str() } else { quote };
    let mut at = end.len();
    while at < rest.len() {
        let tail = &rest[at..];
        if tail.starts_with(end) {
            return at + end.len();
        }
        let mut letters = tail.chars();
        match letters.next().expect("there is text left") {
            '\\' => at += 1 + letters.next().map_or(0, char::len_utf8),
            '\n' if end.len() == 1 => return at,
            letter => at += letter.len_utf8(),
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces that are not plain.
    fn styled(source: &str) -> Vec<(TextStyle, &str)> {
        let all = pieces(source);
        assert_eq!(all.iter().map(|(_, text)| *text).collect::<String>(), source);
        all.into_iter().filter(|(style, _)| *style != TextStyle::PLAIN).collect()
    }

    #[test]
    fn tokens_are_distinguished() {
        assert_eq!(
            styled("def area(r):  # π\n    return 3.14e-2 * r"),
            [(KEYWORD, "def"), (DEFINED, "area"), (COMMENT, "# π"), (KEYWORD, "return"), (NUMBER, "3.14e-2")]
        );
        assert_eq!(styled("@a.b\nx = match"), [(MAGIC, "@a.b")]);
        assert_eq!(styled("match x:"), [(KEYWORD, "match")]);
    }

    #[test]
    fn strings_end_where_they_end() {
        assert_eq!(styled(r#"f"a\"b" + 'c'"#), [(STRING, r#"f"a\"b""#), (STRING, "'c'")]);
        assert_eq!(styled("'''a\n'b' # c\n''' # d"), [(STRING, "'''a\n'b' # c\n'''"), (COMMENT, "# d")]);
        assert_eq!(styled("'open\nx"), [(STRING, "'open")]);
        assert_eq!(styled("\"\"\"open é\\"), [(STRING, "\"\"\"open é\\")]);
    }

    #[test]
    fn magics_are_distinguished_from_remainders() {
        assert_eq!(styled("%time x % y\n!ls 'a"), [(MAGIC, "%time"), (MAGIC, "!ls 'a")]);
        assert_eq!(styled("%%bash\nif 'x"), [(MAGIC, "%%bash")]);
        assert_eq!(styled("%%time\nif x"), [(MAGIC, "%%time"), (KEYWORD, "if")]);
    }
}
