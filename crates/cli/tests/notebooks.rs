//! Notebook commands through the door users use: the binary, real files, real processes.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
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
        let mut child = Command::new(BINARY)
            .args(arguments)
            .env("XDG_STATE_HOME", self.0.path().join("state"))
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

#[test]
fn a_notebook_is_read_edited_and_written() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    let text = "# %% [code] cell:0\nn = 10\nprint(n)\n# %% [markdown] cell:1\n# Title\n";
    assert_eq!(
        folder.run(&["read", "nb.ipynb"], ""),
        Ran { code: 0, stdout: text.into(), stderr: String::new() }
    );
    assert_eq!(folder.run(&["read", "nb.ipynb#id:bbbb2222"], "").stdout, "# %% [markdown] cell:1\n# Title\n");
    assert_eq!(folder.run(&["read", "nb.ipynb:2-3", "-n"], "").stdout, "    2  n = 10\n    3  print(n)\n");
    assert_eq!(folder.run(&["read", "nb.ipynb:1,-1"], "").stdout, "# %% [code] cell:0\n⋯ line 5\n# Title\n");
    assert_eq!(folder.run(&["read", "nb.ipynb:raw"], "").stdout, NOTEBOOK);

    let unchanged = folder.run(&["write", "nb.ipynb", "-"], text);
    assert_eq!((unchanged.code, unchanged.stdout.as_str()), (0, "no cell changed (2 cells now)\n"));
    assert_eq!(folder.read("nb.ipynb"), NOTEBOOK);

    let edited = folder.run(&["edit", "nb.ipynb", "--old", "n = 10", "--new", "n = 11"], "");
    let told = "edited code cell 0 (2 cells now)\nnote: the execution count of cell 0 was removed\n";
    assert_eq!((edited.code, edited.stdout.as_str()), (0, told));
    let expected =
        NOTEBOOK.replace("n = 10", "n = 11").replace("\"execution_count\": 2", "\"execution_count\": null");
    assert_eq!(folder.read("nb.ipynb"), expected);
}

