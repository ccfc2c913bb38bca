use serde_json::{Value, json};

use super::*;

fn notebook(cells: &[Value]) -> Notebook {
    let notebook = json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    Notebook::parse(notebook.to_string().into_bytes()).unwrap()
}

fn cell(source: &str, tags: &[&str], outputs: &[Value]) -> Value {
    json!({"cell_type": "code", "id": "a", "metadata": {"tags": tags}, "execution_count": 1, "outputs": outputs,
        "source": source})
}

fn printed(text: &str) -> Value {
    json!({"output_type": "stream", "name": "stdout", "text": text})
}

fn shown(data: &Value) -> Value {
    json!({"output_type": "display_data", "metadata": {}, "data": data})
}

#[track_caller]
fn differ(check: &OutputCheck, old: &[Value], new: &[Value]) -> Option<String> {
    let (old, new) = (notebook(&[cell("x", &[], old)]), notebook(&[cell("x", &[], new)]));
    check.difference(&old.cell(0), &new.cell(0)).map(|difference| difference.lines)
}

#[test]
fn what_changes_with_every_run_is_no_difference() {
    let usual = OutputCheck::new(CheckMode::Usual, None).unwrap();
    let exact = OutputCheck::new(CheckMode::Exact, None).unwrap();
    for (old, new) in [
        ("<object at 0x7f11deadbeef>", "<object at 0x7f22cafe1234>"),
        ("/tmp/ipykernel_12/345.py:1: Warning", "/tmp/ipykernel_99/6.py:1: Warning"),
        ("/home/ann/lib/site-packages/a.py", "/usr/lib/python3/dist-packages/a.py"),
        ("Wall time: 3 ms", "Wall time: 1min 2s"),
        (
            "1.2 ms ± 3 µs per loop (mean ± std. dev. of 7 runs, 1 loop each)",
            "9 s ± 1 s per loop (mean ± std. dev. of 7 runs, 1 loop each)",
        ),
        ("100%|██████| 3/3 [00:01<00:00,  2.9it/s]", "100%|██████| 3/3 [00:07<00:00,  1.1s/it]"),
        ("2024-01-02 03:04:05.678901", "2026-11-19 22:00:00.000001"),
        ("id 6f1c3e0e-5a8e-4a3b-9d5c-0123456789ab", "id 00000000-5a8e-4a3b-9d5c-0123456789ab"),
        ("plain", "plain"),
    ] {
        assert_eq!(differ(&usual, &[printed(old)], &[printed(new)]), None, "{old}");
        assert_eq!(differ(&exact, &[printed(old)], &[printed(new)]).is_some(), old != new, "{old}");
    }
    // Dates without fractions, and short numbers, are what a cell is about.
    for (old, new) in [("2024-01-02", "2024-01-03"), ("0x1f", "0x2f"), ("12:30", "12:31"), ("3.5 s", "3.6 s")]
    {
        assert!(differ(&usual, &[printed(old)], &[printed(new)]).is_some(), "{old}");
    }
}

#[test]
fn outputs_are_compared_by_type_and_streams_as_one_text() {
    let check = OutputCheck::new(CheckMode::Exact, None).unwrap();
    let text = |text: &str| shown(&json!({"text/plain": text}));
    assert_eq!(
        differ(&check, &[printed("a\n"), text("1"), printed("b\n")], &[printed("a\nb\n"), text("1")]),
        None
    );
    assert_eq!(differ(&check, &[printed("1%\r2%")], &[printed("2%")]), None);
    assert_eq!(
        differ(&check, &[text("1"), text("2")], &[text("1"), text("3")]).unwrap(),
        "text/plain\n    1\n  - 2\n  + 3\n"
    );
    assert_eq!(differ(&check, &[text("1")], &[]).unwrap(), "text/plain\n  - 1\n");
    assert_eq!(differ(&check, &[], &[printed("new\n")]).unwrap(), "stdout\n  + new\n");
    let picture = |bytes: &str| shown(&json!({"image/png": bytes, "text/plain": "<Figure>"}));
    assert_eq!(differ(&check, &[picture("QQ==")], &[picture("Qg==")]), None);
    assert_eq!(
        differ(&check, &[picture("QQ==")], &[text("<Figure>")]).unwrap(),
        "image/png\n  - a picture\n"
    );
    let error =
        |value: &str| json!({"output_type": "error", "ename": "E", "evalue": value, "traceback": [value]});
    assert!(differ(&check, &[error("a")], &[error("b")]).is_some());
}

#[test]
fn marks_are_nbvals() {
    let marks = |source: &str, tags: &[&str]| CheckMarks::of(&notebook(&[cell(source, tags, &[])]).cell(0));
    let none = CheckMarks::default();
    assert_eq!(marks("# NBVAL_IGNORE_OUTPUT\nx", &[]), CheckMarks { is_compared: Some(false), ..none });
    assert_eq!(marks("x\n  ## NBVAL_SKIP", &[]), CheckMarks { is_skipped: true, ..none });
    assert_eq!(marks("x # NBVAL_SKIP", &[]), none);
    assert_eq!(marks("x", &["nbval-raises-exception"]), CheckMarks { may_raise: true, ..none });
    assert_eq!(
        marks("x", &["raises-exception", "nbval-skip"]),
        CheckMarks { may_raise: true, is_skipped: true, ..none }
    );
    assert_eq!(
        marks("# NBVAL_CHECK_OUTPUT", &["nbval-ignore-output"]),
        CheckMarks { is_compared: Some(true), ..none }
    );
    assert_eq!(marks("x", &["NBVAL_SKIP"]), none);
}

#[test]
fn a_file_of_replacements_is_read_as_nbval_reads_it() {
    let text = "[times]\nregex: (\\d+)\\.(?P<part>\\d+) s\nreplace: \\1.x $ \\g<part>\n\n[other]\nregex: a\nsomething\nreplace: b\n";
    let replacements = TextReplacements::parse(text).unwrap();
    assert_eq!(replacements.apply("took 12.34 s, a"), "took 12.x $ 34, a");
    let error = TextReplacements::parse("regex: (?=x)\nreplace: y\n").unwrap_err();
    assert!(
        format!("{error:#}").starts_with("the pattern in line 1 cannot be used: regex parse error"),
        "{error:#}"
    );
    assert!(TextReplacements::parse("nothing").is_err());
}
