//! Plain text files: read whole, replaced whole or not at all, by the same rules as notebooks.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use cellwright_notebook::Fingerprint;
use cellwright_notebook::file::{ReplaceError as SaveError, Replacement as SavedFile};
use cellwright_notebook::replace::{Replaced, Replacement, TextKind, replace};

use crate::coverage::SeenLines;
use crate::editor::{ChangeOptions, Editor, FileName, check_expected};
use crate::error::EditingError;
use crate::knowledge::{FileKnowledge, TextKnowledge};
use crate::refusal::{Refusal, Unseen};

/// Files past this are for programs, not for reading through a tool.
const LARGEST: u64 = 64 * 1024 * 1024;

/// Why a text file could not be read or written. It is then as it was.
#[derive(Debug, thiserror::Error)]
pub enum TextFileError {
    /// It is too large.
    #[error(
        "{named} has {bytes} bytes, too many to read whole (at most {LARGEST}); look into it with bash or eval"
    )]
    TooLarge {
        /// What the caller calls the file.
        named: String,
        /// Its size.
        bytes: u64,
    },
    /// It is not text.
    #[error("{named} is not UTF-8 text, so it cannot be edited")]
    NotText {
        /// What the caller calls the file.
        named: String,
    },
    /// An empty text matches everywhere.
    #[error("{named}: `old` is empty; to add text, give the line it stands beside, and both in `new`")]
    EmptyOld {
        /// What the caller calls the file.
        named: String,
    },
    /// Others changed it.
    #[error("{named}: changed since you read it, so nothing was done; read it again")]
    Changed {
        /// What the caller calls the file.
        named: String,
    },
    /// The system refused.
    #[error("{named}: could not {attempt}")]
    Io {
        /// What the caller calls the file.
        named: String,
        /// What was tried.
        attempt: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

impl TextFileError {
    /// Whether others changed the file since the caller read it.
    pub fn is_change(&self) -> bool {
        matches!(self, Self::Changed { .. })
    }
}

/// What a replacement in a text file did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextEdit {
    /// The line that each replaced text started on.
    pub lines: Vec<usize>,
}

/// What writing a text file did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextWrite {
    /// Whether there was no such file.
    pub is_new: bool,
    /// How many lines it has.
    pub lines: usize,
}

