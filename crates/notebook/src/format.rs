//! Whether a notebook is what nbformat calls valid: the schema of its minor version, and ids that are unique.
//!
//! The schemas are tables in `schema`. Minor versions after the last one are judged as nbformat judges them: by the last
//! schema, with other keys and other kinds of output allowed.

mod repair;
mod schema;

use std::collections::HashMap;
use std::fmt;

use cellwright_cell::is_json;

use self::schema::{
    CODE_CELL, CODE_METADATA, FieldPresence, FieldShape, MARKDOWN_METADATA, NOTEBOOK, OUTPUTS, ObjectFields,
    OtherFields, RAW_METADATA, TEXT_CELL,
};
use crate::json::{Json, JsonKind, JsonMember};
use crate::notebook::Notebook;

/// The last minor version that has a schema.
const LATEST: i64 = 5;

/// Problems that are listed.
const MOST: usize = 100;

/// Something in a notebook that nbformat does not accept, or that its author cannot have meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatProblem {
    /// The cell it is in. `None` means the notebook around the cells.
    pub cell: Option<usize>,
    /// Where it is there: `metadata.tags`, `outputs[2].data`.
    pub place: String,
    /// What is wrong with it: `is missing`, `must be an object`.
    pub fault: String,
    /// What [`Notebook::repaired`] would do about it.
    pub repair: Option<Repair>,
}

/// What can be done about a problem without guessing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repair {
    /// The cell gets an id of its own.
    NewId,
    /// Each item of a list of lines gets the line end that it lacks. Such a list is valid, but its text is one long line.
    LineEnds,
}

impl FormatProblem {
    /// Whether nbformat refuses the notebook for it.
    pub fn is_invalid(&self) -> bool {
        self.repair != Some(Repair::LineEnds)
    }
}

impl fmt::Display for FormatProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(cell) = self.cell {
            write!(f, "cell {cell}: ")?;
        }
        write!(f, "`{}` {}", self.place, self.fault)
    }
}

impl Notebook {
    /// What nbformat would not accept about the notebook, and lists of lines without line ends; the first hundred.
    /// Nothing for a notebook that is valid.
    pub fn check(&self) -> Vec<FormatProblem> {
        let notebook = self.flat();
        let mut checker = Checker::of(notebook.minor);
        checker.object(&notebook.root(), NOTEBOOK);
        for cell in notebook.cells() {
            checker.cell = Some(cell.index());
            let fields = match cell.kind() {
                crate::CellKind::Code => CODE_CELL,
                crate::CellKind::Markdown | crate::CellKind::Raw => TEXT_CELL,
            };
            if cell.unknown_type().is_some() && !checker.is_future() {
                let fault = "must be code, markdown or raw";
                checker.inside("cell_type".to_owned(), |checker| checker.fault(fault, None));
            }
            checker.object(&cell.json(), fields);
            checker.metadata(&cell.json(), cell.kind());
        }
        if notebook.minor >= 5 {
            checker.ids(&notebook);
        }
        checker.problems.sort_by_key(|problem| problem.cell);
        checker.problems
    }
}

struct Checker {
    minor: i64,
    cell: Option<usize>,
    path: Vec<String>,
    problems: Vec<FormatProblem>,
}

impl Checker {
    fn of(minor: i64) -> Self {
        Self { minor, cell: None, path: Vec::new(), problems: Vec::new() }
    }

    /// A version that nobody knows yet may have more than we know.
    fn is_future(&self) -> bool {
        self.minor > LATEST
    }

    fn fault(&mut self, fault: impl Into<String>, repair: Option<Repair>) {
        let place = self.path.concat().trim_start_matches('.').to_owned();
        let problem = FormatProblem { cell: self.cell, place, fault: fault.into(), repair };
        // Whatever else there is, one for which the notebook is refused is among them.
        let is_wanted = problem.is_invalid() && !self.problems.iter().any(FormatProblem::is_invalid);
        if self.problems.len() < MOST || is_wanted {
            self.problems.push(problem);
        }
    }

    fn inside(&mut self, part: String, check: impl FnOnce(&mut Self)) {
        self.path.push(part);
        check(self);
        self.path.pop();
    }

