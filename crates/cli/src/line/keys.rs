//! Keys, from the bytes that a terminal sends for them.

/// Something that was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TypedKey {
    Character(char),
    /// With Ctrl: a small letter, or one of `@[\]^_`.
    Control(char),
    /// With Alt, or after Escape.
    Alt(char),
    /// Text that was pasted as a whole.
    Paste(String),
    Enter,
    /// Enter that never runs anything: with Alt.
    LineBreak,
    Tab,
    BackTab,
    Backspace,
    Delete,
    Escape,
    Up,
    Down,
    Left,
    Right,
    WordLeft,
    WordRight,
    Home,
    End,
    /// F1
    Help,
    /// No key: the terminal's answer when it is asked what it is.
    Attributes {
        /// It draws sixel graphics.
        sixel: bool,
    },
}

const PASTE_BEGIN: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// Longest sequence that can be a key; what is longer is garbage.
const LONGEST: usize = 32;

/// Takes bytes and gives keys.
#[derive(Debug, Default)]
pub(crate) struct KeyParser {
    bytes: Vec<u8>,
}

/// What the bytes begin with.
enum ParsedKey {
    /// A key, or none that we know, and its length.
    Whole(Option<TypedKey>, usize),
    /// More bytes have to come.
    Unfinished,
}

impl KeyParser {
    /// Takes what was read, and returns the keys that it completes.
    pub(crate) fn take(&mut self, read: &[u8]) -> Vec<TypedKey> {
        self.bytes.extend_from_slice(read);
        let mut keys = Vec::new();
        while !self.bytes.is_empty()
            && let ParsedKey::Whole(key, length) = parse(&self.bytes)
        {
            keys.extend(key);
            self.bytes.drain(..length);
        }
        keys
    }

    /// Whether bytes wait for others, which come at once if they come.
    pub(crate) fn waits(&self) -> bool {
        !self.bytes.is_empty() && !self.bytes.starts_with(PASTE_BEGIN)
    }

    /// What the bytes mean if no others come: Escape, for one.
    pub(crate) fn give_up(&mut self) -> Option<TypedKey> {
        let is_escape = self.bytes == b"\x1b";
        self.bytes.clear();
        is_escape.then_some(TypedKey::Escape)
    }
}

fn parse(bytes: &[u8]) -> ParsedKey {
    match bytes[0] {
        0x1b => escape(bytes),
        b'\r' | b'\n' => ParsedKey::Whole(Some(TypedKey::Enter), 1),
        b'\t' => ParsedKey::Whole(Some(TypedKey::Tab), 1),
        0x7f | 0x08 => ParsedKey::Whole(Some(TypedKey::Backspace), 1),
        control @ 0..0x20 => {
            let letter = char::from(control | 0x40).to_ascii_lowercase();
            ParsedKey::Whole(Some(TypedKey::Control(letter)), 1)
        }
        _ => character(bytes),
    }
}

fn character(bytes: &[u8]) -> ParsedKey {
    let length = match bytes[0] {
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf8 => 4,
        _ => 1,
    };
    let Some(letter) = bytes.get(..length) else { return ParsedKey::Unfinished };
    let text = str::from_utf8(letter).ok();
    ParsedKey::Whole(text.and_then(|text| text.chars().next()).map(TypedKey::Character), length)
}

fn escape(bytes: &[u8]) -> ParsedKey {
    if bytes.starts_with(PASTE_BEGIN) {
        return paste(bytes);
    }
    match bytes.get(1) {
        None => ParsedKey::Unfinished,
        Some(b'[' | b'O') => {
            let introducer = if bytes[1] == b'[' { 2 } else { 3 };
            let end = bytes.iter().skip(2).position(|byte| (0x40..0x7f).contains(byte));
            match end {
                // F1 of the Linux console: `\x1b[[A`.
                Some(0) if bytes[2] == b'[' => match bytes.get(3) {
                    Some(letter) => ParsedKey::Whole((*letter == b'A').then_some(TypedKey::Help), 4),
                    None => ParsedKey::Unfinished,
                },
                Some(at) => ParsedKey::Whole(sequence(&bytes[2..2 + at], bytes[2 + at], introducer), at + 3),
                None if bytes.len() > LONGEST => ParsedKey::Whole(None, bytes.len()),
                None => ParsedKey::Unfinished,
            }
        }
        Some(b'\r' | b'\n') => ParsedKey::Whole(Some(TypedKey::LineBreak), 2),
        Some(0x7f | 0x08) => ParsedKey::Whole(Some(TypedKey::Alt('\u{7f}')), 2),
        Some(0x1b) => ParsedKey::Whole(Some(TypedKey::Escape), 1),
        Some(_) => match parse(&bytes[1..]) {
            ParsedKey::Whole(key, length) => {
                let key = key.and_then(|key| match key {
                    TypedKey::Character(letter) => Some(TypedKey::Alt(letter)),
                    _ => None,
                });
                ParsedKey::Whole(key, length + 1)
            }
            ParsedKey::Unfinished => ParsedKey::Unfinished,
        },
    }
}

