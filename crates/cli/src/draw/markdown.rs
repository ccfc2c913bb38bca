//! Markdown for a terminal: what standard Markdown, Jupyter's tables, strikethrough and mathematics mean, in lines.
//! (`termimad` has a parser of its own that knows less Markdown, and tables that do not fit.)

use cellwright_output::visible;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::code;
use super::style::{StyledText, TextPen, TextStyle, painted, wrapped};
use super::table::{TableExtent, TextTable};
use super::wrap::wrapped_line;

/// Prose in longer lines is hard to read.
const WIDEST_PROSE: usize = 100;

/// Columns that quotes and lists leave for their text, however deep they are nested.
const LEAST_ROOM: usize = 10;

/// The text as lines of at most `room` columns.
pub(crate) fn lines(source: &str, room: usize, pen: TextPen, tables: TableExtent) -> Vec<String> {
    let source = visible(source);
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_MATH;
    let mut writer = MarkdownWriter {
        pen,
        room,
        tables,
        lines: Vec::new(),
        margins: Vec::new(),
        lists: Vec::new(),
        styles: vec![TextStyle::PLAIN],
        text: StyledText::new(),
        code: None,
        table: None,
        targets: Vec::new(),
        wants_gap: false,
    };
    for event in Parser::new_ext(&source, options) {
        writer.take(event);
    }
    writer.end_paragraph();
    writer.lines
}

/// What precedes the lines of a quote or of an item in a list.
struct LineMargin {
    first: String,
    rest: String,
    is_used: bool,
}

struct MarkdownWriter {
    pen: TextPen,
    room: usize,
    tables: TableExtent,
    lines: Vec<String>,
    margins: Vec<LineMargin>,
    /// The next number of each open list; `None` for bullets.
    lists: Vec<Option<u64>>,
    styles: Vec<TextStyle>,
    /// The paragraph so far.
    text: StyledText,
    /// The block of code so far, with its language.
    code: Option<(String, String)>,
    table: Option<TextTable>,
    /// Where the open links and images lead.
    targets: Vec<String>,
    /// Whether a block was written, so that the next one needs an empty line before it.
    wants_gap: bool,
}

