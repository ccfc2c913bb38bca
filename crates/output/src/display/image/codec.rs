//! PNG and JPEG files to pixels and back, and fewer pixels.

use std::io::Cursor;

use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use zune_jpeg::{
    JpegDecoder,
    errors::DecodeErrors,
    zune_core::{bytestream::ZCursor, colorspace::ColorSpace, options::DecoderOptions},
};

use super::{PixelSize, Pixels};

const JPEG_QUALITY: u8 = 85;

/// What the decoder of PNG may take beside the pixels.
const PNG_MEMORY: usize = 512 * 1024 * 1024;

/// Why an image could not be decoded or encoded.
#[derive(Debug, thiserror::Error)]
pub(super) enum CodecError {
    #[error("it is too large to be decoded")]
    TooLarge,
    #[error("only PNG and JPEG can be decoded")]
    OtherFormat,
    #[error(transparent)]
    Png(#[from] png::DecodingError),
    #[error("{}", .0.to_string().trim_end())]
    Jpeg(DecodeErrors),
    #[error("it has no size")]
    NoSize,
    #[error("it is too wide for JPEG")]
    TooWide,
    #[error(transparent)]
    EncodePng(png::EncodingError),
    #[error(transparent)]
    EncodeJpeg(jpeg_encoder::EncodingError),
}

impl Pixels {
    pub(super) fn from_png(file: &[u8]) -> Result<Self, png::DecodingError> {
        let mut decoder = png::Decoder::new_with_limits(Cursor::new(file), png::Limits { bytes: PNG_MEMORY });
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info()?;
        let mut samples = vec![0; reader.output_buffer_size().ok_or(png::DecodingError::LimitsExceeded)?];
        let frame = reader.next_frame(&mut samples)?;
        samples.truncate(frame.buffer_size());
        let rgba = match frame.color_type {
            png::ColorType::Rgba => samples,
            png::ColorType::Rgb => with_opacity(&samples),
            png::ColorType::GrayscaleAlpha => samples
                .as_chunks()
                .0
                .iter()
                .flat_map(|&[grey, opacity]| [grey, grey, grey, opacity])
                .collect(),
            // A palette has been replaced by its colours.
            png::ColorType::Grayscale | png::ColorType::Indexed => {
                samples.iter().flat_map(|&grey| [grey, grey, grey, u8::MAX]).collect()
            }
        };
        Ok(Self { size: PixelSize { width: frame.width, height: frame.height }, rgba })
    }

