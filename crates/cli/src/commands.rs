//! One module for each command.

pub(crate) mod attach;
pub(crate) mod config;
pub(crate) mod daemon;
pub(crate) mod doctor;
pub(crate) mod edit;
pub(crate) mod export;
pub(crate) mod gateway;
pub(crate) mod install;
pub(crate) mod installation;
pub(crate) mod kernel;
pub(crate) mod lab;
pub(crate) mod mcp;
pub(crate) mod notebook;
pub(crate) mod read;
pub(crate) mod repl;
pub(crate) mod run;
pub(crate) mod session;
pub(crate) mod setup;
pub(crate) mod show;
pub(crate) mod tool;
pub(crate) mod trust;
pub(crate) mod write;

use std::ffi::OsStr;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use cellwright_editing::{ChangeOptions, DiskMemory, EditReport, FileEditor, FileKind};
use cellwright_notebook::{Fingerprint, OutputsAfterEdit, Selector, Target, file};
use cellwright_session::SessionId;

use crate::caller;
use crate::config::UserFolders;
use crate::draw::look::{DrawPlace, LookArguments};
use crate::draw::terminal::TerminalSize;
use crate::print::{self, OutputFormat};
use crate::render::PreviewLines;
use crate::render::edits::{self, EditLook};

/// The caller, if it names itself.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct CallerArguments {
    /// Remember what was read under this name, as `cellwright tool --session` does
    #[arg(long, value_name = "NAME")]
    session: Option<SessionId>,
}

impl CallerArguments {
    /// The caller of a command that runs cells in this session.
    pub(crate) fn of_session(session: Option<SessionId>) -> Self {
        Self { session }
    }

    /// Calls `work` with the editor of the caller of this process.
    pub(crate) fn with_editor<T, E: Into<anyhow::Error>>(
        &self,
        work: impl FnOnce(&FileEditor<'_>) -> Result<T, E>,
    ) -> anyhow::Result<T> {
        let environment = std::env::vars_os().collect();
        let places = UserFolders::from(&environment);
        let (save, history, state) = (places.save_settings(), places.history(), places.state);
        let name = caller::name(&environment, self.session.as_ref().map(SessionId::as_str));
        let memory = DiskMemory::of_caller(&state.join("reads"), &name);
        work(&FileEditor::new(&memory, Some(&history)).saving(save)).map_err(Into::into)
    }
}

/// What every command that changes a notebook takes.
#[derive(Debug, clap::Args)]
pub(crate) struct ChangeArguments {
    /// Refuse unless the file has this fingerprint, which `read --json` prints
    #[arg(long, value_name = "FINGERPRINT", value_parser = parse_fingerprint)]
    expect: Option<Fingerprint>,
    /// Change the file even if it changed since you read it, or you only read a part of it
    #[arg(long)]
    force: bool,
    /// Show changed sources in full at a terminal
    #[arg(long)]
    expand: bool,
    #[command(flatten)]
    caller: CallerArguments,
    #[command(flatten)]
    format: OutputFormat,
}

/// Reads a fingerprint, or says where it is found.
pub(crate) fn parse_fingerprint(text: &str) -> anyhow::Result<Fingerprint> {
    text.parse().map_err(|error| anyhow::anyhow!("{error}; `read --json` prints it"))
}

/// What commands that change sources take too.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct OldOutputs {
    /// Keep the outputs of code cells whose source changes [default: clear them]
    #[arg(long)]
    keep_outputs: bool,
}

impl From<OldOutputs> for OutputsAfterEdit {
    fn from(old: OldOutputs) -> Self {
        if old.keep_outputs { Self::Keep } else { Self::Clear }
    }
}

impl ChangeArguments {
    pub(crate) fn options(&self, outputs: OutputsAfterEdit) -> ChangeOptions {
        ChangeOptions { expect: self.expect, force: self.force, outputs }
    }

    /// Makes a change of a notebook and reports it: drawn for a person, or else as a text or JSON.
    pub(crate) fn report<E: Into<anyhow::Error>>(
        &self,
        path: &Path,
        change: impl FnOnce(&FileEditor<'_>) -> Result<EditReport, E>,
    ) -> anyhow::Result<()> {
        let report = self.caller.with_editor(change);
        if self.format.json || DrawPlace::of_this_process() == DrawPlace::Elsewhere {
            return self.print(&report?);
        }
        let look = self.look(path);
        let report = match report {
            Ok(report) => report,
            Err(error) => {
                // The reason follows, as that of every failure.
                print::line(&edits::failed_line(&path.display().to_string(), &look));
                return Err(error);
            }
        };
        let rows = edits::rows(&report, &look).join("\n");
        print::coloured(&(rows + "\n")).context("the change was made, but could not be reported")
    }

    fn look(&self, path: &Path) -> EditLook {
        let language = file::read(path).ok().and_then(|notebook| notebook.language());
        EditLook {
            pen: LookArguments::default().pen(),
            columns: TerminalSize::on_stdout().unwrap_or_default().columns,
            preview: if self.expand { PreviewLines::All } else { PreviewLines::RUN },
            language: language.unwrap_or_else(|| "python".to_owned()),
        }
    }

    /// Reports a change.
    fn print(&self, report: &(impl serde::Serialize + std::fmt::Display)) -> anyhow::Result<()> {
        let printed =
            if self.format.json { print::json(report) } else { print::plain(&format!("{report}\n")) };
        printed.context("the change was made, but could not be reported")
    }
}

/// Whether a path is a text file, or the place for one. What is no file at all is reported by the reader of notebooks.
fn is_text(path: &Path) -> bool {
    (path.is_file() || !path.exists()) && FileKind::of(path) == FileKind::Text
}

/// The text of a file, or of stdin for `-`.
pub(crate) fn input(path: &Path) -> anyhow::Result<String> {
    String::from_utf8(input_bytes(path)?).with_context(|| format!("{} is not UTF-8 text", named(path)))
}

/// The whole of a file, or of stdin for `-`.
pub(crate) fn input_bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut bytes).context("could not read stdin")?;
    } else {
        bytes = std::fs::read(path).with_context(|| format!("could not read {}", path.display()))?;
    }
    Ok(bytes)
}

/// What to call an input in a message.
fn named(path: &Path) -> String {
    if path == Path::new("-") { "stdin".to_owned() } else { path.display().to_string() }
}

/// The file and the part of it that a target names.
fn split_target(target: &OsStr) -> anyhow::Result<(PathBuf, Selector)> {
    let Some(text) = target.to_str() else {
        return Ok((target.into(), Selector::default()));
    };
    let Target { path, selector } = Target::parse(text, |path| Path::new(path).exists())?;
    Ok((path.into(), selector))
}
