//! Writing HTML. Every text of an agent passes through [`escape`], every address through [`link`].

use std::fmt::Write as _;

pub(super) use cellwright_output::{data_address, escaped_html as escape};
use cellwright_output::{has_safe_scheme, visible};

/// A link, if the address is safe. Otherwise the words and the address as text.
pub(super) fn link(words: &str, address: &str) -> String {
    let words = escape(words);
    let address_shown = escape(address);
    if has_safe_scheme(address) {
        format!("<a href=\"{address_shown}\" target=\"_blank\" rel=\"noopener noreferrer\">{words}</a>")
    } else {
        format!("{words} <code>{address_shown}</code>")
    }
}

/// Monospaced text in a box that scrolls if it is long.
pub(super) fn pre(text: &str) -> String {
    format!("<pre style=\"{PRE}\">{}</pre>", escape(text))
}

/// A part that is folded until the user opens it.
pub(super) fn folded(summary: &str, body: &str) -> String {
    let mut out = String::with_capacity(summary.len() + body.len() + 128);
    write!(
        out,
        "<details style=\"margin:2px 0\"><summary style=\"cursor:pointer;opacity:.75\">{}</summary>{body}</details>",
        escape(summary)
    )
    .expect("strings take everything");
    out
}

/// The same, unfolded.
pub(super) fn headed(head: &str, body: &str) -> String {
    format!("<div style=\"margin:2px 0\"><div style=\"opacity:.75\">{}</div>{body}</div>", escape(head))
}

/// A text for a widget that shows HTML. Nothing if the text is empty.
pub(crate) fn widget_text(text: &str, style: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("<div style=\"line-height:1.4;{style}\">{}</div>", escape(&visible(text)))
}

/// Boxes are tinted with transparent grey, which suits light and dark themes alike.
pub(super) const PRE: &str = "margin:4px 0;padding:6px 8px;max-height:24em;overflow:auto;white-space:pre-wrap;\
    overflow-wrap:anywhere;background:rgba(128,128,128,.10);border-radius:4px;font-family:monospace;font-size:12px;\
    line-height:1.4";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_run_code_are_shown_and_not_linked() {
        for address in [
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "java\nscript:alert(1)",
            " javascript:alert(1)",
            "\u{1}javascript:alert(1)",
            "data:text/html,<script>alert(1)</script>",
            "vbscript:x",
            "file:///etc/passwd",
            "no scheme",
            "https://a.example/\u{9}b",
        ] {
            let shown = link("words", address);
            assert!(!shown.contains("<a "), "{shown}");
            assert!(shown.contains(&*escape(address)), "{shown}");
        }
        assert_eq!(
            link("a & b", "https://x.example/?a=\"1\"&b='2'"),
            "<a href=\"https://x.example/?a=&quot;1&quot;&amp;b=&#39;2&#39;\" target=\"_blank\" \
             rel=\"noopener noreferrer\">a &amp; b</a>"
        );
    }

    #[test]
    fn a_mime_type_cannot_leave_its_attribute() {
        assert_eq!(
            data_address("image", "image/svg+xml", "PHN2Zz4="),
            Some("data:image/svg+xml;base64,PHN2Zz4=".into())
        );
        for (mime, data) in [
            ("image/png\" onload=\"x", "AA"),
            ("text/html", "AA"),
            ("image/", "AA"),
            ("image/png", "\"><script>"),
        ] {
            assert_eq!(data_address("image", mime, data), None);
        }
    }
}
