//! The one pass that checks a file: JSON's grammar as Python reads it, with the position of the first fault.

use super::TextSpan;

/// Deeper than any notebook, and far from the end of the stack. Python's own reader gives up near 1,000.
/// Counted in open brackets from the start of the file, whichever part of it is read.
pub(crate) const MAX_DEPTH: usize = 900;

/// Why the text is not JSON, and at which byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) at: usize,
    pub(crate) reason: String,
    /// Whether the text ends before the fault could be anything else: more of it might be right.
    pub(crate) is_cut: bool,
}

/// A position in a JSON text. Methods named after a thing step over that thing and return where it was.
pub(crate) struct JsonScanner<'a> {
    bytes: &'a [u8],
    pub(crate) at: usize,
    /// How many brackets of the file are open here.
    pub(crate) depth: usize,
}

impl<'a> JsonScanner<'a> {
    /// At a place of a text that was checked whole: whatever is there is not too deep.
    pub(crate) fn new(text: &'a str, at: usize) -> Self {
        Self::inside(text, at, 0)
    }

    /// At a place inside `depth` brackets of the file.
    pub(crate) fn inside(text: &'a str, at: usize, depth: usize) -> Self {
        Self { bytes: text.as_bytes(), at, depth }
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(crate) fn fail<T>(&self, reason: impl Into<String>) -> Result<T, SyntaxError> {
        let is_cut = self.at >= self.bytes.len();
        Err(SyntaxError { at: self.at, reason: reason.into(), is_cut })
    }

    /// A fault that more text would mend.
    fn cut_off<T>(&self, reason: &str) -> Result<T, SyntaxError> {
        Err(SyntaxError { at: self.at, reason: reason.to_owned(), is_cut: true })
    }

    /// Steps over `byte` if it is next.
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        let next = self.peek() == Some(byte);
        self.at += usize::from(next);
        next
    }

    pub(crate) fn space(&mut self) {
        loop {
            match self.peek() {
                Some(b' ') => self.at += spaces(&self.bytes[self.at..]),
                Some(b'\n' | b'\r' | b'\t') => self.at += 1,
                _ => return,
            }
        }
    }

    pub(crate) fn value(&mut self) -> Result<TextSpan, SyntaxError> {
        let start = self.at;
        match self.peek() {
            Some(b'"') => {
                self.string()?;
            }
            Some(b'{') => self.object()?,
            Some(b'[') => self.array()?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true")?,
            Some(b'f') => self.word("false")?,
            Some(b'n') => self.word("null")?,
            Some(b'N') => self.word("NaN")?,
            Some(b'I') => self.word("Infinity")?,
            Some(_) => return self.fail("expected a value"),
            None => return self.fail("the file ends where a value should be"),
        }
        Ok(start..self.at)
    }

    fn array(&mut self) -> Result<(), SyntaxError> {
        let mut last_end = None;
        self.items(b']', |scanner| {
            let start = scanner.at;
            scanner.value()?;
            if let Some(end) = last_end
                && scanner.bytes[start] == b'"'
            {
                // Between two lines of a text stand the comma and the white space that stand between all of them.
                let separator = &scanner.bytes[end..=start];
                while scanner.bytes[scanner.at..].starts_with(separator) {
                    scanner.at += separator.len() - 1;
                    scanner.string()?;
                }
            }
            last_end = Some(scanner.at);
            Ok(())
        })
    }

    fn object(&mut self) -> Result<(), SyntaxError> {
        self.items(b'}', |scanner| {
            scanner.key()?;
            scanner.value().map(drop)
        })
    }

    /// Steps over a bracket, the items after it, and the bracket that closes it; `item` steps over one item.
    pub(crate) fn items(
        &mut self,
        close: u8,
        mut item: impl FnMut(&mut Self) -> Result<(), SyntaxError>,
    ) -> Result<(), SyntaxError> {
        if self.depth == MAX_DEPTH {
            return self.fail(format!("nested deeper than {MAX_DEPTH} levels"));
        }
        self.at += 1;
        self.space();
        if self.take(close) {
            return Ok(());
        }
        self.depth += 1;
        loop {
            item(self)?;
            if self.delimiter(close)? {
                self.depth -= 1;
                return Ok(());
            }
        }
    }

    /// Steps over a key and its colon, up to the value; returns the key, quotes included.
    pub(crate) fn key(&mut self) -> Result<TextSpan, SyntaxError> {
        match self.peek() {
            Some(b'"') => {}
            Some(_) => return self.fail("expected a key in double quotes"),
            None => return self.fail("the file ends where a key should be"),
        }
        let key = self.string()?;
        self.space();
        if !self.take(b':') {
            return self.fail("expected `:` after the key");
        }
        self.space();
        Ok(key)
    }

