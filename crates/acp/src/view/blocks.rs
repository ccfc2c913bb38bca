//! Streamed text in blocks. The last block grows. The others are frozen and never sent again.
//!
//! The text alone decides where a block ends, not the chunks in which it came. If possible, a block
//! ends between two paragraphs. A code fence is closed at the end of a block and opened again in
//! the next.

/// From here on a block ends at the next paragraph.
const SOFT: usize = 4 * 1024;
/// From here on a block ends at the next line.
const HARD: usize = 8 * 1024;
/// Lines up to this length are read whole. Longer ones are cut.
const LINE: usize = 4 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextSyntax {
    /// Code fences are kept whole.
    Markdown,
    /// Lines only.
    Plain,
}

/// A growing text.
#[derive(Debug)]
pub(super) struct TextBlocks {
    syntax: TextSyntax,
    /// The open block: lines that were judged, then the rest.
    block: String,
    /// Up to here lines were judged.
    judged: usize,
    /// Up to here there is no line feed after `judged`.
    scanned: usize,
    fence: Option<CodeFence>,
    /// Whether the judged text ends in an empty line.
    after_blank: bool,
    /// Whether the judged text ends inside a line.
    inside_line: bool,
}

#[derive(Debug, Clone)]
struct CodeFence {
    mark: char,
    length: usize,
    /// The line that opened it, with its line feed.
    opening: String,
}

impl TextBlocks {
    pub(super) fn new(syntax: TextSyntax) -> Self {
        Self {
            syntax,
            block: String::new(),
            judged: 0,
            scanned: 0,
            fence: None,
            after_blank: false,
            inside_line: false,
        }
    }

    /// The block that grows.
    pub(super) fn open(&self) -> &str {
        &self.block
    }

    /// Adds text and returns the blocks that are complete now.
    pub(super) fn push(&mut self, mut text: &str) -> Vec<String> {
        let mut frozen = Vec::new();
        // In pieces, because freezing a block copies the text after it. For megabytes that would be
        // expensive.
        while !text.is_empty() {
            let (piece, rest) = text.split_at(text.floor_char_boundary(HARD));
            text = rest;
            self.block.push_str(piece);
            while let Some(end) = self.next_line() {
                if self.may_end_before(&self.block[self.judged..end]) {
                    frozen.push(self.freeze());
                } else {
                    self.judge(end);
                }
            }
        }
        frozen
    }

    /// The end of the next line, if the line is complete or too long to wait for.
    fn next_line(&mut self) -> Option<usize> {
        let bytes = self.block.as_bytes();
        let limit = self.judged + LINE;
        let searched = self.scanned..bytes.len().min(limit);
        if let Some(at) = memchr::memchr(b'\n', &bytes[searched]) {
            return Some(self.scanned + at + 1);
        }
        self.scanned = bytes.len().min(limit);
        if bytes.len() < limit {
            return None;
        }
        let limit = self.block.floor_char_boundary(limit);
        let long = &self.block[self.judged..limit];
        let cut = long.rfind(char::is_whitespace).map_or(long.len(), |at| long.ceil_char_boundary(at + 1));
        Some(self.judged + cut)
    }

    fn may_end_before(&self, line: &str) -> bool {
        match &self.fence {
            Some(fence) => self.judged >= HARD && !fence.is_closed_by(line),
            // An indented line belongs to the text before it, such as an item of a list.
            None if self.judged < HARD => {
                let starts = !line.starts_with(char::is_whitespace);
                self.judged >= SOFT && self.after_blank && starts && !self.inside_line
            }
            None => true,
        }
    }

    /// Ends the block before the line that comes next.
    fn freeze(&mut self) -> String {
        let rest = self.block.split_off(self.judged);
        let mut frozen = std::mem::take(&mut self.block);
        if let Some(fence) = &self.fence {
            if !frozen.ends_with('\n') {
                frozen.push('\n');
            }
            frozen.extend(std::iter::repeat_n(fence.mark, fence.length));
            frozen.push('\n');
            self.block.push_str(&fence.opening);
        }
        self.judged = self.block.len();
        self.scanned = self.judged;
        self.after_blank = false;
        self.block.push_str(&rest);
        frozen
    }

