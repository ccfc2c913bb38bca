//! nbformat's schemas 4.0 to 4.5 as tables: what each kind of object has, and since when.
//! <https://github.com/jupyter/nbformat/tree/main/nbformat/v4>

/// An object's keys.
#[derive(Clone, Copy)]
pub(super) struct ObjectFields {
    pub(super) known: &'static [ObjectField],
    pub(super) others: OtherFields,
}

/// Keys that are not in the table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OtherFields {
    Allowed,
    Refused,
}

#[derive(Clone, Copy)]
pub(super) struct ObjectField {
    pub(super) key: &'static str,
    pub(super) shape: FieldShape,
    pub(super) presence: FieldPresence,
    /// The minor version that brought it.
    pub(super) since: i64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldPresence {
    Required,
    Optional,
}

/// What a value may be.
#[derive(Clone, Copy)]
pub(super) enum FieldShape {
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
    Object(ObjectFields),
}

const fn required(key: &'static str, shape: FieldShape) -> ObjectField {
    ObjectField { key, shape, presence: FieldPresence::Required, since: 0 }
}

const fn optional(key: &'static str, shape: FieldShape) -> ObjectField {
    ObjectField { key, shape, presence: FieldPresence::Optional, since: 0 }
}

impl ObjectField {
    const fn since(self, since: i64) -> Self {
        Self { since, ..self }
    }
}

const fn open(known: &'static [ObjectField]) -> ObjectFields {
    ObjectFields { known, others: OtherFields::Allowed }
}

const fn closed(known: &'static [ObjectField]) -> ObjectFields {
    ObjectFields { known, others: OtherFields::Refused }
}

pub(super) const NOTEBOOK: ObjectFields = closed(&[
    required("metadata", FieldShape::Object(NOTEBOOK_METADATA)),
    required("nbformat", FieldShape::Version),
    required("nbformat_minor", FieldShape::Version),
    required("cells", FieldShape::List),
]);

pub(super) const NOTEBOOK_METADATA: ObjectFields = open(&[
    optional("kernelspec", FieldShape::Object(KERNELSPEC)),
    optional("language_info", FieldShape::Object(LANGUAGE_INFO)),
    optional("orig_nbformat", FieldShape::Integer(1)),
    optional("title", FieldShape::Text).since(2),
    optional("authors", FieldShape::List).since(2),
]);

pub(super) const KERNELSPEC: ObjectFields =
    open(&[required("name", FieldShape::Text), required("display_name", FieldShape::Text)]);

pub(super) const LANGUAGE_INFO: ObjectFields = open(&[
    required("name", FieldShape::Text),
    optional("codemirror_mode", FieldShape::TextOrObject),
    optional("file_extension", FieldShape::Text),
    optional("mimetype", FieldShape::Text),
    optional("pygments_lexer", FieldShape::Text),
]);

pub(super) const TEXT_CELL: ObjectFields = closed(&[
    required("id", FieldShape::Id).since(5),
    required("cell_type", FieldShape::Any),
    required("metadata", FieldShape::Object(ANYTHING)),
    optional("attachments", FieldShape::Attachments),
    required("source", FieldShape::Lines),
]);

pub(super) const CODE_CELL: ObjectFields = closed(&[
    required("id", FieldShape::Id).since(5),
    required("cell_type", FieldShape::Any),
    required("metadata", FieldShape::Object(ANYTHING)),
    required("source", FieldShape::Lines),
    required("outputs", FieldShape::Outputs),
    required("execution_count", FieldShape::Count),
]);

pub(super) const ANYTHING: ObjectFields = open(&[]);

pub(super) const MARKDOWN_METADATA: ObjectFields = open(&[
    optional("name", FieldShape::Name),
    optional("tags", FieldShape::Tags),
    optional("jupyter", FieldShape::Object(ANYTHING)).since(3),
]);

pub(super) const RAW_METADATA: ObjectFields = open(&[
    optional("format", FieldShape::Text),
    optional("name", FieldShape::Name),
    optional("tags", FieldShape::Tags),
    optional("jupyter", FieldShape::Object(ANYTHING)).since(3),
]);

pub(super) const CODE_METADATA: ObjectFields = open(&[
    optional("jupyter", FieldShape::Object(ANYTHING)).since(3),
    optional("execution", FieldShape::Times).since(4),
    optional("collapsed", FieldShape::Flag),
    optional("scrolled", FieldShape::Scrolled),
    optional("name", FieldShape::Name),
    optional("tags", FieldShape::Tags),
]);

/// Kinds of output.
pub(super) const OUTPUTS: [(&str, ObjectFields); 4] = [
    (
        "execute_result",
        closed(&[
            required("output_type", FieldShape::Any),
            required("execution_count", FieldShape::Count),
            required("data", FieldShape::Bundle),
            required("metadata", FieldShape::Object(ANYTHING)),
        ]),
    ),
    (
        "display_data",
        closed(&[
            required("output_type", FieldShape::Any),
            required("data", FieldShape::Bundle),
            required("metadata", FieldShape::Object(ANYTHING)),
        ]),
    ),
    (
        "stream",
        closed(&[
            required("output_type", FieldShape::Any),
            required("name", FieldShape::Text),
            required("text", FieldShape::Lines),
        ]),
    ),
    (
        "error",
        closed(&[
            required("output_type", FieldShape::Any),
            required("ename", FieldShape::Text),
            required("evalue", FieldShape::Text),
            required("traceback", FieldShape::Texts),
        ]),
    ),
];
