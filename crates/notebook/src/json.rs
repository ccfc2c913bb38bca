//! JSON as text: where every value sits, without building a tree.
//!
//! A notebook is checked once, whole, by [`scan`]; afterwards [`Json`] walks the checked text on demand.
//! What Python's `json` accepts is accepted (`NaN`, `Infinity`, lone surrogates, duplicate keys), because
//! Python wrote the files; nothing is ever normalised, because nobody asked for it. Neither `serde_json`'s `RawValue` nor
//! `jiter` accepts all of that and says where each value is.

pub(crate) mod scan;
pub(crate) mod string;
pub(crate) mod value;

pub(crate) use scan::{JsonScanner, SyntaxError};
pub(crate) use value::{Json, JsonKind, JsonMember, JsonSequence};

/// A byte range of the file's text.
pub(crate) type TextSpan = std::ops::Range<usize>;
