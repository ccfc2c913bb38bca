//! nbformat's schemas 4.0 to 4.5 as tables: what each kind of object has, and since when.
//! <https://github.com/jupyter/nbformat/tree/main/nbformat/v4>

/// An object's keys.
#[derive(Clone, Copy)]
pub(super) struct Fields {
    pub(super) known: &'static [Field],
    pub(super) others: Others,
}

/// Keys that are not in the table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    Allowed,
    Refused,
}

#[derive(Clone, Copy)]
pub(super) struct Field {
    pub(super) key: &'static str,
    pub(super) shape: Shape,
    pub(super) presence: Presence,
    /// The minor version that brought it.
    pub(super) since: i64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    Required,
    Optional,
}

/// What a value may be.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    Any,
    Text,
    /// A string or a list of strings.
    Lines,
    /// A list of strings.
    Texts,
    List,
    Flag,
    /// Whole, and at least this.
    Integer(i64),
    /// Whole and not negative, or null.
    Count,
    /// Written without a fraction.
    Version,
    Id,
    /// A text of at least one character, on one line.
    Name,
    Tags,
    /// True, false or `auto`.
    Scrolled,
    TextOrObject,
    /// MIME types with their content.
    Bundle,
    /// File names with bundles.
    Attachments,
    /// Keys with texts.
    Times,
    Outputs,
    Object(Fields),
}

const fn required(key: &'static str, shape: Shape) -> Field {
    Field { key, shape, presence: Presence::Required, since: 0 }
}

const fn optional(key: &'static str, shape: Shape) -> Field {
    Field { key, shape, presence: Presence::Optional, since: 0 }
}

impl Field {
    const fn since(self, since: i64) -> Self {
        Self { since, ..self }
    }
}

const fn open(known: &'static [Field]) -> Fields {
    Fields { known, others: Others::Allowed }
}

const fn closed(known: &'static [Field]) -> Fields {
    Fields { known, others: Others::Refused }
}

pub(super) const NOTEBOOK: Fields = closed(&[
    required("metadata", Shape::Object(NOTEBOOK_METADATA)),
    required("nbformat", Shape::Version),
    required("nbformat_minor", Shape::Version),
    required("cells", Shape::List),
]);

pub(super) const NOTEBOOK_METADATA: Fields = open(&[
    optional("kernelspec", Shape::Object(KERNELSPEC)),
    optional("language_info", Shape::Object(LANGUAGE_INFO)),
    optional("orig_nbformat", Shape::Integer(1)),
    optional("title", Shape::Text).since(2),
    optional("authors", Shape::List).since(2),
]);

pub(super) const KERNELSPEC: Fields =
    open(&[required("name", Shape::Text), required("display_name", Shape::Text)]);

pub(super) const LANGUAGE_INFO: Fields = open(&[
    required("name", Shape::Text),
    optional("codemirror_mode", Shape::TextOrObject),
    optional("file_extension", Shape::Text),
    optional("mimetype", Shape::Text),
    optional("pygments_lexer", Shape::Text),
]);

pub(super) const TEXT_CELL: Fields = closed(&[
    required("id", Shape::Id).since(5),
    required("cell_type", Shape::Any),
    required("metadata", Shape::Object(ANYTHING)),
    optional("attachments", Shape::Attachments),
    required("source", Shape::Lines),
]);

pub(super) const CODE_CELL: Fields = closed(&[
    required("id", Shape::Id).since(5),
    required("cell_type", Shape::Any),
    required("metadata", Shape::Object(ANYTHING)),
    required("source", Shape::Lines),
    required("outputs", Shape::Outputs),
    required("execution_count", Shape::Count),
]);

pub(super) const ANYTHING: Fields = open(&[]);

pub(super) const MARKDOWN_METADATA: Fields = open(&[
    optional("name", Shape::Name),
    optional("tags", Shape::Tags),
    optional("jupyter", Shape::Object(ANYTHING)).since(3),
]);

pub(super) const RAW_METADATA: Fields = open(&[
    optional("format", Shape::Text),
    optional("name", Shape::Name),
    optional("tags", Shape::Tags),
    optional("jupyter", Shape::Object(ANYTHING)).since(3),
]);

pub(super) const CODE_METADATA: Fields = open(&[
    optional("jupyter", Shape::Object(ANYTHING)).since(3),
    optional("execution", Shape::Times).since(4),
    optional("collapsed", Shape::Flag),
    optional("scrolled", Shape::Scrolled),
    optional("name", Shape::Name),
    optional("tags", Shape::Tags),
]);

/// Kinds of output.
pub(super) const OUTPUTS: [(&str, Fields); 4] = [
    (
        "execute_result",
        closed(&[
            required("output_type", Shape::Any),
            required("execution_count", Shape::Count),
            required("data", Shape::Bundle),
            required("metadata", Shape::Object(ANYTHING)),
        ]),
    ),
    (
        "display_data",
        closed(&[
            required("output_type", Shape::Any),
            required("data", Shape::Bundle),
            required("metadata", Shape::Object(ANYTHING)),
        ]),
    ),
    (
        "stream",
        closed(&[
            required("output_type", Shape::Any),
            required("name", Shape::Text),
            required("text", Shape::Lines),
        ]),
    ),
    (
        "error",
        closed(&[
            required("output_type", Shape::Any),
            required("ename", Shape::Text),
            required("evalue", Shape::Text),
            required("traceback", Shape::Texts),
        ]),
    ),
];
