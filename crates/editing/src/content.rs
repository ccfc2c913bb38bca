//! What a caller writes in the place of a notebook.

use cellwright_notebook::text::{self, TextCell, TextError};
use cellwright_notebook::{Notebook, ParseError};

/// The new content of a notebook.
#[derive(Debug, Clone)]
pub enum NewContent {
    /// A notebook of its own, as JSON.
    Json(Box<Notebook>),
    /// Cell-marked text.
    Marked(Vec<TextCell>),
}

/// Why a text is not the content of a notebook.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// It looks like JSON, and is not that of a notebook.
    #[error(transparent)]
    Json(#[from] ParseError),
    /// It is not cell-marked text.
    #[error(transparent)]
    Marked(#[from] TextError),
}

impl NewContent {
    /// Reads cell-marked text, or the JSON of a notebook.
    pub fn parse(content: &str) -> Result<Self, ContentError> {
        // Marked text starts with a marker, so a brace can only begin the JSON of a notebook.
        if content.trim_start_matches('\u{feff}').trim_start().starts_with('{') {
            return Ok(Self::Json(Box::new(Notebook::parse(content.as_bytes().to_vec())?)));
        }
        Ok(Self::Marked(text::parse(content)?))
    }
}
