//! Images as terminals take them. (`viuer` needs the whole `image` crate, and prints instead of returning lines.)

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cellwright_output::{Image, ImageFormat, PixelSize, Pixels, UnboundedImage};
use color_quant::NeuQuant;

use super::terminal::{BlockColours, ImageProtocol, TerminalSize};

/// kitty takes its data in pieces of at most this many bytes of base64.
const KITTY_PIECE: usize = 4096;

/// Colours a sixel image may have.
const PALETTE: usize = 256;

/// Pixels of a picture that a character stands for, across, where characters draw it. A terminal has more in a character; with
/// as few columns, lines and letters would not be seen.
const BLOCK_PIXELS: u32 = 4;

/// Pixels that are less opaque than this are not drawn.
const OPAQUE: u8 = 128;

/// The image as text for this terminal, at most `columns` wide.
pub(crate) fn drawn(
    image: &Image,
    by: ImageProtocol,
    terminal: TerminalSize,
    columns: usize,
) -> Result<String, UnboundedImage> {
    let columns = u32::try_from(columns).unwrap_or(u32::MAX);
    let room = columns.saturating_mul(terminal.character.0);
    match by {
        ImageProtocol::Kitty if image.format == ImageFormat::Png => {
            let is_wide = image.size.is_none_or(|size| size.width > room);
            let fit = if is_wide { format!(",c={columns}") } else { String::new() };
            Ok(kitty(&format!("f=100{fit}"), &image.bytes))
        }
        ImageProtocol::Kitty => {
            let pixels = image.pixels(room)?;
            let format = format!("f=32,s={},v={}", pixels.size.width, pixels.size.height);
            Ok(kitty(&format, &pixels.rgba))
        }
        ImageProtocol::Iterm => {
            let is_wide = image.size.is_some_and(|size| size.width > room);
            let width = if is_wide { columns.to_string() } else { "auto".to_owned() };
            let (size, data) = (image.bytes.len(), BASE64.encode(&image.bytes));
            Ok(format!("\x1b]1337;File=inline=1;size={size};width={width}:{data}\x07"))
        }
        ImageProtocol::Sixel => Ok(sixel(&image.pixels(room)?)),
        ImageProtocol::Blocks(colours) => {
            let size = image.size.map_or(room, |size| size.width);
            let columns = columns.min(size.div_ceil(BLOCK_PIXELS)).max(1);
            Ok(blocks(&image.pixels(columns)?, colours).join("\n"))
        }
    }
}

/// A picture that takes a known number of rows, so that it can be drawn among rows that change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlacedPicture {
    /// Draws it from the cursor on.
    pub(crate) sequence: String,
    /// Removes it again, where overwriting it does not.
    pub(crate) removal: String,
    pub(crate) rows: usize,
}

/// How a picture is drawn among rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PictureRows {
    /// By the terminal.
    Placed(PlacedPicture),
    /// As rows of characters.
    Characters(Vec<String>),
}

