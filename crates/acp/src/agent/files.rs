//! Files that an agent reads and writes through us.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::{Error, ErrorCode, ReadTextFileRequest, WriteTextFileRequest};
use cellwright_notebook::file::FileReplacement;

/// The most that an agent gets of a file at once.
const LONGEST_READ: u64 = 64 * 1024 * 1024;

/// The longest file that a question about a write compares with its new text.
const MOST_COMPARED: u64 = 1024 * 1024;

/// The text of a file: all of it, or `limit` lines from `line` on, which counts from 1.
pub(super) fn read(request: &ReadTextFileRequest) -> Result<String, Error> {
    let path = absolute(&request.path)?;
    let failed = |error| failure(path, &error);
    // Looked at before it is opened: opening a FIFO waits for a writer.
    if !path.metadata().map_err(failed)?.is_file() {
        return Err(refused(format!("`{}` is not a regular file", path.display())));
    }
    let file = File::open(path).map_err(failed)?;
    let mut text = String::new();
    if request.line.is_none() && request.limit.is_none() {
        file.take(LONGEST_READ + 1).read_to_string(&mut text).map_err(failed)?;
        return if text.len() as u64 > LONGEST_READ { Err(too_long(path)) } else { Ok(text) };
    }
    let mut lines = BufReader::new(file);
    for _ in 1..request.line.unwrap_or(1) {
        lines.skip_until(b'\n').map_err(failed)?;
    }
    for _ in 0..request.limit.unwrap_or(u32::MAX) {
        let left = (LONGEST_READ + 1).saturating_sub(text.len() as u64);
        if (&mut lines).take(left).read_line(&mut text).map_err(failed)? == 0 {
            break;
        }
        if text.len() as u64 > LONGEST_READ {
            return Err(too_long(path));
        }
    }
    Ok(text)
}

/// The lines of a text that an agent asks for.
pub(super) fn part(text: &str, request: &ReadTextFileRequest) -> String {
    if request.line.is_none() && request.limit.is_none() {
        return text.to_owned();
    }
    let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let first = number(request.line.unwrap_or(1)).saturating_sub(1);
    text.split_inclusive('\n').skip(first).take(number(request.limit.unwrap_or(u32::MAX))).collect()
}

/// Replaces the text of a file, or creates the file. The change is atomic. Links and permissions
/// stay.
pub(super) fn write(request: &WriteTextFileRequest) -> Result<(), Error> {
    let path = absolute(&request.path)?;
    let failed = |error| failure(path, &error);
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned()); // it may not exist yet
    let folder = target.parent().ok_or_else(|| refused(format!("`{}` is a folder", path.display())))?;
    std::fs::create_dir_all(folder).map_err(failed)?;
    let content = request.content.as_bytes();
    let new = match target.metadata() {
        Ok(metadata) if !metadata.is_file() => {
            return Err(refused(format!("`{}` is not a regular file", path.display())));
        }
        Ok(_) => FileReplacement::of(&target, content),
        // It gets the permissions of any new file of this user.
        Err(_) => FileReplacement::new_file(&target, 0o666, content),
    };
    new.and_then(FileReplacement::commit).map_err(|error| failure(path, &error.source))?;
    Ok(())
}

/// The text of a file that is about to be replaced, for the question about it. `None` if there is
/// none that could be shown.
pub(super) fn old_text(path: &Path) -> Option<String> {
    let is_short = path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() < MOST_COMPARED);
    is_short.then(|| std::fs::read_to_string(path).ok()).flatten()
}

/// Whether a path lies inside a folder. Follows links, as far as the path exists.
pub(super) fn is_inside(path: &Path, folder: &Path) -> bool {
    let Ok(folder) = folder.canonicalize() else { return false };
    real(path).is_some_and(|real| real.starts_with(folder))
}

/// The target of a path. Follows links, as far as the path exists. A target inside `folder` begins
/// with the folder's own name.
pub(crate) fn leads_to(path: &Path, folder: &Path) -> Option<PathBuf> {
    let real = real(path)?;
    let inside = folder.canonicalize().ok().and_then(|root| Some(folder.join(real.strip_prefix(root).ok()?)));
    Some(inside.unwrap_or(real))
}

/// A path without links. `tools` has a stricter one, which refuses links to nothing. Here such a
/// link counts as the file it is: a write replaces it and does not follow it.
fn real(path: &Path) -> Option<PathBuf> {
    // The first existing ancestor decides where a new file would be. A `..` below it cannot be
    // resolved.
    let mut rest = PathBuf::new();
    for ancestor in path.ancestors() {
        if let Ok(real) = ancestor.canonicalize() {
            return Some(if rest.as_os_str().is_empty() { real } else { real.join(rest) });
        }
        rest = Path::new(ancestor.file_name()?).join(rest);
    }
    None
}

