//! Running notebooks.

use std::time::Duration;

use cellwright_testkit::eventually;
use cellwright_tools::{BackgroundPolicy, ReplyPart};
use serde_json::{Value, json};

use crate::support::Fixture;

/// A notebook of code cells, as Jupyter writes it.
fn notebook(sources: &[&str]) -> String {
    let cells: Vec<_> = sources
        .iter()
        .enumerate()
        .map(|(index, source)| {
            json!({
                "cell_type": "code", "execution_count": null, "id": format!("cell-{index}"), "metadata": {},
                "outputs": [], "source": source.split_inclusive('\n').collect::<Vec<_>>(),
            })
        })
        .collect();
    let whole = json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    serde_json::to_string_pretty(&whole).unwrap()
}

fn cells(fixture: &Fixture, name: &str) -> Vec<Value> {
    let notebook: Value = serde_json::from_str(&fixture.get(name)).unwrap();
    notebook["cells"].as_array().unwrap().clone()
}

/// What cells printed, and their counts.
fn printed(fixture: &Fixture, name: &str) -> Vec<(String, Value)> {
    let text = |cell: &Value| {
        let lines = cell["outputs"].as_array().unwrap().iter().filter_map(|output| {
            output.get("text").or_else(|| output["data"].get("text/plain")).and_then(Value::as_array).cloned()
        });
        lines.flatten().map(|line| line.as_str().unwrap().to_owned()).collect::<String>()
    };
    cells(fixture, name).iter().map(|cell| (text(cell), cell["execution_count"].clone())).collect()
}

#[tokio::test]
async fn one_call_edits_runs_and_answers_with_the_outputs() {
    let fixture = Fixture::new();
    fixture.put("a.ipynb", &notebook(&["n = 20", "print(n)"]));
    let ran = fixture.ok("notebook", json!({ "action": "run", "path": "a.ipynb" })).await;
    assert!(ran.contains("[cell 0: ok") && ran.contains("[cell 1: ok") && ran.contains("\n20\n"), "{ran}");
    let edit =
        json!({ "action": "edit", "path": "a.ipynb", "cell": 1, "source": "print(n + 1)", "run": true });
    let edited = fixture.ok("notebook", edit).await;
    assert!(edited.starts_with("edited code cell 1") && edited.contains("\n21\n"), "{edited}");
    let insert = json!({ "action": "insert", "path": "a.ipynb", "source": "n + 2", "run": true });
    let inserted = fixture.ok("notebook", insert).await;
    assert!(inserted.contains("[cell 2: ok") && inserted.contains("\n22\n"), "{inserted}");
    let expected = [("", 1), ("21\n", 3), ("22", 4)];
    assert_eq!(printed(&fixture, "a.ipynb"), expected.map(|(text, count)| (text.to_owned(), json!(count))));
}

#[tokio::test]
async fn a_notebook_has_its_own_variables_and_eval_sees_them() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path().join("sub")).unwrap();
    fixture.put("sub/a.ipynb", &notebook(&["import os\nx = os.path.basename(os.getcwd())"]));
    fixture.ok("notebook", json!({ "action": "run", "path": "sub/a.ipynb" })).await;
    let seen = fixture.ok("eval", json!({ "code": "x", "session": "sub/a.ipynb" })).await;
    assert!(seen.starts_with("'sub'"), "{seen}");
    let apart = fixture.ok("eval", json!({ "code": "'x' in globals()" })).await;
    assert!(apart.starts_with("False"), "{apart}");
    let missing = fixture.error("eval", json!({ "code": "1", "session": "none.ipynb" })).await;
    assert!(missing.contains("none.ipynb: no such file"), "{missing}");
}