#[test]
fn every_action_answers_with_its_details() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    let mut answers = String::new();
    for arguments in [
        &["edit", "nb.ipynb", "1", "--source", "## Title"][..],
        &["insert", "nb.ipynb", "--at", "1", "--type", "raw", "--source", "r", "--source", "s"],
        &["move", "nb.ipynb", "id:bbbb2222", "0"],
        &["retype", "nb.ipynb", "bbbb2222", "code"],
        &["clear", "nb.ipynb"],
        &["delete", "nb.ipynb", "2", "3"],
    ] {
        let ran = folder.run(&[&["notebook"], arguments, &["--json"]].concat(), "");
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{arguments:?}");
        answers.push_str(&ran.stdout);
    }
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r#""fingerprint":"[0-9a-f]{32}""#, r#""fingerprint":"…""#);
    settings.add_filter(r#""id":"[0-9a-f]{8}","type":"raw""#, r#""id":"…","type":"raw""#);
    settings.bind(|| insta::assert_snapshot!(answers, @r###"
    {"action":"edit","cells":[{"change":"edited","index":1,"id":"bbbb2222","type":"markdown","source":"## Title"}],"total_cells":2,"notes":[],"fingerprint":"…"}
    {"action":"insert","cells":[{"change":"inserted","index":1,"id":"…","type":"raw","source":"r"},{"change":"inserted","index":2,"id":"…","type":"raw","source":"s"}],"total_cells":4,"notes":[],"fingerprint":"…"}
    {"action":"move","cells":[{"change":"moved","index":0,"id":"bbbb2222","type":"markdown","source":"## Title"}],"total_cells":4,"notes":[],"fingerprint":"…"}
    {"action":"retype","cells":[{"change":"retyped","index":0,"id":"bbbb2222","type":"code","source":"## Title"}],"total_cells":4,"notes":[],"fingerprint":"…"}
    {"action":"clear","cells":[{"change":"cleared","index":1,"id":"aaaa1111","type":"code","source":"n = 10\nprint(n)"}],"total_cells":4,"notes":[],"fingerprint":"…"}
    {"action":"delete","cells":[{"change":"deleted","index":2,"id":"…","type":"raw","source":"r"},{"change":"deleted","index":3,"id":"…","type":"raw","source":"s"}],"total_cells":2,"notes":[],"fingerprint":"…"}
    "###));
}

#[test]
fn refusals_say_what_to_do_and_change_nothing() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    let mut refusals = String::new();
    for (arguments, stdin) in [
        (&["read", "other.ipynb"][..], ""),
        (&["read", "nb.ipynb:100-"], ""),
        (&["read", "nb.ipynb#7"], ""),
        (&["read", "nb.ipynb#x"], ""),
        (&["read", "nb.ipynb", "--image", "0.0", "--to", "-"], ""),
        (&["write", "nb.ipynb", "-"], ""),
        (&["write", "nb.ipynb", "-"], "print(1)\n"),
        (&["write", "nb.ipynb", "-"], "# %% [code] cell:0\nx\n#%%\ny\n"),
        (&["write", "nb.ipynb", "-"], "{\"cells\": 1}"),
        (&["edit", "nb.ipynb", "--old", "n", "--new", "m"], ""),
        (&["edit", "nb.ipynb", "--old", "print( n )", "--new", "m"], ""),
        (&["edit", "nb.ipynb", "--old", "n"], ""),
        (&["edit", "nb.ipynb", "--edits", "-"], "[{\"old\": 1}]"),
        (&["notebook", "insert", "nb.ipynb", "--at", "9", "--source", "x"], ""),
        (&["notebook", "delete", "nb.ipynb", "2"], ""),
        (&["notebook", "edit", "nb.ipynb", "id:nope", "--source", "x"], ""),
        (&["notebook", "edit", "other.ipynb", "0", "--source", "x"], ""),
    ] {
        let ran = folder.run(arguments, stdin);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{arguments:?}");
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
        refusals.push_str(&ran.stderr);
    }
    assert_eq!(folder.read("nb.ipynb"), NOTEBOOK);
    insta::assert_snapshot!(refusals, @r##"
    error: other.ipynb: no such file
    error: nb.ipynb: line 100 is past the end; there are 5 lines
    error: nb.ipynb: there is no cell 7; the notebook has cells 0 to 1
    error: nb.ipynb: `#x` is not a selector; see `cellwright read --help`
    error: nb.ipynb: cell 0 has no image 0.0; `--outputs summary` shows which there are
    error: nb.ipynb: the text has no cells and would delete all 2; to do that, use the delete action
    error: stdin: line 1: the text must start with a cell marker such as `# %% [code]`, but starts with "print(1)"
    error: stdin: line 3: "#%%" looks like a cell marker but is none; write `# %% [code]`, `# %% [markdown]` or `# %% [raw]` to start a cell, or one `%` more to have this line as text
    error: nb.ipynb: line 1, column 11: `cells` must be an array
    error: nb.ipynb: 3 matches for "n", on lines 2, 3, 3; add text around it until it is unique, or replace all
    error: nb.ipynb: no match for "print( n )"; line 3 is close: check white space and line ends
    error: each --old needs a --new, and each --new an --old
    error: stdin is not a list of edits: invalid type: integer `1`, expected a string at line 1 column 10
    error: nb.ipynb: cannot insert at 9; the notebook has 2 cells, so 0 to 2 are possible
    error: nb.ipynb: there is no cell 2; the notebook has cells 0 to 1
    error: nb.ipynb: no cell has the id `nope`
    error: other.ipynb: no such file
    "##);
}

#[test]
fn n16_a_text_that_is_no_notebook_never_replaces_one() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    for text in ["x = 1\n", "# Title\n", "[]", "\"text\"", "{}", "{\"nbformat\": 4}", " # %% [code]\n"] {
        let ran = folder.run(&["write", "nb.ipynb", "-"], text);
        assert_eq!(ran.code, 1, "{text:?}");
        assert_eq!(folder.read("nb.ipynb"), NOTEBOOK);
    }
    let json = NOTEBOOK.replace("n = 10", "n = 12");
    assert_eq!(folder.run(&["write", "nb.ipynb", "-"], &json).stdout, "edited code cell 0 (2 cells now)\n");
    assert_eq!(folder.read("nb.ipynb"), json);
}

#[test]
fn a_write_over_a_file_that_changed_is_refused_with_its_own_exit_code() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    let read = folder.run(&["read", "nb.ipynb", "--json"], "").stdout;
    let fingerprint = read.split("\"fingerprint\":\"").nth(1).unwrap()[..32].to_owned();
    let edit = |expect: &str| {
        folder.run(&["edit", "nb.ipynb", "--old", "n = 1", "--new", "n = 2", "--expect", expect], "")
    };
    assert_eq!(edit(&fingerprint).code, 0);
    let refused = edit(&fingerprint);
    assert_eq!(refused.code, 3);
    assert!(refused.stderr.contains("changed since it was read"), "{}", refused.stderr);
}

