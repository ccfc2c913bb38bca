//! A notebook as a person reads it in a terminal: prose rendered, code in colours, outputs as they looked.
//!
//! No line is wider than the terminal: prose breaks between words, code and outputs inside their gutter, tables by
//! their columns. Only images that a terminal draws itself are left to it.

use std::borrow::Cow;

use cellwright_cell::Stream;
use cellwright_editing::view::{ChosenText, FoundImage, OutputContent, load_image, unknown_type_note};
use cellwright_notebook::select::ImageAddress;
use cellwright_notebook::{CellKind, CellRef, Notebook, NotebookCell, NotebookOutput, OutputKind};
use cellwright_output::{
    CapturedText, Display, OutputLimits, OutputSink, visible, visible_coloured, visible_line,
};

use crate::draw::style::{TextPen, TextStyle, painted, wrapped};
use crate::draw::table::TableExtent;
use crate::draw::terminal::{ImageProtocol, TerminalSize};
use crate::draw::tree::TreeExtent;
use crate::draw::wrap::wrapped_line;
use crate::draw::{code, markdown, picture, traceback, tree};

/// Columns that code and outputs have at least, however wide the counts before them are.
const LEAST_ROOM: usize = 10;

/// How a notebook is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShowStyle {
    pub(crate) pen: TextPen,
    /// Columns of a line.
    pub(crate) width: usize,
    /// How images are drawn, and where. Without it, a note replaces each image.
    pub(crate) images: Option<(ImageProtocol, TerminalSize)>,
    /// How much of an output is shown.
    pub(crate) limits: OutputLimits,
}

/// Shows cells of one notebook, each a text of whole lines.
pub(crate) struct NotebookPage<'a> {
    look: ShowStyle,
    language: String,
    /// The columns before code and outputs, in which the counts stand.
    gutter: usize,
    notebook: &'a Notebook,
}

impl<'a> NotebookPage<'a> {
    pub(crate) fn of(notebook: &'a Notebook, look: ShowStyle) -> Self {
        let language = notebook.language().unwrap_or_else(|| "python".to_owned());
        let longest = notebook.cells().filter_map(|cell| cell.execution_count()).max().unwrap_or(0);
        // A count of nineteen digits is no reason to show nothing else.
        let widest = look.width.saturating_sub(LEAST_ROOM + 2);
        Self { look, language, gutter: (longest.to_string().len() + 3).min(widest), notebook }
    }

    /// Whether the cell holds an image that a terminal could draw.
    pub(crate) fn has_image(notebook: &Notebook, index: usize) -> bool {
        notebook.cell(index).outputs().iter().any(|output| !output.images().is_empty())
    }

    pub(crate) fn cell(&self, index: usize) -> String {
        let cell = self.notebook.cell(index);
        let mut lines = match cell.kind() {
            CellKind::Markdown => self.markdown(&cell.source(), self.look.width),
            CellKind::Raw => self.raw(&cell),
            CellKind::Code => self.code(&cell),
        };
        lines.push(String::new());
        lines.join("\n")
    }

    fn raw(&self, cell: &NotebookCell<'_>) -> Vec<String> {
        let source = cell.source();
        let text = visible(&source);
        let lines = text.lines().flat_map(|line| wrapped_line(line, self.look.width));
        let lines = lines.map(|line| self.look.pen.paint(TextStyle::DIM, &line).into_owned());
        let note = unknown_type_note(cell).map(|note| self.note(&format!("[{note}]"))).unwrap_or_default();
        note.into_iter().chain(lines).collect()
    }

    /// Columns for code and outputs.
    fn room(&self) -> usize {
        self.look.width.saturating_sub(self.gutter + 2).max(1)
    }

    fn markdown(&self, text: &str, room: usize) -> Vec<String> {
        let extent =
            if self.look.limits == OutputLimits::NONE { TableExtent::Whole } else { TableExtent::Shortened };
        markdown::lines(text, room, self.look.pen, extent)
    }

    fn code(&self, cell: &NotebookCell<'_>) -> Vec<String> {
        let pen = self.look.pen;
        let source = cell.source();
        let source = visible(&source);
        let code =
            code::coloured(&source, &self.language, pen).unwrap_or_else(|| source.clone().into_owned());
        let count = cell.execution_count().map_or(" ".to_owned(), |count| count.to_string());
        let gutter = self.gutter - 1;
        let label = format!("{:>gutter$} ", format!("[{count}]"));
        // Only an absurd count is longer: its end distinguishes it from others.
        let mut label = label[label.len().saturating_sub(gutter + 1)..].to_owned();
        let mut lines = Vec::new();
        for line in code.split('\n') {
            for (part, text) in wrapped_line(line, self.room()).iter().enumerate() {
                // A line that goes on has another bar.
                let bar = pen.paint(TextStyle::DIM, if part == 0 { "│" } else { "┊" });
                let space = if text.is_empty() { "" } else { " " };
                lines.push(format!("{}{bar}{space}{text}", pen.paint(TextStyle::GREEN, &label)));
                label = " ".repeat(gutter + 1);
            }
        }
        let indent = " ".repeat(self.gutter + 2);
        for (number, output) in cell.outputs().iter().enumerate() {
            for line in self.output(cell, number, output) {
                lines.push(if line.is_empty() { line } else { format!("{indent}{line}") });
            }
        }
        lines
    }

