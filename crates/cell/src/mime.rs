//! One value in several representations.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::json::ExactJson;

/// One value in several representations, and hints on showing them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MimeBundle {
    /// MIME type to content.
    pub data: MimeData,
    /// MIME type to hints on showing it.
    pub metadata: Map<String, Value>,
}

/// MIME type to content, in the order its author gave them.
#[derive(Clone, Default, PartialEq)]
pub struct MimeData(Vec<(String, MimeValue)>);

/// One representation of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum MimeValue {
    /// Text, or base64 of an image.
    Text(String),
    /// Everything else, with every digit.
    Json(ExactJson),
}

/// Whether content of this type is JSON, and not text. nbformat's schema: `^application/(.*\+)?json$`.
pub fn is_json(mime: &str) -> bool {
    let kind = mime.strip_prefix("application/").filter(|kind| !kind.contains('\n'));
    kind.is_some_and(|kind| kind == "json" || kind.ends_with("+json"))
}

impl MimeBundle {
    /// About how many bytes it takes.
    pub fn weight(&self) -> usize {
        let content = self.data.iter().map(|(_, value)| value.weight());
        content.chain(self.metadata.values().map(crate::json_weight)).sum()
    }
}

impl MimeData {
    /// The content of this type.
    pub fn get(&self, mime: &str) -> Option<&MimeValue> {
        self.iter().find_map(|(key, value)| (key == mime).then_some(value))
    }

    /// The text of this type.
    pub fn text(&self, mime: &str) -> Option<Cow<'_, str>> {
        self.get(mime)?.text()
    }

    /// All of it, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &MimeValue)> {
        self.0.iter().map(|(mime, value)| (mime.as_str(), value))
    }

    /// Adds content, in the place of what was there under its type.
    pub fn insert(&mut self, mime: impl Into<String>, value: impl Into<MimeValue>) {
        let (mime, value) = (mime.into(), value.into());
        match self.0.iter_mut().find(|(key, _)| *key == mime) {
            Some((_, before)) => *before = value,
            None => self.0.push((mime, value)),
        }
    }
}

impl MimeValue {
    /// Its text: a string, or the pieces that files and some kernels cut strings into.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Text(text) => Some(Cow::Borrowed(text)),
            Self::Json(json) => json.joined().map(Cow::Owned),
        }
    }

    /// Its text, when that came whole.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Json(_) => None,
        }
    }

    /// The same as JSON.
    pub fn json(&self) -> Cow<'_, ExactJson> {
        match self {
            Self::Text(text) => Cow::Owned(Value::from(text.as_str()).into()),
            Self::Json(json) => Cow::Borrowed(json),
        }
    }

    /// About how many bytes it takes.
    pub fn weight(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Json(json) => json.text().len(),
        }
    }
}

impl From<Value> for MimeValue {
    fn from(value: Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                Self::Json(value.into())
            }
        }
    }
}

impl From<String> for MimeValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for MimeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Map<String, Value>> for MimeData {
    fn from(data: Map<String, Value>) -> Self {
        data.into_iter().map(|(mime, value)| (mime, value.into())).collect()
    }
}

impl From<Map<String, Value>> for MimeBundle {
    fn from(data: Map<String, Value>) -> Self {
        Self { data: data.into(), ..Self::default() }
    }
}

/// If a type occurs twice, the last one counts.
impl FromIterator<(String, MimeValue)> for MimeData {
    fn from_iter<I: IntoIterator<Item = (String, MimeValue)>>(items: I) -> Self {
        let mut data = Self::default();
        for (mime, value) in items {
            data.insert(mime, value);
        }
        data
    }
}

impl fmt::Debug for MimeData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl Serialize for MimeData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl Serialize for MimeValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Json(json) => json.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for MimeData {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BundleEntries;
        impl<'de> Visitor<'de> for BundleEntries {
            type Value = MimeData;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("MIME types and content")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<MimeData, A::Error> {
                let mut data = MimeData::default();
                while let Some((mime, value)) = entries.next_entry::<String, MimeValue>()? {
                    data.insert(mime, value);
                }
                Ok(data)
            }
        }
        deserializer.deserialize_map(BundleEntries)
    }
}

impl<'de> Deserialize<'de> for MimeValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        if !raw.get().starts_with('"') {
            return Ok(Self::Json(raw.into()));
        }
        // An image has no escapes, and need not be copied.
        if raw.get().contains('\\') {
            return serde_json::from_str(raw.get()).map(Self::Text).map_err(D::Error::custom);
        }
        let mut text = String::from(Box::<str>::from(raw));
        text.pop();
        text.remove(0);
        Ok(Self::Text(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_keeps_its_order_and_every_digit() {
        let text = r#"{"text/plain":"a\nb","image/png":"iVBO","application/json":{"n":10000000000000000000000,"f":1.50}}"#;
        let data: MimeData = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&data).unwrap(), text);
        assert_eq!(data.text("text/plain").as_deref(), Some("a\nb"));
        assert_eq!(data.get("image/png"), Some(&MimeValue::from("iVBO")));
        assert_eq!(data.text("application/json"), None);
    }

    #[test]
    fn text_may_come_in_pieces() {
        let data: MimeData =
            serde_json::from_str(r#"{"text/plain": ["a\n", "b"], "x/y": ["a", 1], "x/z": []}"#).unwrap();
        assert_eq!(data.text("text/plain").as_deref(), Some("a\nb"));
        assert_eq!(data.text("x/y"), None);
        assert_eq!(data.text("x/z").as_deref(), Some(""));
    }

    #[test]
    fn json_types_are_those_of_nbformat() {
        for (mime, json) in [
            ("application/json", true),
            ("application/geo+json", true),
            ("application/vnd.plotly.v1+json", true),
            ("application/vnd.example.json", false),
            ("text/x+json", false),
            ("text/plain", false),
        ] {
            assert_eq!(is_json(mime), json, "{mime}");
        }
    }
}
