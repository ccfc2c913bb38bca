//! What cells do while they run, as outputs in a file.

use std::sync::Arc;

use cellwright_cell::Stream::{Stderr, Stdout};
use cellwright_cell::{Exception, MimeBundle, Output, OutputChange};
use cellwright_notebook::Notebook;
use cellwright_notebook::recording::{CellTiming, Recording};
use serde_json::{Value, json};

/// Most bytes of a cell here.
const LIMIT: usize = 10_000;

/// Records as `does` says, and gives back the outputs of cell 0 and 1.
fn recorded(does: impl FnOnce(&mut Recording)) -> [Value; 2] {
    let cell = |id: &str| json!({"cell_type": "code", "execution_count": 7, "id": id, "metadata": {}, "outputs": [1], "source": "x"});
    let text = json!({"cells": [cell("a"), cell("b")], "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    let notebook = Notebook::parse(serde_json::to_vec_pretty(&text).unwrap()).unwrap();
    let mut recording = Recording::new(LIMIT);
    does(&mut recording);
    let results = [0, 1].map(|cell| recording.results(cell));
    let saved = notebook.with_results(results.iter().enumerate());
    let saved: Value = serde_json::from_str(saved.text()).unwrap();
    [0, 1].map(|cell| saved["cells"][cell]["outputs"].clone())
}

fn text(text: &str) -> Arc<MimeBundle> {
    let Value::Object(data) = json!({ "text/plain": text }) else { unreachable!() };
    Arc::new(data.into())
}

fn shown(text: &str) -> Value {
    json!({"data": {"text/plain": [text]}, "metadata": {}, "output_type": "display_data"})
}

fn printed(name: &str, lines: &[&str]) -> Value {
    json!({"name": name, "output_type": "stream", "text": lines})
}

#[test]
fn text_in_a_row_is_one_output() {
    let [outputs, nothing] = recorded(|recording| {
        recording.reducer().print(0, Stdout, "a\nb");
        recording.reducer().print(0, Stdout, "c\n");
        recording.reducer().print(0, Stderr, "e\n");
        recording.reducer().print(0, Stdout, "10%\r");
        recording.reducer().print(0, Stdout, "20%");
    });
    assert_eq!(
        outputs,
        json!([
            printed("stdout", &["a\n", "bc\n"]),
            printed("stderr", &["e\n"]),
            printed("stdout", &["20%"])
        ])
    );
    assert_eq!(nothing, json!([]));
}

#[test]
fn k27_clearing_waits_for_the_next_output_when_asked() {
    let [first, second] = recorded(|recording| {
        recording.reducer().print(0, Stdout, "old\n");
        recording.reducer().clear(0, true);
        recording.reducer().clear(0, true);
        recording.reducer().print(0, Stdout, "new\n");
        recording.reducer().print(1, Stdout, "old\n");
        recording.reducer().clear(1, true);
    });
    assert_eq!(
        (first, second),
        (json!([printed("stdout", &["new\n"])]), json!([printed("stdout", &["old\n"])]))
    );
    let [first, _] = recorded(|recording| {
        recording.reducer().print(0, Stdout, "old\n");
        recording.reducer().clear(0, false);
    });
    assert_eq!(first, json!([]));
}

#[test]
fn k27_a_display_is_updated_wherever_it_was_shown() {
    let mut changed = Vec::new();
    let [first, second] = recorded(|recording| {
        recording.reducer().display(0, &text("one"), Some("d"));
        recording.reducer().display(0, &text("other"), None);
        changed.push(recording.reducer().display(1, &text("two"), Some("d")));
        changed.push(recording.reducer().update("d", &text("three")));
        changed.push(recording.reducer().update("unknown", &text("never")));
    });
    assert_eq!((first, second), (json!([shown("three"), shown("other")]), json!([shown("three")])));
    assert_eq!(changed, [vec![0], vec![0, 1], vec![]]);
}

#[test]
fn a_display_that_was_cleared_is_not_updated() {
    let [first, _] = recorded(|recording| {
        recording.reducer().display(0, &text("one"), Some("d"));
        recording.reducer().clear(0, false);
        recording.reducer().display(0, &text("two"), None);
        assert!(recording.reducer().update("d", &text("three")).is_empty());
    });
    assert_eq!(first, json!([shown("two")]));
}

#[test]
fn values_are_stored_as_nbformat_stores_them() {
    let [outputs, _] = recorded(|recording| {
        let Value::Object(data) = json!({
            "text/plain": "a\nb", "image/svg+xml": "<svg>\n</svg>", "image/png": "iVBO\nRw0K\n",
            "application/json": {"z": [1.0, null], "a": "x\ny"}, "application/vnd.x+json": "s\nt",
        }) else {
            unreachable!()
        };
        let Value::Object(metadata) = json!({"image/png": {"width": 3}}) else { unreachable!() };
        let content = Arc::new(MimeBundle { metadata, ..data.into() });
        let result = Output::Result { content, count: Some(4) };
        recording.reducer().apply(0, &OutputChange::Added(result));
        let raised = Exception {
            name: "E".into(),
            message: "m".into(),
            traceback: vec!["t\nu".into()],
            line: Some(1),
        };
        recording.error(0, raised);
    });
    let expected = json!([
        {
            "data": {
                "application/json": {"z": [1.0, null], "a": "x\ny"}, "application/vnd.x+json": "s\nt",
                "image/png": "iVBO\nRw0K\n", "image/svg+xml": ["<svg>\n", "</svg>"], "text/plain": ["a\n", "b"],
            },
            "execution_count": 4, "metadata": {"image/png": {"width": 3}}, "output_type": "execute_result",
        },
        {"ename": "E", "evalue": "m", "output_type": "error", "traceback": ["t\nu"]},
    ]);
    assert_eq!(outputs.to_string(), expected.to_string());
}

#[test]
fn json_under_a_type_that_is_not_json_is_kept_as_text() {
    let [outputs, _] = recorded(|recording| {
        let Value::Object(data) = json!({
            "application/json": [1], "application/vnd.example+json": {"a": 1},
            "application/vnd.example.json": {"a": 1}, "text/plain": "two\nlines",
        }) else {
            unreachable!()
        };
        recording.reducer().display(0, &Arc::new(data.into()), None);
    });
    let expected = json!({
        "application/json": [1], "application/vnd.example+json": {"a": 1},
        "application/vnd.example.json": r#"{"a":1}"#, "text/plain": ["two\n", "lines"],
    });
    assert_eq!(outputs[0]["data"], expected);
}

#[test]
fn a_number_that_is_too_big_for_us_keeps_its_digits() {
    let big = "10000000000000000000000000000000000000000";
    let exact = format!(r#"{{"big":{big},"list":[1.50,{{}},"a\u00e9"]}}"#);
    let data = format!(r#"{{"application/json": {exact}, "application/x.json": [{big}]}}"#);
    let data = serde_json::from_str(&data).unwrap();
    let mut recording = Recording::new(1000);
    recording.reducer().display(0, &Arc::new(MimeBundle { data, ..MimeBundle::default() }), None);
    let text = "{\n \"cells\": [\n  {\n   \"cell_type\": \"code\",\n   \"metadata\": {},\n   \"outputs\": [],\n   \"source\": []\n  }\n ],\n \"metadata\": {},\n \"nbformat\": 4,\n \"nbformat_minor\": 4\n}\n";
    let notebook = Notebook::parse(text.into()).unwrap();
    let saved = notebook.with_results([(0, &recording.results(0))]);
    let expected = format!(
        "      \"application/json\": {{\n       \"big\": {big},\n       \"list\": [\n        1.50,\n        {{}},\n        \"aé\"\n       ]\n      }},\n      \"application/x.json\": \"[{big}]\"\n"
    );
    assert!(saved.text().contains(&expected), "{}", saved.text());
}

#[test]
fn too_much_is_bounded_and_says_so() {
    let [outputs, _] = recorded(|recording| {
        for line in 0..50_000 {
            recording.reducer().print(0, Stdout, &format!("line {line}\n"));
        }
        recording.reducer().display(0, &text(&"x".repeat(20_000)), None);
        recording.error(0, Exception { name: "E".into(), ..Exception::default() });
        recording.kept_whole(0, "artifact://abc");
    });
    let lines: Vec<_> =
        outputs[0]["text"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert_eq!((lines[0], *lines.last().unwrap()), ("line 0\n", "line 49999\n"));
    let notice = lines.iter().find(|line| line.starts_with("[…")).unwrap();
    assert!(notice.contains("bytes not kept in the notebook; all of it: artifact://abc]"), "{notice}");
    assert_eq!(
        outputs[1],
        shown("[text/plain, 20000 bytes: not kept, for a cell's outputs may take 10000 bytes]")
    );
    assert_eq!(outputs[2]["ename"], "E");
}

#[test]
fn what_is_shown_and_does_not_fit_is_stored_and_what_was_cleared_makes_room() {
    let large = || text(&"x".repeat(8000));
    let [outputs, _] = recorded(|recording| {
        *recording = Recording::new(LIMIT).with_store(Box::new(|_| Some("artifact://abc".into())));
        recording.reducer().display(0, &large(), None);
        recording.reducer().clear(0, true);
        recording.reducer().display(0, &large(), None);
        recording.reducer().display(0, &large(), None);
    });
    let note = "[text/plain, 8000 bytes: not kept, for a cell's outputs may take 10000 bytes; all of it: artifact://abc]";
    assert_eq!(outputs, json!([shown(&"x".repeat(8000)), shown(note)]));
}

#[test]
fn what_was_overwritten_takes_no_room() {
    let [outputs, _] = recorded(|recording| {
        for frame in 0..9000 {
            recording.reducer().print(0, Stdout, &format!("\r{frame:4000}"));
        }
        recording.reducer().display(0, &text("still shown"), None);
        recording.reducer().print(0, Stdout, "after");
    });
    let bar = format!("{:4000}", 8999);
    assert_eq!(
        outputs,
        json!([printed("stdout", &[&bar]), shown("still shown"), printed("stdout", &["after"])])
    );
}

#[test]
fn a_cell_that_prints_to_both_streams_for_ever_keeps_one_beginning_and_one_end() {
    let [outputs, _] = recorded(|recording| {
        for line in 0..200_000 {
            recording.reducer().print(0, Stdout, &format!("out {line}\n"));
            recording.reducer().print(0, Stderr, &format!("err {line}\n"));
        }
        recording.error(0, Exception { name: "E".into(), ..Exception::default() });
    });
    let outputs = outputs.as_array().unwrap();
    assert!(outputs.len() < 300, "{}", outputs.len());
    let text = serde_json::to_string(outputs).unwrap();
    assert!(text.len() < 200_000, "{}", text.len());
    assert_eq!(text.matches("not kept in the notebook").count(), 1);
    assert!(text.contains("out 0\\n") && text.contains("err 199999\\n"));
    assert_eq!(outputs.last().unwrap()["ename"], "E");
}

#[test]
fn a_display_that_is_updated_to_too_much_is_bounded_too() {
    let [outputs, _] = recorded(|recording| {
        recording.reducer().display(0, &text("small"), Some("d"));
        assert_eq!(recording.reducer().update("d", &text(&"z".repeat(40_000))), [0]);
    });
    let note = "[text/plain, 40000 bytes: not kept, for a cell's outputs may take 10000 bytes]";
    assert_eq!(outputs, json!([shown(note)]));
    let [outputs, _] = recorded(|recording| {
        recording.reducer().display(0, &text(&"z".repeat(9000)), Some("d"));
        recording.reducer().update("d", &text("small"));
        recording.reducer().display(0, &text(&"y".repeat(8000)), None);
    });
    assert_eq!(outputs, json!([shown("small"), shown(&"y".repeat(8000))]));
}

#[test]
fn an_exception_with_too_much_to_say_is_shortened() {
    let [outputs, _] = recorded(|recording| {
        let traceback = (0..100_000).map(|line| format!("line {line}")).collect();
        let message = "m".repeat(1_000_000);
        recording.error(0, Exception { name: "E".into(), message, traceback, line: None });
    });
    let error = &outputs[0];
    assert!(error.to_string().len() < 64 * 1024);
    assert!(error["evalue"].as_str().unwrap().ends_with("m[… 983616 bytes not kept in the notebook]"));
    let traceback = error["traceback"].as_array().unwrap();
    assert!(traceback[0].as_str().unwrap().contains("bytes not kept in the notebook"), "{}", traceback[0]);
    assert_eq!(traceback.last().unwrap(), "line 99999");
}

#[test]
fn a_file_is_written_in_its_own_hand_and_nothing_else_changes() {
    let mut recording = Recording::new(1000);
    recording.begin(0, Some(CellTiming { started: "S".into(), ended: None }));
    recording.reducer().print(0, Stdout, "é\n");
    recording.end(0, Some(3), || "E".into());
    let results = recording.results(0);
    for (before, after) in [
        // As Jupyter writes.
        (
            "{\n \"cells\": [\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"a\",\n   \"metadata\": {},\n   \"outputs\": [],\n   \"source\": []\n  }\n ],\n \"metadata\": {\"x\": 1.0},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n",
            "{\n \"cells\": [\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": 3,\n   \"id\": \"a\",\n   \"metadata\": {\n    \"execution\": {\n     \"iopub.execute_input\": \"S\",\n     \"iopub.status.busy\": \"S\",\n     \"iopub.status.idle\": \"E\",\n     \"shell.execute_reply\": \"E\"\n    }\n   },\n   \"outputs\": [\n    {\n     \"name\": \"stdout\",\n     \"output_type\": \"stream\",\n     \"text\": [\n      \"é\\n\"\n     ]\n    }\n   ],\n   \"source\": []\n  }\n ],\n \"metadata\": {\"x\": 1.0},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n",
        ),
        // On one line, escaped, without some of the keys.
        (
            "{\"nbformat\":4,\"nbformat_minor\":2,\"metadata\":{\"t\":\"\\u00e4\"},\"cells\":[{\"source\":\"x\",\"cell_type\":\"code\",\"metadata\":{\"z\":1}}]}",
            "{\"nbformat\":4,\"nbformat_minor\":2,\"metadata\":{\"t\":\"\\u00e4\"},\"cells\":[{\"execution_count\":3,\"outputs\":[{\"name\":\"stdout\",\"output_type\":\"stream\",\"text\":[\"\\u00e9\\n\"]}],\"source\":\"x\",\"cell_type\":\"code\",\"metadata\":{\"execution\":{\"iopub.execute_input\":\"S\",\"iopub.status.busy\":\"S\",\"iopub.status.idle\":\"E\",\"shell.execute_reply\":\"E\"},\"z\":1}}]}",
        ),
    ] {
        let notebook = Notebook::parse(before.into()).unwrap();
        assert_eq!(notebook.with_results([(0, &results)]).text(), after);
    }
}

#[test]
fn what_was_just_recorded_can_be_recorded_over() {
    let cell =
        |id: &str| json!({"cell_type": "code", "id": id, "metadata": {}, "outputs": [], "source": "x"});
    let file = json!({"cells": [cell("a"), cell("b"), cell("c")], "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    let mut notebook = Notebook::parse(serde_json::to_vec_pretty(&file).unwrap()).unwrap();
    for cells in [&[1][..], &[0, 2], &[], &[1], &[0, 1, 2]] {
        let mut recording = Recording::new(LIMIT);
        for cell in cells {
            recording.begin(*cell, None);
            recording.reducer().print(*cell, Stdout, &format!("{cell} of {cells:?}\n"));
            recording.reducer().display(*cell, &text("shown"), None);
            recording.end(*cell, Some(3), String::new);
        }
        let results: Vec<_> = cells.iter().map(|cell| (*cell, recording.results(*cell))).collect();
        let saved = notebook.with_results(results.iter().map(|(cell, results)| (*cell, results)));
        let read = Notebook::parse(notebook.text().into()).unwrap();
        let expected = read.with_results(results.iter().map(|(cell, results)| (*cell, results)));
        assert_eq!(saved.text(), expected.text());
        let shown = |notebook: &Notebook| {
            notebook.with_display(1, 1, &text("anew")).map(|notebook| notebook.text().to_owned())
        };
        assert_eq!(shown(&saved), shown(&expected));
        notebook = saved;
    }
}
