//! What a displayed value looks like as text: the same choice at every door.
//!
//! The agent kernel is not among them: agents send text, images and links, never MIME bundles.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A picture of two pixels.
const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAYAAAD0In+KAAAAD0lEQVR4nGP4z8AARAwMAAz8Af9c/RSVAAAAAElFTkSuQmCC";

/// A kind of bundle, what is shown of it, and what is not.
struct BundleCase(&'static str, Value, &'static str, &'static str);

fn cases() -> Vec<BundleCase> {
    let figure = json!({"data": [{"type": "bar", "x": [1, 2]}], "layout": {"title": "Sales"}});
    let digits: Value = serde_json::from_str(r#"{"n": 18446744073709551615}"#).unwrap();
    vec![
        BundleCase("plain", json!({"text/plain": "plain words"}), "plain words", "object>"),
        BundleCase(
            "markdown",
            json!({"text/markdown": "marked words", "text/plain": "<Markdown object>"}),
            "marked words",
            "object>",
        ),
        BundleCase(
            "html",
            json!({"text/html": "<p>html words</p>", "text/plain": "<HTML object>"}),
            "html words",
            "object>",
        ),
        BundleCase(
            "html table",
            json!({"text/html": "<table><tr><td>tabled</td></tr></table>", "text/plain": "0  tabled"}),
            "tabled",
            "<table",
        ),
        BundleCase("json", json!({"application/json": digits}), "\"n\": 18446744073709551615", "object>"),
        BundleCase(
            "png",
            json!({"image/png": PICTURE, "text/plain": "<Figure size 2x1>"}),
            "2x1, 72 bytes",
            "<Figure",
        ),
        BundleCase(
            "vector image",
            json!({"image/svg+xml": "<svg><g/></svg>", "text/plain": "<SVG object>"}),
            "image/svg+xml",
            "<g/>",
        ),
        BundleCase(
            "latex",
            json!({"text/latex": "$\\alpha$", "text/plain": "<Latex object>"}),
            "\\alpha",
            "object>",
        ),
        BundleCase(
            "plotly",
            json!({"application/vnd.plotly.v1+json": figure, "text/html": "<div>a page of scripts</div>"}),
            "[plotly figure \"Sales\": 1 trace: bar (2 points)]",
            "scripts",
        ),
        BundleCase(
            "vega",
            json!({"application/vnd.vegalite.v5+json": {"mark": "bar"}, "text/plain": "<VegaLite 5 object>"}),
            "[vega-lite chart: 1 mark: bar]",
            "object>",
        ),
        BundleCase(
            "widget",
            json!({"application/vnd.jupyter.widget-view+json": {"model_id": "abc"}, "text/plain": "IntSlider(value=5)"}),
            "IntSlider(value=5)",
            "model_id",
        ),
        BundleCase(
            "javascript",
            json!({"application/javascript": "alert(1)", "text/plain": "<Javascript object>"}),
            "<Javascript object>",
            "alert",
        ),
        BundleCase(
            "stream-like",
            json!({"application/vnd.jupyter.stdout": "streamed"}),
            "[display that text cannot show: application/vnd.jupyter.stdout, 8 bytes]",
            "streamed",
        ),
        BundleCase(
            "unknown",
            json!({"application/x-unknown": "zzz"}),
            "[display that text cannot show: application/x-unknown, 3 bytes]",
            "zzz",
        ),
    ]
}

fn cellwright(folder: &TempDir, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cellwright"));
    command.args(arguments).current_dir(folder.path()).stdin(Stdio::null());
    let output = command.env("HOME", folder.path()).env("XDG_RUNTIME_DIR", folder.path()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{arguments:?}\n{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Code that displays the bundle between two lines that name it.
fn code(BundleCase(kind, data, ..): &BundleCase) -> String {
    let data = serde_json::to_string(&data.to_string()).unwrap();
    format!(
        "import json\nprint('<{kind}' + '>')\ndisplay(json.loads({data}), raw=True)\nprint('</{kind}' + '>')\n"
    )
}

#[test]
fn each_kind_of_bundle_looks_the_same_at_every_door() {
    let folder = tempfile::tempdir().unwrap();
    let cases = cases();
    let all: String = cases.iter().map(code).collect();
    let cells = cases.iter().map(|case| {
        json!({"cell_type": "code", "execution_count": null, "id": format!("c{}", case.2.len()), "metadata": {},
            "outputs": [], "source": code(case)})
    });
    let cells: Vec<_> = cells.collect();
    let notebook = json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4});
    fs::write(folder.path().join("nb.ipynb"), notebook.to_string()).unwrap();
    fs::write(folder.path().join("all.py"), &all).unwrap();
    let doors = [
        ("run", cellwright(&folder, &["run", "all.py"])),
        ("eval", cellwright(&folder, &["tool", "eval", &json!({ "code": all }).to_string()])),
        (
            "notebook run",
            cellwright(&folder, &["tool", "notebook", r#"{"action": "run", "path": "nb.ipynb"}"#]),
        ),
        ("read", cellwright(&folder, &["read", "nb.ipynb", "--outputs", "text"])),
        ("show", cellwright(&folder, &["show", "nb.ipynb"])),
    ];
    for (door, text) in doors {
        for BundleCase(kind, _, shown, hidden) in &cases {
            let begin =
                text.find(&format!("<{kind}>")).unwrap_or_else(|| panic!("{kind} at {door}:\n{text}"));
            let end = text.find(&format!("</{kind}>")).unwrap_or_else(|| panic!("{kind} at {door}:\n{text}"));
            let section = &text[begin..end];
            assert!(section.contains(shown) && !section.contains(hidden), "{kind} at {door}:\n{section}");
        }
    }
}
