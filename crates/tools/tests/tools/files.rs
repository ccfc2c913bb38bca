//! Reading and changing files through the tools, as a client does.

use crate::support::{self, Fixture};
use serde_json::json;

const NOTEBOOK: &str = r#"{
  "cells": [
    {"cell_type": "markdown", "id": "intro", "metadata": {}, "source": "Title"},
    {"cell_type": "code", "id": "calc", "metadata": {"x": 1.0}, "execution_count": 3, "source": ["n = 10\n", "n"],
     "outputs": [{"output_type": "execute_result", "execution_count": 3, "metadata": {}, "data": {"text/plain": "10"}}]}
  ],
  "metadata": {}, "nbformat": 4, "nbformat_minor": 5
}"#;

#[tokio::test]
async fn a_notebook_reads_as_marked_text_and_an_edit_leaves_other_bytes_alone() {
    let fixture = Fixture::new();
    fixture.put("a.ipynb", NOTEBOOK);
    let read = fixture.ok("read", json!({ "path": "a.ipynb" })).await;
    assert_eq!(read, "# %% [markdown] cell:0\nTitle\n# %% [code] cell:1\nn = 10\nn\n");
    let told = fixture.ok("edit", json!({ "path": "a.ipynb", "old": "Title", "new": "# Title" })).await;
    assert_eq!(told, "edited markdown cell 0 (2 cells now)");
    assert_eq!(fixture.get("a.ipynb"), NOTEBOOK.replace("\"Title\"", "\"# Title\""));
    let told = fixture.ok("edit", json!({ "path": "a.ipynb", "old": "n = 10", "new": "n = 11" })).await;
    assert_eq!(told, "edited code cell 1 (2 cells now)\nnote: the output of cell 1 was removed");
}

#[tokio::test]
async fn a_script_with_cell_markers_is_edited_like_any_text() {
    let fixture = Fixture::new();
    fixture.put("t.py", "# %% [markdown]\n# Title\n# %% [code]\nmarkdown = 1\n");
    let edit = json!({ "path": "t.py", "old": "[markdown]", "new": "[raw]" });
    assert_eq!(fixture.ok("edit", edit).await, "replaced 1 match in t.py, line 1");
    let all = json!({ "path": "t.py", "old": "# ", "new": "## ", "all": true });
    assert_eq!(fixture.ok("edit", all).await, "replaced 3 matches in t.py, lines 1, 2, 3");
    assert_eq!(fixture.get("t.py"), "## %% [raw]\n## Title\n## %% [code]\nmarkdown = 1\n");
}

#[tokio::test]
async fn outputs_selectors_and_search_show_parts() {
    let fixture = Fixture::new();
    fixture.put("a.ipynb", NOTEBOOK);
    let outputs = fixture.ok("read", json!({ "path": "a.ipynb#1", "outputs": "text" })).await;
    assert!(outputs.contains("# %% [output 0] result"), "{outputs}");
    let found = fixture.ok("read", json!({ "path": "a.ipynb", "search": "^n" })).await;
    assert_eq!(found, "4: n = 10\n5: n\n");
    fixture.put("a.txt", "one\ntwo\nthree\n");
    assert_eq!(fixture.ok("read", json!({ "path": "a.txt:2-" })).await, "two\nthree\n\n[lines 2-3 of 3]");
}

#[tokio::test]
async fn a_search_keeps_to_the_lines_it_is_asked_to_search() {
    let fixture = Fixture::new();
    let lines: Vec<_> = (1..=1000).map(|n| format!("line {n}")).collect();
    fixture.put("a.txt", &(lines.join("\n") + "\n"));
    let search = async |path: &str| fixture.ok("read", json!({ "path": path, "search": "line .*0$" })).await;
    assert_eq!(search("a.txt:985-1000").await, "990: line 990\n1000: line 1000\n");
    assert_eq!(search("a.txt:-5").await, "1000: line 1000\n");
    assert_eq!(search("a.txt:5-12,20").await, "10: line 10\n20: line 20\n");
    let first = fixture.ok("read", json!({ "path": "a.txt", "search": "line" })).await;
    assert!(
        first.ends_with("200: line 200\n\n[the first 200 matches; search on with a.txt:201-]"),
        "{first}"
    );
    let next = fixture.ok("read", json!({ "path": "a.txt:201-", "search": "line" })).await;
    assert!(next.starts_with("201: line 201\n"), "{next}");
    let code = "for n in range(1, 20_001): print('line', n)";
    let printed = fixture.call("eval", json!({ "code": code })).await.structured.unwrap();
    let artifact = printed["cells"][0]["truncated"]["artifact"].as_str().unwrap();
    assert_eq!(search(&format!("{artifact}:95-102")).await, "100: line 100\n");
    assert_eq!(search(&format!("{artifact}:-5")).await, "20000: line 20000\n");
    assert_eq!(search(&format!("{artifact}:5-12,20")).await, "10: line 10\n20: line 20\n");
}

