//! Widgets as text: what the notebook has saved of them.

use cellwright_editing::view::{NotebookView, OutputView, ViewRequest};
use cellwright_notebook::{Notebook, Selector};
use serde_json::{Value, json};

/// What a view shows of one widget with a plain text of its own, in a notebook with this state.
fn shown(model: &str, state: &Value) -> String {
    let output = json!({"output_type": "display_data", "metadata": {}, "data": {
        "application/vnd.jupyter.widget-view+json": {"model_id": model, "version_major": 2, "version_minor": 0},
        "text/plain": "as it was displayed",
    }});
    let cell = json!({
        "cell_type": "code", "execution_count": 1, "metadata": {}, "source": "x", "outputs": [output],
    });
    let notebook = json!({
        "cells": [cell], "nbformat": 4, "nbformat_minor": 4,
        "metadata": {"widgets": {"application/vnd.jupyter.widget-state+json": {"state": state}}},
    });
    let notebook = Notebook::parse(notebook.to_string().into_bytes()).unwrap();
    let selector = Selector::parse("#0.0").unwrap();
    let request = ViewRequest { selector: &selector, outputs: OutputView::None, named: "nb.ipynb" };
    NotebookView::of(&notebook, &request).unwrap().text
}

fn model(name: &str, state: &Value) -> Value {
    json!({"model_name": format!("{name}Model"), "model_module": "@jupyter-widgets/controls", "state": state})
}

/// Tqdm displays a bar at 0 percent, and changes it.
#[test]
fn a_finished_progress_bar_was_shown_as_it_began() {
    let children = json!(["IPY_MODEL_left", "IPY_MODEL_bar", "IPY_MODEL_right", "IPY_MODEL_gone"]);
    let state = json!({
        "box": model("HBox", &json!({"children": children})),
        "left": model("HTML", &json!({"value": "<b>100%</b>"})),
        "bar": model("FloatProgress", &json!({"value": 10.0, "max": 10.0})),
        "right": model("HTML", &json!({"value": " 10/10 [00:01&lt;00:00]"})),
    });
    assert_eq!(
        shown("box", &state),
        "[widget HBox (HTML: **100%**; FloatProgress: 10.0 of 10.0; HTML: 10/10 [00:01<00:00])]\n"
    );
    assert_eq!(shown("unsaved", &state), "as it was displayed\n");
}

#[test]
fn choices_outputs_and_widgets_inside_themselves_are_described() {
    let printed = json!([{"output_type": "stream", "name": "stdout", "text": "\nhello\nworld\n"}]);
    let state = json!({
        "menu": model("Dropdown", &json!({"_options_labels": ["red", "green"], "index": 1, "description": "Colour"})),
        "several": model("SelectMultiple", &json!({"_options_labels": ["a", "b", "c"], "index": [0, 2]})),
        "output": model("Output", &json!({"outputs": printed})),
        "empty": model("Text", &json!({"value": "", "description": ""})),
        "self": model("VBox", &json!({"children": ["IPY_MODEL_self"]})),
    });
    let lines = ["menu", "several", "output", "empty", "self"].map(|name| shown(name, &state));
    insta::assert_snapshot!(lines.concat(), @r#"
    [widget Dropdown "Colour": green]
    [widget SelectMultiple: a, c]
    [widget Output: 1 output: hello]
    [widget Text]
    [widget VBox (VBox (VBox (VBox (VBox (VBox (…))))))]
    "#);
}
