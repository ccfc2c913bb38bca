//! The law of harmless Markdown, checked without the code that makes it.
//!
//! The fuzz target of `fuzz/` reads this file too.

use pulldown_cmark::{Event, Options, Parser, Tag};

use super::{OWN_TAGS, is_safe};

/// Why Markdown could act in a page that trusts it.
pub(super) fn broken(markdown: &str) -> Result<(), String> {
    let text = without_fences(markdown)?;
    only_own_tags(&text)?;
    only_safe_targets(&text)?;
    no_quotes_in_formulas(&text)?;
    as_a_parser_sees_it(markdown)
}

/// The text without the fenced blocks that we write: an empty line, back ticks with a word, the
/// code, and the same back ticks.
fn without_fences(markdown: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut lines = markdown.split('\n');
    let mut after_gap = true;
    while let Some(line) = lines.next() {
        let info = line.trim_start_matches('`');
        let fence = &line[..line.len() - info.len()];
        let is_word =
            !info.is_empty() && info.bytes().all(|b| b.is_ascii_alphanumeric() || b"+#.-_".contains(&b));
        if after_gap && fence.len() >= 3 && is_word {
            // In a fence that another parser believes to be open, this block is code as well.
            lines.by_ref().find(|line| *line == fence).ok_or_else(|| format!("open fence {line}"))?;
            continue;
        }
        after_gap = line.is_empty();
        out.push_str(line);
        out.push('\n');
    }
    Ok(out)
}

fn only_own_tags(text: &str) -> Result<(), String> {
    for (at, _) in text.match_indices('<') {
        let rest = &text[at..];
        let next = rest.chars().nth(1).unwrap_or(' ');
        let is_tag = next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?');
        if is_tag && !OWN_TAGS.iter().any(|tag| rest.starts_with(tag)) {
            return Err(format!("tag {rest}"));
        }
    }
    Ok(())
}

fn only_safe_targets(text: &str) -> Result<(), String> {
    if let Some((_, rest)) = text.split_once("]:") {
        return Err(format!("definition of {rest}"));
    }
    let target = |rest: &str| rest.split(')').next().unwrap_or_default().replace("&amp;", "&");
    for (at, _) in text.match_indices("](") {
        let target = target(&text[at + 2..]);
        if !is_safe(&target) || target.contains(['"', '\'', '(', '<', '$', '\\', '[']) {
            return Err(format!("link to {target}"));
        }
    }
    for (at, _) in text.match_indices("![") {
        let rest = &text[at..];
        let end = rest.find("](").ok_or_else(|| format!("open picture {rest}"))?;
        let target = target(&rest[end + 2..]);
        if rest[2..end].contains(['[', ']', '"', '$']) || target.contains(':') || target.starts_with('/') {
            return Err(format!("picture of {target}"));
        }
    }
    Ok(())
}

/// What JupyterLab takes out as formulas: `removeMath` in `packages/rendermime/src/latex.ts`.
fn no_quotes_in_formulas(text: &str) -> Result<(), String> {
    let mut open: Option<(usize, String)> = None;
    let (mut braces, mut last): (usize, Option<usize>) = (0, None);
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let token = token(rest);
        let Some(token) = token else {
            at += rest.chars().next().map_or(1, char::len_utf8);
            continue;
        };
        let end = at + token.len();
        if let Some((start, closing)) = &open {
            if token == *closing && braces > 0 {
                last = Some(end);
            } else if token == *closing {
                quoteless(&text[*start..end])?;
                open = None;
            } else if token.matches('\n').count() > 1 {
                if let Some(last) = last {
                    quoteless(&text[*start..last])?;
                }
                (open, last, braces) = (None, None, 0);
            } else if token == "{" {
                braces += 1;
            } else if token == "}" {
                braces = braces.saturating_sub(1);
            }
        } else {
            let closing = match token {
                "$" | "$$" => Some(token.to_owned()),
                "\\\\(" => Some("\\\\)".to_owned()),
                "\\\\[" => Some("\\\\]".to_owned()),
                other => other.strip_prefix("\\begin").map(|name| format!("\\end{name}")),
            };
            open = closing.map(|closing| (at, closing));
            (last, braces) = (None, 0);
        }
        at = end;
    }
    match (open, last) {
        (Some((start, _)), Some(last)) => quoteless(&text[start..last]),
        _ => Ok(()),
    }
}

fn quoteless(formula: &str) -> Result<(), String> {
    if formula.contains(['"', '`']) || formula.contains("](") {
        Err(format!("formula {formula}"))
    } else {
        Ok(())
    }
}

fn token(rest: &str) -> Option<&str> {
    for fixed in ["$$", "$", "\\{", "\\}", "\\$", "{", "}", "\\\\(", "\\\\)", "\\\\[", "\\\\]"] {
        if rest.starts_with(fixed) {
            return Some(&rest[..fixed.len()]);
        }
    }
    if rest.starts_with('\n') {
        let end = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
        return rest[..end].rfind('\n').map(|_| &rest[..end]);
    }
    let named = rest.strip_prefix("\\begin{").or_else(|| rest.strip_prefix("\\end{"))?;
    let name = named.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let after = name.strip_prefix('*').unwrap_or(name).strip_prefix('}')?;
    Some(&rest[..rest.len() - after.len()])
}

fn as_a_parser_sees_it(markdown: &str) -> Result<(), String> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    for event in Parser::new_ext(markdown, options) {
        match event {
            Event::Html(html) | Event::InlineHtml(html) => only_own_tags(&html)?,
            Event::Start(Tag::Link { dest_url, .. }) if !is_safe(&dest_url) => {
                return Err(format!("link to {dest_url}"));
            }
            Event::Start(Tag::Image { dest_url, .. }) if dest_url.contains(':') => {
                return Err(format!("picture of {dest_url}"));
            }
            _ => {}
        }
    }
    Ok(())
}
