//! Markdown of an agent, made harmless for a page that trusts it.
//!
//! Jupyter trusts the outputs of a cell that was run and renders their Markdown without sanitising
//! it: a tag in an answer would act as the person. [`harmless`] returns Markdown that looks as the
//! agent wrote it and in which nothing runs and nothing is fetched.
//!
//! Parsers of Markdown differ in small things, and Jupyter takes out formulas before it parses. So
//! no safety depends on where a parser sees code or a link. Outside fenced blocks of our own shape
//! the characters themselves are harmless: no `<` begins a tag but those of [`OWN_TAGS`], no `](`
//! leads anywhere but to a safe address, and a formula holds no quotes that could end an attribute.

#[cfg(test)]
mod law;
mod plain;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::ops::Range;

use cellwright_output::is_inside;
pub use cellwright_output::is_safe_address as is_safe;
use pulldown_cmark::{CodeBlockKind, CowStr, Event, LinkType, Options, Parser, Tag, TagEnd};

/// The tags that harmless Markdown may hold. They have no attributes.
pub const OWN_TAGS: [&str; 6] = ["<code>", "</code>", "<pre>", "</pre>", "<span>", "</span>"];

const OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// `text` as Markdown that cannot act in a page, and shows the same.
pub fn harmless(text: &str) -> String {
    harmless_with_headings(text, usize::MAX)
}

/// [`harmless`] with so many headings. Those behind them are shown as they are written.
///
/// `JupyterLab` renders every heading of every output once more for its table of contents, whenever
/// an output changes. Thousands of them block its page.
pub fn harmless_with_headings(text: &str, most: usize) -> String {
    if text.len() <= most || headings(text) <= most {
        return rewritten(text, most, false);
    }
    // A heading that became a paragraph may have a line of marks below it, which makes it a heading again.
    let mut made = rewritten(text, most, true);
    for _ in 0..ROUNDS {
        if headings(&made) <= most {
            return made;
        }
        made = rewritten(&made, most, true);
    }
    if headings(&made) <= most { made } else { as_code(text) }
}

/// How often headings are shown as they are written, until none of them is a heading again. Texts of
/// agents need one round. More are for texts that were made to need them.
const ROUNDS: usize = 4;

/// A text as one block of code.
fn as_code(text: &str) -> String {
    let fence = "`".repeat(longest_run(text, '`').max(2) + 1);
    let feed = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}text\n{text}{feed}{fence}\n\n")
}

/// One round of [`harmless_with_headings`].
fn rewritten(text: &str, most: usize, has_too_many: bool) -> String {
    if !has_too_many && !text.contains(plain::is_special) {
        return text.to_owned();
    }
    let parser = Parser::new_ext(text, OPTIONS);
    let mut definitions: Vec<_> =
        parser.reference_definitions().iter().map(|(_, definition)| definition.span.clone()).collect();
    definitions.sort_by_key(|span| span.start);
    let mut writer = HarmlessWriter {
        text,
        definitions,
        copied: 0,
        raw: String::new(),
        out: String::with_capacity(text.len() + 64),
        lone_dollar: text.matches('$').count() == 1 && !text.contains("\\(") && !text.contains("\\["),
        depth: 0,
        links: Vec::new(),
        image: None,
        code: None,
        headings_left: most,
    };
    for (event, range) in parser.into_offset_iter() {
        writer.take(event, range);
    }
    writer.copy(text.len());
    writer.flush();
    writer.out
}

/// The number of headings in a text.
pub(crate) fn headings(text: &str) -> usize {
    let begins = |event: &Event<'_>| matches!(event, Event::Start(Tag::Heading { .. }));
    Parser::new_ext(text, OPTIONS).filter(begins).count()
}

/// Copies the source of a text and replaces what could act.
struct HarmlessWriter<'a> {
    text: &'a str,
    /// Where the addresses of reference links are defined. All links are written out.
    definitions: Vec<Range<usize>>,
    /// Up to here the text is in `raw` or `out`.
    copied: usize,
    /// Source that is not yet made harmless. Formulas are looked for in it.
    raw: String,
    out: String,
    /// The only dollar sign of a text cannot begin a formula.
    lone_dollar: bool,
    /// How many quotes, lists and the like are open.
    depth: usize,
    links: Vec<OpenLink<'a>>,
    image: Option<OpenImage<'a>>,
    code: Option<OpenCode<'a>>,
    headings_left: usize,
}