    fn output(&self, cell: &NotebookCell<'_>, number: usize, output: &NotebookOutput<'_>) -> Vec<String> {
        let images = FoundImage::all_of(output);
        let style = match output.kind() {
            OutputKind::Stream(name) if name == "stderr" => TextStyle::YELLOW,
            OutputKind::Error => TextStyle::RED,
            OutputKind::Stream(_) | OutputKind::Result | OutputKind::Display | OutputKind::Other(_) => {
                TextStyle::PLAIN
            }
        };
        let mut lines = match (OutputContent::table(output), self.tree(output)) {
            (Some(table), _) => self.shortened(self.markdown(&table, self.room())),
            (None, Some(tree)) => tree,
            (None, None) => match ChosenText::of(self.notebook, output, &images) {
                ChosenText { text, .. } if text.is_empty() => Vec::new(),
                ChosenText { text, is_markdown: true } => self.shortened(self.markdown(&text, self.room())),
                ChosenText { text, .. } if output.kind() == OutputKind::Error => {
                    self.shortened(traceback::lines(&text, &self.language, self.room(), self.look.pen))
                }
                ChosenText { text, is_markdown: false } => self.text(&text, style),
            },
        };
        let is_shown = |found: &FoundImage| found.info.is_ok();
        let chosen = images.iter().position(is_shown);
        for (image, found) in images.iter().enumerate() {
            // The other usable ones are the same picture in other formats.
            if Some(image) == chosen || !is_shown(found) {
                let address =
                    ImageAddress::Output { cell: CellRef::Index(cell.index()), output: number, image };
                lines.extend(self.image(&address, found));
            }
        }
        lines
    }

    /// A JSON value as a tree, in colours; without them it is shown as the JSON it is, which programs can read.
    fn tree(&self, output: &NotebookOutput<'_>) -> Option<Vec<String>> {
        let bundle = output.bundle().filter(|_| !self.look.pen.is_plain())?;
        let Display { text: None, json: Some(json), .. } = Display::beside_image(&bundle, false) else {
            return None;
        };
        let is_full = self.look.limits == OutputLimits::NONE;
        let extent = if is_full { TreeExtent::EXPANDED } else { TreeExtent::COLLAPSED };
        Some(tree::lines(json.text(), extent, self.room(), self.look.pen))
    }

    /// A drawing, or a note in its place.
    fn image(&self, address: &ImageAddress, found: &FoundImage) -> Vec<String> {
        let drawn = self.look.images.filter(|_| found.info.is_ok()).map(|(by, terminal)| {
            let image = load_image(self.notebook, address).map_err(|error| error.to_string())?;
            picture::drawn(&image, by, terminal, self.room()).map_err(|reason| reason.to_string())
        });
        let why = match drawn {
            Some(Ok(drawing)) => return vec![drawing],
            Some(Err(reason)) => reason,
            None => found.describe(),
        };
        let note = format!("[{why}; `cellwright read --image {address} --to FILE` saves it]");
        self.note(&note)
    }

    /// A remark of ours.
    fn note(&self, text: &str) -> Vec<String> {
        let lines = wrapped(&vec![(TextStyle::DIM, visible_line(text))], self.room());
        lines.iter().map(|line| painted(line, self.look.pen)).collect()
    }

    /// A text as a terminal would show it, within the limits. Lines without colours of their own get `style`.
    fn text(&self, text: &str, style: TextStyle) -> Vec<String> {
        let mut sink = OutputSink::new(self.look.limits, self.look.pen.kept_colours());
        sink.write(Stream::Stdout, text.as_bytes());
        let CapturedText { text: mut shown, truncation } = sink.finish();
        if let Some(truncation) = truncation {
            // The notebook has it all: the sink's notice says where a run's output was kept.
            let (lines, total) = (truncation.omitted.lines, truncation.total.lines);
            let notice = not_shown(lines, total);
            shown = shown.replace(&truncation.to_string(), &notice);
        }
        let shown = visible_coloured(&shown);
        let lines = shown.trim_end_matches('\n').split('\n');
        lines
            .flat_map(|line| self.painted(line, if line.contains('\x1b') { TextStyle::PLAIN } else { style }))
            .collect()
    }

    /// One line in one style, in as many as it needs.
    fn painted(&self, line: &str, style: TextStyle) -> Vec<String> {
        let paint = |part: String| match self.look.pen.paint(style, &part) {
            Cow::Borrowed(_) => part,
            Cow::Owned(painted) => painted,
        };
        wrapped_line(line, self.room()).into_iter().map(paint).collect()
    }

    /// Lines within the limits: the first and the last ones.
    fn shortened(&self, lines: Vec<String>) -> Vec<String> {
        let OutputLimits { head, tail, .. } = self.look.limits;
        let total = lines.len();
        let fitting = |room: usize, lines: &mut dyn Iterator<Item = &String>| {
            let mut left = room;
            lines
                .take_while(|line| left.checked_sub(line.len() + 1).inspect(|rest| left = *rest).is_some())
                .count()
        };
        if lines.iter().map(|line| line.len() + 1).sum::<usize>() <= head.saturating_add(tail) {
            return lines;
        }
        let first = fitting(head, &mut lines.iter());
        let last = total - fitting(tail, &mut lines[first..].iter().rev());
        let notice = self.note(&not_shown((last - first) as u64, total as u64));
        let (start, end) = (lines[..first].to_vec(), lines[last..].to_vec());
        [start, notice, end].concat()
    }
}

fn not_shown(lines: u64, total: u64) -> String {
    format!("[… {lines} of {total} lines are not shown here, or cut; --full shows them]")
}

#[cfg(test)]
mod tests;
