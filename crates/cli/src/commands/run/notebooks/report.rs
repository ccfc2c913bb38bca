//! A folder of pages about runs, which continuous integration keeps.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use cellwright_notebook::file;
use cellwright_output::{Counted, escaped_html};

use super::show::{CaseResult, TestSuite};
use crate::export::{CellRemark, HtmlDocument, NotebookPageHtml, PageBanner, RunState, coloured_html};

/// The page that lists all others.
const INDEX: &str = "index.html";

/// A folder of pages: one for each notebook, and one that lists them.
pub(super) struct ReportFolder {
    folder: PathBuf,
    /// The names of the notebooks' pages, in the order of the notebooks.
    names: Vec<String>,
}

impl ReportFolder {
    /// Makes the folder for reports on these notebooks.
    pub(super) fn make(folder: &Path, notebooks: &[PathBuf]) -> anyhow::Result<Self> {
        fs::create_dir_all(folder)
            .with_context(|| format!("could not make the folder {}", folder.display()))?;
        let mut taken = HashSet::from([INDEX.to_owned()]);
        let names = notebooks.iter().map(|path| {
            let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
            let name = path.with_extension("").to_string_lossy().into_owned();
            let name = name.trim_start_matches(['.', '/']).replace(|c: char| !is_plain(c), "-");
            let numbered = (1..).map(|number| match number {
                1 => format!("{name}.html"),
                _ => format!("{name}-{number}.html"),
            });
            let name = numbered.into_iter().find(|name| !taken.contains(&name.to_lowercase()));
            let name = name.expect("numbers do not end");
            taken.insert(name.to_lowercase());
            name
        });
        Ok(Self { folder: folder.to_owned(), names: names.collect() })
    }

    /// Writes the page of one notebook, which the run left in `written`.
    pub(super) fn page(
        &self,
        place: usize,
        path: &Path,
        written: &Path,
        suite: &TestSuite,
    ) -> anyhow::Result<()> {
        let notebook = file::read(written)?;
        let failed = suite.failed();
        let remarks = suite.cases.iter().filter_map(|case| match &case.end {
            // What a cell raised is in its outputs.
            CaseResult::Differs { message, lines } => Some(CellRemark {
                cell: case.index,
                state: RunState::Failed,
                head: message.clone(),
                body: coloured_html(lines),
            }),
            CaseResult::Failed { .. } | CaseResult::Passed | CaseResult::Skipped(_) => None,
        });
        let banner = PageBanner {
            state: state(suite),
            duration: suite.duration,
            text: failed.map(|(_, message)| coloured_html(message)).unwrap_or_default(),
            cell: failed.map(|(cell, _)| cell),
            index: INDEX.to_owned(),
        };
        let remarks = remarks.collect();
        let page =
            NotebookPageHtml { notebook: &notebook, path, shows_code: true, banner: Some(banner), remarks };
        self.write(&self.names[place], &page.text())
    }

    /// Writes the list of all notebooks.
    pub(super) fn index(&self, suites: &[TestSuite]) -> anyhow::Result<()> {
        let mut body = String::new();
        self.write_index(&mut body, suites).expect("a String takes everything");
        self.write(INDEX, &HtmlDocument { title: "Notebook runs", language: "en", body }.text())
    }

    fn write_index(&self, out: &mut String, suites: &[TestSuite]) -> std::fmt::Result {
        let failed = suites.iter().filter(|suite| suite.failed().is_some()).count();
        let total = Counted(suites.len() as u64, "notebook");
        writeln!(out, "<main>\n<div class=\"prose\" style=\"margin-left:0\"><h1>Notebook runs</h1>")?;
        writeln!(out, "<p>{total}: {} passed, {failed} failed</p></div>", suites.len() - failed)?;
        writeln!(out, "<table class=\"runs\"><thead><tr><th>Status</th><th>Notebook</th><th>Cells</th>")?;
        writeln!(out, "<th>Seconds</th><th>What failed</th></tr></thead><tbody>")?;
        for (suite, page) in suites.iter().zip(&self.names) {
            let state = state(suite).word();
            let (name, seconds) = (escaped_html(&suite.name), suite.duration.as_secs_f64());
            let has_page = self.folder.join(page).is_file() && suite.has_page;
            let passed = suite.cases.iter().filter(|case| matches!(case.end, CaseResult::Passed)).count();
            write!(out, "<tr><td><span class=\"badge {state}\">{state}</span></td><td>")?;
            if has_page {
                write!(out, "<a href=\"{}\">{name}</a>", escaped_html(page))?;
            } else {
                out.push_str(&name);
            }
            write!(
                out,
                "</td><td>{passed} of {}</td><td>{seconds:.2}</td><td class=\"why\">",
                suite.cases.len()
            )?;
            match suite.failed() {
                Some((cell, message)) if has_page => {
                    let message = coloured_html(message);
                    write!(out, "<a href=\"{}#cell-{cell}\">cell {cell}</a> {message}", escaped_html(page))?;
                }
                Some((_, message)) => out.push_str(&coloured_html(message)),
                None => {}
            }
            writeln!(out, "</td></tr>")?;
        }
        writeln!(out, "</tbody></table>\n</main>")
    }

    fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let path = self.folder.join(name);
        fs::write(&path, text).with_context(|| format!("could not write {}", path.display()))
    }
}

fn state(suite: &TestSuite) -> RunState {
    if suite.failed().is_some() { RunState::Failed } else { RunState::Passed }
}
