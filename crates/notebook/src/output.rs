//! What a cell's last run left in the file, for reading.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use cellwright_cell::{ExactJson, MimeData, MimeValue};

use crate::cell::joined;
use crate::json::{Json, JsonKind, JsonMember};

/// One element of a cell's `outputs`.
#[derive(Debug, Clone)]
pub struct NotebookOutput<'a> {
    json: Json<'a>,
    /// Found once: an output may be large.
    members: Vec<JsonMember<'a>>,
}

/// What an output is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputKind {
    /// Printed text, with the stream's name.
    Stream(String),
    /// The value of the last expression.
    Result,
    /// Something shown.
    Display,
    /// An exception.
    Error,
    /// A type this program does not know.
    Other(String),
}

/// An image in an output, still encoded.
#[derive(Debug, Clone)]
pub struct EncodedImage<'a> {
    /// `image/png`, …
    pub mime: String,
    /// As it is in the file: base64, or the text of an SVG.
    pub data: Cow<'a, str>,
}

/// An image whose data is not base64.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {mime} data is not base64")]
pub struct NotBase64 {
    mime: String,
}

impl<'a> NotebookOutput<'a> {
    pub(crate) fn new(json: Json<'a>) -> Self {
        Self { members: json.members(), json }
    }

    /// Its JSON as the file has it.
    pub fn raw(&self) -> &'a str {
        self.json.raw()
    }

    /// What it is.
    pub fn kind(&self) -> OutputKind {
        match self.field("output_type").as_deref().unwrap_or_default() {
            "stream" => OutputKind::Stream(self.field("name").unwrap_or_default().into_owned()),
            "execute_result" => OutputKind::Result,
            "display_data" => OutputKind::Display,
            "error" => OutputKind::Error,
            other => OutputKind::Other(other.to_owned()),
        }
    }

    /// What a stream printed, as it is in the file. `None` if the output holds no such text.
    pub fn stream_text(&self) -> Option<Cow<'a, str>> {
        let text = self.get("text")?;
        if text.kind() != JsonKind::Array {
            return text.string();
        }
        // One look at the pieces: there may be many.
        text.elements().iter().map(Json::string).collect::<Option<String>>().map(Cow::Owned)
    }

    /// The traceback of an error, as the file has it. `None` for other outputs.
    pub fn traceback(&self) -> Option<String> {
        let lines: Vec<_> = self.get("traceback")?.elements().iter().filter_map(Json::string).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// The MIME bundle of a display or a result, without its images. `None` if the output holds none.
    pub fn bundle(&self) -> Option<MimeData> {
        let data = self.get("data").filter(|data| data.kind() == JsonKind::Object)?;
        let others = data.members().into_iter().filter(|member| !member.key.starts_with("image/"));
        Some(others.map(|member| (member.key.into_owned(), value(&member.value))).collect())
    }

    /// The MIME types it offers.
    pub fn mime_types(&self) -> Vec<String> {
        self.data_members().into_iter().map(|member| member.key.into_owned()).collect()
    }

    /// Its images: PNG before JPEG before others, then as they stand in the file. A bundle often holds one image
    /// in several formats.
    pub fn images(&self) -> Vec<EncodedImage<'a>> {
        images(self.data_members())
    }

    /// `ZeroDivisionError: division by zero`
    pub fn error_line(&self) -> String {
        let name = self.field("ename").unwrap_or_default();
        match self.field("evalue").unwrap_or_default() {
            value if value.is_empty() => name.into_owned(),
            value => format!("{name}: {value}"),
        }
    }

    fn field(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key)?.string()
    }

    /// If a key occurs twice, the last one counts.
    fn get(&self, key: &str) -> Option<&Json<'a>> {
        self.members.iter().rfind(|member| member.key == key).map(|member| &member.value)
    }

    fn data_members(&self) -> Vec<JsonMember<'a>> {
        self.get("data").map(Json::members).unwrap_or_default()
    }
}

/// The images among the members of a bundle.
pub(crate) fn images(bundle: Vec<JsonMember<'_>>) -> Vec<EncodedImage<'_>> {
    let order = |mime: &str| {
        let known = ["image/png", "image/jpeg", "image/webp", "image/gif", "image/svg+xml"];
        known.iter().position(|known| *known == mime).unwrap_or(known.len())
    };
    let mut images: Vec<_> = bundle
        .into_iter()
        .filter(|member| member.key.starts_with("image/"))
        .map(|member| EncodedImage { mime: member.key.into_owned(), data: joined(&member.value) })
        .collect();
    images.sort_by_key(|image| order(&image.mime));
    images
}

/// A value of a bundle, with every digit of the file.
fn value(json: &Json<'_>) -> MimeValue {
    match json.string() {
        Some(text) => MimeValue::Text(text.into_owned()),
        None => MimeValue::Json(ExactJson::from_checked(json.raw())),
    }
}

impl EncodedImage<'_> {
    /// The image file's bytes. SVG is text and comes as it is.
    pub fn bytes(&self) -> Result<Vec<u8>, NotBase64> {
        if self.mime == "image/svg+xml" {
            return Ok(self.data.as_bytes().to_vec());
        }
        // Python breaks base64 into lines, and some writers leave the padding off.
        let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
        let compact: Vec<u8> = self.data.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        GeneralPurpose::new(&alphabet::STANDARD, config)
            .decode(compact)
            .map_err(|_| NotBase64 { mime: self.mime.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(text: &str) -> NotebookOutput<'_> {
        NotebookOutput::new(Json { text, span: 0..text.len() })
    }

    #[test]
    fn a_bundle_that_serde_cannot_parse_keeps_its_text() {
        let text = r#"{"data": {"image/png": "QQ==", "text/plain": ["a\ud800", "b"],
            "application/json": {"n": [NaN, 1.5, 1e999, -Infinity, null]}}}"#;
        let bundle = output(text).bundle().unwrap();
        assert_eq!(bundle.text("text/plain").as_deref(), Some("a\u{fffd}b"));
        let json = bundle.get("application/json").unwrap().json().into_owned();
        assert_eq!(json.text(), "{\"n\": [NaN, 1.5, 1e999, -Infinity, null]}");
        assert_eq!(bundle.iter().count(), 2);
    }

    #[test]
    fn images_come_in_the_order_in_which_they_can_be_shown() {
        let text = r#"{"data": {"image/svg+xml": "<svg/>", "image/x": "", "image/png": "QQ=="}}"#;
        let images = output(text).images();
        let mimes: Vec<_> = images.iter().map(|image| image.mime.as_str()).collect();
        assert_eq!(mimes, ["image/png", "image/svg+xml", "image/x"]);
        assert_eq!(images[0].bytes(), Ok(b"A".to_vec()));
    }

    #[test]
    fn text_that_is_not_text_is_none() {
        for text in [r#"{"text": 5}"#, r#"{"text": ["a", 5]}"#, "{}", r#""no object""#] {
            assert_eq!(output(text).stream_text(), None, "{text}");
        }
        assert_eq!(output(r#"{"text": ["a\n", "b\udfff"]}"#).stream_text().unwrap(), "a\nb\u{fffd}");
    }
}