    pub(super) fn from_jpeg(file: &[u8]) -> Result<Self, CodecError> {
        let options = DecoderOptions::default()
            .set_strict_mode(false)
            .set_max_width(usize::from(u16::MAX))
            .set_max_height(usize::from(u16::MAX))
            .jpeg_set_out_colorspace(ColorSpace::RGB);
        let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), options);
        let rgb = decoder.decode().map_err(CodecError::Jpeg)?;
        let size = decoder.dimensions().and_then(|(width, height)| PixelSize::checked(width, height));
        let size = size.ok_or(CodecError::NoSize)?;
        Ok(Self { size, rgba: with_opacity(&rgb) })
    }

    /// A PNG file, without channels for opacity and colour if the image has none.
    pub(super) fn to_png(&self) -> Result<Vec<u8>, CodecError> {
        let pixels = self.rgba.as_chunks::<4>().0;
        let is_opaque = pixels.iter().all(|&[.., opacity]| opacity == u8::MAX);
        let is_grey = pixels.iter().all(|&[red, green, blue, _]| red == green && green == blue);
        let (color, parts): (_, &[usize]) = match (is_grey, is_opaque) {
            (true, true) => (png::ColorType::Grayscale, &[0]),
            (true, false) => (png::ColorType::GrayscaleAlpha, &[0, 3]),
            (false, true) => (png::ColorType::Rgb, &[0, 1, 2]),
            (false, false) => (png::ColorType::Rgba, &[0, 1, 2, 3]),
        };
        let samples: Vec<u8> =
            pixels.iter().flat_map(|pixel| parts.iter().map(|part| pixel[*part])).collect();
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, self.size.width, self.size.height);
        encoder.set_color(color);
        encoder.set_compression(png::Compression::Fast);
        encoder.set_filter(png::Filter::Adaptive);
        let written = encoder.write_header().and_then(|mut header| header.write_image_data(&samples));
        written.map_err(CodecError::EncodePng)?;
        Ok(file)
    }

    pub(super) fn to_jpeg(&self) -> Result<Vec<u8>, CodecError> {
        let side = |length: u32| u16::try_from(length).map_err(|_| CodecError::TooWide);
        let (width, height) = (side(self.size.width)?, side(self.size.height)?);
        // JPEG knows no transparency: what shows through is white, like a page.
        let over_white = |part: u8, opacity: u8| {
            let sum = u16::from(part) * u16::from(opacity) + 255 * (255 - u16::from(opacity));
            u8::try_from(sum / 255).unwrap_or(u8::MAX)
        };
        let pixels = self.rgba.as_chunks().0.iter();
        let rgb: Vec<u8> = pixels
            .flat_map(|&[parts @ .., opacity]: &[u8; 4]| parts.map(|part| over_white(part, opacity)))
            .collect();
        let mut file = Vec::new();
        let mut encoder = Encoder::new(&mut file, JPEG_QUALITY);
        // Thin coloured lines keep their colours.
        encoder.set_sampling_factor(SamplingFactor::R_4_4_4);
        encoder.encode(&rgb, width, height, ColorType::Rgb).map_err(CodecError::EncodeJpeg)?;
        Ok(file)
    }

    /// The same image within `width` and `height`, each pixel the mean of those it replaces. One that fits is not
    /// made larger.
    pub(super) fn within(&self, width: u32, height: u32) -> Self {
        let (old, room) = (self.size, PixelSize { width, height });
        let is_wide =
            u64::from(old.width) * u64::from(room.height) >= u64::from(old.height) * u64::from(room.width);
        let (side, longest) = if is_wide { (old.width, room.width) } else { (old.height, room.height) };
        let shortened = |length: u32| {
            let (side, longest) = (u64::from(side.max(1)), u64::from(longest.min(side)));
            u32::try_from((u64::from(length) * longest + side / 2) / side).unwrap_or(length).max(1)
        };
        let new = PixelSize { width: shortened(old.width), height: shortened(old.height) };
        let source = self.rgba.as_chunks::<4>().0;
        let columns: Vec<_> = (0..new.width).map(|column| share(column, new.width, old.width)).collect();
        let mut rgba = Vec::with_capacity(4 * columns.len() * new.height as usize);
        for row in 0..new.height {
            let rows = share(row, new.height, old.height);
            for columns in &columns {
                // Colours count as much as they are opaque.
                let (mut sums, mut opacity, mut count) = ([0_u64; 3], 0_u64, 0_u64);
                for row in rows.clone() {
                    let start = row * old.width as usize;
                    for pixel in &source[start + columns.start..start + columns.end] {
                        let weight = u64::from(pixel[3]);
                        for (sum, part) in sums.iter_mut().zip(pixel) {
                            *sum += u64::from(*part) * weight;
                        }
                        opacity += weight;
                        count += 1;
                    }
                }
                let mean = |sum: u64, of: u64| u8::try_from((sum + of / 2) / of.max(1)).unwrap_or(u8::MAX);
                rgba.extend(sums.map(|sum| mean(sum, opacity)));
                rgba.push(mean(opacity, count));
            }
        }
        Self { size: new, rgba }
    }
}

/// Which of the `old` columns one of the `new` columns represents. At least one.
fn share(column: u32, new: u32, old: u32) -> std::ops::Range<usize> {
    let bound = |column: u64| usize::try_from(column * u64::from(old) / u64::from(new)).unwrap_or(usize::MAX);
    let start = bound(u64::from(column));
    start..bound(u64::from(column) + 1).max(start + 1)
}

