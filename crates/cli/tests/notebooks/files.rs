//! What becomes of the file: whatever it is, whoever else writes it, and whatever happens meanwhile.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use super::{BINARY, Folder, NOTEBOOK, Ran};

#[test]
fn n20_whatever_the_file_is_the_answer_is_one_line_and_the_file_is_untouched() {
    let mut broken: Vec<(String, Vec<u8>)> = vec![
        ("not json".into(), b"hello".to_vec()),
        ("empty".into(), Vec::new()),
        ("array".into(), b"[]".to_vec()),
        ("no cells".into(), b"{\"nbformat\": 4}".to_vec()),
        ("cells not an array".into(), b"{\"nbformat\": 4, \"cells\": 7}".to_vec()),
        ("bad cell type".into(), NOTEBOOK.replace("\"markdown\"", "7").into()),
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
    let folder = Folder::with("old one.ipynb", "{\"nbformat\": 3, \"worksheets\": []}");
    assert_eq!(
        folder.run(&["read", "old one.ipynb"], "").stderr,
        "error: old one.ipynb is not a usable notebook: it has nbformat 3; convert it first: jupyter nbconvert --to notebook --nbformat 4 --inplace 'old one.ipynb'\n"
    );
    fs::create_dir(folder.path("folder.ipynb")).unwrap();
    nix::unistd::mkfifo(&folder.path("pipe.ipynb"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for (path, what) in
        [("folder.ipynb", "a directory"), ("pipe.ipynb", "a named pipe"), ("/dev/zero", "a device")]
    {
        for (arguments, stdin) in [
            (&["read", path][..], ""),
            (&["read", path, "--outputs", "text"], ""),
            (&["edit", path, "--old", "a", "--new", "b"], ""),
            (&["notebook", "insert", path, "--source", "x"], ""),
            (&["notebook", "clear", path], ""),
            (&["write", path], "# %% [code]\nx\n"),
            (&["write", path], NOTEBOOK),
        ] {
            let ran = folder.run(arguments, stdin);
            let told = format!("error: {path}: {what}, not a notebook file\n");
            assert_eq!((ran.code, ran.stderr), (1, told), "{arguments:?}");
        }
    }
}

#[test]
fn n20_a_large_file_that_is_cut_short_is_refused_as_a_small_one_is() {
    let long = NOTEBOOK.replace("# Title", &"# Title ".repeat(1_500_000));
    let folder = Folder::with("nb.ipynb", "");
    for part in 1..8 {
        let cut = &long[..long.len() * part / 8];
        fs::write(folder.path("nb.ipynb"), cut).unwrap();
        let file = fs::File::options().write(true).open(folder.path("nb.ipynb")).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        for arguments in [&["read", "nb.ipynb"][..], &["edit", "nb.ipynb", "--old", "a", "--new", "b"]] {
            let ran = folder.run(arguments, "");
            let told = "error: nb.ipynb is not a usable notebook: line 19, column 5: a string that never ends; the rest of the file is missing: restore it from version control, a backup or Jupyter's checkpoint\n";
            assert_eq!((ran.code, ran.stderr.as_str()), (1, told), "{part} of {arguments:?}");
        }
        assert!(folder.read("nb.ipynb") == cut);
    }
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
            "error: nb.ipynb: could not write a journal for it: Permission denied (os error 13)\n",
        ),
        (0o755, 0o444, "error: nb.ipynb: could not write it: Permission denied (os error 13)\n"),
        (0o755, 0o000, "error: nb.ipynb: could not open it: Permission denied (os error 13)\n"),
    ] {
        let folder = Folder::with("nb.ipynb", NOTEBOOK);
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        set(&folder.path("nb.ipynb"), file_mode);
        fs::copy(BINARY, folder.path("cellwright")).unwrap();
        set(folder.0.path(), folder_mode);
        // Forced, because undo cannot be stored in the first of these either.
        let edit = ["edit", "nb.ipynb", "--old", "10", "--new", "11", "--force"];
        let ran = run_bound_by_permissions(&folder, &edit);
        set(folder.0.path(), 0o755);
        set(&folder.path("nb.ipynb"), 0o644);
        assert_eq!((ran.code, ran.stderr.as_str()), (1, told));
        assert_eq!(folder.read("nb.ipynb"), NOTEBOOK);
    }
}

#[test]
fn a_write_that_could_not_be_saved_can_be_made_again() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    let text = folder.run(&["read", "nb.ipynb"], "").stdout.replace("10", &"1".repeat(30_000));
    fs::write(folder.path("text"), &text).unwrap();
    // Files of more than a few kilobytes cannot be written. What undo stores is smaller.
    let limited = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" write nb.ipynb text", BINARY])
        .env("XDG_STATE_HOME", folder.path("state"))
        .current_dir(folder.0.path())
        .output()
        .unwrap();
    let told = "error: nb.ipynb: could not write its new content: File too large (os error 27)\n";
    assert_eq!(Ran::from(limited), Ran { code: 1, stdout: String::new(), stderr: told.into() });
    assert_eq!(folder.read("nb.ipynb"), NOTEBOOK);
    let again = folder.run(&["write", "nb.ipynb"], &text);
    assert_eq!((again.code, again.stderr.as_str()), (0, ""));
}

