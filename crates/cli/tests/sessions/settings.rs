//! Named sessions obey the settings of the folder they run in, as all others do.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use cellwright_testkit::python;
use serde_json::json;

use super::{UserHome, ended};

/// A project with settings of every kind, and a Python of its own that differs from others.
fn project(home: &UserHome) -> PathBuf {
    let work = home.work();
    fs::create_dir_all(work.join(".cellwright/modules")).unwrap();
    fs::create_dir(work.join("tools")).unwrap();
    let own = work.join("tools/own-python");
    fs::write(&own, format!("#!/bin/sh\nexport OWN_PYTHON=1\nexec {} \"$@\"\n", python().display())).unwrap();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
    let config = "[python]\npath = 'tools/own-python'\n[environment]\ndeny = ['DENIED_*', 'LANG']\n\
                  [kernel]\nretry = 'once'\n[session]\nlimit = 2\n";
    fs::write(work.join(".cellwright/config.toml"), config).unwrap();
    fs::write(work.join(".cellwright/modules/greeting.py"), "def greet():\n    return 'hello'\n").unwrap();
    work
}

const PROBE: &str = "import os\n(greet(), os.environ.get('OWN_PYTHON'), os.environ.get('LANG'))";

#[test]
fn a_named_session_obeys_the_settings_of_its_project() {
    let home = UserHome::new();
    let work = project(&home);
    fs::create_dir(work.join("sub")).unwrap();
    let run = |folder: &str, arguments: &[&str]| {
        let mut command = home.command_in(&work.join(folder), &[&["run"], arguments].concat());
        command.env("LANG", "C.UTF-8");
        ended(command)
    };
    let expected = (0, "('hello', '1', None)\n".to_owned(), String::new());
    for folder in ["", "sub"] {
        assert_eq!(run(folder, &["-c", PROBE]), expected, "{folder}");
        assert_eq!(run(folder, &["--session", "s", "-c", PROBE]), expected, "{folder}");
    }
    // What died half-way is run again, as the project says.
    let once =
        "import os\nif not os.path.exists('died'):\n    open('died', 'w').close()\n    os._exit(3)\n'again'";
    let (code, shown, told) = run("", &["--session", "s", "-c", once]);
    assert_eq!((code, shown.as_str()), (0, "'again'\n"), "{told}");
    // Two kernels, not four: the first of these takes the place of the one of `sub`.
    run("", &["--session", "t", "-c", "1"]);
    let (_, listed, _) = home.run(&["session", "list"]);
    assert_eq!(listed.lines().count(), 2, "{listed}");
}

#[test]
fn agents_in_a_named_session_have_the_settings_of_their_project() {
    let home = UserHome::new();
    project(&home);
    let mut server = home.mcp(&["--session", "s"]);
    let told = server.call("eval", json!({ "code": PROBE }));
    assert!(told.starts_with("('hello', '1', None)\n"), "{told}");
}

#[test]
fn the_python_of_the_environment_runs_named_sessions() {
    let home = UserHome::new();
    let work = project(&home);
    fs::remove_dir_all(work.join(".cellwright")).unwrap();
    let own = work.join("tools/own-python");
    let probe = "import os\nos.environ.get('OWN_PYTHON')";
    let mut command = home.command(&["run", "--session", "s", "-c", probe]);
    command.env("CELLWRIGHT_PYTHON", &own);
    assert_eq!(ended(command).1, "'1'\n");
}

#[test]
fn a_session_started_with_a_python_is_joined_without_naming_it() {
    let home = UserHome::new();
    let python = python();
    let python = python.to_str().unwrap();
    assert_eq!(home.run(&["run", "--session", "s", "--python", python, "-c", "x = 41"]).0, 0);
    let (code, shown, told) = home.run(&["run", "--session", "s", "-c", "x + 1"]);
    assert_eq!((code, shown.as_str()), (0, "42\n"), "{told}");
    // One that names another Python gets it, and learns about the first.
    let (_, shown, told) = home.run(&["run", "--session", "s", "--python", "python3", "-c", "'x' in dir()"]);
    assert_eq!(shown, "False\n");
    assert!(told.contains("the variables of the first are in session `s`"), "{told}");
}
