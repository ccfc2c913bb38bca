//! What a displayed value looks like as text: the same choice at every door.
//!
//! The agent kernel is one more door: `acp/tests/kernel/references.rs` puts the same table through it.

use std::fs;
use std::process::{Command, Stdio};

use cellwright_testkit::{BundleCase, bundle_cases};
use serde_json::json;
use tempfile::TempDir;

fn cellwright(folder: &TempDir, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cellwright"));
    command.args(arguments).current_dir(folder.path()).stdin(Stdio::null());
    let output = command.env("HOME", folder.path()).env("XDG_RUNTIME_DIR", folder.path()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{arguments:?}\n{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Code that displays the bundle between two lines that name it.
fn code(BundleCase { kind, data, .. }: &BundleCase) -> String {
    let data = serde_json::to_string(&data.to_string()).unwrap();
    format!(
        "import json\nprint('<{kind}' + '>')\ndisplay(json.loads({data}), raw=True)\nprint('</{kind}' + '>')\n"
    )
}

#[test]
fn each_kind_of_bundle_looks_the_same_at_every_door() {
    let folder = tempfile::tempdir().unwrap();
    let cases = bundle_cases();
    let all: String = cases.iter().map(code).collect();
    let cells = cases.iter().map(|case| {
        json!({"cell_type": "code", "execution_count": null, "id": format!("c{}", case.shown.len()), "metadata": {},
            "outputs": [], "source": code(case)})
    });
    let cells: Vec<_> = cells.collect();
    let notebook = json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4});
    fs::write(folder.path().join("nb.ipynb"), notebook.to_string()).unwrap();
    fs::write(folder.path().join("all.py"), &all).unwrap();
    let doors = [
        ("run", cellwright(&folder, &["run", "all.py"])),
        ("eval", cellwright(&folder, &["tool", "eval", &json!({ "code": all }).to_string()])),
        (
            "notebook run",
            cellwright(&folder, &["tool", "notebook", r#"{"action": "run", "path": "nb.ipynb"}"#]),
        ),
        ("read", cellwright(&folder, &["read", "nb.ipynb", "--outputs", "text"])),
        ("show", cellwright(&folder, &["show", "nb.ipynb"])),
    ];
    for (door, text) in doors {
        for case in &cases {
            let at = |mark: String| text.find(&mark).unwrap_or_else(|| panic!("{mark} at {door}:\n{text}"));
            let (begin, end) = (at(format!("<{}>", case.kind)), at(format!("</{}>", case.kind)));
            case.check(door, &text[begin..end]);
        }
    }
}
