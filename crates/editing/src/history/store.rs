//! The files that changes are kept in, below the state folder.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fmt, fs, io};

use cellwright_notebook::Fingerprint;
use cellwright_ownership::private_folder;
use serde::Serialize;

use super::StoredChange;

/// Changes kept of one notebook.
const CHANGES: usize = 100;

/// Bytes kept of one notebook; the latest change is kept whatever its size.
const BYTES: u64 = 64 * 1024 * 1024;

/// Bytes kept of all notebooks.
const ALL_BYTES: u64 = 512 * 1024 * 1024;

/// How long a change is kept.
const KEPT: Duration = Duration::from_hours(24 * 30);

/// What changes took away, for all notebooks of a user.
#[derive(Debug, Clone)]
pub struct HistoryStore {
    folder: PathBuf,
}

/// A change that was made, for people to choose from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PastChange {
    /// Its number, from 1.
    pub number: u64,
    /// When it was made, in seconds since 1970.
    pub time: u64,
    /// What was done: `edit`, `write`, `delete`, `undo`, …
    pub action: String,
    /// What was reported of it.
    pub summary: String,
    /// The change that it undid, if it is an `undo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undoes: Option<u64>,
    /// Whether it was undone.
    pub undone: bool,
}

/// What was done, whether that undid an earlier change, and whether it was undone itself.
impl fmt::Display for PastChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(undoes) = self.undoes {
            write!(f, "undo of {undoes}: ")?;
        }
        f.write_str(&self.summary)?;
        if self.undone { f.write_str(" (undone)") } else { Ok(()) }
    }
}

/// A change that was stored before the file was saved.
#[derive(Debug)]
pub(crate) struct ChangeFile {
    path: PathBuf,
    size: u64,
}

impl ChangeFile {
    /// Its file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it again: the file was not saved.
    pub(crate) fn withdraw(self) {
        drop(fs::remove_file(self.path)); // what stays can still not be undone twice
    }

    /// Removes the oldest changes of the notebook until the rest is small enough. To be called when the file was saved:
    /// until then, what an undo brings back is nowhere else.
    pub(crate) fn prune_older(&self) {
        if let Some(folder) = self.path.parent() {
            prune(folder, self.size);
        }
    }
}

impl HistoryStore {
    /// Keeps changes below `folder`, which is made when it is needed.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Where changes are kept.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Why nothing can be stored, with the folder.
    pub(crate) fn unwritable(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{} cannot be written: {error}", self.folder.display()))
    }

    pub(super) fn folder_of(&self, file: &Path) -> PathBuf {
        self.folder.join(Fingerprint::of(file.as_os_str().as_encoded_bytes()).to_string())
    }

    /// Stores a change of `file`, which is its real path. Nothing goes for it yet: see [`ChangeFile::prune_older`].
    pub(crate) fn record(&self, file: &Path, change: &StoredChange) -> io::Result<ChangeFile> {
        let folder = self.folder_of(file);
        if !folder.is_dir() {
            private_folder(&folder)?;
            fs::write(folder.join("path"), file.as_os_str().as_encoded_bytes())?;
            self.prune_all(&folder);
        }
        let text = serde_json::to_vec(change)?;
        let mut number = numbers(&folder).last().map_or(1, |last| last + 1);
        let (path, mut out) = loop {
            let path = entry(&folder, number);
            match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(out) => break (path, out),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        };
        out.write_all(&text).inspect_err(|_| drop(fs::remove_file(&path)))?;
        Ok(ChangeFile { path, size: text.len() as u64 })
    }

    /// The changes that were made to `file`, the latest first.
    pub fn changes(&self, file: &Path) -> Vec<PastChange> {
        let folder = self.folder_of(file);
        let mut changes: Vec<PastChange> = Vec::new();
        for number in numbers(&folder) {
            let Some((time, StoredChange { action, summary, undoes, .. })) = load(&folder, number) else {
                continue;
            };
            changes.push(PastChange { number, time, action, summary, undoes, undone: false });
        }
        changes.reverse();
        // From the latest on: an undo that was undone itself undoes nothing.
        for at in 0..changes.len() {
            let (later, past) = changes.split_at_mut(at);
            let number = past[0].number;
            past[0].undone = later.iter().any(|undo| undo.undoes == Some(number) && !undo.undone);
        }
        changes
    }

    pub(super) fn load(&self, file: &Path, number: u64) -> Option<StoredChange> {
        load(&self.folder_of(file), number).map(|(_, change)| change)
    }

    /// Removes the histories that were not touched for longest until all together are small enough.
    fn prune_all(&self, except: &Path) {
        let folders = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut folders: Vec<_> = folders
            .filter(|entry| entry.path() != except)
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        folders.sort();
        let size = |folder: &Path| -> u64 {
            let files = fs::read_dir(folder).into_iter().flatten().flatten();
            files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
        };
        let mut total: u64 = folders.iter().map(|(_, folder)| size(folder)).sum();
        for (modified, folder) in folders {
            let is_old = modified.elapsed().is_ok_and(|age| age > KEPT);
            if total > ALL_BYTES || is_old {
                total = total.saturating_sub(size(&folder));
                drop(fs::remove_dir_all(folder)); // the next time, then
            }
        }
    }
}

/// Removes the oldest changes of a notebook until the rest is small enough; `latest` is the size of the one that stays.
fn prune(folder: &Path, latest: u64) {
    let mut kept = latest;
    for (count, number) in numbers(folder).into_iter().rev().enumerate().skip(1) {
        let path = entry(folder, number);
        let metadata = fs::metadata(&path).ok();
        kept += metadata.as_ref().map_or(0, fs::Metadata::len);
        let is_old = metadata
            .and_then(|metadata| metadata.modified().ok())
            .is_some_and(|modified| modified.elapsed().is_ok_and(|age| age > KEPT));
        if count >= CHANGES || kept > BYTES || is_old {
            drop(fs::remove_file(path)); // the next time, then
        }
    }
}

fn entry(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:08}.json"))
}

fn numbers(folder: &Path) -> Vec<u64> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut numbers: Vec<u64> =
        names.filter_map(|name| name.to_str()?.strip_suffix(".json")?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

fn load(folder: &Path, number: u64) -> Option<(u64, StoredChange)> {
    let path = entry(folder, number);
    let change = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
    let modified = fs::metadata(&path).ok()?.modified().ok()?;
    let time = modified.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Some((time, change))
}
