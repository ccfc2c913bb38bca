//! Where a notebook lives: in a file, or in a page that shows it. Both have the same two operations: read it, and change
//! its current content.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use cellwright_notebook::file::{
    self, FileError, FoundFile, IfMissing, ReadNeed, SaveMethod, SaveSettings, UpdatedFile,
};
use cellwright_notebook::{ChangeNote, Fingerprint, Notebook};
use serde_json::Value;

use crate::error::EditingError;
use crate::live::{LiveHome, LiveNotebooks, LivePage, PageError, steps};

/// How long a change waits for a person who types in its cell, or for the cell's end.
const PATIENCE: Duration = Duration::from_secs(6);

/// How long it waits before it looks again.
const PAUSE: Duration = Duration::from_millis(250);

/// How often a change is based anew on a page that changed meanwhile.
const MOST_TRIES: usize = 20;

/// A notebook that can be read and changed.
#[derive(Debug, Clone)]
pub(crate) struct NotebookDocument<'a> {
    path: PathBuf,
    save: &'a SaveSettings,
    live: Option<&'a dyn LiveNotebooks>,
}

/// What a change came to.
pub(crate) struct ChangedDocument<T> {
    /// What the change returned beside the notebook.
    pub(crate) outcome: T,
    /// How it was made, as far as the caller should know.
    pub(crate) note: Option<ChangeNote>,
}

impl<'a> NotebookDocument<'a> {
    /// The notebook of this file, or the place for one.
    pub(crate) fn of(path: &Path, save: &'a SaveSettings, live: Option<&'a dyn LiveNotebooks>) -> Self {
        Self { path: path.to_owned(), save, live }
    }

    /// Its real name, by which memories and histories know it.
    pub(crate) fn key(&self) -> PathBuf {
        key_of(&self.path)
    }

    /// Reads it. The file of a notebook in a page that is out of reach is what the person saved last.
    pub(crate) fn read(&self, need: ReadNeed) -> Result<(Notebook, Fingerprint), EditingError> {
        if let LiveHome::Page(page) = self.home() {
            let (notebook, _) = self.in_page(&*page)?;
            let fingerprint = fingerprint(&notebook);
            return Ok((notebook, fingerprint));
        }
        file::recover(&self.path, self.save)?;
        Ok(file::read_fingerprinted(&self.path, need)?)
    }

    /// Changes its current content: `change` gets the notebook and returns the new one, or nothing to leave it
    /// alone. No program that respects our locks changes it in between.
    pub(crate) fn change<T>(
        &self,
        if_missing: IfMissing,
        change: impl Fn(&Notebook) -> Result<(Option<Notebook>, T), EditingError>,
    ) -> Result<ChangedDocument<T>, EditingError> {
        if let Some(page) = self.page()? {
            return self.change_page(&*page, change);
        }
        Ok(file::update_with(self.save, &self.path, if_missing, change)?.into())
    }

    /// The same for a file that need not be a notebook, nor become one.
    pub(crate) fn change_bytes<T>(
        &self,
        change: impl Fn(&[u8]) -> Result<(Option<Vec<u8>>, T), EditingError>,
    ) -> Result<ChangedDocument<T>, EditingError> {
        let Some(page) = self.page()? else {
            return Ok(file::update_bytes(self.save, &self.path, change)?.into());
        };
        self.change_page(&*page, |now| {
            let (changed, outcome) = change(now.text().as_bytes())?;
            let changed = changed.map(|bytes| self.parsed(bytes)).transpose()?;
            Ok((changed, outcome))
        })
    }

    fn home(&self) -> LiveHome {
        self.live.map_or(LiveHome::File, |live| live.find(&self.path))
    }

    /// The page to change; none if the file is to be changed.
    fn page(&self) -> Result<Option<Arc<dyn LivePage>>, PageError> {
        match self.home() {
            LiveHome::File => Ok(None),
            LiveHome::Page(page) => Ok(Some(page)),
            LiveHome::OutOfReach(why) => Err(why),
        }
    }

    fn in_page(&self, page: &dyn LivePage) -> Result<(Notebook, f64), EditingError> {
        let content = page.read()?;
        Ok((self.parsed(file_text(&content.json))?, content.read_at))
    }

