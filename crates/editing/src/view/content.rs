//! What an output looks like as text: the one choice for every door.

use std::fmt::Write as _;

use cellwright_cell::Stream;
use cellwright_notebook::text::shortened;
use cellwright_notebook::{EncodedImage, Notebook, NotebookOutput, OutputKind};
use cellwright_output::{
    Colours, Counted, Display, ImageFormat, ImageInfo, OutputLimits, OutputSink, UnusableImage, html_table,
    indented_json,
};

use super::image::{LabelledImage, in_output};
use super::widget;

/// An output as text, and what its images are.
#[derive(Debug, Clone)]
pub struct OutputContent {
    /// The text as a terminal without colours shows it: of lines that were written over, the last state.
    pub text: String,
    /// Whether the text is Markdown, as it was displayed or converted from HTML.
    pub is_markdown: bool,
    /// Its images, in the order of [`NotebookOutput::images`].
    pub images: Vec<FoundImage>,
}

/// The text that was chosen to show an output, before a terminal has shown it: escape sequences are in it.
#[derive(Debug, Clone)]
pub struct ChosenText {
    /// The text.
    pub text: String,
    /// Whether it is Markdown, as it was displayed or converted from HTML.
    pub is_markdown: bool,
}

/// An image of an output.
#[derive(Debug, Clone)]
pub struct FoundImage {
    /// What the file calls it, on one line.
    pub mime: String,
    /// What it is, or why it cannot be shown.
    pub info: Result<ImageInfo, UnusableImage>,
}

impl OutputContent {
    /// Chooses what to show of an output. Whatever it holds, something of it is shown or described.
    pub fn of(notebook: &Notebook, output: &NotebookOutput<'_>) -> Self {
        let images = FoundImage::all_of(output);
        let ChosenText { text, is_markdown } = ChosenText::of(notebook, output, &images);
        Self { text: terminal_text(text), is_markdown, images }
    }

    /// One line: what it is, how large, and how it starts.
    pub fn summary(&self, output: &NotebookOutput<'_>) -> String {
        let what = self.described(output, FoundImage::describe);
        let error = (output.kind() == OutputKind::Error).then(|| output.error_line());
        let start = match &error {
            // The name of the exception is said already.
            Some(line) => line.split_once(": ").map_or("", |(_, value)| value),
            None => &self.text,
        };
        match start.lines().find(|line| !line.trim().is_empty()) {
            None => what,
            Some(line) => format!("{what}: {}", shortened(line)),
        }
    }

    /// Its kind and size, and only the types of its images.
    pub fn describe(&self, output: &NotebookOutput<'_>) -> String {
        self.described(output, |image| image.mime.clone())
    }

    fn described(&self, output: &NotebookOutput<'_>, image: impl Fn(&FoundImage) -> String) -> String {
        let mut line = match output.kind() {
            OutputKind::Stream(name) => format!("stream {}", on_one_line(&name)),
            OutputKind::Result => "result".to_owned(),
            OutputKind::Display => "display".to_owned(),
            OutputKind::Error => match output.error_line().split(": ").next() {
                None | Some("") => "error".to_owned(),
                Some(name) => format!("error {}", on_one_line(name)),
            },
            OutputKind::Other(kind) if kind.is_empty() => "no type".to_owned(),
            OutputKind::Other(kind) => format!("{:?}", on_one_line(&kind)),
        };
        let write =
            &mut |part: std::fmt::Arguments<'_>| line.write_fmt(part).expect("a String takes everything");
        for found in &self.images {
            write(format_args!(", {}", image(found)));
        }
        let others: Vec<_> =
            output.mime_types().into_iter().filter(|mime| !mime.starts_with("image/")).collect();
        if !others.is_empty() {
            write(format_args!(", {}", on_one_line(&others.join(", "))));
        }
        if !self.text.is_empty() {
            let (lines, bytes) = (line_count(&self.text), self.text.len());
            write(format_args!(", {}, {}", Counted(lines as u64, "line"), Counted(bytes as u64, "byte")));
        }
        line
    }

