//! Sentences of the founding documents (`docs/founding.md`) that no other test checks.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cellwright_tools::{ProgressSink, PythonState};
use serde_json::{Value, json};

use crate::support::Fixture;

#[derive(Default)]
struct CountedProgress(AtomicUsize);

impl ProgressSink for CountedProgress {
    fn text(&self, _: &str) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn cells(fixture: &Fixture, name: &str) -> Vec<Value> {
    let notebook: Value = serde_json::from_str(&fixture.get(name)).unwrap();
    notebook["cells"].as_array().unwrap().clone()
}

#[tokio::test]
async fn without_any_python_notebooks_are_read_and_edited_and_nothing_is_started() {
    let fixture = Fixture::changed(|settings| {
        settings.launch.search.explicit = Some(PathBuf::from("/nowhere/python"));
        settings.launch.search.variables.clear();
    });
    let streamed = Arc::new(CountedProgress::default());
    let mut context = fixture.context();
    context.progress = Some(Arc::clone(&streamed) as _);
    let calls = [
        ("write", json!({ "path": "a.ipynb", "content": "# %% [code]\nx = 1\n# %% [markdown]\ny\n" })),
        ("read", json!({ "path": "a.ipynb", "outputs": "text" })),
        ("edit", json!({ "path": "a.ipynb", "old": "x = 1", "new": "x = 2" })),
        ("notebook", json!({ "action": "insert", "path": "a.ipynb", "source": "z" })),
        ("notebook", json!({ "action": "edit", "path": "a.ipynb", "cell": 2, "source": "zz" })),
        ("notebook", json!({ "action": "move", "path": "a.ipynb", "cell": 2, "at": 0 })),
        ("notebook", json!({ "action": "retype", "path": "a.ipynb", "cell": 0, "type": "raw" })),
        ("notebook", json!({ "action": "clear", "path": "a.ipynb" })),
        ("notebook", json!({ "action": "delete", "path": "a.ipynb", "cell": 0 })),
        ("notebook", json!({ "action": "undo", "path": "a.ipynb" })),
        ("notebook", json!({ "action": "history", "path": "a.ipynb" })),
        ("read", json!({ "path": "a.ipynb", "search": "x" })),
    ];
    for (tool, arguments) in calls {
        let reply = fixture.call_in(tool, arguments.clone(), &context).await;
        assert!(!reply.is_error, "{tool} {arguments}: {}", reply.to_text());
    }
    let sources: Vec<_> = cells(&fixture, "a.ipynb").iter().map(|cell| cell["source"].clone()).collect();
    assert_eq!(sources, [json!(["zz"]), json!(["x = 2"]), json!(["y"])]);
    // No session, no kernel, nothing streamed, no output stored.
    let listed = fixture.call("kernel", json!({ "action": "list" })).await;
    assert_eq!(listed.structured.unwrap()["sessions"], json!([]));
    assert_eq!(*fixture.toolbox().python().borrow(), PythonState::Untried);
    assert_eq!(streamed.0.load(Ordering::Relaxed), 0);
    assert!(!fixture.path().join("artifacts").exists());
    // Running needs Python, and says so.
    fixture.error("notebook", json!({ "action": "run", "path": "a.ipynb" })).await;
}

/// A notebook without its ids, each of which must be there.
fn without_ids(file: &str) -> Value {
    let mut notebook: Value = serde_json::from_str(file).unwrap();
    for cell in notebook["cells"].as_array_mut().unwrap() {
        let id = cell.as_object_mut().unwrap().remove("id").expect("cells of nbformat 4.5 have ids");
        assert_eq!(id.as_str().unwrap().len(), 8);
    }
    notebook
}

#[tokio::test]
async fn a_new_notebook_is_nbformat_4_5_and_its_cells_have_what_their_type_requires() {
    let fixture = Fixture::new();
    let content = "# %% [code]\na\nb\n# %% [markdown]\nc\n# %% [raw]\nd\n";
    fixture.ok("write", json!({ "path": "written.ipynb", "content": content })).await;
    for (kind, source) in [("code", "a\nb"), ("markdown", "c"), ("raw", "d")] {
        let insert = json!({ "action": "insert", "path": "inserted.ipynb", "type": kind, "source": source });
        fixture.ok("notebook", insert).await;
    }
    let expected = json!({
        "cells": [
            {"cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [], "source": ["a\n", "b"]},
            {"cell_type": "markdown", "metadata": {}, "source": ["c"]},
            {"cell_type": "raw", "metadata": {}, "source": ["d"]},
        ],
        "metadata": {}, "nbformat": 4, "nbformat_minor": 5,
    });
    assert_eq!(without_ids(&fixture.get("written.ipynb")), expected);
    assert_eq!(without_ids(&fixture.get("inserted.ipynb")), expected);
    for cell in 0..3 {
        let edit = json!({ "action": "edit", "path": "written.ipynb", "cell": cell, "source": "" });
        fixture.ok("notebook", edit).await;
    }
    let sources: Vec<_> =
        cells(&fixture, "written.ipynb").iter().map(|cell| cell["source"].clone()).collect();
    assert_eq!(sources, [json!([]), json!([]), json!([])]);
}

#[tokio::test]
async fn a_marker_that_is_edited_retypes_its_cell() {
    let fixture = Fixture::new();
    let content = "# %% [code]\na\n# %% [markdown]\nb\n";
    fixture.ok("write", json!({ "path": "a.ipynb", "content": content })).await;
    let id = cells(&fixture, "a.ipynb")[0]["id"].clone();
    let marker = json!({ "path": "a.ipynb", "old": "# %% [code] cell:0", "new": "# %% [markdown] cell:0" });
    fixture.ok("edit", marker).await;
    let expected = json!({"cell_type": "markdown", "id": id, "metadata": {}, "source": ["a"]});
    assert_eq!(cells(&fixture, "a.ipynb")[0], expected);
    fixture.ok("read", json!({ "path": "a.ipynb" })).await;
    let text = "# %% [code] cell:0\na\n# %% [raw] cell:1\nb\n";
    fixture.ok("write", json!({ "path": "a.ipynb", "content": text })).await;
    let expected = json!({
        "cell_type": "code", "execution_count": null, "id": id, "metadata": {}, "outputs": [], "source": ["a"],
    });
    assert_eq!(cells(&fixture, "a.ipynb")[0], expected);
    assert_eq!(cells(&fixture, "a.ipynb")[1]["cell_type"], "raw");
}

#[tokio::test]
async fn edit_and_insert_without_a_source_are_refused() {
    let fixture = Fixture::new();
    fixture.ok("write", json!({ "path": "a.ipynb", "content": "# %% [code]\na\n" })).await;
    let before = fixture.get("a.ipynb");
    let edit = json!({ "action": "edit", "path": "a.ipynb", "cell": 0 });
    assert_eq!(fixture.error("notebook", edit).await, "edit needs `source`");
    let insert = json!({ "action": "insert", "path": "a.ipynb" });
    assert_eq!(fixture.error("notebook", insert).await, "insert needs `source`");
    assert_eq!(fixture.get("a.ipynb"), before);
}

#[tokio::test]
async fn cells_of_one_call_may_each_name_python_as_their_language() {
    let fixture = Fixture::new();
    let cells = json!([{"code": "x = 20", "language": "py"}, {"code": "x + 1", "language": "py"}]);
    let told = fixture.ok("eval", json!({ "cells": cells })).await;
    assert!(told.contains("21"), "{told}");
}

#[tokio::test]
async fn each_cell_may_ask_for_a_reset_and_that_of_the_call_is_for_its_first_cell() {
    let fixture = Fixture::new();
    let cells = json!([{"code": "kept = 1"}, {"code": "print('kept' in globals())", "reset": true}]);
    let told = fixture.ok("eval", json!({ "cells": cells })).await;
    assert!(told.contains("False"), "{told}");
    let cells = json!([{"code": "kept = 1"}, {"code": "print('kept' in globals())"}]);
    let told = fixture.ok("eval", json!({ "cells": cells, "reset": true })).await;
    assert!(told.contains("True"), "{told}");
}