    fn object(&mut self, value: &Json<'_>, fields: ObjectFields) {
        if value.kind() != JsonKind::Object {
            return self.fault("must be an object", None);
        }
        let members = value.members();
        // If a key occurs twice, the last one counts.
        let last: HashMap<&str, &JsonMember<'_>> =
            members.iter().map(|member| (&*member.key, member)).collect();
        let minor = self.minor;
        let known = || fields.known.iter().filter(move |field| field.since <= minor);
        for field in known() {
            self.inside(format!(".{}", field.key), |checker| match last.get(field.key) {
                Some(member) => checker.value(&member.value, field.shape),
                None if field.presence == FieldPresence::Required => {
                    let repair = (field.key == "id").then_some(Repair::NewId);
                    checker.fault("is missing", repair);
                }
                None => {}
            });
        }
        if fields.others == OtherFields::Refused && !self.is_future() {
            for key in last.keys().filter(|key| known().all(|field| field.key != **key)) {
                let fault = format!("is not a key that nbformat 4.{minor} has there");
                self.inside(format!(".{key}"), |checker| checker.fault(fault, None));
            }
        }
    }

    /// The metadata of a cell, beyond being an object.
    fn metadata(&mut self, cell: &Json<'_>, kind: crate::CellKind) {
        let fields = match kind {
            crate::CellKind::Code => CODE_METADATA,
            crate::CellKind::Markdown => MARKDOWN_METADATA,
            crate::CellKind::Raw => RAW_METADATA,
        };
        if let Some(metadata) = cell.get("metadata").filter(|metadata| metadata.kind() == JsonKind::Object) {
            self.inside(".metadata".to_owned(), |checker| checker.object(&metadata, fields));
        }
    }

    fn value(&mut self, value: &Json<'_>, shape: FieldShape) {
        let kind = value.kind();
        let (is_right, wanted) = match shape {
            FieldShape::Any => return,
            FieldShape::Object(fields) => return self.object(value, fields),
            FieldShape::Lines => return self.lines(value),
            FieldShape::Outputs => return self.outputs(value),
            FieldShape::Bundle => return self.bundle(value),
            FieldShape::Attachments => return self.each(value, Self::bundle),
            FieldShape::Times => {
                // The schema's pattern takes keys of one line.
                return self.each_named(value, |checker, key, time| {
                    if !key.contains('\n') {
                        checker.value(time, FieldShape::Text);
                    }
                });
            }
            FieldShape::Tags => return self.tags(value),
            FieldShape::Text => (kind == JsonKind::String, "must be a string"),
            FieldShape::Texts => (is_texts(value), "must be a list of strings"),
            FieldShape::List => (kind == JsonKind::Array, "must be a list"),
            FieldShape::Flag => (matches!(value.raw(), "true" | "false"), "must be true or false"),
            FieldShape::Integer(least) => (is_integer(value, least), "must be a whole number, at least 1"),
            FieldShape::Count => {
                (value.raw() == "null" || is_integer(value, 0), "must be null or a whole number from 0 on")
            }
            FieldShape::Version => {
                let is_version = value.raw().parse::<i64>().is_ok_and(|number| number >= 0);
                (is_version, "must be a whole number")
            }
            FieldShape::Id => (is_id(value), "must have 1 to 64 letters, digits, `-` and `_`"),
            FieldShape::Name => {
                let is_name = |name: &str| !name.is_empty() && !name.contains('\n');
                (value.string().is_some_and(|name| is_name(&name)), "must be a string of one line, not empty")
            }
            FieldShape::Scrolled => {
                let is_auto = value.string().is_some_and(|text| text == "auto");
                (matches!(value.raw(), "true" | "false") || is_auto, "must be true, false or `auto`")
            }
            FieldShape::TextOrObject => {
                (matches!(kind, JsonKind::String | JsonKind::Object), "must be a string or an object")
            }
        };
        if !is_right {
            self.fault(wanted, None);
        }
    }

