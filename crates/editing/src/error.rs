//! Why a file could not be read or changed. It is then as it was.

use std::io;
use std::path::PathBuf;

use cellwright_cell::with_causes;
use cellwright_notebook::file::FileError;
use cellwright_notebook::replace::ReplaceError;
use cellwright_notebook::select::PastTheEnd;
use cellwright_notebook::{EditError, FormatProblem, NoSuchCell, ReplaceTextError};

use crate::history::UndoError;
use crate::live::PageError;
use crate::refusal::EditRefusal;
use crate::text_file::TextFileError;
use crate::view::ViewError;

/// Why a file could not be read or changed. It is then as it was.
#[derive(Debug, thiserror::Error)]
pub enum EditingError {
    /// The file itself.
    #[error(transparent)]
    File(#[from] FileError),
    /// The page that shows the notebook.
    #[error(transparent)]
    Page(#[from] PageError),
    /// A plain text file.
    #[error(transparent)]
    TextFile(#[from] TextFileError),
    /// The caller does not know the file well enough.
    #[error("{named}")]
    Refused {
        /// What the caller calls the file.
        named: String,
        /// Why.
        #[source]
        source: EditRefusal,
    },
    /// The file is not the one that the caller expects.
    #[error(
        "{named}: changed since it was read, so nothing was done (its fingerprint is {now} now); read it again"
    )]
    Unexpected {
        /// What the caller calls the file.
        named: String,
        /// The file's fingerprint.
        now: cellwright_notebook::Fingerprint,
    },
    /// The file is gone that the caller expects.
    #[error("{named}: changed since it was read, so nothing was done (it is gone); read it again")]
    Gone {
        /// What the caller calls the file.
        named: String,
    },
    /// A part of a notebook that is not there.
    #[error("{named}")]
    View {
        /// What the caller calls the file.
        named: String,
        /// Which.
        #[source]
        source: ViewError,
    },
    /// Lines that are not there.
    #[error("{named}")]
    PastTheEnd {
        /// What the caller calls the file.
        named: String,
        /// Which.
        #[source]
        source: PastTheEnd,
    },
    /// A cell that is not there.
    #[error("{named}")]
    NoSuchCell {
        /// What the caller calls the file.
        named: String,
        /// Which.
        #[source]
        source: NoSuchCell,
    },
    /// An edit that is not possible.
    #[error("{named}")]
    Edit {
        /// What the caller calls the file.
        named: String,
        /// Why.
        #[source]
        source: EditError,
    },
    /// A replacement that is not possible.
    #[error("{named}")]
    Replace {
        /// What the caller calls the file.
        named: String,
        /// Why.
        #[source]
        source: ReplaceError,
    },
    /// A change that cannot be undone.
    #[error("{named}")]
    Undo {
        /// What the caller calls the file.
        named: String,
        /// Why.
        #[source]
        source: UndoError,
    },
    /// What the change would take away could not be stored, and the caller did not insist.
    #[error(
        "{named}: nothing was done: undo could not keep what this would replace or delete, because {} cannot be \
         written; make it writable, or use force to go on without undo",
        folder.display()
    )]
    NotKept {
        /// What the caller calls the file.
        named: String,
        /// Where it was to be stored.
        folder: PathBuf,
        /// Why that failed.
        source: io::Error,
    },
    /// JSON that is not that of a valid notebook.
    #[error(
        "{named}: the JSON is not a valid notebook: {problem}; correct it, or use force to write it as it is"
    )]
    Invalid {
        /// What the caller calls the file.
        named: String,
        /// What nbformat would not accept.
        problem: FormatProblem,
    },
    /// What was there cannot be read as a notebook, and the caller did not insist on replacing it.
    #[error("{reason}; to replace what is there, use force")]
    Unreadable {
        /// What is wrong with it.
        reason: UnreadableNotebook,
    },
}

/// A file that is not a notebook, with the reason on one line.
#[derive(Debug)]
pub struct UnreadableNotebook(pub FileError);

impl std::fmt::Display for UnreadableNotebook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&with_causes(&self.0))
    }
}

impl std::error::Error for UnreadableNotebook {}

impl EditingError {
    pub(crate) fn refused(named: &str, source: EditRefusal) -> Self {
        Self::Refused { named: named.to_owned(), source }
    }

    pub(crate) fn edit(named: &str, source: EditError) -> Self {
        let named = named.to_owned();
        match source {
            EditError::NoSuchCell(source) => Self::NoSuchCell { named, source },
            source => Self::Edit { named, source },
        }
    }

    pub(crate) fn replace_text(named: &str, source: ReplaceTextError) -> Self {
        match source {
            ReplaceTextError::Replace(source) => Self::Replace { named: named.to_owned(), source },
            ReplaceTextError::Edit(source) => Self::edit(named, source),
        }
    }

    pub(crate) fn undo(named: &str, source: UndoError) -> Self {
        Self::Undo { named: named.to_owned(), source }
    }

    /// The same, about a file that the caller calls by this name.
    pub(crate) fn called(self, named: &str) -> Self {
        match self {
            Self::File(error) => Self::File(error.called(named)),
            error => error,
        }
    }

    /// Whether others changed the file since the caller read it.
    pub fn is_change(&self) -> bool {
        match self {
            Self::File(FileError::Changed { .. }) | Self::Unexpected { .. } | Self::Gone { .. } => true,
            Self::Refused { source, .. } => source.is_change(),
            Self::TextFile(error) => error.is_change(),
            Self::Page(error) => matches!(error, PageError::Stale { .. }),
            Self::Undo { source, .. } => {
                matches!(source, UndoError::ChangedSince { .. } | UndoError::ReplacedSince { .. })
            }
            Self::File(_)
            | Self::View { .. }
            | Self::PastTheEnd { .. }
            | Self::NoSuchCell { .. }
            | Self::Edit { .. }
            | Self::Replace { .. }
            | Self::NotKept { .. }
            | Self::Invalid { .. }
            | Self::Unreadable { .. } => false,
        }
    }
}
