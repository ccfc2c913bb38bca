//! What a model is told when it edits notebooks: the scenarios of `scenarios.md`, each call with its reply and the file
//! before and after. `CELLWRIGHT_BLESS=1` writes what happens into that file, to be read before it is committed.

use std::fmt::Write as _;
use std::path::Path;

use cellwright_notebook::{Notebook, OutputsAfterEdit, text};
use serde_json::Value;

use crate::support::Fixture;

/// One part of a scenario.
enum Part {
    /// Text between the others.
    Prose(String),
    /// A block of the kind that its first word says: `before`, `call`, `reply`, `refused`, `others`, `after`.
    Block { kind: String, lines: String },
}

fn parts(document: &str) -> Vec<Part> {
    let mut parts = vec![Part::Prose(String::new())];
    let mut open = false;
    for line in document.split_inclusive('\n') {
        match (line.trim_end().strip_prefix("```"), &mut open) {
            (Some(kind), open @ false) => {
                *open = true;
                parts.push(Part::Block { kind: kind.to_owned(), lines: String::new() });
            }
            (Some(_), open @ true) => {
                *open = false;
                parts.push(Part::Prose(String::new()));
            }
            (None, _) => match parts.last_mut().expect("there is one") {
                Part::Prose(text) | Part::Block { lines: text, .. } => text.push_str(line),
            },
        }
    }
    parts
}

#[tokio::test]
async fn what_a_model_reads_when_it_edits_notebooks() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools/scenarios.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let (mut fixture, mut is_error, mut reply) = (Fixture::new(), false, String::new());
    let times = regex::Regex::new(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC").unwrap();
    let (mut happened, mut scenarios) = (String::new(), 0);
    for part in parts(&document) {
        let Part::Block { kind, lines } = part else {
            let Part::Prose(text) = part else { unreachable!("there are two kinds") };
            scenarios += text.matches("\n## ").count();
            happened.push_str(&text);
            continue;
        };
        let (kind, lines) = match kind.as_str() {
            "before" => {
                fixture = Fixture::new();
                fixture.put("nb.ipynb", &notebook(&lines));
                (kind, lines)
            }
            "json" => {
                fixture = Fixture::new();
                fixture.put("nb.ipynb", &lines);
                (kind, lines)
            }
            "others" => {
                let now = Notebook::parse(fixture.get("nb.ipynb").into_bytes()).unwrap();
                let changed = now
                    .write(&text::parse(&lines).unwrap(), OutputsAfterEdit::Clear)
                    .unwrap()
                    .notebook
                    .unwrap();
                fixture.put("nb.ipynb", changed.text());
                (kind, lines)
            }
            "call" => {
                let (tool, arguments) = lines.split_once(' ').unwrap();
                let arguments: Value = serde_json::from_str(arguments).expect("arguments are JSON");
                let told = fixture.call(tool, arguments).await;
                let text = times.replace_all(&told.to_text(), "TIME").into_owned();
                (is_error, reply) = (told.is_error, text);
                (kind, lines)
            }
            "reply" | "refused" => {
                let kind = if is_error { "refused" } else { "reply" };
                (kind.to_owned(), format!("{}\n", reply.trim_end_matches('\n')))
            }
            "after" => {
                let now = Notebook::parse(fixture.get("nb.ipynb").into_bytes()).unwrap();
                (kind, now.to_marked_text())
            }
            other => panic!("no block is called {other}"),
        };
        write!(happened, "```{kind}\n{lines}```\n").unwrap();
    }
    if std::env::var_os("CELLWRIGHT_BLESS").is_some() {
        std::fs::write(&path, &happened).unwrap();
    }
    for (at, (is, was)) in happened.lines().zip(document.lines()).enumerate() {
        assert_eq!(is, was, "line {} of scenarios.md", at + 1);
    }
    assert_eq!(happened.lines().count(), document.lines().count());
    assert!(scenarios >= 40, "{scenarios} scenarios");
}

/// A notebook of these cells, with the ids `a`, `b`, …, and an output in each code cell.
fn notebook(marked: &str) -> String {
    let cells = text::parse(marked).unwrap();
    let cells = cells.iter().zip('a'..).map(|(cell, id)| {
        let mut json = serde_json::json!({
            "cell_type": cell.cell.kind.name(), "id": id.to_string(), "metadata": {}, "source": cell.cell.source,
        });
        if cell.cell.kind.name() == "code" {
            json["execution_count"] = 1.into();
            json["outputs"] = serde_json::json!([{"name": "stdout", "output_type": "stream", "text": "done\n"}]);
        }
        json
    });
    let whole = serde_json::json!({
        "cells": cells.collect::<Vec<_>>(), "metadata": {}, "nbformat": 4, "nbformat_minor": 5,
    });
    serde_json::to_string_pretty(&whole).unwrap()
}
