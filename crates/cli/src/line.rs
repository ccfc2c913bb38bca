//! A line editor for texts of several lines: keys in, rows of a screen out. It does no input and no output itself.

mod history;
mod keys;
mod layout;
mod text;

use self::text::EditedText;

pub(crate) use self::history::LineHistory;
pub(crate) use self::keys::{KeyParser, TypedKey};
pub(crate) use self::layout::{LayoutRow, LayoutWriter, PromptLayout};

use crate::draw::style::{TextPen, TextStyle};

/// What a key asks of the program. The text has changed already.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum KeyEffect {
    /// Nothing, or the text looks different.
    Redraw,
    /// Enter at the end: run it, or begin a new line.
    Enter,
    /// How could the text go on at the cursor?
    Complete,
    /// What is the thing at the cursor?
    Explain,
    /// Ctrl-C
    Interrupt,
    /// Ctrl-D without a text
    End,
    /// Ctrl-Z
    Suspend,
    /// Ctrl-L
    ClearScreen,
}

/// What stands before a text, and how the text looks.
pub(crate) struct LinePrompt<'a> {
    pub(crate) first: &'a str,
    pub(crate) style: TextStyle,
    /// Before lines after the first.
    pub(crate) next: &'a str,
    /// The text in pieces; together they are the text.
    pub(crate) colours: &'a dyn Fn(&str) -> Vec<(TextStyle, &str)>,
}

/// How text is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineMode {
    /// Code of several lines, with history and completion.
    Code,
    /// One line that a program asks for.
    Answer,
    /// The same, and nobody may see it.
    Secret,
}

/// Edits one text after the other.
#[derive(Debug)]
pub(crate) struct LineEditor {
    text: EditedText,
    mode: LineMode,
    walk: Option<HistoryWalk>,
    search: Option<HistorySearch>,
    menu: Option<CompletionMenu>,
    /// Nothing is suggested any more.
    is_settled: bool,
}

/// A walk through entries that begin like the text did.
#[derive(Debug)]
struct HistoryWalk {
    begun_with: String,
    place: usize,
}

/// A search for entries that hold a text.
#[derive(Debug)]
struct HistorySearch {
    wanted: String,
    place: usize,
    before: String,
    fails: bool,
}

/// Ways to go on, of which one may be chosen.
#[derive(Debug)]
struct CompletionMenu {
    matches: Vec<String>,
    chosen: Option<usize>,
    /// Where they go.
    start: usize,
    /// What was there.
    typed: String,
}

/// Rows of the menu.
const MENU_ROWS: usize = 6;

impl LineEditor {
    pub(crate) fn new(mode: LineMode) -> Self {
        Self { text: EditedText::default(), mode, walk: None, search: None, menu: None, is_settled: false }
    }

    pub(crate) fn text(&self) -> &str {
        self.text.text()
    }

    /// The cursor's place in the text, in bytes.
    pub(crate) fn cursor(&self) -> usize {
        self.text.cursor()
    }

    /// Hands over the text and begins with an empty one.
    pub(crate) fn take(&mut self) -> String {
        *self = Self { text: std::mem::take(&mut self.text), ..Self::new(self.mode) };
        self.text.take()
    }

    /// The text is done: from here on nothing but the text is shown.
    pub(crate) fn settle(&mut self) {
        (self.search, self.menu, self.is_settled) = (None, None, true);
    }

    /// Removes the white space at the end.
    pub(crate) fn trim_end(&mut self) {
        let text = self.text().trim_end().to_owned();
        self.text.replace(&text);
    }

    /// Begins a new line at the cursor.
    pub(crate) fn break_line(&mut self, indent: &str) {
        self.text.insert(&format!("\n{indent}"));
    }