/// A link whose words are being written.
struct OpenLink<'a> {
    address: CowStr<'a>,
    /// The end of its words, as far as they are known.
    words_end: usize,
}

/// A picture. Its words are collected as text.
struct OpenImage<'a> {
    address: CowStr<'a>,
    words: String,
    /// Pictures inside the words of this one.
    inner: usize,
}

/// A block of code.
struct OpenCode<'a> {
    kind: CodeBlockKind<'a>,
    text: String,
}

impl<'a> HarmlessWriter<'a> {
    fn take(&mut self, event: Event<'a>, range: Range<usize>) {
        if let Some(image) = &mut self.image {
            return match event {
                Event::Start(Tag::Image { .. }) => image.inner += 1,
                Event::End(TagEnd::Image) if image.inner > 0 => image.inner -= 1,
                Event::End(TagEnd::Image) => self.end_image(range),
                Event::Text(text) | Event::Code(text) | Event::InlineHtml(text) => {
                    image.words.push_str(&text);
                }
                Event::SoftBreak | Event::HardBreak => image.words.push(' '),
                _ => {}
            };
        }
        if let Some(code) = &mut self.code {
            return match event {
                Event::Text(text) => code.text.push_str(&text),
                Event::End(TagEnd::CodeBlock) => self.end_code_block(range),
                _ => {}
            };
        }
        // The end of a link has the range of the link.
        if let Some(link) = self.links.last_mut().filter(|_| !matches!(event, Event::End(TagEnd::Link))) {
            link.words_end = link.words_end.max(range.end);
        }
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(TagEnd::Link) => self.end_link(range),
            Event::End(TagEnd::Heading(_)) => self.end_heading(range),
            Event::End(
                TagEnd::BlockQuote(_)
                | TagEnd::List(_)
                | TagEnd::Item
                | TagEnd::Table
                | TagEnd::FootnoteDefinition,
            ) => self.depth = self.depth.saturating_sub(1),
            Event::Code(code) if !is_plain_code(&code) => {
                let code = format!("<code>{}</code>", entities(&code));
                self.replace(range, &code);
            }
            // A character reference that the page would read as part of a formula.
            Event::Text(text) if self.text[range.clone()].starts_with('&') && text.contains(['$', '\\']) => {
                let span = format!("<span>{}</span>", entities(&text));
                self.replace(range, &span);
            }
            // An indented line of a block would become code. Its tags are made harmless as text.
            Event::Html(_) => {
                self.copy(range.start);
                let line = &self.text[range.clone()];
                let line = line.trim_start_matches([' ', '\t']);
                self.copied = range.end - line.len();
                // Nor may it open a fence: the next block of code would close it.
                if let Some(mark) = line.chars().next().filter(|mark| matches!(mark, '`' | '~')) {
                    self.push(&entities(&mark.to_string()));
                    self.copied += 1;
                }
                self.copy(range.end);
            }
            // Anything else stays as it is written.
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'a>, range: Range<usize>) {
        match tag {
            Tag::BlockQuote(_) | Tag::List(_) | Tag::Item | Tag::Table(_) | Tag::FootnoteDefinition(_) => {
                self.depth += 1;
            }
            Tag::Heading { .. } if self.headings_left == 0 => self.show_marks(range),
            Tag::CodeBlock(kind) => {
                self.copy(range.start);
                self.code = Some(OpenCode { kind, text: String::new() });
            }
            Tag::Link { dest_url, link_type, .. } => {
                self.copy(range.start);
                self.push(if is_safe(&dest_url) { "[" } else { "&#91;" });
                self.copied = (range.start + 1).min(range.end);
                let address = match link_type {
                    LinkType::Email => format!("mailto:{dest_url}").into(),
                    _ => dest_url,
                };
                self.links.push(OpenLink { address, words_end: self.copied });
            }
            Tag::Image { dest_url, .. } => {
                self.copy(range.start);
                self.image = Some(OpenImage { address: dest_url, words: String::new(), inner: 0 });
            }
            _ => {}
        }
    }

