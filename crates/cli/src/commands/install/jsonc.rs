//! Servers in JSON that people write: comments, trailing commas and layout stay as they are.
//!
//! The parser says where things are; the text is changed by inserting, replacing and cutting there, so every byte
//! that is not the entry's is the byte that was there.

use std::ops::Range;

use anyhow::{Context as _, anyhow, bail};
use jsonc_parser::ast::{self, ObjectProp};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, ParseResult, parse_to_ast};
use serde_json::{Map, Value};

use super::client::ServerEntry;

/// What the clients' own parsers take.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

const BYTE_ORDER_MARK: char = '\u{feff}';

/// The value of a file; an empty one is an empty object.
pub(super) fn read(text: &str) -> anyhow::Result<Value> {
    let parsed = parse(text.trim_start_matches(BYTE_ORDER_MARK))?;
    Ok(parsed.value.map_or_else(|| Map::new().into(), Into::into))
}

/// `text` with `section.name` holding at least `entry`.
pub(super) fn put(text: &str, section: &str, name: &str, entry: &ServerEntry) -> anyhow::Result<String> {
    let mut text = text.to_owned();
    // Each step is one small edit of what the step before left.
    while let Some(next) = step(&text, section, name, entry)? {
        text = next;
    }
    Ok(text)
}

/// One edit towards `section.name` holding `entry`. `None` if it already does.
fn step(text: &str, section: &str, name: &str, entry: &ServerEntry) -> anyhow::Result<Option<String>> {
    if text.trim_start_matches(BYTE_ORDER_MARK).trim().is_empty() {
        return Ok(Some(format!("{text}{{}}\n")));
    }
    let document = JsoncFile::of(text)?;
    let mut object = document.root()?;
    for key in [section, name] {
        object = match object.member(key)? {
            Some(member) => document.object_of(member)?,
            None => return Ok(Some(document.insert(&object, key, "{}"))),
        };
    }
    for (key, wanted) in entry {
        match object.member(key)? {
            Some(found) if Value::from(found.value.clone()) == *wanted => {}
            Some(found) => {
                let span = found.value.range();
                return Ok(Some(document.spliced(vec![(span.start..span.end, inline(wanted))])));
            }
            None => return Ok(Some(document.insert(&object, key, &inline(wanted)))),
        }
    }
    Ok(None)
}

/// `text` without `section.name`.
pub(super) fn remove(text: &str, section: &str, name: &str) -> anyhow::Result<String> {
    if text.trim_start_matches(BYTE_ORDER_MARK).trim().is_empty() {
        return Ok(text.to_owned());
    }
    let document = JsoncFile::of(text)?;
    let Some(servers) = document.root()?.member(section)? else { return Ok(text.to_owned()) };
    let servers = document.object_of(servers)?;
    if servers.member(name)?.is_none() {
        return Ok(text.to_owned());
    }
    let at =
        servers.members.iter().position(|member| member.name.as_str() == name).expect("it was just seen");
    Ok(document.cut(&servers, at))
}

fn parse(text: &str) -> anyhow::Result<ParseResult<'_>> {
    let collect = CollectOptions { comments: CommentCollectionStrategy::AsTokens, tokens: true };
    parse_to_ast(text, &collect, &OPTIONS).map_err(|error| {
        anyhow!("line {}, column {}: {}", error.line_display(), error.column_display(), error.kind())
    })
}

/// A file's text and where its parts are.
struct JsoncFile<'a> {
    text: &'a str,
    /// Before the text: a byte order mark or nothing.
    mark: &'a str,
    value: ast::Value<'a>,
    /// Everything but white space.
    tokens: Vec<TokenAndRange<'a>>,
}

/// An object of a document.
struct JsoncObject<'d, 'a> {
    members: &'d [ObjectProp<'a>],
    /// What is between its braces.
    inside: Range<usize>,
    /// Each member on a line of its own.
    lines: bool,
}

impl<'d, 'a> JsoncObject<'d, 'a> {
    /// The member of that name. Refused if there are several, because readers and writers may choose different ones.
    fn member(&self, name: &str) -> anyhow::Result<Option<&'d ObjectProp<'a>>> {
        let mut found = self.members.iter().filter(|member| member.name.as_str() == name);
        match (found.next(), found.next()) {
            (_, Some(_)) => bail!("it has `{name}` twice"),
            (member, None) => Ok(member),
        }
    }
}

impl<'a> JsoncFile<'a> {
    fn of(text: &'a str) -> anyhow::Result<Self> {
        let body = text.trim_start_matches(BYTE_ORDER_MARK);
        let parsed = parse(body)?;
        let value = parsed.value.context("there is no value in it")?;
        let mark = &text[..text.len() - body.len()];
        Ok(Self { text: body, mark, value, tokens: parsed.tokens.unwrap_or_default() })
    }

    fn root(&self) -> anyhow::Result<JsoncObject<'_, 'a>> {
        self.object(&self.value, true).context("it is not a JSON object")
    }

