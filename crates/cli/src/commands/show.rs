//! `cellwright show`

use std::ffi::OsString;

use anyhow::{Context as _, bail};
use cellwright_notebook::file;
use cellwright_notebook::select::NotebookPart;
use cellwright_output::OutputLimits;
use clap::ValueEnum;

use super::split_target;
use crate::print;
use crate::show::{
    ImageProtocol, NotebookPage, ShowStyle, TerminalSize, TextPen, protocol_named, shows_sixel,
};

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
    /// Whether to use colours
    #[arg(long, value_enum, default_value_t = ColorChoice::Auto, value_name = "WHEN")]
    color: ColorChoice,
    /// How to draw images: by what the terminal supports, by one protocol, or not at all
    #[arg(long, value_enum, default_value_t = ImagesArgument::Auto, value_name = "HOW")]
    images: ImagesArgument,
    /// Do not shorten long outputs and tables
    #[arg(long)]
    full: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ColorChoice {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ImagesArgument {
    Auto,
    Kitty,
    Iterm,
    Sixel,
    None,
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
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let terminal = TerminalSize::on_stdout();
        let is_dumb = variable("TERM").as_deref() == Some("dumb");
        let pen = match self.color {
            ColorChoice::Always => TextPen::Colours,
            ColorChoice::Auto if terminal.is_some() && !is_dumb && variable("NO_COLOR").is_none() => {
                TextPen::Colours
            }
            ColorChoice::Auto | ColorChoice::Never => TextPen::Plain,
        };
        let protocol = match self.images {
            ImagesArgument::Kitty => Some(ImageProtocol::Kitty),
            ImagesArgument::Iterm => Some(ImageProtocol::Iterm),
            ImagesArgument::Sixel => Some(ImageProtocol::Sixel),
            ImagesArgument::None => None,
            // The terminal is asked only when there is something to draw.
            ImagesArgument::Auto if !has_images || is_dumb || terminal.is_none() => None,
            ImagesArgument::Auto => {
                protocol_named(variable).or_else(|| shows_sixel().then_some(ImageProtocol::Sixel))
            }
        };
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
