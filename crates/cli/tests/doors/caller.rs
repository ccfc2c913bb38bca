//! Commands that name their caller by `--session`.

use super::{notebook, run};

#[test]
fn a_session_names_the_caller_of_every_command() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("nb.ipynb"), notebook(&["a: 1", "b: 2"])).unwrap();
    std::fs::write(folder.path().join("a.txt"), "one\n").unwrap();
    let call = |line: &[&str], stdin: &str| {
        let line: Vec<_> = line.iter().map(ToString::to_string).collect();
        run(&folder, &line, stdin)
    };
    let text = "# %% [code] cell:0\n10\n# %% [code] cell:1\n2\n";
    assert!(!call(&["read", "nb.ipynb", "--session", "one"], "").is_error);
    let refused = call(&["write", "nb.ipynb", "--session", "two"], text);
    assert!(refused.is_error && refused.text.contains("you have not read this file"), "{}", refused.text);
    assert!(call(&["write", "nb.ipynb"], text).is_error, "CELLWRIGHT_CALLER is another caller");
    let written = call(&["write", "nb.ipynb", "--session", "one"], text);
    assert!(!written.is_error, "{}", written.text);
    // The commands and the tools of one session are one caller.
    assert!(!call(&["read", "a.txt", "--session", "one"], "").is_error);
    let edit = ["edit", "a.txt", "--old", "one", "--new", "two", "--session", "one"];
    assert!(!call(&edit, "").is_error);
    let insert = ["notebook", "insert", "nb.ipynb", "--source", "3", "--session", "one"];
    assert!(!call(&insert, "").is_error);
    let wrong = call(&["read", "nb.ipynb", "--session", ""], "");
    assert!(wrong.is_error, "{}", wrong.text);
}