impl MarkdownWriter {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.push(self.style(), &text),
            },
            Event::Code(text) => match self.pen {
                TextPen::Colours | TextPen::DarkColours => {
                    self.push(self.style().coloured(TextStyle::CYAN), &text);
                }
                TextPen::Plain => self.push(self.style(), &format!("`{text}`")),
            },
            Event::InlineMath(text) => self.push(self.style().italic(), &format!("${text}$")),
            Event::DisplayMath(text) => self.push(self.style().italic(), &format!("$${text}$$")),
            Event::Html(text) | Event::InlineHtml(text) => match text.trim().to_ascii_lowercase().as_str() {
                "<br>" | "<br/>" | "<br />" => self.push(TextStyle::PLAIN, "\n"),
                html if html.starts_with("<!--") => {}
                _ => self.push(TextStyle::DIM, &text),
            },
            Event::SoftBreak => self.push(self.style(), " "),
            Event::HardBreak => self.push(self.style(), "\n"),
            Event::Rule => {
                self.gap();
                let rule = "─".repeat(self.free_room().min(WIDEST_PROSE));
                self.line(&[(TextStyle::DIM, rule)].into());
                self.wants_gap = true;
            }
            Event::TaskListMarker(is_done) => self.push(self.style(), if is_done { "[x] " } else { "[ ] " }),
            Event::FootnoteReference(name) => self.push(TextStyle::DIM, &format!("[{name}]")),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.gap(),
            Tag::Heading { level, .. } => {
                self.gap();
                let style = match level {
                    HeadingLevel::H1 => TextStyle::MAGENTA.bold(),
                    HeadingLevel::H2 => TextStyle::BLUE.bold(),
                    _ => TextStyle::PLAIN.bold(),
                };
                self.styles.push(style);
                self.push(style, &format!("{} ", "#".repeat(level as usize)));
            }
            Tag::BlockQuote(_) => {
                self.gap();
                let bar = self.pen.paint(TextStyle::DIM, "▎ ").into_owned();
                self.push_margin(bar.clone(), bar);
            }
            Tag::CodeBlock(kind) => {
                self.end_paragraph();
                self.gap();
                let language = match kind {
                    CodeBlockKind::Fenced(info) => {
                        info.split_whitespace().next().unwrap_or_default().to_owned()
                    }
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(number) => {
                self.end_paragraph();
                if self.lists.is_empty() {
                    self.gap();
                }
                self.wants_gap = false;
                self.lists.push(number);
            }
            Tag::Item => {
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    Some(None) | None => "• ".to_owned(),
                };
                let rest = " ".repeat(mark.chars().count());
                let first = self.pen.paint(TextStyle::CYAN, &mark).into_owned();
                self.push_margin(first, rest);
            }
            Tag::Table(alignments) => {
                self.gap();
                self.table = Some(TextTable { alignments, rows: Vec::new() });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::Emphasis => self.styles.push(self.style().italic()),
            Tag::Strong => self.styles.push(self.style().bold()),
            Tag::Strikethrough => self.styles.push(self.style().struck()),
            Tag::Link { dest_url, .. } => {
                self.styles.push(self.style().underlined());
                self.targets.push(dest_url.into_string());
            }
            Tag::Image { dest_url, .. } => {
                self.push(TextStyle::DIM, "[image: ");
                self.targets.push(dest_url.into_string());
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.end_paragraph();
                self.wants_gap = true;
            }
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.end_paragraph();
                self.wants_gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.margins.pop();
                self.wants_gap = true;
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.wants_gap = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.end_paragraph();
                if self.margins.last().is_some_and(|margin| !margin.is_used) {
                    self.line(&StyledText::new()); // an empty item has its mark
                }
                self.margins.pop();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.text);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => self.end_table(),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link => {
                let shown: String = self.text.iter().map(|(_, text)| text.as_str()).collect();
                self.styles.pop();
                if let Some(target) = self.targets.pop()
                    && !shown.ends_with(target.trim_start_matches("mailto:"))
                {
                    self.push(TextStyle::DIM, &format!(" ({target})"));
                }
            }
            TagEnd::Image => {
                // The data of an image that is embedded in the text is not for reading.
                let target = self.targets.pop().filter(|target| !target.starts_with("data:"));
                let target = target.map(|target| format!(" ({target})")).unwrap_or_default();
                self.push(TextStyle::DIM, &format!("{target}]"));
            }
            _ => {}
        }
    }

    fn style(&self) -> TextStyle {
        *self.styles.last().expect("the plain style stays")
    }

    fn push(&mut self, style: TextStyle, text: &str) {
        self.text.push((style, text.to_owned()));
    }

    fn free_room(&self) -> usize {
        let margins: usize = self.margins.iter().map(|margin| plain_width(&margin.rest)).sum();
        self.room.saturating_sub(margins).max(1)
    }

    /// Adds a margin, unless it would leave too little room.
    fn push_margin(&mut self, first: String, rest: String) {
        let is_narrow = self.free_room() < LEAST_ROOM + plain_width(&rest);
        let (first, rest) = if is_narrow { (String::new(), String::new()) } else { (first, rest) };
        self.margins.push(LineMargin { first, rest, is_used: false });
    }

    /// Sets a blank line between blocks.
    fn gap(&mut self) {
        if std::mem::take(&mut self.wants_gap) {
            let margins: String = self.margins.iter().map(|margin| margin.rest.as_str()).collect();
            self.lines.push(margins.trim_end().to_owned());
        }
    }

    fn line(&mut self, pieces: &StyledText) {
        let mut line = String::new();
        for margin in &mut self.margins {
            line.push_str(if margin.is_used { &margin.rest } else { &margin.first });
            margin.is_used = true;
        }
        line.push_str(&painted(pieces, self.pen));
        self.lines.push(line);
    }

    fn end_paragraph(&mut self) {
        let text = std::mem::take(&mut self.text);
        if text.is_empty() {
            return;
        }
        for line in wrapped(&text, self.free_room().min(WIDEST_PROSE)) {
            self.line(&line);
        }
    }

    fn end_code(&mut self) {
        let Some((language, source)) = self.code.take() else {
            return;
        };
        let code_text = source.trim_end_matches('\n');
        let text = code::coloured(code_text, &language, self.pen)
            .unwrap_or_else(|| self.pen.paint(TextStyle::CYAN, code_text).into_owned());
        let room = self.free_room().saturating_sub(4).max(1);
        for line in text.split('\n').flat_map(|line| wrapped_line(line, room)) {
            self.line(&[(TextStyle::PLAIN, format!("    {line}"))].into());
        }
        self.wants_gap = true;
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else {
            return;
        };
        for line in table.lines(self.free_room(), self.tables) {
            self.line(&line);
        }
        self.wants_gap = true;
    }
}

/// The columns of a margin, which may hold a colour.
fn plain_width(margin: &str) -> usize {
    if margin.contains('▎') { 2 } else { margin.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(source: &str) -> String {
        lines(source, 40, TextPen::Plain, TableExtent::Shortened).join("\n")
    }

    #[test]
    fn prose_is_wrapped_and_blocks_stand_apart() {
        insta::assert_snapshot!(shown(
            "# Title of it\nSome *soft* and **loud** `code` that is longer than a line\nof text.\n\n---\n\nEnd<br>of [it](http://x.org/y)."
        ), @r"
        # Title of it

        Some soft and loud `code` that is longer
        than a line of text.

        ────────────────────────────────────────

        End
        of it (http://x.org/y).
        ");
    }

    #[test]
    fn lists_quotes_and_code_have_margins() {
        insta::assert_snapshot!(shown(
            "1. one\n2. two that is so long that it has to be broken\n   - inner\n   - [x] done\n\n> quoted\n>\n> > twice\n\n```python\nx = 1\n\ny\n```\n-\n"
        ), @r"
        1. one
        2. two that is so long that it has to be
           broken
           • inner
           • [x] done

        ▎ quoted
        ▎
        ▎ ▎ twice

            x = 1
            
            y

        •
        ");
    }

    #[test]
    fn tables_are_aligned() {
        insta::assert_snapshot!(shown("| name | n |\n|:--|--:|\n| a | 1 |\n| 中文 | `1000` |"), @r"
        name │      n
        ─────┼───────
        a    │      1
        中文 │ `1000`
        ");
    }

    #[test]
    fn mathematics_stays_as_it_is_written() {
        assert_eq!(shown("$a_1 * b_1$ and\n$$x_2$$"), "$a_1 * b_1$ and $$x_2$$");
    }

    #[test]
    fn a_text_cannot_reach_the_terminal() {
        assert_eq!(shown("a\x1b]0;title\x07b"), "a\\u{1b}]0;title\\u{7}b");
    }
}
