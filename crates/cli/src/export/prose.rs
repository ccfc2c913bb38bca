//! Markdown as HTML for a page.

use cellwright_output::HarmlessHtml;
use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd, html};

use super::outputs::code_html;

const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS)
    .union(Options::ENABLE_FOOTNOTES)
    .union(Options::ENABLE_MATH);

/// Markdown as HTML, in which nothing runs and nothing is fetched. `scope` and `picture` are [`HarmlessHtml::of`]'s.
pub(super) fn prose_html(markdown: &str, scope: &str, picture: &dyn Fn(&str) -> Option<String>) -> String {
    let mut events: Vec<Event<'_>> = Vec::new();
    let mut code: Option<(CodeBlockKind<'_>, String)> = None;
    let mut heading: Option<(usize, String)> = None;
    for event in Parser::new_ext(markdown, OPTIONS) {
        match (event, &mut code) {
            (Event::Start(Tag::CodeBlock(kind)), _) => code = Some((kind, String::new())),
            (Event::Text(text), Some((_, block))) => block.push_str(&text),
            (Event::End(TagEnd::CodeBlock), Some(_)) => {
                let (kind, text) = code.take().expect("a block is open");
                let language = match &kind {
                    CodeBlockKind::Fenced(info) => info.split([' ', ',', '{']).next(),
                    CodeBlockKind::Indented => None,
                };
                let block = code_html(&text, language.filter(|name| !name.is_empty()).unwrap_or("text"));
                events.push(Event::Html(block.into()));
            }
            (event, _) => {
                match (&event, &mut heading) {
                    (Event::Start(Tag::Heading { .. }), _) => heading = Some((events.len(), String::new())),
                    (Event::Text(text) | Event::Code(text), Some((_, words))) => words.push_str(text),
                    (Event::End(TagEnd::Heading(_)), Some((at, words))) => {
                        // As Jupyter names the places that links in notebooks lead to.
                        if let Event::Start(Tag::Heading { id, .. }) = &mut events[*at] {
                            *id = Some(CowStr::from(words.trim().replace(' ', "-")));
                        }
                        heading = None;
                    }
                    _ => {}
                }
                events.push(event);
            }
        }
    }
    let mut out = String::with_capacity(markdown.len() * 2);
    html::push_html(&mut out, events.into_iter());
    HarmlessHtml::of(&out, scope, picture).html
}

/// The first heading of the first level, as text.
pub(super) fn title(markdown: &str) -> Option<String> {
    let mut title: Option<String> = None;
    for event in Parser::new_ext(markdown, OPTIONS) {
        match (event, &mut title) {
            (Event::Start(Tag::Heading { level: pulldown_cmark::HeadingLevel::H1, .. }), None) => {
                title = Some(String::new());
            }
            (Event::Text(text) | Event::Code(text), Some(title)) => title.push_str(&text),
            (Event::End(TagEnd::Heading(_)), Some(_)) => return title,
            _ => {}
        }
    }
    None
}
