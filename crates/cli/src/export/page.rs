//! A notebook as one HTML file that needs nothing else: no script, no font, no picture from elsewhere.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use cellwright_notebook::{CellKind, Notebook, NotebookCell};
use cellwright_output::{Counted, escaped_html};

use super::PartTag;
use super::outputs::{code_html, output_html};
use super::pictures::PictureFiles;
use super::prose::{prose_html, title};

/// How a page looks, in light and in dark.
const STYLE: &str = include_str!("page.css");

/// What a browser may do with the page: show it. This holds even if the page had a script.
const POLICY: &str = "default-src 'none'; img-src data:; style-src 'unsafe-inline'";

/// A notebook to be shown as a page.
pub(crate) struct NotebookPageHtml<'a> {
    pub(crate) notebook: &'a Notebook,
    /// The notebook's file, for its name and the pictures beside it.
    pub(crate) path: &'a Path,
    /// Whether code is shown, or only what it left.
    pub(crate) shows_code: bool,
    /// How its run went, if the page is about a run.
    pub(crate) banner: Option<PageBanner>,
    /// What is said of cells, below them.
    pub(crate) remarks: Vec<CellRemark>,
}

/// How a run went, above the notebook.
pub(crate) struct PageBanner {
    pub(crate) state: RunState,
    pub(crate) duration: Duration,
    /// What failed, as HTML.
    pub(crate) text: String,
    /// The cell that failed.
    pub(crate) cell: Option<usize>,
    /// Where the list of all notebooks is.
    pub(crate) index: String,
}

/// How a run went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunState {
    Passed,
    Failed,
}

/// Something to say of a cell.
pub(crate) struct CellRemark {
    pub(crate) cell: usize,
    pub(crate) state: RunState,
    pub(crate) head: String,
    /// Text for a `<pre>`, as HTML.
    pub(crate) body: String,
}

/// A page of ours.
pub(crate) struct HtmlDocument<'a> {
    pub(crate) title: &'a str,
    pub(crate) language: &'a str,
    pub(crate) body: String,
}

impl RunState {
    /// One word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
        }
    }
}

impl HtmlDocument<'_> {
    /// The file's text.
    pub(crate) fn text(&self) -> String {
        let (title, language) = (escaped_html(self.title), escaped_html(self.language));
        format!(
            "<!DOCTYPE html>\n<html lang=\"{language}\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta name=\"generator\" content=\"cellwright\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
            self.body
        )
    }
}

impl NotebookPageHtml<'_> {
    /// The page.
    pub(crate) fn text(&self) -> String {
        let file = self.path.file_name().unwrap_or_default().to_string_lossy();
        let first = self.notebook.cells().find(|cell| cell.kind() == CellKind::Markdown);
        let own_title = first.and_then(|cell| title(&cell.source()));
        let title = own_title.clone().unwrap_or_else(|| file.trim_end_matches(".ipynb").to_owned());
        let mut body = String::new();
        self.write(&mut body, &file, own_title.is_none().then_some(&title))
            .expect("a String takes everything");
        HtmlDocument { title: &title, language: "en", body }.text()
    }

    fn write(&self, out: &mut String, file: &str, heading: Option<&String>) -> std::fmt::Result {
        let kernel = self.notebook.kernel_name().or_else(|| self.notebook.language()).unwrap_or_default();
        let cells = Counted(self.notebook.len() as u64, "cell");
        let about = [file.to_owned(), kernel, cells.to_string()].into_iter().filter(|word| !word.is_empty());
        let about = about.map(|word| escaped_html(&word).into_owned()).collect::<Vec<_>>().join(" · ");
        writeln!(out, "<header class=\"about\">{about}</header>")?;
        if let Some(banner) = &self.banner {
            banner.write(out)?;
        }
        writeln!(out, "<main>")?;
        if let Some(heading) = heading {
            writeln!(out, "<div class=\"prose\"><h1>{}</h1></div>", escaped_html(heading))?;
        }
        let files = PictureFiles::in_folder(self.path.parent().unwrap_or(Path::new("")));
        for cell in self.notebook.cells() {
            if PartTag::of(&cell, "cell") != PartTag::Removed {
                self.cell(out, &cell, &files)?;
            }
            for remark in self.remarks.iter().filter(|remark| remark.cell == cell.index()) {
                let CellRemark { state, head, body, .. } = remark;
                write!(
                    out,
                    "<aside class=\"remark {}\"><strong>{}</strong>",
                    state.word(),
                    escaped_html(head)
                )?;
                writeln!(out, "<pre>{body}</pre></aside>")?;
            }
        }
        writeln!(out, "</main>")
    }

    fn cell(&self, out: &mut String, cell: &NotebookCell<'_>, files: &PictureFiles) -> std::fmt::Result {
        let index = cell.index();
        let source = cell.source();
        match cell.kind() {
            CellKind::Markdown => {
                let scope = format!("cell-{index}");
                let html = prose_html(&source, &scope, &|address| files.address(address, cell));
                writeln!(out, "<section class=\"prose\" id=\"{scope}\">{html}</section>")
            }
            CellKind::Raw => {
                let text = escaped_html(&source);
                writeln!(out, "<section class=\"raw\" id=\"cell-{index}\"><pre>{text}</pre></section>")
            }
            CellKind::Code => {
                let language = self.notebook.language().unwrap_or_else(|| "python".to_owned());
                let input = match PartTag::of(cell, "input") {
                    _ if !self.shows_code || source.trim().is_empty() => String::new(),
                    PartTag::Removed => String::new(),
                    PartTag::Shown => code_html(&source, &language),
                    PartTag::Hidden => folded("Code", &code_html(&source, &language)),
                };
                let outputs = cell.outputs();
                let outputs: String = outputs
                    .iter()
                    .enumerate()
                    .map(|(number, output)| output_html(self.notebook, cell, number, output, files))
                    .collect();
                let outputs = match PartTag::of(cell, "output") {
                    PartTag::Removed => String::new(),
                    PartTag::Hidden if !outputs.is_empty() => folded("Output", &outputs),
                    PartTag::Hidden | PartTag::Shown => outputs,
                };
                if input.is_empty() && outputs.is_empty() {
                    return Ok(());
                }
                let count = cell.execution_count().map_or_else(String::new, |count| count.to_string());
                let count = if input.is_empty() { String::new() } else { count };
                writeln!(
                    out,
                    "<section class=\"cell\" id=\"cell-{index}\"><div class=\"count\">{count}</div>"
                )?;
                writeln!(out, "<div class=\"parts\">{input}\n{outputs}</div></section>")
            }
        }
    }
}

fn folded(summary: &str, body: &str) -> String {
    format!("<details><summary>{summary}</summary>{body}</details>")
}

impl PageBanner {
    fn write(&self, out: &mut String) -> std::fmt::Result {
        let Self { state, duration, text, cell, index } = self;
        let (word, seconds) = (state.word(), duration.as_secs_f64());
        write!(out, "<nav class=\"banner {word}\"><a href=\"{}\">All notebooks</a> ", escaped_html(index))?;
        write!(out, "<span class=\"badge {word}\">{word}</span> <span>{seconds:.2} s</span>")?;
        if !text.is_empty() {
            write!(out, " <span>{text}</span>")?;
        }
        if let Some(cell) = cell {
            write!(out, " <a href=\"#cell-{cell}\">cell {cell}</a>")?;
        }
        writeln!(out, "</nav>")
    }
}
