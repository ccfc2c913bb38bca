//! A thousand trees that nobody trusts, with all that can name a program. None of it starts.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{ATTACKER, BINARY, VICTIM};

/// How many trees each of the four tests below tries.
const TREES: u32 = 250;

/// Random numbers that are the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        // Knuth's MMIX generator: its high bits are random enough.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// A folder with three more below it, each with some of what names a program.
struct RandomTree {
    root: tempfile::TempDir,
    work: PathBuf,
}

impl RandomTree {
    fn grow(seed: u32) -> Self {
        let root = tempfile::Builder::new().prefix("cwt").tempdir_in("/tmp").unwrap();
        let is_root = rustix::process::geteuid().is_root();
        let mut dice = Dice(u64::from(seed) + 1);
        mode(root.path(), 0o755);
        let home = root.path().join("home");
        for folder in ["home/.pyenv/versions/3.11/bin", "bin", "tmp"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        // A Python that ends at once. It is the victim's own, and may run.
        program(&root.path().join("bin/python3"), "#!/bin/sh\nexit 1\n");
        mode(&root.path().join("tmp"), 0o1777);
        let mut work = root.path().to_owned();
        for name in ["a", "b", "c", "d"] {
            work.push(name);
            fs::create_dir(&work).unwrap();
            let owner = dice.one_of(&[VICTIM, VICTIM, ATTACKER, 0]);
            for _ in 0..dice.below(4) {
                Self::plant(&work, dice.below(10), &mut dice, is_root);
            }
            mode(&work, dice.one_of(&[0o755, 0o755, 0o775, 0o777, 0o1777, 0o2775]));
            if is_root {
                chown(&work, Some(owner), Some(dice.one_of(&[VICTIM, ATTACKER]))).unwrap();
            }
        }
        if is_root {
            give_all(&home, VICTIM);
        }
        Self { root, work }
    }

    /// One thing that names a program, or is one.
    fn plant(folder: &Path, kind: usize, dice: &mut Dice, is_root: bool) {
        let evil = format!("#!/bin/sh\n: > {}\nexit 1\n", mark_of(folder).display());
        let real = folder.join("elsewhere");
        let (name, planted): (&str, Vec<(&str, &str)>) = match kind {
            0 => (".venv", vec![("pyvenv.cfg", ""), ("bin/python", &evil)]),
            1 => ("venv", vec![("bin/python", &evil)]),
            2 => (".git", vec![("HEAD", "")]),
            3 => (".cellwright", vec![("config.toml", "[python]\npath = 'evil.sh'\n")]),
            4 => (
                ".cellwright",
                vec![
                    ("config.toml", "[kernel]\ndefault = 'existing:evil.json'\n"),
                    ("modules/x.py", "1 / 0"),
                ],
            ),
            5 => (".python-version", vec![]),
            6 => ("uv.lock", vec![]),
            7 => ("venv.py", vec![]),
            8 => ("python3", vec![]),
            _ => (".cellwright", vec![("config.toml", "[python]\npath = './evil.sh'\nskip_check = true\n")]),
        };
        program(&folder.join("evil.sh"), &evil);
        let place = folder.join(name);
        if fs::symlink_metadata(&place).is_ok() || real.exists() {
            return;
        }
        let is_link = dice.below(4) == 0;
        let place = if is_link { real } else { place };
        if planted.is_empty() {
            let text = if name == ".python-version" {
                format!("../../../../../../../../..{}\n", folder.display())
            } else {
                evil.clone()
            };
            program(&place, &text);
            let bin = folder.join("bin");
            fs::create_dir_all(&bin).unwrap();
            program(&bin.join("python"), &format!("#!/bin/sh\n: > {}\n", mark_of(folder).display()));
        }
        for (file, text) in planted {
            let file = place.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            program(&file, text);
        }
        if is_link {
            symlink(&place, folder.join(name)).unwrap();
        }
        if is_root && dice.below(2) == 0 {
            give_all(&place, ATTACKER);
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        let home = self.root.path().join("home");
        // A folder of this kind on PATH is a mistake that many make.
        let path = format!(".::{}:/nowhere", self.root.path().join("bin").display());
        command.args(arguments).env_clear().current_dir(&self.work).env("HOME", home).env("PATH", path);
        command.env("TMPDIR", self.root.path().join("tmp"));
        if rustix::process::geteuid().is_root() {
            command.uid(VICTIM).gid(VICTIM);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// Where a program that started leaves its mark: everyone can write there.
fn mark_of(folder: &Path) -> PathBuf {
    let root = folder.ancestors().find(|above| above.parent() == Some(Path::new("/tmp"))).unwrap();
    root.join("tmp/started")
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    mode(path, 0o755);
}

fn give_all(path: &Path, owner: u32) {
    std::os::unix::fs::lchown(path, Some(owner), Some(owner)).unwrap();
    if fs::symlink_metadata(path).unwrap().is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            give_all(&entry.unwrap().path(), owner);
        }
    }
}

/// The commands, with what their callers send.
const COMMANDS: [(&[&str], &str); 5] = [
    (&["run", "-c", "1"], ""),
    (&["doctor", "--no-start"], ""),
    (&["tool", "eval", r#"{"code": "1"}"#], ""),
    (&["setup", "python"], ""),
    (
        &["mcp"],
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}\n\
         {\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n\
         {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"eval\",\"arguments\":{\"code\":\"1\"}}}\n",
    ),
];

#[track_caller]
fn check(part: u32) {
    let mut seen = 0;
    for seed in part * TREES..(part + 1) * TREES {
        let tree = RandomTree::grow(seed);
        for (arguments, sent) in COMMANDS {
            let mut child = tree.command(arguments).spawn().unwrap();
            // One that has its answer may be gone already.
            drop(child.stdin.take().unwrap().write_all(sent.as_bytes()));
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            seen += usize::from(said.contains("is not trusted"));
            assert!(!mark_of(&tree.work).exists(), "tree {seed}, {arguments:?}: {said}");
        }
    }
    assert!(seen > TREES as usize / 10, "too few trees bring anything: {seen}");
}

#[test]
fn nothing_of_a_thousand_untrusted_trees_is_started_first_quarter() {
    check(0);
}

#[test]
fn nothing_of_a_thousand_untrusted_trees_is_started_second_quarter() {
    check(1);
}

#[test]
fn nothing_of_a_thousand_untrusted_trees_is_started_third_quarter() {
    check(2);
}

#[test]
fn nothing_of_a_thousand_untrusted_trees_is_started_last_quarter() {
    check(3);
}

/// The tests above can fail: what is trusted starts.
#[test]
fn programs_of_such_trees_start_once_they_are_trusted() {
    let starts = |seed: u32| {
        let tree = RandomTree::grow(seed);
        let mut command = tree.command(&["run", "-c", "1"]);
        command.env("CELLWRIGHT_TRUSTED_FOLDERS", "/").output().unwrap();
        mark_of(&tree.work).exists()
    };
    assert!((0..TREES).any(starts));
}
