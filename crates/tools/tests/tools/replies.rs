//! Replies that fit their readers.

use std::time::Duration;

use cellwright_tools::{BackgroundPolicy, ReplyPart, ReplyRoom, ToolReply};
use serde_json::json;

use crate::support::Fixture;

/// Displays bundles without any library.
const SHOW: &str = "class Shown:\n    def __init__(self, **data): self.data = data\n    def _repr_mimebundle_(self, **_): return {name.replace('__', '/').replace('_', '+'): value for name, value in self.data.items()}\n";

fn texts(reply: &ToolReply) -> Vec<&str> {
    let texts = reply.content.iter().filter_map(|part| match part {
        ReplyPart::Text(text) | ReplyPart::Note(text) => Some(text.as_str()),
        ReplyPart::Image(_) => None,
    });
    texts.collect()
}

fn length(reply: &ToolReply) -> usize {
    texts(reply).into_iter().map(str::len).sum()
}

#[tokio::test]
async fn two_thousand_images_keep_the_reply_within_its_budget() {
    let fixture = Fixture::new();
    let pixel =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQI12P4z8AAAAMBAQAY3Y2wAAAAAElFTkSuQmCC";
    let code = format!("{SHOW}for _ in range(2_000): display(Shown(image__png='{pixel}'))");
    let reply = fixture.call("eval", json!({ "code": code, "timeout": 300 })).await;
    assert!(!reply.is_error, "{}", reply.to_text());
    let images = reply.content.iter().filter(|part| matches!(part, ReplyPart::Image(_))).count();
    assert_eq!(images, 8);
    assert!(length(&reply) < 60 * 1024, "{} bytes of text", length(&reply));
    let list = texts(&reply).into_iter().find(|text| text.contains("more displays are stored"));
    let list = list.unwrap_or_else(|| panic!("{}", reply.to_text()));
    assert!(list.starts_with("[1972 more displays are stored; artifact://"), "{list}");
    let id = &list[list.find("artifact://").unwrap()..list.find(" lists").unwrap()];
    let listed = fixture.ok("read", json!({ "path": format!("{id}:1-1") })).await;
    let address = &listed[listed.find("artifact://").unwrap()..listed.find(']').unwrap()];
    let image = fixture.call("read", json!({ "path": address })).await;
    assert!(matches!(image.content[0], ReplyPart::Image(_)), "{}", image.to_text());
}

#[tokio::test]
async fn a_long_message_of_an_exception_is_short_in_the_structure() {
    let fixture = Fixture::new();
    let reply = fixture.call("eval", json!({ "code": "raise ValueError('x' * 10_000_000)" })).await;
    assert!(reply.is_error);
    assert!(length(&reply) < 60 * 1024, "{} bytes of text", length(&reply));
    let structured = reply.structured.unwrap().to_string();
    assert!(structured.len() < 10_000, "{} bytes", structured.len());
    assert!(structured.contains("ValueError"));
}

#[tokio::test]
async fn svg_is_given_as_text_when_it_is_small_and_always_stored() {
    let fixture = Fixture::new();
    let small = r#"<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30"><rect width="9" height="9"/></svg>"#;
    let code = format!("{SHOW}Shown(image__svg_xml='{small}')");
    let reply = fixture.call("eval", json!({ "code": code })).await;
    assert!(texts(&reply).contains(&small), "{}", reply.to_text());
    let long = format!("{SHOW}display(Shown(image__svg_xml='<svg>' + '<g></g>' * 2_000 + '</svg>'))");
    let told = fixture.ok("eval", json!({ "code": long })).await;
    let at = told.find("artifact://").unwrap_or_else(|| panic!("{told}"));
    let id = told[at..].split(',').next().unwrap();
    assert!(told.contains("which `read` shows as text"), "{told}");
    assert!(!told.contains("<g>"), "{told}");
    let read = fixture.ok("read", json!({ "path": id })).await;
    assert!(read.starts_with("<svg><g></g>"), "{read}");
}

#[tokio::test]
async fn a_shortened_output_is_announced_first_and_last() {
    let fixture = Fixture::new();
    let code = "for line in range(50_000): print('line', line)";
    for (tool, arguments) in [
        ("eval", json!({ "code": code })),
        ("bash", json!({ "command": "for i in $(seq 50000); do echo line $i; done" })),
    ] {
        let reply = fixture.call(tool, arguments).await;
        let texts = texts(&reply);
        let notice = texts[0];
        assert!(notice.contains("shortened: of 50,000 lines the first "), "{notice}");
        assert!(notice.contains("Full output: artifact://"), "{notice}");
        assert_eq!(texts.last(), Some(&notice), "{tool}");
    }
}

#[tokio::test]
async fn a_client_with_little_room_gets_short_replies() {
    let fixture = Fixture::new();
    let mut context = fixture.context();
    context.room = ReplyRoom { bytes: 4_000, lines: 100, ..ReplyRoom::default() };
    for (tool, arguments) in [
        ("eval", json!({ "code": "for line in range(1_000): print('line', line)" })),
        ("eval", json!({ "cells": [{ "code": "print('x\\n' * 90)" }, { "code": "print('y\\n' * 90)" }] })),
        ("bash", json!({ "command": "seq 1000" })),
    ] {
        let reply = fixture.call_in(tool, arguments, &context).await;
        let printed = reply.content.iter().filter_map(|part| match part {
            ReplyPart::Text(text) => Some(text.lines().count()),
            ReplyPart::Note(_) | ReplyPart::Image(_) => None,
        });
        let lines: usize = printed.sum();
        assert!((50..=110).contains(&lines), "{tool}: {lines} lines\n{}", reply.to_text());
        assert!(texts(&reply)[0].contains("Full output: artifact://"), "{}", reply.to_text());
    }
    fixture.put("long.txt", &"some words in a line\n".repeat(5_000));
    let read = fixture.call_in("read", json!({ "path": "long.txt" }), &context).await;
    assert!(length(&read) < 5_000, "{} bytes", length(&read));
}