#[test]
fn a_notebook_whose_outputs_cannot_be_saved_is_not_run() {
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
        cells = after;
    }
    // Each kill leaves at most one temporary file, known by its name; they are swept once they are some seconds old.
    let names = fs::read_dir(folder.0.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    let left = names
        .iter()
        .filter(|name| name.starts_with(".cellwright-") && name.strip_suffix(".tmp").is_some())
        .count();
    assert!(left <= 10 && names.len() - left <= 2, "{names:?}");
}

fn count_cells(folder: &Folder) -> usize {
    let read = folder.run(&["read", "nb.ipynb"], "");
    assert_eq!((read.code, read.stderr.as_str()), (0, ""));
    read.stdout.lines().filter(|line| line.starts_with("# %% [")).count()
}

#[test]
fn n21_without_locks_a_writer_leaves_the_new_content_of_another_alone() {
    let folder = Folder::with("nb.ipynb", NOTEBOOK);
    // A file system that knows no locks, for this program.
    fs::write(
        folder.path("nolock.c"),
        "#include <errno.h>\nint flock(int f, int o) { errno = ENOLCK; return -1; }\n",
    )
    .unwrap();
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o", "nolock.so", "nolock.c"])
        .current_dir(folder.0.path())
        .status()
        .expect("a C compiler, which Rust links with");
    assert!(built.success());
    // What another writer is writing, by its name; nothing else tells where there are no locks.
    let theirs = folder.path(".cellwright-abcdefghijkl.tmp");
    fs::write(&theirs, "another writer is writing this").unwrap();
    for preload in [folder.path("nolock.so").to_str().unwrap(), ""] {
        let mut command = Command::new(BINARY);
        command.args(["notebook", "insert", "nb.ipynb", "--source", "x"]).env("LD_PRELOAD", preload);
        assert!(command.current_dir(folder.0.path()).status().unwrap().success());
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "another writer is writing this");
    }
    assert_eq!(count_cells(&folder), 4);
}

#[test]
fn the_text_of_a_broken_notebook_is_shown_raw_and_what_replaces_it_can_be_undone() {
    let broken = "{\n<<<<<<< HEAD\n \"a\": 1\n=======\n \"a\": 2\n>>>>>>> other\n}\n";
    let folder = Folder::with("nb.ipynb", broken);
    let read = folder.run(&["read", "nb.ipynb:raw"], "");
    assert_eq!((read.code, read.stdout.as_str()), (0, broken));
    assert!(
        read.stderr
            .starts_with("note: nb.ipynb is not a usable notebook: line 2: it has the conflict markers"),
        "{}",
        read.stderr
    );
    assert_eq!(folder.run(&["read", "nb.ipynb:raw:3"], "").stdout, " \"a\": 1\n");
    let json = folder.run(&["read", "nb.ipynb:raw", "--json"], "").stdout;
    assert!(json.starts_with(r#"{"path":"nb.ipynb","fingerprint":""#), "{json}");
    assert_eq!(folder.run(&["write", "nb.ipynb", "--force"], NOTEBOOK).code, 0);
    let history = folder.run(&["notebook", "history", "nb.ipynb"], "").stdout;
    assert!(history.contains("replaced a file that was not a notebook"), "{history}");
    assert_eq!(folder.run(&["notebook", "undo", "nb.ipynb"], "").code, 0);
    assert_eq!(folder.read("nb.ipynb"), broken);
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
