//! What a displayed value is to those who cannot render MIME bundles: text, JSON, an image, a status event.

mod chart;
mod html;
mod image;

use std::borrow::Cow;

use serde_json::{Map, Value};

pub use self::image::{Image, ImageFormat, ImageLimits, PixelSize, Pixels, Unbounded};
use crate::{
    artifacts::{Artifacts, Kind},
    lines::Counted,
    screen::Colours,
    sink::{Captured, Limits, Sink, Stream},
};

/// Most bytes of a JSON value that are shown in a text.
pub const JSON_SHOWN: usize = 8_000;

/// Under these types programs report progress; all three mean the same.
const STATUS: [&str; 3] =
    ["application/x-cellwright-status", "application/x-omp-status", "application/x-pisces-status"];

const WIDGET: &str = "application/vnd.jupyter.widget-view+json";

/// A displayed value, of whose many representations the most telling ones were chosen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Display {
    /// Markdown or plain text, not truncated: give it to [`Sink::write_block`].
    pub text: Option<String>,
    /// Whether the text is Markdown, as it was displayed or converted from HTML.
    pub is_markdown: bool,
    /// A JSON value, whole. [`json_text`] shows it.
    pub json: Option<Value>,
    /// One image, though the bundle may hold it in several formats.
    pub image: Option<Image>,
    /// A status event; its shape is the sender's.
    pub status: Option<Value>,
}

impl Display {
    /// Chooses from a MIME bundle. Strings may come in pieces, as notebooks store them.
    ///
    /// The text is the first of: a chart's summary, Markdown, plain text, HTML converted to Markdown, LaTeX, other text.
    /// Plain text that only names the object, like `<Figure size 640x480 with 1 Axes>`, comes last. Whatever
    /// is in the bundle, something is said of it.
    pub fn from_bundle(bundle: &Map<String, Value>) -> Self {
        let mut display = Self {
            status: STATUS.iter().find_map(|mime| bundle.get(*mime)).cloned(),
            json: bundle.get("application/json").cloned(),
            ..Self::default()
        };
        let mut broken = None;
        match Image::from_bundle(bundle) {
            Some(Ok(image)) => display.image = Some(image),
            Some(Err(note)) => broken = Some(note),
            None => {}
        }
        if let Some((text, is_markdown)) = telling_text(bundle) {
            display.text = Some(text);
            display.is_markdown = is_markdown;
        }
        let is_shown = display.image.is_some() || display.json.is_some() || display.status.is_some();
        if display.text.is_none() && !is_shown {
            // Structures under types of their own (GeoJSON, tables) are JSON all the same.
            let other = bundle.iter().find(|(mime, _)| mime.ends_with("+json") && *mime != WIDGET);
            display.json = other.map(|(_, value)| value.clone());
        }
        if display.text.is_none() && !is_shown && display.json.is_none() {
            display.text = broken.take().or_else(|| last_resort(bundle));
        }
        if let Some(note) = broken {
            display.text = Some(display.text.map_or(note.clone(), |text| format!("{text}\n{note}")));
        }
        display
    }
}

/// A JSON value as text within [`JSON_SHOWN`] bytes; a longer one is stored whole.
pub fn json_text(value: &Value, artifacts: Option<&Artifacts>) -> Captured {
    bounded(format!("{value:#}"), artifacts)
}

/// The same of a value that is JSON text already, since its numbers have more digits than a [`Value`] holds.
pub fn exact_json_text(json: &str, artifacts: Option<&Artifacts>) -> Captured {
    bounded(indented(json), artifacts)
}

fn bounded(text: String, artifacts: Option<&Artifacts>) -> Captured {
    if text.len() <= JSON_SHOWN {
        return Captured { text, truncation: None };
    }
    let limits = Limits { head: JSON_SHOWN, tail: 0, ..Limits::default() };
    let mut sink = match artifacts {
        Some(artifacts) => Sink::storing(limits, Colours::Dropped, artifacts, Kind::Json),
        None => Sink::new(limits, Colours::Dropped),
    };
    sink.write(Stream::Stdout, text.as_bytes());
    sink.finish()
}

