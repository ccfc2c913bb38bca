//! A run replaces outputs, and `undo` gives them back.

use serde_json::{Value, json};

use crate::support::Fixture;

/// A code cell with an output of an earlier run that says `old`.
fn code(id: &str, source: &str) -> Value {
    json!({
        "cell_type": "code", "execution_count": 7, "id": id, "source": source,
        "metadata": {"execution": {"iopub.status.busy": "2020-01-01T00:00:00.000000Z"}, "tags": ["x"]},
        "outputs": [{"name": "stdout", "output_type": "stream", "text": ["old\n"]}],
    })
}

fn put(fixture: &Fixture, cells: &[Value]) {
    let notebook = json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    fixture.put("a.ipynb", &serde_json::to_string_pretty(&notebook).unwrap());
}

fn printed(fixture: &Fixture) -> Vec<String> {
    let notebook: Value = serde_json::from_str(&fixture.get("a.ipynb")).unwrap();
    let text = |cell: &Value| match &cell["outputs"][0]["text"] {
        Value::Array(lines) => lines.iter().map(|line| line.as_str().unwrap()).collect(),
        other => other.as_str().unwrap_or_default().to_owned(),
    };
    notebook["cells"].as_array().unwrap().iter().map(text).collect()
}

async fn call(fixture: &Fixture, action: &str) -> String {
    fixture.ok("notebook", json!({ "action": action, "path": "a.ipynb" })).await
}

#[tokio::test]
async fn outputs_that_a_run_replaced_could_not_be_had_back() {
    let fixture = Fixture::new();
    put(&fixture, &[code("a", "print('new')"), code("b", "print('new')"), code("c", "print('new')")]);
    let before = fixture.get("a.ipynb");
    fixture.ok("notebook", json!({ "action": "run", "path": "a.ipynb", "cell": "0-1" })).await;
    assert_eq!(printed(&fixture), ["new\n", "new\n", "old\n"]);
    let history = call(&fixture, "history").await;
    assert!(history.contains("ran code cells 0-1"), "{history}");
    call(&fixture, "undo").await;
    assert_eq!(fixture.get("a.ipynb"), before, "to the byte");
    // Undoing is a change of its own.
    fixture.ok("notebook", json!({ "action": "undo", "path": "a.ipynb", "change": 2 })).await;
    assert_eq!(printed(&fixture), ["new\n", "new\n", "old\n"]);
}

#[tokio::test]
async fn undoing_a_run_leaves_cells_alone_whose_source_changed_since() {
    let fixture = Fixture::new();
    put(&fixture, &[code("a", "print('new')"), code("b", "print('new')")]);
    call(&fixture, "run").await;
    let edited = fixture.get("a.ipynb").replacen("print('new')", "print('person')", 1);
    fixture.put("a.ipynb", &edited);
    let told = call(&fixture, "undo").await;
    assert!(told.contains("the outputs of cell 0 stay: the source changed since the run"), "{told}");
    assert_eq!(printed(&fixture), ["new\n", "old\n"]);
    assert!(fixture.get("a.ipynb").contains("print('person')"));
    // Where nothing can be put back, nothing is done.
    call(&fixture, "run").await;
    let edited = fixture.get("a.ipynb").replace("print('new')", "1").replace("print('person')", "2");
    fixture.put("a.ipynb", &edited);
    let refused = fixture.error("notebook", json!({ "action": "undo", "path": "a.ipynb" })).await;
    assert!(refused.contains("cell 0 was changed since change"), "{refused}");
}

#[tokio::test]
async fn a_run_is_kept_also_in_the_background_and_after_an_edit_and_not_when_nothing_ran() {
    let fixture = Fixture::new();
    put(&fixture, &[code("a", "print('new')"), code("b", "print('new')")]);
    let run = json!({ "action": "run", "path": "a.ipynb", "cell": 1, "background": true });
    let started = fixture.call("notebook", run).await;
    if let Some(handle) = started.structured.as_ref().and_then(|it| it["handle"].as_str()) {
        fixture.ok("kernel", json!({ "action": "wait", "handle": handle })).await;
    }
    assert!(call(&fixture, "history").await.contains("ran code cell 1"));
    let edit =
        json!({ "action": "edit", "path": "a.ipynb", "cell": 0, "source": "print('new')", "run": true });
    fixture.ok("notebook", edit).await;
    assert!(call(&fixture, "history").await.contains("ran code cell 0"));
    call(&fixture, "undo").await;
    call(&fixture, "undo").await;
    assert_eq!(printed(&fixture), ["old\n", "old\n"]);
    let history = call(&fixture, "history").await;
    let mut notebook: Value = serde_json::from_str(&fixture.get("a.ipynb")).unwrap();
    notebook["metadata"]["kernelspec"] = json!({"name": "nowhere", "display_name": "x"});
    fixture.put("a.ipynb", &notebook.to_string());
    fixture.error("notebook", json!({ "action": "run", "path": "a.ipynb" })).await;
    assert_eq!(call(&fixture, "history").await, history);
}

