use proptest::prelude::*;

use super::{harmless, harmless_with_headings, headings, law};

#[track_caller]
fn check(text: &str, expected: &str) {
    let made = harmless(text);
    assert_eq!(made, expected);
    assert_eq!(law::broken(&made), Ok(()));
}

#[test]
fn ordinary_answers_stay_as_they_are_written() {
    for text in [
        "# A heading\n\nSome *text* with **weight** and `code`.\n\n- one\n- two\n\n> quoted\n",
        "| a | b |\n|---|---|\n| 1 | `x` |\n",
        "1 < 2, a <- b, x <= y && z",
        "A [link](https://a.example/b?c=1) and a [file](src/main.rs).\n",
        "costs $5",
        "C:\\dir\\file",
        "1. step\n\n   ```sh\n   ls -l\n   ```\n\n2. next\n",
        "- [ ] to do\n- [x] done\n",
        "~~gone~~",
    ] {
        check(text, text);
    }
}

#[test]
fn tags_are_shown_and_do_not_act() {
    check("List<String> and vector<int>", "List&lt;String> and vector&lt;int>");
    check("<think>hm</think>\n\nYes.", "&lt;think>hm&lt;/think>\n\nYes.");
    check("<img src=x onerror=\"alert(1)\">", "&lt;img src=x onerror=\"alert(1)\">");
    check("<div>\n    <b>x</b>\n</div>\n", "&lt;div>\n&lt;b>x&lt;/b>\n&lt;/div>\n");
    check("a <!-- b --> c \\<b>", "a &lt;!-- b --> c &lt;b>");
    check("`<b>`", "<code>&lt;b&gt;</code>");
}

#[test]
fn code_blocks_keep_their_language_and_text() {
    check("```html\n<b>x</b>\n```\nafter", "```html\n<b>x</b>\n```\n\nafter");
    check("before\n```\n<b>\n", "before\n\n```text\n<b>\n```\n\n");
    check("    <b>indented</b>\n", "```text\n<b>indented</b>\n```\n\n");
    check("````md\n```html\n<b>\n```\n````\n", "````md\n```html\n<b>\n```\n````\n\n");
    check(
        "- item\n\n  ```html\n  <b>\n  x\n  ```\n- next\n",
        "- item\n\n  <pre><code>&lt;b&gt;&#10;x</code></pre>\n- next\n",
    );
    check("> ```\n> <b>\n> ```\n", "> <pre><code>&lt;b&gt;</code></pre>\n");
}

#[test]
fn links_lead_to_safe_addresses_only() {
    check("[a](javascript:alert(1))", "&#91;a&#93; <code>javascript&#58;alert&#40;1&#41;</code>");
    check(
        "[a][b]\n\n[b]: javascript:alert(1)\n",
        "&#91;a&#93; <code>javascript&#58;alert&#40;1&#41;</code>\n\n\n",
    );
    check("[a][b]\n\n[b]: https://a.example 'title'\n", "[a](https://a.example)\n\n\n");
    check("<https://a.example/?a=1&b=2>", "[https://a.example/?a=1&b=2](https://a.example/?a=1&amp;b=2)");
    check(
        "[x](https://a/$\"onmouseover=\"alert(1)\"$)",
        "[x](https://a/%24%22onmouseover=%22alert%281%29%22%24)",
    );
    check("[x](//a.example)", "&#91;x&#93; <code>//a.example</code>");
}

#[test]
fn remote_pictures_are_links_until_clicked() {
    check("![a cat](https://a.example/cat.png?d=1)", "[picture a cat](https://a.example/cat.png?d=1)");
    check("![](https://a.example/cat.png)", "[picture](https://a.example/cat.png)");
    check("![a \"plot\"](plots/a.png)", "![a &#34;plot&#34;](plots/a.png)");
    check(
        "[![badge](https://a.example/b.svg)](https://b.example)",
        "[&#91;picture&#93; badge](https://b.example)",
    );
    check("![x](data:text/html,hi)", "&#91;picture x&#93; <code>data&#58;text/html,hi</code>");
    check("\\![x](https://a.example)", "&#33;[x](https://a.example)");
}

#[test]
fn formulas_are_formulas_and_shell_variables_are_text() {
    check("\\(E=mc^2\\) and \\[a<b\\]", "$E=mc^2$ and $$a\\lt b$$");
    check("$x_1 + x_2$", "$x_1 + x_2$");
    check("$$\n\\int_0^1 x\n$$", "$$\n\\int_0^1 x\n$$");
    check("\\begin{align}a &= b\\end{align}", "\\begin{align}a &= b\\end{align}");
    let dollar = "<span>&#36;</span>";
    check(
        "Set $HOME and $PATH, $5 to $10",
        &format!("Set {dollar}HOME and {dollar}PATH, {dollar}5 to {dollar}10"),
    );
    check("`$HOME`, `$A`", "<code>&#36;HOME</code>, <code>&#36;A</code>");
    check("\\$1 \\$2", &format!("{dollar}1 {dollar}2"));
}

#[test]
fn formulas_cannot_reach_the_page() {
    let dollar = "<span>&#36;</span>";
    check("https://a/$\"onmouseover=\"x\"$", "https://a/$''onmouseover=''x''$");
    check("$\\href{javascript:x}{y}$", &format!("{dollar}\\href{{javascript:x}}{{y}}{dollar}"));
    check("$a{$ \"q\" $b$", &format!("{dollar}a{{{dollar} \"q\" $b$"));
    check("&dollar;a&#36;", "<span>&#36;</span>a<span>&#36;</span>");
}