#[tokio::test]
async fn cells_are_run_by_place_by_range_by_id_and_from_one_on_and_all_on_a_fresh_kernel() {
    let fixture = Fixture::new();
    let sources = ["ran = globals().get('ran', 0) + 1", "ran += 10", "ran += 100", "print(ran)"];
    fixture.put("a.ipynb", &notebook(&sources));
    for (arguments, cells) in [
        (json!({ "cell": 0 }), vec![0]),
        (json!({ "cell": "1" }), vec![1]),
        (json!({ "cell": "0,2-3" }), vec![0, 2, 3]),
        (json!({ "cell": "id:cell-2" }), vec![2]),
        (json!({ "cell": "id:cell-1,3" }), vec![1, 3]),
        (json!({ "cell": "2-" }), vec![2, 3]),
        (json!({ "cell": "id:cell-2-" }), vec![2, 3]),
        (json!({ "cell": "all" }), vec![0, 1, 2, 3]),
        (json!({ "reset": true }), vec![0, 1, 2, 3]),
    ] {
        let mut call = json!({ "action": "run", "path": "a.ipynb" });
        call.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
        let reply = fixture.call("notebook", call).await;
        let structured = reply.structured.clone().expect("cells ran");
        let ran: Vec<_> = structured["cells"]
            .as_array()
            .unwrap()
            .iter()
            .map(|cell| cell["cell"].as_u64().unwrap())
            .collect();
        assert_eq!((ran, reply.is_error), (cells, false), "{arguments}: {}", reply.to_text());
    }
    // All in one kernel up to the last one, which began with a fresh one.
    assert_eq!(printed(&fixture, "a.ipynb")[3], ("111\n".to_owned(), json!(4)));
}

#[tokio::test]
async fn two_ways_to_a_notebook_are_one_session() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path().join("sub")).unwrap();
    fixture.put("sub/a.ipynb", &notebook(&["x = 5"]));
    std::os::unix::fs::symlink("sub/a.ipynb", fixture.path().join("link.ipynb")).unwrap();
    fixture.ok("notebook", json!({ "action": "run", "path": "link.ipynb" })).await;
    let seen = fixture.ok("eval", json!({ "code": "x", "session": "sub/a.ipynb" })).await;
    assert!(seen.starts_with('5'), "{seen}");
    assert!(fixture.path().join("link.ipynb").is_symlink());
    assert_eq!(printed(&fixture, "sub/a.ipynb"), [(String::new(), json!(1))]);
}

#[tokio::test]
async fn n21_a_cell_that_others_edit_before_its_turn_runs_what_it_says_now_and_the_reply_says_so() {
    let fixture = Fixture::new();
    let edit = "import json\nwith open('a.ipynb') as f:\n    nb = json.load(f)\nnb['cells'][1]['source'] = 'print(2)'\ndel nb['cells'][2]\nwith open('a.ipynb', 'w') as f:\n    json.dump(nb, f)";
    fixture.put("a.ipynb", &notebook(&[edit, "print(1)", "print(3)"]));
    let told = fixture.ok("notebook", json!({ "action": "run", "path": "a.ipynb" })).await;
    for part in [
        "[cell 1 was edited before its turn: what it says now was run]",
        "[cell 2 was removed before its turn, and was not run]",
        "[cell 2: not run]",
    ] {
        assert!(told.contains(part), "{told}");
    }
    let expected = [("", 1), ("2\n", 2)];
    assert_eq!(printed(&fixture, "a.ipynb"), expected.map(|(text, count)| (text.to_owned(), json!(count))));
    // It ran, so it is not stale.
    let stale = fixture.ok("notebook", json!({ "action": "run", "path": "a.ipynb", "cell": "stale" })).await;
    assert!(!stale.contains("[cell 1: ok"), "{stale}");
}

#[tokio::test]
async fn k27_a_display_of_an_earlier_call_is_updated_where_it_stands() {
    let fixture = Fixture::new();
    fixture.put("a.ipynb", &notebook(&["h = display('one', display_id='k')", "h.update('two')", "print(1)"]));
    let run = |cell| json!({ "action": "run", "path": "a.ipynb", "cell": cell });
    for cell in ["0", "2", "1"] {
        fixture.ok("notebook", run(cell)).await;
    }
    let texts = |fixture| printed(fixture, "a.ipynb").into_iter().map(|(text, _)| text).collect::<Vec<_>>();
    assert_eq!(texts(&fixture), ["'two'", "", "1\n"]);
    // What was cleared meanwhile stays cleared.
    fixture.ok("notebook", json!({ "action": "clear", "path": "a.ipynb", "cell": 0 })).await;
    fixture.ok("notebook", run("1")).await;
    assert_eq!(texts(&fixture), ["", "", "1\n"]);
}