/// The key of `\x1b[PARAMETERS LETTER`, or of `\x1bO LETTER`.
fn sequence(parameters: &[u8], letter: u8, introducer: u8) -> Option<TypedKey> {
    let mut numbers = parameters.split(|byte| *byte == b';');
    let first = numbers.next().unwrap_or_default();
    // 2 is Shift, 3 Alt, 5 Ctrl; Alt and Ctrl both go by words.
    let by_words = matches!(numbers.next(), Some([b'3' | b'5']));
    Some(match letter {
        b'A' => TypedKey::Up,
        b'B' => TypedKey::Down,
        b'C' if by_words => TypedKey::WordRight,
        b'D' if by_words => TypedKey::WordLeft,
        b'C' => TypedKey::Right,
        b'D' => TypedKey::Left,
        b'H' => TypedKey::Home,
        b'F' => TypedKey::End,
        b'Z' => TypedKey::BackTab,
        b'c' if first.starts_with(b"?") => {
            TypedKey::Attributes { sixel: parameters.split(|byte| *byte == b';').any(|part| part == b"4") }
        }
        b'P' if introducer == 3 => TypedKey::Help,
        b'M' if introducer == 3 => TypedKey::Enter,
        b'~' => match first {
            b"1" | b"7" => TypedKey::Home,
            b"4" | b"8" => TypedKey::End,
            b"3" => TypedKey::Delete,
            b"11" => TypedKey::Help,
            _ => return None,
        },
        _ => return None,
    })
}

fn paste(bytes: &[u8]) -> ParsedKey {
    let text = &bytes[PASTE_BEGIN.len()..];
    let Some(end) = text.windows(PASTE_END.len()).position(|window| window == PASTE_END) else {
        return ParsedKey::Unfinished;
    };
    let pasted = String::from_utf8_lossy(&text[..end]).replace("\r\n", "\n").replace('\r', "\n");
    ParsedKey::Whole(Some(TypedKey::Paste(pasted)), PASTE_BEGIN.len() + end + PASTE_END.len())
}

#[cfg(test)]
mod tests {
    use super::TypedKey::*;
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<TypedKey> {
        KeyParser::default().take(bytes)
    }

    #[test]
    fn keys_are_recognised_in_every_terminals_spelling() {
        assert_eq!(
            keys("aé\u{4e2d}\r\n\t".as_bytes()),
            [Character('a'), Character('é'), Character('中'), Enter, Enter, Tab]
        );
        assert_eq!(keys(b"\x01\x1f\x7f"), [Control('a'), Control('_'), Backspace]);
        assert_eq!(
            keys(b"\x1b[A\x1bOA\x1b[1;5C\x1b[1;3D\x1b[H\x1b[4~\x1b[3~\x1b[Z"),
            [Up, Up, WordRight, WordLeft, Home, End, Delete, BackTab]
        );
        assert_eq!(keys(b"\x1bOP\x1b[11~\x1b[[A"), [Help, Help, Help]);
        assert_eq!(keys(b"\x1bf\x1b\r\x1b[99;9u"), [Alt('f'), LineBreak]);
        assert_eq!(
            keys(b"\x1b[?62;4;22c\x1b[?1;2c"),
            [Attributes { sixel: true }, Attributes { sixel: false }]
        );
    }

    #[test]
    fn keys_arrive_in_pieces() {
        let mut parser = KeyParser::default();
        assert_eq!(parser.take(b"\x1b"), []);
        assert!(parser.waits());
        assert_eq!(parser.take(b"[1;"), []);
        assert_eq!(parser.take(b"5D\xc3"), [WordLeft]);
        assert_eq!(parser.take(b"\xa9"), [Character('é')]);
        assert_eq!((parser.take(b"\x1b"), parser.give_up()), (vec![], Some(Escape)));
        assert!(!parser.waits());
    }

    #[test]
    fn a_paste_is_one_key_with_its_line_breaks() {
        let mut parser = KeyParser::default();
        assert_eq!(parser.take(b"\x1b[200~a:\r\x1b[3"), []);
        assert!(!parser.waits(), "a long paste is not given up");
        assert_eq!(parser.take(b"1mb\r\nc\x1b[201~d"), [Paste("a:\n\x1b[31mb\nc".into()), Character('d')]);
    }
}
