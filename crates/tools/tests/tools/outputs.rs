//! Reading saved outputs and attachments through `read`.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cellwright_tools::{ReplyPart, ToolReply};
use serde_json::{Map, Value, json};

use crate::support::{Fixture, PNG};

fn put(fixture: &Fixture, cells: &[Value]) {
    let notebook = json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    fixture.put("a.ipynb", &notebook.to_string());
}

fn code(id: &str, outputs: &[&str]) -> Value {
    let stream = |text: &&str| json!({"name": "stdout", "output_type": "stream", "text": text});
    let outputs: Vec<_> = outputs.iter().map(stream).collect();
    json!({
        "cell_type": "code", "execution_count": 1, "id": id, "metadata": {}, "outputs": outputs,
        "source": "print('needle')",
    })
}

fn images(reply: &ToolReply) -> usize {
    reply.content.iter().filter(|content| matches!(content, ReplyPart::Image(_))).count()
}

#[tokio::test]
async fn a_search_found_nothing_in_the_part_of_an_output_that_was_cut() {
    let fixture = Fixture::new();
    let long = (1..=20_000).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
    put(&fixture, &[code("a", &["short\n"]), code("b", &[&long, "last needle\n"])]);
    let search = async |path: &str, search: &str| {
        fixture.ok("read", json!({ "path": path, "outputs": "text", "search": search })).await
    };
    assert_eq!(search("a.ipynb", "^line 10000$").await, "#1.0:10000: line 10000\n");
    assert_eq!(search("a.ipynb#1.0", "^line 10000$").await, "10000: line 10000\n");
    let found = "#0:2: print('needle')\n#1:2: print('needle')\n#1.1:1: last needle\n";
    assert_eq!(search("a.ipynb", "needle").await, found);
    // The addresses are what `read` takes.
    assert!(fixture.ok("read", json!({ "path": "a.ipynb#1.0:10000" })).await.starts_with("line 10000\n"));
    assert!(fixture.ok("read", json!({ "path": "a.ipynb#1:2" })).await.starts_with("print('needle')\n"));
    let many = search("a.ipynb", "line").await;
    assert!(many.contains("search on with a.ipynb:"), "{many}");
}

#[tokio::test]
async fn only_four_of_seven_attachments_could_be_seen() {
    let fixture = Fixture::new();
    let picture = BASE64_STANDARD.encode(PNG);
    let names = ["a.png", "b c.png", "c.png", "d.png", "e.png", "12", "raw"];
    let attached: Map<_, _> =
        names.iter().map(|name| ((*name).to_owned(), json!({ "image/png": picture }))).collect();
    let cell = json!({
        "cell_type": "markdown", "id": "m", "metadata": {}, "source": "![](attachment:a.png)",
        "attachments": attached,
    });
    put(&fixture, &[code("a", &[]), cell]);
    let reply = fixture.call("read", json!({ "path": "a.ipynb#1", "outputs": "text" })).await;
    assert_eq!(images(&reply), 4);
    let told = reply.to_text();
    assert!(told.contains("[image a.ipynb#1:a.png]") && told.contains("[image a.ipynb#1:b c.png]"), "{told}");
    let more = "[3 more images not shown; read each by its address: a.ipynb#1:e.png, a.ipynb#1:\"12\", a.ipynb#1:\"raw\"]";
    assert!(told.contains(more), "{told}");
    for address in [
        "a.ipynb#1:b c.png",
        "a.ipynb#1:e.png",
        "a.ipynb#id:m:e.png",
        "a.ipynb#1:\"12\"",
        "a.ipynb#1:\"raw\"",
    ] {
        let reply = fixture.call("read", json!({ "path": address })).await;
        assert!(!reply.is_error && images(&reply) == 1, "{address}: {}", reply.to_text());
    }
    let missing = fixture.error("read", json!({ "path": "a.ipynb#1:x.png" })).await;
    assert!(
        missing.contains("cell 1 has no attachment `x.png`; attached are `a.png`, `b c.png`"),
        "{missing}"
    );
    let missing = fixture.error("read", json!({ "path": "a.ipynb#0:x.png" })).await;
    assert!(missing.contains("nothing is attached to it"), "{missing}");
}

#[tokio::test]
async fn a_short_output_after_a_long_one_was_on_the_next_page() {
    let fixture = Fixture::new();
    let long = (1..=20_000).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
    put(&fixture, &[code("a", &[&long, &long, "the short one\n"]), code("b", &[&long, "the last one\n"])]);
    let read = fixture.ok("read", json!({ "path": "a.ipynb", "outputs": "text" })).await;
    assert!(read.contains("the short one\n") && read.contains("the last one\n"), "{read}");
    assert!(read.contains("bytes not shown; read a.ipynb#1.0:") && !read.contains("go on with"), "{read}");
    assert!(read.len() > 45 * 1024, "{} bytes", read.len());
}
