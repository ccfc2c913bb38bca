//! What `read` last showed of each notebook, so that `write` can tell that a text speaks of another file.
//!
//! A marked text names cells by their place. Written over a notebook whose cells have moved meanwhile, it would put
//! metadata and outputs under the wrong sources; whole JSON would undo what others did.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{fs, io};

use cellwright_notebook::{Cell, Fingerprint, Notebook, Snapshot};
use serde::{Deserialize, Serialize};

use crate::config::Places;

/// What was shown of a notebook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    Some,
    /// Its JSON, by who wrote it: a marked text read before may name cells by places they no longer have.
    Json,
}

impl Part {
    fn word(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Some => "part",
            Self::Json => "json",
        }
    }
}

/// The notes of one user.
pub(crate) struct Reads {
    folder: PathBuf,
}

impl Reads {
    /// Those of whoever runs this process.
    pub(crate) fn here() -> io::Result<Self> {
        let places = Places::from(&std::env::vars_os().collect(), &std::env::current_dir()?);
        Ok(Self::in_state(&places.state))
    }

    /// Kept below the user's state folder.
    fn in_state(state: &Path) -> Self {
        Self { folder: state.join("reads") }
    }

    /// Notes what was shown. A part does not vouch for the rest: what was noted of the whole stays.
    pub(crate) fn remember(&self, path: &Path, notebook: &Snapshot, part: Part) -> io::Result<()> {
        let is_known = || matches!(self.last(path), Some((_, Part::Whole | Part::Json)));
        if part == Part::Some && is_known() {
            return Ok(());
        }
        self.keep(&self.note(path)?, &format!("{}\n{notebook}", part.word()))
    }

    /// Forgets what was shown: the notebook is another one.
    pub(crate) fn forget(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(self.note(path)?)
    }

    /// What was last shown of the notebook, if anything was.
    pub(crate) fn last(&self, path: &Path) -> Option<(Snapshot, Part)> {
        let text = fs::read_to_string(self.note(path).ok()?).ok()?;
        let (word, notebook) = text.split_once('\n')?;
        let part = [Part::Whole, Part::Some, Part::Json].into_iter().find(|part| part.word() == word)?;
        Some((notebook.parse().ok()?, part))
    }

    /// Notes where cells are that were shown, for those who name them by their place.
    pub(crate) fn remember_places(&self, path: &Path, now: Cells, shown: &Shown) -> io::Result<()> {
        let cells = match (self.places(path), shown) {
            (None, _) | (_, Shown::All) => now,
            (Some(before), Shown::Cells(range)) => before.seen_again(&now, range.clone()),
            (Some(_), Shown::Lines) => return Ok(()),
        };
        self.keep(&self.note(path)?.with_extension(PLACES), &serde_json::to_string(&cells)?)
    }

    /// Notes where cells are after a change of our own, if they were noted and were there before it: who made the change knows of it, but not of the
    /// changes of others.
    pub(crate) fn update_places(&self, path: &Path, before: &Cells, now: Cells) -> io::Result<()> {
        if self.places(path).as_ref() == Some(before) {
            self.remember_places(path, now, &Shown::All)?;
        }
        Ok(())
    }

    /// Which cells were where when a command last showed or changed the notebook.
    pub(crate) fn places(&self, path: &Path) -> Option<Cells> {
        let text = fs::read_to_string(self.note(path).ok()?.with_extension(PLACES)).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn note(&self, path: &Path) -> io::Result<PathBuf> {
        let real = path.canonicalize()?;
        Ok(self.folder.join(Fingerprint::of(real.as_os_str().as_encoded_bytes()).to_string()))
    }

    fn keep(&self, note: &Path, text: &str) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        fs::write(note, text)
    }
}

/// How the notes of places end.
const PLACES: &str = "places";

/// How much of a notebook was shown.
pub(crate) enum Shown {
    All,
    Cells(Range<usize>),
    /// Some lines, of whichever cells.
    Lines,
}

/// The cells of a notebook in order, by what tells them apart: ids, else what they say. Nothing for one that was never shown.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cells(Vec<Option<String>>);

impl Cells {
    pub(crate) fn of(notebook: &Notebook) -> Self {
        let told_by = |cell: Cell<'_>| match cell.id() {
            Some(id) => format!("id {id}"),
            None => format!("{} {}", cell.kind(), Fingerprint::of(cell.source().as_bytes())),
        };
        Self(notebook.cells().map(|cell| Some(told_by(cell))).collect())
    }

    /// Whether the cell at `index` may be another one in `now`.
    pub(crate) fn moved_in(&self, now: &Self, index: usize) -> bool {
        index < now.0.len() && self.0.get(index) != now.0.get(index)
    }

    fn seen_again(mut self, now: &Self, range: Range<usize>) -> Self {
        self.0.resize(self.0.len().max(range.end), None);
        self.0[range.clone()].clone_from_slice(&now.0[range]);
        self
    }
}
