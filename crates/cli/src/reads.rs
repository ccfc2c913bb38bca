//! What `read` last showed of each notebook, so that `write` can tell that a text speaks of another file.
//!
//! A marked text names cells by their place. Written over a notebook whose cells have moved meanwhile, it would put
//! metadata and outputs under the wrong sources; whole JSON would undo what others did.

use std::path::{Path, PathBuf};

use cellwright_notebook::{Fingerprint, Snapshot};

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
    /// Kept below the user's state folder.
    pub(crate) fn in_state(state: &Path) -> Self {
        Self { folder: state.join("reads") }
    }

    /// Notes what was shown. Failing to is no reason not to show it.
    pub(crate) fn remember(&self, path: &Path, notebook: &Snapshot, part: Part) {
        let Some(note) = self.note(path) else {
            return;
        };
        let text = format!("{}\n{notebook}", part.word());
        drop(std::fs::create_dir_all(&self.folder).and_then(|()| std::fs::write(note, text)));
    }

    /// What was last shown of the notebook, if anything was.
    pub(crate) fn last(&self, path: &Path) -> Option<(Snapshot, Part)> {
        let text = std::fs::read_to_string(self.note(path)?).ok()?;
        let (word, notebook) = text.split_once('\n')?;
        let part = [Part::Whole, Part::Some, Part::Json].into_iter().find(|part| part.word() == word)?;
        Some((notebook.parse().ok()?, part))
    }

    fn note(&self, path: &Path) -> Option<PathBuf> {
        let real = path.canonicalize().ok()?;
        Some(self.folder.join(Fingerprint::of(real.as_os_str().as_encoded_bytes()).to_string()))
    }
}