    fn object_of<'d>(&self, holder: &'d ObjectProp<'a>) -> anyhow::Result<JsoncObject<'d, 'a>> {
        let object = self.object(&holder.value, self.starts_line(holder.range.start));
        object.with_context(|| format!("its `{}` is not an object", holder.name.as_str()))
    }

    fn object<'d>(&self, value: &'d ast::Value<'a>, holder_on_own_line: bool) -> Option<JsoncObject<'d, 'a>> {
        let object = value.as_object()?;
        let lines = match object.properties.first() {
            Some(first) => self.starts_line(first.range.start),
            None => holder_on_own_line,
        };
        let inside = object.range.start + 1..object.range.end - 1;
        Some(JsoncObject { members: &object.properties, inside, lines })
    }

    /// The text with other ones in the place of these spans.
    fn spliced(&self, mut edits: Vec<(Range<usize>, String)>) -> String {
        edits.sort_by_key(|(span, _)| span.start);
        let mut out = self.mark.to_owned();
        let mut copied = 0;
        for (span, new) in edits {
            out.extend([&self.text[copied..span.start], &new]);
            copied = span.end;
        }
        out + &self.text[copied..]
    }

    /// A new member at the end of an object, set the way its neighbours are.
    fn insert(&self, object: &JsoncObject<'_, 'a>, key: &str, value: &str) -> String {
        let last = object.members.last().map(|member| member.range.end);
        let after: Vec<_> = self.tokens_in(last.unwrap_or(object.inside.start)..object.inside.end).collect();
        // Behind the comments that follow the last member: they are about that one.
        let place = after.last().map_or(last.unwrap_or(object.inside.start), |token| token.range.end);
        let behind_line_comment =
            after.last().is_some_and(|token| matches!(token.token, Token::CommentLine(_)));
        let outer = self.indent(object.inside.start);
        let (before, end) = if object.lines || behind_line_comment {
            let newline = if self.text.contains("\r\n") { "\r\n" } else { "\n" };
            let inner = match object.members.first() {
                Some(first) if object.lines => self.indent(first.range.start).to_owned(),
                Some(_) | None => format!("{outer}{}", self.unit()),
            };
            (format!("{newline}{inner}"), format!("{newline}{outer}"))
        } else {
            (if last.is_some() { " " } else { "" }.to_owned(), String::new())
        };
        let mut new = format!("{before}{}: {value}", Value::from(key));
        let mut edits = Vec::new();
        match (last, after.iter().any(|token| matches!(token.token, Token::Comma))) {
            (Some(last), false) => edits.push((last..last, ",".to_owned())),
            (Some(_), true) => new.push(','), // it has a comma at the end of every member
            (None, _) if !self.text[place..object.inside.end].contains('\n') => new.push_str(&end),
            (None, _) => {}
        }
        edits.push((place..place, new));
        self.spliced(edits)
    }

    /// The text without one member of an object.
    fn cut(&self, object: &JsoncObject<'_, 'a>, at: usize) -> String {
        let span = object.members[at].range;
        let is_comma = |token: &TokenAndRange<'_>| matches!(token.token, Token::Comma);
        let mut others = self.tokens_in(object.inside.clone()).filter(|token| {
            let own = span.start <= token.range.start && token.range.end <= span.end;
            !own && !is_comma(token)
        });
        if others.next().is_none() {
            return self.spliced(vec![(object.inside.clone(), String::new())]);
        }
        let next = object.members.get(at + 1).map_or(object.inside.end, |member| member.range.start);
        let comma = |span: Range<usize>| {
            let comma = self.tokens_in(span).find(|token| is_comma(token));
            comma.map(|comma| (comma.range.start..comma.range.end, String::new()))
        };
        // Without a comma of its own it was the last; then the one before it must lose its own.
        let comma = comma(span.end..next).or_else(|| {
            let previous = at.checked_sub(1)?;
            comma(object.members[previous].range.end..span.start)
        });
        let before = self.text[..span.start].trim_end_matches([' ', '\t']);
        let before = before.strip_suffix('\n').map_or(before, |line| line.strip_suffix('\r').unwrap_or(line));
        self.spliced(comma.into_iter().chain([(before.len()..span.end, String::new())]).collect())
    }

    fn tokens_in(&self, span: Range<usize>) -> impl Iterator<Item = &TokenAndRange<'a>> {
        self.tokens.iter().filter(move |token| span.contains(&token.range.start))
    }

    /// One step of indentation.
    fn unit(&self) -> &str {
        let first = self.value.as_object().and_then(|root| root.properties.first());
        let indent = first
            .filter(|first| self.starts_line(first.range.start))
            .map(|first| self.indent(first.range.start));
        indent.filter(|indent| !indent.is_empty()).unwrap_or("  ")
    }

    /// The white space at the start of the line of a place.
    fn indent(&self, at: usize) -> &str {
        let line = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let text = &self.text[line..at];
        &text[..text.len() - text.trim_start().len()]
    }

    fn starts_line(&self, at: usize) -> bool {
        self.text[..at].trim_end_matches([' ', '\t']).ends_with('\n')
    }
}

/// A value on one line, with air between its words.
fn inline(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        _ => value.to_string(),
    }
}
