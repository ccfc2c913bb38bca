//! Images: taken from a bundle, measured, and made to fit what a model accepts.

mod codec;
mod info;

use std::{borrow::Cow, fmt};

use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
    prelude::BASE64_STANDARD,
};
use cellwright_cell::MimeData;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use self::codec::CodecError;
pub use self::info::{ImageInfo, UnusableImage};
use crate::artifacts::ArtifactKind;

/// Images of more pixels than this are not decoded: they would take gigabytes.
const MOST_PIXELS: u64 = 100_000_000;

/// An image is not made smaller than this in the attempt to fit a limit of bytes.
const SMALLEST_SIDE: u32 = 64;

/// An image, as it was displayed.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    /// What its bytes are, whatever the bundle called them.
    pub format: ImageFormat,
    /// The file: not base64.
    pub bytes: Vec<u8>,
    /// Its size, if its header has it.
    pub size: Option<PixelSize>,
}

/// A format that images are displayed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageFormat {
    /// PNG.
    Png,
    /// JPEG.
    Jpeg,
    /// WebP.
    Webp,
    /// GIF.
    Gif,
    /// SVG, which is text.
    Svg,
}

/// Width and height.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PixelSize {
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

/// How large an image may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageLimits {
    /// Most bytes of the file.
    pub bytes: usize,
    /// Most pixels of its longer side.
    pub side: u32,
}

/// An image without its encoding.
#[derive(Clone, PartialEq, Eq)]
pub struct Pixels {
    /// Its size.
    pub size: PixelSize,
    /// Red, green, blue and opacity of each pixel, row by row.
    pub rgba: Vec<u8>,
}

/// What replaces an image that cannot be shown.
#[derive(Debug, thiserror::Error)]
pub(super) enum BrokenImage {
    #[error("[{mime} that is not an image]")]
    OtherContent { mime: &'static str },
    #[error("[{mime} that could not be decoded: {error}]")]
    NotBase64 { mime: &'static str, error: base64::DecodeError },
}

/// Why an image does not fit and could not be made to.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{image} not shown: {reason}")]
pub struct UnboundedImage {
    image: String,
    reason: String,
}

impl Default for ImageLimits {
    /// What models take without scaling it down themselves.
    fn default() -> Self {
        Self { bytes: 1024 * 1024, side: 1568 }
    }
}

/// An image travels as its file.
impl Serialize for Image {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD.encode(&self.bytes))
    }
}

impl<'de> Deserialize<'de> for Image {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = BASE64_STANDARD.decode(String::deserialize(deserializer)?).map_err(D::Error::custom)?;
        Self::new(bytes).ok_or_else(|| D::Error::custom("not an image"))
    }
}

impl Image {
    /// An image file. `None` if its bytes have none of the formats.
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        let format = ImageFormat::of(&bytes)?;
        let size = pixel_size(format, &bytes);
        Some(Self { format, bytes, size })
    }

    /// What it is and how large.
    pub fn info(&self) -> ImageInfo {
        ImageInfo { format: self.format, size: self.size, bytes: self.bytes.len() }
    }

    /// The image of a bundle, in the format that most can show; or a note on why it cannot be shown.
    pub(super) fn from_bundle(bundle: &MimeData) -> Option<Result<Self, BrokenImage>> {
        let present = |format: ImageFormat| Some((format.mime(), bundle.text(format.mime())?));
        let mut broken = None;
        for (mime, text) in ImageFormat::ALL.into_iter().filter_map(present) {
            let bytes = match mime {
                "image/svg+xml" => Ok(text.into_owned().into_bytes()),
                _ => base64(&text),
            };
            match bytes.map(Self::new) {
                Ok(Some(image)) => return Some(Ok(image)),
                Ok(None) => broken = Some(BrokenImage::OtherContent { mime }),
                Err(error) => broken = Some(BrokenImage::NotBase64 { mime, error }),
            }
        }
        broken.map(Err)
    }

    /// The image as a model can take it: itself if it is within `limits`, or else scaled down, as JPEG where
    /// PNG would be too long.
    pub fn bounded(&self, limits: ImageLimits) -> Result<Cow<'_, Self>, UnboundedImage> {
        let refused = |reason: &str| UnboundedImage { image: self.to_string(), reason: reason.to_owned() };
        if self.format == ImageFormat::Svg {
            return Err(refused("models take no SVG; it is text"));
        }
        let size = self.size.ok_or_else(|| refused("its size is unknown"))?;
        if self.bytes.len() <= limits.bytes && size.longer() <= limits.side {
            return Ok(Cow::Borrowed(self));
        }
        let decoded = self.decoded(size).map_err(|reason| refused(&reason.to_string()))?;
        let mut longer = size.longer().min(limits.side);
        while longer >= SMALLEST_SIDE.min(size.longer()) {
            let is_smaller = longer < size.longer();
            let scaled = if is_smaller { &decoded.within(longer, longer) } else { &decoded };
            for encode in [Pixels::to_png, Pixels::to_jpeg] {
                let bytes = encode(scaled).map_err(|reason| refused(&reason.to_string()))?;
                if bytes.len() <= limits.bytes {
                    return Self::new(bytes)
                        .map(Cow::Owned)
                        .ok_or_else(|| refused("it could not be encoded"));
                }
            }
            longer = longer * 3 / 4;
        }
        Err(refused("it is too long even when scaled down"))
    }
}

