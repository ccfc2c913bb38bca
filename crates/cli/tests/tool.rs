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
        let path = self.0.path();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cellwright"));
        command.arg("tool").args(arguments).current_dir(path).stdin(Stdio::null());
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
