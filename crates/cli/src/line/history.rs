//! What was typed before, in this run of the program and in earlier ones.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use cellwright_ownership::private_folder;

/// Entries that are kept.
const KEPT: usize = 10_000;

/// The texts that were entered, the newest last, and a file of the user's own that has them, one JSON string a line.
#[derive(Debug, Default)]
pub(crate) struct LineHistory {
    entries: Vec<String>,
    file: Option<PathBuf>,
}

impl LineHistory {
    /// What the file has; it need not exist yet.
    pub(crate) fn in_file(file: PathBuf) -> Self {
        let text = fs::read(&file).unwrap_or_default(); // without it, it begins empty
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        // Another program may have written half a line.
        let mut entries: Vec<String> = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
        if entries.len() > 2 * KEPT {
            entries.drain(..entries.len() - KEPT);
            let lines: Vec<_> = entries.iter().map(|entry| line_of(entry)).collect();
            let whole = file.with_extension("new");
            let saved = private(&whole).and_then(|mut new| new.write_all(lines.concat().as_bytes()));
            drop(saved.and_then(|()| fs::rename(&whole, &file))); // the long one is as good
        }
        Self { entries, file: Some(file) }
    }

    pub(crate) fn entries(&self) -> &[String] {
        &self.entries
    }

    /// Adds an entry, unless it is the last one once more. What cannot be written is remembered for this run alone.
    pub(crate) fn add(&mut self, entry: &str) -> io::Result<()> {
        if entry.trim().is_empty() || self.entries.last().is_some_and(|last| last == entry) {
            return Ok(());
        }
        self.entries.push(entry.to_owned());
        let Some(file) = &self.file else { return Ok(()) };
        // In one write at the end: other programs of the user add theirs.
        private(file)?.write_all(line_of(entry).as_bytes())
    }

    /// The newest entry before `place` that holds `part`, and where it is.
    pub(crate) fn before(&self, place: usize, fits: impl Fn(&str) -> bool) -> Option<(usize, &str)> {
        let earlier = self.entries.get(..place)?;
        let at = earlier.iter().rposition(|entry| fits(entry))?;
        Some((at, &self.entries[at]))
    }

    /// The oldest entry after `place` that fits.
    pub(crate) fn after(&self, place: usize, fits: impl Fn(&str) -> bool) -> Option<(usize, &str)> {
        let later = self.entries.get(place + 1..)?;
        let at = place + 1 + later.iter().position(|entry| fits(entry))?;
        Some((at, &self.entries[at]))
    }
}

fn line_of(entry: &str) -> String {
    serde_json::to_string(entry).expect("text is JSON") + "\n"
}

/// The file, to add to it, for its owner alone: what people type may be a secret.
fn private(file: &Path) -> io::Result<File> {
    if let Some(folder) = file.parent() {
        private_folder(folder).map_err(io::Error::other)?;
    }
    fs::OpenOptions::new().create(true).append(true).mode(0o600).open(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn history_outlives_the_program_and_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state/repl_history");
        let mut first = LineHistory::in_file(file.clone());
        for entry in ["x = 1", "x = 1", "  ", "def f():\n    return 'é'"] {
            first.add(entry).unwrap();
        }
        let second = LineHistory::in_file(file.clone());
        assert_eq!(second.entries(), ["x = 1", "def f():\n    return 'é'"]);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(second.before(2, |entry| entry.starts_with('x')), Some((0, "x = 1")));
        assert_eq!(second.after(0, |_| true).map(|(at, _)| at), Some(1));
        assert_eq!(second.after(1, |_| true), None);
    }

    #[test]
    fn a_long_history_is_shortened() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history");
        let lines: Vec<_> = (0..=2 * KEPT).map(|number| format!("\"{number}\"\n")).collect();
        fs::write(&file, lines.concat() + "\"half").unwrap();
        assert_eq!(LineHistory::in_file(file.clone()).entries().len(), KEPT);
        let again = LineHistory::in_file(file);
        assert_eq!((again.entries().len(), again.entries()[0].as_str()), (KEPT, "10001"));
    }
}
