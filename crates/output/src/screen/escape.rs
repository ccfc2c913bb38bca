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
pub(super) struct Escapes {
    state: State,
    parameters: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum State {
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
pub(super) enum Command<'a> {
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

impl Escapes {
    /// Whether the next character belongs to no sequence.
    pub(super) fn at_ground(&self) -> bool {
        self.state == State::Ground
    }

    /// Takes note of an ESC.
    pub(super) fn start(&mut self) {
        self.state = State::Started;
    }

    /// Reads the part of `text` that belongs to the sequence under way: how many bytes that is, and what
    /// the sequence asks for if it ended there.
    pub(super) fn advance(&mut self, text: &str) -> (usize, Option<Command<'_>>) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match (&self.state, byte) {
                (State::Ground, _) => break,
                (_, 0x1b) => self.state = State::Started,
                (State::Text, _) => {
                    // These can be megabytes long: images travel in them.
                    let rest = &bytes[at..];
                    let end = rest.iter().position(|byte| matches!(byte, b'\n' | 0x07 | 0x18 | 0x1a | 0x1b));
                    let Some(end) = end else { return (bytes.len(), None) };
                    at += end;
                    if rest[end] == 0x1b {
                        continue;
                    }
                    self.state = State::Ground;
                    if rest[end] == b'\n' {
                        break;
                    }
                }
                (State::Started, b'[') => {
                    self.parameters.clear();
                    self.state = State::Control;
                }
                (State::Started, b']' | b'P' | b'X' | b'^' | b'_') => self.state = State::Text,
                (State::Started | State::Intermediate, b' '..=b'/') => self.state = State::Intermediate,
                (State::Started, b'D' | b'E') => return self.end(at, Some(Command::LineFeed)),
                (State::Started, b'M') => return self.end(at, Some(Command::Up(1))),
                (State::Started | State::Intermediate, b'0'..=b'~') => return self.end(at, None),
                (State::Control, b' '..=b'?') => {
                    if self.parameters.len() <= LONGEST_PARAMETERS {
                        self.parameters.push(char::from(byte));
                    }
                }
                (State::Control, b'@'..=b'~') => {
                    self.state = State::Ground;
                    return (at + 1, control(byte, &self.parameters));
                }
                (State::Started | State::Intermediate | State::Control, _) => {
                    self.state = State::Ground;
                    break;
                }
            }
            at += 1;
        }
        (at, None)
    }

    fn end<'a>(&mut self, at: usize, command: Option<Command<'a>>) -> (usize, Option<Command<'a>>) {
        self.state = State::Ground;
        (at + 1, command)
    }
}

fn control(last: u8, parameters: &str) -> Option<Command<'_>> {
    let plain = |byte: u8| byte.is_ascii_digit() || byte == b';' || byte == b':';
    if parameters.len() > LONGEST_PARAMETERS || !parameters.bytes().all(plain) {
        return None;
    }
    let first = parameters.split(';').next().unwrap_or_default();
    let number = first.parse::<u16>().ok().map(usize::from);
    let count = number.unwrap_or(1).max(1);
    Some(match last {
        b'm' => Command::Style(parameters),
        b'A' => Command::Up(count),
        b'B' => Command::Down(count),
        b'C' => Command::Forward(count),
        b'D' => Command::Back(count),
        b'E' => Command::NextLine(count),
        b'F' => Command::PreviousLine(count),
        b'G' => Command::Column(count - 1),
        b'K' => match number.unwrap_or(0) {
            0 => Command::EraseToEnd,
            1 => Command::EraseToStart,
            _ => Command::EraseLine,
        },
        // Clearing the whole screen would lose output that a person could still scroll back to.
        b'J' if number.unwrap_or(0) == 0 => Command::EraseBelow,
        _ => return None,
    })
}
