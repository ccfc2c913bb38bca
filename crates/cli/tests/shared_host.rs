//! A machine that others use too: what they prepare for us does nothing.
//!
//! Two users are needed for most of this, and only root can act as both. Tests that need them say so when they cannot run.

mod folders;
mod secrets;
mod strangers;
mod terminals;
mod trust;
mod untrusted_trees;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_cellwright");

/// A Python that every user can start.
const PYTHON: &str = "/usr/bin/python3";

/// Users whom nobody else is. They need no names.
const VICTIM: u32 = 61_001;
const ATTACKER: u32 = 61_002;

/// A machine with a folder for everybody's temporary files and a home for the victim.
struct SharedHost {
    folder: tempfile::TempDir,
}

impl SharedHost {
    /// `None` where we cannot act as two users.
    fn new() -> Option<Self> {
        #[expect(clippy::print_stderr, reason = "a test that could not run says so")]
        if !rustix::process::geteuid().is_root() || !Path::new(PYTHON).exists() {
            eprintln!("not run: this needs root, and {PYTHON}");
            return None;
        }
        // Not below a folder of root's alone.
        let folder = tempfile::Builder::new().prefix("cwh").tempdir_in("/tmp").unwrap();
        let host = Self { folder };
        set_mode(host.folder.path(), 0o755);
        host.make("tmp", 0, 0o1777);
        host.make("home", VICTIM, 0o755);
        // A daemon that a test starts does not outlive it for long.
        host.write("home/.config/cellwright/config.toml", "[session]\nlinger = 1\n", VICTIM, 0o644);
        Some(host)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes a folder with this owner and mode.
    fn make(&self, name: &str, owner: u32, mode: u32) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).unwrap();
        give(&path, owner, mode);
        path
    }

    /// Writes a file with this owner, and the folders that lead to it.
    fn write(&self, name: &str, text: &str, owner: u32, mode: u32) -> PathBuf {
        let path = self.path(name);
        let mut missing: Vec<_> =
            path.ancestors().skip(1).take_while(|above| !above.exists()).map(Path::to_owned).collect();
        while let Some(folder) = missing.pop() {
            fs::create_dir(&folder).unwrap();
            give(&folder, owner, 0o755);
        }
        fs::write(&path, text).unwrap();
        give(&path, owner, mode);
        path
    }

    /// The program, as the victim starts it.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.args(arguments).env_clear().stdin(Stdio::null());
        command.env("PATH", "/usr/bin:/bin").env("HOME", self.path("home")).env("TMPDIR", self.path("tmp"));
        command.current_dir(self.path("home")).uid(VICTIM).gid(VICTIM);
        command
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn give(path: &Path, owner: u32, mode: u32) {
    chown(path, Some(owner), Some(owner)).unwrap();
    set_mode(path, mode);
}

fn shown(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}
