//! A cell of a type that nbformat does not know.

use serde_json::json;

use crate::support::Fixture;

const FILE: &str = r#"{
 "cells": [
  {"cell_type": "code", "execution_count": 1, "id": "a", "metadata": {}, "outputs": [], "source": ["x"]},
  {"outputs": 5, "cell_type": "h\u0065ading", "level": 2, "id": "b", "metadata": {}, "source": ["Title"]}
 ],
 "metadata": {}, "nbformat": 4, "nbformat_minor": 5
}
"#;

#[tokio::test]
async fn one_cell_of_an_unknown_type_made_the_whole_file_unreadable() {
    let fixture = Fixture::new();
    fixture.put("a.ipynb", FILE);
    let told = fixture.ok("read", json!({ "path": "a.ipynb" })).await;
    assert_eq!(
        told,
        "# %% [code] cell:0\nx\n# %% [raw] cell:1\nTitle\n\n[cell 1 has the unknown type `heading` and is shown as raw]"
    );
    // Edits of other cells leave it as it is, and so does a text of all cells.
    fixture.ok("notebook", json!({ "action": "edit", "path": "a.ipynb", "cell": 0, "source": "y" })).await;
    let text = "# %% [raw] cell:1\nTitle\n# %% [code] cell:0\nz\n";
    fixture.ok("write", json!({ "path": "a.ipynb", "content": text })).await;
    let odd =
        r#""outputs": 5, "cell_type": "h\u0065ading", "level": 2, "id": "b", "metadata": {}, "source": "#;
    assert!(fixture.get("a.ipynb").contains(&format!("{{{odd}[\"Title\"]}}")), "{}", fixture.get("a.ipynb"));
    // Its own text can be edited, too; its type stays.
    fixture.ok("edit", json!({ "path": "a.ipynb", "old": "Title", "new": "Other" })).await;
    assert!(fixture.get("a.ipynb").contains(&format!("{{{odd}[\"Other\"]}}")), "{}", fixture.get("a.ipynb"));
    fixture.ok("notebook", json!({ "action": "retype", "path": "a.ipynb", "cell": 0, "type": "raw" })).await;
    assert!(fixture.get("a.ipynb").contains(r#""cell_type": "raw""#), "{}", fixture.get("a.ipynb"));
    let refused = fixture.error("write", json!({ "path": "b.ipynb", "content": FILE })).await;
    assert!(refused.contains("cell 1: `cell_type` must be code, markdown or raw"), "{refused}");
}
