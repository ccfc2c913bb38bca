//! What an encoded image is, without decoding all of it.

use std::fmt;

use super::{ImageFormat, PixelSize, base64, pixel_size};
use crate::lines::Counted;

/// Characters of base64 that are decoded to find the format and the size. Most headers are far shorter.
const HEADER: usize = 64 * 1024;

/// What an image is and how large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageInfo {
    /// What its bytes are, whatever the bundle called them.
    pub format: ImageFormat,
    /// Its size, where its header has it.
    pub size: Option<PixelSize>,
    /// How long the file is.
    pub bytes: usize,
}

/// Why an image cannot be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnusableImage {
    /// Characters that base64 does not have, or too few.
    #[error("not valid base64")]
    NotBase64,
    /// Bytes that are none of the formats.
    #[error("not an image of a known format")]
    UnknownFormat,
}

impl ImageInfo {
    /// Looks at an image as bundles hold it: base64, with line breaks or without, or the text of an SVG.
    ///
    /// Reads all of the text once, but decodes no more than its beginning.
    pub fn of_encoded(mime: &str, data: &str) -> Result<Self, UnusableImage> {
        if mime == ImageFormat::Svg.mime() {
            return Self::of_bytes(data.as_bytes(), data.len());
        }
        let bytes = decoded_length(data).ok_or(UnusableImage::NotBase64)?;
        let decode = |data: &str| base64(data).map_err(|_| UnusableImage::NotBase64);
        let info = Self::of_bytes(&decode(&beginning(data))?, bytes)?;
        if info.size.is_some() || data.len() <= HEADER {
            return Ok(info);
        }
        // A photograph may carry a small copy of itself before its size.
        Self::of_bytes(&decode(data)?, bytes)
    }

    fn of_bytes(beginning: &[u8], bytes: usize) -> Result<Self, UnusableImage> {
        let format = ImageFormat::of(beginning).ok_or(UnusableImage::UnknownFormat)?;
        Ok(Self { format, size: pixel_size(format, beginning), bytes })
    }
}

/// What the image is, in words: `image/png, 640x480, 12,345 bytes`.
impl fmt::Display for ImageInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.format.mime())?;
        if let Some(PixelSize { width, height }) = self.size {
            write!(f, ", {width}x{height}")?;
        }
        write!(f, ", {}", Counted(self.bytes as u64, "byte"))
    }
}

/// How many bytes a base64 text encodes. `None` if it is not base64.
fn decoded_length(data: &str) -> Option<usize> {
    let data = data.trim_ascii_end();
    let padding = data.bytes().rev().take_while(|byte| *byte == b'=').count();
    let mut letters = 0_usize;
    for byte in &data.as_bytes()[..data.len() - padding] {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' => letters += 1,
            _ if byte.is_ascii_whitespace() => {}
            _ => return None,
        }
    }
    // A last group of one letter is less than a byte.
    (padding <= 2 && letters % 4 != 1).then_some(letters / 4 * 3 + (letters % 4).saturating_sub(1))
}

/// The first characters, as many as make whole bytes.
fn beginning(data: &str) -> String {
    let letters = data.bytes().filter(|byte| !byte.is_ascii_whitespace());
    letters.take(HEADER).map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, prelude::BASE64_STANDARD};

    use super::*;
    use crate::display::image::Image;

    fn png(padding: usize) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x03\0\0\0\x02\x08\x02\0\0\0".to_vec();
        bytes.extend(std::iter::repeat_n(7, padding));
        bytes
    }

    #[test]
    fn an_encoded_image_is_what_its_bytes_are() {
        for padding in [0, 1, 2, 3, 100, 100_000] {
            let bytes = png(padding);
            let encoded = BASE64_STANDARD.encode(&bytes);
            let image = Image::new(bytes).unwrap();
            for data in [encoded.clone(), encoded.trim_end_matches('=').to_owned(), lines(&encoded)] {
                assert_eq!(ImageInfo::of_encoded("image/png", &data), Ok(image.info()), "{padding}");
            }
        }
        let svg = r#"<svg width="10" height="20"></svg>"#;
        let info = ImageInfo::of_encoded("image/svg+xml", svg).unwrap();
        assert_eq!(info.to_string(), "image/svg+xml, 10x20, 34 bytes");
    }

    #[test]
    fn a_size_behind_a_long_preamble_is_found() {
        // A JPEG with 60 kB of metadata, twice, before its size.
        let mut bytes = vec![0xff, 0xd8];
        for _ in 0..2 {
            bytes.extend([0xff, 0xe1, 0xea, 0x62]);
            bytes.extend(std::iter::repeat_n(0, 0xea60));
        }
        bytes.extend([0xff, 0xc0, 0, 11, 8, 0, 5, 0, 9, 1, 1, 0x11, 0]);
        let data = BASE64_STANDARD.encode(&bytes);
        let size = ImageInfo::of_encoded("image/jpeg", &data).unwrap().size;
        assert_eq!(size, Some(PixelSize { width: 9, height: 5 }));
    }

    #[test]
    fn data_that_is_no_image_is_refused() {
        let of = |data: &str| ImageInfo::of_encoded("image/png", data).unwrap_err().to_string();
        assert_eq!(of("not base64!"), "not valid base64");
        assert_eq!(of(&format!("{}!", BASE64_STANDARD.encode(png(3000)))), "not valid base64");
        assert_eq!(of("QUJD"), "not an image of a known format");
        assert_eq!(of(""), "not an image of a known format");
    }

    fn lines(text: &str) -> String {
        let lines = text.as_bytes().chunks(76).map(|line| str::from_utf8(line).unwrap());
        lines.collect::<Vec<_>>().join("\n") + "\n"
    }
}