#[test]
fn errors_are_json_where_answers_are() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    let failed = folder.run(&["read", "none.ipynb", "--json"], "");
    assert_eq!((failed.code, failed.stdout.as_str()), (1, ""));
    let told: serde_json::Value = serde_json::from_str(&failed.stderr).unwrap();
    assert_eq!(told, serde_json::json!({ "error": "none.ipynb: no such file", "exit": 1 }));
    let below = folder.run(&["notebook", "delete", "nb.ipynb", "9", "--json"], "");
    assert!(below.stderr.starts_with("{\"error\":"), "{}", below.stderr);
}

#[test]
fn n15_a_text_that_speaks_of_another_file_is_refused() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    let text = folder.run(&["read", "nb.ipynb"], "").stdout;
    // Edits that move no cell leave the text's numbers right.
    let edited = text.replace("n = 10", "n = 20");
    assert_eq!(folder.run(&["write", "nb.ipynb"], &edited).code, 0);
    assert_eq!(folder.run(&["write", "nb.ipynb"], &edited.replace("20", "30")).code, 0);
    // Another program puts a cell in front.
    let theirs = NOTEBOOK.replacen(
        "  {\n",
        "  {\"cell_type\": \"raw\", \"id\": \"c\", \"metadata\": {}, \"source\": []},\n  {\n",
        1,
    );
    fs::write(folder.path("nb.ipynb"), &theirs).unwrap();
    let refused = folder.run(&["write", "nb.ipynb"], &edited);
    let told = "error: nb.ipynb: changed since it was read, so nothing was written (the text names cells by the places they had then); read it again\n";
    assert_eq!((refused.code, refused.stderr.as_str()), (3, told));
    assert_eq!(folder.read("nb.ipynb"), theirs);
    // A text that speaks of no cell of the file is a new notebook, whatever was read before.
    assert_eq!(folder.run(&["write", "nb.ipynb"], "# %% [code]\nnew\n").code, 0);
}

#[test]
fn n12_a_part_of_a_notebook_written_back_does_not_delete_the_rest() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    let part = folder.run(&["read", "nb.ipynb#1"], "").stdout;
    let refused = folder.run(&["write", "nb.ipynb"], &part);
    let told = "error: nb.ipynb: only a part of the notebook was read last, and this text would delete the rest; read it whole, or use --force\n";
    assert_eq!((refused.code, refused.stderr.as_str()), (1, told));
    assert_eq!(folder.read("nb.ipynb"), NOTEBOOK);
    assert_eq!(folder.run(&["write", "nb.ipynb", "--force"], &part).code, 0);
}

#[test]
fn what_is_created_or_changed_outside_cells_is_told() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    let created = folder.run(&["write", "new.ipynb"], "# %% [code]\nx\n");
    assert_eq!(
        created.stdout,
        "inserted code cell 0 (1 cell now)\nnote: there was no such file; it was created\n"
    );
    assert_eq!(folder.run(&["write", "none.ipynb"], "").stderr, "error: none.ipynb: no such file\n");
    let metadata =
        NOTEBOOK.replace("\"metadata\": {},\n \"nbformat\"", "\"metadata\": {\"a\": 1},\n \"nbformat\"");
    let changed = folder.run(&["write", "nb.ipynb"], &metadata);
    assert_eq!(
        changed.stdout,
        "no cell changed (2 cells now)\nnote: the notebook's metadata or layout changed\n"
    );
    std::os::unix::fs::symlink("nowhere", folder.path("dangling.ipynb")).unwrap();
    let dangling = folder.run(&["notebook", "insert", "dangling.ipynb", "--source", "x"], "");
    assert_eq!(
        dangling.stderr,
        "error: dangling.ipynb: a symlink to a file that is not there, not a notebook file\n"
    );
}

#[test]
fn the_json_of_one_cell_is_only_that_cells() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    let raw = folder.run(&["read", "nb.ipynb#1:raw"], "").stdout;
    assert!(raw.starts_with("{\n   \"cell_type\": \"markdown\"") && raw.ends_with("}\n"), "{raw}");
}