    fn judge(&mut self, end: usize) {
        let line = &self.block[self.judged..end];
        let whole = line.ends_with('\n');
        if !self.inside_line && self.syntax == TextSyntax::Markdown {
            match &self.fence {
                Some(fence) if whole && fence.is_closed_by(line) => self.fence = None,
                Some(_) => {}
                None => self.fence = whole.then(|| CodeFence::opened_by(line)).flatten(),
            }
        }
        self.after_blank = whole && line.trim().is_empty() && !self.inside_line;
        self.inside_line = !whole;
        self.judged = end;
        self.scanned = end;
    }
}

impl CodeFence {
    /// Fences count at any indent, because agents put them into lists.
    fn opened_by(line: &str) -> Option<Self> {
        let text = line.trim();
        let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let length = text.chars().take_while(|c| *c == mark).count();
        let info = &text[length..];
        (length >= 3 && !(mark == '`' && info.contains('`'))).then(|| Self {
            mark,
            length,
            opening: line.to_owned(),
        })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let text = line.trim();
        text.chars().all(|c| c == self.mark) && text.len() >= self.length
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn blocks(syntax: TextSyntax, chunks: &[&str]) -> Vec<String> {
        let mut blocks = TextBlocks::new(syntax);
        let mut all: Vec<_> = chunks.iter().flat_map(|chunk| blocks.push(chunk)).collect();
        all.push(blocks.open().to_owned());
        all
    }

    #[test]
    fn a_block_ends_between_paragraphs() {
        let paragraph = format!("{}\n\n", "word ".repeat(200));
        let text = paragraph.repeat(9);
        let sizes: Vec<_> = blocks(TextSyntax::Markdown, &[&text]).iter().map(String::len).collect();
        assert_eq!(sizes, [5 * 1002, 4 * 1002]);
    }

    #[test]
    fn a_long_fence_is_closed_and_opened_again() {
        let text = format!("before\n\n```py\n{}```\n\nafter\n", "x = 1  # a line of code\n".repeat(1000));
        let blocks = blocks(TextSyntax::Markdown, &[&text]);
        let fences: Vec<_> = blocks.iter().map(|block| block.matches("```").count()).collect();
        assert_eq!(fences, [2, 2, 2, 0]);
        assert_eq!(blocks.concat().replace("```\n```py\n", ""), text);
    }

    #[test]
    fn a_list_stays_together_until_the_block_is_too_long() {
        let item = format!("- item\n\n  {}\n\n", "word ".repeat(100));
        let text = format!("{}{}", "x\n\n".repeat(1400), item.repeat(20));
        for block in blocks(TextSyntax::Markdown, &[&text]).iter().skip(1) {
            assert!(!block.starts_with(' '), "{block}");
        }
    }

    #[test]
    fn one_endless_line_is_cut_between_words() {
        let text = "word ".repeat(10_000);
        let blocks = blocks(TextSyntax::Markdown, &[&text]);
        assert!(blocks.len() >= 4 && blocks.iter().all(|block| block.len() <= HARD + 2 * LINE));
        assert!(blocks.iter().all(|block| block.starts_with('w')));
        assert_eq!(blocks.concat(), text);
    }

    /// Texts of a few blocks with everything that matters to the cut.
    fn texts() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            "[a-zé\u{1F600} ]{0,60}\n",
            Just("\n".to_owned()),
            Just("  indented\n".to_owned()),
            Just("```py\n".to_owned()),
            Just("```\n".to_owned()),
            Just("~~~~\n".to_owned()),
            (1_usize..12_000).prop_map(|length| "é".repeat(length / 2)),
            (1_usize..12_000).prop_map(|length| "ab ".repeat(length / 3)),
            (1_usize..200).prop_map(|lines| "a line of middling length\n".repeat(lines)),
        ];
        prop::collection::vec(part, 0..60).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn the_blocks_do_not_depend_on_the_chunks(
            text in texts(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        ) {
            let mut cuts: Vec<_> =
                cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let chunks: Vec<_> = cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
            for syntax in [TextSyntax::Markdown, TextSyntax::Plain] {
                prop_assert_eq!(blocks(syntax, &chunks), blocks(syntax, &[&text]));
            }
        }

        #[test]
        fn nothing_is_lost_between_blocks(text in texts()) {
            prop_assert_eq!(blocks(TextSyntax::Plain, &[&text]).concat(), text.clone());
            let longest = blocks(TextSyntax::Markdown, &[&text]).iter().map(String::len).max().unwrap();
            prop_assert!(longest <= HARD + 2 * LINE + 64);
        }
    }
}
