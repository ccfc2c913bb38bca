//! The files and cells that a prompt names.

use std::ops::Range;

/// A file or cell that a prompt names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PromptReference {
    /// `@PATH` or `@"PATH WITH BLANKS"`.
    File {
        /// As written, without `@` and quotes.
        path: String,
        /// Its position, in bytes.
        at: Range<usize>,
    },
    /// `#N`: the cell `In[N]`.
    Cell {
        count: u32,
        /// Its position, in bytes.
        at: Range<usize>,
    },
}

/// The files and cells that a prompt may name, in order. Marks inside a word (`a@b.example`,
/// `page#2`) do not count. The caller finds out whether the file or cell exists.
pub(crate) fn references(prompt: &str) -> Vec<PromptReference> {
    let mut found = Vec::new();
    let mut after_blank = true;
    let mut skip = 0;
    for (at, c) in prompt.char_indices() {
        if at >= skip && after_blank {
            let rest = &prompt[at + c.len_utf8()..];
            let reference =
                match c {
                    '@' => file(rest)
                        .map(|(path, length)| PromptReference::File { path, at: at..at + 1 + length }),
                    '#' => cell(rest)
                        .map(|(count, length)| PromptReference::Cell { count, at: at..at + 1 + length }),
                    _ => None,
                };
            if let Some(PromptReference::File { at, .. } | PromptReference::Cell { at, .. }) = &reference {
                skip = at.end;
            }
            found.extend(reference);
        }
        after_blank = c.is_whitespace() || matches!(c, '(' | '[' | '{' | ',' | ';');
    }
    found
}

/// The path at the start of a text, and its length in bytes. Punctuation at its end is not part of
/// it.
fn file(rest: &str) -> Option<(String, usize)> {
    if let Some(quoted) = rest.strip_prefix('"') {
        let end = quoted.find(['"', '\n']).filter(|end| quoted[*end..].starts_with('"') && *end > 0)?;
        return Some((quoted[..end].to_owned(), end + 2));
    }
    let word = rest.split(char::is_whitespace).next().unwrap_or_default();
    let path = word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '}', '\'', '"']);
    (!path.is_empty()).then(|| (path.to_owned(), path.len()))
}

fn cell(rest: &str) -> Option<(u32, usize)> {
    let length = rest.bytes().take_while(u8::is_ascii_digit).count();
    let ends = !rest[length..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let count = rest[..length].parse().ok()?;
    ends.then_some((count, length))
}
