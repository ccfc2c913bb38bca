//! `cellwright tool`: the tools of agents, for scripts.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder with a text file, and a home of its own.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.txt"), "one\n").unwrap();
        Self(folder)
    }

    /// Exit code, stdout, stderr.
    fn tool(&self, arguments: &[&str]) -> (i32, String, String) {
        self.run(&[&["tool"], arguments].concat())
    }

    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let path = self.0.path();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cellwright"));
        command.args(arguments).current_dir(path).stdin(Stdio::null());
        let output = command.env("HOME", path).env("XDG_RUNTIME_DIR", path).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }
}

#[test]
fn tools_are_listed_for_people_and_for_programs() {
    let folder = Folder::new();
    let (code, listed, _) = folder.tool(&["--tools", "py-only"]);
    assert_eq!(code, 0);
    let names: Vec<_> = listed.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["eval", "read", "edit", "write", "notebook", "kernel"]);
    let (_, listed, _) = folder.tool(&["--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed[1]["schema"]["required"], json!(["path"]));
}

#[test]
fn a_call_answers_as_an_agent_is_answered() {
    let folder = Folder::new();
    let (code, said, remarks) = folder.tool(&["eval", r#"{"code": "tool.read(path='a.txt')['text']"}"#]);
    assert_eq!((code, said.as_str()), (0, "'one\\n'\n"));
    assert!(remarks.starts_with("[kernel: "), "{remarks}");
    assert_eq!(folder.tool(&["read", r#"{"path": "a.txt"}"#]), (0, "one\n".into(), String::new()));
    let (code, told, _) = folder.tool(&["bash", r#"{"command": "exit 3"}"#, "--json"]);
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!((code, &told["is_error"]), (1, &json!(true)));
}

#[test]
fn what_was_too_long_for_a_reply_is_read_whole_and_in_part() {
    let folder = Folder::new();
    // `--json` is for programs, which get everything: the model's reply names the artifact.
    let code = r#"{"code": "for n in range(30_000): print('line', n)"}"#;
    let (_, said, remarks) = folder.tool(&["eval", code]);
    let told = said + &remarks;
    let at = told.find("artifact://").unwrap_or_else(|| panic!("{}", &told[told.len() - 500..]));
    let address: String =
        told[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || ":/".contains(*c)).collect();
    let read = |selector: &str| folder.run(&["read", &format!("{address}{selector}")]);
    let ok = |text: &str| (0, text.to_owned(), String::new());
    assert_eq!(read("").1.lines().count(), 30_000);
    assert_eq!(read(":20001-20002"), ok("line 20000\nline 20001\n"));
    assert_eq!(read(":-2"), ok("line 29998\nline 29999\n"));
    assert_eq!(read(":1-1,30000"), ok("line 0\nline 29999\n"));
    let (code, _, told) = read(":40000");
    assert_eq!((code, told), (1, format!("error: {address} has no line 40000\n")));
    let (code, _, told) = folder.run(&["read", "artifact://none1234"]);
    assert!(code == 1 && told.starts_with("error: "), "{told}");
}

#[test]
fn background_work_that_would_end_with_the_call_is_refused() {
    let folder = Folder::new();
    let cell = json!({"cell_type": "code", "execution_count": null, "id": "a", "metadata": {}, "outputs": [], "source": "open('ran', 'w')"});
    let notebook = json!({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).to_string();
    fs::write(folder.0.path().join("a.ipynb"), &notebook).unwrap();
    for (tool, arguments) in [
        ("eval", r#"{"code": "open('ran', 'w')", "background": true}"#),
        ("bash", r#"{"command": "touch ran", "background": true}"#),
        ("notebook", r#"{"action": "run", "path": "a.ipynb", "background": true}"#),
    ] {
        let (code, told, _) = folder.tool(&[tool, arguments]);
        assert!(code == 1 && told.starts_with("`background` has no effect here: "), "{told}");
        assert!(!folder.0.path().join("ran").exists());
    }
    assert_eq!(fs::read_to_string(folder.0.path().join("a.ipynb")).unwrap(), notebook);
    let (code, said, told) = folder.tool(&["bash", r#"{"command": "sleep 300 & echo started"}"#]);
    assert_eq!((code, said.as_str()), (0, "started\n"));
    assert!(told.contains("[it left processes running, which are ended with this call]"), "{told}");
}

#[test]
fn a_wrong_call_says_what_helps() {
    let folder = Folder::new();
    let (code, told, _) = folder.tool(&["reed", "{}"]);
    assert_eq!(code, 1);
    assert!(told.starts_with("unknown tool `reed`; did you mean `read`?"), "{told}");
    let (code, _, told) = folder.tool(&["read", "a.txt"]);
    assert_eq!(code, 1);
    assert!(told.starts_with("error: the arguments are not a JSON object: "), "{told}");
    let (code, told, _) = folder.tool(&["read", r#"{"path": "/etc/passwd"}"#]);
    assert!(code == 1 && told.contains("outside the workspace"), "{told}");
}
