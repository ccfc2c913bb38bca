//! Notebooks that an agent reads and writes as files while they are open in a page.
//!
//! The file of such a notebook is old, and a write to it would conflict with what the person sees. So the agent gets the
//! text that the page would save, and what it changes of that text is changed in the page, cell by cell.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use agent_client_protocol_schema::v1::Error;
use cellwright_cell::with_causes;
use cellwright_editing::{LiveHome, LiveNotebooks as _, change_page_text, page_text};

use super::files::refused;
use crate::kernel_state::lock;
use crate::page::PageBridge;

/// The notebooks of one agent that are open in pages.
pub(super) struct PageFiles {
    page: PageBridge,
    /// The texts that the agent knows, by the path that it uses.
    known: Mutex<HashMap<PathBuf, String>>,
}

/// Where a text was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageWrite {
    Page,
    /// Nowhere yet: it belongs into the file.
    File,
}

impl PageFiles {
    pub(super) fn new(page: PageBridge) -> Self {
        Self { page, known: Mutex::default() }
    }

    /// The text of a notebook as its page has it. `None` for all that is read from its file.
    pub(super) fn read(&self, path: &Path) -> Result<Option<String>, Error> {
        let LiveHome::Page(page) = self.home(path) else { return Ok(None) };
        let text = page_text(&*page).map_err(|error| failure(path, &error))?;
        lock(&self.known).insert(path.to_owned(), text.clone());
        Ok(Some(text))
    }

    /// Puts into the page what the agent changed since it got the text of the notebook.
    pub(super) fn write(&self, path: &Path, text: &str) -> Result<PageWrite, Error> {
        let page = match self.home(path) {
            LiveHome::File => return Ok(PageWrite::File),
            LiveHome::OutOfReach(error) => return Err(failure(path, &error)),
            LiveHome::Page(page) => page,
        };
        let Some(base) = lock(&self.known).get(path).cloned() else {
            let advice = "is open in a page; read it before you write it";
            return Err(refused(format!("`{}` {advice}", path.display())));
        };
        change_page_text(&*page, &base, text).map_err(|error| failure(path, &error))?;
        lock(&self.known).insert(path.to_owned(), text.to_owned());
        Ok(PageWrite::Page)
    }

    fn home(&self, path: &Path) -> LiveHome {
        if path.extension().is_some_and(|ending| ending == "ipynb") {
            self.page.find(path)
        } else {
            LiveHome::File
        }
    }
}

fn failure(path: &Path, error: &dyn std::error::Error) -> Error {
    refused(format!("`{}`: {}", path.display(), with_causes(error)))
}
