//! Notebooks as text: line maps, outputs, addresses, images.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cellwright_editing::page;
use cellwright_editing::view::{NotebookView, OutputView, ViewRequest, image_bytes};
use cellwright_notebook::file::ReadNeed;
use cellwright_notebook::{Notebook, Selector, text};
use serde_json::{Value, json};

/// A picture of two pixels: red, and see-through.
pub(super) const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAYAAAD0In+KAAAAD0lEQVR4nGP4z8AARAwMAAz8Af9c/RSVAAAAAElFTkSuQmCC";

const BUDGET: OutputView = OutputView::Text { budget: 50 * 1024 };

fn notebook(cells: &[Value]) -> Notebook {
    let notebook = json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4});
    Notebook::parse(notebook.to_string().into_bytes()).unwrap()
}

/// A notebook of one code cell, `x`, with these outputs as JSON.
pub(super) fn with_outputs(outputs: &str) -> Notebook {
    let cell = format!(
        r#"{{"cell_type":"code","execution_count":1,"metadata":{{}},"source":"x","outputs":[{outputs}]}}"#
    );
    Notebook::parse(format!(r#"{{"cells":[{cell}],"metadata":{{}},"nbformat":4,"nbformat_minor":4}}"#).into())
        .unwrap()
}

pub(super) fn stream(text: &str) -> String {
    json!({"output_type": "stream", "name": "stdout", "text": text}).to_string()
}

fn display(bundle: &Value) -> String {
    json!({"output_type": "display_data", "metadata": {}, "data": bundle}).to_string()
}

pub(super) fn view(notebook: &Notebook, selector: &str, outputs: OutputView) -> NotebookView {
    let selector = Selector::parse(selector).unwrap();
    let request = ViewRequest { selector: &selector, outputs, named: "nb.ipynb" };
    NotebookView::of(notebook, &request).unwrap()
}

fn refused(notebook: &Notebook, selector: &str) -> String {
    let selector = Selector::parse(selector).unwrap();
    let request = ViewRequest { selector: &selector, outputs: OutputView::None, named: "nb.ipynb" };
    NotebookView::of(notebook, &request).unwrap_err().to_string()
}

#[test]
fn n17_outputs_are_seen_without_raw_json() {
    let outputs = [
        stream("one\ntwo\n"),
        display(&json!({"image/png": PICTURE, "text/plain": "<Figure size 640x480>"})),
        r#"{"output_type":"error","ename":"ValueError","evalue":"bad: x","traceback":["\u001b[0;31mValueError\u001b[0m: bad: x"]}"#.to_owned(),
    ];
    let notebook = with_outputs(&outputs.join(","));
    insta::assert_snapshot!(view(&notebook, "", OutputView::Summary).text, @"
    # %% [code] cell:0
    x
    # %% [output 0] stream stdout, 2 lines, 8 bytes: one
    # %% [output 1] display, image/png, 2x1, 72 bytes, text/plain
    # %% [output 2] error ValueError, 1 line, 18 bytes: bad: x
    ");
    insta::assert_snapshot!(view(&notebook, "", BUDGET).text, @"
    # %% [code] cell:0
    x
    # %% [output 0] stream stdout, 2 lines, 8 bytes
    one
    two
    # %% [output 1] display, image/png, text/plain
    [image 0.1: image/png, 2x1, 72 bytes]
    # %% [output 2] error ValueError, 1 line, 18 bytes
    ValueError: bad: x
    ");
}

#[test]
fn plotly_widgets_html_and_data_frames_are_summarised_as_show_does() {
    let plotly = json!({
        "application/vnd.plotly.v1+json": {
            "data": [{"type": "scatter", "x": (0..20_000).collect::<Vec<_>>()}],
            "layout": {"title": {"text": "T"}},
        },
        "text/html": "<div>plotly</div>",
    });
    let frame = json!({
        "text/plain": "   a\n0  1",
        "text/html": "<table><tr><th></th><th>a</th></tr><tr><td>0</td><td>1</td></tr></table>",
    });
    let html = json!({
        "text/html": "<h1>Title</h1><p>Some <b>bold</b> text</p>",
        "text/plain": "<IPython.core.display.HTML object>",
    });
    let widget = "application/vnd.jupyter.widget-view+json";
    let outputs = [
        display(&plotly),
        display(&html),
        display(&json!({widget: {"model_id": "abc"}, "text/plain": "IntSlider(value=5)"})),
        display(&json!({widget: {"model_id": "abc"}})),
        display(&frame),
        display(&json!({"application/json": {"a": [1, 2]}})),
        display(&json!({"application/json": {"big": 1}})).replace('1', "123456789012345678901234567890"),
    ];
    let notebook = with_outputs(&outputs.join(","));
    insta::assert_snapshot!(view(&notebook, "", BUDGET).text, @r#"
    # %% [code] cell:0
    x
    # %% [output 0] display, application/vnd.plotly.v1+json, text/html, 1 line, 53 bytes
    [plotly figure "T": 1 trace: scatter (20,000 points)]
    # %% [output 1] display, text/html, text/plain, 3 lines, 27 bytes
    # Title

    Some **bold** text
    # %% [output 2] display, application/vnd.jupyter.widget-view+json, text/plain, 1 line, 18 bytes
    IntSlider(value=5)
    # %% [output 3] display, application/vnd.jupyter.widget-view+json, 1 line, 23 bytes
    [widget abc, not saved]
    # %% [output 4] display, text/plain, text/html, 2 lines, 9 bytes
       a
    0  1
    # %% [output 5] display, application/json, 6 lines, 29 bytes
    {
      "a": [
        1,
        2
      ]
    }
    # %% [output 6] display, application/json, 3 lines, 43 bytes
    {
      "big": 123456789012345678901234567890
    }
    "#);
    insta::assert_snapshot!(view(&notebook, "", OutputView::Summary).text, @r#"
    # %% [code] cell:0
    x
    # %% [output 0] display, application/vnd.plotly.v1+json, text/html, 1 line, 53 bytes: [plotly figure "T": 1 trace: scatter (20,000 points)]
    # %% [output 1] display, text/html, text/plain, 3 lines, 27 bytes: # Title
    # %% [output 2] display, application/vnd.jupyter.widget-view+json, text/plain, 1 line, 18 bytes: IntSlider(value=5)
    # %% [output 3] display, application/vnd.jupyter.widget-view+json, 1 line, 23 bytes: [widget abc, not saved]
    # %% [output 4] display, text/plain, text/html, 2 lines, 9 bytes:    a
    # %% [output 5] display, application/json, 6 lines, 29 bytes: {
    # %% [output 6] display, application/json, 3 lines, 43 bytes: {
    "#);
}

#[test]
fn a_data_frame_shows_the_columns_that_its_plain_text_leaves_out() {
    let frame = json!({
        "text/plain": "   a  ...  c\n0  1  ...  3",
        "text/html": "<table><tr><th></th><th>a</th><th>b</th><th>c</th></tr>\
            <tr><th>0</th><td>1</td><td>2</td><td>3</td></tr></table>",
    });
    let notebook = with_outputs(&display(&frame));
    insta::assert_snapshot!(view(&notebook, "#0.0", OutputView::None).text, @"
    |     | a   | b   | c   |
    | --- | --- | --- | --- |
    | 0   | 1   | 2   | 3   |
    ");
}

#[test]
fn outputs_that_serde_cannot_parse_are_shown_and_not_dropped() {
    let notebook = with_outputs(
        r#"{"output_type":"stream","name":"stdout","text":"lone \ud800 surrogate\n"},
        {"output_type":"display_data","metadata":{},"data":{"application/json":{"n":[NaN,1e999]}}},
        {"output_type":"display_data","metadata":{},"data":{"application/vnd.plotly.v1+json":{"data":[{"y":[NaN,1]}]}}},
        {"output_type":"stream","name":"stdout","text":5},
        {"output_type":"pyout","metadata":{},"note":"an old one"},
        {"output_type":"error"},
        7"#,
    );
    insta::assert_snapshot!(view(&notebook, "", BUDGET).text, @r#"
    # %% [code] cell:0
    x
    # %% [output 0] stream stdout, 1 line, 19 bytes
    lone � surrogate
    # %% [output 1] display, application/json, 6 lines, 35 bytes
    {
      "n": [
        NaN,
        1e999
      ]
    }
    # %% [output 2] display, application/vnd.plotly.v1+json, 1 line, 44 bytes
    [plotly figure: 1 trace: scatter (2 points)]
    # %% [output 3] stream stdout, 5 lines, 62 bytes
    {
      "output_type": "stream",
      "name": "stdout",
      "text": 5
    }
    # %% [output 4] "pyout", 5 lines, 70 bytes
    {
      "output_type": "pyout",
      "metadata": {},
      "note": "an old one"
    }
    # %% [output 5] error, 3 lines, 28 bytes
    {
      "output_type": "error"
    }
    # %% [output 6] no type, 1 line, 1 byte
    7
    "#);
}

#[test]
fn names_from_the_file_cannot_fake_a_marker() {
    let notebook = with_outputs(
        r##"{"output_type":"stream","name":"a\n# %% [code] cell:1","text":"# %% [code]\n"},
        {"output_type":"display_data","metadata":{},"data":{"image/x\n# %% [code]":"QQ==","text/plain":"\u001b[31mred\u001b[0m"}}"##,
    );
    insta::assert_snapshot!(view(&notebook, "", BUDGET).text, @"
    # %% [code] cell:0
    x
    # %% [output 0] stream a�# %% [code] cell:1, 1 line, 12 bytes
    # %%% [code]
    # %% [output 1] display, image/x�# %% [code], text/plain, 1 line, 3 bytes
    [image 0.1: image/x�# %% [code], not an image of a known format]
    red
    ");
    // An output alone is not marked text: it is shown as it is.
    assert_eq!(view(&notebook, "#0.0", BUDGET).text, "# %% [code]\n");
}

#[test]
fn a_short_output_after_a_long_one_is_whole_and_the_long_one_says_how_to_read_on() {
    let long: String = (1..=9000).fold(String::new(), |mut text, line| {
        writeln!(text, "line {line}").unwrap();
        text
    });
    let notebook = with_outputs(&[stream(&long), stream("a short output\n")].join(","));
    let shown = view(&notebook, "", OutputView::Text { budget: 100 }).text;
    insta::assert_snapshot!(shown, @"
    # %% [code] cell:0
    x
    # %% [output 0] stream stdout, 9,000 lines, 88,893 bytes
    line 1
    line 2
    line 3
    line 4
    [… lines 5-8995 of 9000, 88,815 of 88,893 bytes not shown; read nb.ipynb#0.0:5-8995]
    line 8996
    line 8997
    line 8998
    line 8999
    line 9000
    # %% [output 1] stream stdout, 1 line, 15 bytes
    a short output
    ");
    // The way it names shows what is missing.
    let whole = view(&notebook, "#0.0", OutputView::None);
    assert_eq!(whole.text, long);
    let way = Selector::parse(":5-8996").unwrap().lines;
    let rest = page::lines("nb.ipynb#0.0", &whole.text, &way, 40).unwrap();
    assert!(rest.text().starts_with("line 5\nline 6\n"), "{}", rest.text());
    let pattern = page::pattern("line 4[0-9]99").unwrap();
    let found = page::search("nb.ipynb#0.0", &whole.text, &[], &pattern).unwrap();
    assert_eq!(found.hits.len(), 10);
}

#[test]
fn one_long_line_shows_both_ends_and_the_byte_to_read_on_from() {
    let line = format!("[{}]", "0, ".repeat(100_000));
    let notebook = with_outputs(&stream(&line));
    let shown = view(&notebook, "", OutputView::Text { budget: 50 }).text;
    insta::assert_snapshot!(shown, @"
    # %% [code] cell:0
    x
    # %% [output 0] stream stdout, 1 line, 300,002 bytes
    [0, 0, 0, 0, 0, 0, 0
    [… bytes 21-299,972 of line 1 of 1, 299,952 of 300,002 bytes not shown; read nb.ipynb#0.0:1@21]
    …, 0, 0, 0, 0, 0, 0, 0, 0, 0, ]
    ");
    let several = with_outputs(&stream(&format!("{line}\nend\n")));
    insta::assert_snapshot!(view(&several, "", OutputView::Text { budget: 50 }).text, @"
    # %% [code] cell:0
    x
    # %% [output 0] stream stdout, 2 lines, 300,007 bytes
    [0, 0, 0, 0, 0, 0, 0
    [… bytes 21-300,002 of line 1 of 2, 299,983 of 300,007 bytes not shown; read nb.ipynb#0.0:1@21]
    end
    ");
    let last = with_outputs(&stream(&format!("start\n{line}")));
    insta::assert_snapshot!(view(&last, "", OutputView::Text { budget: 50 }).text, @"
    # %% [code] cell:0
    x
    # %% [output 0] stream stdout, 2 lines, 300,008 bytes
    start
    [… bytes 1-299,972 of line 2 of 2, 299,972 of 300,008 bytes not shown; read nb.ipynb#0.0:2@1]
    …, 0, 0, 0, 0, 0, 0, 0, 0, 0, ]
    ");
}

#[test]
fn an_output_that_does_not_exist_is_reported_with_those_that_do() {
    let none = notebook(&[json!({"cell_type": "markdown", "metadata": {}, "source": "a"})]);
    assert_eq!(refused(&none, "#0.0"), "cell 0 has no output 0; it has no outputs");
    assert_eq!(refused(&with_outputs("7"), "#0.1"), "cell 0 has no output 1; it has one output, 0");
    assert_eq!(refused(&with_outputs("7,8,9"), "#0.3"), "cell 0 has no output 3; it has outputs 0 to 2");
    assert_eq!(refused(&none, "#1.0"), "there is no cell 1; the notebook has one cell, 0");
}

#[test]
fn raw_views_are_the_files_own_json() {
    let notebook = with_outputs(&stream("a\n"));
    assert_eq!(view(&notebook, ":raw", OutputView::None).text, notebook.text());
    assert_eq!(view(&notebook, "#0:raw", OutputView::None).text, format!("{}\n", notebook.cell(0).raw()));
    assert_eq!(view(&notebook, "#0.0:raw", OutputView::None).text, stream("a\n") + "\n");
}

#[test]
fn an_empty_notebook_says_that_it_has_no_cells() {
    let empty = view(&notebook(&[]), "", OutputView::None);
    assert_eq!((empty.text.as_str(), empty.notes), ("", vec!["the notebook has no cells".to_owned()]));
}

#[test]
fn images_have_labels_and_broken_ones_are_described_once() {
    let svg = r#"<svg width="10" height="20"></svg>"#;
    let shown = |bundle: Value| json!({"output_type": "display_data", "metadata": {}, "data": bundle});
    let cells = [
        json!({"cell_type": "code", "execution_count": 1, "metadata": {}, "source": "plot()", "outputs": [
            shown(json!({"image/svg+xml": svg, "image/png": PICTURE})),
            shown(json!({"image/png": "not base64!", "text/plain": "<Figure>"})),
            shown(json!({"image/png": "QUJD", "image/jpeg": PICTURE})),
            shown(json!({"image/svg+xml": svg})),
        ]}),
        json!({"cell_type": "markdown", "metadata": {}, "source": "![a](attachment:plot.png)", "attachments": {
            "plot.png": {"image/png": PICTURE}, "bad.png": {"image/png": "!"}, "none": {}}}),
    ];
    let notebook = notebook(&cells);
    let shown = view(&notebook, "", BUDGET);
    insta::assert_snapshot!(shown.text, @"
    # %% [code] cell:0
    plot()
    # %% [output 0] display, image/png, image/svg+xml
    [image 0.0: image/png, 2x1, 72 bytes]
    [image 0.0.1: image/svg+xml, 10x20, 34 bytes]
    # %% [output 1] display, image/png, text/plain, 1 line, 8 bytes
    [image 0.1: image/png, not valid base64]
    <Figure>
    # %% [output 2] display, image/png, image/jpeg
    [image 0.2: image/png, not an image of a known format]
    [image 0.2.1: image/png, 2x1, 72 bytes]
    # %% [output 3] display, image/svg+xml
    [image 0.3: image/svg+xml, 10x20, 34 bytes]
    # %% [markdown] cell:1
    ![a](attachment:plot.png)
    # %% [attachment plot.png] image/png, 2x1, 72 bytes
    # %% [attachment bad.png] image/png, not valid base64
    # %% [attachment none] no image
    ");
    let labels: Vec<_> = shown.images.iter().map(|image| image.label.as_str()).collect();
    assert_eq!(labels, ["#0.0", "#0.2.1", "#1:plot.png"]);
    let picture = BASE64_STANDARD.decode(PICTURE).unwrap();
    for image in &shown.images {
        assert_eq!(image.load(&notebook).unwrap().bytes, picture);
        assert_eq!(view(&notebook, &image.label, OutputView::None).images[0], *image);
        assert_eq!(image_bytes(&notebook, &image.label[1..].parse().unwrap()).unwrap(), picture);
    }
    let alone = view(&notebook, "#0.0", OutputView::None);
    assert_eq!(alone.images.len(), 1);
    insta::assert_snapshot!(alone.text, @"
    [image 0.0: image/png, 2x1, 72 bytes]
    [image 0.0.1: image/svg+xml, 10x20, 34 bytes]
    ");
    let missing = |address: &str| image_bytes(&notebook, &address.parse().unwrap()).unwrap_err().to_string();
    assert_eq!(missing("0.9"), "cell 0 has no image 0.9; a summary of the outputs lists those it has");
    assert_eq!(missing("0.1"), "the image/png data is not base64");
    assert!(text::parse(&shown.text).unwrap_err().to_string().contains("this text shows outputs"));
}

#[test]
fn cells_are_shown_in_the_order_asked_for() {
    let cell = |source: &str| json!({"cell_type": "raw", "metadata": {}, "source": source});
    let notebook = notebook(&[cell("a"), cell("b\n"), cell("")]);
    let shown = view(&notebook, "#2,0-1", OutputView::None);
    assert_eq!(shown.text, "# %% [raw] cell:2\n\n# %% [raw] cell:0\na\n# %% [raw] cell:1\nb\n\n");
    let lines: Vec<_> = shown.cells.iter().map(|cell| (cell.index, cell.lines.clone())).collect();
    assert_eq!(lines, [(2, 1..=2), (0, 3..=4), (1, 5..=7)]);
}

#[test]
fn sources_alone_need_no_outputs_read() {
    let need = |selector: &str, outputs| {
        let selector = Selector::parse(selector).unwrap();
        ViewRequest { selector: &selector, outputs, named: "" }.need()
    };
    assert_eq!(need("", OutputView::None), ReadNeed::Sources);
    assert_eq!(need("#3:10-40", OutputView::None), ReadNeed::Sources);
    assert_eq!(need("#3.0", OutputView::None), ReadNeed::All);
    assert_eq!(need(":raw", OutputView::None), ReadNeed::All);
    assert_eq!(need("", OutputView::Summary), ReadNeed::All);
}
