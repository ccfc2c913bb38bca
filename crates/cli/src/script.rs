//! Python scripts as cells: a line `# %%` starts one, as in many editors.

use anyhow::Context as _;
use cellwright_session::CellRequest;

/// The text of a script as Python reads it: without UTF-8's mark, in the encoding its first lines name.
pub(crate) fn decode(mut bytes: Vec<u8>) -> anyhow::Result<String> {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes.drain(..3);
    }
    match encoding(&bytes).as_deref() {
        Some("latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" | "l1") => {
            Ok(bytes.into_iter().map(char::from).collect())
        }
        Some(other) if !matches!(other, "utf-8" | "utf8" | "ascii" | "us-ascii" | "utf-8-sig") => {
            anyhow::bail!("its encoding `{other}` is not known here; save it as UTF-8")
        }
        Some(_) | None => String::from_utf8(bytes).context("it is not UTF-8 text"),
    }
}

/// What a comment in the first two lines names: <https://peps.python.org/pep-0263/>.
fn encoding(bytes: &[u8]) -> Option<String> {
    bytes.split(|&byte| byte == b'\n').take(2).find_map(|line| {
        let line = String::from_utf8_lossy(line);
        let comment = line.trim_start().strip_prefix('#')?;
        let (_, named) = comment.split_once("coding")?;
        let name = named.strip_prefix([':', '='])?.trim_start();
        let end = name.find(|c: char| !c.is_alphanumeric() && !"-_.".contains(c)).unwrap_or(name.len());
        Some(name[..end].to_lowercase().replace('_', "-"))
    })
}

/// A cell of a script.
struct ScriptCell {
    title: Option<String>,
    code: String,
    /// Lines of the script before it.
    before: usize,
}

/// The cells of a script. Text that is no code (`# %% [markdown]`) and cells without code are left out. Each cell begins
/// with as many empty lines as the script has before it, so that tracebacks count the script's lines.
pub(crate) fn cells(text: &str) -> Vec<CellRequest> {
    // A string that is never closed is not Python's, or is an error that Python reports.
    let cells = cut(text, open_quotes).unwrap_or_else(|| cut(text, |_, _| None).unwrap_or_default());
    let runs = |ScriptCell { title, code, .. }: &ScriptCell| {
        let is_prose = title
            .as_deref()
            .is_some_and(|title| title.starts_with("[markdown]") || title.starts_with("[raw]"));
        !is_prose && !code.trim().is_empty()
    };
    cells
        .into_iter()
        .filter(runs)
        .map(|ScriptCell { title, code, before }| {
            let mut cell = CellRequest::new("\n".repeat(before) + &code);
            cell.source.title = title.filter(|title| !title.is_empty());
            cell
        })
        .collect()
}

/// Cuts a text at separators outside strings, which `quotes` follows from line to line: given those that are open where a
/// line begins, which are where it ends. Nothing when some are at the end of the text.
fn cut(
    text: &str,
    quotes: fn(&str, Option<&'static str>) -> Option<&'static str>,
) -> Option<Vec<ScriptCell>> {
    let mut cells = vec![ScriptCell { title: None, code: String::new(), before: 0 }];
    let mut open = None;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if let Some(title) = separator(line).filter(|_| open.is_none()) {
            cells.push(ScriptCell { title: Some(title.to_owned()), code: String::new(), before: number + 1 });
        } else {
            open = quotes(line, open);
            cells.last_mut().expect("there is a first cell").code.push_str(line);
        }
    }
    open.is_none().then_some(cells)
}

/// The triple quotes that are open after a line of Python.
fn open_quotes(line: &str, mut open: Option<&'static str>) -> Option<&'static str> {
    if open.is_none() && line.trim_start().starts_with(['!', '%']) {
        return None; // for a shell or a magic
    }
    let mut rest = line;
    loop {
        let quotes = if let Some(quotes) = open {
            quotes
        } else {
            rest = &rest[rest.find(['#', '"', '\''])?..];
            let quotes = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quotes| rest.starts_with(quotes))?;
            rest = &rest[quotes.len()..];
            quotes
        };
        match end_of_string(rest, quotes) {
            Some(end) => (open, rest) = (None, &rest[end..]),
            None => return Some(quotes).filter(|quotes| quotes.len() == 3),
        }
    }
}

/// Where a string ends; a backslash takes the next character along, in raw strings too.
fn end_of_string(text: &str, quotes: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find(|c: char| c == '\\' || quotes.starts_with(c)) {
        at += found;
        if text[at..].starts_with(quotes) {
            return Some(at + quotes.len());
        }
        let taken = if text[at..].starts_with('\\') { 2 } else { 1 };
        at += text[at..].chars().take(taken).map(char::len_utf8).sum::<usize>();
    }
    None
}

/// What follows `# %%`, when the line is a separator.
fn separator(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("# %%").or_else(|| line.strip_prefix("#%%"))?;
    // `# %%time` is a commented magic.
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| rest.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, codes: &[&str]) {
        let found: Vec<_> = cells(text).into_iter().map(|cell| cell.source.code).collect();
        let found: Vec<_> = found.iter().map(|code| code.trim_start_matches('\n')).collect();
        assert_eq!(found, codes);
    }

    #[test]
    fn a_separator_inside_a_string_is_part_of_it() {
        let whole = "a = '''x\n# %% not one\n'''\n";
        check(&format!("{whole}# %%\nb\n"), &[whole, "b\n"]);
        let whole = "a = r\"\"\"\\\"\"\"\n# %% no\n\"\"\" + '#' + 'it\\'s' # '''\n";
        check(&format!("{whole}# %%\nb\n"), &[whole, "b\n"]);
        check("!echo '''\nx = \"'''\"\n# %%\nb\n", &["!echo '''\nx = \"'''\"\n", "b\n"]);
    }

    #[test]
    fn a_string_that_is_never_closed_hides_no_separator() {
        check("%%bash\necho '''\n# %%\nb\n", &["%%bash\necho '''\n", "b\n"]);
    }

    #[test]
    fn a_script_is_read_in_the_encoding_it_names() {
        let read = |bytes: &[u8]| decode(bytes.to_vec()).map_err(|error| error.to_string());
        assert_eq!(read(b"\xef\xbb\xbfx = 1"), Ok("x = 1".to_owned()));
        assert_eq!(
            read(b"# -*- coding: latin-1 -*-\n'\xe9'"),
            Ok("# -*- coding: latin-1 -*-\n'\u{e9}'".to_owned())
        );
        assert_eq!(read(b"#!x\n# fileencoding=UTF_8 :\n"), Ok("#!x\n# fileencoding=UTF_8 :\n".to_owned()));
        assert_eq!(
            read(b"# coding=koi8-r\n"),
            Err("its encoding `koi8-r` is not known here; save it as UTF-8".to_owned())
        );
        assert_eq!(read(b"\xff"), Err("it is not UTF-8 text".to_owned()));
    }

    #[test]
    fn a_script_is_cut_at_its_separators() {
        let text =
            "import os\n# %% first\nx = 1\n\n# %% [markdown]\n# prose\n# %%\n# %%time\ny\n# %% empty\n\n";
        let found: Vec<_> =
            cells(text).into_iter().map(|cell| (cell.source.title, cell.source.code)).collect();
        let cell = |title: Option<&str>, code: &str| (title.map(str::to_owned), code.to_owned());
        assert_eq!(
            found,
            [
                cell(None, "import os\n"),
                cell(Some("first"), "\n\nx = 1\n\n"),
                cell(None, "\n\n\n\n\n\n\n# %%time\ny\n")
            ]
        );
    }
}
