//! Which files are notebooks, and text files at the command line.

use std::fs;
use std::process::Command;

use super::{BINARY, Folder, NOTEBOOK};

const MARKED: &str = "# %% [code]\nprint(1)\n";

#[test]
fn a_name_that_does_not_end_in_ipynb_was_a_notebook_at_one_door_and_text_at_the_other() {
    let folder = Folder::with("nb.json", NOTEBOOK);
    let tool = |name: &str, arguments: String| folder.run(&["tool", name, &arguments], "").code;
    // New files: the name decides.
    assert_eq!(folder.run(&["write", "y.txt"], MARKED).stdout, "created y.txt, 2 lines\n");
    assert_eq!(tool("write", format!(r#"{{"path": "z.txt", "content": {MARKED:?}}}"#)), 0);
    assert_eq!((folder.read("y.txt"), folder.read("z.txt")), (MARKED.to_owned(), MARKED.to_owned()));
    assert_eq!(folder.run(&["write", "Y.IPYNB"], MARKED).code, 0);
    assert_eq!(tool("write", format!(r#"{{"path": "Z.IPYNB", "content": {MARKED:?}}}"#)), 0);
    assert!(folder.read("Y.IPYNB").starts_with('{') && folder.read("Z.IPYNB").starts_with('{'));
    let refused = folder.run(&["notebook", "insert", "new.txt", "--source", "x"], "");
    assert_eq!(
        (refused.code, refused.stderr.as_str()),
        (1, "error: new.txt is not a notebook (.ipynb); use edit or write\n")
    );
    assert_eq!(tool("notebook", r#"{"action": "insert", "path": "new.txt", "source": "x"}"#.to_owned()), 1);
    // Files that exist: what they hold decides, too.
    assert!(folder.run(&["read", "nb.json"], "").stdout.starts_with("# %% [code] cell:0\n"));
    let read = folder.run(&["tool", "read", r#"{"path": "nb.json#1"}"#], "");
    assert_eq!(read.stdout, "# %% [markdown] cell:1\n# Title\n");
    assert_eq!(folder.run(&["notebook", "delete", "nb.json", "1"], "").code, 0);
    assert_eq!(tool("notebook", r#"{"action": "delete", "path": "nb.json", "cell": 0}"#.to_owned()), 0);
    fs::write(folder.path("data.json"), "{\"cells\": 5}\n").unwrap();
    assert_eq!(folder.run(&["read", "data.json"], "").stdout, "{\"cells\": 5}\n");
}

#[test]
fn text_files_are_read_and_changed_by_the_rules_of_the_tools() {
    let folder = Folder::with("a.txt", "one\ntwo\nthree\n");
    let refused = folder.run(&["write", "a.txt"], "mine\n");
    assert!(refused.stderr.contains("you have not read this file"), "{}", refused.stderr);
    assert_eq!(folder.run(&["read", "a.txt:2-3"], "").stdout, "two\nthree\n");
    assert_eq!(folder.run(&["read", "a.txt", "--search", "t"], "").stdout, "2: two\n3: three\n");
    let refused = folder.run(&["write", "a.txt"], "mine\n");
    assert!(refused.stderr.contains("you have read only a part of it"), "{}", refused.stderr);
    assert_eq!(folder.run(&["read", "a.txt"], "").stdout, "one\ntwo\nthree\n");
    let edit = ["edit", "a.txt", "--old", "one", "--new", "1", "--old", "two", "--new", "2"];
    assert_eq!(folder.run(&edit, "").stdout, "replaced 2 matches in a.txt, lines 1, 2\n");
    fs::write(folder.path("a.txt"), "the person's\n").unwrap();
    let refused = folder.run(&["write", "a.txt"], "mine\n");
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert_eq!(folder.read("a.txt"), "the person's\n");
    assert_eq!(folder.run(&["write", "a.txt", "--force"], "mine\n").stdout, "replaced a.txt, now 1 line\n");
    let json = folder.run(&["read", "a.txt", "--json"], "").stdout;
    assert!(json.contains(r#""lines":1,"fingerprint":""#), "{json}");
    for wrong in [&["read", "a.txt#1"][..], &["read", "a.txt", "--outputs", "text"]] {
        let refused = folder.run(wrong, "").stderr;
        assert!(refused.contains("it has lines, but no cells and no outputs"), "{refused}");
    }
}

#[test]
fn a_text_file_that_is_mounted_alone_is_written_in_place() {
    let folder = Folder::with("real.txt", "one\n");
    fs::write(folder.path("a.txt"), "").unwrap();
    let script = format!(
        "set -e; mount --bind real.txt a.txt
        {BINARY} read a.txt
        {BINARY} edit a.txt --old one --new two
        {BINARY} tool read '{{\"path\": \"a.txt\"}}'
        {BINARY} tool write '{{\"path\": \"a.txt\", \"content\": \"three and more\\n\"}}'
        {BINARY} write a.txt --force < /dev/null"
    );
    let mut command = Command::new("unshare");
    if !nix::unistd::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--mount", "sh", "-c", &script]).current_dir(folder.path("").as_path());
    command.env("XDG_STATE_HOME", folder.path("state")).env("CELLWRIGHT_CALLER", "one");
    let ran = command.output().expect("unshare, of util-linux");
    let told = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{told}{}", String::from_utf8_lossy(&ran.stderr));
    let note = "note: the file was written in place, since it could not be replaced\n";
    assert_eq!(
        told,
        format!(
            "one\nreplaced 1 match in a.txt, line 1\n{note}two\nreplaced a.txt, now 1 line\n{note}\
             replaced a.txt, now 0 lines\n{note}"
        )
    );
    assert_eq!(folder.read("real.txt"), "");
}

#[test]
fn a_search_stopped_after_200_lines_without_a_word() {
    let lines: Vec<_> = (1..=250).map(|line| format!("line {line}\n")).collect();
    let folder = Folder::with("a.txt", lines.concat());
    let found = folder.run(&["read", "a.txt", "--search", "line"], "");
    assert_eq!((found.code, found.stdout.lines().count()), (0, 200));
    assert_eq!(found.stderr, "note: the first 200 matches; search on with a.txt:201-\n");
    let rest = folder.run(&["read", "a.txt:201-", "--search", "line"], "");
    assert_eq!((rest.stdout.lines().count(), rest.stderr.as_str()), (50, ""));
    assert_eq!(folder.run(&["read", "a.txt", "--search", "nowhere"], "").stdout, "no line matches\n");
}

#[test]
fn a_text_in_another_encoding_lost_its_characters_when_it_was_written_back() {
    let folder = Folder::with("a.txt", b"caf\xe9\nplain\n");
    let tool = |name: &str, arguments: &str| folder.run(&["tool", name, arguments], "");
    let read = tool("read", r#"{"path": "a.txt"}"#);
    assert!(read.stdout.starts_with("caf\u{fffd}\nplain\n"), "{}", read.stdout);
    let written = tool("write", r#"{"path": "a.txt", "content": "caf\ufffd\nchanged\n"}"#);
    assert_eq!(written.code, 1, "{}", written.stdout);
    assert!(written.stdout.contains("a.txt is not UTF-8"), "{}", written.stdout);
    assert_eq!(fs::read(folder.path("a.txt")).unwrap(), b"caf\xe9\nplain\n");
    assert_eq!(tool("write", r#"{"path": "a.txt", "content": "new\n", "force": true}"#).code, 0);
}

#[test]
fn a_link_that_leads_nowhere_was_reported_as_a_file_that_changed() {
    let folder = Folder::with("other", "");
    std::os::unix::fs::symlink("nowhere", folder.path("a.txt")).unwrap();
    let refused = folder.run(&["write", "a.txt"], "x\n");
    assert_eq!((refused.code, refused.stderr.as_str()), (1, "error: a.txt is a link that leads nowhere\n"));
}