    /// Steps over what follows an item: the closing bracket (true), or a comma up to the next item (false).
    pub(crate) fn delimiter(&mut self, close: u8) -> Result<bool, SyntaxError> {
        // Most items have their comma right behind them.
        if self.peek() != Some(b',') {
            self.space();
            match self.peek() {
                Some(b',') => {}
                Some(byte) if byte == close => {
                    self.at += 1;
                    return Ok(true);
                }
                Some(_) => return self.fail(format!("expected `,` or `{}`", char::from(close))),
                None => {
                    return self.fail(format!("the file ends before the closing `{}`", char::from(close)));
                }
            }
        }
        self.at += 1;
        self.space();
        if self.peek() == Some(close) {
            return self.fail(format!("a comma before `{}`", char::from(close)));
        }
        Ok(false)
    }

    /// Steps over a string; returns it with its quotes.
    pub(crate) fn string(&mut self) -> Result<TextSpan, SyntaxError> {
        let start = self.at;
        self.at += 1;
        loop {
            let rest = &self.bytes[self.at..];
            let end = plain(rest);
            self.at += end;
            match rest.get(end) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(start..self.at);
                }
                Some(b'\\') if rest.get(end + 1) == Some(&b'n') => self.at += 2,
                Some(b'\\') => {
                    self.at += 1;
                    self.escape()?;
                }
                Some(_) => return self.fail("a control character inside a string must be escaped"),
                None => {
                    self.at = start;
                    return self.cut_off("a string that never ends");
                }
            }
        }
    }

    /// Steps over what follows a backslash. Lone surrogates are fine: Python writes them.
    fn escape(&mut self) -> Result<(), SyntaxError> {
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                let digits = self.bytes.get(self.at + 1..self.at + 5).unwrap_or_default();
                if digits.len() < 4 || !digits.iter().all(u8::is_ascii_hexdigit) {
                    let reason = "`\\u` needs four hex digits";
                    let rest = self.bytes.get(self.at + 1..).unwrap_or_default();
                    let may_go_on = rest.len() < 4 && rest.iter().all(u8::is_ascii_hexdigit);
                    return if may_go_on { self.cut_off(reason) } else { self.fail(reason) };
                }
                self.at += 5;
            }
            _ => return self.fail("not an escape that JSON has"),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), SyntaxError> {
        if self.take(b'-') && self.peek() == Some(b'I') {
            return self.word("Infinity");
        }
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), SyntaxError> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start { self.fail("expected a digit") } else { Ok(()) }
    }

    fn word(&mut self, word: &str) -> Result<(), SyntaxError> {
        let rest = &self.bytes[self.at..];
        if !rest.starts_with(word.as_bytes()) {
            let reason = "expected a value";
            let may_go_on = word.as_bytes().starts_with(rest);
            return if may_go_on { self.cut_off(reason) } else { self.fail(reason) };
        }
        self.at += word.len();
        Ok(())
    }
}

/// How many of the next eight bytes come before the first that is not a space. Indentation is most of a file's lines.
fn spaces(bytes: &[u8]) -> usize {
    match bytes.first_chunk() {
        Some(word) => {
            (u64::from_le_bytes(*word) ^ u64::from_le_bytes([b' '; 8])).trailing_zeros() as usize / 8
        }
        None => bytes.iter().take_while(|byte| **byte == b' ').count(),
    }
}

/// How many bytes come before the first quote, backslash or control character.
fn plain(bytes: &[u8]) -> usize {
    /// Looked at twice, so no more than the fastest cache holds.
    const WINDOW: usize = 8192;
    // Most lines end with their line feed.
    if bytes.first() == Some(&b'"') {
        return 0;
    }
    // Most strings end within this many bytes: looking by words is done before a search by vectors has begun.
    let (words, _) = bytes[..bytes.len().min(80)].as_chunks();
    for (place, word) in words.iter().enumerate() {
        let special = special_bytes(*word);
        if special != 0 {
            return 8 * place + special.trailing_zeros() as usize / 8;
        }
    }
    let mut at = 8 * words.len();
    loop {
        let window = &bytes[at..bytes.len().min(at + WINDOW)];
        let end = memchr::memchr2(b'"', b'\\', window);
        let run = &window[..end.unwrap_or(window.len())];
        if has_control(run) {
            return at + run.iter().take_while(|byte| **byte >= 0x20).count();
        }
        at += run.len();
        if end.is_some() || at == bytes.len() {
            return at;
        }
    }
}

/// Whether there is a control character. By words: the release build is made for size and leaves no loop to vectors.
fn has_control(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks();
    let found = words.iter().fold(0, |found, word| found | less_than(u64::from_le_bytes(*word), 0x20));
    found != 0 || rest.iter().any(|byte| *byte < 0x20)
}

