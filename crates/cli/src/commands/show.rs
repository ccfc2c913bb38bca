//! `cellwright show`

use std::ffi::OsString;

use anyhow::{Context as _, bail};
use cellwright_notebook::file;
use cellwright_notebook::select::NotebookPart;
use cellwright_output::OutputLimits;

use super::split_target;
use crate::draw::look::{LookArguments, variable};
use crate::draw::terminal::TerminalSize;
use crate::print;
use crate::show::{NotebookPage, ShowStyle};

/// The width without a terminal and `--width`.
const USUAL_WIDTH: usize = 80;

/// Show a notebook in the terminal: rendered prose, coloured code, outputs and images
///
/// Escape sequences in the notebook do not reach the terminal, except for colours. To get text that you can edit and
/// write back, use `cellwright read`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cellwright show analysis.ipynb
  cellwright show 'analysis.ipynb#3-7'
  cellwright show --color always analysis.ipynb | less -R

Colours are left out in a pipe, with NO_COLOR set, and with --color never.")]
pub(crate) struct ShowCommand {
    /// The notebook, and optionally some of its cells: `#3`, `#2,5-7`, `#id:ID`, `#"HEADING"`
    #[arg(value_name = "PATH[#CELLS]")]
    target: OsString,
    /// The width of a line [default: the terminal's]
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(20..))]
    width: Option<u16>,
    #[command(flatten)]
    look: LookArguments,
    /// Do not shorten long outputs and tables
    #[arg(long)]
    full: bool,
}

impl ShowCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let (path, selector) = split_target(&self.target)?;
        let is_cells = matches!(selector.part, NotebookPart::Whole | NotebookPart::Cells(_));
        if selector.raw || !selector.lines.is_empty() || !is_cells {
            bail!(
                "show takes cells, as in `nb.ipynb#3-7`; `cellwright read` shows lines, JSON and single outputs"
            );
        }
        let notebook = file::read(&path)?;
        let chosen = match selector.cells() {
            Some(cells) => cells.resolve(&notebook).with_context(|| path.display().to_string())?,
            None => (0..notebook.len()).collect(),
        };
        if notebook.is_empty() {
            print::note("the notebook has no cells");
        }
        let has_images = chosen.iter().any(|index| NotebookPage::has_image(&notebook, *index));
        let page = NotebookPage::of(&notebook, self.look(has_images));
        for (at, index) in chosen.into_iter().enumerate() {
            let gap = if at > 0 { "\n" } else { "" };
            // Cell by cell: a reader at the other end of a pipe may have seen enough.
            print::raw(&format!("{gap}{}", page.cell(index)))?;
        }
        Ok(())
    }

    fn look(&self, has_images: bool) -> ShowStyle {
        let terminal = TerminalSize::on_stdout();
        let pen = self.look.pen();
        // The terminal is asked only when there is something to draw.
        let protocol = has_images.then(|| self.look.images(pen)).flatten();
        let columns = || variable("COLUMNS")?.parse().ok();
        let width =
            self.width.map(usize::from).or(terminal.map(|terminal| terminal.columns)).or_else(columns);
        ShowStyle {
            pen,
            width: width.unwrap_or(USUAL_WIDTH),
            images: protocol.map(|protocol| (protocol, terminal.unwrap_or_default())),
            limits: if self.full { OutputLimits::NONE } else { OutputLimits::default() },
        }
    }
}
