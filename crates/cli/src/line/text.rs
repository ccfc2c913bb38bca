//! The text that is being typed, and the place in it.

use unicode_segmentation::UnicodeSegmentation as _;

/// Most earlier states that are kept to go back to.
const UNDONE: usize = 200;

/// A text and a cursor, which is always between two characters as people count them.
#[derive(Debug, Default)]
pub(crate) struct EditedText {
    text: String,
    /// In bytes.
    cursor: usize,
    /// The column that moves up and down aim at.
    aim: Option<usize>,
    /// What was removed last as a whole.
    removed: String,
    earlier: Vec<(String, usize)>,
    /// The last change was a letter, which the next letter joins.
    types: bool,
}

impl EditedText {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(crate) fn before(&self) -> &str {
        &self.text[..self.cursor]
    }

    /// The line with the cursor, up to the cursor.
    pub(crate) fn line_before(&self) -> &str {
        &self.text[self.line_start()..self.cursor]
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.cursor == self.text.len()
    }

    pub(crate) fn is_on_last_line(&self) -> bool {
        !self.text[self.cursor..].contains('\n')
    }

    pub(crate) fn is_on_first_line(&self) -> bool {
        !self.before().contains('\n')
    }

    /// Another text, with the cursor at its end.
    pub(crate) fn replace(&mut self, text: &str) {
        if text != self.text {
            self.remember();
            text.clone_into(&mut self.text);
        }
        self.cursor = text.len();
        self.aim = None;
    }

    /// Takes the text away, and forgets what came before it.
    pub(crate) fn take(&mut self) -> String {
        let text = std::mem::take(&mut self.text);
        *self = Self { removed: std::mem::take(&mut self.removed), ..Self::default() };
        text
    }

    pub(crate) fn insert(&mut self, text: &str) {
        let types = text.chars().count() == 1 && text != "\n";
        if !(types && self.types) {
            self.remember();
        }
        self.types = types;
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
        self.aim = None;
    }

    /// Replaces the text between two places, the second of which may be the cursor or behind it.
    pub(crate) fn splice(&mut self, start: usize, end: usize, text: &str) {
        self.remember();
        self.text.replace_range(start..end, text);
        self.cursor = start + text.len();
        self.aim = None;
    }

    pub(crate) fn undo(&mut self) {
        if let Some((text, cursor)) = self.earlier.pop() {
            (self.text, self.cursor) = (text, cursor);
            (self.types, self.aim) = (false, None);
        }
    }

    pub(crate) fn left(&mut self) {
        self.go(self.previous());
    }

    pub(crate) fn right(&mut self) {
        self.go(self.next());
    }

    pub(crate) fn word_left(&mut self) {
        self.go(self.word_start());
    }

    pub(crate) fn word_right(&mut self) {
        self.go(self.word_end());
    }

    pub(crate) fn home(&mut self) {
        self.go(self.line_start());
    }

    pub(crate) fn end(&mut self) {
        self.go(self.line_end());
    }

    /// One line up. On the first line it does nothing.
    pub(crate) fn up(&mut self) {
        let start = self.line_start();
        if start > 0 {
            let above = self.text[..start - 1].rfind('\n').map_or(0, |at| at + 1);
            self.aim_at(above);
        }
    }

    /// One line down. On the last line it does nothing.
    pub(crate) fn down(&mut self) {
        let end = self.line_end();
        if end < self.text.len() {
            self.aim_at(end + 1);
        }
    }

    pub(crate) fn delete_back(&mut self) {
        self.delete(self.previous(), self.cursor);
    }

    pub(crate) fn delete_forward(&mut self) {
        self.delete(self.cursor, self.next());
    }

    /// Removes up to the line's end, or the line's end itself.
    pub(crate) fn cut_to_end(&mut self) {
        let end = self.line_end();
        let end = if end == self.cursor { (end + 1).min(self.text.len()) } else { end };
        self.cut(self.cursor, end);
    }

    pub(crate) fn cut_to_start(&mut self) {
        self.cut(self.line_start(), self.cursor);
    }

    /// Removes what is between white space and the cursor.
    pub(crate) fn cut_word_back(&mut self) {
        let before = self.before().trim_end_matches(|c: char| c.is_whitespace() && c != '\n');
        let start = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        self.cut(start.min(self.cursor), self.cursor);
    }

    pub(crate) fn cut_part_back(&mut self) {
        self.cut(self.word_start(), self.cursor);
    }

    pub(crate) fn cut_part_forward(&mut self) {
        self.cut(self.cursor, self.word_end());
    }