impl Image {
    /// Its pixels, made fewer if it is wider than `width`.
    pub fn pixels(&self, width: u32) -> Result<Pixels, UnboundedImage> {
        let refused = |reason: String| UnboundedImage { image: self.to_string(), reason };
        let size = self.size.ok_or_else(|| refused("its size is unknown".to_owned()))?;
        let decoded = self.decoded(size).map_err(|reason| refused(reason.to_string()))?;
        Ok(if size.width > width { decoded.within(width.max(1), size.height) } else { decoded })
    }

    fn decoded(&self, size: PixelSize) -> Result<Pixels, CodecError> {
        if u64::from(size.width) * u64::from(size.height) > MOST_PIXELS {
            return Err(CodecError::TooLarge);
        }
        match self.format {
            ImageFormat::Png => Ok(Pixels::from_png(&self.bytes)?),
            ImageFormat::Jpeg => Pixels::from_jpeg(&self.bytes),
            ImageFormat::Webp | ImageFormat::Gif | ImageFormat::Svg => Err(CodecError::OtherFormat),
        }
    }
}

/// What the image is, in words.
impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.info().fmt(f)
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({self})")
    }
}

impl ImageFormat {
    /// The most widely shown first: a bundle often holds one image in several formats.
    const ALL: [Self; 5] = [Self::Png, Self::Jpeg, Self::Webp, Self::Gif, Self::Svg];

    /// Its MIME type.
    pub fn mime(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Webp => "image/webp",
            Self::Gif => "image/gif",
            Self::Svg => "image/svg+xml",
        }
    }

    /// The kind of artifact to store it as.
    pub fn kind(self) -> ArtifactKind {
        match self {
            Self::Png => ArtifactKind::Png,
            Self::Jpeg => ArtifactKind::Jpeg,
            Self::Webp => ArtifactKind::Webp,
            Self::Gif => ArtifactKind::Gif,
            Self::Svg => ArtifactKind::Svg,
        }
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        match imagesize::image_type(bytes) {
            Ok(imagesize::ImageType::Png) => Some(Self::Png),
            Ok(imagesize::ImageType::Jpeg) => Some(Self::Jpeg),
            Ok(imagesize::ImageType::Webp) => Some(Self::Webp),
            Ok(imagesize::ImageType::Gif) => Some(Self::Gif),
            _ => memchr::memmem::find(bytes, b"<svg").map(|_| Self::Svg),
        }
    }
}

impl PixelSize {
    fn checked(width: usize, height: usize) -> Option<Self> {
        Some(Self { width: width.try_into().ok()?, height: height.try_into().ok()? })
    }

    fn longer(self) -> u32 {
        self.width.max(self.height)
    }
}

/// Decodes base64 as it is found in bundles: with line breaks, with padding or without.
fn base64(text: &str) -> Result<Vec<u8>, base64::DecodeError> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    if text.bytes().any(|byte| byte.is_ascii_whitespace()) {
        let packed: String = text.split_ascii_whitespace().collect();
        return LENIENT.decode(packed);
    }
    LENIENT.decode(text)
}

/// The size that the beginning of a file has.
fn pixel_size(format: ImageFormat, bytes: &[u8]) -> Option<PixelSize> {
    match format {
        ImageFormat::Svg => svg_size(bytes),
        ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::Webp | ImageFormat::Gif => {
            let size = imagesize::blob_size(bytes).ok()?;
            PixelSize::checked(size.width, size.height)
        }
    }
}

/// The size in the attributes of the outermost element: `width` and `height`, or else the `viewBox`.
fn svg_size(bytes: &[u8]) -> Option<PixelSize> {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(16 * 1024)]);
    let (_, tag) = text.split_once("<svg")?;
    let (tag, _) = tag.split_once('>')?;
    let attribute = |name: &str| {
        let (before, value) = tag.split_once(&format!("{name}="))?;
        before.ends_with(|ch: char| ch.is_whitespace()).then_some(())?;
        let quote = value.chars().next()?;
        value[1..].split(quote).next()
    };
    let number = |text: &str| {
        let digits = text.trim().trim_end_matches(|ch: char| !ch.is_ascii_digit());
        digits.parse::<f64>().ok().filter(|size| (0.0..1e6).contains(size))
    };
    let own = attribute("width").and_then(number).zip(attribute("height").and_then(number));
    let (width, height) = own.or_else(|| {
        let mut sides =
            attribute("viewBox")?.split([' ', ',']).filter(|part| !part.is_empty()).skip(2).map(number);
        sides.next()?.zip(sides.next()?)
    })?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be within 0 and 1e6"
    )]
    Some(PixelSize { width: width.ceil() as u32, height: height.ceil() as u32 })
}