#[tokio::test]
async fn a_call_is_answered_before_an_impatient_client_gives_up() {
    let fixture = Fixture::changed(|settings| {
        settings.background = BackgroundPolicy::After(Duration::from_hours(1));
    });
    let mut context = fixture.context();
    context.room.patience = Some(Duration::from_millis(300));
    let code = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.02)\n'over'";
    let reply = fixture.call_in("eval", json!({ "code": code, "timeout": 600 }), &context).await;
    assert!(reply.to_text().contains("continues in the background"), "{}", reply.to_text());
    let handle = reply.structured.unwrap()["handle"].clone();
    let wait = json!({ "action": "wait", "handle": handle, "timeout": 600 });
    let waited = fixture.call_in("kernel", wait.clone(), &context).await;
    assert!(waited.to_text().contains("is still running"), "{}", waited.to_text());
    fixture.put("go", "");
    context.room.patience = None;
    let waited = fixture.call_in("kernel", wait, &context).await;
    assert!(waited.to_text().contains("'over'"), "{}", waited.to_text());
}

#[tokio::test]
async fn a_refused_run_after_an_insert_says_that_the_cell_is_in_the_file() {
    let fixture = Fixture::changed(|settings| settings.background = BackgroundPolicy::Nothing);
    fixture.ok("write", json!({ "path": "a.ipynb", "content": "# %% [code]\n1\n" })).await;
    let insert = json!({
        "action": "insert", "path": "a.ipynb", "source": "2", "run": true, "background": true,
    });
    let told = fixture.error("notebook", insert).await;
    assert!(told.contains("inserted code cell 1"), "{told}");
    assert!(told.contains("the change is in the file, but it was not run: "), "{told}");
    assert!(fixture.ok("read", json!({ "path": "a.ipynb" })).await.ends_with("cell:1\n2\n"));
}

#[tokio::test]
async fn waiting_again_shows_only_what_is_new() {
    let fixture = Fixture::new();
    let code = "import os, time\nprint('first', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)\nprint('second', flush=True)\nwhile not os.path.exists('on'): time.sleep(0.02)\nprint('third')";
    let reply = fixture.call("eval", json!({ "code": code, "background": true })).await;
    let handle = reply.structured.unwrap()["handle"].as_str().unwrap().to_owned();
    let wait = json!({ "action": "wait", "handle": handle, "timeout": 1 });
    let mut told = String::new();
    while !told.contains("first") {
        told = fixture.ok("kernel", wait.clone()).await;
    }
    fixture.put("go", "");
    let mut news = String::new();
    while !news.contains("second") {
        news = fixture.ok("kernel", wait.clone()).await;
        assert!(!news.contains("first"), "{news}");
    }
    assert!(news.contains("what was shown before is not repeated"), "{news}");
    let all = fixture.ok("kernel", json!({ "action": "output", "handle": handle })).await;
    assert!(all.contains("first\nsecond\n"), "{all}");
    fixture.put("on", "");
    let mut end = fixture.ok("kernel", wait.clone()).await;
    while !end.contains("third") {
        end = fixture.ok("kernel", wait.clone()).await;
    }
    assert!(!end.contains("first") && !end.contains("second"), "{end}");
    // Once its end was reported, it is all there to be had again.
    assert!(fixture.ok("kernel", wait).await.contains("first\nsecond\nthird\n"));
}

#[tokio::test]
async fn a_traceback_names_a_cell_as_the_reply_does() {
    let fixture = Fixture::new();
    let content = "# %% [markdown]\ntitle\n# %% [code]\nx = 1\n# %% [markdown]\nmore\n# %% [code]\n1 / 0\n";
    fixture.ok("write", json!({ "path": "a.ipynb", "content": content })).await;
    let told = fixture.error("notebook", json!({ "action": "run", "path": "a.ipynb" })).await;
    assert!(told.contains("[cell 3: error") && told.contains("<cell 3, In [2]>\", line 1"), "{told}");
    let cells = json!([{ "code": "1" }, { "code": "1 / 0" }, { "code": "3" }]);
    let told = fixture.error("eval", json!({ "cells": cells })).await;
    assert!(told.contains("[cell 2 of 3: error") && told.contains("<cell 2 of 3, In [2]>"), "{told}");
}

#[tokio::test]
async fn images_are_numbered_on_from_cell_to_cell() {
    let fixture = Fixture::new();
    let pixel =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQI12P4z8AAAAMBAQAY3Y2wAAAAAElFTkSuQmCC";
    let show = format!("display(Shown(image__png='{pixel}'))");
    let cells = json!([{ "code": format!("{SHOW}{show}\n{show}") }, { "code": show }]);
    let told = fixture.ok("eval", json!({ "cells": cells })).await;
    for number in 1..=3 {
        assert_eq!(told.matches(&format!("[image {number}: ")).count(), 1, "{told}");
    }
}

#[tokio::test]
async fn an_output_that_the_kernel_cut_is_not_called_full() {
    let fixture = Fixture::new();
    let reply = fixture.call("eval", json!({ "code": "raise ValueError('x' * 3_000_000)" })).await;
    let told = reply.to_text();
    assert!(!told.contains("Full output"), "{told}");
    assert!(told.contains("it has 3000000 characters, more than a kernel sends"), "{told}");
    let whole = fixture.ok("eval", json!({ "code": "print('x\\n' * 100_000)" })).await;
    assert!(whole.contains("Full output: artifact://"), "{whole}");
}
