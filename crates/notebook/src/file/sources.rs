//! Reading a large notebook for its sources: its outputs pass by and are never held.

use std::io::{self, Read};

use crate::both::LARGE;
use crate::cell::CellSpans;
use crate::json::{JsonScanner, SyntaxError, TextSpan, string::decode};
use crate::notebook::Notebook;
use crate::snapshot::{Fingerprint, FingerprintHasher};

/// Bytes that are read at once: few enough that they are in the processor's cache until they have been looked at.
pub(super) const CHUNK: usize = 512 << 10;

/// If more than this is not outputs, the file is better read at once.
const LONGEST: usize = LARGE;

/// A notebook without the outputs of its cells, and the fingerprint of the whole file. Reads `chunk` bytes at a time, and holds only what it needs.
/// `None` if it is not a notebook, or one that must be seen whole.
pub fn skim(file: impl Read, chunk: usize) -> Option<(Notebook, Fingerprint)> {
    let mut window = TextWindow::onto(file, chunk);
    let cells = window.notebook()?;
    let TextWindow { kept, chunks, .. } = window;
    let notebook = Notebook::parse(kept.into_bytes()).ok()?;
    // If there are two lists of cells, the last one counts. Here we have seen both.
    (notebook.len() == cells).then(|| (notebook, chunks.hashing.done()))
}

/// The longest start of a character that is not all of it.
const CARRIED: usize = 3;

/// A file that is read on and on.
struct Chunks<R> {
    file: R,
    bytes: Vec<u8>,
    /// How many bytes at the start of `bytes` wait for the rest of their character.
    carried: usize,
    hashing: FingerprintHasher,
}

/// Whether there is more.
#[derive(PartialEq, Eq)]
enum MoreChunks {
    Maybe,
    No,
}

impl<R: Read> Chunks<R> {
    /// Appends the next chunk. Nothing when it cannot be read or is not UTF-8.
    fn append_to(&mut self, text: &mut String) -> Option<MoreChunks> {
        let length = loop {
            match self.file.read(&mut self.bytes[self.carried..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => break done.ok()?,
            }
        };
        let end = self.carried + length;
        self.hashing.add(&self.bytes[self.carried..end]);
        let complete = match str::from_utf8(&self.bytes[..end]) {
            Ok(complete) => complete,
            Err(error) if error.error_len().is_some() || length == 0 => return None,
            Err(error) => str::from_utf8(&self.bytes[..error.valid_up_to()]).expect("it was checked"),
        };
        text.push_str(complete);
        let complete = complete.len();
        self.bytes.copy_within(complete..end, 0);
        self.carried = end - complete;
        Some(if length > 0 { MoreChunks::Maybe } else { MoreChunks::No })
    }
}

/// The part of a text that is being looked at, and what was kept of those before it.
struct TextWindow<R> {
    text: String,
    at: usize,
    /// How many brackets of the file are open there.
    depth: usize,
    chunks: Chunks<R>,
    more: MoreChunks,
    kept: String,
}

impl<R: Read> TextWindow<R> {
    fn onto(file: R, chunk: usize) -> Self {
        let chunks = Chunks {
            file,
            bytes: vec![0; CARRIED + chunk],
            carried: 0,
            hashing: FingerprintHasher::default(),
        };
        Self { text: String::new(), at: 0, depth: 0, chunks, more: MoreChunks::Maybe, kept: String::new() }
    }

    /// Keeps the notebook's text without outputs, and returns how many cells it has seen.
    fn notebook(&mut self) -> Option<usize> {
        let mut cells = 0;
        self.keep(|text, scanner| {
            if text[scanner.at..].starts_with('\u{feff}') {
                scanner.at += '\u{feff}'.len_utf8();
            }
            scanner.space();
            open(scanner, b'{')
        })?;
        self.depth = 1;
        loop {
            let is_cells = self.keep(|text, scanner| {
                scanner.key().map(|key| decode(&text[key.start + 1..key.end - 1]) == "cells")
            })?;
            if is_cells {
                self.cells(&mut cells)?;
            } else {
                self.keep(|_, scanner| scanner.value().map(drop))?;
            }
            if self.keep(|_, scanner| scanner.delimiter(b'}'))? {
                break;
            }
        }
        while self.more == MoreChunks::Maybe {
            self.read_on()?;
        }
        self.kept.push_str(&self.text[self.at..]);
        Some(cells)
    }

    fn cells(&mut self, seen: &mut usize) -> Option<()> {
        self.keep(|_, scanner| open(scanner, b'['))?;
        self.depth = 2;
        loop {
            let index = *seen;
            let ((spans, is_last), span) = self.step(|text, scanner| {
                let cell = CellSpans::scan(text, scanner, index)?;
                Ok((cell, scanner.delimiter(b']')?))
            })?;
            *seen += 1;
            let outputs = spans.outputs.unwrap_or(span.end..span.end);
            let parts = [
                &self.text[span.start..outputs.start],
                if outputs.is_empty() { "" } else { "[]" },
                &self.text[outputs.end..span.end],
            ];
            if self.kept.len() + parts.iter().map(|part| part.len()).sum::<usize>() > LONGEST {
                return None;
            }
            self.kept.extend(parts);
            if is_last {
                self.depth = 1;
                return Some(());
            }
        }
    }