#[tokio::test]
async fn the_next_page_of_some_cells_is_of_those_cells() {
    let fixture = Fixture::new();
    let long = "x = 1\n".repeat(20_000);
    let content = format!("# %% [code]\n'zero'\n# %% [code]\n{long}");
    fixture.ok("write", json!({ "path": "a.ipynb", "content": content })).await;
    let page = fixture.ok("read", json!({ "path": "a.ipynb#1:2-" })).await;
    assert!(page.contains("; go on with a.ipynb#1:"), "{}", &page[page.len() - 200..]);
}

#[tokio::test]
async fn a_refused_write_leaves_no_folders_behind() {
    let fixture = Fixture::new();
    for content in ["no marker\n", "{"] {
        fixture.error("write", json!({ "path": "n1/n2/new.ipynb", "content": content })).await;
        assert!(!fixture.path().join("n1").exists());
    }
    fixture.ok("write", json!({ "path": "n1/n2/new.ipynb", "content": "# %% [code]\n1\n" })).await;
}

#[tokio::test]
async fn an_edit_of_nothing_in_a_text_file_says_how_to_add_text() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "one\n");
    let told = fixture.error("edit", json!({ "path": "a.txt", "old": "", "new": "two\n" })).await;
    assert!(told.starts_with("a.txt: `old` is empty; to add text, "), "{told}");
}

#[tokio::test]
async fn impossible_lines_are_not_reported_as_a_missing_file() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "one\n");
    for lines in ["5-2", "0-"] {
        let told = fixture.error("read", json!({ "path": format!("a.txt:{lines}") })).await;
        assert!(told.starts_with(&format!("a.txt: `:{lines}` is not a selector: `{lines}` ")), "{told}");
    }
    assert_eq!(fixture.error("read", json!({ "path": "b.txt:5-2" })).await, "b.txt:5-2: no such file");
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_read_is_not_written_over() {
    let fixture = Fixture::new();
    fixture.put("a.ipynb", NOTEBOOK);
    fixture.put("a.txt", "one\n");
    fixture.ok("read", json!({ "path": "a.ipynb" })).await;
    fixture.ok("read", json!({ "path": "a.txt" })).await;
    let theirs = NOTEBOOK.replace("n = 10", "n = 12");
    fixture.put("a.ipynb", &theirs);
    fixture.put("a.txt", "uno\n");
    for (tool, arguments) in [
        ("edit", json!({ "path": "a.ipynb", "old": "n = 12", "new": "n = 13" })),
        ("write", json!({ "path": "a.ipynb", "content": "# %% [code] cell:0\nTitle\n" })),
        ("notebook", json!({ "action": "edit", "path": "a.ipynb", "cell": 1, "source": "mine" })),
        ("notebook", json!({ "action": "delete", "path": "a.ipynb", "cell": 1 })),
    ] {
        let refused = fixture.error(tool, arguments).await;
        let first = "a.ipynb: changed since you read it, so nothing was done (cell 1 edited); read it again\n\
                     [in the file now]\n# %% [code] cell:1\nn = 12\nn\n";
        assert!(refused.starts_with(first), "{refused}");
    }
    for (tool, arguments) in [
        ("edit", json!({ "path": "a.txt", "old": "uno", "new": "x" })),
        ("write", json!({ "path": "a.txt", "content": "x" })),
    ] {
        let refused = fixture.error(tool, arguments).await;
        assert_eq!(refused, "a.txt: changed since you read it, so nothing was done; read it again");
    }
    assert_eq!((fixture.get("a.ipynb"), fixture.get("a.txt")), (theirs, "uno\n".to_owned()));
    // What others did to one cell does not keep another from being edited.
    fixture.ok("edit", json!({ "path": "a.ipynb", "old": "Title", "new": "T" })).await;
    assert!(fixture.get("a.ipynb").contains("n = 12"));
}