/// JSON text set on lines as values are.
fn indented(json: &str) -> String {
    let mut text = String::with_capacity(2 * json.len());
    let (mut depth, mut in_string, mut is_escaped, mut opened) = (0_usize, false, false, false);
    for character in json.chars() {
        let is_blank = matches!(character, ' ' | '\t' | '\r' | '\n');
        if !in_string && is_blank {
            continue;
        }
        let closes = !in_string && matches!(character, '}' | ']');
        depth = depth.saturating_sub(usize::from(closes));
        // An empty object stays on its line.
        if opened != closes {
            text.push('\n');
            text.extend(std::iter::repeat_n("  ", depth));
        }
        opened = false;
        text.push(character);
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if in_string => is_escaped = true,
            '"' => in_string = !in_string,
            _ if in_string => {}
            '{' | '[' => (depth, opened) = (depth + 1, true),
            ',' => opened = true,
            ':' => text.push(' '),
            _ => {}
        }
    }
    text
}

/// The text that tells most, and whether it is Markdown.
fn telling_text(bundle: &Map<String, Value>) -> Option<(String, bool)> {
    let text = |mime: &str| bundle.get(mime).and_then(string).filter(|text| !text.trim().is_empty());
    if let Some(summary) = chart::summary(bundle) {
        return Some((summary, false));
    }
    if let Some(markdown) = text("text/markdown") {
        return Some((markdown.into_owned(), true));
    }
    let plain = text("text/plain").filter(|plain| !only_names(plain));
    if let Some(plain) = plain {
        return Some((plain.into_owned(), false));
    }
    let converted = text("text/html").map(|html| html::to_markdown(&html));
    if let Some(converted) = converted.filter(|converted| !converted.is_empty()) {
        return Some((converted, true));
    }
    let others = bundle
        .keys()
        .filter(|mime| mime.starts_with("text/") && !["text/plain", "text/html"].contains(&mime.as_str()));
    let other = text("text/latex").or_else(|| others.into_iter().find_map(|mime| text(mime)));
    other.map(|text| (text.into_owned(), false))
}

/// Says what there is when nothing of it can be shown.
fn last_resort(bundle: &Map<String, Value>) -> Option<String> {
    if let Some(plain) = bundle.get("text/plain").and_then(string) {
        return Some(plain.into_owned());
    }
    let sizes = bundle.iter().map(|(mime, value)| {
        let size = string(value).map_or_else(|| value.to_string().len(), |text| text.len());
        format!("{mime}, {}", Counted(size as u64, "byte"))
    });
    let what = sizes.collect::<Vec<_>>().join("; ");
    (!what.is_empty()).then(|| format!("[display that text cannot show: {what}]"))
}

/// Whether a text is no more than the name of an object, such as `<IPython.core.display.HTML object>`.
fn only_names(text: &str) -> bool {
    let text = text.trim();
    let inner = text.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
    inner.is_some_and(|inner| !inner.contains(['<', '>', '\n']))
}

/// A string, or an array of its pieces.
fn string(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Array(pieces) => pieces.iter().map(Value::as_str).collect::<Option<String>>().map(Cow::Owned),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_text_is_set_as_values_are() {
        for value in [
            json!({"a": [1, {"b": {}}, []], "c \"\\": "x, [y]: {z}", "d": null}),
            json!([[], [[]], {}, "\\"]),
            json!(-1.5),
            json!("a\nb"),
        ] {
            assert_eq!(indented(&value.to_string()), format!("{value:#}"));
            assert_eq!(indented(&format!("{value:#}")), format!("{value:#}"));
        }
        let big = "123456789012345678901234567890";
        assert_eq!(indented(&format!(r#"{{"n":{big}}}"#)), format!("{{\n  \"n\": {big}\n}}"));
    }
}
