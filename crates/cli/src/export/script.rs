//! A notebook of Python as a script: cells begin with `# %%`, as Jupytext, VS Code and Spyder read them.

use std::fmt::Write as _;

use cellwright_notebook::{CellKind, Notebook, NotebookCell};

/// A notebook whose language is another one.
#[derive(Debug, thiserror::Error)]
#[error(
    "a Python script takes a notebook of Python, and this one is of `{language}`; use `--to md` or `--to html`"
)]
pub(crate) struct NotPython {
    language: String,
}

/// The notebook as a script.
pub(crate) fn python_script(notebook: &Notebook) -> Result<String, NotPython> {
    if let Some(language) = notebook.language().filter(|name| !name.to_lowercase().contains("python")) {
        return Err(NotPython { language });
    }
    let mut out = String::new();
    for cell in notebook.cells() {
        if !out.is_empty() {
            out.push('\n');
        }
        write_cell(&mut out, &cell).expect("a String takes everything");
    }
    Ok(out)
}

fn write_cell(out: &mut String, cell: &NotebookCell<'_>) -> std::fmt::Result {
    let source = cell.source();
    let source = source.trim_end_matches('\n');
    let tags = cell.tags();
    let tags = if tags.is_empty() {
        String::new()
    } else {
        format!(" tags={}", serde_json::to_string(&tags).expect("texts are JSON"))
    };
    match cell.kind() {
        CellKind::Markdown => writeln!(out, "# %% [markdown]{tags}")?,
        CellKind::Raw => writeln!(out, "# %% [raw]{tags}")?,
        CellKind::Code => {
            if let Some((language, body)) = cell_magic(source) {
                writeln!(out, "# %%{tags} language={language:?}")?;
                return comment(out, body);
            }
            writeln!(out, "# %%{tags}")?;
            return code(out, source);
        }
    }
    comment(out, source)
}

/// The language of a cell that is not Python, and what it runs.
fn cell_magic(source: &str) -> Option<(&str, &str)> {
    const LANGUAGES: [&str; 9] = ["bash", "sh", "javascript", "js", "perl", "R", "ruby", "html", "latex"];
    let (head, body) = source.strip_prefix("%%")?.split_once('\n')?;
    LANGUAGES.contains(&head.trim()).then_some((head.trim(), body))
}

fn comment(out: &mut String, text: &str) -> std::fmt::Result {
    for line in text.split('\n') {
        writeln!(out, "#{}{line}", if line.is_empty() { "" } else { " " })?;
    }
    Ok(())
}

/// Python with what only IPython understands as comments.
fn code(out: &mut String, source: &str) -> std::fmt::Result {
    if source.starts_with("%%") && !source.starts_with("%%time") && !source.starts_with("%%capture") {
        return comment(out, source);
    }
    let mut quote: Option<&str> = None;
    for line in source.split('\n') {
        let start = line.trim_start();
        let is_magic = quote.is_none()
            && (start.starts_with('!')
                || start
                    .strip_prefix('%')
                    .is_some_and(|rest| rest.starts_with(|c: char| c.is_alphabetic() || c == '%')));
        writeln!(out, "{}{line}", if is_magic { "# " } else { "" })?;
        quote = open_quote(line, quote);
    }
    Ok(())
}

/// The triple quote that is open behind a line.
fn open_quote<'q>(line: &str, before: Option<&'q str>) -> Option<&'q str> {
    let mut open = before;
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        match open {
            Some(quote) if rest.starts_with(quote) => {
                open = None;
                rest = &rest[3..];
            }
            None if rest.starts_with("\"\"\"") => {
                open = Some("\"\"\"");
                rest = &rest[3..];
            }
            None if rest.starts_with("'''") => {
                open = Some("'''");
                rest = &rest[3..];
            }
            None if c == '#' => return None,
            None if matches!(c, '"' | '\'') => {
                let end = rest[1..].find(c).map_or(rest.len(), |at| at + 2);
                rest = &rest[end..];
            }
            Some(_) | None => rest = &rest[c.len_utf8()..],
        }
    }
    open
}