#[tokio::test]
async fn what_one_client_read_does_not_speak_for_another() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "one\n");
    fixture.ok("read", json!({ "path": "a.txt" })).await;
    let other = fixture.another();
    other.ok("edit", json!({ "path": "a.txt", "old": "one", "new": "two" })).await;
    fixture.error("edit", json!({ "path": "a.txt", "old": "two", "new": "three" })).await;
}

#[tokio::test]
async fn writing_a_notebook_takes_marked_text_or_json_and_nothing_else() {
    let fixture = Fixture::new();
    fixture.error("write", json!({ "path": "new/b.ipynb", "content": "print(1)\n" })).await;
    assert!(!fixture.path().join("new").exists(), "what is refused leaves no folder");
    let told =
        fixture.ok("write", json!({ "path": "new/b.ipynb", "content": "# %% [code]\nprint(1)\n" })).await;
    assert_eq!(told, "inserted code cell 0 (1 cell now)\nnote: there was no such file; it was created");
    let before = fixture.get("new/b.ipynb");
    for content in ["print(1)\n", "{\"cells\": []}", "[]", "{", ""] {
        fixture.error("write", json!({ "path": "new/b.ipynb", "content": content })).await;
    }
    assert_eq!(fixture.get("new/b.ipynb"), before);
    fixture.ok("write", json!({ "path": "new/b.ipynb", "content": NOTEBOOK })).await;
    assert_eq!(fixture.get("new/b.ipynb"), NOTEBOOK);
}

#[tokio::test]
async fn cells_are_named_by_index_id_or_range() {
    let fixture = Fixture::new();
    fixture.put("a.ipynb", NOTEBOOK);
    let act = async |arguments: serde_json::Value| fixture.ok("notebook", arguments).await;
    act(json!({ "action": "insert", "path": "a.ipynb", "source": "last", "type": "raw" })).await;
    act(json!({ "action": "insert", "path": "a.ipynb", "source": "first", "at": 0 })).await;
    act(json!({ "action": "move", "path": "a.ipynb", "cell": "id:calc", "at": 0 })).await;
    act(json!({ "action": "retype", "path": "a.ipynb", "cell": 1, "type": "markdown" })).await;
    act(json!({ "action": "edit", "path": "a.ipynb", "cell": "1", "source": "edited" })).await;
    act(json!({ "action": "clear", "path": "a.ipynb" })).await;
    let deleted = act(json!({ "action": "delete", "path": "a.ipynb", "cell": "2-3" })).await;
    assert!(
        deleted.starts_with("deleted cells 2-3 (2 cells now)\n# %% [markdown] cell:2\nTitle"),
        "{deleted}"
    );
    let text = fixture.ok("read", json!({ "path": "a.ipynb" })).await;
    assert_eq!(text, "# %% [code] cell:0\nn = 10\nn\n# %% [markdown] cell:1\nedited\n");
}

#[tokio::test]
async fn several_cells_are_inserted_at_once_and_reported_with_their_sources() {
    let fixture = Fixture::new();
    fixture.put("a.ipynb", NOTEBOOK);
    let several = "# %% [markdown]\nPart\n# %% [code]\nn + 1\n";
    let insert = json!({ "action": "insert", "path": "a.ipynb", "source": several, "at": 1 });
    let reply = fixture.call("notebook", insert).await;
    assert_eq!(reply.to_text(), "inserted cells 1-2 (4 cells now)");
    let told = reply.structured.expect("an edit is told to programs too");
    let cell = |at: usize| {
        let cell = &told["cells"][at];
        json!([cell["change"], cell["index"], cell["type"], cell["source"]])
    };
    assert_eq!(cell(0), json!(["inserted", 1, "markdown", "Part"]));
    assert_eq!(cell(1), json!(["inserted", 2, "code", "n + 1"]));
    assert_eq!((&told["total_cells"], &told["notes"]), (&json!(4), &json!([])));
    // With a type it is one cell, whatever it holds.
    let one = json!({ "action": "insert", "path": "a.ipynb", "source": several, "type": "raw" });
    assert_eq!(fixture.ok("notebook", one).await, "inserted raw cell 4 (5 cells now)");
    let edit = json!({ "path": "a.ipynb", "old": "n = 10", "new": "n = 11" });
    let told = fixture.call("edit", edit).await.structured.expect("told");
    assert_eq!(told["notes"], json!(["the output of cell 3 was removed"]));
}