/// What a reply says of each cell, without the lines that say how it went.
fn told(reply: &str) -> Vec<String> {
    let cells = reply.split("[cell ").skip(1).map(|cell| cell.split_once("]\n").map_or("", |(_, text)| text));
    cells.map(|text| text.split("[kernel: ").next().unwrap_or_default().trim_end().to_owned()).collect()
}

#[tokio::test]
async fn k27_a_reply_shows_what_the_notebook_holds() {
    let fixture = Fixture::new();
    let cells = [
        "print('before')\nh = display('0%', display_id=True)\nprint('after', end='')",
        "import sys\nprint('log', end='')\nfor i in range(3): print(f'\\r{i} of 3', end='', file=sys.stderr, flush=True)\nh.update('50%')\nprint('more')",
        "from IPython.display import clear_output\nprint('gone')\nclear_output(wait=True)\nh.update('100%')",
        "print('old')\nclear_output(wait=True)\nprint('new')\nclear_output(wait=True)",
        "d = display('a', display_id='d')\nprint('between')\ndisplay('b', display_id='d')\n40 + 2",
    ];
    fixture.put("a.ipynb", &notebook(&cells));
    let reply = fixture.ok("notebook", json!({ "action": "run", "path": "a.ipynb" })).await;
    let kept = ["before\n'100%'\nafter", "log\n2 of 3\nmore", "gone", "new", "'b'\nbetween\n'b'\n42"];
    assert_eq!(told(&reply), kept, "{reply}");
    let read = fixture.ok("read", json!({ "path": "a.ipynb", "outputs": "text" })).await;
    let mut is_output = false;
    let outputs = read.lines().filter(|line| {
        let marker = line.strip_prefix("# %% ");
        is_output = marker.map_or(is_output, |marker| marker.starts_with("[output"));
        is_output && marker.is_none()
    });
    assert_eq!(outputs.collect::<Vec<_>>().join("\n"), kept.join("\n"), "{read}");
}

#[tokio::test]
async fn a_reply_names_updated_displays_of_other_cells() {
    let fixture = Fixture::new();
    fixture.put("a.ipynb", &notebook(&["h = display('one', display_id='k')", "h.update('two')\nprint(1)"]));
    let run = |cell| json!({ "action": "run", "path": "a.ipynb", "cell": cell });
    fixture.ok("notebook", run("0")).await;
    let reply = fixture.ok("notebook", run("1")).await;
    assert!(
        reply.contains("\n1\n") && reply.contains("[displays that were updated in cell 0]\n'two'"),
        "{reply}"
    );
    fixture.ok("eval", json!({ "session": "a.ipynb", "code": "h = display('here', display_id='e')" })).await;
    let reply = fixture.ok("notebook", run("1")).await;
    assert!(reply.contains("[displays that were updated in no cell of the notebook]\n'two'"), "{reply}");
}

