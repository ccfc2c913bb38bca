//! A notebook as a person reads it in a terminal: prose rendered, code in colours, outputs as they looked.

mod image;
mod markdown;
mod python;
mod style;
mod terminal;

use cellwright_notebook::{Cell, CellKind, Notebook, Output, OutputKind};
use cellwright_output::{Captured, Colours, Display, Limits, Sink, Stream, json_text};
use serde_json::{Map, Value};

pub(crate) use self::style::Pen;
pub(crate) use self::terminal::{Protocol, Terminal, protocol_named, shows_sixel};

use self::style::{Style, harmless};

/// Prose in longer lines is hard to read.
const WIDEST_PROSE: usize = 100;

/// How a notebook is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) pen: Pen,
    /// Columns of a line.
    pub(crate) width: usize,
    /// How images are drawn, and where; otherwise a note stands for each.
    pub(crate) images: Option<(Protocol, Terminal)>,
    /// How much of an output is shown.
    pub(crate) limits: Limits,
}

/// Shows cells of one notebook, each a text of whole lines.
pub(crate) struct Page<'a> {
    look: Look,
    is_python: bool,
    /// The columns before code and outputs, in which the counts stand.
    gutter: usize,
    notebook: &'a Notebook,
}

impl<'a> Page<'a> {
    pub(crate) fn of(notebook: &'a Notebook, look: Look) -> Self {
        let is_python = notebook.language().is_none_or(|language| language.to_lowercase().contains("python"));
        let longest = notebook.cells().filter_map(|cell| cell.execution_count()).max().unwrap_or(0);
        Self { look, is_python, gutter: longest.to_string().len() + 3, notebook }
    }

    /// Whether the cell holds an image that a terminal could draw.
    pub(crate) fn has_image(notebook: &Notebook, index: usize) -> bool {
        notebook.cell(index).outputs().iter().any(|output| !output.images().is_empty())
    }

    pub(crate) fn cell(&self, index: usize) -> String {
        let cell = self.notebook.cell(index);
        let mut lines = match cell.kind() {
            CellKind::Markdown => {
                markdown::lines(&cell.source(), self.look.width.min(WIDEST_PROSE), self.look.pen)
            }
            CellKind::Raw => self.raw(&cell),
            CellKind::Code => self.code(&cell),
        };
        lines.push(String::new());
        lines.join("\n")
    }

    fn raw(&self, cell: &Cell<'_>) -> Vec<String> {
        let source = cell.source();
        let text = harmless(&source);
        text.lines().map(|line| self.look.pen.paint(Style::DIM, line).into_owned()).collect()
    }

    fn code(&self, cell: &Cell<'_>) -> Vec<String> {
        let pen = self.look.pen;
        let source = cell.source();
        let source = harmless(&source);
        let code: String = if self.is_python {
            python::pieces(&source).iter().map(|(style, text)| pen.paint(*style, text)).collect()
        } else {
            source.clone().into_owned()
        };
        let count = cell.execution_count().map_or(" ".to_owned(), |count| count.to_string());
        let label = format!("[{count}]");
        let mut lines: Vec<String> = code
            .split('\n')
            .enumerate()
            .map(|(number, line)| {
                let gutter = self.gutter - 1;
                let gutter = if number == 0 { format!("{label:>gutter$} ") } else { " ".repeat(gutter + 1) };
                let space = if line.is_empty() { "" } else { " " };
                format!("{}{}{space}{line}", pen.paint(Style::GREEN, &gutter), pen.paint(Style::DIM, "│"))
            })
            .collect();
        for (number, output) in cell.outputs().iter().enumerate() {
            let indent = " ".repeat(self.gutter + 2);
            for line in self.output(cell, number, output) {
                lines.push(if line.is_empty() { line } else { format!("{indent}{line}") });
            }
        }
        lines
    }

    fn output(&self, cell: &Cell<'_>, number: usize, output: &Output<'_>) -> Vec<String> {
        // NaN, which Python writes, is no JSON: such an output is shown as far as it is text.
        let json: Option<Map<String, Value>> = serde_json::from_str(output.raw()).ok();
        let field = |key: &str| json.as_ref().and_then(|json| json.get(key));
        match output.kind() {
            OutputKind::Stream(name) => {
                let style = if name == "stderr" { Style::YELLOW } else { Style::PLAIN };
                self.text(&joined(field("text")), style)
            }
            OutputKind::Error => {
                let traceback = field("traceback").and_then(Value::as_array);
                let traceback: Vec<_> = traceback.into_iter().flatten().filter_map(Value::as_str).collect();
                if traceback.is_empty() {
                    return self.text(&output.error_line(), Style::RED);
                }
                self.text(&traceback.join("\n"), Style::RED)
            }
            OutputKind::Result | OutputKind::Display | OutputKind::Other(_) => {
                match field("data").and_then(Value::as_object) {
                    Some(data) => self.display(cell, number, data),
                    None => {
                        self.text(&output.text().unwrap_or_else(|| output.describe().into()), Style::PLAIN)
                    }
                }
            }
        }
    }

    fn display(&self, cell: &Cell<'_>, number: usize, data: &Map<String, Value>) -> Vec<String> {
        let display = Display::from_bundle(data);
        let mut lines = Vec::new();
        match (&display.text, &display.json) {
            (Some(text), _) if display.is_markdown => {
                let room = self.look.width.min(WIDEST_PROSE).saturating_sub(self.gutter + 2);
                lines.extend(markdown::lines(text, room, self.look.pen));
            }
            (Some(text), _) => lines.extend(self.text(text, Style::PLAIN)),
            (None, Some(json)) => lines.extend(self.text(&json_text(json, None).text, Style::PLAIN)),
            (None, None) => {}
        }
        if let Some(image) = &display.image {
            let room = self.look.width.saturating_sub(self.gutter + 2).max(1);
            let drawn = self.look.images.map(|(by, terminal)| image::drawn(image, by, terminal, room));
            let note = |why: &str| {
                let place = format!("{}.{number}", cell.index());
                let note = format!("[{why}; `cellwright read --image {place} --to FILE` saves it]");
                self.look.pen.paint(Style::DIM, &note).into_owned()
            };
            lines.push(match drawn {
                Some(Ok(drawing)) => drawing,
                Some(Err(reason)) => note(&reason.to_string()),
                None => note(&image.to_string()),
            });
        }
        lines
    }

    /// A text as a terminal would show it, within the limits. Lines without colours of their own get `style`.
    fn text(&self, text: &str, style: Style) -> Vec<String> {
        let colours = match self.look.pen {
            Pen::Colours => Colours::Kept,
            Pen::Plain => Colours::Dropped,
        };
        let mut sink = Sink::new(self.look.limits, colours);
        sink.write(Stream::Stdout, text.as_bytes());
        let Captured { text: mut shown, truncation } = sink.finish();
        if let Some(truncation) = truncation {
            // The notebook has it all: the sink's notice says where a run's output was kept.
            let (lines, total) = (truncation.omitted.lines, truncation.total.lines);
            let notice =
                format!("[… {lines} of {total} lines are not shown here, or cut; --full shows them]");
            shown = shown.replace(&truncation.to_string(), &notice);
        }
        let paint = |line: &str| {
            let style = if line.contains('\x1b') { Style::PLAIN } else { style };
            self.look.pen.paint(style, line).into_owned()
        };
        shown.trim_end_matches('\n').split('\n').map(paint).collect()
    }
}

/// A string, or an array of its pieces.
fn joined(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(pieces)) => pieces.iter().filter_map(Value::as_str).collect(),
        Some(_) | None => String::new(),
    }
}
