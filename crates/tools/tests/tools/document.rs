//! `docs/tools.md` lists the tools with their arguments, and a real call and reply of each.

use std::fmt::Write as _;

use cellwright_testkit::check_document;
use cellwright_tools::{ReplyPart, ToolReply, ToolSpec};
use serde_json::{Value, json};

use crate::support::Fixture;

/// The calls of the page, in an order in which each one finds what it needs.
fn examples() -> Vec<(&'static str, Value)> {
    vec![
        ("eval", json!({ "code": "n = 6\nprint(n)\nn * 7" })),
        ("eval", json!({ "cells": [{ "code": "1 / 0", "title": "divide" }, { "code": "2" }] })),
        (
            "write",
            json!({ "path": "new.ipynb", "content": "# %% [markdown]\n# Title\n# %% [code]\nprint(1)\n" }),
        ),
        ("read", json!({ "path": "new.ipynb" })),
        ("edit", json!({ "path": "new.ipynb", "old": "print(1)", "new": "print(2)" })),
        ("notebook", json!({ "action": "insert", "path": "new.ipynb", "source": "n = 3\nn", "run": true })),
        ("notebook", json!({ "action": "delete", "path": "new.ipynb", "cell": 2 })),
        ("notebook", json!({ "action": "history", "path": "new.ipynb" })),
        ("kernel", json!({ "action": "list" })),
        ("bash", json!({ "command": "echo out; echo err >&2; exit 3" })),
    ]
}

/// The type of an argument, as a reader knows it.
fn type_of(schema: &Value) -> String {
    let names: Vec<_> = match &schema["type"] {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        name => name.as_str().into_iter().collect(),
    };
    match (&schema["enum"], &names[..]) {
        (Value::Array(values), _) => {
            let values: Vec<_> =
                values.iter().map(|value| format!("`{}`", value.as_str().unwrap())).collect();
            values.join(", ")
        }
        (_, []) => {
            let any = schema["anyOf"].as_array().expect("a type, values or a choice");
            any.iter().map(type_of).collect::<Vec<_>>().join(" or ")
        }
        (_, ["array"]) => format!("list of {}s", type_of(&schema["items"])),
        (_, names) => names.join(" or "),
    }
}

/// Prose in lines of at most 100 columns.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one");
        match line.chars().count() + 1 + word.chars().count() {
            _ if line.is_empty() => line.push_str(word),
            ..=100 => line.extend([" ", word]),
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

fn arguments(spec: &ToolSpec, out: &mut String) {
    out.push_str("| argument | type | what it does |\n|---|---|---|\n");
    let required = spec.schema.get("required").and_then(Value::as_array);
    for (name, schema) in spec.schema["properties"].as_object().expect("arguments are an object") {
        let is_required = required.is_some_and(|all| all.iter().any(|one| one == name));
        let about = schema["description"].as_str().unwrap_or_default().replace('|', "\\|");
        let required = if is_required { " (required)" } else { "" };
        writeln!(out, "| `{name}`{required} | {} | {about} |", type_of(schema)).unwrap();
    }
}

/// A reply with what differs from run to run replaced: times, fingerprints, ids, folders and memory.
fn reply(fixture: &Fixture, reply: &ToolReply) -> String {
    let mut out = String::new();
    for content in &reply.content {
        let (ReplyPart::Text(text) | ReplyPart::Note(text)) = content else {
            panic!("the examples show no images")
        };
        out.push_str(text.trim_end_matches('\n'));
        out.push('\n');
    }
    let structured = reply.structured.as_ref().map(ToString::to_string).unwrap_or_default();
    let kind = if reply.is_error { "Its reply, flagged as an error:" } else { "Its reply:" };
    let out = format!("{kind}\n\n```text\n{out}```\n\n```json\n{structured}\n```\n\n");
    let folder = fixture.path().canonicalize().unwrap();
    let mut out = out.replace(folder.to_str().unwrap(), "/work");
    for (pattern, with) in [
        (r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "2026-11-18 07:10 UTC"),
        (r"cpython [0-9.]+ at \S+ \(as named\)", "cpython 3.12.4 at /usr/bin/python3 (on PATH)"),
        (r"\bcpython [0-9.]+", "cpython 3.12.4"),
        (r#""program":"[^"]+""#, r#""program":"/usr/bin/python3""#),
        (r#""pid":\d+"#, r#""pid":4711"#),
        (r#""time":\d+"#, r#""time":1794985800"#),
        (r#""(duration|uptime)":[0-9.e-]+"#, r#""$1":0.1"#),
        (r#""memory":\d+"#, r#""memory":20000000"#),
        (r#""fingerprint":"[^"]+""#, r#""fingerprint":"…""#),
        (r#""id":"[0-9a-f]{8}""#, r#""id":"abcd1234""#),
        (r"\b\d+(\.\d+)? MB\b", "20 MB"),
        (r"\b\d+(\.\d+)? (ms|s)\b", "0.1 s"),
    ] {
        out = regex::Regex::new(pattern).unwrap().replace_all(&out, with).into_owned();
    }
    out
}

#[tokio::test]
async fn the_page_of_tools_is_up_to_date() {
    let fixture = Fixture::new();
    let mut calls = Vec::new();
    for (tool, arguments) in examples() {
        let answer = fixture.call(tool, arguments.clone()).await;
        calls.push((tool, arguments, reply(&fixture, &answer)));
    }
    let mut out = String::new();
    for spec in fixture.specs() {
        let (about, _) = spec.description.split_once(" Example: ").expect("a description has an example");
        write!(out, "## `{}`\n\n{}\n\n", spec.name, wrapped(about)).unwrap();
        arguments(&spec, &mut out);
        out.push('\n');
        for (_, arguments, reply) in calls.iter().filter(|(tool, ..)| *tool == spec.name) {
            write!(out, "A call:\n\n```json\n{arguments}\n```\n\n{reply}").unwrap();
        }
    }
    check_document("tools.md", "crates/tools/tests/tools/document.rs", &format!("\n{out}"));
}
