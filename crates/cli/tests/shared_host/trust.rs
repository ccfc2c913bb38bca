//! What a project brings runs only where the user trusts it.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cellwright_testkit::python;
use nix::pty::openpty;
use serde_json::{Value, json};

use super::{ATTACKER, BINARY, SharedHost, VICTIM, shown};

/// A user with a cloned project that brings something of each kind.
struct Cloned(tempfile::TempDir);

impl Cloned {
    fn new() -> Self {
        let cloned = Self(tempfile::tempdir().unwrap());
        cloned.write("work/.git/HEAD", "");
        cloned.write("work/src/a.txt", "");
        cloned.write("work/.cellwright/config.toml", "[kernel]\ntimeout = 7\n");
        cloned.write("work/.cellwright/modules/started.py", "loaded = True\n");
        cloned.write("work/.venv/pyvenv.cfg", "");
        let own = format!("#!/bin/sh\nexport OWN_PYTHON=1\nexec {} \"$@\"\n", python().display());
        cloned.write("work/.venv/bin/python", &own);
        fs::set_permissions(cloned.path("work/.venv/bin/python"), fs::Permissions::from_mode(0o755)).unwrap();
        cloned
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.args(arguments).current_dir(self.path("work/src")).stdin(Stdio::null());
        command.env("HOME", self.path("")).env("XDG_RUNTIME_DIR", self.path("run"));
        let folder = python().parent().unwrap().display().to_string();
        command.env("PATH", format!("{folder}:/usr/bin:/bin"));
        for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "VIRTUAL_ENV"] {
            command.env_remove(name);
        }
        command
    }

    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        shown(&self.command(arguments).output().unwrap())
    }

    /// Whether its Python, its module and its settings are used, and what is said on stderr.
    fn uses(&self) -> ([bool; 3], String) {
        let probe = "import os\n('OWN_PYTHON' in os.environ, 'loaded' in dir() or 'started' in dir())";
        let (code, stdout, stderr) = self.run(&["run", "-c", probe]);
        assert_eq!(code, 0, "{stderr}");
        let config = self.run(&["config"]).1;
        let timeout = config.lines().find(|line| line.starts_with("kernel.timeout")).unwrap().to_owned();
        let has = |at: usize| stdout.split(", ").nth(at).unwrap().contains("True");
        ([has(0), has(1), timeout.contains(" 7 ")], stderr)
    }

    /// Runs a command at a terminal whose user types `answer`.
    fn typed(&self, arguments: &[&str], answer: &str) -> String {
        let terminal = openpty(None, None).unwrap();
        let mut master = File::from(terminal.master);
        master.write_all(answer.as_bytes()).unwrap();
        let mut command = self.command(arguments);
        command.stdin(terminal.slave.try_clone().unwrap()).stderr(terminal.slave.try_clone().unwrap());
        let mut child = command.stdout(terminal.slave).spawn().unwrap();
        drop(command); // it holds the terminal open
        let mut seen = Vec::new();
        // Ends with an error when the last writer is gone.
        drop(master.read_to_end(&mut seen));
        child.wait().unwrap();
        String::from_utf8(seen).unwrap().replace("\r\n", "\n")
    }
}

#[test]
fn a_cloned_project_brings_nothing_until_it_is_trusted_and_says_so_once() {
    let cloned = Cloned::new();
    let (used, said) = cloned.uses();
    assert_eq!(used, [false; 3]);
    let root = cloned.path("work");
    let root = root.display();
    assert_eq!(
        said,
        format!(
            "note: the folder `{root}` is not trusted, so `.venv`, `.cellwright` is not used; \
             `cellwright trust '{root}'` allows it\n"
        )
    );
    assert_eq!(cloned.uses(), ([false; 3], String::new()), "it is said once");
    assert_eq!(cloned.run(&["trust"]), (0, format!("{root} is trusted\n"), String::new()));
    assert_eq!(cloned.uses(), ([true; 3], String::new()));
    // What changes is not what was trusted.
    cloned.write("work/.cellwright/modules/started.py", "import os; loaded = True\n");
    let (used, said) = cloned.uses();
    assert_eq!((used[1..].to_vec(), said.lines().count()), (vec![false; 2], 1), "{said}");
    assert!(cloned.run(&["trust", "--list"]).1.starts_with("not answered"));
    assert_eq!(cloned.run(&["trust", root.to_string().as_str(), "--json"]).0, 0);
    assert_eq!(cloned.uses().0, [true; 3]);
    assert_eq!(cloned.run(&["trust", "--list"]).1, format!("trusted       {root}\n"));
    assert_eq!(cloned.run(&["trust", "--remove", root.to_string().as_str()]).0, 0);
    assert_eq!(cloned.uses().0, [false; 3]);
}

#[test]
fn at_a_terminal_the_user_is_asked_once_and_either_answer_is_kept() {
    for (answer, used) in [("y\n", true), ("n\n", false)] {
        let cloned = Cloned::new();
        let shown = cloned.typed(&["run", "-c", "import os\n'OWN_PYTHON' in os.environ"], answer);
        assert!(shown.contains("Do you trust it? [y/N]") && shown.contains(".venv"), "{shown}");
        assert!(shown.contains(if used { "True" } else { "False" }), "{shown}");
        let again = cloned.typed(&["run", "-c", "6 * 7"], "");
        assert!(again.contains("42"), "{again}");
        assert!(!again.contains("trust"), "{again}");
        assert_eq!(cloned.uses(), ([used; 3], String::new()));
    }
}