    /// Steps over something and keeps it.
    fn keep<T>(&mut self, look: impl Fn(&str, &mut JsonScanner<'_>) -> Result<T, SyntaxError>) -> Option<T> {
        let (found, span) = self.step(look)?;
        if self.kept.len() + span.len() > LONGEST {
            return None;
        }
        self.kept.push_str(&self.text[span]);
        Some(found)
    }

    /// Steps over something, which is at the returned place until the next step. `None` if it is not what is expected.
    fn step<T>(
        &mut self,
        look: impl Fn(&str, &mut JsonScanner<'_>) -> Result<T, SyntaxError>,
    ) -> Option<(T, TextSpan)> {
        loop {
            let mut scanner = JsonScanner::inside(&self.text, self.at, self.depth);
            match look(&self.text, &mut scanner) {
                // What reaches the end of the window may go on after it.
                Ok(found) if self.more == MoreChunks::No || scanner.at < self.text.len() => {
                    let span = self.at..scanner.at;
                    self.at = span.end;
                    return Some((found, span));
                }
                Ok(_) | Err(_) if self.more == MoreChunks::Maybe => self.read_on()?,
                Ok(_) | Err(_) => return None,
            }
        }
    }

    /// Leaves behind what was stepped over, and reads at least as much as is left: a long cell is not looked at again for each chunk of it.
    fn read_on(&mut self) -> Option<()> {
        self.text.drain(..self.at);
        self.at = 0;
        let enough = 2 * self.text.len();
        while self.more == MoreChunks::Maybe && self.text.len() <= enough {
            self.more = self.chunks.append_to(&mut self.text)?;
        }
        Some(())
    }
}

/// Steps over an opening bracket, up to the first item.
fn open(scanner: &mut JsonScanner<'_>, bracket: u8) -> Result<(), SyntaxError> {
    if !scanner.take(bracket) {
        return scanner.fail("another bracket was expected");
    }
    scanner.space();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Whether what is skimmed is what reading it whole gives, whatever the chunks are.
    #[track_caller]
    fn check(bytes: &[u8], chunks: &[usize]) -> bool {
        let whole = Notebook::parse(bytes.to_vec());
        let whole =
            whole.map(|whole| (whole.to_marked_text(), whole.language(), Fingerprint::of_file(&whole)));
        let mut skimmed = 0;
        for chunk in chunks {
            if let Some((notebook, seen)) = skim(bytes, *chunk) {
                let found = (notebook.to_marked_text(), notebook.language(), seen);
                assert_eq!(Ok(&found), whole.as_ref());
                skimmed += 1;
            }
        }
        assert!([0, chunks.len()].contains(&skimmed), "{}", String::from_utf8_lossy(bytes));
        skimmed > 0
    }

    #[test]
    fn a_notebook_that_is_skimmed_has_its_cells_and_its_fingerprint() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
        let (mut skimmed, mut total) = (0, 0);
        for entry in fs::read_dir(corpus).unwrap() {
            let bytes = fs::read(entry.unwrap().path()).unwrap();
            skimmed += usize::from(check(&bytes, &[200, 1 << 20]));
            total += 1;
            // Cut short, it is what it is then: nothing, as a rule.
            for end in (0..bytes.len()).step_by(bytes.len() / 8 + 1) {
                check(&bytes[..end], &[1000]);
            }
        }
        assert!(total > 40 && skimmed > total / 2, "{skimmed} of {total}");
    }

    #[test]
    fn what_is_long_and_not_outputs_is_left_to_others() {
        let long = "x".repeat(LONGEST);
        let cells = |source: &str, output: &str| {
            let cell = format!(r#"{{"cell_type":"code","source":"{source}","outputs":["{output}"]}}"#);
            format!(r#"{{"cells":[{cell},{cell}],"nbformat":4,"metadata":{{}}}}"#)
        };
        assert!(check(cells("", &long).as_bytes(), &[CHUNK]));
        assert!(!check(cells(&long, "").as_bytes(), &[CHUNK]));
        assert!(!check(cells("", "").replace("{}}", &format!("\"{long}\"}}")).as_bytes(), &[CHUNK]));
    }

    #[test]
    fn what_is_not_a_plain_notebook_is_left_to_others() {
        const CHUNKS: [usize; 5] = [1, 2, 3, 16, 1000];
        let cell = r#"{"cell_type":"code","source":"é","outputs":[{"a":["☕", 1e5]}]}"#;
        let good = format!("\u{feff}{{\"cells\": [{cell} , {cell}], \"nbformat\" : 4}} \n");
        assert!(check(good.as_bytes(), &CHUNKS));
        let (without_outputs, _) = skim(good.as_bytes(), 16).unwrap();
        assert_eq!(without_outputs.text(), good.replace(r#"[{"a":["☕", 1e5]}]"#, "[]"));
        for bad in [
            format!("{good}x"),
            good.replace("nbformat", "nb"),
            good.replace('4', "3"),
            good.replace("]}]", "]}"),
            good.replace("\"code\"", "7"),
            format!(r#"{{"cells":[{cell}],"nbformat":4,"cells":[{cell}]}}"#),
            format!(r#"{{"cells":[{cell}],"nbformat":4,"c\u0065lls":[{cell}]}}"#),
            r#"{"cells":[],"nbformat":4}"#.to_owned(),
            "[]".to_owned(),
            String::new(),
        ] {
            assert!(!check(bad.as_bytes(), &CHUNKS), "{bad}");
        }
        for not_text in [&b"\xff"[..], b"\xe2\x98", b"a\xe2\x98b"] {
            let cut = good.len() / 2;
            assert!(!check(&[&good.as_bytes()[..cut], not_text].concat(), &CHUNKS));
            assert!(!check(&[good.as_bytes(), not_text].concat(), &CHUNKS));
        }
    }
}
