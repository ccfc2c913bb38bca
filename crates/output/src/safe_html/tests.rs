use proptest::prelude::*;

use super::*;

fn no_picture(_: &str) -> Option<String> {
    None
}

#[track_caller]
fn check(html: &str, expected: &str) {
    assert_eq!(HarmlessHtml::of(html, "s", &no_picture).html, expected, "{html}");
}

#[test]
fn what_runs_is_gone_and_what_shows_stays() {
    check("<b>bold</b><script>alert(1)</script> & more", "<b>bold</b> &amp; more");
    check("<div onclick=\"x()\" class='a'>t</div>", "<div class=\"a\">t</div>");
    check("<a href=\"javascript:x()\">a</a>", "<a rel=\"noopener noreferrer\">a</a>");
    check(
        "<a href=' https://x.example/?a=1&b=2'>a</a>",
        "<a href=\" https://x.example/?a=1&amp;b=2\" rel=\"noopener noreferrer\">a</a>",
    );
    check("<a href=\"java\nscript:x()\">a</a>", "<a rel=\"noopener noreferrer\">a</a>");
    check("<iframe src=x><p>a</p></iframe>b<object><object>c</object>d</object>e", "be");
    check(
        "<svg><script>x</script><foreignObject><b>x</b></foreignObject><circle r=3 /></svg>",
        "<svg><circle r=\"3\"></circle></svg>",
    );
    check(
        "<svg><use xlink:href='https://x/#a'/><use href='#a'/></svg>",
        "<svg><use></use><use href=\"#a\"></use></svg>",
    );
    check("<custom-element>words</custom-element>", "words");
    check(
        "<form action=x><input type=text value=1><input type=checkbox checked>",
        "<input checked=\"\" type=\"checkbox\">",
    );
    check(
        "<textarea></textarea><img src=x onerror=alert(1)>",
        "<a href=\"x\" rel=\"noopener noreferrer\">[picture]</a>",
    );
    check("<meta http-equiv=refresh content='0;url=x'><link rel=stylesheet href=x><base href=x>t", "t");
}

#[test]
fn html_cannot_end_the_elements_around_it() {
    check("</div></td>text<div><span>open", "text<div><span>open</span></div>");
    check(
        "<table><tr><td>1<td>2<tr><td>3</table>",
        "<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>",
    );
    check("<p>one<p>two<ul><li>a<li>b</ul>", "<p>one</p><p>two</p><ul><li>a</li><li>b</li></ul>");
    check("<!-- <b>x</b> --><b a='<script>'>y", "<b>y</b>");
}

#[test]
fn styles_neither_fetch_nor_leave_their_place() {
    check(
        "<style>#T_1 td, .a { color: red; background: url(https://x) } @import 'x'; @font-face {src: url(x)} \
         body {position: fixed; margin: 0} </style>",
        "<style>#s #T_1 td,#s .a{color:red;}#s{margin:0;}</style>",
    );
    check("<style>a{}</style><style></styl e></style>t", "t");
    check(
        "<style>@media (prefers-color-scheme: dark) { td:nth-child(2) { color: #fff } } i::after{content:'}<x>'}</style>",
        "<style>@media (prefers-color-scheme: dark){#s td:nth-child(2){color:#fff;}}</style>",
    );
    check(
        "<p style=\"color: red; position:fixed; background-image: u\\72l(x); width: 3px; fill: url(#a)\">t",
        "<p style=\"color:red;width:3px;fill:url(#a);\">t</p>",
    );
    check("<td style=\"background:url('https://x')\" bgcolor=red>t", "<td bgcolor=\"red\">t</td>");
}

#[test]
fn pictures_come_from_where_the_caller_has_them() {
    let picture = |address: &str| (address == "plot.png").then(|| "data:image/png;base64,QQ==".to_owned());
    let html = "<img src=plot.png alt='a \"plot\"' srcset='https://x 2x' width=10><img src='https://x.example/a.png' alt=remote>";
    assert_eq!(
        HarmlessHtml::of(html, "s", &picture).html,
        "<img alt=\"a &quot;plot&quot;\" width=\"10\" src=\"data:image/png;base64,QQ==\">\
         <a href=\"https://x.example/a.png\" rel=\"noopener noreferrer\">[remote]</a>"
    );
}

#[test]
fn a_chart_that_a_script_draws_leaves_nothing_to_see() {
    let seen = |html: &str| HarmlessHtml::of(html, "s", &no_picture).is_visible;
    assert!(!seen("<div id=vis></div><script>draw('text')</script><style>a{color:red}</style>"));
    assert!(seen("<div>text</div>"));
    assert!(seen("<svg></svg>"));
}

/// Why HTML is not harmless, read by another eye: every `<` begins a tag that may be there, with quoted attributes.
fn broken(html: &str) -> Option<String> {
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let tag = &rest[..rest.find('>')?];
        let tag = tag.strip_prefix('/').unwrap_or(tag);
        let name = tag.split(' ').next().unwrap_or_default();
        let known = matches!(
            element_kind(name),
            ElementKind::Known | ElementKind::Empty | ElementKind::Picture | ElementKind::Sheet
        );
        let lower = tag.to_lowercase();
        let acts = ["javascript:", " on", "url(h", "srcdoc", "http-equiv"].iter().any(|bad| {
            lower.split('"').step_by(2).any(|outside| outside.contains(bad))
                || lower.contains("=\"javascript:")
        });
        if !known || acts {
            return Some(tag.to_owned());
        }
        if name == "style" && !rest.starts_with("style></style>") {
            let sheet = &rest[6..rest.find("</style>").unwrap_or(rest.len())];
            if sheet.contains('<') || sheet.to_lowercase().contains("url(h") {
                return Some(sheet.to_owned());
            }
        }
    }
    None
}

proptest! {
    #[test]
    fn whatever_comes_in_only_known_tags_come_out(
        parts in prop::collection::vec(
            prop_oneof![
                prop::sample::select(vec![
                    "<", ">", "\"", "'", "=", "/", "<script>", "</script>", "<style>", "</style>", "<svg>", "<math>",
                    "<a href=", "javascript:", "<img src=", " onerror=x ", "<!--", "-->", "<![CDATA[", "]]>",
                    "<title>", "<textarea>", "</textarea>", "<template>", "url(https://x)", "{", "}", "@media",
                    "<p style=\"", "<table><td>", "</table>", "&lt;", "&#60;", "\\", "#a", ";", "<noscript>", "\u{0}",
                ]).prop_map(str::to_owned),
                "[a-z <>&;:\"']{0,6}",
            ],
            0..24,
        )
    ) {
        let html: String = parts.concat();
        let once = HarmlessHtml::of(&html, "s", &no_picture).html;
        prop_assert_eq!(broken(&once), None, "{}", once);
    }

    #[test]
    fn escaped_text_has_no_markup_and_unescapes(text in "\\PC*|[<>&\"'a;#]*") {
        let escaped = escaped_html(&text);
        prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
        let back = escaped
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"")
            .replace("&#39;", "'")
            .replace("&amp;", "&");
        prop_assert_eq!(back, text);
    }
}