impl Editor<'_> {
    /// The bytes of a file.
    pub fn read_bytes(&self, file: &FileName) -> Result<Vec<u8>, EditingError> {
        read(file).map_err(EditingError::from)
    }

    /// Remembers what was shown of a text file. If that fails, a later change may be refused.
    pub fn saw_text(
        &self,
        file: &FileName,
        content: &[u8],
        total_lines: usize,
        shown: SeenLines,
    ) -> io::Result<()> {
        let (key, fingerprint) = (real(&file.path), Fingerprint::of(content));
        let mut knowledge = TextKnowledge { fingerprint, total_lines, shown };
        if let Some(before) = self.text_knowledge(&key).filter(|before| before.fingerprint == fingerprint) {
            knowledge.shown.extend(&before.shown);
        }
        self.memory.remember(&key, FileKnowledge::Text(knowledge))
    }

    fn text_knowledge(&self, key: &Path) -> Option<TextKnowledge> {
        match self.memory.recall(key)? {
            FileKnowledge::Text(knowledge) => Some(knowledge),
            FileKnowledge::Notebook(_) => None,
        }
    }

    /// Replaces an exact string in a text file.
    pub fn edit_text(
        &self,
        file: &FileName,
        replacement: Replacement,
        options: &ChangeOptions,
    ) -> Result<TextEdit, EditingError> {
        let named = || file.named.clone();
        if replacement.old.is_empty() {
            return Err(TextFileError::EmptyOld { named: named() }.into());
        }
        let before = String::from_utf8(read(file)?).map_err(|_| TextFileError::NotText { named: named() })?;
        let now = Fingerprint::of(before.as_bytes());
        check_expected(file, options, now)?;
        let known = self.text_knowledge(&real(&file.path));
        let is_stale = known.as_ref().is_some_and(|known| known.fingerprint != now);
        if is_stale && !options.force && options.expect.is_none() {
            return Err(TextFileError::Changed { named: named() }.into());
        }
        let Replaced { text: after, lines, cells: _ } = replace(&before, TextKind::Plain, &[replacement])
            .map_err(|source| EditingError::Replace { named: named(), source })?;
        save(file, Some(now), after.as_bytes())?;
        // What the caller had not seen before it has not seen now; the lines it wrote are known to it.
        let total_lines = after.lines().count();
        let shown = match known {
            Some(known) if known.is_whole() && !is_stale => SeenLines::from(1..=total_lines),
            _ => SeenLines::default(),
        };
        self.learn(file, &after, total_lines, shown);
        Ok(TextEdit { lines })
    }

    /// Creates a text file, or replaces all of it.
    pub fn write_text(
        &self,
        file: &FileName,
        content: &str,
        options: &ChangeOptions,
    ) -> Result<TextWrite, EditingError> {
        let before = match read(file) {
            Ok(before) => Some(before),
            Err(TextFileError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => None,
            // What is too large to have been read is not replaced without a word either.
            Err(error) if !options.force => return Err(error.into()),
            Err(_) => Some(Vec::new()),
        };
        let now = before.as_deref().map(Fingerprint::of);
        match now {
            Some(now) => check_expected(file, options, now)?,
            None if options.expect.is_some() => return Err(EditingError::Gone { named: file.named.clone() }),
            None => {}
        }
        if let (Some(before), Some(now), false) = (&before, now, options.force)
            && !before.is_empty()
        {
            let refused = |refusal| Err(EditingError::refused(&file.named, refusal));
            match self.text_knowledge(&real(&file.path)) {
                // The fingerprint vouches for what the caller saw elsewhere, and answers what changed since.
                None if options.expect.is_some() => {}
                Some(known) if options.expect.is_some() && known.fingerprint != now => {}
                None => return refused(Refusal::NeverRead),
                Some(known) if known.fingerprint != now => {
                    return Err(TextFileError::Changed { named: file.named.clone() }.into());
                }
                Some(known) if !known.is_whole() => {
                    return refused(Refusal::PartlyRead { unseen: Unseen::Lines });
                }
                Some(_) => {}
            }
        }
        save(file, now.filter(|_| !options.force), content.as_bytes())?;
        let lines = content.lines().count();
        self.learn(file, content, lines, SeenLines::from(1..=lines));
        Ok(TextWrite { is_new: before.is_none(), lines })
    }

    fn learn(&self, file: &FileName, content: &str, total_lines: usize, shown: SeenLines) {
        let fingerprint = Fingerprint::of(content.as_bytes());
        let knowledge = FileKnowledge::Text(TextKnowledge { fingerprint, total_lines, shown });
        drop(self.memory.remember(&real(&file.path), knowledge)); // a later change is refused then
    }
}

fn real(path: &Path) -> std::path::PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn read(file: &FileName) -> Result<Vec<u8>, TextFileError> {
    let failed = |source| TextFileError::Io { named: file.named.clone(), attempt: "read it", source };
    let opened = File::open(&file.path).map_err(failed)?;
    let bytes = opened.metadata().map_err(failed)?.len();
    let mut content = Vec::new();
    // A file that grows while it is read is cut off by the limit, not by the length it had.
    opened.take(LARGEST + 1).read_to_end(&mut content).map_err(failed)?;
    if content.len() as u64 > LARGEST {
        return Err(TextFileError::TooLarge { named: file.named.clone(), bytes });
    }
    Ok(content)
}

/// Puts `content` in the file's place, if that still is what `expected` says; makes its folder if need be.
fn save(file: &FileName, expected: Option<Fingerprint>, content: &[u8]) -> Result<(), TextFileError> {
    let failed =
        |SaveError { attempt, source }| TextFileError::Io { named: file.named.clone(), attempt, source };
    let changed = || TextFileError::Changed { named: file.named.clone() };
    if file.path.exists() {
        let new = SavedFile::of(&real(&file.path), content).map_err(failed)?;
        let is_same = |expected| fs::read(&file.path).is_ok_and(|now| Fingerprint::of(&now) == expected);
        if expected.is_some_and(|expected| !is_same(expected)) {
            return Err(changed());
        }
        new.commit().map_err(failed)?;
        return Ok(());
    }
    let folder = file.path.parent().expect("a file is in a folder");
    fs::create_dir_all(folder).map_err(|source| failed(SaveError { attempt: "make its folder", source }))?;
    let new = SavedFile::new_file(&file.path, 0o666, content).map_err(failed)?;
    if new.commit_new().map_err(failed)? { Ok(()) } else { Err(changed()) }
}