fn with_opacity(rgb: &[u8]) -> Vec<u8> {
    rgb.as_chunks().0.iter().flat_map(|&[red, green, blue]| [red, green, blue, u8::MAX]).collect()
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, prelude::BASE64_STANDARD};

    use super::*;

    fn png_of(color: png::ColorType, depth: png::BitDepth, samples: &[u8]) -> Pixels {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, 2, 1);
        encoder.set_color(color);
        encoder.set_depth(depth);
        encoder.set_palette(vec![9, 8, 7, 6, 5, 4]);
        if color == png::ColorType::Indexed {
            encoder.set_trns(vec![255, 50]);
        }
        encoder.write_header().unwrap().write_image_data(samples).unwrap();
        Pixels::from_png(&file).unwrap()
    }

    #[test]
    fn every_kind_of_png_becomes_the_same_pixels() {
        use png::{BitDepth, ColorType};
        for (color, depth, samples, rgba) in [
            (ColorType::Grayscale, BitDepth::One, &[0b0100_0000][..], [0, 0, 0, 255, 255, 255, 255, 255]),
            (ColorType::Grayscale, BitDepth::Eight, &[1, 2], [1, 1, 1, 255, 2, 2, 2, 255]),
            (ColorType::GrayscaleAlpha, BitDepth::Eight, &[1, 2, 3, 4], [1, 1, 1, 2, 3, 3, 3, 4]),
            (ColorType::Indexed, BitDepth::Two, &[0b0001_0000], [9, 8, 7, 255, 6, 5, 4, 50]),
            (ColorType::Rgb, BitDepth::Eight, &[1, 2, 3, 4, 5, 6], [1, 2, 3, 255, 4, 5, 6, 255]),
            (
                ColorType::Rgb,
                BitDepth::Sixteen,
                &[1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0],
                [1, 2, 3, 255, 4, 5, 6, 255],
            ),
            (ColorType::Rgba, BitDepth::Eight, &[1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 5, 6, 7, 8]),
        ] {
            assert_eq!(png_of(color, depth, samples).rgba, rgba, "{color:?} {depth:?}");
        }
        let interlaced = BASE64_STANDARD.decode("iVBORw0KGgoAAAANSUhEUgAAAAMAAAADCAAAAAEERNr1AAAAF0lEQVR4nGNgYBBhsAlg4GJwY5DTMAIACKcBaT3fl2IAAAAASUVORK5CYII=");
        let interlaced = Pixels::from_png(&interlaced.unwrap()).unwrap();
        let greys: Vec<u8> = interlaced.rgba.iter().step_by(4).copied().collect();
        assert_eq!(greys, [0, 10, 20, 30, 40, 50, 60, 70, 80]);
    }

    #[test]
    fn what_is_written_as_png_is_read_back() {
        for rgba in [[1, 1, 1, 255, 2, 2, 2, 255], [1, 1, 1, 2, 3, 3, 3, 4], [1, 2, 3, 255, 4, 5, 6, 255]] {
            let pixels = Pixels { size: PixelSize { width: 1, height: 2 }, rgba: rgba.to_vec() };
            assert!(Pixels::from_png(&pixels.to_png().unwrap()).unwrap() == pixels, "{rgba:?}");
        }
    }

    #[test]
    fn jpeg_of_every_kind_is_read_and_transparency_is_white() {
        for (kind, samples) in [
            (ColorType::Luma, &[100; 64][..]),
            (ColorType::Rgb, &[100; 192]),
            (ColorType::Cmyk, &[155, 155, 155, 0].repeat(64)),
        ] {
            let mut file = Vec::new();
            Encoder::new(&mut file, 100).encode(samples, 8, 8, kind).unwrap();
            let pixels = Pixels::from_jpeg(&file).unwrap();
            assert!(
                pixels.rgba.as_chunks().0.iter().all(|pixel| *pixel == [100, 100, 100, 255]),
                "{kind:?} {:?}",
                &pixels.rgba[..4]
            );
        }
        let clear = Pixels { size: PixelSize { width: 8, height: 8 }, rgba: [0, 0, 0, 0].repeat(64) };
        let white = Pixels::from_jpeg(&clear.to_jpeg().unwrap()).unwrap();
        assert_eq!(white.rgba, [255; 256]);
    }

    #[test]
    fn a_file_that_ends_early_is_an_error() {
        let pixels = Pixels { size: PixelSize { width: 8, height: 8 }, rgba: (0..=255).collect() };
        let (png, jpeg) = (pixels.to_png().unwrap(), pixels.to_jpeg().unwrap());
        assert_eq!(
            Pixels::from_png(&png[..60]).map(|_| ()).unwrap_err().to_string(),
            "unexpected end of file"
        );
        assert!(Pixels::from_jpeg(&jpeg[..60]).is_err());
    }

    #[test]
    fn pixels_are_replaced_by_their_mean() {
        let wide = Pixels {
            size: PixelSize { width: 4, height: 1 },
            rgba: vec![10, 0, 0, 255, 20, 0, 0, 255, 90, 90, 90, 0, 0, 0, 200, 100],
        };
        let half = wide.within(2, 100);
        // What is not seen has no colour to add.
        assert_eq!(
            (half.size, half.rgba),
            (PixelSize { width: 2, height: 1 }, vec![15, 0, 0, 255, 0, 0, 200, 50])
        );
        assert_eq!(wide.within(100, 100).size, wide.size);
        let tall = Pixels { size: PixelSize { width: 3, height: 1000 }, rgba: vec![7; 12_000] };
        let small = tall.within(100, 100);
        assert_eq!((small.size, small.rgba), (PixelSize { width: 1, height: 100 }, vec![7; 400]));
    }
}
