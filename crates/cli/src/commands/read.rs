//! `cellwright read`

mod artifact;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use cellwright_editing::page::{self, PagePart};
use cellwright_editing::view::{OutputView, image_bytes};
use cellwright_editing::{FileName, ReadRequest, ShownLines, TextRead};
use cellwright_notebook::file::ReadNeed;
use cellwright_notebook::select::ImageAddress;
use cellwright_notebook::select::NotebookPart;
use cellwright_notebook::{Fingerprint, Notebook};
use clap::ValueEnum;
use serde::Serialize;

use super::{CallerArguments, is_text, split_target};
use crate::exit::WrongArguments;
use crate::print::{self, OutputFormat};

/// Show a notebook as cell-marked text, or a text file
///
/// Each cell starts with a line `# %% [code] cell:N`, followed by its source. You can edit this text and pass it to
/// `cellwright write`, which changes only what you changed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Selectors, after the path:
  nb.ipynb:10-40        lines 10 to 40 of the text   nb.ipynb:5-16,90-97   several ranges
  nb.ipynb:50+20        20 lines from line 50        nb.ipynb:-30          the last 30 lines
  nb.ipynb#3            cell 3                       nb.ipynb#2,5-7        cells 2 and 5 to 7
  nb.ipynb#5-           cell 5 to the end            nb.ipynb#id:abcd1234  the cell with that id
  nb.ipynb#\"Results\"    the section under a heading  nb.ipynb#7.0          output 0 of cell 7, whole
  nb.ipynb:raw          the file's own JSON          nb.ipynb#3:raw        the JSON of a cell
  nb.ipynb#7.0:1@4001   line 1 from its byte 4001 on, for lines longer than a page

Examples:
  cellwright read analysis.ipynb
  cellwright read 'analysis.ipynb#3-7' --outputs text
  cellwright read analysis.ipynb --image 3.0 --to plot.png
  cellwright read artifact://k3v9q2xa:1000-1200   lines of an output that was too long for a reply")]
pub(crate) struct ReadCommand {
    /// The file, and optionally a selector; or `artifact://ID`
    #[arg(value_name = "PATH[SELECTOR]")]
    target: OsString,
    /// How much of the outputs to show; text with outputs cannot be written back
    #[arg(long, value_enum, default_value_t = OutputsShown::None)]
    outputs: OutputsShown,
    /// With `--outputs text`: how many bytes of output to show
    #[arg(long, value_name = "BYTES", default_value_t = 50 * 1024)]
    budget: usize,
    /// Show only the lines that match this regular expression, with their numbers
    #[arg(long, value_name = "PATTERN", conflicts_with_all = ["json", "numbers", "image"])]
    search: Option<String>,
    /// Number the lines
    #[arg(short = 'n', long, conflicts_with = "json")]
    numbers: bool,
    /// Save one image instead: CELL.OUTPUT, CELL.OUTPUT.N if the output has several, or CELL:NAME for an attachment
    #[arg(long, value_name = "PLACE", requires = "to")]
    image: Option<ImageAddress>,
    /// The file to save the image to (`-`: stdout)
    #[arg(long, value_name = "FILE", requires = "image")]
    to: Option<PathBuf>,
    #[command(flatten)]
    caller: CallerArguments,
    #[command(flatten)]
    format: OutputFormat,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum OutputsShown {
    /// Sources only
    None,
    /// One line for each output
    Summary,
    /// Their text, and a note for each image
    Text,
}

#[derive(Serialize)]
struct ReadJson<'a> {
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cells: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<usize>,
    fingerprint: String,
    excerpts: Vec<ExcerptJson<'a>>,
}

#[derive(Serialize)]
struct ExcerptJson<'a> {
    start: usize,
    end: usize,
    text: &'a str,
}

/// What is said of a file beside its lines.
struct FileFacts {
    /// A notebook's.
    cells: Option<usize>,
    /// A text file's.
    lines: Option<usize>,
    fingerprint: Fingerprint,
}

