//! `cellwright lab`, with JupyterLab itself as the judge of what was installed.

use std::path::Path;
use std::process::{Command, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_cellwright");

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn output(&self, command: &mut Command, variables: &[(&str, &Path)]) -> String {
        command.current_dir(self.0.path()).env_clear().stdin(Stdio::null());
        command.env("HOME", self.0.path()).envs(variables.iter().copied());
        let output = command.output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.success(), "{text}");
        text.replace(self.0.path().to_str().unwrap(), "~")
    }

    fn lab(&self, arguments: &[&str], variables: &[(&str, &Path)]) -> String {
        self.output(Command::new(BINARY).arg("lab").args(arguments), variables)
    }

    /// What JupyterLab lists.
    fn extensions(&self) -> String {
        let mut command = Command::new(cellwright_testkit::python());
        self.output(command.args(["-m", "jupyterlab.labextensions", "list"]), &[])
    }
}

#[test]
fn jupyterlab_lists_the_extension_until_it_is_removed() {
    let home = Home::new();
    assert!(home.lab(&["status"], &[]).starts_with("the extension is not installed"));
    assert!(
        home.lab(&["install"], &[])
            .starts_with("installed the extension in ~/.local/share/jupyter/labextensions/cellwright\n")
    );
    let listed = home.extensions();
    let line = listed.lines().find(|line| line.contains("cellwright")).expect(&listed);
    assert!(line.contains("enabled") && line.contains("OK"), "{listed}");
    let status = home.lab(&["status", "--json"], &[]);
    assert!(status.contains(r#""current": true"#) || status.contains(r#""current":true"#), "{status}");
    home.lab(&["uninstall"], &[]);
    assert!(!home.extensions().contains("cellwright"));
    assert!(!home.0.path().join(".local/share/jupyter/labextensions").exists());
    assert_eq!(home.lab(&["uninstall"], &[]), "no extension is in ~/.local/share/jupyter/labextensions\n");
}

#[test]
fn the_extension_can_be_installed_for_one_environment() {
    let home = Home::new();
    let venv = home.0.path().join("venv");
    home.lab(&["install", "--sys-prefix"], &[("VIRTUAL_ENV", &venv)]);
    assert!(venv.join("share/jupyter/labextensions/cellwright/package.json").is_file());
    home.lab(&["install", "--prefix", "other"], &[]);
    assert!(home.0.path().join("other/share/jupyter/labextensions/cellwright/install.json").is_file());
}