    fn lines(&mut self, value: &Json<'_>) {
        if value.kind() == JsonKind::String {
            return;
        }
        if !is_texts(value) {
            return self.fault("must be a string or a list of strings", None);
        }
        let is_text = self.path.last().is_some_and(|part| part == ".source" || part == ".text");
        if is_text && repair::lacks_line_ends(value) {
            self.fault(
                "is a list of lines without line ends, so all of it is one line",
                Some(Repair::LineEnds),
            );
        }
    }

    fn tags(&mut self, value: &Json<'_>) {
        let tags: Option<Vec<_>> = match value.kind() {
            JsonKind::Array => value.elements().iter().map(Json::string).collect(),
            JsonKind::Object | JsonKind::String | JsonKind::Number | JsonKind::Word => None,
        };
        let Some(tags) = tags else { return self.fault("must be a list of strings", None) };
        if tags.iter().any(|tag| tag.is_empty() || tag.contains(',')) {
            self.fault("must be strings without commas, none empty", None);
        }
        let mut sorted = tags.clone();
        sorted.sort();
        sorted.dedup();
        if sorted.len() < tags.len() {
            self.fault("has the same tag twice", None);
        }
    }

    fn outputs(&mut self, value: &Json<'_>) {
        if value.kind() != JsonKind::Array {
            return self.fault("must be a list", None);
        }
        for (at, output) in value.elements().iter().enumerate() {
            self.inside(format!("[{at}]"), |checker| checker.output(output));
        }
    }

    fn output(&mut self, output: &Json<'_>) {
        if output.kind() != JsonKind::Object {
            return self.fault("must be an object", None);
        }
        let Some(kind) = output.get("output_type") else {
            return self.inside(".output_type".to_owned(), |checker| checker.fault("is missing", None));
        };
        let named = kind.string();
        match OUTPUTS.iter().find(|(name, _)| named.as_deref() == Some(*name)) {
            Some((_, fields)) => self.object(output, *fields),
            None if self.is_future() => {}
            None => self.inside(".output_type".to_owned(), |checker| {
                checker.fault("must be stream, display_data, execute_result or error", None);
            }),
        }
    }

    fn bundle(&mut self, value: &Json<'_>) {
        self.each_named(value, |checker, mime, content| {
            if !is_json(mime) && !checker.is_future() {
                checker.lines(content);
            }
        });
    }

    fn each(&mut self, value: &Json<'_>, mut check: impl FnMut(&mut Self, &Json<'_>)) {
        self.each_named(value, |checker, _, content| check(checker, content));
    }

    fn each_named(&mut self, value: &Json<'_>, mut check: impl FnMut(&mut Self, &str, &Json<'_>)) {
        if value.kind() != JsonKind::Object {
            return self.fault("must be an object", None);
        }
        let members = value.members();
        let last: HashMap<&str, &JsonMember<'_>> =
            members.iter().map(|member| (&*member.key, member)).collect();
        for member in members.iter().filter(|member| std::ptr::eq(last[&*member.key], *member)) {
            self.inside(format!("[{:?}]", member.key), |checker| check(checker, &member.key, &member.value));
        }
    }

    fn ids(&mut self, notebook: &Notebook) {
        for cell in repair::repeated_ids(notebook) {
            self.cell = Some(cell);
            let id = notebook.cell(cell).id().unwrap_or_default().into_owned();
            let fault = format!("is `{id}`, as that of an earlier cell is");
            self.inside(".id".to_owned(), |checker| checker.fault(fault, Some(Repair::NewId)));
        }
    }
}

fn is_texts(value: &Json<'_>) -> bool {
    value.kind() == JsonKind::Array && value.elements().iter().all(|item| item.kind() == JsonKind::String)
}

/// Whole: Python takes 1.0 for an integer here.
fn is_integer(value: &Json<'_>, least: i64) -> bool {
    let number = || value.raw().parse::<f64>().ok().filter(|number| number.fract() == 0.0);
    #[expect(clippy::cast_precision_loss, reason = "the least values are small")]
    let least = least as f64;
    value.kind() == JsonKind::Number && number().is_some_and(|number| number >= least)
}

fn is_id(value: &Json<'_>) -> bool {
    let is_right = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    value.string().is_some_and(|id| (1..=64).contains(&id.len()) && id.bytes().all(is_right))
}