    /// Does what a key stands for.
    pub(crate) fn press(&mut self, key: TypedKey, history: &LineHistory) -> KeyEffect {
        if self.search.is_some() {
            match self.press_in_search(key, history) {
                Ok(effect) => return effect,
                Err(key) => return self.press(key, history),
            }
        }
        if self.menu.is_some() {
            match key {
                TypedKey::Tab | TypedKey::Down => return self.choose(1),
                TypedKey::BackTab | TypedKey::Up => return self.choose(-1),
                TypedKey::Escape | TypedKey::Control('g' | 'c') => return self.close_menu(),
                // It takes what is chosen, and runs nothing yet.
                TypedKey::Enter if self.menu.take().is_some_and(|menu| menu.chosen.is_some()) => {
                    return KeyEffect::Redraw;
                }
                _ => self.menu = None,
            }
        }
        if !matches!(key, TypedKey::Up | TypedKey::Down | TypedKey::Control('p' | 'n')) {
            self.walk = None;
        }
        match key {
            TypedKey::Character(letter) => self.text.insert(letter.encode_utf8(&mut [0; 4])),
            TypedKey::Paste(text) => match self.mode {
                LineMode::Code => self.text.insert(&text),
                // Only what is before its first line's end: nothing behind it was asked for.
                LineMode::Answer | LineMode::Secret => {
                    self.text.insert(text.lines().next().unwrap_or_default());
                }
            },
            TypedKey::Enter if self.mode != LineMode::Code || self.text.is_on_last_line() => {
                return KeyEffect::Enter;
            }
            TypedKey::Enter => self.text.insert("\n"),
            TypedKey::LineBreak if self.mode == LineMode::Code => self.text.insert("\n"),
            TypedKey::LineBreak => return KeyEffect::Enter,
            TypedKey::Tab => return self.tab(),
            TypedKey::BackTab => self.dedent(),
            TypedKey::Help => return KeyEffect::Explain,
            TypedKey::Backspace | TypedKey::Control('h') => self.backspace(),
            TypedKey::Left | TypedKey::Control('b') => self.text.left(),
            TypedKey::Right | TypedKey::Control('f') => {
                if !self.take_suggestion(history) {
                    self.text.right();
                }
            }
            TypedKey::WordLeft | TypedKey::Alt('b') => self.text.word_left(),
            TypedKey::WordRight | TypedKey::Alt('f') => self.text.word_right(),
            TypedKey::Home | TypedKey::Control('a') => self.text.home(),
            TypedKey::End | TypedKey::Control('e') => {
                if !self.take_suggestion(history) {
                    self.text.end();
                }
            }
            TypedKey::Up | TypedKey::Control('p') => self.go_up(history),
            TypedKey::Down | TypedKey::Control('n') => self.go_down(history),
            TypedKey::Control('k') => self.text.cut_to_end(),
            TypedKey::Control('u') => self.text.cut_to_start(),
            TypedKey::Control('w') => self.text.cut_word_back(),
            TypedKey::Alt('\u{7f}') => self.text.cut_part_back(),
            TypedKey::Alt('d') => self.text.cut_part_forward(),
            TypedKey::Control('y') => self.text.insert_cut(),
            TypedKey::Control('_') => self.text.undo(),
            TypedKey::Control('r') if self.mode == LineMode::Code => {
                let (before, place) = (self.text().to_owned(), history.entries().len());
                self.search = Some(HistorySearch { wanted: String::new(), place, before, fails: false });
            }
            TypedKey::Control('l') => return KeyEffect::ClearScreen,
            TypedKey::Control('c') => return KeyEffect::Interrupt,
            TypedKey::Control('d') if self.text().is_empty() => return KeyEffect::End,
            TypedKey::Delete | TypedKey::Control('d') => self.text.delete_forward(),
            TypedKey::Control('z') => return KeyEffect::Suspend,
            TypedKey::Escape | TypedKey::Control(_) | TypedKey::Alt(_) | TypedKey::Attributes { .. } => {}
        }
        KeyEffect::Redraw
    }

    /// Shows ways to go on between two places of the text. One is taken at once, and what all begin with, too.
    pub(crate) fn complete(&mut self, start: usize, end: usize, matches: Vec<String>) {
        let fits = start <= self.cursor() && end == self.cursor();
        if matches.is_empty() || !fits || !self.text().is_char_boundary(start) {
            return;
        }
        let typed = self.text()[start..end].to_owned();
        let common = common_start(&matches);
        if matches.len() == 1 || (common.len() > typed.len() && common.starts_with(&typed)) {
            self.text.splice(start, end, common);
        }
        if matches.len() > 1 {
            let typed = self.text()[start..self.cursor()].to_owned();
            self.menu = Some(CompletionMenu { matches, chosen: None, start, typed });
        }
    }