    fn parsed(&self, bytes: Vec<u8>) -> Result<Notebook, FileError> {
        Notebook::parse(bytes).map_err(|source| FileError::Parse { path: self.path.clone(), source })
    }

    fn change_page<T>(
        &self,
        page: &dyn LivePage,
        change: impl Fn(&Notebook) -> Result<(Option<Notebook>, T), EditingError>,
    ) -> Result<ChangedDocument<T>, EditingError> {
        let until = Instant::now() + PATIENCE;
        let mut tries = 0;
        loop {
            let (now, read_at) = self.in_page(page)?;
            let (changed, outcome) = change(&now)?;
            let Some(after) = changed else { return Ok(ChangedDocument { outcome, note: None }) };
            match page.change(read_at, &steps(&now, &after)?) {
                Ok(()) => return Ok(ChangedDocument { outcome, note: Some(ChangeNote::InPage) }),
                // Whether the change is still what its caller means is decided on the page as it is now.
                Err(PageError::Stale { .. }) if tries < MOST_TRIES => tries += 1,
                Err(error) if error.passes() && Instant::now() < until => sleep(PAUSE),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl<T> From<UpdatedFile<T>> for ChangedDocument<T> {
    fn from(UpdatedFile { outcome, found, saved }: UpdatedFile<T>) -> Self {
        let note = match (found, saved) {
            (FoundFile::Nothing, _) => Some(ChangeNote::Created),
            (FoundFile::File, Some(SaveMethod::InPlace)) => Some(ChangeNote::InPlace),
            (FoundFile::File, Some(SaveMethod::Renamed) | None) => None,
        };
        Self { outcome, note }
    }
}

/// A notebook in a page as the text that its file would have.
pub fn page_text(page: &dyn LivePage) -> Result<String, PageError> {
    let text = file_text(&page.read()?.json);
    String::from_utf8(text).map_err(|_| PageError::Failed("text that is not UTF-8".to_owned()))
}

/// Makes the changes that lead from `base`, a text of the notebook that the caller was given, to `text`. What others
/// changed meanwhile in other cells stays. A cell that changed on both sides refuses all.
pub fn change_page_text(page: &dyn LivePage, base: &str, text: &str) -> Result<(), PageTextError> {
    let parsed = |text: &str| Notebook::parse(text.as_bytes().to_vec()).map_err(PageTextError::NotANotebook);
    let (base, new) = (parsed(base)?, parsed(text)?);
    let repairs: Vec<_> = new.check().into_iter().filter_map(|problem| problem.repair).collect();
    let new = new.repaired(&repairs).unwrap_or(new);
    let steps = steps(&base, &new)?;
    if steps.is_empty() {
        return Ok(());
    }
    let until = Instant::now() + PATIENCE;
    loop {
        let read_at = page.read()?.read_at;
        match page.change(read_at, &steps) {
            Err(error) if error.passes() && Instant::now() < until => sleep(PAUSE),
            changed => return Ok(changed?),
        }
    }
}

/// Why a whole text could not be put into a page.
#[derive(Debug, thiserror::Error)]
pub enum PageTextError {
    /// It is not a notebook.
    #[error("the text is not a notebook")]
    NotANotebook(#[source] cellwright_notebook::ParseError),
    /// The page did not take it.
    #[error(transparent)]
    Page(#[from] PageError),
}

/// A notebook as Jupyter writes it to a file.
fn file_text(json: &Value) -> Vec<u8> {
    let mut text = Vec::new();
    let format = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut writer = serde_json::Serializer::with_formatter(&mut text, format);
    serde::Serialize::serialize(json, &mut writer).expect("JSON goes to memory");
    text.push(b'\n');
    text
}

/// The real name of a notebook's file, by which memories and histories know it.
pub(crate) fn key_of(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    // If the file does not exist yet, its folder is resolved: the file may exist the next time.
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    match (folder.canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

/// The fingerprint of a notebook as it is in its file.
pub(crate) fn fingerprint(notebook: &Notebook) -> Fingerprint {
    Fingerprint::of_file(notebook)
}
