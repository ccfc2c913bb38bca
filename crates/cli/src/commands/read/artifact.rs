//! `cellwright read artifact://ID`: what did not fit into a notebook or a reply.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use cellwright_notebook::select::{LineRange, NotebookPart, Selector};
use cellwright_output::ArtifactId;

use crate::config::LoadedConfig;
use crate::{host, print};

/// What an artifact's address begins with.
const SCHEME: &str = "artifact://";

/// How far from the end the last lines are looked for at first.
const WINDOW: u64 = 1 << 16;

/// What follows the scheme, if this is the address of an artifact.
pub(super) fn address(target: &str) -> Option<&str> {
    target.strip_prefix(SCHEME)
}

/// Shows an artifact, or some of its lines.
pub(super) fn show(address: &str) -> anyhow::Result<()> {
    let (id, Selector { part, raw, lines }) = Selector::split(address);
    ensure!(
        part == NotebookPart::Whole && !raw,
        "an artifact has lines, as in `{SCHEME}{id}:10-40`, and no cells"
    );
    let config =
        LoadedConfig::load(&std::env::current_dir().context("the current folder is gone")?, Vec::new())?;
    let artifact = host::artifacts(&config).open(&id.parse::<ArtifactId>()?)?;
    if lines.is_empty() {
        let failed = || format!("could not read {}", artifact.path.display());
        let mut content = File::open(&artifact.path).with_context(failed)?;
        if !io::stdout().is_terminal() {
            io::copy(&mut content, &mut io::stdout().lock())?;
            return Ok(());
        }
        let mut lines = BufReader::new(content);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).with_context(failed)? > 0 {
            print::plain(&String::from_utf8_lossy(&line))?;
            line.clear();
        }
        return Ok(());
    }
    for range in lines {
        match range {
            LineRange::FromTo(from, to) => {
                let page = artifact.lines(from as u64..=to.map_or(u64::MAX, |to| to as u64), usize::MAX)?;
                if page.lines == 0 {
                    bail!("{} has no line {from}", artifact.id);
                }
                print::plain(&page.text)?;
            }
            LineRange::Within { line, byte } => {
                let page = artifact.lines(line as u64..=line as u64, usize::MAX)?;
                let text = page.text.get(page.text.floor_char_boundary(byte - 1)..).unwrap_or_default();
                ensure!(!text.trim_end_matches('\n').is_empty(), "{} has no byte {line}@{byte}", artifact.id);
                print::plain(text)?;
            }
            LineRange::Last(count) => {
                let failed = || format!("could not read {}", artifact.path.display());
                let last = last_lines(&artifact.path, count).with_context(failed)?;
                if io::stdout().is_terminal() {
                    print::plain(&String::from_utf8_lossy(&last))?;
                } else {
                    io::stdout().lock().write_all(&last)?;
                }
            }
        }
    }
    Ok(())
}

/// The end of a file, read from there.
fn last_lines(path: &Path, count: usize) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let total = file.metadata()?.len();
    let mut window = WINDOW;
    loop {
        let start = total.saturating_sub(window);
        let mut end = Vec::new();
        file.seek(SeekFrom::Start(start))?;
        file.read_to_end(&mut end)?;
        let lines: Vec<_> = end.split_inclusive(|byte| *byte == b'\n').collect();
        // The first one may be half a line.
        if start == 0 || lines.len() > count {
            return Ok(lines[lines.len().saturating_sub(count)..].concat());
        }
        window = window.saturating_mul(8);
    }
}
