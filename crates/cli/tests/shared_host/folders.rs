//! Folders of ours that another user made first, or can write.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};

use super::{ATTACKER, SharedHost, VICTIM, give, shown};

/// All below a folder.
fn tree(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| {
            let below = if entry.file_type().unwrap().is_dir() { tree(&entry.path()) } else { Vec::new() };
            [vec![entry.path()], below].concat()
        })
        .collect()
}

#[test]
fn a_runtime_folder_that_another_user_made_first_is_not_used() {
    let Some(host) = SharedHost::new() else { return };
    let prepared = host.make(&format!("tmp/cellwright-{VICTIM}"), ATTACKER, 0o777);
    let named = host.make("tmp/named", ATTACKER, 0o777);
    host.make("tmp/named/cellwright", ATTACKER, 0o777);
    for runtime in [None, Some(&named)] {
        let mut command = host.command(&["run", "--session", "s", "-c", "6 * 7"]);
        runtime.map(|runtime| command.env("XDG_RUNTIME_DIR", runtime));
        let (code, stdout, stderr) = shown(&command.output().unwrap());
        assert_eq!((code, stdout.as_str()), (0, "42\n"), "{stderr}");
        let mut end = host.command(&["session", "end", "s"]);
        runtime.map(|runtime| end.env("XDG_RUNTIME_DIR", runtime));
        assert!(end.output().unwrap().status.success());
    }
    assert_eq!(tree(&prepared).len() + tree(&named.join("cellwright")).len(), 0);
    let state = host.path("home/.local/state/cellwright");
    let socket = tree(&state).into_iter().find(|path| path.ends_with("sessions.sock")).unwrap();
    assert_eq!(fs::metadata(socket.parent().unwrap()).unwrap().mode() & 0o7777, 0o700);
}

#[test]
fn a_runtime_folder_that_others_can_write_is_refused_with_the_reason() {
    let Some(host) = SharedHost::new() else { return };
    host.make("home/run", VICTIM, 0o700);
    let folder = host.make("home/run/cellwright", VICTIM, 0o777);
    let mut command = host.command(&["run", "--session", "s", "-c", "1"]);
    command.env("XDG_RUNTIME_DIR", host.path("home/run"));
    let (code, stdout, stderr) = shown(&command.output().unwrap());
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(
        stderr.contains("other users can write into") && stderr.contains("home/run/cellwright"),
        "{stderr}"
    );
    assert_eq!(tree(&folder).len(), 0);
}

#[test]
fn a_runtime_folder_that_is_a_link_is_not_followed() {
    let Some(host) = SharedHost::new() else { return };
    host.make("home/run", VICTIM, 0o700);
    let target = host.make("home/target", VICTIM, 0o755);
    let log = host.write("home/target/sessions.log", "precious", VICTIM, 0o644);
    symlink(&target, host.path("home/run/cellwright")).unwrap();
    let mut command = host.command(&["run", "--session", "s", "-c", "1"]);
    command.env("XDG_RUNTIME_DIR", host.path("home/run"));
    assert_eq!(shown(&command.output().unwrap()).0, 1);
    assert_eq!(fs::read_to_string(log).unwrap(), "precious");
    assert_eq!(fs::metadata(target).unwrap().mode() & 0o7777, 0o755);
}

#[test]
fn a_runner_that_another_user_changed_is_not_run() {
    let Some(host) = SharedHost::new() else { return };
    let run = |home: &Path, user: u32| {
        let mut command = host.command(&["run", "-c", "6 * 7"]);
        command.env("HOME", home).uid(user).gid(user);
        shown(&command.output().unwrap())
    };
    let home = host.path("home");
    assert_eq!(run(&home, VICTIM).1, "42\n");
    let files = tree(&host.path("home/.cache/cellwright/runner"));
    let runner = files.iter().find(|file| file.ends_with("runner.py")).unwrap();
    // Of the same length, as under a `sudo` that keeps HOME.
    let whole = fs::read_to_string(runner).unwrap();
    let evil = format!("open({:?}, 'w')\n", host.path("home/pwned").display().to_string());
    let evil = format!("{evil}{}", " ".repeat(whole.len() - evil.len()));
    fs::write(runner, &evil).unwrap();
    give(runner, VICTIM, 0o644);
    assert_eq!(run(&home, 0), (0, "42\n".into(), String::new()));
    assert!(!host.path("home/pwned").exists());
    assert_eq!(fs::read_to_string(runner).unwrap(), evil, "root leaves the victim's files alone");
    // The victim's own runner is mended.
    assert_eq!(run(&home, VICTIM).1, "42\n");
    assert!(!host.path("home/pwned").exists());
    assert_eq!(fs::read_to_string(runner).unwrap(), whole);
}

#[test]
fn a_home_that_cannot_be_written_is_no_reason_not_to_run() {
    let Some(host) = SharedHost::new() else { return };
    let home = host.make("frozen", 0, 0o555);
    let mut command = host.command(&["run", "-c", "6 * 7"]);
    command.env("HOME", &home);
    assert_eq!(shown(&command.output().unwrap()), (0, "42\n".into(), String::new()));
    assert_eq!(tree(&host.path("tmp")), Vec::<PathBuf>::new(), "nothing is left behind");
}
