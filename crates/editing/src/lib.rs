//! Reading and changing files for a caller that may not know their latest state.
//!
//! Every door to a file (the command line, MCP, `cellwright tool`, cells that call tools) is arguments and presentation
//! around one [`FileEditor`]. It remembers what each caller was shown ([`ReadMemory`]), decides whether a change is based on
//! the file as it is ([`EditRefusal`]), merges changes of different cells, and keeps what a change took away
//! ([`HistoryStore`]).
//!
//! The rules:
//!
//! - A read vouches for what it showed, and for nothing else.
//! - No text goes that the caller did not see, unless it insists (`force`) or names the file's fingerprint (`expect`).
//! - A number means the cell that the caller was shown with it. An id always means its cell.
//! - Whatever goes can be had back by [`FileEditor::undo`].
//!
//! Blocks on files.

mod cell_choice;
mod content;
mod coverage;
mod document;
mod editor;
mod error;
mod file_kind;
mod guard;
mod history;
mod knowledge;
mod live;
mod matching;
mod memory;
mod merge;
pub mod page;
mod reading;
mod refusal;
mod report;
mod text_file;
mod text_report;
pub mod view;

pub use content::{ContentError, NewContent};
pub use coverage::{ReadCoverage, SeenLines};
pub use document::{PageTextError, change_page_text, page_text};
pub use editor::{ChangeOptions, FileEditor, FileName};
pub use error::EditingError;
pub use file_kind::FileKind;
pub use history::{
    HistoryStore, PastChange, RunEntry, RunHistory, UndoError, UnkeptOutputs, has_same_results,
};
pub use knowledge::{FileKnowledge, NotebookKnowledge, TextKnowledge};
pub use live::{LiveHome, LiveNotebooks, LivePage, PageCell, PageContent, PageError, PageStep};
pub use memory::{DiskMemory, ProcessMemory, ReadMemory};
pub use reading::{NotebookRead, ReadRequest, ShownLines};
pub use refusal::{CellConflict, CellVersion, EditRefusal, UnseenParts};
pub use report::EditReport;
pub use text_file::{TextFileError, TextRead};
pub use text_report::{TextChange, TextReport};

/// What can be done to a notebook by name. Every door offers these, and a test of `cli` compares them.
pub const ACTION_NAMES: [&str; 8] =
    ["edit", "insert", "delete", "move", "retype", "clear", "undo", "history"];
