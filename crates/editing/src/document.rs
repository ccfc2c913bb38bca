//! Where a notebook lives. Today that is a file. A live document in JupyterLab will be another kind of it, with the same
//! two operations: read it, and change its current content.

use std::path::{Path, PathBuf};

use cellwright_notebook::file::{self, FileError, IfMissing, ReadNeed, SaveSettings, UpdatedFile};
use cellwright_notebook::{Fingerprint, Notebook};

/// A notebook that can be read and changed.
#[derive(Debug, Clone)]
pub(crate) struct NotebookDocument<'a> {
    path: PathBuf,
    save: &'a SaveSettings,
}

impl<'a> NotebookDocument<'a> {
    /// The notebook in this file, or the place for one.
    pub(crate) fn file(path: &Path, save: &'a SaveSettings) -> Self {
        Self { path: path.to_owned(), save }
    }

    /// Its real name, by which memories and histories know it.
    pub(crate) fn key(&self) -> PathBuf {
        key_of(&self.path)
    }

    /// Reads it.
    pub(crate) fn read(&self, need: ReadNeed) -> Result<(Notebook, Fingerprint), FileError> {
        file::recover(&self.path, self.save)?;
        file::read_fingerprinted(&self.path, need)
    }

    /// Changes its current content: `change` gets the notebook and returns the new one, or nothing to leave it
    /// alone. No program that respects our locks changes it in between.
    pub(crate) fn change<T, E: From<FileError>>(
        &self,
        if_missing: IfMissing,
        change: impl Fn(&Notebook) -> Result<(Option<Notebook>, T), E>,
    ) -> Result<UpdatedFile<T>, E> {
        file::update_with(self.save, &self.path, if_missing, change)
    }

    /// The same for a file that need not be a notebook, nor become one.
    pub(crate) fn change_bytes<T, E: From<FileError>>(
        &self,
        change: impl Fn(&[u8]) -> Result<(Option<Vec<u8>>, T), E>,
    ) -> Result<UpdatedFile<T>, E> {
        file::update_bytes(self.save, &self.path, change)
    }
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