impl ReadCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if let Some(address) = self.target.to_str().and_then(artifact::address) {
            let is_plain = !self.format.json && !self.numbers && self.image.is_none();
            anyhow::ensure!(is_plain, "an artifact is shown as it is");
            return artifact::show(address);
        }
        anyhow::ensure!(!self.target.is_empty(), WrongArguments("the path of the notebook is empty"));
        let (path, selector) = split_target(&self.target)?;
        let file = FileName::of(&path);
        if let (Some(place), Some(to)) = (&self.image, &self.to) {
            let (notebook, _) = self.caller.with_editor(|editor| editor.open(&file, ReadNeed::All))?;
            return write_image(&notebook, place, to).with_context(|| file.named.clone());
        }
        let search = self.search.as_deref().map(page::pattern).transpose()?;
        // A file that is missing, or is no file, is reported as a notebook that cannot be read.
        let holds_text = path.is_file() && is_text(&path);
        if holds_text && (selector.part != NotebookPart::Whole || !matches!(self.outputs, OutputsShown::None))
        {
            anyhow::bail!("{} is not a notebook: it has lines, but no cells and no outputs", file.named);
        }
        let request = ReadRequest {
            selector: &selector,
            outputs: self.output_view(),
            search: search.as_ref(),
            budget: usize::MAX,
        };
        if holds_text {
            let TextRead { content, fingerprint, shown, remembered } =
                self.caller.with_editor(|editor| editor.read_text(&file, &request))?;
            self.note_unremembered(&remembered);
            let lines = content.lines().count();
            return self.show(&file, &shown, &FileFacts { cells: None, lines: Some(lines), fingerprint });
        }
        let read = self.caller.with_editor(|editor| editor.read(&file, &request))?;
        self.note_unremembered(&read.remembered);
        for note in &read.view.notes {
            print::note(note);
        }
        let cells = read.notebook.as_ref().map(Notebook::len);
        self.show(&file, &read.shown, &FileFacts { cells, lines: None, fingerprint: read.fingerprint })
    }

    fn note_unremembered(&self, remembered: &std::io::Result<()>) {
        if let Err(error) = remembered
            && !self.format.json
        {
            print::note(&format!(
                "it could not be remembered what you read ({error}): `write` will ask for --expect or --force"
            ));
        }
    }

    fn show(&self, file: &FileName, shown: &ShownLines, facts: &FileFacts) -> anyhow::Result<()> {
        let page = match shown {
            ShownLines::Found(found) => {
                for note in &found.notes {
                    print::note(note.trim_matches(['[', ']']));
                }
                return print::plain(&format!("{}\n", found.text().trim_end_matches('\n')));
            }
            ShownLines::Page(page) => page,
        };
        if self.format.json {
            let excerpts = page.parts.iter().map(|part| ExcerptJson {
                start: part.start,
                end: part.end,
                text: &part.text,
            });
            return print::json(&ReadJson {
                path: &file.named,
                cells: facts.cells,
                lines: facts.lines,
                fingerprint: facts.fingerprint.to_string(),
                excerpts: excerpts.collect(),
            });
        }
        match (&page.parts[..], self.numbers) {
            ([whole], false) => print::plain(&whole.text),
            (parts, _) => print::plain(&self.framed(parts)),
        }
    }

    fn output_view(&self) -> OutputView {
        match self.outputs {
            OutputsShown::None => OutputView::None,
            OutputsShown::Summary => OutputView::Summary,
            OutputsShown::Text => OutputView::Text { budget: self.budget },
        }
    }

    /// Several excerpts, or numbered lines: text to look at, not to write back.
    fn framed(&self, excerpts: &[PagePart]) -> String {
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

fn write_image(notebook: &Notebook, image: &ImageAddress, to: &Path) -> anyhow::Result<()> {
    let bytes = image_bytes(notebook, image)?;
    if to == Path::new("-") {
        return Ok(std::io::stdout().lock().write_all(&bytes)?);
    }
    std::fs::write(to, bytes).with_context(|| format!("could not write {}", to.display()))
}