fn too_long(path: &Path) -> Error {
    let advice = "ask for a part of it with `line` and `limit`";
    refused(format!("`{}` is longer than {} MiB; {advice}", path.display(), LONGEST_READ >> 20))
}

fn absolute(path: &Path) -> Result<&Path, Error> {
    if path.is_absolute() {
        return Ok(path);
    }
    Err(Error::invalid_params().data(serde_json::json!(format!("`{}` is not absolute", path.display()))))
}

fn failure(path: &Path, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => {
            Error::new(ErrorCode::ResourceNotFound.into(), format!("there is no `{}`", path.display()))
        }
        io::ErrorKind::InvalidData => refused(format!("`{}` is not UTF-8 text", path.display())),
        _ => refused(format!("`{}`: {error}", path.display())),
    }
}

pub(super) fn refused(message: String) -> Error {
    Error::new(ErrorCode::InternalError.into(), message)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[track_caller]
    fn read_window(path: &Path, line: Option<u32>, limit: Option<u32>) -> String {
        read(&ReadTextFileRequest::new("s", path).line(line).limit(limit)).expect("it is there")
    }

    #[test]
    fn whole_files_and_line_ranges_are_read_unchanged() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("big.txt");
        let text = "line\r\n".repeat(200_000) + "last";
        std::fs::write(&path, &text).expect("written");
        assert_eq!(read_window(&path, None, None), text);
        assert_eq!(read_window(&path, Some(200_000), Some(5)), "line\r\nlast");
        assert_eq!(read_window(&path, None, Some(1)), "line\r\n");
        assert_eq!(read_window(&path, Some(1_000_000), None), "");
    }

    #[test]
    fn files_that_cannot_be_read_have_different_errors() {
        let folder = tempfile::tempdir().expect("a folder");
        let code = |path: &Path| read(&ReadTextFileRequest::new("s", path)).expect_err("not readable").code;
        assert_eq!(code(&folder.path().join("none")), ErrorCode::ResourceNotFound);
        assert_eq!(code(Path::new("relative")), ErrorCode::InvalidParams);
        assert_eq!(code(folder.path()), ErrorCode::InternalError);
        std::fs::write(folder.path().join("binary"), [0xFF, 0xFE]).expect("written");
        assert_eq!(code(&folder.path().join("binary")), ErrorCode::InternalError);
    }

    #[test]
    fn a_fifo_and_a_huge_file_are_refused_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let (fifo, huge) = (folder.path().join("fifo"), folder.path().join("huge"));
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("it runs").success());
        File::create(&huge).and_then(|file| file.set_len(LONGEST_READ + 1)).expect("made");
        let refusal = |path: &Path, limit: Option<u32>| {
            read(&ReadTextFileRequest::new("s", path).limit(limit)).expect_err("not readable").message
        };
        assert!(refusal(&fifo, None).ends_with("is not a regular file"));
        assert!(refusal(&huge, None).contains("longer than 64 MiB"));
        assert!(refusal(&huge, Some(1)).contains("longer than 64 MiB"));
    }

    #[test]
    fn writing_keeps_links_and_permissions_and_makes_folders() {
        let folder = tempfile::tempdir().expect("a folder");
        let [real, link, new] = ["real", "link", "a/b/new"].map(|name| folder.path().join(name));
        std::fs::write(&real, "old").expect("written");
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o751)).expect("set");
        symlink(&real, &link).expect("linked");
        for path in [&link, &new] {
            write(&WriteTextFileRequest::new("s", path, "text")).expect("written");
            assert_eq!(std::fs::read_to_string(path).expect("there"), "text");
        }
        assert!(link.is_symlink());
        assert_eq!(real.metadata().expect("there").permissions().mode() & 0o777, 0o751);
    }

    #[test]
    fn a_link_that_leaves_the_folder_is_outside() {
        let folder = tempfile::tempdir().expect("a folder");
        let inside = folder.path().join("in");
        std::fs::create_dir(&inside).expect("made");
        symlink(folder.path(), inside.join("out")).expect("linked");
        assert!(is_inside(&inside.join("new/file"), &inside));
        assert!(!is_inside(&inside.join("out/file"), &inside));
        assert!(!is_inside(&inside.join("../file"), &inside));
        assert!(!is_inside(&inside.join("new/../../file"), &inside));
    }
}