    /// The text with its prompts, the menu, and what history suggests, in rows.
    pub(crate) fn layout(
        &self,
        prompt: &LinePrompt<'_>,
        history: &LineHistory,
        columns: usize,
        pen: TextPen,
    ) -> PromptLayout {
        let mut writer = LayoutWriter::new(columns, pen);
        match &self.search {
            Some(HistorySearch { wanted, fails, .. }) => {
                let how = if *fails { "no earlier" } else { "earlier" };
                writer.write(TextStyle::DIM, &format!("({how} `{wanted}`) "));
            }
            None => writer.write(prompt.style, prompt.first),
        }
        if self.mode == LineMode::Secret {
            writer.set_cursor();
            return writer.finish();
        }
        let mut at = 0;
        for (style, piece) in (prompt.colours)(self.text()) {
            for (number, line) in piece.split('\n').enumerate() {
                if number > 0 {
                    at += 1;
                    writer.break_row();
                    writer.write(prompt.style, prompt.next);
                }
                // The cursor may be within the piece.
                match self.cursor().checked_sub(at).filter(|inside| *inside <= line.len()) {
                    Some(inside) => {
                        writer.write(style, &line[..inside]);
                        writer.set_cursor();
                        writer.write(style, &line[inside..]);
                    }
                    None => writer.write(style, line),
                }
                at += line.len();
            }
        }
        if self.text().is_empty() {
            writer.set_cursor();
        }
        if let Some(rest) = self.suggestion(history) {
            let line = rest.lines().next().unwrap_or_default();
            let more = if rest.contains('\n') { " …" } else { "" };
            writer.write(TextStyle::DIM, &format!("{line}{more}"));
        }
        if let Some(menu) = &self.menu {
            menu.write(&mut writer);
        }
        writer.finish()
    }

    fn press_in_search(&mut self, key: TypedKey, history: &LineHistory) -> Result<KeyEffect, TypedKey> {
        let Some(search) = &mut self.search else { return Err(key) };
        match key {
            TypedKey::Character(letter) => search.wanted.push(letter),
            TypedKey::Backspace => {
                search.wanted.pop();
                search.place = history.entries().len();
            }
            TypedKey::Control('r') => {}
            TypedKey::Control('g' | 'c') | TypedKey::Escape => {
                let before = std::mem::take(&mut search.before);
                self.search = None;
                self.text.replace(&before);
                return Ok(KeyEffect::Redraw);
            }
            // It keeps what was found, and does what it usually does.
            key => {
                self.search = None;
                return Err(key);
            }
        }
        // A longer text may be found where the shorter one was.
        let from = if key == TypedKey::Control('r') { search.place } else { search.place + 1 };
        let from = from.min(history.entries().len());
        let found = history.before(from, |entry| entry.contains(&search.wanted));
        search.fails = found.is_none();
        if let Some((place, entry)) = found {
            search.place = place;
            self.text.replace(entry);
        }
        Ok(KeyEffect::Redraw)
    }

    fn tab(&mut self) -> KeyEffect {
        match self.mode {
            LineMode::Code if self.text.line_before().trim().is_empty() => {
                let column = self.text.line_before().chars().count();
                self.text.insert(&" ".repeat(4 - column % 4));
                KeyEffect::Redraw
            }
            LineMode::Code => KeyEffect::Complete,
            LineMode::Answer | LineMode::Secret => {
                self.text.insert("\t");
                KeyEffect::Redraw
            }
        }
    }

    /// Removes one step of the indentation before the cursor.
    fn dedent(&mut self) {
        let before = self.text.line_before();
        if before.ends_with(' ') && before.trim().is_empty() {
            let step = (before.len() - 1) % 4 + 1;
            self.text.splice(self.cursor() - step, self.cursor(), "");
        }
    }

    fn backspace(&mut self) {
        let before = self.text.line_before();
        if self.mode == LineMode::Code && before.ends_with("  ") && before.trim().is_empty() {
            self.dedent();
        } else {
            self.text.delete_back();
        }
    }

    fn go_up(&mut self, history: &LineHistory) {
        if self.mode != LineMode::Code {
            return;
        }
        if self.walk.is_none() && !self.text.is_on_first_line() {
            return self.text.up();
        }
        let walk = self.walk.get_or_insert_with(|| HistoryWalk {
            begun_with: self.text.text().to_owned(),
            place: history.entries().len(),
        });
        let fits = |entry: &str| entry.starts_with(&walk.begun_with) && entry != walk.begun_with;
        if let Some((place, entry)) = history.before(walk.place, fits) {
            walk.place = place;
            self.text.replace(entry);
        }
    }

