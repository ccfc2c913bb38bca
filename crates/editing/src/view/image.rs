//! Images of a notebook, by their addresses.

use cellwright_notebook::select::ImageAddress;
use cellwright_notebook::{CellRef, NoSuchCell, NotBase64, Notebook, NotebookCell};
use cellwright_output::{Image, ImageFormat, ImageInfo};

use super::content::on_one_line;
use super::{FoundImage, NotebookView, ViewError, push_line};

/// An image and what it is called. [`LabelledImage::load`] decodes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledImage {
    /// What to read to see it, after the name of the file: `#3.0`, or `#3:plot.png` for an attachment.
    pub label: String,
    /// What it is and how large.
    pub info: ImageInfo,
    address: ImageAddress,
}

/// Why there is no such image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// No such cell.
    #[error(transparent)]
    NoSuchCell(#[from] NoSuchCell),
    /// The cell has no such image.
    #[error("cell {cell} has no image {address}; a summary of the outputs lists those it has")]
    Missing {
        /// The cell.
        cell: usize,
        /// The address.
        address: String,
    },
    /// Its data is not base64.
    #[error(transparent)]
    NotBase64(#[from] NotBase64),
    /// Its data is no image.
    #[error("image {address} is not an image of a known format")]
    UnknownFormat {
        /// The address.
        address: String,
    },
}

impl LabelledImage {
    pub(super) fn new(address: ImageAddress, info: ImageInfo) -> Self {
        Self { label: address.part().to_string(), info, address }
    }

    /// Decodes it from the notebook that was viewed.
    pub fn load(&self, notebook: &Notebook) -> Result<Image, ImageError> {
        load_image(notebook, &self.address)
    }
}

/// Decodes an image of a notebook.
pub fn load_image(notebook: &Notebook, address: &ImageAddress) -> Result<Image, ImageError> {
    Image::new(image_bytes(notebook, address)?)
        .ok_or_else(|| ImageError::UnknownFormat { address: address.to_string() })
}

/// The bytes of an image file in a notebook, whatever its format.
pub fn image_bytes(notebook: &Notebook, address: &ImageAddress) -> Result<Vec<u8>, ImageError> {
    let cell = notebook.cell(notebook.locate(address.cell())?);
    let missing = || ImageError::Missing { cell: cell.index(), address: address.to_string() };
    Ok(image_in(&cell, address).ok_or_else(missing)?.bytes()?)
}

/// The address of an image of an output.
pub(super) fn in_output(cell: usize, output: usize, image: usize) -> ImageAddress {
    ImageAddress::Output { cell: CellRef::Index(cell), output, image }
}

/// The image in its cell.
fn image_in<'a>(
    cell: &NotebookCell<'a>,
    address: &ImageAddress,
) -> Option<cellwright_notebook::EncodedImage<'a>> {
    match address {
        ImageAddress::Output { output, image, .. } => {
            cell.outputs().get(*output).and_then(|output| output.images().into_iter().nth(*image))
        }
        ImageAddress::Attachment { name, .. } => {
            let attached = cell.attachments().into_iter().find(|(attached, _)| attached == name);
            attached.and_then(|(_, images)| images.into_iter().next())
        }
    }
}

impl NotebookView {
    /// One image alone: a line about it, and the image beside the text. An SVG is text and is shown as text.
    pub(super) fn show_image(&mut self, notebook: &Notebook, address: ImageAddress) -> Result<(), ViewError> {
        let cell = notebook.cell(notebook.locate(address.cell())?);
        if let ImageAddress::Attachment { name, .. } = &address
            && !cell.attachments().iter().any(|(attached, _)| attached == name)
        {
            return Err(no_such_attachment(&cell, name));
        }
        let image = image_in(&cell, &address);
        let image = image.ok_or_else(|| ViewError::NoSuchImage {
            cell: cell.index(),
            address: address.part().to_string(),
        })?;
        let found = FoundImage::of(&image);
        push_line(&mut self.text, format_args!("[image {}: {}]", address.part(), found.describe()));
        match found.info {
            Ok(info) if info.format == ImageFormat::Svg => {
                let text = String::from_utf8(image.bytes().unwrap_or_default()).unwrap_or_default();
                self.text.push_str(&text);
            }
            Ok(info) => self.images.push(LabelledImage::new(address, info)),
            Err(_) => {}
        }
        Ok(())
    }
}

fn no_such_attachment(cell: &NotebookCell<'_>, name: &str) -> ViewError {
    let there = cell.attachments().into_iter().map(|(name, _)| name.into_owned()).collect();
    ViewError::NoSuchAttachment { cell: cell.index(), name: name.to_owned(), there }
}

/// What a cell has attached, in words.
pub(super) fn attachments_there(names: &[String]) -> String {
    if names.is_empty() {
        return "nothing is attached to it".to_owned();
    }
    let names = names.iter().map(|name| format!("`{}`", on_one_line(name)));
    format!("attached are {}", names.collect::<Vec<_>>().join(", "))
}

/// The attachments of a cell that callers can show.
pub(super) fn attached(cell: &NotebookCell<'_>) -> Vec<LabelledImage> {
    let named = cell.attachments().into_iter().filter_map(|(name, images)| {
        let image = images.first()?;
        let info = ImageInfo::of_encoded(&image.mime, &image.data).ok()?;
        let address =
            ImageAddress::Attachment { cell: CellRef::Index(cell.index()), name: name.into_owned() };
        Some(LabelledImage::new(address, info))
    });
    named.filter(|image| image.info.format != ImageFormat::Svg).collect()
}
