//! What a file is that cannot be read as a notebook, and what helps.

use super::ParseError;
use crate::json::SyntaxError;

/// Says what a text with this fault is. Looks at all of it, so only for a text that has one.
pub(super) fn fault(text: &str, error: SyntaxError) -> ParseError {
    // A file that got its length and not its content before the power went holds zeros.
    if text.trim_start_matches('\u{feff}').trim_matches(|c: char| c.is_whitespace() || c == '\0').is_empty() {
        return ParseError::Empty;
    }
    fault_in_text(text, error)
}

/// The same for the readable start of a file that goes on.
pub(super) fn fault_in_text(text: &str, error: SyntaxError) -> ParseError {
    let content = text.trim_start_matches('\u{feff}').trim();
    if let Some(pointer) = lfs_pointer(content).or_else(|| conflict(text)) {
        return pointer;
    }
    match malformed(text, error.at, error.reason) {
        ParseError::Malformed { line, column, reason } if error.is_cut => {
            ParseError::CutOff { line, column, reason }
        }
        other => other,
    }
}

/// JSON in UTF-16 or UTF-32, by its mark or by the zeros beside its first brace.
pub(super) fn other_encoding(bytes: &[u8]) -> Option<ParseError> {
    let encoding = match bytes {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => "UTF-32",
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "UTF-16",
        [b'{', 0, 0, 0, ..] => "UTF-32LE",
        [0, 0, 0, b'{', ..] => "UTF-32BE",
        [b'{', 0, ..] => "UTF-16LE",
        [0, b'{', ..] => "UTF-16BE",
        _ => return None,
    };
    Some(ParseError::OtherEncoding { encoding })
}

/// A fault at byte `at`.
pub(super) fn malformed(text: &str, at: usize, reason: impl Into<String>) -> ParseError {
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    ParseError::Malformed {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].trim_start_matches('\u{feff}').chars().count() + 1,
        reason: reason.into(),
    }
}

/// <https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md#the-pointer>
fn lfs_pointer(text: &str) -> Option<ParseError> {
    let mut lines = text.lines();
    let version = lines.next()?.strip_prefix("version https://")?;
    let is_pointer =
        version.starts_with("git-lfs.github.com/spec/") || version.starts_with("hawser.github.com/");
    let size = lines.find_map(|line| line.strip_prefix("size ")?.trim().parse().ok());
    is_pointer.then_some(ParseError::LfsPointer { size })
}

/// A line of JSON cannot begin with `<` or `>`, so a pair of such lines is a merge's.
fn conflict(text: &str) -> Option<ParseError> {
    let is_marker = |line: &str, marker: &str| {
        line.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\r']))
    };
    let mut lines = text.lines().enumerate();
    let (at, first) = lines.find(|(_, line)| is_marker(line, "<<<<<<<"))?;
    lines.find(|(_, line)| is_marker(line, ">>>>>>>"))?;
    Some(ParseError::Conflict { line: at + 1, marker: first.chars().take(80).collect() })
}

#[cfg(test)]
mod tests {
    use crate::notebook::{Notebook, ParseError};

    #[test]
    fn a_notebook_in_utf_16_was_called_empty() {
        let text = "{\"cells\": []}";
        let wide = |unit: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(unit).collect::<Vec<_>>();
        let (little, big) = (wide(u16::to_le_bytes), wide(u16::to_be_bytes));
        for (bytes, encoding) in [
            ([&b"\xff\xfe"[..], &little].concat(), "UTF-16"),
            ([&b"\xfe\xff"[..], &big].concat(), "UTF-16"),
            (little, "UTF-16LE"),
            (big, "UTF-16BE"),
            (text.chars().flat_map(|c| (c as u32).to_le_bytes()).collect(), "UTF-32LE"),
            (text.chars().flat_map(|c| (c as u32).to_be_bytes()).collect(), "UTF-32BE"),
        ] {
            let error = Notebook::parse(bytes).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "it is in {encoding}, and notebooks are UTF-8 files; convert it, as by: iconv -f {encoding} -t UTF-8 \
                     FILE > NEW.ipynb"
                )
            );
        }
        assert_eq!(Notebook::parse(vec![0; 100]).unwrap_err(), ParseError::Empty);
        let binary = Notebook::parse(b"\xc0 something".to_vec()).unwrap_err();
        assert!(binary.to_string().contains("not UTF-8 from here on"), "{binary}");
    }
}
