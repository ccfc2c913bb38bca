//! What a person sees, by its law: no line is wider than the width.

use proptest::prelude::*;
use serde_json::json;
use unicode_width::UnicodeWidthStr as _;

use super::*;

fn notebook(cells: &[serde_json::Value]) -> Notebook {
    let notebook = json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4});
    Notebook::parse(notebook.to_string().into_bytes()).unwrap()
}

fn look(width: usize, pen: TextPen) -> ShowStyle {
    ShowStyle { pen, width, images: None, limits: OutputLimits::default() }
}

fn shown(notebook: &Notebook, look: ShowStyle) -> String {
    let page = NotebookPage::of(notebook, look);
    (0..notebook.len()).map(|index| page.cell(index)).collect()
}

/// The text without its colours.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for (at, part) in text.split('\x1b').enumerate() {
        plain.push_str(if at == 0 { part } else { part.split_once('m').map_or("", |(_, rest)| rest) });
    }
    plain
}

fn code(source: &str, outputs: &[serde_json::Value]) -> serde_json::Value {
    json!({"cell_type": "code", "execution_count": 7, "metadata": {}, "source": source, "outputs": outputs})
}

fn html(html: &str) -> serde_json::Value {
    json!({"output_type": "display_data", "metadata": {}, "data": {"text/html": html, "text/plain": "<HTML>"}})
}

/// A table as pandas writes it.
fn frame(heads: &[&str], rows: &[Vec<String>]) -> serde_json::Value {
    let row = |name: &str, cells: &[&str], first: &str| {
        format!("<tr><th>{first}</th><{name}>{}</{name}></tr>", cells.join(&format!("</{name}><{name}>")))
    };
    let body = rows.iter().enumerate().map(|(number, cells)| {
        let cells: Vec<_> = cells.iter().map(String::as_str).collect();
        row("td", &cells, &number.to_string())
    });
    let body = body.collect::<Vec<_>>().concat();
    html(&format!(
        "<div><table border=\"1\" class=\"dataframe\"><thead>{}</thead><tbody>{body}</tbody></table></div>",
        row("th", heads, "")
    ))
}

fn penguins() -> serde_json::Value {
    let row = |cells: [&str; 5]| cells.map(str::to_owned).to_vec();
    frame(
        &["species", "island", "comment", "bill_length_mm", "body_mass_g"],
        &[
            row(["Adelie", "Torgersen", "the first bird that was weighed on the island", "39.1", "3750.0"]),
            row(["Chinstrap 企鹅", "Dream", "", "NaN", "10200.5"]),
        ],
    )
}

