//! What a cell's last run left in the file, for reading.

use std::borrow::Cow;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::cell::joined;
use crate::json::{Json, Kind, Member};
use crate::recording::{Escape, Printed};
use crate::text::shortened;

/// One element of a cell's `outputs`.
#[derive(Debug, Clone)]
pub struct Output<'a> {
    json: Json<'a>,
    /// Found once: an output may be large.
    members: Vec<Member<'a>>,
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
pub struct Image<'a> {
    /// `image/png`, …
    pub mime: String,
    data: Cow<'a, str>,
}

/// An image whose data is not base64.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {mime} data is not base64")]
pub struct NotBase64 {
    mime: String,
}

impl<'a> Output<'a> {
    pub(crate) fn new(json: Json<'a>) -> Self {
        Self { members: json.members(), json }
    }

    /// Its JSON as it stands in the file.
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

    /// The best text in it, without colours: a stream's, a traceback, or markdown before plain text before JSON.
    pub fn text(&self) -> Option<Cow<'a, str>> {
        match self.kind() {
            OutputKind::Stream(_) => self.get("text").map(|text| plain(joined(text))),
            OutputKind::Error => {
                let lines = self.get("traceback").map(Json::elements).unwrap_or_default();
                let lines: Vec<_> = lines.iter().filter_map(Json::string).map(plain).collect();
                Some(if lines.is_empty() { self.error_line() } else { lines.join("\n") }.into())
            }
            OutputKind::Result | OutputKind::Display | OutputKind::Other(_) => {
                ["text/markdown", "text/plain", "text/latex", "text/html"]
                    .iter()
                    .find_map(|mime| self.data(mime))
                    .map(plain)
                    .or_else(|| self.json_data())
            }
        }
    }

    /// The MIME types it offers.
    pub fn mime_types(&self) -> Vec<String> {
        self.data_members().into_iter().map(|member| member.key.into_owned()).collect()
    }

    /// Its images.
    pub fn images(&self) -> Vec<Image<'a>> {
        self.data_members()
            .into_iter()
            .filter(|member| member.key.starts_with("image/"))
            .map(|member| Image { mime: member.key.into_owned(), data: joined(&member.value) })
            .collect()
    }

    /// `ZeroDivisionError: division by zero`
    pub fn error_line(&self) -> String {
        let name = self.field("ename").unwrap_or_default();
        match self.field("evalue").unwrap_or_default() {
            value if value.is_empty() => name.into_owned(),
            value => format!("{name}: {value}"),
        }
    }

    /// One line that tells what it is, how large, and how it starts.
    pub fn summary(&self) -> String {
        let text = self.text();
        let start = match self.kind() {
            OutputKind::Error => Some(
                self.error_line().split_once(": ").map_or_else(String::new, |(_, value)| value.to_owned()),
            ),
            _ => None,
        };
        let what = self.described(text.as_deref());
        match first_line(start.as_deref().or(text.as_deref()).unwrap_or_default()) {
            "" => what,
            line => format!("{what}: {}", shortened(line)),
        }
    }

    /// What it is and how large.
    pub fn describe(&self) -> String {
        self.described(self.text().as_deref())
    }

    fn described(&self, text: Option<&str>) -> String {
        let mut line = match self.kind() {
            OutputKind::Stream(name) => format!("stream {}", on_one_line(&name)),
            OutputKind::Result => "result".to_owned(),
            OutputKind::Display => "display".to_owned(),
            OutputKind::Error => format!("error {}", on_one_line(&self.field("ename").unwrap_or_default())),
            OutputKind::Other(kind) => format!("{kind:?}"),
        };
        let write =
            &mut |part: std::fmt::Arguments<'_>| line.write_fmt(part).expect("a String takes everything");
        for image in self.images() {
            write(format_args!(", {}", image.describe()));
        }
        let others: Vec<_> =
            self.mime_types().into_iter().filter(|mime| !mime.starts_with("image/")).collect();
        if !others.is_empty() {
            write(format_args!(", {}", on_one_line(&others.join(", "))));
        }
        if let Some(text) = text {
            let lines = text.lines().count();
            let noun = if lines == 1 { "line" } else { "lines" };
            write(format_args!(", {lines} {noun}, {} bytes", text.len()));
        }
        line
    }

    fn field(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key)?.string()
    }

    /// Of equal keys the last counts.
    fn get(&self, key: &str) -> Option<&Json<'a>> {
        self.members.iter().rfind(|member| member.key == key).map(|member| &member.value)
    }

    fn data_members(&self) -> Vec<Member<'a>> {
        self.get("data").map(Json::members).unwrap_or_default()
    }

    /// The first JSON in it, as it stands in the file.
    fn json_data(&self) -> Option<Cow<'a, str>> {
        let is_json = |mime: &str| mime == "application/json" || mime.ends_with("+json");
        let mut members = self.data_members().into_iter();
        members.find(|member| is_json(&member.key)).map(|member| member.value.raw().into())
    }

    fn data(&self, mime: &str) -> Option<Cow<'a, str>> {
        let value = self.get("data")?.get(mime)?;
        matches!(value.kind(), Kind::String | Kind::Array).then(|| joined(&value))
    }
}

impl Image<'_> {
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

    /// `image/png 640x480, 12345 bytes`
    pub fn describe(&self) -> String {
        let mime = on_one_line(&self.mime);
        let Ok(bytes) = self.bytes() else {
            return format!("{mime} (not valid base64)");
        };
        let pixels = imagesize::blob_size(&bytes).map(|size| format!(" {}x{}", size.width, size.height));
        format!("{mime}{}, {} bytes", pixels.unwrap_or_default(), bytes.len())
    }
}

fn first_line(text: &str) -> &str {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default()
}

/// A name from a file, which may hold anything, as part of a line.
fn on_one_line(name: &str) -> String {
    shortened(&name.replace(char::is_control, "\u{fffd}"))
}

/// Text as a screen without colours would show it: no escape sequences, and of a line that was written over only the last state.
fn plain(text: Cow<'_, str>) -> Cow<'_, str> {
    if !text.contains(['\x1b', '\r', '\x08']) {
        return text;
    }
    without_escapes(&Printed::of(&text).text()).into()
}

fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\x1b') {
        plain.push_str(&rest[..at]);
        let sequence = &rest[at..];
        rest = &sequence[Escape::of(sequence).length(sequence)..];
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_overwritten_text_are_not_shown() {
        let shown = |text: &str| plain(text.into()).into_owned();
        assert_eq!(shown("\x1b[0;31mred\x1b[0m \x1b[?25lx"), "red x");
        assert_eq!(shown("\x1b]8;;http://x\x07link\x1b]8;;\x1b\\!"), "link!");
        assert_eq!(shown(" 10%\r 50%\r100%\ndone\r\n"), "100%\ndone\n");
        assert_eq!(shown("\x1b"), "");
    }
}