#[test]
fn n20_whatever_the_file_is_the_answer_is_one_line_and_the_file_is_untouched() {
    let mut broken: Vec<(String, Vec<u8>)> = vec![
        ("not json".into(), b"hello".to_vec()),
        ("empty".into(), Vec::new()),
        ("array".into(), b"[]".to_vec()),
        ("no cells".into(), b"{\"nbformat\": 4}".to_vec()),
        ("cells not an array".into(), b"{\"nbformat\": 4, \"cells\": 7}".to_vec()),
        ("bad cell type".into(), NOTEBOOK.replace("markdown", "heading").into()),
        ("nbformat 3".into(), b"{\"nbformat\": 3, \"worksheets\": []}".to_vec()),
        (
            "not utf-8".into(),
            NOTEBOOK.replace("Title", "\u{0}").bytes().map(|b| if b == 0 { 0xff } else { b }).collect(),
        ),
        ("deep".into(), format!("{{\"nbformat\": 4, \"cells\": {}", "[".repeat(100_000)).into()),
        ("deep metadata".into(), format!("{{\"metadata\": {}", "{\"a\":".repeat(100_000)).into()),
    ];
    let bytes = NOTEBOOK.trim_end().as_bytes();
    broken
        .extend((0..64).map(|part| (format!("cut at {part}/64"), bytes[..bytes.len() * part / 64].to_vec())));
    for (name, content) in broken {
        let folder = Folder::with("nb.ipynb", &content);
        // Written a while ago: one just written would be given time to become whole.
        let file = fs::File::options().write(true).open(folder.path("nb.ipynb")).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        for arguments in [
            &["read", "nb.ipynb"][..],
            &["notebook", "clear", "nb.ipynb"],
            &["edit", "nb.ipynb", "--old", "a", "--new", "b"],
        ] {
            let ran = folder.run(arguments, "");
            assert_eq!(
                (ran.code, ran.stdout.as_str(), ran.stderr.lines().count()),
                (1, "", 1),
                "{name}: {}",
                ran.stderr
            );
            assert!(ran.stderr.starts_with("error: nb.ipynb"), "{name}: {}", ran.stderr);
        }
        assert_eq!(fs::read(folder.path("nb.ipynb")).unwrap(), content, "{name}");
    }
    let folder = Folder::with("other", "");
    fs::create_dir(folder.path("folder.ipynb")).unwrap();
    nix::unistd::mkfifo(&folder.path("pipe.ipynb"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(
        folder.run(&["read", "folder.ipynb"], "").stderr,
        "error: folder.ipynb: a directory, not a notebook file\n"
    );
    assert_eq!(
        folder.run(&["read", "pipe.ipynb"], "").stderr,
        "error: pipe.ipynb: a named pipe, not a notebook file\n"
    );
    assert_eq!(
        folder.run(&["read", "/dev/zero"], "").stderr,
        "error: /dev/zero: a device, not a notebook file\n"
    );
}

/// Runs the binary as a user whom permissions bind: root passes them all.
fn run_bound_by_permissions(folder: &Folder, arguments: &[&str]) -> Ran {
    let mut command = Command::new(BINARY);
    if nix::unistd::geteuid().is_root() {
        const NOBODY: u32 = 65534;
        let binary = folder.path("cellwright");
        fs::copy(BINARY, &binary).unwrap();
        fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
        for entry in fs::read_dir(folder.0.path()).unwrap() {
            chown(entry.unwrap().path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        chown(folder.0.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        command = Command::new(binary);
        // The home of this process is not theirs.
        command.uid(NOBODY).gid(NOBODY).env("HOME", folder.0.path()).env_remove("XDG_CONFIG_HOME");
    }
    Ran::from(command.args(arguments).current_dir(folder.0.path()).output().unwrap())
}

#[test]
fn n19_without_the_right_to_write_the_original_stays() {
    for (folder_mode, file_mode, told) in [
        (
            0o555,
            0o644,
            "error: nb.ipynb: could not make a temporary file beside it: Permission denied (os error 13)\n",
        ),
        (0o755, 0o444, "error: nb.ipynb: could not write it: Permission denied (os error 13)\n"),
        (0o755, 0o000, "error: nb.ipynb: could not open it: Permission denied (os error 13)\n"),
    ] {
        let folder = Folder::with("nb.ipynb", NOTEBOOK);
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        set(&folder.path("nb.ipynb"), file_mode);
        fs::copy(BINARY, folder.path("cellwright")).unwrap();
        set(folder.0.path(), folder_mode);
        let ran = run_bound_by_permissions(&folder, &["edit", "nb.ipynb", "--old", "10", "--new", "11"]);
        set(folder.0.path(), 0o755);
        set(&folder.path("nb.ipynb"), 0o644);
        assert_eq!((ran.code, ran.stderr.as_str()), (1, told));
        assert_eq!(folder.read("nb.ipynb"), NOTEBOOK);
    }
}

#[test]
fn a_notebook_whose_outputs_can_not_be_saved_is_not_run() {
    for (folder_mode, file_mode, attempt) in
        [(0o555, 0o644, "write into its folder"), (0o755, 0o444, "write it")]
    {
        let folder = Folder::with("nb.ipynb", NOTEBOOK);
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        set(&folder.path("nb.ipynb"), file_mode);
        fs::copy(BINARY, folder.path("cellwright")).unwrap();
        set(folder.0.path(), folder_mode);
        let ran = run_bound_by_permissions(&folder, &["run", "nb.ipynb"]);
        set(folder.0.path(), 0o755);
        let told = format!(
            "error: the outputs need a file that can be written, this one or that of --output: nb.ipynb: could not {attempt}: Permission denied (os error 13)\n"
        );
        assert_eq!((ran.code, ran.stderr), (1, told));
        assert_eq!(folder.read("nb.ipynb"), NOTEBOOK);
    }
}

#[test]
fn n19_a_full_disk_leaves_the_original() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    // A disk of one page less than the file and its replacement need, in a mount namespace of its own.
    let script =
        "mount -t tmpfs -o size=16k tmpfs full && cp nb.ipynb full/ && head -c 8k /dev/zero > full/filler &&
        $0 notebook insert full/nb.ipynb --source \"$(head -c 9000 /dev/zero | tr '\\0' x)\"; code=$?;
        cmp nb.ipynb full/nb.ipynb && ls -A full && exit $code";
    fs::create_dir(folder.path("full")).unwrap();
    let mut command = Command::new("unshare");
    if !nix::unistd::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    let ran =
        command.args(["--mount", "sh", "-c", script, BINARY]).current_dir(folder.0.path()).output().unwrap();
    let ran = Ran::from(ran);
    let told =
        "error: full/nb.ipynb: could not write its new content: No space left on device (os error 28)\n";
    assert_eq!(ran, Ran { code: 1, stdout: "filler\nnb.ipynb\n".into(), stderr: told.into() });
}

#[test]
fn n19_a_kill_at_any_moment_leaves_a_whole_notebook() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    let script = "for i in $(seq 400); do $0 notebook insert nb.ipynb --source x >/dev/null || exit 1; done";
    let mut cells = 2;
    for _ in 0..10 {
        let mut writer = Command::new("sh")
            .args(["-c", script, BINARY])
            .current_dir(folder.0.path())
            .process_group(0)
            .spawn()
            .unwrap();
        // Killed in the middle of its work: once it has been seen to do some.
        let there = loop {
            let there = count_cells(&folder);
            if there > cells + 3 {
                break there;
            }
        };
        nix::sys::signal::killpg(
            nix::unistd::Pid::from_raw(writer.id().try_into().unwrap()),
            nix::sys::signal::SIGKILL,
        )
        .unwrap();
        writer.wait().unwrap();
        let after = count_cells(&folder);
        assert!(after >= there, "{after} cells after {there}");
        let left = fs::read_dir(folder.0.path()).unwrap().count();
        assert!(left <= 3, "{left} files: at most the notebook, our notes and one temporary file");
        cells = after;
    }
}

fn count_cells(folder: &Folder) -> usize {
    let read = folder.run(&["read", "nb.ipynb"], "");
    assert_eq!((read.code, read.stderr.as_str()), (0, ""));
    read.stdout.lines().filter(|line| line.starts_with("# %% [")).count()
}

#[test]
fn n21_eight_processes_editing_one_notebook_lose_no_edit() {
    const PROCESSES: usize = 8;
    const INSERTS: usize = 200;
    let folder = Folder::with("other", "");
    let script = format!(
        "for i in $(seq {INSERTS}); do $0 notebook insert nb.ipynb --at 0 --source \"$1-$i\" >/dev/null || exit 1; done"
    );
    let start = |number: usize| {
        Command::new("sh")
            .args(["-c", &script, BINARY, &number.to_string()])
            .current_dir(folder.0.path())
            .spawn()
            .unwrap()
    };
    let writers: Vec<_> = (0..PROCESSES).map(start).collect();
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    let text = folder.run(&["read", "nb.ipynb"], "").stdout;
    let mut found: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let expected = (0..PROCESSES).flat_map(|p| (1..=INSERTS).map(move |i| format!("{p}-{i}")));
    let mut expected: Vec<_> = expected.collect();
    found.sort_unstable();
    expected.sort();
    assert_eq!(found, expected);
}
