//! What a cell is, and how to point at one.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::json::{Json, JsonKind, TextSpan, string};
use crate::output::{EncodedImage, NotebookOutput, images};
use crate::select::SelectorError;

/// The three kinds of cell nbformat 4 has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CellKind {
    /// Runs in the kernel; has outputs and an execution count.
    Code,
    /// Prose.
    Markdown,
    /// Passed through unrendered.
    Raw,
}

impl CellKind {
    /// The name nbformat and our markers use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
            Self::Raw => "raw",
        }
    }
}

impl fmt::Display for CellKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that is not the type of a cell.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a cell type; use code, markdown or raw")]
pub struct NotACellKind(String);

impl FromStr for CellKind {
    type Err = NotACellKind;

    fn from_str(name: &str) -> Result<Self, NotACellKind> {
        match name {
            "code" => Ok(Self::Code),
            "markdown" => Ok(Self::Markdown),
            "raw" => Ok(Self::Raw),
            other => Err(NotACellKind(other.to_owned())),
        }
    }
}

/// A cell named by its place, counting from 0, or by its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellRef {
    /// `3`
    Index(usize),
    /// `id:abcd1234`
    Id(String),
}

impl fmt::Display for CellRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(f, "{index}"),
            Self::Id(id) => write!(f, "id:{id}"),
        }
    }
}

impl FromStr for CellRef {
    type Err = SelectorError;

    /// A number is an index, also as `cell:2`, which markers show, as `#2` and as `2.0`. Anything else, with or
    /// without `id:`, is an id.
    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let text = text.trim();
        let text = text.strip_prefix('#').unwrap_or(text);
        if let Some(id) = text.strip_prefix("id:") {
            return match id {
                "" => Err(SelectorError::EmptyId),
                id => Ok(Self::Id(id.to_owned())),
            };
        }
        let digits = text.strip_prefix("cell:").unwrap_or(text);
        // Some programs write every number with a fraction.
        let whole = digits.split_once('.').filter(|(_, zeros)| zeros.bytes().all(|byte| byte == b'0'));
        match whole.map_or(digits, |(whole, _)| whole).parse() {
            Ok(index) => Ok(Self::Index(index)),
            Err(_) if text.is_empty() => Err(SelectorError::EmptyCell),
            Err(_) => Ok(Self::Id(text.to_owned())),
        }
    }
}

/// A cell to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCell {
    /// Its type.
    pub kind: CellKind,
    /// Its text.
    pub source: String,
    /// Tags for its metadata.
    pub tags: Vec<String>,
}

impl NewCell {
    /// A cell without tags.
    pub fn new(kind: CellKind, source: impl Into<String>) -> Self {
        Self { kind, source: source.into(), tags: Vec::new() }
    }
}

/// Where the parts of a cell are in the file.
#[derive(Debug, Clone)]
pub(crate) struct CellSpans {
    pub(crate) whole: TextSpan,
    pub(crate) kind: CellKind,
    pub(crate) id: Option<TextSpan>,
    pub(crate) source: TextSpan,
    pub(crate) outputs: Option<TextSpan>,
}

/// A cell of a parsed notebook.
#[derive(Debug, Clone)]
pub struct NotebookCell<'a> {
    pub(crate) text: &'a str,
    pub(crate) spans: &'a CellSpans,
    pub(crate) index: usize,
}

impl<'a> NotebookCell<'a> {
    /// Its place in the notebook, counting from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Its type.
    pub fn kind(&self) -> CellKind {
        self.spans.kind
    }

    /// Its id, which notebooks before nbformat 4.5 do not have.
    pub fn id(&self) -> Option<Cow<'a, str>> {
        self.spans.id.clone().and_then(|span| Json { text: self.text, span }.string())
    }

    /// Its text, joined. A lone surrogate reads as U+FFFD; writing the cell back unedited keeps it.
    pub fn source(&self) -> Cow<'a, str> {
        joined(&self.source_json())
    }

    /// Its JSON as the file has it.
    pub fn raw(&self) -> &'a str {
        &self.text[self.spans.whole.clone()]
    }

    /// The type that the file gives it, if nbformat knows no such type. The cell is then treated as a raw one.
    pub fn unknown_type(&self) -> Option<Cow<'a, str>> {
        if self.kind() != CellKind::Raw {
            return None;
        }
        let name = self.json().get("cell_type").and_then(|name| name.string());
        name.filter(|name| name.parse::<CellKind>().is_err())
    }

    /// How often the kernel had run when this cell ran.
    pub fn execution_count(&self) -> Option<i64> {
        self.json().get("execution_count").and_then(|count| count.integer())
    }

    /// What its last run produced, in order.
    pub fn outputs(&self) -> Vec<NotebookOutput<'a>> {
        let outputs = self.json().get("outputs");
        outputs
            .map(|outputs| outputs.elements())
            .unwrap_or_default()
            .into_iter()
            .map(NotebookOutput::new)
            .collect()
    }

    /// The images that a markdown or raw cell carries, each with the name its text calls it by.
    pub fn attachments(&self) -> Vec<(Cow<'a, str>, Vec<EncodedImage<'a>>)> {
        let attachments = self.json().get("attachments");
        let members = attachments.map(|attachments| attachments.members()).unwrap_or_default();
        members.into_iter().map(|member| (member.key, images(member.value.members()))).collect()
    }

    /// The tags in its metadata.
    pub fn tags(&self) -> Vec<Cow<'a, str>> {
        let tags = self.json().get("metadata").and_then(|metadata| metadata.get("tags"));
        tags.map(|tags| tags.elements()).unwrap_or_default().iter().filter_map(Json::string).collect()
    }

    pub(crate) fn json(&self) -> Json<'a> {
        Json { text: self.text, span: self.spans.whole.clone() }
    }

    pub(crate) fn source_json(&self) -> Json<'a> {
        Json { text: self.text, span: self.spans.source.clone() }
    }
}

/// The text of a "multiline string": a string, or an array of strings to be joined.
pub(crate) fn joined<'a>(value: &Json<'a>) -> Cow<'a, str> {
    if let Some(text) = value.string() {
        return text;
    }
    let array = (value.kind() == JsonKind::Array).then(|| string::joined_array(value.raw())).flatten();
    array.unwrap_or_else(|| value.elements().iter().filter_map(Json::string).collect()).into()
}
