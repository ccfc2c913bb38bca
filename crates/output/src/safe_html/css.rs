//! Styles that draw, and neither fetch nor reach beyond their place.

use std::iter::Peekable;
use std::str::Chars;

/// How deep rules are inside each other (`@media`).
const DEEPEST: usize = 4;

/// A style sheet whose rules apply inside the element with the id `scope`.
pub(super) fn harmless_sheet(sheet: &str, scope: &str) -> String {
    let mut out = String::new();
    let sheet = without_comments(sheet);
    rules(&sheet, scope, DEEPEST, &mut out);
    out
}

fn rules(sheet: &str, scope: &str, depth: usize, out: &mut String) {
    let mut rest = sheet.chars().peekable();
    loop {
        let (head, end) = part(&mut rest, &['{', ';', '}']);
        match end {
            None => return,
            // A rule without a body, such as `@import`.
            Some(';' | '}') => {}
            Some(_) => {
                let body = block(&mut rest);
                let head = head.trim();
                if head.starts_with('@') {
                    let is_plain = |c: char| c.is_ascii_alphanumeric() || " -:(),.@".contains(c);
                    if depth > 0 && head.starts_with("@media") && head.chars().all(is_plain) {
                        let mut inside = String::new();
                        rules(&body, scope, depth - 1, &mut inside);
                        if !inside.is_empty() {
                            out.extend([head, "{", &inside, "}"]);
                        }
                    }
                } else if let Some(selectors) = scoped(head, scope) {
                    let declarations = harmless_declarations(&body);
                    if !declarations.is_empty() {
                        out.extend([&selectors, "{", &declarations, "}"]);
                    }
                }
            }
        }
    }
}

/// The selectors, each inside the scope. What means the page means the scope.
fn scoped(selectors: &str, scope: &str) -> Option<String> {
    let is_plain = |c: char| c.is_alphanumeric() || c.is_whitespace() || "_-#.>+~*:()[]=\"'^$|,".contains(c);
    if selectors.is_empty() || !selectors.chars().all(is_plain) {
        return None;
    }
    let mut scoped = Vec::new();
    let mut rest = selectors.chars().peekable();
    loop {
        let (selector, end) = part(&mut rest, &[',']);
        let selector = selector.trim();
        let of_page = [":root", "html", "body"].into_iter().find_map(|page| selector.strip_prefix(page));
        match of_page.filter(|inside| inside.is_empty() || inside.starts_with(char::is_whitespace)) {
            Some(inside) => scoped.push(format!("#{scope}{inside}")),
            None if selector.is_empty() => {}
            None => scoped.push(format!("#{scope} {selector}")),
        }
        if end.is_none() {
            return (!scoped.is_empty()).then(|| scoped.join(","));
        }
    }
}

/// Declarations that draw: without addresses, and without positions outside the flow.
pub(super) fn harmless_declarations(declarations: &str) -> String {
    let mut out = String::new();
    let declarations = without_comments(declarations);
    let mut rest = declarations.chars().peekable();
    loop {
        let (declaration, end) = part(&mut rest, &[';']);
        if let Some((property, value)) = declaration.split_once(':') {
            let (property, value) = (property.trim().to_ascii_lowercase(), value.trim());
            let is_name = !property.is_empty()
                && property.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
            let reaches = matches!(&*property, "position" | "behavior" | "-moz-binding" | "src");
            if is_name && !reaches && !value.contains(['{', '}']) && is_harmless_value(value) {
                out.extend([&*property, ":", value, ";"]);
            }
        }
        if end.is_none() {
            return out;
        }
    }
}

/// Whether a value fetches nothing and cannot hide what it does.
pub(super) fn is_harmless_value(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    let fetches = |word: &str| {
        value.match_indices(word).any(|(at, _)| {
            let argument = value[at + word.len()..].trim_start_matches(['"', '\'', ' ']);
            !argument.starts_with('#')
        })
    };
    !value.contains(['<', '\\'])
        && !fetches("url(")
        && !["image(", "image-set(", "expression(", "javascript:", "@import"]
            .iter()
            .any(|bad| value.contains(bad))
}

/// Up to one of these characters outside of quotes and brackets, and which it was.
fn part(rest: &mut Peekable<Chars<'_>>, ends: &[char]) -> (String, Option<char>) {
    let mut text = String::new();
    let mut brackets = 0_usize;
    while let Some(c) = rest.next() {
        match c {
            c if brackets == 0 && ends.contains(&c) => return (text, Some(c)),
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets = brackets.saturating_sub(1),
            '"' | '\'' => {
                text.push(c);
                while let Some(inside) = rest.next() {
                    text.push(inside);
                    match inside {
                        '\\' => text.extend(rest.next()),
                        inside if inside == c => break,
                        _ => {}
                    }
                }
                continue;
            }
            _ => {}
        }
        text.push(c);
    }
    (text, None)
}

/// The body of a rule, whose opening brace was read.
fn block(rest: &mut Peekable<Chars<'_>>) -> String {
    let mut text = String::new();
    let mut depth = 0_usize;
    loop {
        let (inside, end) = part(rest, &['{', '}']);
        text.push_str(&inside);
        match end {
            Some('{') => depth += 1,
            Some(_) if depth > 0 => depth -= 1,
            Some(_) | None => return text,
        }
        text.extend(end);
    }
}

fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("/*") {
        out.push_str(&rest[..at]);
        out.push(' ');
        rest = rest[at + 2..].split_once("*/").map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    out.replace("<!--", " ").replace("-->", " ")
}