    fn go_down(&mut self, history: &LineHistory) {
        let Some(walk) = &mut self.walk else { return self.text.down() };
        if let Some((place, entry)) = history.after(walk.place, |entry| entry.starts_with(&walk.begun_with)) {
            walk.place = place;
            self.text.replace(entry);
        } else {
            self.text.replace(&walk.begun_with);
            self.walk = None;
        }
    }

    /// How the newest entry that begins like the text goes on.
    fn suggestion<'a>(&self, history: &'a LineHistory) -> Option<&'a str> {
        let text = self.text();
        let is_busy = self.search.is_some() || self.menu.is_some() || self.is_settled;
        let is_code = self.mode == LineMode::Code && !text.trim().is_empty();
        if is_busy || !is_code || !self.text.is_at_end() || self.walk.is_some() {
            return None;
        }
        let begins = |entry: &str| entry.len() > text.len() && entry.starts_with(text);
        let (_, entry) = history.before(history.entries().len(), begins)?;
        Some(&entry[text.len()..])
    }

    fn take_suggestion(&mut self, history: &LineHistory) -> bool {
        let suggestion = self.suggestion(history);
        if let Some(rest) = suggestion {
            self.text.insert(rest);
        }
        suggestion.is_some()
    }

    fn choose(&mut self, step: isize) -> KeyEffect {
        let Some(menu) = &mut self.menu else { return KeyEffect::Redraw };
        let count = menu.matches.len();
        let next = match (menu.chosen, step) {
            (None, 1..) => 0,
            (None, _) => count - 1,
            (Some(chosen), 1..) => (chosen + 1) % count,
            (Some(chosen), _) => (chosen + count - 1) % count,
        };
        menu.chosen = Some(next);
        let (start, chosen) = (menu.start, menu.matches[next].clone());
        self.text.splice(start, self.cursor(), &chosen);
        KeyEffect::Redraw
    }

    fn close_menu(&mut self) -> KeyEffect {
        if let Some(menu) = self.menu.take().filter(|menu| menu.chosen.is_some()) {
            self.text.splice(menu.start, self.cursor(), &menu.typed);
        }
        KeyEffect::Redraw
    }
}

impl CompletionMenu {
    fn write(&self, writer: &mut LayoutWriter) {
        use unicode_width::UnicodeWidthStr as _;

        writer.break_row();
        // Kernels complete `df.he` with `df.head`: what they have in common is not repeated.
        let shared = common_start(&self.matches).rfind('.').map_or(0, |at| at + 1);
        let names: Vec<_> = self.matches.iter().map(|name| &name[shared..]).collect();
        let widest = names.iter().map(|name| name.width()).max().unwrap_or(0) + 2;
        let columns = (writer.left() / widest).clamp(1, names.len());
        let rows = names.len().div_ceil(columns);
        let first = self.chosen.map_or(0, |chosen| (chosen / columns).saturating_sub(MENU_ROWS - 1));
        for row in first..rows.min(first + MENU_ROWS) {
            if row > first {
                writer.break_row();
            }
            for (at, name) in names.iter().enumerate().skip(row * columns).take(columns) {
                let style = if self.chosen == Some(at) { TextStyle::REVERSE } else { TextStyle::CYAN };
                writer.write(style, name);
                writer.write(TextStyle::PLAIN, &" ".repeat(widest - name.width()));
            }
        }
        if rows > first + MENU_ROWS {
            writer.break_row();
            let hidden = names.len() - (first + MENU_ROWS) * columns;
            writer.write(TextStyle::DIM, &format!("… and {hidden} more"));
        }
    }
}

/// What all texts begin with.
fn common_start(texts: &[String]) -> &str {
    let Some((first, rest)) = texts.split_first() else { return "" };
    let alike = |other: &String| first.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let count = rest.iter().map(alike).min().unwrap_or(usize::MAX);
    first.char_indices().nth(count).map_or(first, |(at, _)| &first[..at])
}

#[cfg(test)]
mod tests;
