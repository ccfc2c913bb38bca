//! Code in colours: Python by its own rules, other languages by tables of their words.
//! (`syntect` and `two-face` know more, at the price of megabytes of grammars in the binary.)

mod languages;
mod python;

use self::languages::LanguageWords;
use super::style::{TextPen, TextStyle};

const KEYWORD: TextStyle = TextStyle::MAGENTA;
const STRING: TextStyle = TextStyle::GREEN;
const COMMENT: TextStyle = TextStyle::DIM;
const NUMBER: TextStyle = TextStyle::CYAN;
const DEFINED: TextStyle = TextStyle::BLUE.bold();
const MAGIC: TextStyle = TextStyle::YELLOW;

/// A piece of a source in one style.
pub(crate) type CodePiece<'a> = (TextStyle, &'a str);

/// The source in pieces; together they are the source. `None` for languages that are not known here.
pub(crate) fn pieces<'a>(source: &'a str, language: &str) -> Option<Vec<CodePiece<'a>>> {
    let language = language.trim().to_ascii_lowercase();
    if language.contains("python") || language == "py" {
        return Some(python_pieces(source));
    }
    Some(LanguageWords::named(&language)?.pieces(source))
}

/// Python, whose cells may begin with a magic that names another language.
fn python_pieces(source: &str) -> Vec<CodePiece<'_>> {
    let magic = source.strip_prefix("%%").and_then(|rest| rest.split_whitespace().next());
    let other = magic.and_then(|name| LanguageWords::named(&name.to_ascii_lowercase()));
    let Some(other) = other else { return python::pieces(source) };
    let (line, body) = source.split_at(source.find('\n').unwrap_or(source.len()));
    let mut pieces = vec![(MAGIC, line)];
    pieces.extend(other.pieces(body));
    pieces
}

/// The source with colours. No colour spans a line's end. `None` for languages that are not known here.
pub(crate) fn coloured(source: &str, language: &str, pen: TextPen) -> Option<String> {
    let pieces = pieces(source, language)?;
    Some(pieces.iter().map(|(style, text)| pen.paint(*style, text)).collect())
}

/// Code with a terminal's colours, if its language is known here.
pub(crate) fn painted(source: &str, language: &str) -> String {
    coloured(source, language, TextPen::Colours).unwrap_or_else(|| source.to_owned())
}

/// The length of a number that `rest` begins with.
fn number(rest: &str) -> usize {
    let mut last = ' ';
    let end = rest.find(|c: char| {
        let goes_on =
            c.is_ascii_alphanumeric() || c == '_' || c == '.' || ("+-".contains(c) && "eE".contains(last));
        last = c;
        !goes_on
    });
    end.unwrap_or(rest.len())
}

/// White space up to the end of its line, that end included.
fn blank(rest: &str) -> usize {
    let end = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
    rest[..end].find('\n').map_or(end, |at| at + 1)
}
