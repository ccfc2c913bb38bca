//! How far an escape sequence has been read.
//!
//! Only the shape is judged here; what a command does to the screen is the screen's business.
//! Two rules keep a stray escape byte (binary garbage, a torn write) from swallowing output: no sequence
//! outlives its line, and a character that cannot belong to the sequence ends it and is printed.
//! `vte` does neither, nor does it say when a sequence is over, which the fast path for plain text needs;
//! the tests compare with it.

/// Longest parameter string that is looked at. The longest useful one sets two true colours and every attribute.
const LONGEST_PARAMETERS: usize = 128;

/// The reader of escape sequences. Holds at most [`LONGEST_PARAMETERS`] bytes.
#[derive(Debug, Clone, Default)]
pub(super) struct EscapeReader {
    state: EscapeState,
    parameters: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum EscapeState {
    #[default]
    Ground,
    /// After ESC.
    Started,
    /// After ESC and an intermediate such as `(`.
    Intermediate,
    /// After ESC `[`.
    Control,
    /// In the text of an OSC, DCS, SOS, PM or APC sequence.
    Text,
}

/// What an escape sequence asks of the screen.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ScreenCommand<'a> {
    /// Set colours and attributes, by these parameters.
    Style(&'a str),
    Up(usize),
    Down(usize),
    Forward(usize),
    Back(usize),
    /// Go to this column, counting from zero.
    Column(usize),
    /// Go to the start of the line that many below.
    NextLine(usize),
    /// Go to the start of the line that many above.
    PreviousLine(usize),
    EraseToEnd,
    EraseToStart,
    EraseLine,
    /// Erase from the cursor to the end of the screen.
    EraseBelow,
    LineFeed,
}

impl EscapeReader {
    /// Whether the next character belongs to no sequence.
    pub(super) fn at_ground(&self) -> bool {
        self.state == EscapeState::Ground
    }

    /// Takes note of an ESC.
    pub(super) fn start(&mut self) {
        self.state = EscapeState::Started;
    }

    /// Reads the part of `text` that belongs to the sequence under way: how many bytes that is, and what
    /// the sequence asks for if it ended there.
    pub(super) fn advance(&mut self, text: &str) -> (usize, Option<ScreenCommand<'_>>) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match (&self.state, byte) {
                (EscapeState::Ground, _) => break,
                (_, 0x1b) => self.state = EscapeState::Started,
                (EscapeState::Text, _) => {
                    // These can be megabytes long: images travel in them.
                    let rest = &bytes[at..];
                    let end = rest.iter().position(|byte| matches!(byte, b'\n' | 0x07 | 0x18 | 0x1a | 0x1b));
                    let Some(end) = end else { return (bytes.len(), None) };
                    at += end;
                    if rest[end] == 0x1b {
                        continue;
                    }
                    self.state = EscapeState::Ground;
                    if rest[end] == b'\n' {
                        break;
                    }
                }
                (EscapeState::Started, b'[') => {
                    self.parameters.clear();
                    self.state = EscapeState::Control;
                }
                (EscapeState::Started, b']' | b'P' | b'X' | b'^' | b'_') => self.state = EscapeState::Text,
                (EscapeState::Started | EscapeState::Intermediate, b' '..=b'/') => {
                    self.state = EscapeState::Intermediate;
                }
                (EscapeState::Started, b'D' | b'E') => return self.end(at, Some(ScreenCommand::LineFeed)),
                (EscapeState::Started, b'M') => return self.end(at, Some(ScreenCommand::Up(1))),
                (EscapeState::Started | EscapeState::Intermediate, b'0'..=b'~') => return self.end(at, None),
                (EscapeState::Control, b' '..=b'?') => {
                    if self.parameters.len() <= LONGEST_PARAMETERS {
                        self.parameters.push(char::from(byte));
                    }
                }
                (EscapeState::Control, b'@'..=b'~') => {
                    self.state = EscapeState::Ground;
                    return (at + 1, control(byte, &self.parameters));
                }
                (EscapeState::Started | EscapeState::Intermediate | EscapeState::Control, _) => {
                    self.state = EscapeState::Ground;
                    break;
                }
            }
            at += 1;
        }
        (at, None)
    }

    fn end<'a>(
        &mut self,
        at: usize,
        command: Option<ScreenCommand<'a>>,
    ) -> (usize, Option<ScreenCommand<'a>>) {
        self.state = EscapeState::Ground;
        (at + 1, command)
    }
}

fn control(last: u8, parameters: &str) -> Option<ScreenCommand<'_>> {
    let plain = |byte: u8| byte.is_ascii_digit() || byte == b';' || byte == b':';
    if parameters.len() > LONGEST_PARAMETERS || !parameters.bytes().all(plain) {
        return None;
    }
    let first = parameters.split(';').next().unwrap_or_default();
    let number = first.parse::<u16>().ok().map(usize::from);
    let count = number.unwrap_or(1).max(1);
    Some(match last {
        b'm' => ScreenCommand::Style(parameters),
        b'A' => ScreenCommand::Up(count),
        b'B' => ScreenCommand::Down(count),
        b'C' => ScreenCommand::Forward(count),
        b'D' => ScreenCommand::Back(count),
        b'E' => ScreenCommand::NextLine(count),
        b'F' => ScreenCommand::PreviousLine(count),
        b'G' => ScreenCommand::Column(count - 1),
        b'K' => match number.unwrap_or(0) {
            0 => ScreenCommand::EraseToEnd,
            1 => ScreenCommand::EraseToStart,
            _ => ScreenCommand::EraseLine,
        },
        // Clearing the whole screen would lose output that a person could still scroll back to.
        b'J' if number.unwrap_or(0) == 0 => ScreenCommand::EraseBelow,
        _ => return None,
    })
}
