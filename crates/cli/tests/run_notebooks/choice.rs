//! Which cells run, with which parameters, and when nothing runs at all.

use std::fs;

use serde_json::{Value, json};

use super::{Desk, code, tagged};

fn three() -> Desk {
    Desk::with(&[
        tagged("p", "n = 1", &["parameters"]),
        code("a", "print('a', n)"),
        code("b", "print('b', n)"),
    ])
}

#[test]
fn with_parameters_the_cells_that_were_named_run_and_so_does_the_one_with_the_parameters() {
    for (choice, shown) in [
        (["--cells", "1"], ["", "", "a 7\n", ""]),
        (["--cells", "id:b"], ["", "", "", "b 7\n"]),
        (["--from", "2"], ["", "", "", "b 7\n"]),
    ] {
        let desk = three();
        let (exit, _, stderr) = desk.run(&[&["a.ipynb", "-q", "-p", "n=7"], &choice[..]].concat());
        assert_eq!(exit, 0, "{stderr}");
        assert_eq!(desk.shown("a.ipynb"), shown);
        assert_eq!(desk.notebook("a.ipynb")["cells"][0]["execution_count"], Value::Null);
        // Now the notebook has that cell, and places are counted with it.
        let (exit, _, stderr) = desk.run(&["a.ipynb", "-q", "-p", "n=8", "--cells", "3"]);
        assert_eq!(exit, 0, "{stderr}");
        assert_eq!(desk.shown("a.ipynb")[3], "b 8\n");
    }
}

#[test]
fn a_run_that_can_not_begin_changes_no_file() {
    let desk = three();
    let mut unknown = desk.notebook("a.ipynb");
    unknown["metadata"]["kernelspec"] = json!({"name": "nope", "display_name": "x", "language": "python"});
    fs::write(desk.path().join("nope.ipynb"), unknown.to_string()).unwrap();
    desk.put("before.ipynb", &[code("x", "earlier results")]);
    let files =
        || ["a.ipynb", "nope.ipynb", "before.ipynb"].map(|name| fs::read(desk.path().join(name)).unwrap());
    let before = files();
    for arguments in [
        &["a.ipynb", "-p", "n=7", "--cells", "99"][..],
        &["a.ipynb", "-o", "before.ipynb", "--from", "id:none"],
        &["a.ipynb", "-p", "n=7", "--kernel", "jupyter:nope"],
        &["nope.ipynb", "-p", "n=7"],
        &["nope.ipynb", "-o", "before.ipynb"],
        &["nope.ipynb", "-o", "new.ipynb"],
    ] {
        let (exit, _, stderr) = desk.run(arguments);
        assert_eq!(exit, 1, "{stderr}");
        assert_eq!(files(), before, "{arguments:?}: {stderr}");
    }
    assert!(!desk.path().join("new.ipynb").exists());
}
