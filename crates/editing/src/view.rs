//! A notebook, or part of it, as text to read: which lines show which cell, and the images beside the text.
//!
//! This is the only place that turns notebooks into text for callers. It promises:
//!
//! - the line map is exact: the lines of a cell, cut out and parsed as marked text, are that cell;
//! - nothing is left out silently: a shortened output shows its true size and the address of the rest, and that
//!   address ([`Selector`], `nb.ipynb#7.0`) shows all of it;
//! - what an output looks like as text is decided in one place ([`OutputContent`]).
//!
//! Pages of a fixed size and searches are [`page`](crate::page)'s.

mod address;
mod content;
mod cut;
mod image;
mod widget;

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use cellwright_notebook::file::ReadNeed;
use cellwright_notebook::select::NotebookPart;
use cellwright_notebook::text::{print_cell, print_lines};
use cellwright_notebook::{CellRef, NoSuchCell, Notebook, NotebookCell, NotebookOutput, Selector};
use cellwright_output::fair_share;

use self::address::OutputLines;
pub use self::content::{ChosenText, FoundImage, OutputContent};
use self::image::attachments_there;
pub use self::image::{ImageError, LabelledImage, image_bytes, load_image};

/// What is shown of a notebook.
#[derive(Debug)]
pub struct NotebookView {
    /// Marked text, JSON for a raw view, or the text of one output.
    pub text: String,
    /// What its lines are.
    pub form: ViewForm,
    /// Which lines of the text show which cell, in order. Empty for a view of one output.
    pub cells: Vec<CellLines>,
    /// Images of outputs and attachments that can be shown, in order. None of them is decoded yet.
    pub images: Vec<LabelledImage>,
    /// What the caller should know and the text does not say.
    pub notes: Vec<String>,
    /// Where the text of outputs is, in order.
    outputs: Vec<OutputLines>,
}

/// What the lines of a view are. Line 3 of a cell is another one in each form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewForm {
    /// Marked text.
    Marked,
    /// JSON, or the text of a file that is not a notebook.
    Raw,
}

/// The lines of a view that show a cell, counting from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellLines {
    /// The cell.
    pub index: usize,
    /// From its marker to the last line of its source. A cell was shown whole when all of these were.
    pub lines: RangeInclusive<usize>,
}

/// How much of the outputs a view shows. Text that shows any is refused by `write`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutputView {
    /// Sources only.
    #[default]
    None,
    /// One line for each output.
    Summary,
    /// Their text, with a note for each image. Short ones are whole; long ones share what is left of the budget.
    Text {
        /// Most bytes of outputs in the whole view, notices not counted.
        budget: usize,
    },
    /// The same, on a page with the sources: outputs have what these leave of it, at least a quarter.
    Page {
        /// Most bytes of the page.
        budget: usize,
    },
}

/// What to show.
#[derive(Debug, Clone, Copy)]
pub struct ViewRequest<'a> {
    /// Which part. Its lines are [`page`](crate::page)'s matter.
    pub selector: &'a Selector,
    /// How much of the outputs. An output that the selector names is always shown whole.
    pub outputs: OutputView,
    /// What the caller calls the file, for notices such as `read nb.ipynb#7.0:41-`.
    pub named: &'a str,
}

/// Why a part of a notebook cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// No such cell.
    #[error(transparent)]
    NoSuchCell(#[from] NoSuchCell),
    /// No such output.
    #[error("cell {cell} has no output {output}; {}", outputs_there(*total))]
    NoSuchOutput {
        /// The cell.
        cell: usize,
        /// The output asked for.
        output: usize,
        /// How many the cell has.
        total: usize,
    },
    /// No such image.
    #[error("cell {cell} has no image {address}; a summary of the outputs lists those it has")]
    NoSuchImage {
        /// The cell.
        cell: usize,
        /// Its address.
        address: String,
    },
    /// Nothing is attached by this name.
    #[error("cell {cell} has no attachment `{name}`; {}", attachments_there(there))]
    NoSuchAttachment {
        /// The cell.
        cell: usize,
        /// The name asked for.
        name: String,
        /// The names of what is attached.
        there: Vec<String>,
    },
}

impl ViewRequest<'_> {
    /// How much of the file must be read for it.
    pub fn need(&self) -> ReadNeed {
        let names_output = !matches!(self.selector.part, NotebookPart::Whole | NotebookPart::Cells(_));
        match self.outputs {
            OutputView::None if !self.selector.raw && !names_output => ReadNeed::Sources,
            OutputView::None | OutputView::Summary | OutputView::Text { .. } | OutputView::Page { .. } => {
                ReadNeed::All
            }
        }
    }
}

impl NotebookView {
    /// The text of a file that is not a notebook.
    pub(crate) fn of_broken(text: String, notes: Vec<String>) -> Self {
        let (cells, images, outputs) = (Vec::new(), Vec::new(), Vec::new());
        Self { text, form: ViewForm::Raw, cells, images, notes, outputs }
    }