#[tokio::test]
async fn a_run_whose_old_outputs_could_not_be_kept_said_nothing() {
    let fixture = Fixture::new();
    put(&fixture, &[code("a", "print('new')"), code("b", "print('new')")]);
    fixture.put("history", "a file, not a folder");
    let ran = call(&fixture, "run").await;
    let folder = fixture.path().join("history");
    let expected = format!(
        "[undo cannot bring back the earlier outputs of cells 0-1: {} cannot be written: ",
        folder.display()
    );
    assert!(ran.contains(&expected), "{ran}");
    assert_eq!(printed(&fixture), ["new\n", "new\n"], "the run is not refused");
    // The same in the background.
    let run = json!({ "action": "run", "path": "a.ipynb", "background": true });
    let started = fixture.call("notebook", run).await;
    let ended = match started.structured.as_ref().and_then(|it| it["handle"].as_str()) {
        Some(handle) => fixture.ok("kernel", json!({ "action": "wait", "handle": handle })).await,
        None => started.to_text(),
    };
    assert!(ended.contains(&expected), "{ended}");
}

#[tokio::test]
async fn a_run_over_outputs_that_are_too_large_to_keep_said_nothing() {
    let fixture = Fixture::new();
    let mut large = code("b", "print('new')");
    large["outputs"][0]["text"] = "x".repeat(65 << 20).into();
    put(&fixture, &[code("a", "print('new')"), large]);
    let ran = call(&fixture, "run").await;
    let expected = "[undo cannot bring back the earlier outputs of cell 1: undo keeps at most 64 MB of outputs of one \
                    notebook]";
    assert!(ran.contains(expected), "{ran}");
    call(&fixture, "undo").await;
    assert_eq!(printed(&fixture), ["old\n", "new\n"]);
}

/// Code that saves something into the outputs of cell 1, as a person does in Jupyter while cell 0 runs.
fn saving(outputs: &str) -> String {
    format!(
        "import json\nnb = json.load(open('a.ipynb'))\nnb['cells'][1]['outputs'] = {outputs}\n\
         nb['cells'][1]['execution_count'] = 99\njson.dump(nb, open('a.ipynb', 'w'), indent=1)\nprint('saved')"
    )
}

#[tokio::test]
async fn outputs_that_a_person_saved_into_a_cell_before_its_turn_were_gone() {
    let fixture = Fixture::new();
    let theirs = "[{'name': 'stdout', 'output_type': 'stream', 'text': ['a person\\n']}]";
    put(&fixture, &[code("a", &saving(theirs)), code("b", "print('new')"), code("c", "print('new')")]);
    let ran = call(&fixture, "run").await;
    assert_eq!(printed(&fixture), ["saved\n", "new\n", "new\n"]);
    assert!(
        ran.contains(
            "[others saved outputs into cell 1 during the run; the outputs of the run replaced them, and undo brings \
             them back]"
        ),
        "{ran}"
    );
    assert!(!ran.contains("their changes and the outputs are both in it"), "{ran}");
    call(&fixture, "undo").await;
    assert_eq!(printed(&fixture), ["saved\n", "a person\n", "new\n"]);
    call(&fixture, "undo").await;
    assert_eq!(printed(&fixture), ["old\n", "old\n", "old\n"]);
}

#[tokio::test]
async fn a_save_of_outputs_that_the_run_found_is_not_reported_as_a_change_of_outputs() {
    let fixture = Fixture::new();
    // As Jupyter saves a notebook that it opened before the run.
    let save = "import json\nnb = json.load(open('a.ipynb'))\nnb['metadata']['by'] = 'them'\n\
                nb['cells'][1]['outputs'][0]['text'] = 'old\\n'\n\
                json.dump(nb, open('a.ipynb', 'w'), indent=3)\nprint('saved')";
    put(&fixture, &[code("a", save), code("b", "print('new')")]);
    let ran = call(&fixture, "run").await;
    assert!(ran.contains("their changes and the outputs are both in it"), "{ran}");
    assert!(!ran.contains("during the run"), "{ran}");
    call(&fixture, "undo").await;
    assert_eq!(printed(&fixture), ["old\n", "old\n"]);
}
