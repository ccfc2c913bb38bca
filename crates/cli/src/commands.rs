//! One module for each command.

pub(crate) mod config;
pub(crate) mod daemon;
pub(crate) mod doctor;
pub(crate) mod edit;
pub(crate) mod gateway;
pub(crate) mod install;
pub(crate) mod kernel;
pub(crate) mod mcp;
pub(crate) mod notebook;
pub(crate) mod read;
pub(crate) mod run;
pub(crate) mod session;
pub(crate) mod setup;
pub(crate) mod show;
pub(crate) mod tool;
pub(crate) mod write;

use std::ffi::OsStr;
use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use cellwright_notebook::file::{self, Expected, FileError, Found, IfMissing};
use cellwright_notebook::{CellRef, Edited, Fingerprint, Note, Notebook, Outputs, Report, Selector};

use crate::print::{self, Format};
use crate::reads::{Cells, Reads, Shown};

/// What every command that changes a notebook takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Change {
    /// Refuse if the file is not the one `read --json` gave this fingerprint for
    #[arg(long, value_name = "FINGERPRINT")]
    expect: Option<Fingerprint>,
    #[command(flatten)]
    format: Format,
}

/// What commands that change sources take too.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct OldOutputs {
    /// Keep the outputs of code cells whose source changes (they are cleared otherwise: they are not this source's)
    #[arg(long)]
    keep_outputs: bool,
}

impl From<OldOutputs> for Outputs {
    fn from(old: OldOutputs) -> Self {
        if old.keep_outputs { Self::Keep } else { Self::Clear }
    }
}

impl Change {
    /// What the caller said the file is.
    pub(crate) fn expected(&self) -> Expected {
        self.expect.map_or(Expected::Anything, Expected::Fingerprint)
    }

    pub(crate) fn is_expected(&self) -> bool {
        self.expect.is_some()
    }

    /// Refuses cells named by their place when that is another cell's since the notebook was shown; who gives a fingerprint knows what is there.
    pub(crate) fn check_places<'a>(
        &self,
        path: &Path,
        notebook: &Notebook,
        named: impl IntoIterator<Item = &'a CellRef>,
    ) -> Result<(), FileError> {
        let shown = || Reads::here().ok()?.places(path);
        let Some(shown) = self.expect.is_none().then(shown).flatten() else {
            return Ok(());
        };
        let now = Cells::of(notebook);
        for cell in named {
            if let CellRef::Index(index) = cell
                && shown.moved_in(&now, *index)
            {
                let what = format!("cell {index} may be another one now");
                return Err(FileError::Changed { path: path.into(), what });
            }
        }
        Ok(())
    }

    /// Changes the notebook at `path` and tells what was done.
    pub(crate) fn make<E: Into<anyhow::Error>>(
        &self,
        path: &Path,
        if_missing: IfMissing,
        change: impl Fn(&Notebook) -> Result<Edited, E>,
    ) -> anyhow::Result<()> {
        // To look at every byte once more takes a moment when there are many.
        let now = |notebook: &Notebook| self.format.json.then(|| Fingerprint::of_file(notebook));
        let made = save(path, if_missing, &self.expected(), change, now)?;
        self.tell(&made.report, made.now)
    }

    /// Tells what was done; the fingerprint only to those who asked for JSON.
    pub(crate) fn tell(&self, report: &Report, now: Option<Fingerprint>) -> anyhow::Result<()> {
        let fingerprint = now.filter(|_| self.format.json);
        print::report(report, fingerprint).context("the change was made, but could not be told")
    }
}

/// Changes the notebook at `path`. `now` looks at what will be in the file.
pub(crate) fn save<E: Into<anyhow::Error>, Now>(
    path: &Path,
    if_missing: IfMissing,
    expected: &Expected,
    change: impl Fn(&Notebook) -> Result<Edited, E>,
    now: impl Fn(&Notebook) -> Now,
) -> anyhow::Result<Made<Now>> {
    let (made, found) = file::update_or_create(path, if_missing, expected, |notebook| {
        let named = |error: E| {
            let error = error.into();
            // An error of the file names it already.
            if error.is::<FileError>() { error } else { error.context(path.display().to_string()) }
        };
        let Edited { notebook: changed, report } = change(notebook).map_err(named)?;
        let now = now(changed.as_ref().unwrap_or(notebook));
        let places = changed.as_ref().map(|changed| (Cells::of(notebook), Cells::of(changed)));
        anyhow::Ok((changed, (Made { report, now }, places)))
    })?;
    let (mut made, places) = made;
    if let Some((before, after)) = places {
        // If it can not be noted, a place is refused that was right.
        drop(Reads::here().and_then(|reads| match found {
            Found::File => reads.update_places(path, &before, after),
            Found::Nothing => reads.remember_places(path, after, &Shown::All),
        }));
    }
    if found == Found::Nothing {
        made.report.notes.push(Note::Created);
    }
    Ok(made)
}

/// A change that was made: the file holds it.
pub(crate) struct Made<Now> {
    pub(crate) report: Report,
    /// What was asked of the notebook that is in the file now.
    pub(crate) now: Now,
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

/// The file and the part of it that a target names. A file whose name happens to look like a selector is that file.
fn split_target(target: &OsStr) -> (&Path, Selector) {
    match target.to_str() {
        Some(target) if !Path::new(target).exists() => {
            let (path, selector) = Selector::split(target);
            (Path::new(path), selector)
        }
        Some(_) | None => (Path::new(target), Selector::default()),
    }
}

/// Says so when it is the selector, not the file, that is wrong.
fn explain(error: FileError, target: &OsStr) -> anyhow::Error {
    if let FileError::Missing { path } = &error
        && path.as_os_str() == target
        && let Some(target) = target.to_str()
        && let Some((file, selector)) = target.rfind(".ipynb").map(|at| target.split_at(at + ".ipynb".len()))
        && !selector.is_empty()
        && Path::new(file).exists()
    {
        return anyhow::anyhow!("`{selector}` is not a selector; see `cellwright read --help`")
            .context(file.to_owned());
    }
    error.into()
}
