//! The files, cells and variables that a prompt names.

use std::ops::Range;

/// A thing that a prompt names.
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
    /// `$NAME`: a variable of the kernel of code cells.
    Variable {
        name: String,
        /// Its position, in bytes.
        at: Range<usize>,
    },
}

impl PromptReference {
    fn end(&self) -> usize {
        match self {
            Self::File { at, .. } | Self::Cell { at, .. } | Self::Variable { at, .. } => at.end,
        }
    }
}

/// The files, cells and variables that a prompt may name, in order. Marks inside a word (`a@b.example`,
/// `page#2`) do not count. The caller finds out whether the thing exists.
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
                    '$' => variable(rest)
                        .map(|name| PromptReference::Variable { at: at..at + 1 + name.len(), name }),
                    _ => None,
                };
            skip = reference.as_ref().map_or(skip, PromptReference::end);
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

/// The name at the start of a text. Not of a call or a path, as in `$(date)` and `$HOME/bin`.
fn variable(rest: &str) -> Option<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let name = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
    let begins = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    (begins && !rest[name.len()..].starts_with('/')).then(|| name.to_owned())
}

fn cell(rest: &str) -> Option<(u32, usize)> {
    let length = rest.bytes().take_while(u8::is_ascii_digit).count();
    let ends = !rest[length..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let count = rest[..length].parse().ok()?;
    ends.then_some((count, length))
}