/// A number whose lowest set bit is in the first special byte of the word; 0 if it has none. Bits above that mean nothing.
fn special_bytes(word: [u8; 8]) -> u64 {
    let word = u64::from_le_bytes(word);
    let equal = |byte: u8| less_than(word ^ (EACH * u64::from(byte)), 1);
    less_than(word, 0x20) | equal(b'"') | equal(b'\\')
}

/// A number whose lowest set bit is in the first byte of the word that is less than `number`; 0 if there is none.
fn less_than(word: u64, number: u8) -> u64 {
    // Taking a number from every byte of the word borrows, into the high bit, first where the byte is less than that.
    word.wrapping_sub(EACH * u64::from(number)) & !word & (EACH << 7)
}

/// Times a byte: that byte in every place of a word.
const EACH: u64 = u64::from_ne_bytes([1; 8]);

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<(), (usize, &str)>) {
        let mut scanner = JsonScanner::new(text, 0);
        let found = scanner.value().map(drop).map_err(|error| (error.at, error.reason));
        assert_eq!(found, expected.map_err(|(at, reason)| (at, reason.to_owned())), "{text}");
    }

    #[test]
    fn what_python_writes_is_json_here() {
        for text in ["NaN", "-Infinity", "1E5", "-0.0", "1e400", r#""\ud800""#, r#"{"a":1,"a":2}"#, "[ ]"] {
            check(text, Ok(()));
        }
    }

    #[test]
    fn a_fault_is_named_where_it_is() {
        check("[1,]", Err((3, "a comma before `]`")));
        check("[1 2]", Err((3, "expected `,` or `]`")));
        check("{1:2}", Err((1, "expected a key in double quotes")));
        check("{\"a\":1, ", Err((8, "the file ends where a key should be")));
        check(r#"{"a" 2}"#, Err((5, "expected `:` after the key")));
        check("\"a\nb\"", Err((2, "a control character inside a string must be escaped")));
        check(r#""\x""#, Err((2, "not an escape that JSON has")));
        check(r#""\u12"#, Err((2, "`\\u` needs four hex digits")));
        check(r#""\u12 ""#, Err((2, "`\\u` needs four hex digits")));
        check("[\"abc", Err((1, "a string that never ends")));
        check("1.", Err((2, "expected a digit")));
        check("[tru]", Err((1, "expected a value")));
        check("[1", Err((2, "the file ends before the closing `]`")));
    }

    #[test]
    fn a_fault_among_lines_of_a_text_is_named_where_it_is() {
        check(r#"["a", "b", "c", 1, "d",  "e", "f", []]"#, Ok(()));
        check(r#"["a", "b", "c", ]"#, Err((16, "a comma before `]`")));
        check(r#"["a", "b", "c" "d"]"#, Err((15, "expected `,` or `]`")));
        check(r#"["a", "b", "\x"]"#, Err((13, "not an escape that JSON has")));
        check(r#"["a", "b", "c"#, Err((11, "a string that never ends")));
    }

    #[test]
    fn the_first_special_byte_is_found_wherever_it_is() {
        for length in 0..100 {
            for special in [0, 0x1f, b'"', b'\\'] {
                for harmless in [0x20, b'!', b'#', b'[', b']', 0x7f, 0x80, 0xa2, 0xdc, 0xff] {
                    let mut bytes = vec![harmless; length];
                    assert_eq!(plain(&bytes), length);
                    bytes.push(special);
                    bytes.extend([harmless, special, b'"']);
                    assert_eq!(plain(&bytes), length, "{special} after {harmless}");
                }
            }
        }
    }

    #[test]
    fn deep_nesting_is_refused_before_the_stack_ends() {
        let text = "[".repeat(100_000);
        check(&text, Err((MAX_DEPTH, "nested deeper than 900 levels")));
        // Inside other brackets, those count.
        for depth in [0, 1, 899, 900] {
            let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
            let fits = |levels: usize| JsonScanner::inside(&nested(levels), 0, depth).value().is_ok();
            assert!(fits(MAX_DEPTH - depth) || depth == MAX_DEPTH, "{depth}");
            assert!(!fits(MAX_DEPTH - depth + 1), "{depth}");
        }
    }

    #[test]
    fn a_text_that_was_cut_short_is_known_from_one_that_is_wrong() {
        let is_cut = |text: &str| JsonScanner::new(text, 0).value().expect_err("a fault").is_cut;
        let whole = r#"{"a": [1.5e-3, true, -Infinity, "x\u00e9\n", {"b": null}]}"#;
        for end in 0..whole.len() {
            assert!(is_cut(&whole[..end]), "{}", &whole[..end]);
        }
        for wrong in ["[1 2", "{1", "[tru]", "\"\\x", "\"\\u12 ", "\"a\n", "[,"] {
            assert!(!is_cut(wrong), "{wrong}");
        }
    }
}