    /// A line for each image: its address, and what it is or why it cannot be shown.
    pub(super) fn image_notes(&self, cell: usize, output: usize) -> Vec<String> {
        let images = self.images.iter().enumerate();
        images
            .map(|(image, found)| format!("[image {}: {}]", in_output(cell, output, image), found.describe()))
            .collect()
    }

    /// The images that callers can show.
    pub(super) fn images(&self, cell: usize, output: usize) -> impl Iterator<Item = LabelledImage> {
        let usable =
            self.images.iter().enumerate().filter_map(|(image, found)| Some((image, found.info.ok()?)));
        // SVG is text: a client that can draw it finds it under `:raw`.
        let shown = usable.filter(|(_, info)| info.format != ImageFormat::Svg);
        shown.map(move |(image, info)| LabelledImage::new(in_output(cell, output, image), info))
    }

    /// The HTML of an output as Markdown if it is a table, for readers that can fit it to their width.
    pub fn table(output: &NotebookOutput<'_>) -> Option<String> {
        html_table(&output.bundle()?)
    }
}

impl FoundImage {
    /// The images of an output, in the order of [`NotebookOutput::images`].
    pub fn all_of(output: &NotebookOutput<'_>) -> Vec<Self> {
        output.images().iter().map(Self::of).collect()
    }

    pub(super) fn of(image: &EncodedImage<'_>) -> Self {
        Self { mime: on_one_line(&image.mime), info: ImageInfo::of_encoded(&image.mime, &image.data) }
    }

    /// What it is, or why it cannot be shown.
    pub fn describe(&self) -> String {
        match &self.info {
            Ok(info) => info.to_string(),
            Err(reason) => format!("{}, {reason}", self.mime),
        }
    }
}

impl ChosenText {
    /// Chooses the text of an output of `notebook` that has these images.
    pub fn of(notebook: &Notebook, output: &NotebookOutput<'_>, images: &[FoundImage]) -> Self {
        let plain = |text: String| Self { text, is_markdown: false };
        if let Some(summary) = widget::summary(notebook, output) {
            return plain(summary);
        }
        // What has none of the parts it should have is shown as the JSON it is.
        let json = || plain(indented_json(output.raw()));
        match output.kind() {
            OutputKind::Stream(_) => output.stream_text().map_or_else(json, |text| plain(text.into_owned())),
            OutputKind::Error => match output.traceback().unwrap_or_else(|| output.error_line()) {
                nothing if nothing.is_empty() => json(),
                text => plain(text),
            },
            OutputKind::Result | OutputKind::Display | OutputKind::Other(_) => {
                let Some(bundle) = output.bundle() else { return json() };
                let display = Display::beside_image(&bundle, images.iter().any(|image| image.info.is_ok()));
                if let Some(text) = display.text {
                    // pandas leaves columns out of the plain text of a data frame, but not of its HTML.
                    let has_gap = !display.is_markdown && text.contains("...");
                    return match has_gap.then(|| html_table(&bundle)).flatten() {
                        Some(text) => Self { text, is_markdown: true },
                        None => Self { text, is_markdown: display.is_markdown },
                    };
                }
                let shown = display.json.or(display.status);
                plain(shown.map(|shown| indented_json(shown.text())).unwrap_or_default())
            }
        }
    }
}

/// Text as a terminal without colours shows it.
fn terminal_text(text: String) -> String {
    // Controls, and what the controls of Latin 1 begin with in UTF-8.
    let needs_terminal =
        |byte: u8| byte < b' ' && !matches!(byte, b'\n' | b'\t') || matches!(byte, 0x7f | 0xc2);
    // In blocks, without an early exit within one: they are compared many bytes at once.
    let is_plain = |block: &[u8]| !block.iter().fold(false, |found, byte| found | needs_terminal(*byte));
    if text.as_bytes().chunks(4096).all(is_plain) {
        return text;
    }
    let mut sink = OutputSink::new(OutputLimits::NONE, Colours::Dropped);
    sink.write(Stream::Stdout, text.as_bytes());
    sink.finish().text
}

/// How many lines a text has.
pub(super) fn line_count(text: &str) -> usize {
    let ended = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    ended + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// A name from a file, which may hold anything, as part of a line.
pub(super) fn on_one_line(name: &str) -> String {
    shortened(&name.replace(char::is_control, "\u{fffd}"))
}
