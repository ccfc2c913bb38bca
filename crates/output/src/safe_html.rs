//! HTML from elsewhere as HTML that a page of ours can hold: nothing in it runs, fetches or leaves its place.
//!
//! The HTML is cut into tokens and written anew from a list of known elements and attributes, all
//! values quoted. So every `<` of the result begins a tag of that list, however a browser nests
//! it. Elements of unknown names go and their contents stay; scripts and the like go whole.

mod address;
mod css;
mod names;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt::Write as _;

use html5gum::{DefaultEmitter, StartTag, Token, Tokenizer};

pub use self::address::{data_address, has_safe_scheme, is_inside, is_safe_address};
use self::names::{ElementKind, element_kind, is_attribute, is_closed_by};

/// Elements nested deeper than this are left out, with their contents kept.
const DEEPEST: usize = 256;

/// HTML that can do no harm, and what is known of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HarmlessHtml {
    /// The HTML. Every element in it is closed.
    pub html: String,
    /// Whether there is anything to see. A chart that a script would have drawn leaves nothing.
    pub is_visible: bool,
}

impl HarmlessHtml {
    /// Makes `html` harmless. Style sheets in it apply to the element with the id `scope` alone, which must be made of
    /// letters, digits and dashes. `picture` turns the address of a picture into one that is safe to load; without one
    /// the picture becomes a link.
    pub fn of(html: &str, scope: &str, picture: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut emitter = DefaultEmitter::default();
        emitter.naively_switch_states(true);
        let mut writer = HtmlCleaner::new(scope, picture);
        for Ok(token) in Tokenizer::new_with_emitter(html, emitter) {
            match token {
                Token::StartTag(tag) => writer.start(&tag),
                Token::EndTag(tag) => writer.end(&String::from_utf8_lossy(&tag.name)),
                Token::String(text) => writer.text(&String::from_utf8_lossy(&text)),
                Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
            }
        }
        writer.finish()
    }
}

struct HtmlCleaner<'a> {
    scope: &'a str,
    picture: &'a dyn Fn(&str) -> Option<String>,
    out: HarmlessHtml,
    /// Open elements, the outermost first.
    open: Vec<String>,
    /// An element that is left out with its contents, and how many of its name are open.
    skipped: Option<(String, usize)>,
    /// The text of a style sheet.
    sheet: Option<String>,
}

impl<'a> HtmlCleaner<'a> {
    fn new(scope: &'a str, picture: &'a dyn Fn(&str) -> Option<String>) -> Self {
        let out = HarmlessHtml::default();
        Self { scope, picture, out, open: Vec::new(), skipped: None, sheet: None }
    }

