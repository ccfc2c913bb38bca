//! What a notebook, a file or its name holds does nothing to the terminal that shows it.

use std::fs::{self, File};
use std::io::Read as _;
use std::process::{Command, Stdio};

use nix::pty::openpty;
use serde_json::json;

use super::BINARY;

/// Sequences that act on terminals, and what none of them may leave in what a terminal gets.
const ATTACKS: [&str; 12] = [
    "\u{1b}]0;title\u{7}",
    "\u{1b}]52;c;ZXZpbA==\u{7}",
    "\u{1b}]8;;http://evil/\u{1b}\\link\u{1b}]8;;\u{1b}\\",
    "\u{1b}[2J\u{1b}[H",
    "\u{1b}[8mhidden",
    "\u{1b}[?1049h",
    "\u{1b}[6n",
    "\u{1b}P$q\u{1b}\\",
    "\u{9b}2J",
    "a\rb\u{8}c",
    "\u{202e}txt.exe",
    "\u{2066}x\u{2069}\u{200b}",
];

/// What a command writes to a terminal.
fn on_a_terminal(folder: &std::path::Path, arguments: &[&str]) -> String {
    let terminal = openpty(None, None).unwrap();
    let mut command = Command::new(BINARY);
    command.args(arguments).current_dir(folder).env("HOME", folder).env("XDG_RUNTIME_DIR", folder);
    command.env("TERM", "xterm-256color").env_remove("NO_COLOR").stdin(Stdio::null());
    command.stderr(terminal.slave.try_clone().unwrap()).stdout(terminal.slave);
    let mut child = command.spawn().unwrap();
    drop(command); // it holds the terminal open
    let mut seen = Vec::new();
    // Ends with an error when the last writer is gone.
    drop(File::from(terminal.master).read_to_end(&mut seen));
    child.wait().unwrap();
    String::from_utf8(seen).unwrap().replace("\r\n", "\n")
}

/// `colours`: sequences that choose colours are our own.
#[track_caller]
fn check(shown: &str, colours: bool) {
    let mut rest = shown.to_owned();
    if colours {
        while let Some(at) = rest.find("\u{1b}[") {
            let end = rest[at + 2..].find(|c: char| !c.is_ascii_digit() && c != ';').map(|end| at + 2 + end);
            let end = end.filter(|end| rest[*end..].starts_with('m')).unwrap_or_else(|| panic!("{shown:?}"));
            rest.replace_range(at..=end, "");
        }
    }
    let acts = |c: char| {
        c.is_control() && c != '\n' && c != '\t'
            || ('\u{200b}'..='\u{200f}').contains(&c)
            || ('\u{202a}'..='\u{202e}').contains(&c)
            || ('\u{2066}'..='\u{2069}').contains(&c)
    };
    assert!(!rest.contains(acts), "{rest:?}");
}

#[test]
fn a_file_or_notebook_that_is_read_or_shown_does_nothing_to_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    for attack in ATTACKS {
        let text = format!("x = '{attack}' # end");
        let cell = |kind: &str| json!({"cell_type": kind, "id": kind, "metadata": {}, "source": text});
        let mut code = cell("code");
        code["execution_count"] = json!(1);
        code["outputs"] = json!([
            {"output_type": "stream", "name": "stdout", "text": text},
            {"output_type": "display_data", "metadata": {}, "data": {"text/plain": text, "text/markdown": text}},
            {"output_type": "error", "ename": text, "evalue": text, "traceback": [text]},
        ]);
        let cells = json!([cell("markdown"), cell("raw"), code]);
        let metadata = json!({"kernelspec": {"name": text, "display_name": text}});
        let notebook = json!({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5});
        fs::write(folder.path().join("a.ipynb"), notebook.to_string()).unwrap();
        fs::write(folder.path().join("a.txt"), &text).unwrap();
        for (arguments, colours) in [
            (&["read", "a.txt"][..], false),
            (&["read", "a.ipynb", "--outputs", "text"], false),
            (&["read", "a.ipynb#2.0"], false),
            (&["tool", "read", r#"{"path": "a.ipynb"}"#], false),
            (&["tool", "read", r#"{"path": "a.txt"}"#], false),
            (&["show", "a.ipynb"], true),
        ] {
            let shown = on_a_terminal(folder.path(), arguments);
            assert!(shown.contains("end"), "{arguments:?}: {shown:?}");
            check(&shown, colours);
        }
    }
}

#[test]
fn the_name_of_a_file_does_nothing_to_the_terminal_that_shows_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for attack in ATTACKS {
        for arguments in
            [&["read", attack][..], &["show", attack], &["run", "--wrong", attack], &["run", attack]]
        {
            let shown = on_a_terminal(folder.path(), arguments);
            assert!(shown.contains("error"), "{shown:?}");
            check(&shown, true);
        }
    }
}

#[test]
fn what_goes_to_a_file_or_a_program_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let text = ATTACKS.concat();
    fs::write(folder.path().join("a.txt"), &text).unwrap();
    let read = Command::new(BINARY).args(["read", "a.txt"]).current_dir(folder.path()).output().unwrap();
    assert_eq!(String::from_utf8(read.stdout).unwrap().trim_end(), text.trim_end());
}
