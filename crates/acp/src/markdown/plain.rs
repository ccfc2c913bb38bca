//! Source of Markdown that is neither code nor a link: its characters, and the formulas in it.

/// Characters of which at least one is in every text that needs a change.
pub(super) fn is_special(c: char) -> bool {
    matches!(c, '<' | '[' | ']' | '$' | '\\' | '`' | '~' | '&')
}

/// Commands that reach out of a formula: they link, style the page or load more commands.
const REACHING: [&str; 12] =
    ["href", "url", "style", "class", "cssId", "require", "data", "html", "include", "unicode", "def", "let"];

/// Whether a text holds the beginning of a tag, a comment or the like.
pub(super) fn has_tag(text: &str) -> bool {
    let mut bytes = text.as_bytes();
    while let Some(at) = memchr::memchr(b'<', bytes) {
        bytes = &bytes[at + 1..];
        if bytes.first().is_some_and(|next| begins_tag(*next)) {
            return true;
        }
    }
    false
}

fn begins_tag(next: u8) -> bool {
    next.is_ascii_alphabetic() || matches!(next, b'/' | b'!' | b'?')
}

/// Writes source of Markdown so that nothing in it is a tag, a link or the beginning of a formula
/// but those that [`formula`] knows.
pub(super) fn write(raw: &str, lone_dollar: bool, out: &mut String) {
    let mut rest = raw;
    while let Some(at) = rest.find(['<', ']', '!', '$', '\\']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some((formula, end)) = formula(rest, out).filter(|_| !lone_dollar || !rest.starts_with('$')) {
            out.push_str(&formula);
            rest = &rest[end..];
            continue;
        }
        let (replacement, length) = replacement(rest, lone_dollar);
        out.push_str(replacement);
        rest = &rest[length..];
    }
    out.push_str(rest);
}

/// What the beginning of `rest` becomes, and how much of `rest` that is.
fn replacement(rest: &str, lone_dollar: bool) -> (&str, usize) {
    const BACKSLASH: &str = "<span>&#92;</span>";
    const DOLLAR: &str = "<span>&#36;</span>";
    let next = rest.as_bytes().get(1).copied();
    match rest.as_bytes()[0] {
        b'<' if next.is_some_and(begins_tag) => ("&lt;", 1),
        b']' if next == Some(b'(') => ("]&#40;", 2),
        b']' if next == Some(b':') => ("]&#58;", 2),
        b'!' if next == Some(b'[') => ("&#33;[", 2),
        b'$' if !lone_dollar => (DOLLAR, 1),
        b'\\' if next == Some(b'$') && !lone_dollar => (DOLLAR, 2),
        // An escaped `<` may be followed by a name.
        b'\\' if next == Some(b'<') => ("&lt;", 2),
        b'\\' if next == Some(b'\\') => (BACKSLASH, 2),
        b'\\' if next == Some(b'&') => ("&amp;", 2),
        b'\\' if rest[1..].starts_with("begin") => (BACKSLASH, 1),
        // An escaped character stays with its backslash.
        b'\\' if next == Some(b'!') || next == Some(b']') => (&rest[..1], 1),
        b'\\' if next.is_some_and(|next| next.is_ascii_punctuation()) => (&rest[..2], 2),
        _ => (&rest[..1], 1),
    }
}

/// The formula at the beginning of `rest` as Jupyter reads it everywhere, and its length in `rest`.
/// `before` is what was written.
fn formula(rest: &str, before: &str) -> Option<(String, usize)> {
    let (opening, closing, mark) = if rest.starts_with("$$") {
        ("$$", "$$", "$$")
    } else if rest.starts_with('$') {
        ("$", "$", "$")
    } else if rest.starts_with("\\(") {
        ("\\(", "\\)", "$")
    } else if rest.starts_with("\\[") {
        ("\\[", "\\]", "$$")
    } else {
        return environment(rest);
    };
    let (content, length) = enclosed(rest, opening, closing)?;
    if opening == "$" {
        // `$5 to $10` and `$HOME and $PATH` are no formulas.
        let after = rest[length..].chars().next();
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '{' | '(' | '$');
        let tight = !content.starts_with(char::is_whitespace) && !content.ends_with(char::is_whitespace);
        let follows_word = before.ends_with(|c: char| c.is_alphanumeric() || c == '$');
        if !tight || after.is_some_and(is_word) || follows_word {
            return None;
        }
    }
    let content = if mark == "$" { content.trim() } else { content };
    Some((format!("{mark}{}{mark}", tamed(content)?), length))
}

/// The text between two marks, and the length with both. Not over an empty line.
fn enclosed<'a>(rest: &'a str, opening: &str, closing: &str) -> Option<(&'a str, usize)> {
    let body = &rest[opening.len()..];
    let mut at = 0;
    loop {
        at += body[at..].find(closing)?;
        // `\$` does not close a formula, nor does `\\)`, which is a line break and a parenthesis.
        let backslashes = body[..at].bytes().rev().take_while(|byte| *byte == b'\\').count();
        if backslashes % 2 == 0 {
            break;
        }
        at += 1;
    }
    let content = &body[..at];
    let lines: Vec<_> = content.split('\n').collect();
    let has_empty_line =
        lines.len() > 2 && lines[1..lines.len() - 1].iter().any(|line| line.trim().is_empty());
    (!content.trim().is_empty() && !has_empty_line).then_some((content, opening.len() + at + closing.len()))
}

/// `\begin{align} … \end{align}` on its own.
fn environment(rest: &str) -> Option<(String, usize)> {
    let name = rest.strip_prefix("\\begin{")?;
    let name = &name[..name.find('}')?];
    let known = |c: char| c.is_ascii_lowercase();
    if name.is_empty() || !name.strip_suffix('*').unwrap_or(name).chars().all(known) {
        return None;
    }
    let (opening, closing) = (format!("\\begin{{{name}}}"), format!("\\end{{{name}}}"));
    let (content, length) = enclosed(rest, &opening, &closing)?;
    Some((format!("{opening}{}{closing}", tamed(content)?), length))
}

/// The content of a formula without anything that could leave it. `None` if that is unclear.
///
/// Jupyter takes formulas out of the text before it parses it, and puts them back afterwards with
/// their quotes, even into an attribute of a tag. It counts braces to find their end.
fn tamed(content: &str) -> Option<String> {
    let mut out = String::with_capacity(content.len() + 8);
    let mut braces = 0_usize;
    let mut rest = content;
    while let Some(c) = rest.chars().next() {
        let next = rest[c.len_utf8()..].chars().next();
        // Jupyter reads the second of two backslashes with the character behind it.
        if rest.starts_with("\\\\") && rest[2..].chars().next().is_none_or(|c| matches!(c, '{' | '}' | '$')) {
            return None;
        }
        let (written, length) = match (c, next) {
            ('\\', Some('{' | '}' | '$' | '\\')) => (&rest[..2], 2),
            ('\\', _) if REACHING.iter().any(|name| rest[1..].starts_with(name)) => return None,
            ('{', _) => {
                braces += 1;
                ("{", 1)
            }
            ('}', _) => {
                braces = braces.checked_sub(1)?;
                ("}", 1)
            }
            ('$' | '`', _) => return None,
            ('<', _) => ("\\lt ", 1),
            ('"', _) => ("''", 1),
            (']', Some('(' | ':')) => ("]{}", 1),
            ('!', Some('[')) => ("!{}", 1),
            _ => (&rest[..c.len_utf8()], c.len_utf8()),
        };
        out.push_str(written);
        rest = &rest[length..];
    }
    (braces == 0).then_some(out)
}
