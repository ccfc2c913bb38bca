//! `cellwright kernel install`, `list` and `remove`, with Jupyter itself as the judge of what was installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_cellwright");

/// A home folder with an agent in `bin`.
struct Home(tempfile::TempDir);

impl Home {
    fn new(agents: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let bin = home.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        for agent in agents {
            std::fs::write(bin.join(agent), "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(bin.join(agent), std::os::unix::fs::PermissionsExt::from_mode(0o755))
                .unwrap();
        }
        Self(home)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    fn within(&self, command: &mut Command) {
        command.current_dir(self.0.path()).env_clear().stdin(Stdio::null());
        command.env("HOME", self.0.path()).env("PATH", self.path("bin"));
    }

    /// Exit code, then everything printed, without the places of this run.
    fn run(&self, arguments: &[&str], variables: &[(&str, &Path)]) -> (i32, String) {
        let mut command = Command::new(BINARY);
        self.within(command.arg("kernel").args(arguments));
        let output = command.envs(variables.iter().copied()).output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code().unwrap(), text.replace(self.0.path().to_str().unwrap(), "~"))
    }

    /// The kernels that Jupyter finds.
    fn jupyter(&self, variables: &[(&str, &Path)]) -> Value {
        let mut command = Command::new(cellwright_testkit::python());
        self.within(command.args(["-m", "jupyter_client.kernelspecapp", "list", "--json"]));
        let output = command.envs(variables.iter().copied()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["kernelspecs"].take()
    }
}

#[test]
fn jupyter_finds_what_was_installed_and_no_longer_what_was_removed() {
    let home = Home::new(&["claude-agent-acp"]);
    assert_eq!(
        home.run(&["install"], &[]),
        (0, "installed cellwright-agent (Cellwright Agent) in ~/.local/share/jupyter/kernels/cellwright-agent\n".into())
    );
    assert_eq!(home.run(&["install", "--agent", "claude", "--user"], &[]).0, 0);
    let kernels = home.jupyter(&[]);
    let spec = &kernels["cellwright-agent-claude"]["spec"];
    assert_eq!(spec["display_name"], "Cellwright Agent (claude)");
    assert_eq!(spec["interrupt_mode"], "message");
    let argv: Vec<_> =
        spec["argv"].as_array().unwrap()[1..].iter().map(|word| word.as_str().unwrap()).collect();
    assert_eq!(argv, ["kernel", "run", "-f", "{connection_file}", "--agent", "claude"]);
    insta::assert_snapshot!(home.run(&["list"], &[]).1);
    assert_eq!(home.run(&["remove", "cellwright-agent", "cellwright-agent-claude"], &[]).0, 0);
    assert!(home.jupyter(&[]).get("cellwright-agent").is_none());
}

#[test]
fn a_kernel_can_be_installed_for_one_environment() {
    let home = Home::new(&["codex-acp"]);
    let venv = home.path("venv");
    assert_eq!(home.run(&["install", "--sys-prefix", "--name", "mine"], &[("VIRTUAL_ENV", &venv)]).0, 0);
    assert!(venv.join("share/jupyter/kernels/mine/kernel.json").is_file());
    assert_eq!(home.run(&["install", "--prefix", "other"], &[]).0, 0);
    assert!(home.path("other/share/jupyter/kernels/cellwright-agent/kernel.json").is_file());
    let kernels = home.jupyter(&[("JUPYTER_PATH", &home.path("other/share/jupyter"))]);
    assert_eq!(kernels["cellwright-agent"]["spec"]["display_name"], "Cellwright Agent");
}

#[test]
fn a_failed_install_is_reported_with_advice() {
    let home = Home::new(&[]);
    let python = home.path(".local/share/jupyter/kernels/python3");
    std::fs::create_dir_all(&python).unwrap();
    std::fs::write(python.join("kernel.json"), "{\"argv\": [\"python\"], \"display_name\": \"P\"}").unwrap();
    let told = [
        home.run(&["install", "--agent", "claude"], &[]),
        home.run(&["install", "--agent", "nobody"], &[]),
        home.run(&["install", "--name", "python3"], &[]),
        home.run(&["install", "--name", "python3", "--force"], &[]),
        home.run(&["install", "--name", "a/b"], &[]),
        home.run(&["install", "--sys-prefix"], &[]),
        home.run(&["remove", "python3"], &[]),
        home.run(&["remove", "nothing"], &[]),
        home.run(&["install"], &[]),
    ];
    insta::assert_snapshot!(told.map(|(code, text)| format!("{code} {text}")).join(""));
}

#[test]
fn a_kernel_does_not_take_the_name_of_the_users_python() {
    let home = Home::new(&["claude-agent-acp"]);
    let venv = home.path("venv");
    let theirs = venv.join("share/jupyter/kernels/theirs");
    std::fs::create_dir_all(&theirs).unwrap();
    std::fs::write(theirs.join("kernel.json"), "{\"argv\": [\"python\"], \"display_name\": \"P\"}").unwrap();
    let variables: [(&str, &Path); 1] = [("VIRTUAL_ENV", &venv)];
    for name in ["python3", "theirs"] {
        let (code, text) = home.run(&["install", "--name", name], &variables);
        assert!(code != 0 && text.contains(&format!("`{name}` is the name of another kernel")), "{text}");
        assert!(!home.path(".local/share/jupyter/kernels").join(name).exists());
    }
    assert_eq!(home.run(&["install", "--name", "theirs", "--force"], &variables).0, 0);
    assert!(home.path(".local/share/jupyter/kernels/theirs/kernel.json").exists());
}
