//! Notebook commands through the door users use: the binary, real files, real processes.

mod editing;
mod files;
mod held;
mod kinds;

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_cellwright");

const NOTEBOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "code",
   "execution_count": 2,
   "id": "aaaa1111",
   "metadata": {},
   "outputs": [],
   "source": [
    "n = 10\n",
    "print(n)"
   ]
  },
  {
   "cell_type": "markdown",
   "id": "bbbb2222",
   "metadata": {},
   "source": [
    "# Title"
   ]
  }
 ],
 "metadata": {},
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

struct Folder(tempfile::TempDir);

impl Folder {
    fn with(name: &str, content: impl AsRef<[u8]>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(name), content).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Runs `cellwright` in the folder.
    fn run(&self, arguments: &[&str], stdin: &str) -> Ran {
        self.run_with(arguments, stdin, &[])
    }

    fn run_with(&self, arguments: &[&str], stdin: &str, variables: &[(&str, &str)]) -> Ran {
        let mut child = Command::new(BINARY)
            .args(arguments)
            .env("XDG_STATE_HOME", self.0.path().join("state"))
            .envs(variables.iter().copied())
            .current_dir(self.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that refuses before it reads may be gone already.
        drop(child.stdin.take().unwrap().write_all(stdin.as_bytes()));
        Ran::from(child.wait_with_output().unwrap())
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Ran {
    code: i32,
    stdout: String,
    stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("it was not killed"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}
