//! A notebook as a page, as Markdown, or as a script, for people who have no Jupyter.

mod ansi;
mod markdown;
mod outputs;
mod page;
mod pictures;
mod prose;
mod script;

pub(crate) use self::ansi::coloured_html;
pub(crate) use self::markdown::{MarkdownText, PictureStore};
pub(crate) use self::page::{CellRemark, HtmlDocument, NotebookPageHtml, PageBanner, RunState};
pub(crate) use self::script::python_script;

use cellwright_notebook::NotebookCell;

/// What a cell shows, by the tags that Jupyter Book and nbconvert know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartTag {
    Shown,
    /// Folded until the reader opens it.
    Hidden,
    Removed,
}

impl PartTag {
    /// What the tags of a cell say of its `part`: `cell`, `input` or `output`.
    fn of(cell: &NotebookCell<'_>, part: &str) -> Self {
        let tags = cell.tags();
        let has = |verb: &str| {
            tags.iter().any(|tag| {
                tag.strip_prefix(verb)
                    .and_then(|rest| rest.strip_prefix(['-', '_']))
                    .is_some_and(|rest| rest == part)
            })
        };
        match (has("remove"), has("hide")) {
            (true, _) => Self::Removed,
            (false, true) => Self::Hidden,
            (false, false) => Self::Shown,
        }
    }
}
