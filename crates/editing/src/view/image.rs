//! Images of a notebook, by their addresses.

use std::fmt;
use std::str::FromStr;

use cellwright_notebook::select::NotebookPart;
use cellwright_notebook::{Cell, CellRef, NoSuchCell, NotBase64, Notebook};
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

/// Where in a notebook an image is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageAddress {
    /// `3.0`, and `3.0.1` for the second of several in one output.
    Output {
        /// The cell.
        cell: CellRef,
        /// Which of its outputs.
        output: usize,
        /// Which of the output's images: PNG before JPEG before others.
        image: usize,
    },
    /// `3:plot.png`: an attachment of a markdown or raw cell.
    Attachment {
        /// The cell.
        cell: CellRef,
        /// What the cell's text calls it.
        name: String,
    },
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
        self.address.load(notebook)
    }
}

impl ImageAddress {
    pub(super) fn in_output(cell: usize, output: usize, image: usize) -> Self {
        Self::Output { cell: CellRef::Index(cell), output, image }
    }

    /// What to read to see it.
    pub(super) fn part(&self) -> NotebookPart {
        match self.clone() {
            Self::Output { cell, output, image: 0 } => NotebookPart::Output { cell, output },
            Self::Output { cell, output, image } => NotebookPart::OutputImage { cell, output, image },
            Self::Attachment { cell, name } => NotebookPart::Attachment { cell, name },
        }
    }

    /// The image.
    pub fn load(&self, notebook: &Notebook) -> Result<Image, ImageError> {
        Image::new(self.bytes(notebook)?)
            .ok_or_else(|| ImageError::UnknownFormat { address: self.to_string() })
    }

    /// The image in its cell.
    fn image<'a>(&self, cell: &Cell<'a>) -> Option<cellwright_notebook::Image<'a>> {
        match self {
            Self::Output { output, image, .. } => {
                cell.outputs().get(*output).and_then(|output| output.images().into_iter().nth(*image))
            }
            Self::Attachment { name, .. } => {
                let attached = cell.attachments().into_iter().find(|(attached, _)| attached == name);
                attached.and_then(|(_, images)| images.into_iter().next())
            }
        }
    }

    /// The bytes of the image file, whatever its format.
    pub fn bytes(&self, notebook: &Notebook) -> Result<Vec<u8>, ImageError> {
        let (Self::Output { cell, .. } | Self::Attachment { cell, .. }) = self;
        let cell = notebook.cell(notebook.locate(cell)?);
        let image = self.image(&cell);
        let image =
            image.ok_or_else(|| ImageError::Missing { cell: cell.index(), address: self.to_string() })?;
        Ok(image.bytes()?)
    }
}

impl NotebookView {
    /// One image alone: what it is, and the image beside the text. Of an SVG, which is text, its text.
    pub(super) fn show_image(&mut self, notebook: &Notebook, address: ImageAddress) -> Result<(), ViewError> {
        let (ImageAddress::Output { cell, .. } | ImageAddress::Attachment { cell, .. }) = &address;
        let cell = notebook.cell(notebook.locate(cell)?);
        if let ImageAddress::Attachment { name, .. } = &address
            && !cell.attachments().iter().any(|(attached, _)| attached == name)
        {
            return Err(no_such_attachment(&cell, name));
        }
        let image = address.image(&cell);
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

fn no_such_attachment(cell: &Cell<'_>, name: &str) -> ViewError {
    let there = cell.attachments().into_iter().map(|(name, _)| name.into_owned()).collect();
    ViewError::NoSuchAttachment { cell: cell.index(), name: name.to_owned(), there }
}

/// Why a text names no image.
#[derive(Debug, thiserror::Error)]
pub enum ImageAddressError {
    /// Its cell is none.
    #[error("{0}")]
    Cell(<CellRef as FromStr>::Err),
    /// The output or the image has no number.
    #[error("`{0}` is not a number")]
    NotNumber(String),
    /// It has another form.
    #[error("an image is named CELL.OUTPUT, as in 3.0, or CELL:NAME if it is attached")]
    NoImage,
}

impl FromStr for ImageAddress {
    type Err = ImageAddressError;

    fn from_str(text: &str) -> Result<Self, ImageAddressError> {
        let cell = |text: &str| text.parse().map_err(ImageAddressError::Cell);
        let number = |text: &str| text.parse().map_err(|_| ImageAddressError::NotNumber(text.to_owned()));
        let (scheme, rest) = text.split_at(if text.starts_with("id:") { "id:".len() } else { 0 });
        if let Some((of, name)) = rest.split_once(':') {
            let name = name.to_owned();
            return Ok(Self::Attachment { cell: cell(&format!("{scheme}{of}"))?, name });
        }
        let parts: Vec<_> = text.split('.').collect();
        match parts[..] {
            [of, output] => Ok(Self::Output { cell: cell(of)?, output: number(output)?, image: 0 }),
            [of, output, image] => {
                Ok(Self::Output { cell: cell(of)?, output: number(output)?, image: number(image)? })
            }
            _ => Err(ImageAddressError::NoImage),
        }
    }
}

impl fmt::Display for ImageAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output { cell, output, image: 0 } => write!(f, "{cell}.{output}"),
            Self::Output { cell, output, image } => write!(f, "{cell}.{output}.{image}"),
            Self::Attachment { cell, name } => write!(f, "{cell}:{name}"),
        }
    }
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
pub(super) fn attached(cell: &Cell<'_>) -> Vec<LabelledImage> {
    let named = cell.attachments().into_iter().filter_map(|(name, images)| {
        let image = images.first()?;
        let info = ImageInfo::of_encoded(&image.mime, &image.data).ok()?;
        let address =
            ImageAddress::Attachment { cell: CellRef::Index(cell.index()), name: name.into_owned() };
        Some(LabelledImage::new(address, info))
    });
    named.filter(|image| image.info.format != ImageFormat::Svg).collect()
}