    /// Begins a heading that becomes a paragraph with its marks.
    fn show_marks(&mut self, range: Range<usize>) {
        self.copy(range.start);
        if self.depth == 0 {
            self.push("\n\n");
        }
        let heading = &self.text[range.clone()];
        if let Some(mark) = heading.find('#').filter(|_| !is_underlined(heading)) {
            self.copy(range.start + mark);
            self.push("&#35;");
            self.copied = range.start + mark + 1;
        }
    }

    fn end_heading(&mut self, range: Range<usize>) {
        if let Some(left) = self.headings_left.checked_sub(1) {
            self.headings_left = left;
            return;
        }
        let heading = self.text[range.clone()].trim_end();
        if let Some(mark) = heading.chars().last().filter(|_| is_underlined(heading)) {
            // The line of marks below the words.
            let line = range.start + heading.trim_end_matches(mark).len();
            self.copy(line);
            self.push(&format!("&#{};", u32::from(mark)));
            self.copied = self.copied.max(line + 1);
        }
        self.copy(range.end);
        if self.depth == 0 {
            self.push("\n\n");
        }
    }

    fn end_link(&mut self, range: Range<usize>) {
        let Some(OpenLink { address, words_end }) = self.links.pop() else { return };
        self.copy(words_end.min(range.end));
        let rest = if is_safe(&address) {
            format!("]({})", encoded(&address))
        } else {
            format!("&#93; <code>{}</code>", entities(&address))
        };
        self.push(&rest);
        self.copied = self.copied.max(range.end);
    }

    /// A remote picture is fetched without a click, which sends its address away. It becomes a link.
    fn end_image(&mut self, range: Range<usize>) {
        let Some(OpenImage { address, words, .. }) = self.image.take() else { return };
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = entities(&words);
        // A colon further on is no scheme either, but no picture needs one.
        let shown = if is_inside(&address) && !address.contains(':') {
            format!("![{words}]({})", encoded(&address))
        } else if !self.links.is_empty() {
            format!("&#91;picture&#93; {words}")
        } else if is_safe(&address) {
            format!("[picture {words}]({})", encoded(&address)).replacen(" ]", "]", 1)
        } else {
            format!("&#91;picture {words}&#93; <code>{}</code>", entities(&address))
        };
        self.push(&shown);
        self.copied = range.end;
        if let Some(link) = self.links.last_mut() {
            link.words_end = link.words_end.max(range.end);
        }
    }

    fn end_code_block(&mut self, range: Range<usize>) {
        let Some(OpenCode { kind, text }) = self.code.take() else { return };
        if self.depth > 0 {
            if is_plain_block(&text) && matches!(kind, CodeBlockKind::Fenced(_)) {
                self.copy(range.end);
                return;
            }
            self.unindent(&kind);
            self.push(&format!("<pre><code>{}</code></pre>", entities(text.trim_end_matches('\n'))));
            self.copied = range.end;
            self.line_feed();
            return;
        }
        self.unindent(&kind);
        // Empty lines around it: a formula cannot reach over them. The opening line always has a word
        // behind its back ticks, so it cannot close a fence that another parser believes to be open.
        let begins = self.out.is_empty() || self.out.ends_with("\n\n");
        let gap = if begins {
            ""
        } else if self.out.ends_with('\n') {
            "\n"
        } else {
            "\n\n"
        };
        let info = match &kind {
            CodeBlockKind::Fenced(info) => language(info),
            CodeBlockKind::Indented => "text".to_owned(),
        };
        let fence = "`".repeat(longest_run(&text, '`').max(2) + 1);
        let feed = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
        let block = format!("{gap}{fence}{info}\n{text}{feed}{fence}\n\n");
        self.push(&block);
        self.copied = range.end;
        if self.text[self.copied..].starts_with('\n') {
            self.copied += 1;
        }
    }

