//! Our verdict on notebooks beside that of nbformat itself, on the corpus and on thousands of notebooks that were changed at
//! random.

use std::path::{Path, PathBuf};
use std::process::Command;

use cellwright_notebook::{Notebook, ParseError, Repair};
use serde_json::Value;

/// What nbformat says: a line for each notebook, with its text and whether it is valid.
fn verdicts(count: usize) -> Vec<(String, String, bool)> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = std::env::var_os("CELLWRIGHT_TEST_PYTHON")
        .map_or_else(|| here.join("../../target/venv/bin/python"), PathBuf::from);
    assert!(python.exists(), "no Python at {}: run scripts/check.sh", python.display());
    let tests = here.join("tests");
    let ran = Command::new(python)
        .arg(tests.join("format/verdicts.py"))
        .arg(tests.join("corpus"))
        .arg(count.to_string())
        .output()
        .expect("it starts");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let lines = String::from_utf8(ran.stdout).expect("JSON lines");
    let of = |line: &str| {
        let verdict: Value = serde_json::from_str(line).expect("JSON");
        let text = |key: &str| verdict[key].as_str().expect("a text").to_owned();
        (text("notebook"), text("error"), verdict["error"] == "")
    };
    lines.lines().map(of).collect()
}

#[test]
fn what_nbformat_refuses_is_refused_and_nothing_else() {
    let verdicts = verdicts(4000);
    assert!(verdicts.len() > 4000, "{}", verdicts.len());
    let (mut valid, mut invalid, mut unread) = (0, 0, 0);
    let mut different = Vec::new();
    for (text, error, is_valid) in verdicts {
        let notebook = match Notebook::parse(text.clone().into_bytes()) {
            Ok(notebook) => notebook,
            // Ours is the stricter reader: a cell of an unknown kind, or without a source, is none.
            Err(
                ParseError::Malformed { .. } | ParseError::OldFormat { .. } | ParseError::NewFormat { .. },
            ) => {
                unread += 1;
                continue;
            }
            Err(error) => panic!("{error}\n{text}"),
        };
        let problems = notebook.check();
        let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
        let is_invalid = problems.iter().any(cellwright_notebook::FormatProblem::is_invalid);
        if is_invalid == is_valid {
            different.push(format!("nbformat: {error}\nours: {told:#?}\n{text}"));
        }
        (valid, invalid) = (valid + usize::from(is_valid), invalid + usize::from(!is_valid));
        // What can be repaired is valid in that respect afterwards.
        if let Some(repaired) = notebook.repaired(&[Repair::NewId, Repair::LineEnds]) {
            let left = repaired.check();
            assert!(left.iter().all(|problem| problem.repair.is_none()), "{left:#?}\n{text}");
        }
    }
    assert!(
        valid > 500 && invalid > 500 && unread > 50,
        "{valid} valid, {invalid} invalid, {unread} not read"
    );
}

#[track_caller]
fn problems(cells: &str, minor: usize) -> Vec<String> {
    let text = format!(r#"{{"cells":[{cells}],"metadata":{{}},"nbformat":4,"nbformat_minor":{minor}}}"#);
    let notebook = Notebook::parse(text.into_bytes()).expect("a notebook");
    notebook.check().iter().map(ToString::to_string).collect()
}

/// Lab and nbconvert could not read it at all, and `write` had said ok.
#[test]
fn json_that_is_no_valid_notebook_has_its_problems_named() {
    let bare = br#"{"cells":[{"cell_type":"code","source":[]}],"nbformat":4}"#.to_vec();
    let told: Vec<_> = Notebook::parse(bare).unwrap().check().iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    `metadata` is missing
    `nbformat_minor` is missing
    cell 0: `metadata` is missing
    cell 0: `outputs` is missing
    cell 0: `execution_count` is missing
    ");
    let cell = |id: &str, rest: &str| {
        format!(
            r#"{{"cell_type":"code",{id}"execution_count":null,"metadata":{{}},"outputs":[{rest}],"source":["a = 1","b = 2"]}}"#
        )
    };
    let outputs = r#"{"output_type":"stream","name":"stdout","text":["a","b"]},{"output_type":"display_data","data":{"text/plain":1},"metadata":{}},{"output_type":"plot"}"#;
    let cells = [cell(r#""id":"a","#, ""), cell(r#""id":"a","#, outputs), cell("", "")].join(",");
    insta::assert_snapshot!(problems(&cells, 5).join("\n"), @r#"
    cell 0: `source` is a list of lines without line ends, so all of it is one line
    cell 1: `source` is a list of lines without line ends, so all of it is one line
    cell 1: `outputs[0].text` is a list of lines without line ends, so all of it is one line
    cell 1: `outputs[1].data["text/plain"]` must be a string or a list of strings
    cell 1: `outputs[2].output_type` must be stream, display_data, execute_result or error
    cell 1: `id` is `a`, as that of an earlier cell is
    cell 2: `id` is missing
    cell 2: `source` is a list of lines without line ends, so all of it is one line
    "#);
    let with_id = cell(r#""id":"a","#, "").replace(r#"["a = 1","b = 2"]"#, "[]");
    insta::assert_snapshot!(problems(&with_id, 4).join("\n"), @"cell 0: `id` is not a key that nbformat 4.4 has there");
}

/// A model wrote the lines of a program without their line ends: it was one line.
#[test]
fn n18_lines_without_line_ends_and_missing_ids_are_repaired_and_nothing_else_changes() {
    let file = |source: &str, id: &str| {
        format!(
            "{{\n \"cells\": [\n  {{\n   \"cell_type\": \"raw\",\n{id}   \"metadata\": {{\"x\": 1.0}},\n   \"source\": {source}\n  }}\n ],\n \"metadata\": {{}},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}}\n"
        )
    };
    let id = "   \"id\": \"a\",\n";
    let before = Notebook::parse(file(r#"["a = 1", "", "b\u00e9", "c\n"]"#, id).into_bytes()).unwrap();
    let after = before.repaired(&[Repair::LineEnds]).unwrap();
    assert_eq!(after.text(), file(r#"["a = 1\n", "\n", "b\u00e9\n", "c\n"]"#, id));
    assert_eq!(after.repaired(&[Repair::LineEnds, Repair::NewId]).map(|_| ()), None);
    for fine in [r#"["a\n", "b"]"#, r#"["", "", "a"]"#, "[]", r#""ab""#] {
        let notebook = Notebook::parse(file(fine, id).into_bytes()).unwrap();
        assert_eq!(notebook.check(), [], "{fine}");
    }
    let without = Notebook::parse(file(r#""x""#, "").into_bytes()).unwrap();
    let repaired = without.repaired(&[Repair::NewId]).unwrap();
    let new = repaired.cell(0).id().unwrap().into_owned();
    assert_eq!(repaired.text(), file(r#""x""#, &format!("   \"id\": \"{new}\",\n")));
    assert_eq!(repaired.check(), []);
}
