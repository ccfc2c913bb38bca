//! `cellwright read`

mod artifact;

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context as _;
use cellwright_notebook::file::{self, Need};
use cellwright_notebook::select::{Excerpt, excerpts};
use cellwright_notebook::{CellRef, Notebook, OutputView, Snapshot};
use clap::ValueEnum;
use serde::Serialize;

use super::{explain, split_target};
use crate::exit::WrongArguments;
use crate::print::{self, Format};
use crate::reads::{self, Cells, Part, Reads};

/// Show a notebook as cell-marked text
///
/// Each cell starts with a line `# %% [code] cell:N`; what follows is its source. The text can be changed and
/// given to `cellwright write`, which changes only what you changed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Selectors, after the path:
  nb.ipynb:10-40        lines 10 to 40 of the text   nb.ipynb:5-16,90-97   several ranges
  nb.ipynb:50+20        20 lines from line 50        nb.ipynb:-30          the last 30 lines
  nb.ipynb#3            cell 3                       nb.ipynb#3-7          cells 3 to 7
  nb.ipynb#id:abcd1234  the cell with that id        nb.ipynb:raw          the file's own JSON (#3:raw: of a cell)

Examples:
  cellwright read analysis.ipynb
  cellwright read 'analysis.ipynb#3-7' --outputs text
  cellwright read analysis.ipynb --image 3.0 --to plot.png
  cellwright read artifact://k3v9q2xa:1000-1200   of an output that was too long for its place")]
pub(crate) struct Read {
    /// The notebook, with or without a selector; or `artifact://ID`
    #[arg(value_name = "PATH[SELECTOR]")]
    target: OsString,
    /// How much of the cells' outputs to show; a text with outputs cannot be written back
    #[arg(long, value_enum, default_value_t = Shown::None)]
    outputs: Shown,
    /// With `--outputs text`: how many bytes of outputs to show
    #[arg(long, value_name = "BYTES", default_value_t = 50 * 1024)]
    budget: usize,
    /// Number the lines
    #[arg(short = 'n', long, conflicts_with = "json")]
    numbers: bool,
    /// Write one image instead: CELL.OUTPUT, or CELL.OUTPUT.N when an output has several
    #[arg(long, value_name = "PLACE", requires = "to")]
    image: Option<ImagePlace>,
    /// Where the image goes (`-`: stdout)
    #[arg(long, value_name = "FILE", requires = "image")]
    to: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shown {
    /// Sources only
    None,
    /// One line for each output
    Summary,
    /// Their text; images as a note
    Text,
}

#[derive(Debug, Clone)]
struct ImagePlace {
    cell: CellRef,
    output: usize,
    image: usize,
}

impl FromStr for ImagePlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<_> = text.split('.').collect();
        let number = |text: &str| text.parse().map_err(|_| format!("`{text}` is not a number"));
        match parts[..] {
            [cell, output] => Ok(Self { cell: cell.parse()?, output: number(output)?, image: 0 }),
            [cell, output, image] => {
                Ok(Self { cell: cell.parse()?, output: number(output)?, image: number(image)? })
            }
            _ => Err("an image is named CELL.OUTPUT, as in 3.0".to_owned()),
        }
    }
}

#[derive(Serialize)]
struct ReadJson<'a> {
    path: &'a str,
    cells: usize,
    fingerprint: String,
    excerpts: Vec<ExcerptJson<'a>>,
}

#[derive(Serialize)]
struct ExcerptJson<'a> {
    start: usize,
    end: usize,
    text: &'a str,
}