/// Payloads that ran in JupyterLab before answers were made harmless, and near relatives.
#[test]
fn the_corpus_of_the_fuzzer_is_harmless() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/markdown");
    let mut replayed = 0;
    for entry in std::fs::read_dir(folder).expect("the corpus") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read(&path).expect("readable");
        let text = String::from_utf8_lossy(&text);
        for made in [harmless(&text), harmless_with_headings(&text, 0)] {
            assert_eq!(law::broken(&made), Ok(()), "{}\n{made}", path.display());
        }
        replayed += 1;
    }
    assert!(replayed >= 30, "{replayed}");
}

fn pieces() -> impl Strategy<Value = String> {
    const WORDS: [&str; 72] = [
        "<img src=x onerror=alert(1)>",
        "<script>",
        "</script>",
        "<!--",
        "-->",
        "<?",
        "<![CDATA[",
        "<b",
        "<a href=\"",
        ">",
        "](",
        "[x]",
        "[",
        "]",
        "!",
        "![",
        "(",
        ")",
        "]:",
        "[x]: ",
        "javascript:alert(1)",
        "https://a.example/",
        "data:text/html,",
        "`",
        "``",
        "```",
        "```html\n",
        "~~~",
        "\n",
        "\n\n",
        "    ",
        "\t",
        "  ",
        "> ",
        "- ",
        "1. ",
        "* ",
        "# ",
        "| a | b |\n|-|-|\n| ",
        "$",
        "$$",
        "\\",
        "\\\\",
        "\\(",
        "\\)",
        "\\[",
        "\\]",
        "\\begin{a}",
        "\\end{a}",
        "{",
        "}",
        "\"",
        "'",
        "&lt;",
        "&#36;",
        "&bsol;",
        "&#60;",
        "\\href{javascript:x}{y}",
        "onmouseover=\"x\"",
        "@@0@@",
        "x",
        "text",
        "é",
        "\r\n",
        "<pre>",
        "<div>",
        "</div>",
        "<details open ontoggle=x>",
        "<https://a.example>",
        "<a@b.example>",
        "www.a.example/",
        "|",
    ];
    prop::collection::vec(prop::sample::select(&WORDS[..]), 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn no_tag_outside_code_reaches_a_page(text in pieces()) {
        let made = harmless(&text);
        prop_assert_eq!(law::broken(&made), Ok(()), "{}", made);
    }

    #[test]
    fn text_without_markup_is_unchanged(text in "[a-zA-Z0-9 .,;:éß\\n*_#>-]{0,200}") {
        prop_assert_eq!(harmless(&text), text);
    }

    #[test]
    fn any_text_is_made_harmless(text in "\\PC{0,200}") {
        prop_assert_eq!(law::broken(&harmless(&text)), Ok(()));
    }

    #[test]
    fn no_heading_is_left_where_none_is_allowed(text in "([-#=>*`a ]|\\n){0,60}") {
        let made = harmless_with_headings(&text, 0);
        prop_assert_eq!(headings(&made), 0, "{}", made);
        prop_assert_eq!(law::broken(&made), Ok(()), "{}", made);
    }
}

#[test]
fn a_line_of_marks_below_a_former_heading_makes_no_new_one() {
    assert_eq!(headings(&harmless_with_headings(">#\n>=\n", 0)), 0);
}

#[test]
fn headings_beyond_the_limit_are_shown_as_they_are_written() {
    let text = "# One\n\n## Two <b>\ntext\n\nThree\n===\n\n> # Four\n\n#### Five `#`\n";
    assert_eq!(headings(text), 5);
    let made = harmless_with_headings(text, 1);
    assert_eq!(headings(&made), 1, "{made}");
    assert_eq!(law::broken(&made), Ok(()), "{made}");
    for shown in ["# One\n", "&#35;# Two &lt;b>", "Three\n&#61;==", "> &#35; Four", "&#35;### Five `#`"] {
        assert!(made.contains(shown), "{shown} is not in {made}");
    }
    assert_eq!(harmless_with_headings("# One\n", 1), "# One\n");
}

/// Such an answer, behind 100 headings, ended the kernel: its heading never became a paragraph.
#[test]
fn a_heading_that_carriage_returns_underline_becomes_a_paragraph() {
    for text in ["z\r- \r", "4!\r-", "{\r-\r\r\r[", "a\n=\r- \r=\r", "- z\r  - \r"] {
        let made = harmless_with_headings(text, 0);
        assert_eq!((headings(&made), law::broken(&made)), (0, Ok(())), "{text:?} {made:?}");
    }
    // Whatever comes to nothing in the end is shown as code.
    let stubborn = super::as_code("a\n```\nb");
    assert_eq!(stubborn, "````text\na\n```\nb\n````\n\n");
}

/// Jupyter takes a formula to end elsewhere: it reads the second backslash with what is behind it.
#[test]
fn two_backslashes_before_a_mark_do_not_move_the_end_of_a_formula() {
    for text in ["$$\\\\$$\"$$> $$", "$${ \\\\} $$ \"x\" $$", "$a\\\\$ \"x\" $", "$${ \\\\{ } $$ \"x\" } $$"]
    {
        let made = harmless(text);
        assert_eq!(law::broken(&made), Ok(()), "{text:?} {made:?}");
    }
    check("$$a \\\\ b$$", "$$a \\\\ b$$");
}