    /// Shows a part of a notebook, which must have been read with its outputs if [`ViewRequest::need`] says so.
    pub fn of(notebook: &Notebook, request: &ViewRequest<'_>) -> Result<Self, ViewError> {
        let form = if request.selector.raw { ViewForm::Raw } else { ViewForm::Marked };
        let mut view = Self {
            text: String::new(),
            form,
            cells: Vec::new(),
            images: Vec::new(),
            notes: Vec::new(),
            outputs: Vec::new(),
        };
        match &request.selector.part {
            NotebookPart::Output { cell, output } => {
                view.show_output(notebook, cell, *output, request.selector.raw)?;
                return Ok(view);
            }
            NotebookPart::Image(address) => {
                view.show_image(notebook, address.clone())?;
                return Ok(view);
            }
            NotebookPart::Whole if request.selector.raw => view.show_file(notebook),
            NotebookPart::Whole => view.show_cells(notebook, 0..notebook.len(), request),
            NotebookPart::Cells(cells) => view.show_cells(notebook, cells.resolve(notebook)?, request),
        }
        if !request.selector.raw {
            view.note_unknown_types(notebook);
        }
        if notebook.is_empty() {
            view.notes.push("the notebook has no cells".to_owned());
        }
        Ok(view)
    }

    /// Cells of types that nbformat does not know are shown as raw ones.
    fn note_unknown_types(&mut self, notebook: &Notebook) {
        self.notes.extend(self.cells.iter().filter_map(|it| unknown_type_note(&notebook.cell(it.index))));
    }

    /// The file as it is.
    fn show_file(&mut self, notebook: &Notebook) {
        let text = notebook.text();
        let (mut line, mut counted) = (1, 0);
        for index in 0..notebook.len() {
            let at = notebook.position(index);
            line += feeds(&text[counted..at.start]);
            let last = line + feeds(&text[at.clone()]);
            self.cells.push(CellLines { index, lines: line..=last });
            (line, counted) = (last, at.end);
        }
        text.clone_into(&mut self.text);
    }

    fn show_cells(
        &mut self,
        notebook: &Notebook,
        chosen: impl IntoIterator<Item = usize>,
        request: &ViewRequest<'_>,
    ) {
        let chosen = chosen.into_iter().map(|index| notebook.cell(index));
        // The next line of the text.
        let mut line = 1;
        if request.selector.raw {
            for cell in chosen {
                self.end_cell(&cell, &mut line, |text| *text += cell.raw());
            }
            return;
        }
        let print = |text: &mut String, cell: &NotebookCell<'_>| {
            print_cell(text, cell.index(), cell.kind(), &cell.source());
            text.pop(); // the line end comes with the line map
        };
        match request.outputs {
            OutputView::None => {
                chosen.for_each(|cell| self.end_cell(&cell, &mut line, |text| print(text, &cell)));
            }
            OutputView::Summary => {
                for cell in chosen {
                    self.end_cell(&cell, &mut line, |text| print(text, &cell));
                    let start = self.text.len();
                    for (number, output) in cell.outputs().iter().enumerate() {
                        let summary = OutputContent::of(notebook, output).summary(output);
                        push_line(&mut self.text, format_args!("# %% [output {number}] {summary}"));
                    }
                    self.attachments(&cell);
                    line += feeds(&self.text[start..]);
                }
            }
            OutputView::Text { .. } | OutputView::Page { .. } => {
                let cells: Vec<_> = chosen.map(|cell| (contents(notebook, &cell), cell)).collect();
                let lengths: Vec<_> = cells
                    .iter()
                    .flat_map(|(outputs, _)| outputs.iter().map(|(_, content)| content.text.len()))
                    .collect();
                let share = fair_share(&lengths, output_room(request.outputs, &cells));
                for (outputs, cell) in &cells {
                    self.end_cell(cell, &mut line, |text| print(text, cell));
                    for (number, output) in outputs.iter().enumerate() {
                        self.output_text((cell.index(), number), output, share, request.named, &mut line);
                    }
                    let start = self.text.len();
                    self.attachments(cell);
                    line += feeds(&self.text[start..]);
                }
                self.images = images(&cells);
            }
        }
    }

    /// Prints a cell, ends its last line, and notes which lines it has.
    fn end_cell(&mut self, cell: &NotebookCell<'_>, line: &mut usize, print: impl FnOnce(&mut String)) {
        let start = self.text.len();
        print(&mut self.text);
        self.text.push('\n');
        let next = *line + feeds(&self.text[start..]);
        self.cells.push(CellLines { index: cell.index(), lines: *line..=next - 1 });
        *line = next;
    }

    fn output_text(
        &mut self,
        (cell, number): (usize, usize),
        (output, content): &(NotebookOutput<'_>, OutputContent),
        share: usize,
        named: &str,
        line: &mut usize,
    ) {
        let (first, start) = (*line, self.text.len());
        push_line(&mut self.text, format_args!("# %% [output {number}] {}", content.describe(output)));
        for note in content.image_notes(cell, number) {
            push_line(&mut self.text, format_args!("{note}"));
        }
        let text_line = first + feeds(&self.text[start..]);
        let text = &content.text;
        if text.len() <= share {
            print_lines(&mut self.text, text);
            if !text.is_empty() && !text.ends_with('\n') {
                self.text.push('\n');
            }
        } else {
            let cut = cut::cut(text, share, &format!("{named}#{cell}.{number}"));
            print_lines(&mut self.text, &cut);
        }
        *line += feeds(&self.text[start..]);
        self.outputs.push(OutputLines { cell, output: number, first, text: text_line, end: *line });
    }

    /// Names what is attached to a cell, each on a line.
    fn attachments(&mut self, cell: &NotebookCell<'_>) {
        for (name, images) in cell.attachments() {
            let what =
                images.first().map_or_else(|| "no image".to_owned(), |it| FoundImage::of(it).describe());
            let name = content::on_one_line(&name);
            push_line(&mut self.text, format_args!("# %% [attachment {name}] {what}"));
        }
    }

    /// One output alone.
    fn show_output(
        &mut self,
        notebook: &Notebook,
        cell: &CellRef,
        number: usize,
        is_raw: bool,
    ) -> Result<(), ViewError> {
        let index = notebook.locate(cell)?;
        let outputs = notebook.cell(index).outputs();
        let missing = || ViewError::NoSuchOutput { cell: index, output: number, total: outputs.len() };
        let output = outputs.get(number).ok_or_else(missing)?;
        if is_raw {
            self.text = format!("{}\n", output.raw());
            return Ok(());
        }
        let content = OutputContent::of(notebook, output);
        self.images = content.images(index, number).collect();
        if content.text.is_empty() && content.images.is_empty() {
            self.notes.push(format!("output {index}.{number} is empty ({})", content.describe(output)));
        }
        let notes = content.image_notes(index, number);
        self.text = content.text;
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        // Behind the text, whose lines count from 1 wherever they are named.
        for note in notes {
            push_line(&mut self.text, format_args!("{note}"));
        }
        Ok(())
    }
}