/// The image in at most so many columns and rows. `number` tells it from others of this process.
pub(crate) fn placed(
    image: &Image,
    by: ImageProtocol,
    terminal: TerminalSize,
    room: (usize, usize),
    number: u32,
) -> Result<PictureRows, UnboundedImage> {
    let (width, height) = match by {
        ImageProtocol::Blocks(_) => (BLOCK_PIXELS, 2 * BLOCK_PIXELS),
        ImageProtocol::Kitty | ImageProtocol::Iterm | ImageProtocol::Sixel => {
            (terminal.character.0.max(1), terminal.character.1.max(1))
        }
    };
    let as_number = |room: usize| u32::try_from(room.max(1)).unwrap_or(u32::MAX);
    let most = (as_number(room.0), as_number(room.1));
    let natural = image.size.unwrap_or(PixelSize { width, height });
    // The columns that it takes, and then the rows that its shape asks for.
    let by_height = u64::from(most.1) * u64::from(height) * u64::from(natural.width)
        / u64::from(natural.height.max(1))
        / u64::from(width);
    let columns =
        natural.width.div_ceil(width).min(most.0).min(u32::try_from(by_height).unwrap_or(u32::MAX)).max(1);
    let is_shrunk = columns.saturating_mul(width) < natural.width;
    let shown_height = if is_shrunk {
        u64::from(natural.height) * u64::from(columns) * u64::from(width) / u64::from(natural.width.max(1))
    } else {
        u64::from(natural.height)
    };
    let rows = u32::try_from(shown_height.div_ceil(u64::from(height))).unwrap_or(u32::MAX).clamp(1, most.1);
    let of = |sequence: String, removal: String| {
        PictureRows::Placed(PlacedPicture { sequence, removal, rows: rows as usize })
    };
    match by {
        ImageProtocol::Kitty => {
            // The cursor stays (C=1); its id lets it be removed.
            let fit = if is_shrunk { format!(",c={columns},r={rows}") } else { String::new() };
            let place = format!("{fit},C=1,i={number}");
            let sequence = if image.format == ImageFormat::Png {
                kitty(&format!("f=100{place}"), &image.bytes)
            } else {
                let pixels = image.pixels(columns.saturating_mul(width))?;
                let format = format!("f=32,s={},v={}{place}", pixels.size.width, pixels.size.height);
                kitty(&format, &pixels.rgba)
            };
            Ok(of(sequence, format!("\x1b_Ga=d,d=I,i={number},q=2\x1b\\")))
        }
        ImageProtocol::Iterm => {
            let (size, data) = (image.bytes.len(), BASE64.encode(&image.bytes));
            let fit = format!("width={columns};height={rows};preserveAspectRatio=1");
            Ok(of(format!("\x1b]1337;File=inline=1;size={size};{fit}:{data}\x07"), String::new()))
        }
        ImageProtocol::Sixel => {
            let room = columns.saturating_mul(width);
            Ok(of(sixel(&image.pixels(room)?), String::new()))
        }
        ImageProtocol::Blocks(colours) => {
            Ok(PictureRows::Characters(blocks(&image.pixels(columns)?, colours)))
        }
    }
}

/// Rows of half blocks: the upper pixel is the character's colour, the lower one its background's.
fn blocks(pixels: &Pixels, colours: BlockColours) -> Vec<String> {
    let width = pixels.size.width.max(1) as usize;
    let rows: Vec<_> = pixels.rgba.as_chunks::<4>().0.chunks(width).collect();
    let code = |pixel: &[u8; 4]| match colours {
        BlockColours::True => format!("2;{};{};{}", pixel[0], pixel[1], pixel[2]),
        BlockColours::Indexed => format!("5;{}", indexed([pixel[0], pixel[1], pixel[2]])),
    };
    let mut lines = Vec::new();
    for pair in rows.chunks(2) {
        let (mut line, mut last) = (String::new(), String::new());
        for (column, upper) in pair[0].iter().enumerate() {
            let shown = |pixel: &&[u8; 4]| pixel[3] >= OPAQUE;
            let lower = pair.get(1).map(|row| &row[column]).filter(shown);
            let (codes, character) = match (Some(upper).filter(shown), lower) {
                (Some(upper), Some(lower)) => (format!("38;{};48;{}", code(upper), code(lower)), '▀'),
                (Some(upper), None) => (format!("0;38;{}", code(upper)), '▀'),
                (None, Some(lower)) => (format!("0;38;{}", code(lower)), '▄'),
                (None, None) => ("0".to_owned(), ' '),
            };
            if codes != last {
                write!(line, "\x1b[{codes}m").expect("a String takes everything");
                last = codes;
            }
            line.push(character);
        }
        lines.push(line + "\x1b[0m");
    }
    lines
}

/// The nearest of the 216 colours of the cube, or of the 24 greys.
fn indexed(rgb: [u8; 3]) -> u8 {
    let level = |part: u8| {
        if part < 48 {
            0
        } else if part < 115 {
            1
        } else {
            (part - 35) / 40
        }
    };
    let [red, green, blue] = rgb.map(level);
    let cube = |level: u8| if level == 0 { 0 } else { 55 + 40 * level };
    let far = |other: [u8; 3]| -> u32 {
        rgb.iter().zip(other).map(|(one, other)| u32::from(one.abs_diff(other)).pow(2)).sum()
    };
    let mean = u8::try_from(rgb.iter().map(|part| u32::from(*part)).sum::<u32>() / 3).unwrap_or(u8::MAX);
    let grey = (mean.saturating_sub(3) / 10).min(23);
    let grey_far = far([8 + 10 * grey; 3]);
    if grey_far < far([cube(red), cube(green), cube(blue)]) {
        232 + grey
    } else {
        16 + 36 * red + 6 * green + blue
    }
}

