//! Colours and attributes of text: what SGR sequences set, and the sequence that sets it again.

use std::fmt;

/// How a cell of the screen looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CellStyle {
    /// Bit `n` is the attribute that SGR `n` switches on (bold is 1, struck out 9).
    attributes: u16,
    foreground: Colour,
    background: Colour,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Colour {
    #[default]
    Default,
    /// One of the sixteen that have names.
    Named(u8),
    Indexed(u8),
    Rgb(u8, u8, u8),
}

impl CellStyle {
    /// What the parameters of an SGR sequence make of this style.
    pub(super) fn after(mut self, parameters: &str) -> Self {
        // Colons separate the parts of one colour in the newer spelling, with an empty colour space in it.
        let mut codes = parameters
            .split([';', ':'])
            .map(|code| if code.is_empty() { Some(0) } else { code.parse::<u8>().ok() });
        while let Some(code) = codes.next() {
            match code {
                Some(0) => self = Self::default(),
                Some(code @ 1..=9) => self.attributes |= 1 << code,
                Some(21) => self.attributes |= 1 << 4,
                Some(22) => self.attributes &= !(1 << 1 | 1 << 2),
                Some(code @ 23..=29) => self.attributes &= !(1 << (code - 20)),
                Some(code @ 30..=37) => self.foreground = Colour::Named(code - 30),
                Some(code @ 90..=97) => self.foreground = Colour::Named(code - 90 + 8),
                Some(39) => self.foreground = Colour::Default,
                Some(code @ 40..=47) => self.background = Colour::Named(code - 40),
                Some(code @ 100..=107) => self.background = Colour::Named(code - 100 + 8),
                Some(49) => self.background = Colour::Default,
                Some(code @ (38 | 48)) => {
                    let colour = match codes.next().flatten() {
                        Some(5) => codes.next().flatten().map(Colour::Indexed),
                        Some(2) => rgb(&mut codes, parameters.contains("2::")),
                        _ => None,
                    };
                    match (colour, code) {
                        (Some(colour), 38) => self.foreground = colour,
                        (Some(colour), _) => self.background = colour,
                        (None, _) => {}
                    }
                }
                _ => {}
            }
        }
        self
    }
}

fn rgb(codes: &mut impl Iterator<Item = Option<u8>>, has_colour_space: bool) -> Option<Colour> {
    if has_colour_space {
        codes.next();
    }
    Some(Colour::Rgb(codes.next()??, codes.next()??, codes.next()??))
}

/// The sequence that makes a terminal write in this style, whatever it wrote in before.
impl fmt::Display for CellStyle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\x1b[0")?;
        for attribute in (1..=9).filter(|bit| self.attributes & (1 << bit) != 0) {
            write!(f, ";{attribute}")?;
        }
        for (colour, named, bright, other) in [(self.foreground, 30, 90, 38), (self.background, 40, 100, 48)]
        {
            match colour {
                Colour::Default => {}
                Colour::Named(index @ 0..8) => write!(f, ";{}", named + index)?,
                Colour::Named(index) => write!(f, ";{}", bright + index - 8)?,
                Colour::Indexed(index) => write!(f, ";{other};5;{index}")?,
                Colour::Rgb(red, green, blue) => write!(f, ";{other};2;{red};{green};{blue}")?,
            }
        }
        f.write_str("m")
    }
}
