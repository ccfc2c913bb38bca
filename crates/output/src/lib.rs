//! What a run printed and displayed: bounded, sanitized, truncated truthfully, and kept in full.
//!
//! [`OutputSink`] takes the bytes of a run's streams and gives back [`CapturedText`] text; what does not fit is in an
//! artifact ([`Artifacts`]) that can be read in parts. [`Display`] chooses what to show of a MIME bundle. Nothing here knows of kernels or of async; files are written and
//! read synchronously.

mod artifacts;
mod decode;
mod display;
mod kept;
mod lines;
mod safe_html;
mod screen;
mod share;
mod sink;
mod spill;
#[cfg(test)]
mod tests;
mod truncation;
mod visible;

pub use artifacts::{
    Artifact, ArtifactError, ArtifactId, ArtifactKind, ArtifactPage, Artifacts, ByteWindow, FoundLines, Hit,
    InvalidId, PrunedArtifacts, Retention,
};
pub use display::{
    Display, Image, ImageFormat, ImageInfo, ImageLimits, JSON_SHOWN, PixelSize, Pixels, UnboundedImage,
    UnusableImage, html_table, indented_json, json_text,
};
pub use lines::{Counted, Extent, Thousands};
pub use safe_html::{HarmlessHtml, data_address, escaped_html, has_safe_scheme, is_inside, is_safe_address};
pub use screen::Colours;
pub use share::fair_share;
pub use sink::{CapturedText, OutputLimits, OutputSink};
pub use truncation::{FullText, Truncation};
pub use visible::{visible, visible_coloured, visible_line};
