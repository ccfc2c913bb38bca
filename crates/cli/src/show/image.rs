//! Images as terminals take them. (`viuer` needs the whole `image` crate, and prints instead of returning lines.)

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cellwright_output::{Image, ImageFormat, Pixels, UnboundedImage};
use color_quant::NeuQuant;

use super::terminal::{ImageProtocol, TerminalSize};

/// kitty takes its data in pieces of at most this many bytes of base64.
const KITTY_PIECE: usize = 4096;

/// Colours a sixel image may have.
const PALETTE: usize = 256;

/// Pixels that are less opaque than this are not drawn.
const OPAQUE: u8 = 128;

/// The image as text for this terminal, at most `columns` wide.
pub(super) fn drawn(
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
