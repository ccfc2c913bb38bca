//! `cellwright run --check`

use super::*;

/// A cell as a run left it.
fn ran(id: &str, source: &str, text: &str) -> Value {
    let output = json!({"output_type": "stream", "name": "stdout", "text": text.split_inclusive('\n').collect::<Vec<_>>()});
    let outputs = if text.is_empty() { json!([]) } else { json!([output]) };
    json!({"cell_type": "code", "id": id, "metadata": {}, "execution_count": 1, "outputs": outputs, "source": source})
}

#[test]
fn outputs_that_are_as_stored_pass_and_the_file_stays() {
    let desk = Desk::with(&[
        ran("a", "x = object(); print(x)", "<object object at 0x7f0000000000>\n"),
        ran("b", "print(6 * 7)", "42\n"),
    ]);
    let before = fs::read(desk.path().join("a.ipynb")).unwrap();
    let (exit, _, shown) = desk.run(&["a.ipynb", "--check"]);
    assert_eq!(exit, 0, "{shown}");
    assert!(shown.ends_with("the outputs are those that are stored\n"), "{shown}");
    assert_eq!(fs::read(desk.path().join("a.ipynb")).unwrap(), before);
    // Nothing is left beside it.
    let names: Vec<_> = fs::read_dir(desk.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| name == "a.ipynb" || name == "state"), "{names:?}");
    // An address is another one in each run.
    assert_eq!(desk.run(&["a.ipynb", "--check=exact"]).0, 1);
}

#[test]
fn every_difference_is_shown_and_the_file_stays() {
    let desk = Desk::with(&[
        ran("a", "print('one\\ntwo\\nthree')", "one\n2\nthree\n"),
        ran("b", "1 / 0", ""),
        ran("c", "print('later')", "sooner\n"),
    ]);
    let before = fs::read(desk.path().join("a.ipynb")).unwrap();
    let (exit, _, shown) = desk.run(&["a.ipynb", "--check", "--quiet", "--junit", "junit.xml"]);
    assert_eq!(exit, 1);
    assert!(
        shown.starts_with("cell 0 shows something else than what is stored\nstdout\n    one\n  - 2\n  + two\n    three\ncell 1 raised"),
        "{shown}"
    );
    assert!(shown.contains("ZeroDivisionError: division by zero"), "{shown}");
    assert!(shown.contains("  - sooner\n  + later\n"), "{shown}");
    assert_eq!(fs::read(desk.path().join("a.ipynb")).unwrap(), before);
    let junit = fs::read_to_string(desk.path().join("junit.xml")).unwrap();
    assert!(junit.contains("tests=\"3\" failures=\"3\""), "{junit}");
    assert!(junit.contains("  - 2&#10;  + two&#10;"), "{junit}");
    let (exit, events, _) = desk.run(&["a.ipynb", "--check", "--json"]);
    assert_eq!(exit, 1);
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let cells: Vec<_> = events
        .iter()
        .filter(|event| event["event"] == "difference")
        .map(|event| event["cell"].clone())
        .collect();
    assert_eq!(cells, [0, 1, 2]);
    assert_eq!(events.last().unwrap()["ok"], false);
}

#[test]
fn marks_of_cells_decide_what_counts() {
    let mut raises = ran("d", "# NBVAL_RAISES_EXCEPTION\n1 / 0", "");
    raises["outputs"] = json!([{"output_type": "error", "ename": "ZeroDivisionError", "evalue": "division by zero",
        "traceback": ["another"]}]);
    let mut tagged = ran("e", "print('new')", "old\n");
    tagged["metadata"]["tags"] = json!(["nbval-ignore-output"]);
    let desk = Desk::with(&[
        ran("a", "# NBVAL_SKIP\nraise SystemExit('it ran')", ""),
        ran("b", "# NBVAL_IGNORE_OUTPUT\nprint('new')", "old\n"),
        ran("c", "print('took 3.5 s')", "took 9.1 s\n"),
        raises,
        tagged,
        code("f", "# never run\nprint('x')"),
    ]);
    fs::write(desk.path().join("rules.cfg"), "[times]\nregex: \\d\\.\\d s\nreplace: TIME\n").unwrap();
    let (exit, _, shown) = desk.run(&["a.ipynb", "--check", "--sanitize", "rules.cfg"]);
    assert_eq!(exit, 0, "{shown}");
    // Lax: only what is marked counts.
    assert_eq!(desk.run(&["a.ipynb", "--check"]).0, 1);
    assert_eq!(desk.run(&["a.ipynb", "--check=lax"]).0, 0);
    let (exit, _, shown) = desk.run(&["a.ipynb", "--check", "--sanitize", "missing.cfg"]);
    assert_eq!((exit, shown.contains("missing.cfg")), (1, true), "{shown}");
    assert_eq!(desk.run(&["a.ipynb", "--check", "-o", "b.ipynb"]).0, 2);
}