#[test]
fn a_data_frame_fits_the_width() {
    let notebook = notebook(&[code("df", &[penguins()])]);
    insta::assert_snapshot!(shown(&notebook, look(120, TextPen::Plain)), @"
    [7] │ df
            │ species        │ island    │ comment                                       │ bill_length_mm │ body_mass_g
          ──┼────────────────┼───────────┼───────────────────────────────────────────────┼────────────────┼────────────
          0 │ Adelie         │ Torgersen │ the first bird that was weighed on the island │           39.1 │      3750.0
          1 │ Chinstrap 企鹅 │ Dream     │                                               │            NaN │     10200.5
    ");
    insta::assert_snapshot!(shown(&notebook, look(80, TextPen::Plain)), @"
    [7] │ df
            │ species      │ island    │ comment      │ bill_length_mm │ body_mass_g
          ──┼──────────────┼───────────┼──────────────┼────────────────┼────────────
          0 │ Adelie       │ Torgersen │ the first    │           39.1 │      3750.0
            │              │           │ bird that    │                │
            │              │           │ was weighed  │                │
            │              │           │ on the       │                │
            │              │           │ island       │                │
          1 │ Chinstrap    │ Dream     │              │            NaN │     10200.5
            │ 企鹅         │           │              │                │
    ");
    insta::assert_snapshot!(shown(&notebook, look(40, TextPen::Plain)), @"
    [7] │ df
            │ species        │ island
          ──┼────────────────┼──────────
          0 │ Adelie         │ Torgersen
          1 │ Chinstrap 企鹅 │ Dream
          … 3 more columns (comment,
          bill_length_mm, body_mass_g);
          --full shows them
    ");
    let full = ShowStyle { limits: OutputLimits::NONE, ..look(40, TextPen::Plain) };
    insta::assert_snapshot!(shown(&notebook, full), @"
    [7] │ df
            │ species        │ island
          ──┼────────────────┼──────────
          0 │ Adelie         │ Torgersen
          1 │ Chinstrap 企鹅 │ Dream

            │ comment       │ bill_length_mm
          ──┼───────────────┼───────────────
          0 │ the first     │           39.1
            │ bird that was │
            │ weighed on    │
            │ the island    │
          1 │               │            NaN

            │ body_mass_g
          ──┼────────────
          0 │      3750.0
          1 │     10200.5
    ");
}

#[test]
fn a_huge_html_table_is_shortened_and_full_shows_it() {
    let rows: Vec<_> = (0..2000).map(|row| vec![format!("name {row}"), "x".repeat(40)]).collect();
    let notebook = notebook(&[code("df", &[frame(&["name", "text"], &rows)])]);
    let short = shown(&notebook, look(80, TextPen::Plain));
    assert!(short.len() < 12_000, "{}", short.len());
    for part in ["name 29 ", "… 1940 more rows; --full shows them", "name 1970 "] {
        assert!(short.contains(part), "{part}");
    }
    let full = shown(&notebook, ShowStyle { limits: OutputLimits::NONE, ..look(80, TextPen::Plain) });
    assert!((0..2000).all(|row| full.contains(&format!("name {row} "))));
}

#[test]
fn long_code_and_output_lines_wrap_inside_their_gutter_with_their_colours() {
    let printed = "\u{1b}[31mred, and longer than the line it is on\u{1b}[0m plain\n";
    let output = json!({"output_type": "stream", "name": "stdout", "text": printed});
    let notebook = notebook(&[code("message = 'a string that is longer than the line'", &[output])]);
    insta::assert_snapshot!(shown(&notebook, look(30, TextPen::Plain)), @"
    [7] │ message = 'a string that
        ┊  is longer than the line
        ┊ '
          red, and longer than the
           line it is on plain
    ");
    insta::assert_snapshot!(shown(&notebook, look(30, TextPen::Colours)).replace('\x1b', "␛"), @"
    ␛[32m[7] ␛[0m␛[2m│␛[0m message = ␛[32m'a string that␛[0m
    ␛[32m    ␛[0m␛[2m┊␛[0m ␛[32m is longer than the line␛[0m
    ␛[32m    ␛[0m␛[2m┊␛[0m ␛[32m'␛[0m
          ␛[0;31mred, and longer than the␛[0m
          ␛[0;31m line it is on␛[0m plain
    ");
}

#[test]
fn an_output_with_a_lone_surrogate_or_nan_is_shown() {
    let text = r#"{"cells":[{"cell_type":"code","execution_count":1,"metadata":{},"source":"x","outputs":[
        {"output_type":"stream","name":"stdout","text":"lone \ud800 surrogate\n"},
        {"output_type":"display_data","metadata":{},"data":{"application/json":{"n":NaN}}},
        {"output_type":"display_data","metadata":{},"data":{"image/png":"broken!"}},
        {"output_type":"from the future"}]}],
        "metadata":{},"nbformat":4,"nbformat_minor":4}"#;
    let notebook = Notebook::parse(text.into()).unwrap();
    insta::assert_snapshot!(shown(&notebook, look(60, TextPen::Plain)), @r#"
    [1] │ x
          lone � surrogate
          {
            "n": NaN
          }
          [image/png, not valid base64; `cellwright read --image
          0.2 --to FILE` saves it]
          {
            "output_type": "from the future"
          }
    "#);
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z0-9.]{0,30}", "[a-z ]{0,60}", "[中文é👍\t ]{0,20}", any::<String>()]
}

fn outputs() -> impl Strategy<Value = serde_json::Value> {
    let cells = prop::collection::vec(prop::collection::vec("[a-z0-9中. ]{0,25}", 1..9), 1..5);
    prop_oneof![
        words().prop_map(|text| {
            let text = format!("\u{1b}[1;32m{text}\u{1b}[0m\n{text}");
            json!({"output_type": "stream", "name": "stderr", "text": text})
        }),
        words()
            .prop_map(|text| json!({"output_type": "error", "ename": "E", "evalue": text, "traceback": []})),
        words().prop_map(|text| html(&text)),
        cells.prop_map(|rows| frame(&["head", "a longer head", "c"], &rows)),
    ]
}

proptest! {
    #[test]
    fn no_line_is_wider_than_the_width(
        sources in prop::collection::vec(words(), 0..4),
        prose in prop::collection::vec(prop_oneof![
            words(),
            words().prop_map(|text| format!("> > 1. - {text}")),
            words().prop_map(|text| format!("# {text}\n\n```\n{text}\n```\n---")),
            words().prop_map(|text| format!("| {text} | b |\n|---|:-:|\n| {text} | [x](http://{text}) |")),
        ], 0..4),
        outputs in prop::collection::vec(outputs(), 0..4),
        count in prop_oneof![0_i64..100, Just(i64::MAX)],
        width in 20usize..130,
        colours: bool,
        full: bool,
    ) {
        let mut code = code(&sources.join("\n"), &outputs);
        code["execution_count"] = count.into();
        let markdown = json!({"cell_type": "markdown", "metadata": {}, "source": prose.join("\n\n")});
        let raw = json!({"cell_type": "raw", "metadata": {}, "source": sources.join("\n")});
        let notebook = notebook(&[code, markdown, raw]);
        let pen = if colours { TextPen::Colours } else { TextPen::Plain };
        let limits = if full { OutputLimits::NONE } else { OutputLimits::default() };
        let text = shown(&notebook, ShowStyle { limits, ..look(width, pen) });
        for line in plain(&text).lines() {
            prop_assert!(line.width() <= width, "{} columns: {line:?}", line.width());
        }
    }
}
