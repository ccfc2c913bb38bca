//! What the terminal can do: how wide it is, and by which protocol it shows images.

use std::io::{self, IsTerminal, Write as _};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex, Winsize};

/// How long a terminal has to say what it is. One that does not answer shows no images.
const ANSWER_WAIT: Duration = Duration::from_millis(200);

/// How many pixels a character has if the terminal does not say.
const USUAL_CHARACTER: (u32, u32) = (10, 20);

/// A way to put images among text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImageProtocol {
    /// kitty, Ghostty, Konsole
    Kitty,
    /// iTerm2, mintty, `WezTerm`
    Iterm,
    /// xterm, foot, mlterm, Windows Terminal
    Sixel,
    /// Every terminal with colours: two pixels for each character
    Blocks(BlockColours),
}

/// The colours that characters can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockColours {
    /// All
    True,
    /// The 216 of a cube, and greys
    Indexed,
}

impl BlockColours {
    /// Those that the terminal's variables promise.
    pub(crate) fn named(variable: impl Fn(&str) -> Option<String>) -> Self {
        let is_true = variable("COLORTERM").is_some_and(|value| matches!(&*value, "truecolor" | "24bit"))
            || variable("TERM").is_some_and(|value| value.contains("direct") || value.contains("kitty"));
        if is_true { Self::True } else { Self::Indexed }
    }
}

/// Stdout or stderr, when it is a terminal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TerminalSize {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
    /// Width and height of a character in pixels.
    pub(crate) character: (u32, u32),
}

impl Default for TerminalSize {
    /// One that says nothing about itself.
    fn default() -> Self {
        Self { columns: 80, rows: 24, character: USUAL_CHARACTER }
    }
}

impl TerminalSize {
    /// The terminal on stdout, if it is one.
    pub(crate) fn on_stdout() -> Option<Self> {
        Self::on(&io::stdout())
    }

    /// The terminal on stderr, if it is one.
    pub(crate) fn on_stderr() -> Option<Self> {
        Self::on(&io::stderr())
    }

    fn on(stream: &(impl IsTerminal + AsFd)) -> Option<Self> {
        let size = stream.is_terminal().then(|| termios::tcgetwinsize(stream).ok()).flatten()?;
        let Winsize { ws_col, ws_row, ws_xpixel, ws_ypixel } = size;
        let per =
            |pixels: u16, characters: u16| pixels.checked_div(characters).filter(|n| *n > 0).map(u32::from);
        let character = per(ws_xpixel, ws_col).zip(per(ws_ypixel, ws_row)).unwrap_or(USUAL_CHARACTER);
        // Some do not know how wide they are.
        let columns = if ws_col == 0 { Self::default().columns } else { usize::from(ws_col) };
        let rows = if ws_row == 0 { Self::default().rows } else { usize::from(ws_row) };
        Some(Self { columns, rows, character })
    }
}

/// The protocol that the terminal's variables imply. Inside a multiplexer they describe the terminal around it.
pub(crate) fn protocol_named(variable: impl Fn(&str) -> Option<String>) -> Option<ImageProtocol> {
    let holds = |name: &str, part: &str| variable(name).is_some_and(|value| value.contains(part));
    if variable("TMUX").is_some() || holds("TERM", "tmux") || holds("TERM", "screen") {
        return None;
    }
    let is_kitty = variable("KITTY_WINDOW_ID").is_some()
        || holds("TERM", "kitty")
        || holds("TERM", "ghostty")
        || holds("TERM_PROGRAM", "ghostty");
    let is_iterm = holds("TERM_PROGRAM", "iTerm")
        || holds("LC_TERMINAL", "iTerm")
        || holds("TERM_PROGRAM", "WezTerm")
        || holds("TERM_PROGRAM", "mintty");
    let is_sixel = holds("TERM", "foot") || holds("TERM", "mlterm") || holds("TERM", "sixel");
    match () {
        () if is_kitty => Some(ImageProtocol::Kitty),
        () if is_iterm => Some(ImageProtocol::Iterm),
        () if is_sixel => Some(ImageProtocol::Sixel),
        () => None,
    }
}

/// Asks the terminal on stdin and stdout for its attributes; the fourth is sixel graphics.
pub(crate) fn shows_sixel() -> bool {
    let (stdin, stdout) = (io::stdin(), io::stdout());
    if !stdin.is_terminal() || !stdout.is_terminal() {
        return false;
    }
    let Ok(before) = termios::tcgetattr(&stdin) else {
        return false;
    };
    let mut quiet = before.clone();
    quiet.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
    // A read returns with what there is: the wait is poll's.
    quiet.special_codes[SpecialCodeIndex::VMIN] = 0;
    quiet.special_codes[SpecialCodeIndex::VTIME] = 0;
    if termios::tcsetattr(&stdin, OptionalActions::Now, &quiet).is_err() {
        return false;
    }
    let answer = ask(b"\x1b[c");
    let _ = termios::tcsetattr(&stdin, OptionalActions::Now, &before); // it could be set a moment ago
    answer.is_some_and(|answer| {
        answer.trim_start_matches("\x1b[?").trim_end_matches('c').split(';').any(|part| part == "4")
    })
}

/// What the terminal answers, up to the letter that ends it.
fn ask(question: &[u8]) -> Option<String> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(question).and_then(|()| stdout.flush()).ok()?;
    // Read past its buffer, which would take more than is waited for.
    let stdin = io::stdin();
    let mut answer = Vec::new();
    while answer.last() != Some(&b'c') {
        let mut wait = [PollFd::new(&stdin, PollFlags::IN)];
        let mut byte = [0];
        let is_there = poll(&mut wait, Some(&ANSWER_WAIT.try_into().ok()?)).ok()? > 0;
        if !is_there || rustix::io::read(&stdin, &mut byte).ok()? == 0 {
            return None;
        }
        answer.push(byte[0]);
    }
    String::from_utf8(answer).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_are_known_by_their_variables() {
        let named = |variables: &[(&str, &str)]| {
            protocol_named(|name| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(named(&[("TERM", "xterm-kitty")]), Some(ImageProtocol::Kitty));
        assert_eq!(named(&[("TERM_PROGRAM", "iTerm.app")]), Some(ImageProtocol::Iterm));
        assert_eq!(named(&[("TERM", "foot")]), Some(ImageProtocol::Sixel));
        assert_eq!(named(&[("TERM", "xterm-256color")]), None);
        assert_eq!(named(&[("TERM", "tmux-256color"), ("KITTY_WINDOW_ID", "1")]), None);
    }
}
