//! Cells that call tools: what a cell reads, the model has not seen.

use serde_json::json;

use crate::support::Fixture;

fn cell(id: &str, source: &str) -> serde_json::Value {
    json!({"cell_type": "raw", "id": id, "metadata": {}, "source": source})
}

fn notebook(cells: &[serde_json::Value]) -> String {
    json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).to_string()
}

/// Runs code, and returns what it printed.
async fn run(fixture: &Fixture, session: &str, code: &str) -> String {
    let code = format!("try:\n    print({code})\nexcept Exception as e:\n    print('refused:', e)");
    fixture.ok("eval", json!({ "code": code, "session": session })).await
}

#[tokio::test]
async fn a_read_by_a_cell_that_printed_nothing_let_the_model_overwrite_a_persons_text() {
    let fixture = Fixture::new();
    fixture.put("a.ipynb", &notebook(&[cell("a", "old")]));
    let text = fixture.text("read", json!({ "path": "a.ipynb" })).await;
    fixture.put("a.ipynb", &notebook(&[cell("a", "the person's")]));
    fixture.put("a.txt", "the person's\n");
    run(&fixture, "one", "len([tool.read(path='a.ipynb'), tool.read(path='a.txt')])").await;
    let stale = json!({ "path": "a.ipynb", "content": text.replace("old", "mine") });
    let refused = fixture.error("write", stale).await;
    assert!(refused.contains("changed since you read it"), "{refused}");
    let refused = fixture.error("write", json!({ "path": "a.txt", "content": "mine\n" })).await;
    assert!(refused.contains("you have not read this file"), "{refused}");
    assert!(fixture.get("a.ipynb").contains("the person's") && fixture.get("a.txt").contains("the person's"));
}

#[tokio::test]
async fn a_cell_that_would_wait_for_itself_gets_an_error() {
    let fixture = Fixture::new();
    let code = json!({"cell_type": "code", "execution_count": null, "id": "a", "metadata": {}, "outputs": [], "source": "1 + 1"});
    fixture.put("a.ipynb", &notebook(&[code]));
    let own = run(&fixture, "a.ipynb", "tool.notebook(action='run', path='a.ipynb')").await;
    assert!(own.contains("session a.ipynb waits for this cell"), "{own}");
    // Another notebook's session waits for nobody.
    let other = run(&fixture, "b", "tool.notebook(action='run', path='a.ipynb')['text']").await;
    assert!(other.contains('2'), "{other}");
    // Nor may two sessions wait for each other.
    let inner = "tool.eval(code='1', session='one')";
    let circle = run(&fixture, "one", &format!("tool.eval(code={inner:?}, session='two')['text']")).await;
    assert!(circle.contains("session one waits for this cell"), "{circle}");
}

#[tokio::test]
async fn what_the_model_or_another_session_read_does_not_vouch_for_a_cell() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "old\n");
    fixture.ok("read", json!({ "path": "a.txt" })).await;
    let write = "tool.write(path='a.txt', content='new')['text']";
    assert!(run(&fixture, "one", write).await.contains("you have not read this file"));
    run(&fixture, "one", "tool.read(path='a.txt')['text']").await;
    assert!(run(&fixture, "two", write).await.contains("you have not read this file"));
    assert!(run(&fixture, "one", write).await.contains("replaced a.txt"));
}