fn kitty(format: &str, bytes: &[u8]) -> String {
    let data = BASE64.encode(bytes);
    let mut text = String::with_capacity(data.len() + 64);
    let mut pieces = data.as_bytes().chunks(KITTY_PIECE).peekable();
    // The first piece says what it is; q=2: the terminal is not to answer.
    let mut keys = format!("a=T,q=2,{format},");
    while let Some(piece) = pieces.next() {
        let more = u8::from(pieces.peek().is_some());
        let piece = std::str::from_utf8(piece).expect("base64 is ASCII");
        write!(text, "\x1b_G{keys}m={more};{piece}\x1b\\").expect("a String takes everything");
        keys.clear();
    }
    text
}

/// Sixel graphics: bands of six rows, each colour of a band written over the ones before it.
fn sixel(pixels: &Pixels) -> String {
    let (width, height) = (pixels.size.width as usize, pixels.size.height as usize);
    let palette = NeuQuant::new(10, PALETTE, &pixels.rgba);
    let indices: Vec<Option<usize>> = pixels
        .rgba
        .chunks_exact(4)
        .map(|pixel| (pixel[3] >= OPAQUE).then(|| palette.index_of(pixel)))
        .collect();
    // Pixels that are not drawn keep the terminal's background.
    let mut text = format!("\x1bP0;1q\"1;1;{width};{height}");
    let write = &mut |text: &mut String, part: std::fmt::Arguments<'_>| {
        text.write_fmt(part).expect("a String takes everything");
    };
    for (index, colour) in palette.color_map_rgb().chunks_exact(3).enumerate() {
        let [red, green, blue] = [0, 1, 2].map(|at| u32::from(colour[at]) * 100 / 255);
        write(&mut text, format_args!("#{index};2;{red};{green};{blue}"));
    }
    for band in indices.chunks(width.max(1) * 6) {
        let mut colours: Vec<_> = band.iter().flatten().copied().collect();
        colours.sort_unstable();
        colours.dedup();
        for colour in colours {
            write(&mut text, format_args!("#{colour}"));
            let column = |x: usize| {
                let rows = band.iter().skip(x).step_by(width).enumerate();
                let bits =
                    rows.filter(|(_, pixel)| **pixel == Some(colour)).fold(0, |bits, (y, _)| bits | 1 << y);
                char::from(b'?' + bits)
            };
            let mut columns = (0..width).map(column).peekable();
            while let Some(first) = columns.next() {
                let mut run = 1;
                while columns.next_if_eq(&first).is_some() {
                    run += 1;
                }
                match run {
                    1..=3 => text.extend(std::iter::repeat_n(first, run)),
                    _ => write(&mut text, format_args!("!{run}{first}")),
                }
            }
            text.push('$');
        }
        text.push('-');
    }
    text + "\x1b\\"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pixels(width: u32, rgba: &[[u8; 4]]) -> Pixels {
        let height = u32::try_from(rgba.len()).unwrap() / width;
        Pixels { size: PixelSize { width, height }, rgba: rgba.concat() }
    }

    #[test]
    fn two_pixels_share_a_character() {
        let (red, blue, clear) = ([255, 0, 0, 255], [0, 0, 255, 255], [0; 4]);
        let rows = blocks(&pixels(2, &[red, clear, blue, clear, red, blue]), BlockColours::True);
        assert_eq!(
            rows,
            [
                "\x1b[38;2;255;0;0;48;2;0;0;255m▀\x1b[0m \x1b[0m",
                "\x1b[0;38;2;255;0;0m▀\x1b[0;38;2;0;0;255m▀\x1b[0m"
            ]
        );
        let rows = blocks(&pixels(1, &[red]), BlockColours::Indexed);
        assert_eq!(rows, ["\x1b[0;38;5;196m▀\x1b[0m"]);
    }

    #[test]
    fn colours_are_the_nearest_of_the_palette() {
        assert_eq!(indexed([255, 255, 255]), 231);
        assert_eq!(indexed([0, 0, 0]), 16);
        assert_eq!(indexed([128, 128, 128]), 244);
        assert_eq!(indexed([31, 119, 180]), 31);
    }
}
