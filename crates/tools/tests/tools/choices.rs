//! Which cells a call means, and that a number means the cell the client was shown with it.

use serde_json::{Value, json};

use crate::support::Fixture;

fn code(id: &str) -> Value {
    json!({
        "cell_type": "code", "execution_count": null, "id": id, "metadata": {}, "outputs": [],
        "source": format!("print('{id}')"),
    })
}

fn heading(id: &str, text: &str) -> Value {
    json!({"cell_type": "markdown", "id": id, "metadata": {}, "source": format!("# {text}")})
}

fn put(fixture: &Fixture, cells: &[Value]) {
    let notebook = json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    fixture.put("a.ipynb", &notebook.to_string());
}

fn cells(fixture: &Fixture) -> Vec<Value> {
    let notebook: Value = serde_json::from_str(&fixture.get("a.ipynb")).unwrap();
    notebook["cells"].as_array().unwrap().clone()
}

/// The ids of the cells, with a star where something was printed.
fn ids(fixture: &Fixture) -> String {
    let shown = |cell: &Value| {
        let has_run = cell["outputs"].as_array().is_some_and(|outputs| !outputs.is_empty());
        format!("{}{}", cell["id"].as_str().unwrap(), if has_run { "*" } else { "" })
    };
    cells(fixture).iter().map(shown).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn cells_are_named_by_open_ranges_sections_and_lists_in_every_action() {
    let start = [code("a"), heading("h", "Part"), code("b"), code("c"), heading("i", "Other"), code("d")];
    for (arguments, left) in [
        (json!({ "action": "delete", "cell": "3-" }), "a h b"),
        (json!({ "action": "delete", "cell": "#\"Part\"" }), "a i d"),
        (json!({ "action": "delete", "cell": "[0,1]" }), "b c i d"),
        (json!({ "action": "delete", "cell": ["cell:0", "\"other\""] }), "h b c"),
        (json!({ "action": "move", "cell": "4-", "at": 0 }), "i d a h b c"),
        (json!({ "action": "run", "cell": "3-" }), "a h b c* i d*"),
        (json!({ "action": "run", "cell": "\"Part\"" }), "a h b* c* i d"),
        (json!({ "action": "run", "cell": "[0, 2]" }), "a* h b* c i d"),
    ] {
        let fixture = Fixture::new();
        put(&fixture, &start);
        let mut arguments = arguments;
        arguments["path"] = "a.ipynb".into();
        fixture.ok("notebook", arguments.clone()).await;
        assert_eq!(ids(&fixture), left, "{arguments}");
    }
    let fixture = Fixture::new();
    put(&fixture, &start);
    let retype = json!({ "action": "retype", "path": "a.ipynb", "cell": "4-", "type": "raw" });
    fixture.ok("notebook", retype).await;
    assert_eq!(
        (&cells(&fixture)[4]["cell_type"], &cells(&fixture)[5]["cell_type"]),
        (&json!("raw"), &json!("raw"))
    );
    let edit = json!({ "action": "edit", "path": "a.ipynb", "cell": "5-", "source": "x" });
    fixture.ok("notebook", edit).await;
    let edit = json!({ "action": "edit", "path": "a.ipynb", "cell": "4-", "source": "x" });
    assert_eq!(fixture.error("notebook", edit).await, "edit takes one cell; `4-` is 2 cells");
    let wrong = json!({ "action": "delete", "path": "a.ipynb", "cell": "\"Nowhere\"" });
    assert!(fixture.error("notebook", wrong).await.contains("no heading reads \"Nowhere\""));
    assert_eq!(
        fixture.ok("read", json!({ "path": "a.ipynb#cell:0" })).await,
        "# %% [code] cell:0\nprint('a')\n"
    );
}

#[tokio::test]
async fn a_cell_that_a_person_appended_is_not_deleted_by_a_range_without_an_end() {
    let fixture = Fixture::new();
    put(&fixture, &[code("a"), heading("h", "Part"), code("b")]);
    fixture.ok("read", json!({ "path": "a.ipynb" })).await;
    put(&fixture, &[code("a"), heading("h", "Part"), code("b"), code("person")]);
    for cell in ["1-", "\"Part\""] {
        let delete = json!({ "action": "delete", "path": "a.ipynb", "cell": cell });
        let refused = fixture.error("notebook", delete).await;
        assert_eq!(
            refused,
            "a.ipynb: changed since you read it, so nothing was done (cell 3 added); read it again"
        );
    }
    assert_eq!(ids(&fixture), "a h b person");
    let delete = json!({ "action": "delete", "path": "a.ipynb", "cell": "1-", "force": true });
    fixture.ok("notebook", delete).await;
    assert_eq!(ids(&fixture), "a");
}

#[tokio::test]
async fn force_runs_a_cell_that_others_moved_or_edited() {
    let fixture = Fixture::new();
    put(&fixture, &[code("a"), code("b")]);
    let run = |cell: &str| json!({ "action": "run", "path": "a.ipynb", "cell": cell });
    let forced = |cell: &str| json!({ "action": "run", "path": "a.ipynb", "cell": cell, "force": true });
    // A notebook that was never read runs as it is.
    fixture.ok("notebook", run("1")).await;
    fixture.ok("read", json!({ "path": "a.ipynb" })).await;
    put(&fixture, &[code("new"), code("a"), code("b")]);
    for cell in ["cell:1", "0-1", "1-"] {
        let refused = fixture.error("notebook", run(cell)).await;
        assert!(refused.contains("so nothing was done: another cell is at"), "{refused}");
    }
    assert_eq!(ids(&fixture), "new a b");
    fixture.ok("notebook", run("id:b")).await;
    fixture.ok("notebook", forced("cell:1")).await;
    assert_eq!(ids(&fixture), "new a* b*");
    let edit = json!({ "action": "edit", "path": "a.ipynb", "cell": 0, "source": "1 + 1", "run": true });
    fixture.error("notebook", edit.clone()).await;
    let mut edit = edit;
    edit["force"] = true.into();
    assert!(fixture.ok("notebook", edit).await.contains('2'));
    let expect = json!({ "action": "run", "path": "a.ipynb", "cell": 1, "expect": "0".repeat(32) });
    let refused = fixture.error("notebook", expect).await;
    assert!(refused.contains("its fingerprint is"), "{refused}");
}
