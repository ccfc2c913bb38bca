//! HTML as Markdown.

use html_to_markdown_rs::{ConversionOptions, InlineDataMedia, WarningKind, convert};

use crate::lines::Counted;

/// Longer HTML is not converted: it is a script with its data (an interactive chart), and the conversion would
/// take seconds.
const LONGEST: usize = 2 * 1024 * 1024;

/// Markdown that says what the HTML says. Scripts, styles and embedded data are left out; what could not
/// be converted is told.
pub(super) fn to_markdown(html: &str) -> String {
    if html.len() > LONGEST {
        return format!("[HTML of {}, too long to show as text]", Counted(html.len() as u64, "byte"));
    }
    let options = ConversionOptions {
        extract_metadata: false,
        inline_data_media: InlineDataMedia::AltTextOnly,
        ..ConversionOptions::default()
    };
    let converted = match convert(html, options) {
        Ok(converted) => converted,
        Err(error) => return format!("[HTML that could not be converted: {error}]"),
    };
    let mut text = converted.content.unwrap_or_default().trim().to_owned();
    if converted.warnings.iter().any(|warning| warning.kind == WarningKind::DepthLimitExceeded) {
        text.push_str("\n[HTML nested too deeply: not all of it is shown]");
    }
    text
}
