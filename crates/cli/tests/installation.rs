//! `cellwright self`: where things are, how they go, and completion in a real shell.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_cellwright");

/// A home folder with settings, something in each folder of ours, a kernel and a client.
struct InstalledHome(TempDir);

impl InstalledHome {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        for file in [
            ".config/cellwright/config.toml",
            ".cache/cellwright/runner/x.py",
            ".local/state/cellwright/artifacts/a",
            "run/cellwright/token",
        ] {
            let path = home.path(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        fs::write(home.path(".claude.json"), "{\n  \"theme\": \"dark\"\n}\n").unwrap();
        home.run(&["mcp", "install", "claude"]);
        home.run(&["kernel", "install"]);
        home
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    fn run(&self, arguments: &[&str]) -> (i32, String) {
        let mut command = Command::new(BINARY);
        command.args(arguments).current_dir(self.0.path()).env_clear().stdin(Stdio::null());
        command.env("HOME", self.0.path()).env("XDG_RUNTIME_DIR", self.path("run"));
        let output = command.output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code().unwrap(), text.replace(self.0.path().to_str().unwrap(), "~"))
    }
}

#[test]
fn paths_name_the_program_and_every_folder() {
    let home = InstalledHome::new();
    let (code, text) = home.run(&["self", "paths", "--json"]);
    assert_eq!(code, 0, "{text}");
    let paths: Value = serde_json::from_str(&text).unwrap();
    let names: Vec<&str> =
        paths["folders"].as_array().unwrap().iter().map(|folder| folder["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["settings", "data", "cache", "state", "runtime"]);
    assert_eq!(paths["folders"][1]["bytes"], Value::Null, "there is no managed Python");
    assert_eq!(paths["kernels"][0], "~/.local/share/jupyter/kernels/cellwright-agent");
    assert_eq!(paths["program"], BINARY);
}

#[test]
fn an_uninstall_shows_what_goes_before_anything_goes() {
    let home = InstalledHome::new();
    let (code, text) = home.run(&["self", "uninstall"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("would remove the entry of Claude Code in ~/.claude.json"), "{text}");
    assert!(text.contains("nothing was removed"), "{text}");
    assert!(home.path(".cache/cellwright/runner/x.py").exists());
    assert!(fs::read_to_string(home.path(".claude.json")).unwrap().contains("cellwright"));

    let (code, text) = home.run(&["self", "uninstall", "--yes"]);
    assert_eq!(code, 0, "{text}");
    let settings = fs::read_to_string(home.path(".claude.json")).unwrap();
    assert!(settings.contains("\"theme\": \"dark\"") && !settings.contains("cellwright"), "{settings}");
    for gone in [
        ".cache/cellwright",
        ".local/state/cellwright",
        "run/cellwright",
        ".local/share/jupyter/kernels/cellwright-agent",
    ] {
        assert!(!home.path(gone).exists(), "{gone}");
    }
    assert!(home.path(".config/cellwright/config.toml").exists(), "the user's settings are the user's");
    home.run(&["self", "uninstall", "--yes", "--settings"]);
    assert!(!home.path(".config/cellwright").exists());
}

#[test]
fn an_uninstall_leaves_sessions_with_their_variables_alone() {
    let home = InstalledHome::new();
    let _daemon = UnixListener::bind(home.path("run/cellwright/sessions.sock")).unwrap();
    let (code, text) = home.run(&["self", "uninstall", "--yes"]);
    assert_ne!(code, 0, "{text}");
    assert!(text.contains("cellwright session list"), "{text}");
    assert!(home.path(".cache/cellwright").exists());
}

#[test]
fn bash_completes_commands_flags_and_values() {
    let home = InstalledHome::new();
    let (_, script) = home.run(&["self", "completions", "bash"]);
    let file = home.path("completion.bash");
    fs::write(&file, script).unwrap();
    let complete = |line: &str| {
        // What bash does on Tab: it splits the line at `=`, too, and calls the function.
        let test = r#"source "$1"; shift; PROGRAM=$1; shift; COMP_WORDS=("$PROGRAM" "$@"); COMP_CWORD=$#; _cellwright; printf '%s ' "${COMPREPLY[@]}""#;
        let words = line.split(' ');
        let output = Command::new("bash")
            .args(["--norc", "-c", test, "bash"])
            .args([file.to_str().unwrap(), BINARY])
            .args(words)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    };
    assert_eq!(complete("sho"), "show");
    assert_eq!(complete("gateway st"), "start status stop");
    assert_eq!(complete("read --outputs = te"), "text");
    assert_eq!(complete("read notebook"), "");
}
