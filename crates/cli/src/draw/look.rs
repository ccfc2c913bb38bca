//! What the terminal and the person want: colours, and how pictures are drawn.

use std::io::{self, IsTerminal as _};

use clap::ValueEnum;

use super::style::TextPen;
use super::terminal::{BlockColours, ImageProtocol, TerminalSize, protocol_named, shows_sixel};

/// How a command draws.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct LookArguments {
    /// Whether to use colours
    #[arg(long, value_enum, default_value_t = ColorChoice::Auto, value_name = "WHEN")]
    color: ColorChoice,
    /// How to draw images: by what the terminal supports, by one protocol, by characters, or not at all
    #[arg(long, value_enum, default_value_t = ImagesArgument::Auto, value_name = "HOW")]
    images: ImagesArgument,
}

impl Default for LookArguments {
    fn default() -> Self {
        Self { color: ColorChoice::Auto, images: ImagesArgument::Auto }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ImagesArgument {
    Auto,
    Kitty,
    Iterm,
    Sixel,
    Blocks,
    None,
}

/// Whether the next line that is printed may be drawn again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DrawPlace {
    /// A terminal that shows what both streams print.
    Terminal,
    /// A pipe, a file, or a terminal without a cursor to move.
    Elsewhere,
}

impl DrawPlace {
    pub(crate) fn of_this_process() -> Self {
        let is_terminal = io::stdout().is_terminal() && io::stderr().is_terminal();
        if is_terminal && variable("TERM").as_deref() != Some("dumb") {
            Self::Terminal
        } else {
            Self::Elsewhere
        }
    }
}

impl LookArguments {
    /// How text is written to stdout, by what is asked for, what the environment says and what stdout is.
    pub(crate) fn pen(self) -> TextPen {
        pen(self.color, io::stdout().is_terminal(), variable)
    }

    /// How text is written to stderr.
    pub(crate) fn pen_of_stderr(self) -> TextPen {
        pen(self.color, io::stderr().is_terminal(), variable)
    }

    /// How images are drawn on stdout. May ask the terminal, and wait a moment for its answer.
    pub(crate) fn images(self, pen: TextPen) -> Option<ImageProtocol> {
        let blocks = ImageProtocol::Blocks(BlockColours::named(variable));
        match self.images {
            ImagesArgument::Kitty => Some(ImageProtocol::Kitty),
            ImagesArgument::Iterm => Some(ImageProtocol::Iterm),
            ImagesArgument::Sixel => Some(ImageProtocol::Sixel),
            ImagesArgument::Blocks => Some(blocks),
            ImagesArgument::None => None,
            ImagesArgument::Auto if TerminalSize::on_stdout().is_none() => None,
            ImagesArgument::Auto if variable("TERM").as_deref() == Some("dumb") => None,
            ImagesArgument::Auto => protocol_named(variable)
                .or_else(|| shows_sixel().then_some(ImageProtocol::Sixel))
                .or_else(|| (!pen.is_plain()).then_some(blocks)),
        }
    }
}

/// A variable of the environment that is not empty.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// <https://no-color.org>, <https://bixense.com/clicolors>
fn pen(choice: ColorChoice, is_terminal: bool, variable: impl Fn(&str) -> Option<String>) -> TextPen {
    let is_on = |name: &str| variable(name).is_some_and(|value| value != "0");
    let is_coloured = match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if variable("NO_COLOR").is_some() => false,
        ColorChoice::Auto if is_on("CLICOLOR_FORCE") => true,
        ColorChoice::Auto => {
            is_terminal
                && variable("TERM").as_deref() != Some("dumb")
                && variable("CLICOLOR").as_deref() != Some("0")
        }
    };
    match is_coloured {
        false => TextPen::Plain,
        true if is_light(variable) => TextPen::DarkColours,
        true => TextPen::Colours,
    }
}

/// Whether the terminal says that its background is light: `COLORFGBG` ends with the background's number.
fn is_light(variable: impl Fn(&str) -> Option<String>) -> bool {
    let colours = variable("COLORFGBG").unwrap_or_default();
    let background = colours.rsplit(';').next().and_then(|number| number.parse::<u8>().ok());
    background.is_some_and(|number| number == 7 || (9..=15).contains(&number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_used_where_they_are_wanted() {
        let pen = |choice, is_terminal, variables: &[(&str, &str)]| {
            pen(choice, is_terminal, |name| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            })
        };
        let (auto, plain, colours) = (ColorChoice::Auto, TextPen::Plain, TextPen::Colours);
        for (choice, is_terminal, variables, expected) in [
            (auto, true, &[][..], colours),
            (auto, false, &[], plain),
            (auto, true, &[("TERM", "dumb")], plain),
            (auto, true, &[("CLICOLOR", "0")], plain),
            (auto, true, &[("NO_COLOR", "1")], plain),
            (auto, false, &[("CLICOLOR_FORCE", "1")], colours),
            (auto, false, &[("CLICOLOR_FORCE", "0")], plain),
            (auto, true, &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], plain),
            (ColorChoice::Always, false, &[("NO_COLOR", "1")], colours),
            (ColorChoice::Never, true, &[("CLICOLOR_FORCE", "1")], plain),
            (auto, true, &[("COLORFGBG", "0;15")], TextPen::DarkColours),
            (auto, true, &[("COLORFGBG", "15;0")], colours),
            (auto, true, &[("COLORFGBG", "15;default;0")], colours),
        ] {
            assert_eq!(
                pen(choice, is_terminal, variables),
                expected,
                "{choice:?} {is_terminal} {variables:?}"
            );
        }
    }
}
