//! Processes that are held just before they rename, so that others can save at the worst moment.

use std::fs;
use std::process::{Child, Command, Output, Stdio};

use nix::sys::stat::Mode;

use super::{BINARY, Folder, NOTEBOOK};

/// Holds the first rename of a process: it opens one pipe, so that the test knows, and waits at another.
const HOLD: &str = "#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
  int (*real)(int, const char *, int, const char *, unsigned) = dlsym(RTLD_NEXT, \"renameat2\");
  const char *held = getenv(\"HELD\"), *go = getenv(\"GO\");
  if (held) {
    unsetenv(\"HELD\");
    close(open(held, O_WRONLY));
    close(open(go, O_RDONLY));
  }
  return real(a, from, b, to, flags);
}
";

fn build_library(folder: &Folder) {
    fs::write(folder.path("hold.c"), HOLD).unwrap();
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o", "hold.so", "hold.c", "-ldl"])
        .current_dir(folder.0.path())
        .status()
        .expect("a C compiler, which Rust links with");
    assert!(built.success());
}

/// A command that is to be held before its rename.
struct HeldCommand<'a> {
    folder: &'a Folder,
    name: &'static str,
    child: Child,
}

impl<'a> HeldCommand<'a> {
    fn start(folder: &'a Folder, name: &'static str, arguments: &[&str]) -> Self {
        let pipe = |end: &str| {
            let pipe = folder.path(&format!("{name}.{end}"));
            drop(fs::remove_file(&pipe)); // of an earlier command
            nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).unwrap();
            pipe
        };
        let mut command = Command::new(BINARY);
        command.args(arguments).current_dir(folder.0.path());
        command.env("LD_PRELOAD", folder.path("hold.so")).env("HELD", pipe("held")).env("GO", pipe("go"));
        command.env("XDG_STATE_HOME", folder.path("state"));
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        Self { folder, name, child }
    }

    /// Waits until it is about to rename.
    fn held(&self) {
        drop(fs::File::open(self.folder.path(&format!("{}.held", self.name))).unwrap());
    }

    /// Lets it rename, and waits for its end.
    fn go(self) -> Output {
        fs::write(self.folder.path(&format!("{}.go", self.name)), "").unwrap();
        self.child.wait_with_output().unwrap()
    }
}

fn save_by_rename(folder: &Folder, name: &str, content: &str) {
    fs::write(folder.path("theirs"), content).unwrap();
    fs::rename(folder.path("theirs"), folder.path(name)).unwrap();
}

/// Two processes, and a third program that saves by a rename, each stopped just before its own rename: with a temporary file
/// of a fixed name the second removed that of the first, and half a notebook was left with exit 0.
#[test]
fn n21_savers_that_are_held_up_before_their_renames_tear_nothing_and_report_the_truth() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    build_library(&folder);
    for is_first_first in [true, false] {
        fs::write(folder.path("nb.ipynb"), NOTEBOOK).unwrap();
        let insert =
            |name| HeldCommand::start(&folder, name, &["notebook", "insert", "nb.ipynb", "--source", name]);
        let first = insert("first");
        first.held();
        // Another program saves by a rename, and a second process of ours begins with what it saved.
        save_by_rename(&folder, "nb.ipynb", &NOTEBOOK.replace("n = 10", "n = 20"));
        let second = insert("second");
        let ended = if is_first_first {
            let ended = first.go();
            second.held();
            [("first", ended), ("second", second.go())]
        } else {
            // It waits for the first for a second at most.
            second.held();
            let ended = second.go();
            [("first", first.go()), ("second", ended)]
        };
        let text = folder.run(&["read", "nb.ipynb"], "").stdout;
        assert!(text.contains("n = 20"), "what the other program saved is gone: {text}");
        for (name, ran) in ended {
            let told = String::from_utf8_lossy(&ran.stderr).into_owned();
            assert_eq!(ran.status.success(), text.contains(name), "{name}: {told}\n{text}");
            assert!(ran.status.success() || told.contains("changed since it was read"), "{told}");
        }
        holds_no_temporary_file(&folder);
    }
}

#[test]
fn an_edit_of_a_text_file_went_over_what_another_program_saved_at_that_moment() {
    let folder = Folder::with("a.txt", "one\ntwo\n");
    build_library(&folder);
    let edits: [&[&str]; 2] =
        [&["edit", "a.txt", "--old", "one", "--new", "1"], &["write", "a.txt", "text", "--force"]];
    fs::write(folder.path("text"), "mine\n").unwrap();
    for edit in edits {
        fs::write(folder.path("a.txt"), "one\ntwo\n").unwrap();
        let held = HeldCommand::start(&folder, "edit", edit);
        held.held();
        save_by_rename(&folder, "a.txt", "one\ntwo\nthe person's\n");
        let ran = held.go();
        assert_eq!(ran.status.code(), Some(3), "{}", String::from_utf8_lossy(&ran.stderr));
        assert_eq!(folder.read("a.txt"), "one\ntwo\nthe person's\n");
        holds_no_temporary_file(&folder);
    }
}

#[test]
fn an_undo_that_was_overtaken_cost_the_only_copy_of_what_it_brings_back() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    build_library(&folder);
    assert_eq!(folder.run(&["notebook", "delete", "nb.ipynb", "1"], "").code, 0);
    // As many changes as are kept.
    for _ in 1..100 {
        assert_eq!(folder.run(&["notebook", "insert", "nb.ipynb", "--source", "x"], "").code, 0);
    }
    let held = HeldCommand::start(&folder, "undo", &["notebook", "undo", "nb.ipynb", "1"]);
    held.held();
    save_by_rename(&folder, "nb.ipynb", &folder.read("nb.ipynb").replace("n = 10", "n = 20"));
    let ran = held.go();
    assert_eq!(ran.status.code(), Some(3), "{}", String::from_utf8_lossy(&ran.stderr));
    let undone = folder.run(&["notebook", "undo", "nb.ipynb", "1"], "");
    assert_eq!(undone.code, 0, "{}", undone.stderr);
    let text = folder.read("nb.ipynb");
    assert!(text.contains("# Title") && text.contains("n = 20"), "{text}");
}

#[track_caller]
fn holds_no_temporary_file(folder: &Folder) {
    for entry in fs::read_dir(folder.0.path()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.starts_with(".cellwright-"), "{name} is left");
    }
}

#[test]
fn eight_processes_editing_one_text_file_lose_no_edit() {
    const PROCESSES: usize = 8;
    const EDITS: usize = 40;
    let lines: Vec<_> = (0..PROCESSES).map(|process| format!("{process}:")).collect();
    let folder = Folder::with("a.txt", format!("{}\n", lines.join("\n")));
    let script = format!(
        "for i in $(seq {EDITS}); do $0 edit a.txt --force --old \"$1:\" --new \"$1:x\" >/dev/null || exit 1; done"
    );
    let start = |process: usize| {
        let mut command = Command::new("sh");
        command.args(["-c", &script, BINARY, &process.to_string()]).current_dir(folder.0.path());
        command.env("CELLWRIGHT_CALLER", process.to_string()).env("XDG_STATE_HOME", folder.path("state"));
        command.spawn().unwrap()
    };
    let writers: Vec<_> = (0..PROCESSES).map(start).collect();
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    let expected: Vec<_> = (0..PROCESSES).map(|process| format!("{process}:{}", "x".repeat(EDITS))).collect();
    assert_eq!(folder.read("a.txt").lines().collect::<Vec<_>>(), expected);
}