#[tokio::test]
async fn wrong_arguments_get_their_own_messages() {
    let fixture = Fixture::new();
    for (tool, arguments, message) in [
        ("red", json!({}), "unknown tool `red`; did you mean `read`?"),
        ("read", json!({}), "missing parameter `path`"),
        ("read", json!({ "path": 3 }), "`path`: invalid type: integer `3`, expected a string"),
        ("read", json!({ "file": "x" }), "unknown parameter `file`. There are: path, outputs, search"),
        (
            "read",
            json!({ "path": "x", "output": "text" }),
            "unknown parameter `output`; did you mean `outputs`?",
        ),
        (
            "notebook",
            json!({ "action": "ad", "path": "x" }),
            "`action`: unknown variant `ad`, expected one of",
        ),
        ("notebook", json!({ "action": "move", "path": "x.ipynb", "cell": 1 }), "move needs `at`"),
        ("read", json!({ "path": "/etc/passwd" }), "/etc/passwd is outside the workspace"),
    ] {
        let told = fixture.error(tool, arguments).await;
        assert!(told.starts_with(message), "{told}");
    }
}

#[tokio::test]
async fn a_long_file_is_read_page_by_page() {
    let fixture = Fixture::new();
    let line = "x".repeat(999) + "\n";
    fixture.put("long.txt", &line.repeat(120));
    let (mut from, mut total) = (1, 0);
    loop {
        let page = fixture.ok("read", json!({ "path": format!("long.txt:{from}-") })).await;
        total += page.matches(&line).count();
        let Some((_, next)) = page.split_once("go on with long.txt:") else { break };
        from = next.trim_end_matches("-]").parse().unwrap();
    }
    assert_eq!(total, 120);
    fixture.put("wide.txt", &"~".repeat(200_000));
    let (mut path, mut read) = ("wide.txt".to_owned(), 0);
    loop {
        let page = fixture.ok("read", json!({ "path": path })).await;
        read += page.matches('~').count();
        let Some((note, next)) = page.split_once("go on with ") else { break };
        assert!(page.len() < 60_000 && note.contains(" of 200,000 are shown"), "{}", page.len());
        path = next.trim_end_matches(']').to_owned();
    }
    assert_eq!(read, 200_000, "a line longer than a page is read to its end");
}

#[tokio::test]
async fn images_come_as_images_and_other_binaries_are_refused() {
    let fixture = Fixture::new();
    fixture.put_bytes("a.png", support::PNG);
    fixture.put_bytes("a.bin", b"\x00\x01\x02");
    let reply = fixture.call("read", json!({ "path": "a.png" })).await;
    assert!(matches!(&reply.content[..], [cellwright_tools::ReplyPart::Image(_)]), "{reply:?}");
    assert_eq!(
        fixture.error("read", json!({ "path": "a.bin" })).await,
        "a.bin is a binary file of 3 bytes, not text"
    );
}

#[tokio::test]
async fn the_text_of_a_broken_notebook_is_shown_raw() {
    let fixture = Fixture::new();
    fixture.put("a.ipynb", "{\n<<<<<<< HEAD\n1\n=======\n2\n>>>>>>> other\n}\n");
    let shown = fixture.ok("read", json!({ "path": "a.ipynb:raw:2-4" })).await;
    assert!(shown.starts_with("<<<<<<< HEAD\n1\n=======\n"), "{shown}");
    assert!(
        shown.contains("a.ipynb is not a usable notebook: line 2: it has the conflict markers"),
        "{shown}"
    );
    fixture.error("read", json!({ "path": "a.ipynb" })).await;
}
