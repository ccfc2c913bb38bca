//! Plain text files: read whole, replaced whole or not at all.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use cellwright_notebook::Fingerprint;
use cellwright_notebook::file::{ReplaceError, Replacement};

use crate::workspace::Place;

/// Files past this are for programs, not for reading through a tool.
const LARGEST: u64 = 64 * 1024 * 1024;

/// Why a file could not be read or written. It is then as it was.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TextFileError {
    #[error(
        "{named} has {bytes} bytes, too many to read whole (at most {LARGEST}); look into it with bash or eval"
    )]
    TooLarge { named: String, bytes: u64 },
    #[error("{named} is not UTF-8 text, so it can not be edited")]
    NotText { named: String },
    #[error("{named}: changed since you read it, so nothing was written; read it again")]
    Changed { named: String },
    #[error("{named}: could not {attempt}")]
    Io { named: String, attempt: &'static str, source: io::Error },
}

/// The bytes of a file.
pub(crate) fn read(place: &Place) -> Result<Vec<u8>, TextFileError> {
    let failed = |source| TextFileError::Io { named: place.named.clone(), attempt: "read it", source };
    let file = File::open(&place.path).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    let mut content = Vec::new();
    // A file that grows while it is read is cut off by the limit, not by the length it had.
    file.take(LARGEST + 1).read_to_end(&mut content).map_err(failed)?;
    if content.len() as u64 > LARGEST {
        return Err(TextFileError::TooLarge { named: place.named.clone(), bytes });
    }
    Ok(content)
}

/// The text of a file, if it is text.
pub(crate) fn read_text(place: &Place) -> Result<String, TextFileError> {
    String::from_utf8(read(place)?).map_err(|_| TextFileError::NotText { named: place.named.clone() })
}

/// Puts `content` in the file's place, if that still is what `expected` says; makes its folder if need be.
pub(crate) fn replace(
    place: &Place,
    expected: Option<Fingerprint>,
    content: &[u8],
) -> Result<(), TextFileError> {
    let failed =
        |ReplaceError { attempt, source }| TextFileError::Io { named: place.named.clone(), attempt, source };
    let changed = || TextFileError::Changed { named: place.named.clone() };
    if place.exists {
        let new = Replacement::of(&place.path, content).map_err(failed)?;
        if expected.is_some_and(|expected| !is(&place.path, expected)) {
            return Err(changed());
        }
        new.commit().map_err(failed)?;
        return Ok(());
    }
    let folder = place.path.parent().expect("a file is in a folder");
    fs::create_dir_all(folder)
        .map_err(|source| failed(ReplaceError { attempt: "make its folder", source }))?;
    let new = Replacement::new_file(&place.path, 0o666, content).map_err(failed)?;
    if new.commit_new().map_err(failed)? { Ok(()) } else { Err(changed()) }
}

fn is(path: &Path, expected: Fingerprint) -> bool {
    fs::read(path).is_ok_and(|content| Fingerprint::of(&content) == expected)
}