#[tokio::test]
async fn stale_cells_are_those_edited_since_they_ran_and_all_after_them() {
    let fixture = Fixture::new();
    fixture.put("a.ipynb", &notebook(&["a = 1", "b = a + 1", "print(b)"]));
    let stale = json!({ "action": "run", "path": "a.ipynb", "cell": "stale" });
    let ran = |reply: &cellwright_tools::ToolReply| {
        let cells = reply.structured.as_ref().and_then(|data| data["cells"].as_array().cloned());
        cells.unwrap_or_default().iter().map(|cell| cell["cell"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(ran(&fixture.call("notebook", stale.clone()).await), [0, 1, 2]);
    let none = fixture.call("notebook", stale.clone()).await;
    assert_eq!((ran(&none), none.is_error), (vec![], false), "{}", none.to_text());
    // Others edit too, and leave the outputs where they are.
    fixture.put("a.ipynb", &fixture.get("a.ipynb").replace("a + 1", "a + 2"));
    assert_eq!(ran(&fixture.call("notebook", stale.clone()).await), [1, 2]);
    fixture.ok("notebook", json!({ "action": "run", "path": "a.ipynb", "cell": "0" })).await;
    assert_eq!(ran(&fixture.call("notebook", stale.clone()).await), [1, 2]);
    fixture.ok("kernel", json!({ "action": "restart", "session": "a.ipynb" })).await;
    assert_eq!(ran(&fixture.call("notebook", stale).await), [0, 1, 2]);
}

#[tokio::test]
async fn a_failing_cell_ends_the_run_and_what_was_done_is_kept() {
    let fixture = Fixture::new();
    fixture.put("a.ipynb", &notebook(&["print('one')", "1 / 0", "print('three')"]));
    let told = fixture.error("notebook", json!({ "action": "run", "path": "a.ipynb" })).await;
    assert!(told.contains("[cell 1: error") && told.contains("ZeroDivisionError"), "{told}");
    assert!(told.contains("[cell 2: not run"), "{told}");
    let after = cells(&fixture, "a.ipynb");
    assert_eq!(after[1]["outputs"][0]["ename"], "ZeroDivisionError");
    assert_eq!((&after[0]["execution_count"], &after[2]["execution_count"]), (&json!(1), &Value::Null));
    let on = json!({ "action": "run", "path": "a.ipynb", "allow_errors": true, "cell": "1-" });
    let told = fixture.ok("notebook", on).await;
    assert!(told.contains("three"), "{told}");
}

#[tokio::test]
async fn n15_a_text_of_all_cells_is_merged_with_what_others_did_since_it_was_read() {
    let fixture = Fixture::new();
    let write = |text: &str| json!({ "path": "a.ipynb", "content": text });
    let text = "# %% [code] cell:0\na\n# %% [code] cell:1\nb\n";
    fixture.put("a.ipynb", &notebook(&["a", "b"]));
    fixture.ok("read", json!({ "path": "a.ipynb" })).await;
    fixture.put("a.ipynb", &notebook(&["a", "theirs"]));
    fixture.ok("read", json!({ "path": "a.ipynb#0" })).await;
    let merged = fixture.ok("write", write(&text.replace("\na\n", "\nmine\n"))).await;
    assert!(merged.contains("merged with what others changed since you read it: cell 1 edited"), "{merged}");
    assert!(fixture.get("a.ipynb").contains("theirs") && fixture.get("a.ipynb").contains("mine"));
    // Of the cell that was merged the client knows no more than before.
    let both = fixture.error("write", write(&text.replace('b', "c"))).await;
    assert!(both.contains("[in the file now]\n# %% [code] cell:1\ntheirs\n[your version]"), "{both}");
    fixture.ok("read", json!({ "path": "a.ipynb" })).await;
    fixture.ok("write", write(text)).await;
    // A cell more in front, and the numbers of the text are those of others.
    let more = "# %% [code]\nnew\n# %% [code] cell:0\na\n# %% [code] cell:1\nc\n";
    fixture.ok("write", write(more)).await;
    let refused = fixture.error("write", write(more)).await;
    assert!(refused.contains("cells have other numbers than when you read them"), "{refused}");
    fixture.ok("read", json!({ "path": "a.ipynb" })).await;
    fixture.ok("notebook", json!({ "action": "insert", "path": "a.ipynb", "at": 0, "source": "new" })).await;
    let refused = fixture.error("write", write(text)).await;
    assert!(refused.contains("cells have other numbers than when you read them"), "{refused}");
    // A text without numbers is a new notebook, as often as one likes.
    for text in ["# %% [code]\nx\n", "# %% [code]\ny\n# %% [code]\nz\n"] {
        fixture.ok("write", write(text)).await;
    }
    // Reading a part does not permit deleting the rest.
    fixture.put("b.ipynb", &notebook(&["a", "b"]));
    fixture.ok("read", json!({ "path": "b.ipynb#1" })).await;
    let part = json!({ "path": "b.ipynb", "content": "# %% [code] cell:1\nb\n" });
    let refused = fixture.error("write", part).await;
    assert!(refused.contains("you have not seen all of cell 0"), "{refused}");
}

#[tokio::test]
async fn n15_a_cell_named_by_its_place_is_not_run_when_the_file_has_changed() {
    let fixture = Fixture::new();
    fixture.put("a.ipynb", &notebook(&["print('a')", "print('b')"]));
    fixture.ok("read", json!({ "path": "a.ipynb" })).await;
    fixture.put("a.ipynb", &notebook(&["print('new')", "print('a')", "print('b')"]));
    let refused = fixture.error("notebook", json!({ "action": "run", "path": "a.ipynb", "cell": 1 })).await;
    assert!(refused.contains("changed since you read it, so nothing was done (cell 1 edited)"), "{refused}");
    assert_eq!(printed(&fixture, "a.ipynb"), vec![(String::new(), Value::Null); 3]);
}

#[tokio::test]
async fn a_cell_named_by_its_place_is_run_when_only_outputs_have_changed() {
    let fixture = Fixture::new();
    fixture.put("a.ipynb", &notebook(&["print('a')", "print('b')"]));
    fixture.ok("read", json!({ "path": "a.ipynb" })).await;
    let output = json!([{"name": "stdout", "output_type": "stream", "text": ["theirs\n"]}]);
    fixture.put("a.ipynb", &fixture.get("a.ipynb").replacen("[]", &output.to_string(), 1));
    let ran = fixture.ok("notebook", json!({ "action": "run", "path": "a.ipynb", "cell": 1 })).await;
    assert!(ran.contains("[cell 1: ok"), "{ran}");
    let texts: Vec<_> = printed(&fixture, "a.ipynb").into_iter().map(|(text, _)| text).collect();
    assert_eq!(texts, ["theirs\n", "b\n"]);
}

#[tokio::test]
async fn a_run_in_the_background_returns_at_once_and_is_recorded() {
    let fixture = Fixture::new();
    // It ends when someone lets it.
    let wait = "import os, time\nprint('begun')\nwhile not os.path.exists('go'):\n    time.sleep(0.01)\nprint('done')";
    fixture.put("a.ipynb", &notebook(&[wait]));
    let run = json!({ "action": "run", "path": "a.ipynb", "background": true });
    let reply = fixture.call("notebook", run).await;
    assert!(!reply.is_error, "{}", reply.to_text());
    let handle = reply.structured.as_ref().unwrap()["handle"].clone();
    // What it shows is reported while it runs.
    let progress = json!({ "action": "output", "handle": handle });
    eventually("the first line", async || {
        let so_far = fixture.ok("kernel", progress.clone()).await;
        so_far.contains("begun") && so_far.contains("is still running")
    })
    .await;
    fixture.put("go", "");
    let waited = fixture.ok("kernel", json!({ "action": "wait", "handle": handle, "timeout": 60 })).await;
    assert!(waited.contains("[cell 0: ok") && waited.contains("done"), "{waited}");
    assert_eq!(printed(&fixture, "a.ipynb"), [("begun\ndone\n".to_owned(), json!(1))]);
    // It can be asked for again.
    let again = fixture.ok("kernel", json!({ "action": "output", "handle": handle })).await;
    assert!(again.contains("[cell 0: ok") && again.contains("done"), "{again}");
}

/// `wait` returned before the last outputs were in the file, two times of three.
#[tokio::test]
async fn wait_returns_when_the_notebook_holds_what_it_reports() {
    let fixture = Fixture::new();
    let sources: Vec<_> = (0..20).map(|number| format!("print({number})")).collect();
    let sources: Vec<_> = sources.iter().map(String::as_str).collect();
    for _ in 0..5 {
        fixture.put("a.ipynb", &notebook(&sources));
        let run = json!({ "action": "run", "path": "a.ipynb", "background": true });
        let reply = fixture.call("notebook", run).await;
        if let Some(handle) = reply.structured.as_ref().unwrap().get("handle") {
            let wait = json!({ "action": "wait", "handle": handle, "timeout": 60 });
            let waited = fixture.ok("kernel", wait).await;
            assert!(waited.contains("[cell 19: ok"), "{waited}");
        }
        let texts: Vec<_> = printed(&fixture, "a.ipynb").into_iter().map(|(text, _)| text).collect();
        let expected: Vec<_> = (0..20).map(|number| format!("{number}\n")).collect();
        assert_eq!(texts, expected);
    }
}

/// All later outputs went to a file beside the notebook, and `wait` said ok.
#[tokio::test]
async fn a_background_run_whose_cell_was_edited_says_where_its_outputs_are() {
    let fixture = Fixture::new();
    let wait = "import os, time\nopen('begun', 'w').close()\nwhile not os.path.exists('go'):\n    time.sleep(0.01)\nprint('done')";
    fixture.put("a.ipynb", &notebook(&[wait, "print('next')"]));
    let run = json!({ "action": "run", "path": "a.ipynb", "background": true });
    let reply = fixture.call("notebook", run).await;
    let handle = reply.structured.as_ref().unwrap()["handle"].clone();
    let begun = fixture.path().join("begun");
    eventually("the first cell", async || begun.exists()).await;
    let output = fixture.ok("kernel", json!({ "action": "output", "handle": handle })).await;
    assert!(output.contains("is still running"), "{output}");
    fixture.put("a.ipynb", &notebook(&["print('theirs')", "print('next')"]));
    fixture.put("go", "");
    for action in ["wait", "output"] {
        let reply = fixture.call("kernel", json!({ "action": action, "handle": handle })).await;
        let told = reply.to_text();
        assert!(reply.is_error, "{told}");
        assert!(told.contains("cell 0 was edited while it ran here; the notebook was left alone"), "{told}");
        assert!(told.contains("a.run.ipynb"), "{told}");
        assert_eq!(reply.structured.as_ref().unwrap()["saved"], json!(false), "{told}");
    }
    let texts: Vec<_> = printed(&fixture, "a.run.ipynb").into_iter().map(|(text, _)| text).collect();
    assert_eq!(texts, ["done\n", "next\n"]);
}

#[tokio::test]
async fn a_cell_that_is_no_place_is_refused_with_what_would_be_one() {
    let fixture = Fixture::new();
    fixture.put("a.ipynb", &notebook(&["1"]));
    for (cell, why) in [
        (json!({ "index": 0 }), "an index from 0, or a text such as `3`, `2,5-7` or `id:abc`"),
        (json!(-1), "-1 is not an index; they count from 0"),
        (json!(0.5), "0.5 is not an index; they count from 0"),
    ] {
        let refused =
            fixture.error("notebook", json!({ "action": "run", "path": "a.ipynb", "cell": cell })).await;
        assert!(refused.contains(why), "{refused}");
    }
    for cell in [json!("cell:0"), json!("#0"), json!(0.0), json!([0]), json!("0")] {
        fixture.ok("notebook", json!({ "action": "run", "path": "a.ipynb", "cell": cell })).await;
    }
}

#[tokio::test]
async fn a_run_that_takes_long_goes_on_in_the_background_and_is_still_recorded() {
    let fixture = Fixture::changed(|settings| {
        settings.background = BackgroundPolicy::After(Duration::from_millis(200));
    });
    fixture.put(
        "a.ipynb",
        &notebook(&["import time\nprint('begun', flush=True)\ntime.sleep(1)\nprint('done')"]),
    );
    let reply = fixture.call("notebook", json!({ "action": "run", "path": "a.ipynb" })).await;
    let handle = reply.structured.as_ref().unwrap()["handle"].clone();
    assert!(reply.to_text().contains("continues in the background"), "{}", reply.to_text());
    let waited = fixture.ok("kernel", json!({ "action": "wait", "handle": handle, "timeout": 60 })).await;
    assert!(waited.contains("done"), "{waited}");
    assert_eq!(printed(&fixture, "a.ipynb"), [("begun\ndone\n".to_owned(), json!(1))]);
}

/// A cell that shows an image.
const DISPLAYS_IMAGE: &str = "from IPython.display import Image, display\nimport base64\ndisplay(Image(data=base64.b64decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='), format='png'))";

#[tokio::test]
async fn images_of_a_run_are_shown() {
    let fixture = Fixture::new();
    fixture.put("a.ipynb", &notebook(&[DISPLAYS_IMAGE]));
    let reply = fixture.call("notebook", json!({ "action": "run", "path": "a.ipynb", "timeout": 120 })).await;
    let images = reply.content.iter().filter(|content| matches!(content, ReplyPart::Image(_))).count();
    assert_eq!(images, 1, "{}", reply.to_text());
    assert!(cells(&fixture, "a.ipynb")[0]["outputs"][0]["data"]["image/png"].is_string());
}

#[tokio::test]
async fn no_two_images_of_a_run_have_the_same_name() {
    let fixture = Fixture::new();
    let twice = format!("{DISPLAYS_IMAGE}\n{DISPLAYS_IMAGE}");
    fixture.put("a.ipynb", &notebook(&[DISPLAYS_IMAGE, "1", &twice]));
    let told = fixture.ok("notebook", json!({ "action": "run", "path": "a.ipynb", "timeout": 120 })).await;
    for name in ["image 1 of cell 0", "image 1 of cell 2", "image 2 of cell 2"] {
        assert_eq!(told.matches(&format!("[{name}: image/png")).count(), 1, "{told}");
    }
}
