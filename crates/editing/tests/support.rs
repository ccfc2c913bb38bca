//! A notebook in a folder, callers that remember what they were shown, and a person who saves beside them.

use std::fs;
use std::path::{Path, PathBuf};

use cellwright_editing::view::OutputView;
use cellwright_editing::{
    ChangeOptions, EditReport, EditingError, FileEditor, FileName, HistoryStore, NewContent, NotebookRead,
    ProcessMemory, ReadRequest,
};
use cellwright_notebook::file::SaveSettings;
use cellwright_notebook::replace::{Matches, TextReplacement};
use cellwright_notebook::{Action, CellRef, Fingerprint, Notebook, Selector};
use serde_json::{Value, json};

pub(crate) const PLAIN: ChangeOptions =
    ChangeOptions { expect: None, force: false, outputs: cellwright_notebook::OutputsAfterEdit::Clear };

pub(crate) const FORCE: ChangeOptions = ChangeOptions { force: true, ..PLAIN };

/// Bytes on a page, as the tools have them.
pub(crate) const PAGE: usize = 50 * 1024;

pub(crate) struct TestFolder {
    folder: tempfile::TempDir,
    history: HistoryStore,
}

/// One caller of the editor.
#[derive(Default)]
pub(crate) struct TestCaller {
    memory: ProcessMemory,
}

impl TestFolder {
    /// With a notebook of code cells that have these sources and the ids `a`, `b`, `c`, …
    pub(crate) fn new(sources: &[&str]) -> Self {
        let folder = Self::holding(b"");
        folder.save(&notebook(sources, Ids::Given));
        folder
    }

    /// The same without ids.
    pub(crate) fn without_ids(sources: &[&str]) -> Self {
        let folder = Self::holding(b"");
        folder.save(&notebook(sources, Ids::Missing));
        folder
    }

    /// With these bytes in the place of a notebook.
    pub(crate) fn holding(bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let history = HistoryStore::new(folder.path().join("history"));
        fs::write(folder.path().join("nb.ipynb"), bytes).unwrap();
        Self { folder, history }
    }

    /// The history cannot be written from now on, whoever tries.
    pub(crate) fn break_history(&self) {
        fs::write(self.folder.path().join("history"), "a file, not a folder").unwrap();
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("nb.ipynb")
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        fs::read(self.path()).unwrap()
    }

    pub(crate) fn notebook(&self) -> Notebook {
        Notebook::parse(self.bytes()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes()).unwrap()
    }

    pub(crate) fn sources(&self) -> Vec<String> {
        self.notebook().cells().map(|cell| cell.source().into_owned()).collect()
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.bytes())
    }

    /// A person saves the notebook.
    pub(crate) fn save(&self, notebook: &Value) {
        fs::write(self.path(), serde_json::to_string_pretty(notebook).unwrap()).unwrap();
    }

    /// A person changes the notebook and saves it.
    pub(crate) fn person(&self, change: impl FnOnce(&mut Value)) {
        let mut notebook = self.json();
        change(&mut notebook);
        self.save(&notebook);
    }

    pub(crate) fn editor<'a>(&'a self, caller: &'a TestCaller) -> FileEditor<'a> {
        let journal = Some(self.folder.path().join("journal"));
        FileEditor::new(&caller.memory, Some(&self.history)).saving(SaveSettings { journal })
    }

    pub(crate) fn file(&self) -> FileName {
        FileName { path: self.path(), named: "nb.ipynb".to_owned() }
    }

    pub(crate) fn read(&self, caller: &TestCaller, selector: &str) -> NotebookRead {
        self.read_found(caller, selector, None)
    }

    pub(crate) fn search(&self, caller: &TestCaller, search: &str) -> NotebookRead {
        self.read_found(caller, "", Some(&regex::Regex::new(search).unwrap()))
    }

    fn read_found(&self, caller: &TestCaller, selector: &str, search: Option<&regex::Regex>) -> NotebookRead {
        let selector = Selector::parse(selector).unwrap();
        let request = ReadRequest { selector: &selector, outputs: OutputView::None, search, budget: PAGE };
        self.editor(caller).read(&self.file(), &request).unwrap()
    }

    pub(crate) fn write(&self, caller: &TestCaller, content: &str) -> Result<EditReport, EditingError> {
        self.write_with(caller, content, &PLAIN)
    }

    pub(crate) fn write_with(
        &self,
        caller: &TestCaller,
        content: &str,
        options: &ChangeOptions,
    ) -> Result<EditReport, EditingError> {
        self.editor(caller).write(&self.file(), &NewContent::parse(content).unwrap(), options)
    }

    pub(crate) fn edit(&self, caller: &TestCaller, old: &str, new: &str) -> Result<EditReport, EditingError> {
        let replacement = TextReplacement { old: old.to_owned(), new: new.to_owned(), matches: Matches::One };
        self.editor(caller).replace_text(&self.file(), &[replacement], &PLAIN)
    }

    pub(crate) fn act(&self, caller: &TestCaller, action: &Action) -> Result<EditReport, EditingError> {
        self.editor(caller).act(&self.file(), action, &PLAIN)
    }

    pub(crate) fn undo(&self, caller: &TestCaller) -> Result<EditReport, EditingError> {
        self.editor(caller).undo(&self.file(), None, &PLAIN)
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Ids {
    Given,
    Missing,
}

pub(crate) fn notebook(sources: &[&str], ids: Ids) -> Value {
    let has_ids = matches!(ids, Ids::Given);
    let cells = sources.iter().zip('a'..).map(|(source, id)| {
        let mut cell = json!({
            "cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [], "source": source,
        });
        if has_ids {
            cell["id"] = id.to_string().into();
        }
        cell
    });
    let minor = if has_ids { 5 } else { 4 };
    json!({"cells": cells.collect::<Vec<_>>(), "metadata": {}, "nbformat": 4, "nbformat_minor": minor})
}

pub(crate) fn output(text: &str) -> Value {
    json!([{"name": "stdout", "output_type": "stream", "text": text}])
}

pub(crate) fn at(index: usize) -> CellRef {
    CellRef::Index(index)
}

pub(crate) fn delete(index: usize) -> Action {
    Action::Delete { cells: vec![at(index)] }
}

/// An error with its causes.
#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T, EditingError>) -> String {
    let error = result.unwrap_err();
    let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
