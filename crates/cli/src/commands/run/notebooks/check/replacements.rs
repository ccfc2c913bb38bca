//! What is replaced in outputs before they are compared.

use std::borrow::Cow;

use anyhow::{Context as _, ensure};
use regex::Regex;

/// What differs from run to run and means nothing.
const USUAL: [(&str, &str); 12] = [
    // Where objects are in memory.
    (r"\b0x[0-9a-fA-F]{6,}\b", "0x…"),
    // Identifiers made at random.
    (r"\b[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b", "<uuid>"),
    (r"\b[0-9a-f]{32}\b", "<id>"),
    (r"\bT_[0-9a-f]{5}", "T_…"),
    (r"\bsk-(container|estimator)-id-\d+", "sk-$1-id-…"),
    // Where files are on one machine.
    (r"/tmp/(ipykernel_|tmp)[A-Za-z0-9_]+(/\d+\.py)?", "/tmp/…"),
    (r#"[^\s"'<>()]*/(site|dist)-packages/"#, "…/site-packages/"),
    (r#"/(home|Users)/[^/\s"'<>()]+"#, "~"),
    // What was measured: `%time`, `%timeit`, and progress bars.
    (r"(?m)^(CPU times|Wall time): .*$", "$1: …"),
    (r"(?m)^.* per loop \(mean ± std\. dev\. .*$", "… per loop"),
    (r"\d+(:\d\d)+<[^\]\n]*\]", "…]"),
    // A moment with fractions of a second is when the cell ran.
    (
        r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,]\d{3,}(Z|[+-]\d\d:?\d\d)?|datetime\.datetime\(\d{4}(, \d+){6}\)",
        "<now>",
    ),
];

/// Patterns, and what stands for what they find, in this order.
#[derive(Debug, Default)]
pub(super) struct TextReplacements(Vec<(Regex, String)>);

impl TextReplacements {
    /// Reads nbval's format: pairs of lines `regex: …` and `replace: …`. All other lines are comments.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let lines: Vec<_> = text.lines().collect();
        let mut pairs = Vec::new();
        for (number, pair) in lines.windows(2).enumerate() {
            let (Some(pattern), Some(replace)) =
                (pair[0].strip_prefix("regex: "), pair[1].strip_prefix("replace: "))
            else {
                continue;
            };
            let regex = Regex::new(&pattern.replace(r"\Z", r"\z"))
                .with_context(|| format!("the pattern in line {} cannot be used", number + 1))?;
            pairs.push((regex, rust_replacement(replace)));
        }
        ensure!(!pairs.is_empty(), "there is no line `regex: …` with a line `replace: …` below it");
        Ok(Self(pairs))
    }

    pub(super) fn add_usual(&mut self) {
        let of = |(pattern, replace): (&str, &str)| {
            (Regex::new(pattern).expect("patterns of ours are right"), replace.to_owned())
        };
        self.0.extend(USUAL.into_iter().map(of));
    }

    pub(super) fn apply(&self, text: &str) -> String {
        let mut text = Cow::Borrowed(text);
        for (regex, replace) in &self.0 {
            if let Cow::Owned(replaced) = regex.replace_all(&text, replace.as_str()) {
                text = Cow::Owned(replaced);
            }
        }
        text.into_owned()
    }
}

/// Python's way to name groups, `\1` and `\g<name>`, as this library has it.
fn rust_replacement(python: &str) -> String {
    let mut out = String::new();
    let mut rest = python;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '$' => out.push_str("$$"),
            '\\' => {
                let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                if let Some((name, after)) = rest.strip_prefix("g<").and_then(|rest| rest.split_once('>')) {
                    out.extend(["${", name, "}"]);
                    rest = after;
                } else if digits > 0 {
                    out.extend(["${", &rest[..digits], "}"]);
                    rest = &rest[digits..];
                } else if let Some(escaped) = rest.chars().next() {
                    match escaped {
                        'n' => out.push('\n'),
                        't' => out.push('\t'),
                        '\\' => out.push('\\'),
                        other => out.extend(['\\', other]),
                    }
                    rest = &rest[escaped.len_utf8()..];
                }
            }
            other => out.push(other),
        }
    }
    out
}
