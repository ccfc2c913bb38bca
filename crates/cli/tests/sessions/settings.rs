//! Named sessions obey the settings of the folder they run in, as all others do.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

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

/// Replaces the user's settings.
fn set(home: &UserHome, settings: &str) {
    let folder = home.folder.path().join(".config/cellwright");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), settings).unwrap();
}

#[test]
fn a_named_session_uses_the_gateway_of_the_settings() {
    let home = UserHome::new();
    // The daemon runs before there is a gateway: each call brings its settings.
    assert_eq!(home.run(&["run", "--session", "s", "-c", "1"]).0, 0);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (heads, received) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(&stream).lines().map(|line| line.unwrap().to_lowercase());
            heads.send(lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>()).unwrap();
            let refusal = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            stream.write_all(refusal.as_bytes()).unwrap();
        }
    });
    set(&home, &format!("[kernel]\ndefault = 'gateway'\n[gateway]\nurl = '{url}'\ntoken = 's3cret'\n"));
    let (code, _, told) = home.run(&["run", "--session", "s", "-c", "1"]);
    assert_eq!(code, 1);
    assert!(told.contains(&url) && told.contains("403"), "{told}");
    let head = received.recv().unwrap();
    assert!(head.contains(&"authorization: token s3cret".to_owned()), "{head:?}");
}

#[test]
fn a_named_session_uses_the_link_of_the_settings() {
    let home = UserHome::new();
    let command = json!([python(), "-m", "ipykernel_launcher", "-f", "{connection_file}"]);
    let spec = json!({ "argv": command, "display_name": "Python", "language": "python" });
    let folder = home.folder.path().join(".local/share/jupyter/kernels/linked");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("kernel.json"), spec.to_string()).unwrap();
    let code = "import json\nfrom ipykernel.connect import get_connection_info\njson.loads(get_connection_info())['transport']";
    for link in ["ipc", "tcp"] {
        set(&home, &format!("[kernel]\ndefault = 'jupyter:linked'\nlink = '{link}'\n"));
        let (_, shown, told) = home.run(&["run", "--session", link, "-c", code]);
        assert_eq!(shown, format!("'{link}'\n"), "{told}");
    }
}