/// That a cell has a type that nbformat does not know, if it has.
pub fn unknown_type_note(cell: &NotebookCell<'_>) -> Option<String> {
    let name = content::on_one_line(&cell.unknown_type()?);
    Some(format!("cell {} has the unknown type `{name}` and is shown as raw", cell.index()))
}

fn contents<'a>(notebook: &Notebook, cell: &NotebookCell<'a>) -> Vec<(NotebookOutput<'a>, OutputContent)> {
    let with_content = |output| {
        let content = OutputContent::of(notebook, &output);
        (output, content)
    };
    cell.outputs().into_iter().map(with_content).collect()
}

/// How many bytes the texts of outputs may have.
fn output_room(
    view: OutputView,
    cells: &[(Vec<(NotebookOutput<'_>, OutputContent)>, NotebookCell<'_>)],
) -> usize {
    // Bytes of a marker, and of a notice that an output is cut.
    const MARKER: usize = 40;
    const NOTICE: usize = 200;
    let budget = match view {
        OutputView::None | OutputView::Summary => return 0,
        OutputView::Text { budget } => return budget,
        OutputView::Page { budget } => budget,
    };
    let beside = |(cell, number): (usize, usize), (output, content): &(NotebookOutput<'_>, OutputContent)| {
        let notes = content.image_notes(cell, number).iter().map(|note| note.len() + 1).sum::<usize>();
        // An output that is small beside the page is not cut.
        let notice = if content.text.len() > budget / 64 { NOTICE } else { 0 };
        MARKER + content.describe(output).len() + notes + notice
    };
    let others: usize = cells
        .iter()
        .map(|(outputs, cell)| {
            let outputs = outputs.iter().enumerate().map(|(number, it)| beside((cell.index(), number), it));
            MARKER + cell.source().len() + outputs.sum::<usize>() + MARKER * 2 * cell.attachments().len()
        })
        .sum();
    budget.saturating_sub(others).max(budget / 4)
}

/// One image of each output, and each attachment: those whose format can be shown.
fn images(cells: &[(Vec<(NotebookOutput<'_>, OutputContent)>, NotebookCell<'_>)]) -> Vec<LabelledImage> {
    let mut images = Vec::new();
    for (outputs, cell) in cells {
        for (number, (_, content)) in outputs.iter().enumerate() {
            // The others are the same picture in other formats.
            images.extend(content.images(cell.index(), number).next());
        }
        images.extend(image::attached(cell));
    }
    images
}

fn push_line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a String takes everything");
}

/// How many lines end in a text.
fn feeds(text: &str) -> usize {
    memchr::memchr_iter(b'\n', text.as_bytes()).count()
}

fn outputs_there(total: usize) -> String {
    match total {
        0 => "it has no outputs".to_owned(),
        1 => "it has one output, 0".to_owned(),
        _ => format!("it has outputs 0 to {}", total - 1),
    }
}
