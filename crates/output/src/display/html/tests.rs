//! HTML in, Markdown out; and what holds for any HTML.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::{LONGEST, to_markdown};

#[test]
fn a_table_with_two_levels_of_rows_and_columns_stays_aligned() {
    let html = "<table><thead>
        <tr><th></th><th>C</th><th colspan=\"2\">X</th></tr>
        <tr><th>L</th><th>n</th><th>p</th><th>q</th></tr>
      </thead><tbody>
        <tr><th rowspan=\"2\">a</th><th>1</th><td>0</td><td>1</td></tr>
        <tr><th>2</th><td>4</td><td>5</td></tr>
        <tr><th>b</th><th>1</th><td>8</td><td>日本</td></tr>
      </tbody></table>";
    insta::assert_snapshot!(to_markdown(html), @r"
    |     | C   | X   |      |
    | --- | --- | --- | ---- |
    | L   | n   | p   | q    |
    | a   | 1   | 0   | 1    |
    |     | 2   | 4   | 5    |
    | b   | 1   | 8   | 日本 |
    ");
}

#[test]
fn tables_that_set_a_page_are_not_shown_as_tables() {
    let html = "<table><tr><td>before</td></tr><tr><td><table><tr><th>k<td>v</table></td><td><svg><text>1</text></svg>
        <pre>a\n  b</pre></td></tr></table>";
    insta::assert_snapshot!(to_markdown(html), @r"
    before

    | k   | v   |
    | --- | --- |

    ```
    a
      b
    ```
    ");
}

#[test]
fn cells_are_one_line() {
    let html =
        "<table><caption>Cap</caption><tr><th>a<th>b<tr><td>x<br>y<hr>z<td><ul><li>1<li>2</ul><h2>h</h2>
        <tr><td><p>p</p><p>q</p><td><pre>a|b</pre><td>further</table>";
    insta::assert_snapshot!(to_markdown(html), @r"
    *Cap*

    | a         | b      |         |
    | --------- | ------ | ------- |
    | x y --- z | 1 2 h  |
    | p q       | `a\|b` | further |
    ");
}

#[test]
fn lists_quotes_and_code_are_nested() {
    let html =
        "<p>Intro</p><ul><li>a<ul><li>a1<li>a2<ol start=3><li>x<li>y</ol></ul><li></li><li><p>b</p><p>c</p>
        <blockquote><p>q</p><ul><li><input type=checkbox checked> r</ul></blockquote></ul>
        <ol><li><pre><code class='hl language-python'>if a &lt; b:\n    `c`</code></pre></ol>after";
    insta::assert_snapshot!(to_markdown(html), @r"
    Intro

    - a
      - a1
      - a2
        3. x
        4. y
    - b

      c

      > q
      >
      > - [x] r

    1. ```python
       if a < b:
           `c`
       ```

    after
    ");
}

#[test]
fn words_keep_their_marks() {
    for (html, expected) in [
        ("a<b> b </b>c <i>d</i><em>e</em>", "a **b** c *de*"),
        ("<b>a<p>b</p></b> <b></b>c", "**a**\n\n**b**\n\nc"),
        ("<b>a <b>b</b> c</b> <b><i>d</b>e", "**a b c** ***d***e"),
        ("<code>a `b`\n c</code>, <kbd>`d</kbd><code> </code>", "``a `b` c``, `` `d ``"),
        ("x<sup>2</sup> <del>y</del> <q>z</q>", "x^2 ~~y~~ \"z\""),
        ("<h2>a <a href=#b>¶</a><br>c</h2><h3></h3>d", "## a ¶ c\n\nd"),
        ("a<br>b<br><br>c<br>", "a  \nb\n\nc"),
        ("a\n b\n- c\n1. d", "a\nb - c 1. d"),
        ("&lt;b&gt; &amp;amp; &#x41;&nbsp;&eacute; &unknown;", "<b> &amp; A é &unknown;"),
        ("<dl><dt>a<dd>b</dl><details><summary>c</summary>d</details>", "a\n: b\n\n**c**\n\nd"),
    ] {
        assert_eq!(to_markdown(html), expected, "{html}");
    }
}

#[test]
fn links_and_images_lead_somewhere_or_are_words() {
    for (html, expected) in [
        ("<a href='http://a/b'>c</a> <a href='http://a/b'>http://a/b</a>", "[c](http://a/b) http://a/b"),
        ("<a href='javascript:x()'>a</a><a href='data:,x'>b</a><a>c</a><a href='x'></a>", "abc"),
        ("<a href='a b(c)'>d</a>", "[d](<a b(c)>)"),
        ("<a href='x'><div>a</div><div>b</div></a>c", "[a](x)\n\nb\n\nc"),
        ("a<img src='b.png' alt='c\n d'>", "a ![c d](b.png)"),
        ("<img src='data:image/png;base64,AAAA'>", "[image]"),
        (
            "<iframe src='http://a/b'><p>no</p></iframe><video><source src=c>no</video>",
            "[iframe](http://a/b)\n\n[video]",
        ),
    ] {
        assert_eq!(to_markdown(html), expected, "{html}");
    }
}

#[test]
fn what_is_not_displayed_is_left_out() {
    for html in [
        "<head><title>x</title><style>x</style><body>seen",
        "<script>'</p>x'</script><template>x<template>x</template>x</template>seen<!-- x -->",
        "<div hidden>x<div>x</div>x</div><span style='Display : none'>x</span>seen",
        "<svg/>seen<svg><title>x</title></svg><noscript>x</noscript><select><option>x</select>",
    ] {
        assert_eq!(to_markdown(html), "seen", "{html}");
    }
}

#[test]
fn the_worst_html_takes_no_more_than_a_moment() {
    let long = |pattern: &str| pattern.repeat(LONGEST / pattern.len());
    for html in [
        long("<b>"),
        long("<ul><li>x"),
        format!("{}{}", "<ul>".repeat(100_000), "</b>".repeat(200_000)),
        long("<blockquote>x"),
        long("<table><tr><td>"),
        format!("<table>{}", long("<td colspan=1000 rowspan=1000>x<tr>")[..LONGEST - 100].to_owned()),
        format!("<table><td>{}{}", "x".repeat(1_000_000), "<tr><td>x".repeat(100_000)),
        format!("<table><tr>{}{}", "<td>".repeat(200_000), "<tr><td>x".repeat(100_000)),
        format!("<a href='{}'>{}", "u".repeat(1_000_000), "<p>x".repeat(200_000)),
        format!("{}{}", "<b><i><s><q><sup>".repeat(20_000), "<p>x".repeat(300_000)),
        long("<pre>x"),
        long("<div hidden>"),
        long("`<code>"),
        long("<a href=x>"),
        long("&amp"),
        long("<!--<"),
        long("<h1><ol><li><pre>x</h1>"),
    ] {
        let begun = Instant::now();
        let text = to_markdown(&html);
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?} {}", begun.elapsed(), &html[..50]);
        assert!(text.len() < 20 * LONGEST, "{} {}", text.len(), &html[..50]);
    }
}

/// Pieces of which HTML of all kinds can be put together, well formed and not.
fn piece() -> impl Strategy<Value = String> {
    const NAMES: [&str; 38] = [
        "a",
        "b",
        "blockquote",
        "body",
        "br",
        "caption",
        "code",
        "dd",
        "del",
        "div",
        "dl",
        "dt",
        "em",
        "h1",
        "h3",
        "head",
        "hr",
        "i",
        "img",
        "input type=checkbox",
        "li",
        "ol",
        "p",
        "pre",
        "q",
        "span",
        "sup",
        "svg",
        "table",
        "tbody",
        "td colspan=2",
        "td rowspan=3",
        "th",
        "thead",
        "tr",
        "ul",
        "video",
        "script",
    ];
    prop_oneof![
        3 => prop::sample::select(&NAMES[..]).prop_map(|name| format!("<{name}>")),
        2 => prop::sample::select(&NAMES[..]).prop_map(|name| {
            format!("</{}>", name.split(' ').next().unwrap_or_default())
        }),
        1 => Just("<a href='http://x/y z'>".to_owned()),
        1 => Just("<img alt='x' src=y>".to_owned()),
        3 => prop::sample::select(&["x", "two words", " ", "\n", "`", "é日", "|", "*", "- "][..]).prop_map(str::to_owned),
    ]
}

proptest! {
    #[test]
    fn no_tag_is_left_and_blocks_are_one_blank_line_apart(pieces in prop::collection::vec(piece(), 0..60)) {
        let html = pieces.concat();
        let text = to_markdown(&html);
        let without_addresses = text.replace("<http://x/y z>", "");
        prop_assert!(!without_addresses.contains(['<', '>']) || html.contains("<blockquote>"), "{html}\n{text}");
        prop_assert!(!text.starts_with('\n') && text.trim_end() == text, "{html}\n{text}");
        prop_assert!(!text.contains("\n\n\n") || html.contains("<pre>"), "{html}\n{text}");
    }

    #[test]
    fn any_text_is_converted(html in "\\PC*", tagged in "(<[a-z!/?]{0,4}[ =\"'>]{0,3}|&[a-z#0-9]{0,5};?|\\PC){0,60}") {
        to_markdown(&html);
        to_markdown(&tagged);
    }

    #[test]
    fn words_are_kept_in_order_whatever_is_between_them(pieces in prop::collection::vec(piece(), 0..40)) {
        // Outside of tables, which are shown when they are whole, and of what is left out.
        let left_out = ["<table", "<svg", "<script", "<video", "<head", "<img"];
        let html: String = pieces
            .into_iter()
            .filter(|piece| !left_out.iter().any(|tag| piece.starts_with(tag)))
            .enumerate()
            .flat_map(|(n, piece)| [piece, format!("word{n}.")])
            .collect();
        let words = |text: &str| {
            text.split("word").skip(1).map(|word| word.split('.').next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
        };
        prop_assert_eq!(words(&to_markdown(&html)), words(&html), "{}", html);
    }
}
