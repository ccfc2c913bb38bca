//! Plain text files: read whole, replaced whole or not at all.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use cellwright_notebook::Fingerprint;

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
///
/// Permissions stay; readers see the old file or the new one, never a half.
pub(crate) fn replace(
    place: &Place,
    expected: Option<Fingerprint>,
    content: &[u8],
) -> Result<(), TextFileError> {
    let failed = |attempt| move |source| TextFileError::Io { named: place.named.clone(), attempt, source };
    let folder = place.path.parent().expect("a file is in a folder");
    if !place.exists {
        fs::create_dir_all(folder).map_err(failed("make its folder"))?;
    }
    let mut temporary = tempfile::Builder::new()
        .prefix(".cellwright-")
        .suffix(".tmp")
        .make_in(folder, |path| File::create_new(path))
        .map_err(failed("make a temporary file beside it"))?;
    let file = temporary.as_file_mut();
    file.write_all(content).map_err(failed("write its new content"))?;
    if place.exists {
        // A rename needs no right to write the file; its owner may have taken that right away for a reason.
        File::options().append(true).open(&place.path).map_err(failed("write it"))?;
        let old = fs::metadata(&place.path).map_err(failed("look at it"))?;
        keep_owner(file, &old).map_err(failed("keep its owner"))?;
        file.set_permissions(old.permissions()).map_err(failed("keep its permissions"))?;
    }
    file.sync_all().map_err(failed("write its new content"))?;
    if let Some(expected) = expected
        && !is(&place.path, expected)
    {
        return Err(TextFileError::Changed { named: place.named.clone() });
    }
    temporary.persist(&place.path).map_err(|error| failed("replace it")(error.error))?;
    Ok(())
}

fn is(path: &Path, expected: Fingerprint) -> bool {
    fs::read(path).is_ok_and(|content| Fingerprint::of(&content) == expected)
}

fn keep_owner(file: &File, old: &fs::Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) == (old.uid(), old.gid()) {
        return Ok(());
    }
    std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid()))
}
