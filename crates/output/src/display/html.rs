//! HTML as Markdown.
//!
//! The tags are obeyed as they come. There is no tree: so deep nesting costs neither stack nor time, and what is badly
//! nested is shown all the same.

mod table;
mod writer;

use html5gum::{DefaultEmitter, StartTag, Token, Tokenizer};

use self::{
    table::{CellSpan, TableRows},
    writer::{Gap, Level, WordMark, Writer, destination},
};
use crate::lines::Counted;

/// Longer HTML is not converted: it is a script with its data (an interactive chart).
const LONGEST: usize = 2 * 1024 * 1024;
/// What is nested deeper is shown as text, without marks.
const DEEPEST: usize = 256;
/// Addresses longer than this are data.
const LONGEST_ADDRESS: usize = 2_000;

/// Markdown that says what the HTML says. Scripts, styles, embedded data and what is hidden are left out.
pub(super) fn to_markdown(html: &str) -> String {
    if html.len() > LONGEST {
        return format!("[HTML of {}, too long to show as text]", Counted(html.len() as u64, "byte"));
    }
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let mut page = HtmlPage::default();
    for Ok(token) in Tokenizer::new_with_emitter(html, emitter) {
        match token {
            Token::StartTag(tag) => page.start(&tag),
            Token::EndTag(tag) => page.end(&String::from_utf8_lossy(&tag.name)),
            Token::String(text) => page.text(&String::from_utf8_lossy(&text)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    page.finish()
}

#[derive(Default)]
struct HtmlPage {
    writer: Writer,
    table: Option<TableRows>,
    /// How many tables are open: one may be inside another.
    tables: usize,
    code: Option<CodeElement>,
    skipped: Option<SkippedElement>,
    /// Elements that end with an effect, the outermost first.
    open: Vec<OpenElement>,
}

/// An element that is left out, and how many of its name are open.
struct SkippedElement {
    name: String,
    depth: usize,
}

/// What is shown as it is.
struct CodeElement {
    name: String,
    text: String,
    /// For a block. Lines mean nothing in a span.
    language: Option<String>,
}

struct OpenElement {
    name: String,
    effect: TagEffect,
}

enum TagEffect {
    Nothing,
    Mark,
    Heading { was_flat: bool },
    Quote { outer: Level },
    Item { outer: Level },
    List { next: Option<u64> },
}

impl HtmlPage {
    fn start(&mut self, tag: &StartTag<()>) {
        let name = &*String::from_utf8_lossy(&tag.name);
        match &mut self.skipped {
            Some(SkippedElement { name: skipped, .. }) if skipped == "head" && name == "body" => {
                self.skipped = None;
            }
            Some(SkippedElement { name: skipped, depth }) => {
                *depth += usize::from(skipped == name);
                return;
            }
            None => {}
        }
        if is_skipped(tag, name) {
            self.end_code_span();
            self.leave_trace(tag, name);
            if !(tag.self_closing && name == "svg") {
                self.skipped = Some(SkippedElement { name: name.to_owned(), depth: 1 });
            }
            return;
        }
        if self.continues_code(name) {
            if let Some(CodeElement { language: language @ Some(_), .. }) = &mut self.code
                && let Some(found) = language_of(tag)
            {
                *language = Some(found);
            }
            return;
        }
        match name {
            "b" | "strong" => self.mark(name, WordMark::Bold),
            "i" | "em" => self.mark(name, WordMark::Italic),
            "del" | "s" | "strike" => self.mark(name, WordMark::Struck),
            "q" => self.mark(name, WordMark::Quoted),
            "sup" => self.mark(name, WordMark::Raised),
            "a" => {
                self.close("a");
                if let Some(address) = attribute(tag, "href").filter(|address| is_address(address)) {
                    self.mark(name, WordMark::Link(address));
                }
            }
            "br" => self.writer().line_break(),
            "hr" => self.writer().block(["---"]),
            "img" => self.image(tag),
            "input" if attribute(tag, "type").is_some_and(|kind| kind.eq_ignore_ascii_case("checkbox")) => {
                let writer = self.writer();
                if writer.begins_item() {
                    writer.word(if attribute(tag, "checked").is_some() { "[x]" } else { "[ ]" });
                    writer.separate(Gap::Space);
                }
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" if self.open.len() < DEEPEST => {
                let was_flat = self.writer().start_heading(usize::from(name.as_bytes()[1] - b'0'));
                self.push(name, TagEffect::Heading { was_flat });
            }
            "blockquote" if self.open.len() < DEEPEST => {
                let outer = self.writer().start_quote();
                self.push(name, TagEffect::Quote { outer });
            }
            "ul" | "ol" | "menu" => {
                self.separate_list();
                let start = attribute(tag, "start").and_then(|start| start.trim().parse().ok());
                self.push(name, TagEffect::List { next: (name == "ol").then(|| start.unwrap_or(1)) });
            }
            "li" => self.item(),
            "dd" => {
                self.writer().separate(Gap::Line);
                self.writer().word(":");
                self.writer().separate(Gap::Space);
            }
            "summary" | "caption" => {
                self.writer().separate(Gap::Paragraph);
                self.mark(name, if name == "caption" { WordMark::Italic } else { WordMark::Bold });
            }
            "table" => {
                self.end_table();
                self.tables += 1;
            }
            "tr" => self.end_row(),
            "td" | "th" if self.tables > 0 => {
                self.end_cell();
                let span = |name| attribute(tag, name).and_then(|it| it.trim().parse().ok()).unwrap_or(1);
                let span = CellSpan { columns: span("colspan"), rows: span("rowspan") };
                let outer = self.open.len();
                self.table.get_or_insert_default().start_cell(name == "th", span, outer);
            }
            "pre" | "xmp" | "listing" => {
                let language = Some(language_of(tag).unwrap_or_default());
                self.code = Some(CodeElement { name: name.to_owned(), text: String::new(), language });
            }
            "code" | "kbd" | "samp" | "tt" => {
                self.code = Some(CodeElement { name: name.to_owned(), text: String::new(), language: None });
            }
            _ if is_block(name) => self.writer().separate(Gap::Paragraph),
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        if let Some(SkippedElement { name: skipped, depth }) = &mut self.skipped {
            *depth -= usize::from(skipped == name);
            if *depth == 0 {
                self.skipped = None;
            }
            return;
        }
        if self.code.as_ref().is_some_and(|code| code.name == name) {
            self.end_code();
            return;
        }
        if self.continues_code(name) {
            return;
        }
        match name {
            "table" => {
                self.end_table();
                self.tables = self.tables.saturating_sub(1);
            }
            "tr" => self.end_row(),
            "td" | "th" => self.end_cell(),
            "li" | "ul" | "ol" | "menu" => self.close(name),
            _ => {
                self.close(name);
                if is_block(name) {
                    self.writer().separate(Gap::Paragraph);
                }
            }
        }
    }

    fn text(&mut self, text: &str) {
        match &mut self.code {
            _ if self.skipped.is_some() => {}
            Some(code) => code.text.push_str(text),
            None => self.writer().text(text),
        }
    }

    fn finish(mut self) -> String {
        self.end_code();
        self.end_table();
        self.writer.finish()
    }

    /// Where words go: into the cell of a table, if one is open.
    fn writer(&mut self) -> &mut Writer {
        let cell = self.table.as_mut().and_then(TableRows::cell);
        cell.map_or(&mut self.writer, |cell| &mut cell.writer)
    }

    fn is_in_cell(&mut self) -> bool {
        self.table.as_mut().and_then(TableRows::cell).is_some()
    }

    fn push(&mut self, name: &str, effect: TagEffect) {
        if self.open.len() < DEEPEST {
            self.open.push(OpenElement { name: name.to_owned(), effect });
        }
    }

    fn mark(&mut self, name: &str, mark: WordMark) {
        if self.open.len() < DEEPEST {
            let effect = if self.writer().open(mark) { TagEffect::Mark } else { TagEffect::Nothing };
            self.push(name, effect);
        }
    }

    fn separate_list(&mut self) {
        let is_inner = self.open.iter().any(|open| matches!(open.effect, TagEffect::List { .. }));
        self.writer().separate(if is_inner { Gap::Line } else { Gap::Paragraph });
    }

    fn item(&mut self) {
        let scope = self.scope();
        let is_item = |open: &OpenElement| matches!(open.effect, TagEffect::Item { .. });
        let is_list = |open: &OpenElement| matches!(open.effect, TagEffect::List { .. });
        let nearest = self.open[scope..].iter().rposition(|open| is_item(open) || is_list(open));
        let nearest = nearest.map(|at| scope + at);
        if let Some(at) = nearest.filter(|at| is_item(&self.open[*at])) {
            self.close_from(at);
        }
        let list = self.open[scope..].iter_mut().rev().find(|open| is_list(open));
        let marker = match list.map(|open| &mut open.effect) {
            Some(TagEffect::List { next: Some(next) }) => {
                *next = next.saturating_add(1);
                format!("{}. ", next.saturating_sub(1))
            }
            _ => "- ".to_owned(),
        };
        if self.open.len() < DEEPEST {
            let outer = self.writer().start_item(&marker);
            self.push("li", TagEffect::Item { outer });
        } else {
            self.writer().separate(Gap::Line);
        }
    }

    /// An end tag in a cell does not end what was open before the cell.
    fn scope(&mut self) -> usize {
        self.table.as_mut().and_then(TableRows::cell).map_or(0, |cell| cell.outer)
    }

    fn close(&mut self, name: &str) {
        let scope = self.scope();
        if let Some(at) = self.open[scope..].iter().rposition(|open| open.name == name) {
            self.close_from(scope + at);
        }
    }

    fn close_from(&mut self, at: usize) {
        while self.open.len() > at {
            let Some(open) = self.open.pop() else { break };
            match open.effect {
                TagEffect::Nothing => {}
                TagEffect::Mark => self.writer().close(),
                TagEffect::Heading { was_flat } => self.writer().end_heading(was_flat),
                TagEffect::Quote { outer } => self.writer().end_quote(outer),
                TagEffect::Item { outer } => self.writer().end_item(outer),
                TagEffect::List { .. } => self.separate_list(),
            }
        }
    }

    fn end_cell(&mut self) {
        if let Some(outer) = self.table.as_mut().and_then(TableRows::end_cell) {
            self.open.truncate(outer);
        }
    }

    fn end_row(&mut self) {
        self.end_cell();
        if let Some(table) = &mut self.table {
            table.end_row();
        }
    }

    /// Also where one begins inside another: what is around it is only how it is set.
    fn end_table(&mut self) {
        self.end_row();
        if let Some(table) = self.table.take() {
            table.write_to(&mut self.writer);
        }
        self.writer().separate(Gap::Paragraph);
    }

    /// Whether a tag is inside code and only means a new line there.
    fn continues_code(&mut self, name: &str) -> bool {
        let is_in_cell = self.is_in_cell();
        let Some(code) = &mut self.code else { return false };
        let ends_cell = is_in_cell && matches!(name, "td" | "th" | "tr" | "table");
        let is_span = code.language.is_none();
        if ends_cell || is_span && is_block(name) {
            self.end_code();
            return false;
        }
        if is_span && name == "br" {
            code.text.push(' ');
        } else if !is_span && (name == "br" || is_block(name) && !code.text.ends_with('\n')) {
            code.text.push('\n');
        }
        true
    }

    fn end_code_span(&mut self) {
        if self.code.as_ref().is_some_and(|code| code.language.is_none()) {
            self.end_code();
        }
    }

    fn end_code(&mut self) {
        let Some(CodeElement { text, language, .. }) = self.code.take() else { return };
        let text = text.strip_prefix('\n').filter(|_| language.is_some()).unwrap_or(&text).trim_end();
        if text.trim_start().is_empty() {
            return;
        }
        let longest_run = text.split(|ch| ch != '`').map(str::len).max().unwrap_or(0);
        // A cell has no lines: a table around them is only how they are set.
        if language.is_some() && text.contains('\n') && self.is_in_cell() {
            self.end_table();
        }
        match language {
            Some(language) if !self.writer().is_flat() => {
                let fence = "`".repeat(longest_run.max(2) + 1);
                let opening = format!("{fence}{language}");
                self.writer()
                    .block([opening.as_str()].into_iter().chain(text.lines()).chain([fence.as_str()]));
            }
            Some(_) | None => {
                let text = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
                let fence = "`".repeat(longest_run + 1);
                let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
                self.writer().word(&format!("{fence}{space}{text}{space}{fence}"));
            }
        }
    }

    fn image(&mut self, tag: &StartTag<()>) {
        let alt = attribute(tag, "alt").unwrap_or_default();
        let alt = alt.split_whitespace().collect::<Vec<_>>().join(" ");
        let source = attribute(tag, "src").filter(|source| is_address(source));
        let shown = match source {
            Some(source) => format!("![{alt}]({})", destination(&source)),
            None if alt.is_empty() => "[image]".to_owned(),
            None => alt,
        };
        self.writer().separate(Gap::Space);
        self.writer().word(&shown);
        self.writer().separate(Gap::Space);
    }

    /// What is played or embedded is named, with its address.
    fn leave_trace(&mut self, tag: &StartTag<()>, name: &str) {
        if !matches!(name, "audio" | "video" | "iframe") {
            return;
        }
        let address = attribute(tag, "src").filter(|address| is_address(address));
        let shown = address.map_or(format!("[{name}]"), |it| format!("[{name}]({})", destination(&it)));
        self.writer().block([shown.as_str()]);
    }
}

fn attribute(tag: &StartTag<()>, name: &str) -> Option<String> {
    let value = tag.attributes.get(name.as_bytes())?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// Whether it leads somewhere: not data, not a script, and not within the page.
fn is_address(text: &str) -> bool {
    let scheme = text.trim_start().split(':').next().unwrap_or_default();
    let is_own = text.trim().is_empty() || text.starts_with('#');
    let is_data = scheme.eq_ignore_ascii_case("data") || scheme.eq_ignore_ascii_case("javascript");
    text.len() <= LONGEST_ADDRESS && !is_own && !is_data
}

/// The language that highlighters note in the class of code.
fn language_of(tag: &StartTag<()>) -> Option<String> {
    let class = attribute(tag, "class")?;
    let language = class.split_ascii_whitespace().find_map(|word| word.strip_prefix("language-"))?;
    language.chars().all(|ch| ch.is_ascii_alphanumeric() || "+-#.".contains(ch)).then(|| language.to_owned())
}

fn is_skipped(tag: &StartTag<()>, name: &str) -> bool {
    match name {
        "audio" | "button" | "canvas" | "datalist" | "head" | "iframe" | "noscript" | "object" | "script"
        | "select" | "style" | "svg" | "template" | "textarea" | "title" | "video" => true,
        "div" | "section" | "span" => {
            let is_undisplayed = |style: String| {
                let style: String = style.split_whitespace().collect();
                style.to_ascii_lowercase().contains("display:none")
            };
            attribute(tag, "hidden").is_some() || attribute(tag, "style").is_some_and(is_undisplayed)
        }
        _ => false,
    }
}

fn is_block(name: &str) -> bool {
    matches!(
        name,
        "address"
            | "article"
            | "aside"
            | "blockquote"
            | "body"
            | "caption"
            | "center"
            | "dd"
            | "details"
            | "div"
            | "dl"
            | "dt"
            | "fieldset"
            | "figcaption"
            | "figure"
            | "footer"
            | "form"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "header"
            | "hr"
            | "html"
            | "legend"
            | "li"
            | "main"
            | "menu"
            | "nav"
            | "ol"
            | "p"
            | "pre"
            | "section"
            | "summary"
            | "table"
            | "td"
            | "th"
            | "tr"
            | "ul"
    )
}

#[cfg(test)]
mod tests;
