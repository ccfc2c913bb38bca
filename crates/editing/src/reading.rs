//! Reading for a caller: what is shown is what it knows afterwards.

use std::borrow::Cow;
use std::io;

use cellwright_notebook::file::FileError;
use cellwright_notebook::select::{NotebookPart, PastTheEnd};
use cellwright_notebook::{Fingerprint, Notebook, Selector};
use regex::Regex;

use crate::coverage::{ReadCoverage, SeenLines};
use crate::editor::{FileEditor, FileName};
use crate::error::{EditingError, UnreadableNotebook};
use crate::page::{self, SearchPage, TextPage};
use crate::view::{NotebookView, OutputView, ViewRequest};

/// What a caller wants to see of a file.
#[derive(Debug, Clone, Copy)]
pub struct ReadRequest<'a> {
    /// Which part.
    pub selector: &'a Selector,
    /// How much of the outputs of a notebook.
    pub outputs: OutputView,
    /// Show only the lines that match.
    pub search: Option<&'a Regex>,
    /// Most bytes on a page.
    pub budget: usize,
}

/// What is shown of a notebook.
#[derive(Debug)]
pub struct NotebookRead {
    /// The notebook, without outputs if they were not asked for. `None` if the file is not a notebook: then the raw view
    /// that was asked for shows its text, and a note says what is wrong with it.
    pub notebook: Option<Notebook>,
    /// The file.
    pub fingerprint: Fingerprint,
    /// The part that was asked for.
    pub view: NotebookView,
    /// The lines of it that are shown.
    pub shown: ShownLines,
    /// Whether it could be remembered what was shown. If not, a later write is refused.
    pub remembered: io::Result<()>,
}

/// Lines that are shown.
#[derive(Debug)]
pub enum ShownLines {
    /// The requested ones that fit on a page.
    Page(TextPage),
    /// Those that match a search.
    Found(SearchPage),
}

impl ShownLines {
    /// The part of a text that `request` asks for and allows. `named` is what to read to go on.
    pub fn of(named: &str, text: &str, request: &ReadRequest<'_>) -> Result<Self, PastTheEnd> {
        let ranges = &request.selector.lines;
        Ok(match request.search {
            Some(pattern) => Self::Found(page::search(named, text, ranges, pattern)?),
            None => Self::Page(page::lines(named, text, ranges, request.budget)?),
        })
    }

    /// What is shown, for the memory of the caller.
    pub fn seen_lines(&self) -> SeenLines {
        match self {
            Self::Page(page) => page.seen_lines(),
            Self::Found(found) => {
                let mut seen = SeenLines::default();
                found.whole_lines().into_iter().for_each(|lines| seen.add(lines));
                seen
            }
        }
    }

    /// The text to show.
    pub fn text(&self) -> String {
        match self {
            Self::Page(page) => page.text(),
            Self::Found(found) => found.text(),
        }
    }

    /// What is not shown, and how to read on.
    pub fn notes(&self) -> &[String] {
        match self {
            Self::Page(page) => &page.notes,
            Self::Found(found) => &found.notes,
        }
    }
}

impl FileEditor<'_> {
    /// Reads a part of a notebook for the caller, and remembers what was shown of it.
    pub fn read(&self, file: &FileName, request: &ReadRequest<'_>) -> Result<NotebookRead, EditingError> {
        let named = || file.named.clone();
        let outputs = match (request.search, request.outputs) {
            // A search looks through all of an output, not through the part that fits on a page.
            (Some(_), OutputView::Text { .. } | OutputView::Page { .. }) => {
                OutputView::Text { budget: usize::MAX }
            }
            (_, outputs) => outputs,
        };
        let view_request = ViewRequest { selector: request.selector, outputs, named: &file.named };
        let opened = self.open(file, view_request.need());
        if let Err(EditingError::File(error @ FileError::Parse { .. })) = opened {
            let is_raw_file = request.selector.raw && request.selector.part == NotebookPart::Whole;
            return if is_raw_file { self.read_broken(file, request, error) } else { Err(error.into()) };
        }
        let (notebook, fingerprint) = opened?;
        let view = NotebookView::of(&notebook, &view_request)
            .map_err(|source| EditingError::View { named: named(), source })?;
        let mut shown = ShownLines::of(&request.selector.name_in(&file.named), &view.text, request)
            .map_err(|source| EditingError::PastTheEnd { named: named(), source })?;
        if let ShownLines::Found(found) = &mut shown {
            found.hits.iter_mut().for_each(|hit| hit.address = view.address_of(hit.line));
        }
        let coverage = ReadCoverage::of(&view, &shown.seen_lines());
        let remembered = self.saw(file, (&notebook, fingerprint), &coverage);
        Ok(NotebookRead { notebook: Some(notebook), fingerprint, view, shown, remembered })
    }

    /// The text of a file that is not a notebook, so that it can be repaired.
    fn read_broken(
        &self,
        file: &FileName,
        request: &ReadRequest<'_>,
        fault: FileError,
    ) -> Result<NotebookRead, EditingError> {
        let bytes = self.read_bytes(file)?;
        let fingerprint = Fingerprint::of(&bytes);
        let mut notes = vec![format!("{}; this is the text of the file", UnreadableNotebook(fault))];
        let text = match String::from_utf8_lossy(&bytes) {
            Cow::Borrowed(text) => text.to_owned(),
            Cow::Owned(text) => {
                notes.push("the file is not UTF-8: what could not be read is shown as \u{fffd}".to_owned());
                text
            }
        };
        let shown = ShownLines::of(&request.selector.name_in(&file.named), &text, request)
            .map_err(|source| EditingError::PastTheEnd { named: file.named.clone(), source })?;
        let remembered = self.saw_text(file, &bytes, text.lines().count(), shown.seen_lines());
        let view = NotebookView::of_broken(text, notes);
        Ok(NotebookRead { notebook: None, fingerprint, view, shown, remembered })
    }
}
