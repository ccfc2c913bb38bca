//! `cellwright export`

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use cellwright_acp::plain::{self, PlainNotebook};
use cellwright_notebook::file;
use cellwright_output::Counted;
use clap::ValueEnum;
use serde::Serialize as _;

use crate::export::{MarkdownText, NotebookPageHtml, PictureStore, python_script};
use crate::print;

/// Export notebooks as HTML, Markdown or Python
///
/// A page of HTML is one file that needs nothing else: pictures are in it, nothing of the notebook runs in it, and it loads
/// nothing. Cells with the tags `remove-cell`, `remove-input` and `remove-output` are left out, `hide-input` and
/// `hide-output` fold. To run a notebook first, use `cellwright run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cellwright export analysis.ipynb
  cellwright export analysis.ipynb --no-code -o report.html
  cellwright export analysis.ipynb --to md
  cellwright export analysis.ipynb --to py -o -
  cellwright export prompts.ipynb --plain")]
pub(crate) struct ExportCommand {
    /// The notebooks
    #[arg(required = true, value_name = "NOTEBOOK")]
    notebooks: Vec<PathBuf>,
    /// What to make of them [default: by the name of the output, else html]
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Option<ExportFormat>,
    /// Make a notebook that runs without an agent: prompts and answers become text, and the code that the agent ran
    /// becomes code cells
    #[arg(long, conflicts_with_all = ["to", "no_code"])]
    plain: bool,
    /// Where to write it; `-` is stdout [default: beside the notebook]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Leave the code out
    #[arg(long)]
    no_code: bool,
    /// Replace a file that is there already
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    /// A page that needs nothing else
    Html,
    /// Markdown, with pictures in a folder beside it
    Md,
    /// A Python script with cells, as Jupytext reads it
    Py,
}

impl ExportFormat {
    fn extension(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Md => "md",
            Self::Py => "py",
        }
    }

    fn of_name(path: &Path) -> Option<Self> {
        let extension = path.extension()?;
        Self::value_variants().iter().copied().find(|format| extension == format.extension())
    }
}

impl ExportCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        ensure!(
            self.output.is_none() || self.notebooks.len() == 1,
            "--output takes one notebook; {} were given",
            self.notebooks.len()
        );
        if self.plain {
            return self.notebooks.iter().try_for_each(|path| self.export_plain(path));
        }
        let format =
            self.to.or_else(|| ExportFormat::of_name(self.output.as_ref()?)).unwrap_or(ExportFormat::Html);
        ensure!(
            !self.no_code || format != ExportFormat::Py,
            "a Python script is code; --no-code is for html and md"
        );
        for path in &self.notebooks {
            self.export(path, format)?;
        }
        Ok(())
    }

    fn export(&self, path: &Path, format: ExportFormat) -> anyhow::Result<()> {
        let notebook = file::read(path)?;
        let to_stdout = self.output.as_deref() == Some(Path::new("-"));
        let target = self.output.clone().unwrap_or_else(|| path.with_extension(format.extension()));
        // A file that the user named may be replaced. A name that we chose may be that of the user's own script.
        ensure!(
            self.output.is_some() || self.force || !target.exists(),
            "{} exists; --force replaces it, and --output names another file",
            target.display()
        );
        let mut pictures = Vec::new();
        let text = match format {
            ExportFormat::Html => {
                let (banner, remarks) = (None, Vec::new());
                NotebookPageHtml { notebook: &notebook, path, shows_code: !self.no_code, banner, remarks }
                    .text()
            }
            ExportFormat::Md => {
                let stem = target.file_stem().unwrap_or_default().to_string_lossy();
                let store = if to_stdout {
                    PictureStore::Inline
                } else {
                    PictureStore::Folder(format!("{stem}_files"))
                };
                let markdown = MarkdownText::of(&notebook, !self.no_code, store);
                pictures = markdown.pictures;
                if let Some(folder) = target.file_stem().filter(|_| !pictures.is_empty()) {
                    let mut name = folder.to_owned();
                    name.push("_files");
                    let folder = target.with_file_name(name);
                    fs::create_dir_all(&folder)
                        .with_context(|| format!("could not make {}", folder.display()))?;
                    for picture in &pictures {
                        written(&folder.join(&picture.name), &picture.bytes)?;
                    }
                }
                markdown.text
            }
            ExportFormat::Py => python_script(&notebook).with_context(|| path.display().to_string())?,
        };
        if to_stdout {
            return print::plain(&text);
        }
        written(&target, text.as_bytes())?;
        let beside = if pictures.is_empty() {
            String::new()
        } else {
            format!(", with {}", Counted(pictures.len() as u64, "picture"))
        };
        print::plain(&format!("{}{beside}\n", target.display()))
    }
}

impl ExportCommand {
    fn export_plain(&self, path: &Path) -> anyhow::Result<()> {
        let notebook = file::read(path)?;
        let json = serde_json::from_str(notebook.text()).with_context(|| path.display().to_string())?;
        let PlainNotebook { notebook, prompts, kept } = plain::without_agent(&json);
        let mut text = Vec::new();
        let indent = serde_json::ser::PrettyFormatter::with_indent(b" ");
        notebook.serialize(&mut serde_json::Serializer::with_formatter(&mut text, indent))?;
        text.push(b'\n');
        if self.output.as_deref() == Some(Path::new("-")) {
            return print::plain(&String::from_utf8(text)?);
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let target =
            self.output.clone().unwrap_or_else(|| path.with_file_name(format!("{stem}-plain.ipynb")));
        ensure!(
            self.output.is_some() || self.force || !target.exists(),
            "{} exists; --force replaces it, and --output names another file",
            target.display()
        );
        written(&target, &text)?;
        print::plain(&format!(
            "{}: {} became text, with {} of the agent's code\n",
            target.display(),
            Counted(prompts as u64, "prompt"),
            Counted(kept as u64, "cell")
        ))
    }
}

fn written(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    fs::write(path, bytes).with_context(|| format!("could not write {}", path.display()))
}