    fn start(&mut self, tag: &StartTag<()>) {
        let name = &*String::from_utf8_lossy(&tag.name);
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth += usize::from(skipped == name);
            return;
        }
        match element_kind(name) {
            ElementKind::Unknown => {}
            ElementKind::Sheet => self.sheet = Some(String::new()),
            ElementKind::Harmful => self.skipped = Some((name.to_owned(), 1)),
            ElementKind::Picture => self.image(tag),
            ElementKind::Empty => {
                let is_switch =
                    || attribute(tag, "type").is_some_and(|it| it.eq_ignore_ascii_case("checkbox"));
                if name != "input" || is_switch() {
                    self.write_tag(tag, name);
                }
            }
            ElementKind::Known => {
                // An item ends the one before it, whose end tag may be left out.
                while let Some(open) = self.open.pop_if(|open| is_closed_by(open, name)) {
                    self.close(&open);
                }
                if self.open.len() < DEEPEST {
                    self.write_tag(tag, name);
                    if tag.self_closing && names::is_foreign(name) {
                        self.close(name);
                    } else {
                        self.open.push(name.to_owned());
                    }
                }
                self.out.is_visible |= name == "svg";
            }
        }
    }

    fn end(&mut self, name: &str) {
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth -= usize::from(skipped == name);
            if *depth == 0 {
                self.skipped = None;
            }
            return;
        }
        if name == "style"
            && let Some(sheet) = self.sheet.take()
        {
            let sheet = css::harmless_sheet(&sheet, self.scope);
            if !sheet.is_empty() {
                write!(self.out.html, "<style>{sheet}</style>").expect("a String takes everything");
            }
            return;
        }
        // An end tag of what is not open would end an element of ours.
        if let Some(at) = self.open.iter().rposition(|open| open == name) {
            for open in self.open.split_off(at).iter().rev() {
                self.close(open);
            }
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(sheet) = &mut self.sheet {
            sheet.push_str(text);
        } else if self.skipped.is_none() {
            self.out.is_visible |= !text.trim().is_empty();
            self.out.html.push_str(&escaped_html(text));
        }
    }

    fn finish(mut self) -> HarmlessHtml {
        while let Some(open) = self.open.pop() {
            self.close(&open);
        }
        self.out
    }

    fn close(&mut self, name: &str) {
        write!(self.out.html, "</{name}>").expect("a String takes everything");
    }

    fn write_tag(&mut self, tag: &StartTag<()>, name: &str) {
        self.out.html.extend(["<", name]);
        for (key, value) in &tag.attributes {
            let (key, value) = (&*String::from_utf8_lossy(key), &*String::from_utf8_lossy(value));
            if let Some(value) = harmless_value(name, key, value) {
                write!(self.out.html, " {key}=\"{}\"", escaped_html(&value))
                    .expect("a String takes everything");
            }
        }
        if name == "a" {
            self.out.html.push_str(" rel=\"noopener noreferrer\"");
        }
        self.out.html.push('>');
    }

    fn image(&mut self, tag: &StartTag<()>) {
        let address = attribute(tag, "src").unwrap_or_default();
        let words = attribute(tag, "alt").unwrap_or_default();
        self.out.is_visible = true;
        let out = &mut self.out.html;
        let written = if let Some(source) = (self.picture)(address.trim()) {
            out.push_str("<img");
            for (key, value) in &tag.attributes {
                let (key, value) = (&*String::from_utf8_lossy(key), &*String::from_utf8_lossy(value));
                if let Some(value) = harmless_value("img", key, value) {
                    write!(out, " {key}=\"{}\"", escaped_html(&value)).expect("a String takes everything");
                }
            }
            write!(out, " src=\"{}\">", escaped_html(&source))
        } else {
            // Without a click nothing is fetched: that would send the reader's address away.
            let words = if words.trim().is_empty() { "picture" } else { words.trim() };
            let (words, address) = (escaped_html(words), escaped_html(&address));
            if is_safe_address(&address) {
                write!(out, "<a href=\"{address}\" rel=\"noopener noreferrer\">[{words}]</a>")
            } else {
                write!(out, "[{words}]")
            }
        };
        written.expect("a String takes everything");
    }
}

/// The value of an attribute that may stay, as it may stay.
fn harmless_value<'v>(element: &str, key: &str, value: &'v str) -> Option<Cow<'v, str>> {
    match key {
        "href" | "xlink:href" => {
            let is_place = value.starts_with('#');
            let leads = is_place || (element == "a" && is_safe_address(value.trim()));
            leads.then_some(Cow::Borrowed(value))
        }
        "style" => {
            Some(css::harmless_declarations(value).into()).filter(|style: &Cow<'_, str>| !style.is_empty())
        }
        _ if !is_attribute(element, key) => None,
        _ => css::is_harmless_value(value).then_some(Cow::Borrowed(value)),
    }
}

fn attribute(tag: &StartTag<()>, name: &str) -> Option<String> {
    let value = tag.attributes.get(name.as_bytes())?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// `text` as HTML shows it, in elements and in quoted attributes alike.
pub fn escaped_html(text: &str) -> Cow<'_, str> {
    let special = |c: char| matches!(c, '&' | '<' | '>' | '"' | '\'');
    if !text.contains(special) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 32);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    Cow::Owned(out)
}