impl Read {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if let Some(address) = self.target.to_str().and_then(artifact::address) {
            let is_plain = !self.format.json && !self.numbers && self.image.is_none();
            anyhow::ensure!(is_plain, "an artifact is shown as it is");
            return artifact::show(address);
        }
        anyhow::ensure!(!self.target.is_empty(), WrongArguments("the path of the notebook is empty"));
        let (path, selector) = split_target(&self.target);
        let named = || path.display().to_string();
        let outputs = self.output_view();
        let need = match outputs {
            OutputView::None if !selector.raw && self.image.is_none() => Need::Sources,
            _ => Need::All,
        };
        let (notebook, snapshot) =
            file::read_for(path, need).map_err(|error| explain(error, &self.target))?;
        if let (Some(place), Some(to)) = (&self.image, &self.to) {
            return write_image(&notebook, place, to).with_context(named);
        }
        let text: Cow<'_, str> = match (selector.raw, &selector.cells) {
            (true, None) => notebook.text().into(),
            (true, Some(cells)) => {
                let chosen = cells.resolve(&notebook).with_context(named)?;
                chosen.map(|index| notebook.cell(index).raw().to_owned() + "\n").collect::<String>().into()
            }
            (false, cells) => notebook.view(cells.as_ref(), outputs).with_context(named)?.into(),
        };
        let excerpts = excerpts(&text, &selector.lines).with_context(named)?;
        let cells = selector.cells.as_ref().map(|cells| cells.resolve(&notebook)).transpose()?;
        let shown = match cells {
            _ if !selector.lines.is_empty() => reads::Shown::Lines,
            Some(cells) if cells != (0..notebook.len()) => reads::Shown::Cells(cells),
            Some(_) | None => reads::Shown::All,
        };
        if let Err(error) = remember(path, &notebook, &snapshot, &shown)
            && matches!(shown, reads::Shown::All)
            && !self.format.json
        {
            print::note(&format!(
                "what was read could not be noted ({error}): `write` will ask for --expect or --force"
            ));
        }
        if self.format.json {
            let excerpts =
                excerpts.iter().map(|e| ExcerptJson { start: e.start, end: e.end, text: e.text }).collect();
            let fingerprint = snapshot.fingerprint().to_string();
            let path = &*path.to_string_lossy();
            return print::json(&ReadJson { path, cells: notebook.len(), fingerprint, excerpts });
        }
        match (&excerpts[..], self.numbers) {
            ([whole], false) => print::plain(whole.text),
            _ => print::plain(&self.framed(&excerpts)),
        }
    }

    fn output_view(&self) -> OutputView {
        match self.outputs {
            Shown::None => OutputView::None,
            Shown::Summary => OutputView::Summary,
            Shown::Text => OutputView::Text { budget: self.budget },
        }
    }

    /// Several excerpts, or numbered lines: text to look at, not to write back.
    fn framed(&self, excerpts: &[Excerpt<'_>]) -> String {
        let mut out = String::new();
        for (at, excerpt) in excerpts.iter().enumerate() {
            if at > 0 {
                writeln!(out, "⋯ line {}", excerpt.start).expect("a String takes everything");
            }
            for (number, line) in (excerpt.start..).zip(excerpt.text.split_inclusive('\n')) {
                if self.numbers {
                    write!(out, "{number:>5}  ").expect("a String takes everything");
                }
                out.push_str(line);
            }
            if !out.is_empty() && !out.ends_with('\n') {
                out.push('\n');
            }
        }
        out
    }
}

/// Lets later commands know which notebook a text, or a place in it, speaks of.
fn remember(
    path: &Path,
    notebook: &Notebook,
    snapshot: &Snapshot,
    shown: &reads::Shown,
) -> std::io::Result<()> {
    let reads = Reads::here()?;
    reads.remember_places(path, Cells::of(notebook), shown)?;
    let part = if matches!(shown, reads::Shown::All) { Part::Whole } else { Part::Some };
    reads.remember(path, snapshot, part)
}

fn write_image(notebook: &Notebook, place: &ImagePlace, to: &Path) -> anyhow::Result<()> {
    let cell = notebook.locate(&place.cell)?;
    let outputs = notebook.cell(cell).outputs();
    let images = outputs.get(place.output).map(cellwright_notebook::Output::images).unwrap_or_default();
    let image = images.get(place.image).with_context(|| {
        format!(
            "cell {cell} has no image {}.{}; `--outputs summary` shows which there are",
            place.output, place.image
        )
    })?;
    let bytes = image.bytes()?;
    if to == Path::new("-") {
        return Ok(std::io::stdout().lock().write_all(&bytes)?);
    }
    std::fs::write(to, bytes).with_context(|| format!("could not write {}", to.display()))
}
