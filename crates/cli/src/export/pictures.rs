//! Pictures that a page carries in itself.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellwright_notebook::{EncodedImage, NotebookCell};
use cellwright_output::{data_address, is_inside};

/// Larger files stay links.
const LARGEST: u64 = 32 << 20;

const TYPES: [(&str, &str); 6] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("svg", "image/svg+xml"),
];

/// The pictures that a notebook can name: files in its folder.
pub(super) struct PictureFiles {
    folder: Option<PathBuf>,
}

impl PictureFiles {
    /// The files in `folder` and below.
    pub(super) fn in_folder(folder: &Path) -> Self {
        // The parent of a bare name is empty.
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        Self { folder: folder.canonicalize().ok() }
    }

    /// The address to put into a page for what a cell calls `address`. `None` if that would be fetched from elsewhere.
    pub(super) fn address(&self, address: &str, cell: &NotebookCell<'_>) -> Option<String> {
        if let Some(data) = address.strip_prefix("data:") {
            let (mime, base64) = data.split_once(";base64,")?;
            return data_address("image", mime, base64);
        }
        if let Some(name) = address.strip_prefix("attachment:") {
            let name = percent_encoding::percent_decode_str(name).decode_utf8_lossy();
            let attached = cell.attachments();
            let (_, images) = attached.iter().find(|(known, _)| *known == name)?;
            return inline(images.first()?);
        }
        let (mime, bytes) = self.file(address)?;
        data_address("image", mime, &STANDARD.encode(bytes))
    }

    /// A picture in the notebook's folder. A notebook from elsewhere must not carry other files into a page.
    fn file(&self, address: &str) -> Option<(&'static str, Vec<u8>)> {
        let path = address.split(['?', '#']).next().filter(|_| is_inside(address))?;
        let path = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
        let folder = self.folder.as_ref()?;
        let file = folder.join(&*path).canonicalize().ok().filter(|file| file.starts_with(folder))?;
        let extension = file.extension()?.to_str()?.to_ascii_lowercase();
        let (_, mime) = TYPES.iter().find(|(known, _)| *known == extension)?;
        let about = fs::metadata(&file).ok()?;
        if !about.is_file() || about.len() > LARGEST {
            return None;
        }
        Some((mime, fs::read(file).ok()?))
    }
}

/// An image of a notebook as an address. A drawing runs no scripts where pictures are shown.
pub(super) fn inline(image: &EncodedImage<'_>) -> Option<String> {
    let is_shown = TYPES.iter().any(|(_, mime)| *mime == image.mime);
    let bytes = image.bytes().ok().filter(|bytes| is_shown && !bytes.is_empty())?;
    data_address("image", &image.mime, &STANDARD.encode(bytes))
}

/// What the file of an image is called after its name.
pub(super) fn extension(mime: &str) -> Option<&'static str> {
    TYPES.iter().find(|(_, known)| *known == mime).map(|(extension, _)| *extension)
}