    /// Removes the blanks that make the block that follows an indented one.
    fn unindent(&mut self, kind: &CodeBlockKind<'_>) {
        self.flush();
        let written = self.out.trim_end_matches([' ', '\t']).len();
        let begins_line = written == 0 || self.out[..written].ends_with('\n');
        match kind {
            CodeBlockKind::Indented if !begins_line => self.out.truncate((written + 1).min(self.out.len())),
            CodeBlockKind::Indented if self.depth > 0 => {
                self.out.truncate(self.out.len().saturating_sub(4).max(written));
            }
            CodeBlockKind::Fenced(_) if self.depth > 0 => {}
            CodeBlockKind::Indented | CodeBlockKind::Fenced(_) => self.out.truncate(written),
        }
    }

    fn line_feed(&mut self) {
        if !self.text[self.copied..].starts_with('\n') {
            self.push("\n");
        }
    }

    fn replace(&mut self, range: Range<usize>, with: &str) {
        self.copy(range.start);
        self.push(with);
        self.copied = range.end;
    }

    /// Copies the source up to here, without definitions of links.
    fn copy(&mut self, end: usize) {
        while self.copied < end {
            let start = self.copied;
            let definition = self.definitions.iter().find(|span| span.end > start);
            let (stop, next) = match definition {
                Some(span) if span.start <= start => (start, span.end.min(end)),
                Some(span) if span.start < end => (span.start, span.start),
                _ => (end, end),
            };
            self.raw.push_str(&self.text[start..stop]);
            self.copied = next;
        }
    }

    /// Adds Markdown that is harmless already.
    fn push(&mut self, markdown: &str) {
        self.flush();
        // A link behind an exclamation mark would be a picture.
        if markdown.starts_with('[') && self.out.ends_with('!') {
            self.out.pop();
            if self.out.ends_with('\\') {
                self.out.pop();
            }
            self.out.push_str("&#33;");
        }
        // A picture behind `<` would begin a declaration.
        if markdown.starts_with('!') && self.out.ends_with('<') {
            self.out.pop();
            self.out.push_str("&lt;");
        }
        self.out.push_str(markdown);
    }

    fn flush(&mut self) {
        plain::write(&std::mem::take(&mut self.raw), self.lone_dollar, &mut self.out);
    }
}

/// Whether a heading has a line of marks below its words, and not marks before them.
fn is_underlined(heading: &str) -> bool {
    heading.trim_end().contains(['\n', '\r'])
}

/// Whether code inside a line can stay as it is written.
fn is_plain_code(code: &str) -> bool {
    !code.contains(['\n', '$']) && is_plain_block(code)
}

/// Whether a block of code is harmless even if a parser does not see that it is code.
fn is_plain_block(code: &str) -> bool {
    let acts = |pair: &str| code.contains(pair);
    !code.contains('$')
        && !["](", "]:", "![", "\\\\", "\\begin", "\\(", "\\[", "```", "~~~"].into_iter().any(acts)
        && !plain::has_tag(code)
}

/// `text` with every character that could mean something as a numeric reference. One line.
fn entities(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            ' ' | ',' | '.' | '/' | ';' | '=' | '-' | '+' => out.push(c),
            c if c.is_ascii_punctuation() || c.is_ascii_control() => {
                write!(out, "&#{};", u32::from(c)).expect("strings take everything");
            }
            other => out.push(other),
        }
    }
    out
}

/// An address in which no character means anything to Markdown, formulas or HTML.
fn encoded(address: &str) -> String {
    let mut out = String::with_capacity(address.len());
    for c in address.chars() {
        match c {
            '/' | ':' | '.' | '-' | '_' | '?' | '#' | '=' | '+' | '%' | ',' | ';' | '@' => out.push(c),
            '&' => out.push_str("&amp;"),
            c if c.is_ascii_alphanumeric() || !c.is_ascii() => out.push(c),
            c => write!(out, "%{:02X}", u32::from(c)).expect("strings take everything"),
        }
    }
    out
}

/// The first word behind a fence, if it can be the name of a language.
fn language(info: &str) -> String {
    let word = info.split([' ', ',', '{', ':']).next().unwrap_or_default();
    let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '#' | '.' | '-' | '_');
    if word.is_empty() || !word.chars().all(named) { "text".to_owned() } else { word.to_owned() }
}

fn longest_run(text: &str, mark: char) -> usize {
    let (mut longest, mut run) = (0, 0);
    for c in text.chars() {
        run = if c == mark { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}
