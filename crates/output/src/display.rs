//! A displayed value for readers that cannot render MIME bundles: text, JSON, an image, a status event.

mod chart;
mod html;
mod image;

use cellwright_cell::{ExactJson, MimeData, Stream, is_json};

pub use self::image::{
    Image, ImageFormat, ImageInfo, ImageLimits, PixelSize, Pixels, UnboundedImage, UnusableImage,
};
use crate::{
    artifacts::{ArtifactKind, Artifacts},
    lines::Counted,
    screen::Colours,
    sink::{CapturedText, OutputLimits, OutputSink},
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
    /// Markdown or plain text, not truncated: give it to [`OutputSink::write_block`].
    pub text: Option<String>,
    /// Whether the text is Markdown, as it was displayed or converted from HTML.
    pub is_markdown: bool,
    /// A JSON value, whole. [`json_text`] shows it.
    pub json: Option<ExactJson>,
    /// One image, though the bundle may hold it in several formats.
    pub image: Option<Image>,
    /// A status event; its shape is the sender's.
    pub status: Option<ExactJson>,
}

impl Display {
    /// Chooses from a MIME bundle. Strings may come in pieces, as notebooks store them.
    ///
    /// The text is the first of: a chart's summary, Markdown, plain text, HTML converted to Markdown, LaTeX, other text.
    /// Plain text that only names the object, like `<Figure size 640x480 with 1 Axes>`, comes last. Whatever
    /// is in the bundle, something is said of it.
    pub fn from_bundle(bundle: &MimeData) -> Self {
        let (image, broken) = match Image::from_bundle(bundle) {
            Some(Ok(image)) => (Some(image), None),
            Some(Err(note)) => (None, Some(note)),
            None => (None, None),
        };
        let mut display = Self::words(bundle, image.is_some(), broken.is_some());
        display.image = image;
        if let Some(note) = broken {
            display.text = Some(display.text.map_or(note.to_string(), |text| format!("{text}\n{note}")));
        }
        display
    }

    /// Chooses what is said beside an image that the caller shows or describes itself, without decoding it.
    /// `has_image` is whether there is one: then a text that only names the object adds nothing.
    pub fn beside_image(bundle: &MimeData, has_image: bool) -> Self {
        Self::words(bundle, has_image, false)
    }

    /// `has_note` is whether something else is said where nothing can be shown.
    fn words(bundle: &MimeData, has_image: bool, has_note: bool) -> Self {
        let mut display = Self {
            status: STATUS.iter().find_map(|mime| bundle.get(mime)).map(|value| value.json().into_owned()),
            json: bundle.get("application/json").map(|value| value.json().into_owned()),
            ..Self::default()
        };
        if let Some((text, is_markdown)) = telling_text(bundle) {
            display.text = Some(text);
            display.is_markdown = is_markdown;
        }
        let is_shown = has_image || display.json.is_some() || display.status.is_some();
        if display.text.is_none() && !is_shown {
            // Structures under types of their own (GeoJSON, tables) are JSON all the same.
            let other = bundle.iter().find(|(mime, _)| is_json(mime) && *mime != WIDGET);
            display.json = other.map(|(_, value)| value.json().into_owned());
        }
        if display.text.is_none() && !is_shown && !has_note && display.json.is_none() {
            display.text = last_resort(bundle);
        }
        display
    }
}

/// A JSON value as text within [`JSON_SHOWN`] bytes; a longer one is stored whole.
pub fn json_text(value: &ExactJson, artifacts: Option<&Artifacts>) -> CapturedText {
    bounded(indented_json(value.text()), artifacts)
}

fn bounded(text: String, artifacts: Option<&Artifacts>) -> CapturedText {
    if text.len() <= JSON_SHOWN {
        return CapturedText { text, truncation: None };
    }
    let limits = OutputLimits { head: JSON_SHOWN, tail: 0, ..OutputLimits::default() };
    let mut sink = match artifacts {
        Some(artifacts) => OutputSink::storing(limits, Colours::Dropped, artifacts, ArtifactKind::Json),
        None => OutputSink::new(limits, Colours::Dropped),
    };
    sink.write(Stream::Stdout, text.as_bytes());
    sink.finish()
}