    /// Inserts what was cut last.
    pub(crate) fn insert_cut(&mut self) {
        let removed = self.removed.clone();
        self.insert(&removed);
    }

    fn cut(&mut self, start: usize, end: usize) {
        if start < end {
            self.text[start..end].clone_into(&mut self.removed);
            self.delete(start, end);
        }
    }

    fn delete(&mut self, start: usize, end: usize) {
        if start < end {
            self.splice(start, end, "");
        }
    }

    fn remember(&mut self) {
        self.types = false;
        if self.earlier.len() == UNDONE {
            self.earlier.remove(0);
        }
        self.earlier.push((self.text.clone(), self.cursor));
    }

    fn go(&mut self, to: usize) {
        (self.cursor, self.aim, self.types) = (to, None, false);
    }

    /// Goes to the line that starts here, as far to the right as the cursor was.
    fn aim_at(&mut self, start: usize) {
        let column = self.aim.unwrap_or_else(|| self.line_before().graphemes(true).count());
        let line = self.text[start..].split('\n').next().unwrap_or_default();
        let length = line.grapheme_indices(true).nth(column).map_or(line.len(), |(at, _)| at);
        (self.cursor, self.aim, self.types) = (start + length, Some(column), false);
    }

    fn line_start(&self) -> usize {
        self.before().rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    fn previous(&self) -> usize {
        self.before().grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn next(&self) -> usize {
        let next = self.text[self.cursor..].graphemes(true).next();
        self.cursor + next.map_or(0, str::len)
    }

    fn word_start(&self) -> usize {
        let letters = self.before().trim_end_matches(|c: char| !is_of_word(c));
        letters.trim_end_matches(is_of_word).len()
    }

    fn word_end(&self) -> usize {
        let after = &self.text[self.cursor..];
        let letters = after.trim_start_matches(|c: char| !is_of_word(c));
        self.text.len() - letters.trim_start_matches(is_of_word).len()
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text whose cursor is at the bar.
    fn at(marked: &str) -> EditedText {
        let cursor = marked.find('|').expect("there is a bar");
        EditedText { text: marked.replacen('|', "", 1), cursor, ..EditedText::default() }
    }

    fn shown(text: &EditedText) -> String {
        format!("{}|{}", text.before(), &text.text[text.cursor..])
    }

    fn after(marked: &str, change: impl FnOnce(&mut EditedText)) -> String {
        let mut text = at(marked);
        change(&mut text);
        shown(&text)
    }

    #[test]
    fn the_cursor_goes_by_what_people_see_as_one_character() {
        assert_eq!(after("e\u{301}👩‍👩‍👧|", EditedText::delete_back), "e\u{301}|");
        assert_eq!(after("|e\u{301}x", EditedText::right), "e\u{301}|x");
        assert_eq!(after("a.bc(d|", EditedText::word_left), "a.bc(|d");
        assert_eq!(after("|  ab.c", EditedText::word_right), "  ab|.c");
    }

    #[test]
    fn up_and_down_keep_the_column() {
        assert_eq!(after("long line\nx\nlonger| one", EditedText::up), "long line\nx|\nlonger one");
        let twice = |text: &mut EditedText| {
            text.up();
            text.up();
        };
        assert_eq!(after("long line\nx\nlonger| one", twice), "long l|ine\nx\nlonger one");
        assert_eq!(after("a|b\nc", EditedText::down), "ab\nc|");
        assert_eq!(after("a|b", EditedText::down), "a|b");
    }

    #[test]
    fn what_was_cut_comes_back() {
        let back = |text: &mut EditedText| {
            text.cut_word_back();
            text.home();
            text.insert_cut();
        };
        assert_eq!(after("df.head(5) x.y|", back), "x.y|df.head(5) ");
        assert_eq!(after("ab|c\nd", EditedText::cut_to_end), "ab|\nd");
        assert_eq!(after("ab|\nd", EditedText::cut_to_end), "ab|d");
        assert_eq!(after("ab c|d\ne", EditedText::cut_to_start), "|d\ne");
    }

    #[test]
    fn letters_are_undone_together() {
        let mut text = EditedText::default();
        "one two".chars().for_each(|c| text.insert(&c.to_string()));
        text.cut_word_back();
        "x\n".chars().for_each(|c| text.insert(&c.to_string()));
        let mut states = Vec::new();
        for _ in 0..5 {
            states.push(shown(&text));
            text.undo();
        }
        assert_eq!(states, ["one x\n|", "one x|", "one |", "one two|", "|"]);
    }
}
