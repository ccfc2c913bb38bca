//! What calls are told that go wrong, or that do more than was asked for.

use serde_json::{Value, json};

use crate::support::Fixture;

fn raw(id: &str) -> Value {
    json!({"cell_type": "raw", "id": id, "metadata": {}, "source": id})
}

fn notebook(cells: &[Value]) -> String {
    json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).to_string()
}

#[tokio::test]
async fn a_wrong_fingerprint_names_where_the_right_one_is() {
    let fixture = Fixture::new();
    fixture.put("a.ipynb", &notebook(&[raw("a")]));
    let write = json!({ "path": "a.ipynb", "content": "# %% [raw]\nx\n", "expect": "abc" });
    let told = fixture.error("write", write).await;
    assert!(!told.contains("--json") && told.contains("structured content, as `fingerprint`"), "{told}");
}

#[tokio::test]
async fn ids_that_were_repeated_or_missing_are_reported_as_such() {
    let fixture = Fixture::new();
    let content = notebook(&[raw("a"), raw("a"), raw("b")]);
    let told = fixture.ok("write", json!({ "path": "a.ipynb", "content": content })).await;
    assert!(told.contains("note: cell 1 had the id of an earlier cell and got another"), "{told}");
    assert!(!told.contains("lacked"), "{told}");
    let without = json!({"cell_type": "raw", "metadata": {}, "source": ["x", "y"]});
    let content = notebook(&[raw("a"), without]);
    let told = fixture.ok("write", json!({ "path": "b.ipynb", "content": content })).await;
    assert!(told.contains("note: cell 1 had no id and got one"), "{told}");
    assert!(told.contains("note: lines in the JSON had no line ends; they were added"), "{told}");
}

#[tokio::test]
async fn a_refused_place_does_not_ask_for_an_id_that_it_does_not_take() {
    let fixture = Fixture::new();
    fixture.put("a.ipynb", &notebook(&[raw("a"), raw("b")]));
    fixture.ok("read", json!({ "path": "a.ipynb" })).await;
    fixture.put("a.ipynb", &notebook(&[raw("new"), raw("a"), raw("b")]));
    let insert = json!({ "action": "insert", "path": "a.ipynb", "at": 1, "source": "x" });
    let move_there = json!({ "action": "move", "path": "a.ipynb", "cell": "id:b", "at": 1 });
    for call in [insert, move_there] {
        let told = fixture.error("notebook", call).await;
        assert_eq!(
            told,
            "a.ipynb: changed since you read it, so nothing was done: another cell is at 1 now, the one you read is at 2; \
             read it again, and give the number that it has now"
        );
    }
}

#[tokio::test]
async fn history_shows_times_and_undos_and_undo_takes_no_cell() {
    let fixture = Fixture::new();
    fixture.put("a.ipynb", &notebook(&[raw("a"), raw("b")]));
    fixture.ok("notebook", json!({ "action": "edit", "path": "a.ipynb", "cell": 0, "source": "x" })).await;
    let stray = fixture.error("notebook", json!({ "action": "undo", "path": "a.ipynb", "cell": 0 })).await;
    assert_eq!(
        stray,
        "undo takes no `cell`: it undoes a whole change, the latest or the one that `change` names"
    );
    fixture.ok("notebook", json!({ "action": "undo", "path": "a.ipynb" })).await;
    let told = fixture.ok("notebook", json!({ "action": "history", "path": "a.ipynb" })).await;
    let lines: Vec<_> = told.lines().collect();
    assert!(
        lines[0].starts_with("2: 20") && lines[0].contains(" UTC, undo of 1: edited raw cell 0"),
        "{told}"
    );
    assert!(
        lines[1].starts_with("1: 20") && lines[1].ends_with("edited raw cell 0 (2 cells now) (undone)"),
        "{told}"
    );
    let stray = json!({ "action": "delete", "path": "a.ipynb", "cell": 0, "change": 1 });
    assert_eq!(fixture.error("notebook", stray).await, "`change` goes with undo");
}

#[tokio::test]
async fn a_widget_without_text_is_shown_from_its_saved_state() {
    let fixture = Fixture::new();
    let view = |model: &str| {
        json!({"output_type": "display_data", "metadata": {}, "data": {
            "application/vnd.jupyter.widget-view+json": {"model_id": model, "version_major": 2, "version_minor": 0}}})
    };
    let cell = json!({
        "cell_type": "code", "id": "a", "execution_count": 1, "metadata": {}, "source": "s",
        "outputs": [view("one"), view("two"), view("gone")],
    });
    let state = json!({"state": {
        "one": {"model_name": "IntSliderModel", "model_module": "m", "state": {"description": "Speed", "value": 5}},
        "two": {"model_name": "VBoxModel", "model_module": "m", "state": {"children": []}},
    }, "version_major": 2, "version_minor": 0});
    let notebook = json!({
        "cells": [cell], "nbformat": 4, "nbformat_minor": 5,
        "metadata": {"widgets": {"application/vnd.jupyter.widget-state+json": state}},
    });
    fixture.put("a.ipynb", &notebook.to_string());
    let told = fixture.ok("read", json!({ "path": "a.ipynb", "outputs": "text" })).await;
    for line in ["[widget IntSlider \"Speed\": 5]", "[widget VBox]", "[widget gone, not saved]"] {
        assert!(told.contains(line), "{told}");
    }
    let told = fixture.ok("read", json!({ "path": "a.ipynb", "outputs": "summary" })).await;
    assert!(told.contains("[widget IntSlider \"Speed\": 5]"), "{told}");
}