/// JSON text set on lines as values are. Keeps every digit, and what is not JSON to the letter, such as `NaN`.
pub fn indented_json(json: &str) -> String {
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

/// The HTML of a bundle as Markdown, if it is one table with at most a line or two around it, as data frames are.
///
/// For readers that can fit a table to their width. [`Display::from_bundle`] prefers the plain text beside it.
pub fn html_table(bundle: &MimeData) -> Option<String> {
    let html = bundle.text("text/html")?;
    memchr::memmem::find(html.as_bytes(), b"<table")?;
    let markdown = html::to_markdown(&html);
    let is_row = |line: &&str| line.starts_with('|');
    let around = markdown.lines().filter(|line| !is_row(line) && !line.is_empty()).count();
    let tables = markdown.split("\n\n").filter(|block| block.starts_with('|')).count();
    (tables == 1 && around <= 2).then_some(markdown)
}

/// The most informative text, and whether it is Markdown.
fn telling_text(bundle: &MimeData) -> Option<(String, bool)> {
    let text = |mime: &str| bundle.text(mime).filter(|text| !text.trim().is_empty());
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
    let mimes = bundle.iter().map(|(mime, _)| mime);
    let mut others =
        mimes.filter(|mime| mime.starts_with("text/") && !["text/plain", "text/html"].contains(mime));
    let other = text("text/latex").or_else(|| others.find_map(text));
    other.map(|text| (text.into_owned(), false))
}

/// Says what there is when nothing of it can be shown.
fn last_resort(bundle: &MimeData) -> Option<String> {
    if let Some(plain) = bundle.text("text/plain") {
        return Some(plain.into_owned());
    }
    let sizes = bundle.iter().map(|(mime, value)| {
        let size = value.text().map_or_else(|| value.weight(), |text| text.len());
        format!("{mime}, {}", Counted(size as u64, "byte"))
    });
    let what = sizes.collect::<Vec<_>>().join("; ");
    (!what.is_empty()).then(|| format!("[display that text cannot show: {what}]"))
}

/// Whether a text only names an object, such as `<IPython.core.display.HTML object>`.
fn only_names(text: &str) -> bool {
    let text = text.trim();
    let inner = text.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
    inner.is_some_and(|inner| !inner.contains(['<', '>', '\n']))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn html_that_is_one_table_is_distinguished_from_a_page_with_tables() {
        let table = "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>";
        let of = |html: String| html_table(&MimeData::from_iter([("text/html".to_owned(), html.into())]));
        let frame = of(format!("<div>{table}<p>1 rows × 2 columns</p></div>")).unwrap();
        assert_eq!(frame, "| a   | b   |\n| --- | --- |\n| 1   | 2   |\n\n1 rows × 2 columns");
        assert_eq!(of(format!("{table}<p>and</p>{table}")), None);
        assert_eq!(of(format!("<p>a</p><p>b</p><p>c</p>{table}")), None);
        assert_eq!(of("<p>a</p>".to_owned()), None);
    }

    #[test]
    fn an_object_that_is_only_named_says_nothing_beside_its_image() {
        let mut bundle = MimeData::default();
        bundle.insert("text/plain", "<Figure size 640x480>");
        let text = |has_image| Display::beside_image(&bundle, has_image).text;
        assert_eq!((text(true), text(false).as_deref()), (None, Some("<Figure size 640x480>")));
    }

    #[test]
    fn json_text_is_set_as_values_are() {
        for value in [
            json!({"a": [1, {"b": {}}, []], "c \"\\": "x, [y]: {z}", "d": null}),
            json!([[], [[]], {}, "\\"]),
            json!(-1.5),
            json!("a\nb"),
        ] {
            assert_eq!(indented_json(&value.to_string()), format!("{value:#}"));
            assert_eq!(indented_json(&format!("{value:#}")), format!("{value:#}"));
        }
        let big = "123456789012345678901234567890";
        assert_eq!(indented_json(&format!(r#"{{"n":{big}}}"#)), format!("{{\n  \"n\": {big}\n}}"));
    }
}
