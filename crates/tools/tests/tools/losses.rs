//! Ways in which text was lost once, each named after what the user saw.

use cellwright_notebook::Notebook;
use serde_json::json;

use crate::support::Fixture;

fn notebook(sources: &[String]) -> String {
    let cells: Vec<_> = sources
        .iter()
        .enumerate()
        .map(|(at, source)| {
            json!({
                "cell_type": "code", "execution_count": null, "id": format!("cell-{at}"), "metadata": {},
                "outputs": [], "source": source,
            })
        })
        .collect();
    json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).to_string()
}

fn sources(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn a_page_that_was_written_back_deleted_63_of_100_cells() {
    let fixture = Fixture::new();
    let long: Vec<_> = (0..100).map(|at| format!("# cell {at}\n{}", "x = 1\n".repeat(200))).collect();
    fixture.put("a.ipynb", &notebook(&long));
    let before = fixture.get("a.ipynb");
    let shown = fixture.text("read", json!({ "path": "a.ipynb" })).await;
    assert!(shown.len() < before.len() / 2, "it is one page of several");
    // A model writes back what it saw, up to the last whole cell of the page.
    let end = shown.rfind("# %% [").unwrap();
    let page = shown[..end].replacen("x = 1", "x = 2", 1);
    let refused = fixture.error("write", json!({ "path": "a.ipynb", "content": page })).await;
    let first = page.matches("# %% [").count();
    assert!(refused.contains(&format!("you have not seen all of cells {first}-99")), "{refused}");
    assert!(refused.contains(&format!("read #{first}-99 first")), "{refused}");
    // The page itself, with its last cell cut, is no better.
    fixture.error("write", json!({ "path": "a.ipynb", "content": shown })).await;
    assert_eq!(fixture.get("a.ipynb"), before);
    // Page by page, all of it can be read, and then written.
    let mut whole = shown.clone();
    loop {
        let page = json!({ "path": format!("a.ipynb:{}-", whole.lines().count() + 1) });
        whole.push_str(&fixture.text("read", page.clone()).await);
        if !fixture.ok("read", page).await.contains("go on with") {
            break;
        }
    }
    let told = fixture
        .ok("write", json!({ "path": "a.ipynb", "content": whole.replacen("x = 1", "x = 2", 1) }))
        .await;
    assert!(told.starts_with("edited code cell 0 (100 cells now)"), "{told}");
}

#[tokio::test]
async fn a_reconnected_client_wrote_its_old_text_over_a_persons_new_cell() {
    let fixture = Fixture::new();
    fixture.put("a.ipynb", &notebook(&sources(&["a", "b"])));
    let text = fixture.text("read", json!({ "path": "a.ipynb" })).await;
    fixture.put("a.ipynb", &notebook(&sources(&["the person's", "a", "b"])));
    let reconnected = fixture.another();
    let refused = reconnected.error("write", json!({ "path": "a.ipynb", "content": text })).await;
    assert!(refused.contains("you have not read this file"), "{refused}");
    assert!(fixture.get("a.ipynb").contains("the person's"));
}

#[tokio::test]
async fn one_cell_that_was_read_again_vouched_for_all_positions() {
    let fixture = Fixture::new();
    let cell = |id: &str| json!({"cell_type": "raw", "id": id, "metadata": {}, "source": id});
    let file = |ids: &[&str]| {
        let cells: Vec<_> = ids.iter().map(|id| cell(id)).collect();
        json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).to_string()
    };
    fixture.put("a.ipynb", &file(&["a", "b", "c", "d", "e"]));
    fixture.ok("read", json!({ "path": "a.ipynb" })).await;
    fixture.put("a.ipynb", &file(&["new", "a", "b", "c", "d", "e"]));
    fixture.ok("read", json!({ "path": "a.ipynb#5" })).await;
    for action in ["delete", "move", "clear", "retype"] {
        let arguments = json!({ "action": action, "path": "a.ipynb", "cell": 1, "at": 0, "type": "code" });
        let refused = fixture.error("notebook", arguments).await;
        assert!(refused.contains("another cell is at 1 now, the one you read is at 2"), "{refused}");
    }
    fixture.ok("notebook", json!({ "action": "delete", "path": "a.ipynb", "cell": 5 })).await;
}

#[tokio::test]
async fn a_cell_nested_900_deep_made_the_call_hang() {
    let fixture = Fixture::new();
    for depth in [894, 895, 896, 897, 898, 899, 900, 901] {
        let deep = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let cell =
            format!(r#"{{"cell_type":"code","metadata":{{"deep":{deep}}},"outputs":[],"source":"x"}}"#);
        fixture.put(
            "a.ipynb",
            &format!(r#"{{"cells":[{cell}],"metadata":{{}},"nbformat":4,"nbformat_minor":4}}"#),
        );
        let read = fixture.call("read", json!({ "path": "a.ipynb" })).await;
        for (tool, arguments) in [
            ("read", json!({ "path": "a.ipynb", "outputs": "text" })),
            ("edit", json!({ "path": "a.ipynb", "old": "x", "new": "y" })),
            ("notebook", json!({ "action": "insert", "path": "a.ipynb", "source": "z" })),
            ("notebook", json!({ "action": "retype", "path": "a.ipynb", "cell": 0, "type": "markdown" })),
        ] {
            let reply = fixture.call(tool, arguments).await;
            assert_eq!(reply.is_error, read.is_error, "{depth}: {}", reply.to_text());
            assert!(!reply.to_text().contains("a bug in cellwright"), "{depth}: {}", reply.to_text());
        }
    }
}

#[tokio::test]
async fn a_part_was_read_and_a_text_that_named_no_cell_replaced_everything() {
    let fixture = Fixture::new();
    fixture.put("a.ipynb", &notebook(&sources(&["a", "b", "c", "d"])));
    let before = fixture.get("a.ipynb");
    fixture.ok("read", json!({ "path": "a.ipynb#1" })).await;
    let fresh = json!({ "path": "a.ipynb", "content": "# %% [code]\nfresh = 1\n" });
    let refused = fixture.error("write", fresh).await;
    assert!(refused.contains("you have not seen all of cells 0, 2-3"), "{refused}");
    assert_eq!(fixture.get("a.ipynb"), before);
}

#[tokio::test]
async fn an_edit_of_a_cell_went_over_what_the_person_had_written_there() {
    let fixture = Fixture::new();
    fixture.put("a.ipynb", &notebook(&sources(&["a", "b"])));
    fixture.ok("read", json!({ "path": "a.ipynb" })).await;
    fixture.put("a.ipynb", &notebook(&sources(&["a", "the person's"])));
    for cell in [json!(1), json!("id:cell-1")] {
        let edit = json!({ "action": "edit", "path": "a.ipynb", "cell": cell, "source": "mine" });
        let refused = fixture.error("notebook", edit).await;
        assert!(refused.contains("the person's") && refused.contains("mine"), "{refused}");
    }
    let now = Notebook::parse(fixture.get("a.ipynb").into_bytes()).unwrap();
    assert_eq!(now.cell(1).source(), "the person's");
}
