//! Which files are notebooks: one rule for every door.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use cellwright_notebook::Notebook;

/// Files past this are text, whatever they hold, unless their name says that they are notebooks.
const LARGEST: u64 = 64 * 1024 * 1024;

/// How a file is read and changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Cell by cell.
    Notebook,
    /// As plain text.
    Text,
}

impl FileKind {
    /// A file is a notebook if its name ends in `.ipynb`, in any case, or if it exists and holds a notebook. Any other
    /// file is text. Blocks on files.
    pub fn of(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.to_ascii_lowercase().ends_with(".ipynb") || holds_notebook(path) {
            Self::Notebook
        } else {
            Self::Text
        }
    }
}

fn holds_notebook(path: &Path) -> bool {
    // A named pipe or a device is not opened.
    let is_small_file = path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LARGEST);
    let Some(mut file) = is_small_file.then(|| File::open(path).ok()).flatten() else { return false };
    let mut start = [0; 64];
    let Ok(count) = file.read(&mut start) else { return false };
    let text = start[..count].trim_ascii_start();
    if !text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text).trim_ascii_start().starts_with(b"{") {
        return false;
    }
    let mut content = start[..count].to_vec();
    file.take(LARGEST).read_to_end(&mut content).is_ok() && Notebook::parse(content).is_ok()
}
