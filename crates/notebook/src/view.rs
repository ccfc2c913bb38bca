//! A notebook, or part of it, as text to read.

use std::fmt::Write as _;

use crate::cell::Cell;
use crate::notebook::{NoSuchCell, Notebook};
use crate::output::Output;
use crate::select::CellSelection;
use crate::text;

/// How much of the outputs a view shows. A text that shows any cannot be written back, and says so when tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutputView {
    /// Sources only.
    #[default]
    None,
    /// One line for each output.
    Summary,
    /// Their text, images as a note, until this many bytes of outputs have been shown.
    Text {
        /// In bytes, over the whole view.
        budget: usize,
    },
}

impl Notebook {
    /// The chosen cells as marked text.
    pub fn view(&self, cells: Option<&CellSelection>, outputs: OutputView) -> Result<String, NoSuchCell> {
        let chosen = cells.map_or(Ok(0..self.len()), |cells| cells.resolve(self))?;
        let mut shown = String::new();
        let mut left = match outputs {
            OutputView::Text { budget } => budget,
            OutputView::None | OutputView::Summary => 0,
        };
        for cell in chosen.map(|index| self.cell(index)) {
            text::print_cell(&mut shown, cell.index(), cell.kind(), &cell.source());
            match outputs {
                OutputView::None => {}
                OutputView::Summary => each_output(&cell, |number, output| {
                    writeln!(shown, "# %% [output {number}] {}", output.summary())
                        .expect("a String takes everything");
                }),
                OutputView::Text { .. } => {
                    each_output(&cell, |number, output| show(&mut shown, &cell, number, output, &mut left));
                }
            }
        }
        Ok(shown)
    }
}

fn each_output(cell: &Cell<'_>, mut show: impl FnMut(usize, &Output<'_>)) {
    for (number, output) in cell.outputs().iter().enumerate() {
        show(number, output);
    }
}

fn show(shown: &mut String, cell: &Cell<'_>, number: usize, output: &Output<'_>, left: &mut usize) {
    let index = cell.index();
    let mut line =
        |text: std::fmt::Arguments<'_>| writeln!(shown, "{text}").expect("a String takes everything");
    line(format_args!("# %% [output {number}] {}", output.describe()));
    for (place, image) in output.images().iter().enumerate() {
        line(format_args!("[image {index}.{number}.{place}: {}]", image.describe()));
    }
    let Some(text) = output.text() else {
        return;
    };
    let fitting = &text[..text.floor_char_boundary(*left)];
    *left -= fitting.len();
    text::print_lines(shown, fitting);
    if !fitting.is_empty() && !fitting.ends_with('\n') {
        shown.push('\n');
    }
    if fitting.len() < text.len() {
        let (hidden, total) = (text.len() - fitting.len(), text.len());
        writeln!(
            shown,
            "[{hidden} of {total} bytes not shown; give a larger budget, or read cell #{index} alone]"
        )
        .expect("a String takes everything");
    }
}
