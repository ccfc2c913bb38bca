//! Plain text files: read whole, replaced whole or not at all, by the same rules as notebooks.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use cellwright_notebook::Fingerprint;
use cellwright_notebook::file::{
    FileError, FileReplaceError as SaveError, FileReplacement as SavedFile, SaveMethod, UpdatedFile, recover,
    update_bytes,
};
use cellwright_notebook::replace::{ReplacedText, TextKind, TextReplacement, replace};

use crate::coverage::SeenLines;
use crate::editor::{ChangeOptions, FileEditor, FileName, check_expected};
use crate::error::EditingError;
use crate::knowledge::{FileKnowledge, TextKnowledge};
use crate::reading::{ReadRequest, ShownLines};
use crate::refusal::{EditRefusal, UnseenParts};
use crate::text_report::{TextChange, TextReport};

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
    #[error("{named} is not UTF-8 text, so it cannot be shown or edited")]
    NotText {
        /// What the caller calls the file.
        named: String,
    },
    /// It is not text, so the caller has not seen what a new text would replace.
    #[error(
        "{named} is not UTF-8: some of its characters could not be shown, and this would replace them, so nothing \
         was done; change it with bash or eval, or use force"
    )]
    NotShown {
        /// What the caller calls the file.
        named: String,
    },
    /// An empty text matches everywhere.
    #[error("{named}: `old` is empty; to add text, give the line beside it as `old`, and both in `new`")]
    EmptyOld {
        /// What the caller calls the file.
        named: String,
    },
    /// A link to nothing.
    #[error("{named} is a link that leads nowhere")]
    DeadLink {
        /// What the caller calls the file.
        named: String,
    },
    /// Others changed it.
    #[error("{named}: changed since you read it, so nothing was done; read it again")]
    Changed {
        /// What the caller calls the file.
        named: String,
    },
    /// A save of it in place was cut short, and cannot be finished.
    #[error("{named}: a save of it was cut short and could not be finished")]
    Unfinished {
        /// What the caller calls the file.
        named: String,
        /// Why.
        source: FileError,
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

/// What is shown of a text file.
#[derive(Debug)]
pub struct TextRead {
    /// All of its text.
    pub content: String,
    /// The file.
    pub fingerprint: Fingerprint,
    /// The lines that are shown.
    pub shown: ShownLines,
    /// Whether it could be remembered what was shown. If not, a later write is refused.
    pub remembered: io::Result<()>,
}

impl FileEditor<'_> {
    /// The bytes of a file.
    pub fn read_bytes(&self, file: &FileName) -> Result<Vec<u8>, EditingError> {
        self.read_text_file(file).map_err(EditingError::from)
    }

    /// Reads a part of a text file for the caller, and remembers what was shown of it.
    pub fn read_text(&self, file: &FileName, request: &ReadRequest<'_>) -> Result<TextRead, EditingError> {
        let not_text = |_| TextFileError::NotText { named: file.named.clone() };
        let content = String::from_utf8(self.read_text_file(file)?).map_err(not_text)?;
        let shown = ShownLines::of(&file.named, &content, request)
            .map_err(|source| EditingError::PastTheEnd { named: file.named.clone(), source })?;
        let lines = content.lines().count();
        let remembered = self.saw_text(file, content.as_bytes(), lines, shown.seen_lines());
        Ok(TextRead { fingerprint: Fingerprint::of(content.as_bytes()), content, shown, remembered })
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

    /// Replaces exact strings in a text file, one after the other.
    pub fn edit_text(
        &self,
        file: &FileName,
        replacements: &[TextReplacement],
        options: &ChangeOptions,
    ) -> Result<TextReport, EditingError> {
        let named = || file.named.clone();
        if replacements.iter().any(|replacement| replacement.old.is_empty()) {
            return Err(TextFileError::EmptyOld { named: named() }.into());
        }
        check_size(file)?;
        let known = self.text_knowledge(&real(&file.path));
        let changed = self.change_text(file, |before| {
            let text = str::from_utf8(before).map_err(|_| TextFileError::NotText { named: named() })?;
            let now = Fingerprint::of(before);
            check_expected(file, options, now)?;
            let is_stale = known.as_ref().is_some_and(|known| known.fingerprint != now);
            if is_stale && !options.is_trusted() {
                return Err(TextFileError::Changed { named: named() }.into());
            }
            let ReplacedText { text: after, lines, cells: _ } = replace(text, TextKind::Plain, replacements)
                .map_err(|source| EditingError::Replace { named: named(), source })?;
            Ok((Some(after.clone().into_bytes()), (after, lines, is_stale)))
        });
        let UpdatedFile { outcome: (after, lines, is_stale), saved, .. } = changed?;
        // What the caller had not seen before it has not seen now; the lines it wrote are known to it.
        let total_lines = after.lines().count();
        let shown = match known {
            Some(known) if known.is_whole() && !is_stale => SeenLines::from(1..=total_lines),
            _ => SeenLines::default(),
        };
        let fingerprint = self.learn(file, &after, total_lines, shown);
        let saved = saved.unwrap_or(SaveMethod::Renamed);
        Ok(TextReport { path: named(), change: TextChange::Replaced { lines }, fingerprint, saved })
    }

    /// Creates a text file, or replaces all of it.
    pub fn write_text(
        &self,
        file: &FileName,
        content: &str,
        options: &ChangeOptions,
    ) -> Result<TextReport, EditingError> {
        let is_new = !file.path.exists();
        let saved = if is_new {
            if options.expect.is_some() {
                return Err(EditingError::Gone { named: file.named.clone() });
            }
            create(file, content)?;
            SaveMethod::Renamed
        } else {
            if !options.force {
                check_size(file)?;
            }
            let known = self.text_knowledge(&real(&file.path));
            let replaced = self.change_text(file, |before| {
                check_expected(file, options, Fingerprint::of(before))?;
                if !options.force && !before.is_empty() {
                    check_seen(file, before, known.as_ref(), options)?;
                }
                Ok((Some(content.as_bytes().to_vec()), ()))
            });
            replaced?.saved.unwrap_or(SaveMethod::Renamed)
        };
        let lines = content.lines().count();
        let fingerprint = self.learn(file, content, lines, SeenLines::from(1..=lines));
        let change = TextChange::Written { is_new, lines, bytes: content.len() };
        Ok(TextReport { path: file.named.clone(), change, fingerprint, saved })
    }

    fn learn(&self, file: &FileName, content: &str, total_lines: usize, shown: SeenLines) -> Fingerprint {
        let fingerprint = Fingerprint::of(content.as_bytes());
        let knowledge = FileKnowledge::Text(TextKnowledge { fingerprint, total_lines, shown });
        drop(self.memory.remember(&real(&file.path), knowledge)); // a later change is refused then
        fingerprint
    }

    /// The bytes of a file. A save in place that was cut short is finished first.
    fn read_text_file(&self, file: &FileName) -> Result<Vec<u8>, TextFileError> {
        if let Err(error) = recover(&file.path, &self.save) {
            return Err(TextFileError::Unfinished { named: file.named.clone(), source: error });
        }
        read(file)
    }

    /// Changes a file that exists as a notebook is changed: under a lock, and not over what others save at that moment.
    fn change_text<T>(
        &self,
        file: &FileName,
        change: impl Fn(&[u8]) -> Result<(Option<Vec<u8>>, T), EditingError>,
    ) -> Result<UpdatedFile<T>, EditingError> {
        let named = || file.named.clone();
        update_bytes(&self.save, &file.path, change).map_err(|error| match error {
            EditingError::File(FileError::Changed { .. }) => TextFileError::Changed { named: named() }.into(),
            EditingError::File(FileError::Io { attempt, source, .. }) => {
                TextFileError::Io { named: named(), attempt, source }.into()
            }
            error => error.called(&file.named),
        })
    }
}

/// Whether the caller has seen all of a text that it replaces.
fn check_seen(
    file: &FileName,
    before: &[u8],
    known: Option<&TextKnowledge>,
    options: &ChangeOptions,
) -> Result<(), EditingError> {
    let refused = |refusal| Err(EditingError::refused(&file.named, refusal));
    let now = Fingerprint::of(before);
    match known {
        // The fingerprint vouches for what the caller saw elsewhere, and answers what changed since.
        None if options.expect.is_some() => Ok(()),
        Some(known) if options.expect.is_some() && known.fingerprint != now => Ok(()),
        None => refused(EditRefusal::NeverRead),
        Some(known) if known.fingerprint != now => {
            Err(TextFileError::Changed { named: file.named.clone() }.into())
        }
        Some(known) if !known.is_whole() => refused(EditRefusal::PartlyRead { unseen: UnseenParts::Lines }),
        // What could not be shown was not seen.
        Some(_) if str::from_utf8(before).is_err() => {
            Err(TextFileError::NotShown { named: file.named.clone() }.into())
        }
        Some(_) => Ok(()),
    }
}

/// Makes a file that does not exist yet, and its folder if need be.
fn create(file: &FileName, content: &str) -> Result<(), TextFileError> {
    if fs::symlink_metadata(&file.path).is_ok_and(|found| found.is_symlink()) {
        return Err(TextFileError::DeadLink { named: file.named.clone() });
    }
    let failed =
        |SaveError { attempt, source }| TextFileError::Io { named: file.named.clone(), attempt, source };
    if let Some(folder) = file.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder)
            .map_err(|source| failed(SaveError { attempt: "make its folder", source }))?;
    }
    let new = SavedFile::new_file(&file.path, 0o666, content.as_bytes()).map_err(failed)?;
    if new.commit_new().map_err(failed)? {
        Ok(())
    } else {
        Err(TextFileError::Changed { named: file.named.clone() })
    }
}

/// What is too large to have been read is not replaced without a word.
fn check_size(file: &FileName) -> Result<(), TextFileError> {
    let failed = |source| TextFileError::Io { named: file.named.clone(), attempt: "read it", source };
    let bytes = fs::metadata(&file.path).map_err(failed)?.len();
    if bytes > LARGEST {
        return Err(TextFileError::TooLarge { named: file.named.clone(), bytes });
    }
    Ok(())
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