#[test]
fn a_folder_without_settings_modules_and_environment_is_not_mentioned() {
    let cloned = Cloned::new();
    fs::remove_dir_all(cloned.path("work/.venv")).unwrap();
    fs::remove_dir_all(cloned.path("work/.cellwright")).unwrap();
    assert_eq!(cloned.run(&["run", "-c", "1"]), (0, "1\n".into(), String::new()));
    assert!(!cloned.path(".local/state/cellwright/trust.json").exists());
}

#[test]
fn doctor_says_what_it_does_not_start() {
    let cloned = Cloned::new();
    let (_, report, _) = cloned.run(&["doctor", "--no-start", "--json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let untrusted = checks.iter().find(|check| !check["details"]["untrusted"].is_null()).unwrap();
    assert_eq!(untrusted["fix"], format!("cellwright trust {}", cloned.path("work").display()));
    let python = cloned.path("work/.venv").display().to_string();
    let pythons = checks.iter().filter(|check| check["section"] == "python");
    assert_eq!(pythons.filter(|check| check.to_string().contains(&python)).count(), 0);
}

/// An MCP server, and as much of the protocol as calls need.
struct McpChild(Child, BufReader<std::process::ChildStdout>);

impl McpChild {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut server = Self(child, stdout);
        let client = json!({"name": "trust", "version": "1"});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        server.request("initialize", &hello);
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.0.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert!(self.1.read_line(&mut line).unwrap() > 0, "the server ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == method {
                return message;
            }
        }
    }

    fn eval(&mut self, code: &str) -> String {
        let answer = self.request("tools/call", &json!({"name": "eval", "arguments": {"code": code}}));
        let parts = answer["result"]["content"].as_array().unwrap_or_else(|| panic!("{answer}"));
        parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for McpChild {
    fn drop(&mut self) {
        drop(self.0.kill()); // it may be gone already
        drop(self.0.wait()); // the same
    }
}

#[test]
fn the_first_reply_of_eval_says_that_the_project_is_not_trusted() {
    let cloned = Cloned::new();
    let mut server = McpChild::start(cloned.command(&["mcp"]));
    let first = server.eval("import os\n'OWN_PYTHON' in os.environ");
    assert!(first.starts_with("False") && first.contains("cellwright trust"), "{first}");
    assert!(!server.eval("1").contains("trust"));
    drop(server);
    assert_eq!(cloned.run(&["mcp", "install", "claude", "--trust"]).0, 0);
    let mut server = McpChild::start(cloned.command(&["mcp"]));
    let first = server.eval("import os\n'OWN_PYTHON' in os.environ");
    assert!(first.starts_with("True") && !first.contains("trust"), "{first}");
}

/// Everything that a folder above can say about which program to start.
fn plant(host: &SharedHost, folder: &str, owner: u32) -> PathBuf {
    let mark = host.path("home/pwned");
    let evil = format!("#!/bin/sh\necho pwned >> {}\nexec /usr/bin/python3 \"$@\"\n", mark.display());
    let python = host.write(&format!("{folder}/evil/bin/python"), &evil, owner, 0o755);
    for (name, text, mode) in [
        (".git/HEAD", "", 0o644),
        (".venv/pyvenv.cfg", "", 0o644),
        (".venv/bin/python", &evil, 0o755),
        ("venv/bin/python", &evil, 0o755),
        ("uv.lock", "", 0o644),
        (".cellwright/modules/x.py", &format!("open({:?}, 'a')", mark.display().to_string()), 0o644),
        (".cellwright/config.toml", &format!("[python]\npath = {:?}\n", python.display().to_string()), 0o644),
        (
            ".python-version",
            &format!("../../../../../../../..{}/{folder}/evil\n", host.path("").display()),
            0o644,
        ),
    ] {
        host.write(&format!("{folder}/{name}"), text, owner, mode);
    }
    mark
}

#[test]
fn folders_above_that_others_own_or_can_write_decide_nothing() {
    let Some(host) = SharedHost::new() else { return };
    host.make("home/.pyenv/versions/3.11", VICTIM, 0o755);
    for (shared, owner, mode) in
        [("scratch", 0, 0o1777), ("group", VICTIM, 0o777), ("theirs", ATTACKER, 0o755)]
    {
        host.make(shared, owner, mode);
        let mark = plant(&host, shared, ATTACKER);
        let study = host.make(&format!("{shared}/victim/study"), VICTIM, 0o755);
        super::give(study.parent().unwrap(), VICTIM, 0o755);
        for arguments in [
            &["run", "-c", "6 * 7"][..],
            &["doctor"],
            &["tool", "eval", r#"{"code": "6 * 7"}"#],
            &["config"],
            &["setup", "python"],
        ] {
            let output = host.command(arguments).current_dir(&study).output().unwrap();
            let (_, stdout, stderr) = shown(&output);
            assert!(!mark.exists(), "{shared}: {arguments:?}");
            assert!(!stderr.contains("trust"), "what is above is none of the victim's business: {stderr}");
            assert!(arguments[0] != "run" || stdout == "42\n", "{stdout}{stderr}");
        }
        // In that folder itself, nothing runs either, and it is said why.
        if shared != "theirs" {
            let output =
                host.command(&["run", "-c", "6 * 7"]).current_dir(host.path(shared)).output().unwrap();
            let (code, stdout, stderr) = shown(&output);
            assert_eq!((code, stdout.as_str(), mark.exists()), (0, "42\n", false), "{stderr}");
            assert!(stderr.contains("is not trusted"), "{stderr}");
        }
    }
    // A test that cannot fail would be none: named, the program leaves its mark.
    let python = host.path("scratch/evil/bin/python");
    let mut named = host.command(&["run", "--python", python.to_str().unwrap(), "-c", "6 * 7"]);
    assert_eq!(shown(&named.output().unwrap()).1, "42\n");
    assert!(Path::new(&host.path("home/pwned")).exists());
}
