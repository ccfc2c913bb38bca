//! `cellwright doctor` and `cellwright setup` in homes of every condition.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use cellwright_testkit::python as test_python;
use nix::pty::openpty;
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_cellwright");

/// A script that is the Python of the tests: beside a link it would not find its packages.
fn python(options: &str) -> String {
    format!("#!/bin/sh\nexec {}{options} \"$@\"\n", test_python().display())
}

/// A home folder with a repository `work` in it and programs in `bin`.
struct Home {
    folder: tempfile::TempDir,
    variables: Vec<(&'static str, String)>,
}

impl Home {
    fn without_python() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["bin", "work/.git", "run"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        fs::set_permissions(folder.path().join("run"), fs::Permissions::from_mode(0o700)).unwrap();
        Self { folder, variables: Vec::new() }
    }

    /// With a Python on `PATH` that has no packages, whose import would take its time.
    fn new() -> Self {
        let home = Self::without_python();
        home.script("bin/python3", &python(" -S"));
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn script(&self, name: &str, text: &str) {
        self.write(name, text);
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn set(&mut self, name: &'static str, value: impl Into<String>) {
        self.variables.push((name, value.into()));
    }

    /// Exit code, stdout and stderr of a run in `work`.
    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = self.command(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().expect("it was not killed"), text(output.stdout), text(output.stderr))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command
            .args(arguments)
            .current_dir(self.path("work"))
            .env_clear()
            .env("HOME", self.folder.path())
            .env("PATH", self.path("bin"))
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .env("CELLWRIGHT_TRUSTED_FOLDERS", self.folder.path())
            // What is installed for the whole machine is not the test's business.
            .env("JUPYTER_PLATFORM_DIRS", "1")
            .env("XDG_DATA_DIRS", self.path("system"))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// What a person sees at a terminal.
    fn at_terminal(&self, arguments: &[&str], no_color: &str) -> String {
        let terminal = openpty(None, None).unwrap();
        let mut command = self.command(arguments);
        let mut child = command.env("NO_COLOR", no_color).stdout(terminal.slave).spawn().unwrap();
        drop(command); // it holds the terminal open
        let mut seen = Vec::new();
        // Ends with an error when the last writer is gone.
        drop(fs::File::from(terminal.master).read_to_end(&mut seen));
        child.wait().unwrap();
        String::from_utf8(seen).unwrap().replace("\r\n", "\n")
    }

    /// What it says, as a program sees it. Installed kernels are not started, which takes its time.
    fn doctor(&self) -> Doctor {
        self.doctor_with(&["--no-start"])
    }

    fn doctor_with(&self, arguments: &[&str]) -> Doctor {
        let (code, stdout, stderr) = self.run(&[&["doctor", "--json"], arguments].concat());
        assert_eq!(stderr, "");
        Doctor { code, report: serde_json::from_str(&stdout).unwrap(), home: self.folder.path().into() }
    }
}

struct Doctor {
    code: i32,
    report: Value,
    home: PathBuf,
}

impl Doctor {
    fn checks(&self, section: &str) -> Vec<&Value> {
        let checks = self.report["checks"].as_array().unwrap();
        checks.iter().filter(|check| check["section"] == section).collect()
    }

    /// Status, text and fix of every check of a section, a line each.
    fn told(&self, section: &str) -> String {
        let mut told = String::new();
        for check in self.checks(section) {
            let [status, text] = ["status", "text"].map(|key| check[key].as_str().unwrap());
            let fix = check["fix"].as_str().unwrap_or("-");
            told.extend([status, " | ", text, " | ", fix, "\n"]);
        }
        told.replace(self.home.to_str().unwrap(), "~").replace(BINARY, "/bin/cellwright")
    }

    fn chosen(&self) -> Option<&str> {
        let chosen = self.checks("python").into_iter().find(|check| check["details"]["chosen"] == true)?;
        chosen["details"]["python"].as_str()
    }
}

#[test]
fn a_healthy_machine_has_a_calm_report() {
    let home = Home::without_python();
    home.script("bin/python3", &python(""));
    let command = json!([test_python(), "-m", "ipykernel_launcher", "-f", "{connection_file}"]);
    let spec = json!({ "argv": command, "display_name": "Python 3 (ipykernel)", "language": "python" });
    home.write(".local/share/jupyter/kernels/python3/kernel.json", &spec.to_string());
    let (code, text, stderr) = home.run(&["doctor"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"\d+(\.\d)? ms", "[time]");
    settings.add_filter(r"\d+\.\d+(\.\w+)+", "[version]");
    settings.bind(|| insta::assert_snapshot!(text.replace(home.folder.path().to_str().unwrap(), "~")));
}

/// K18.
#[test]
fn the_python_it_names_is_the_one_that_runs_cells() {
    let mut home = Home::new();
    let agree = |home: &Home, expected: &Path| {
        let doctor = home.doctor();
        assert_eq!((doctor.code, doctor.chosen()), (0, expected.to_str()));
        let probe = "import os, sys; print(os.environ.get('VIRTUAL_ENV'), sys.version_info.major)";
        let (code, stdout, _) = home.run(&["run", "-c", probe]);
        let venv = expected.parent().unwrap().parent().unwrap();
        let venv = if venv.join("pyvenv.cfg").is_file() { venv.to_str().unwrap() } else { "None" };
        assert_eq!((code, stdout), (0, format!("{venv} 3\n")));
    };
    agree(&home, &home.path("bin/python3"));
    for place in ["work/.venv", "active"] {
        home.write(&format!("{place}/pyvenv.cfg"), "");
        home.script(&format!("{place}/bin/python"), &python(" -S"));
        if place == "active" {
            home.set("VIRTUAL_ENV", home.path(place).to_str().unwrap());
        }
        agree(&home, &home.path(place).join("bin/python"));
    }
    home.set("CELLWRIGHT_PYTHON", test_python().to_str().unwrap());
    agree(&home, &test_python());
}

/// K17.
#[test]
fn broken_environments_are_reported_and_do_not_hide_a_working_python() {
    let home = Home::new();
    home.write("work/.venv/pyvenv.cfg", "");
    fs::create_dir_all(home.path("work/.venv/bin")).unwrap();
    symlink("/gone/python", home.path("work/.venv/bin/python")).unwrap();
    home.script(
        ".local/share/cellwright/python-env/bin/python",
        "#!/bin/sh\necho no such library >&2\nexit 127\n",
    );
    home.script("bin/python", "#!/bin/sh\nexit 1\n");
    let doctor = home.doctor();
    assert_eq!((doctor.code, doctor.chosen()), (0, home.path("bin/python3").to_str()));
    let version = doctor.checks("python")[2]["details"]["version"].as_str().unwrap();
    insta::assert_snapshot!(doctor.told("python").replace(version, "[version]"));
}

#[test]
fn without_a_python_it_fails_and_says_what_helps() {
    let mut home = Home::without_python();
    let doctor = home.doctor();
    assert_eq!((doctor.code, &doctor.report["healthy"]), (1, &Value::Bool(false)));
    let mut told = doctor.told("python");
    home.set("CELLWRIGHT_PYTHON", "/nowhere/python");
    told += &home.doctor().told("python");
    told += home.run(&["doctor"]).1.lines().last().unwrap();
    insta::assert_snapshot!(told);
}

#[test]
fn wrong_settings_fail_as_they_do_everywhere() {
    let home = Home::new();
    home.write(".config/cellwright/config.toml", "[kernel]\ntimout = 3\n");
    let doctor = home.doctor();
    assert_eq!(doctor.code, 1);
    insta::assert_snapshot!(doctor.told("settings") + &doctor.told("python"));
}

#[test]
fn symbols_are_for_terminals_and_colours_are_optional() {
    let home = Home::new();
    home.write(".config/cellwright/config.toml", "[kernel]\ntimout = 3\n");
    let mut seen = home.at_terminal(&["doctor"], "");
    seen += &home.at_terminal(&["doctor"], "1");
    seen += &home.run(&["doctor"]).1;
    seen = seen.replace('\x1b', "ESC").replace(home.folder.path().to_str().unwrap(), "~");
    insta::assert_snapshot!(seen);
}

#[test]
fn a_package_that_cannot_be_imported_and_a_bad_module_are_reported() {
    let home = Home::new();
    home.write("work/matplotlib.py", "raise RuntimeError('half installed')\n");
    home.write("work/.cellwright/modules/helpers.py", "1 / 0\n");
    let doctor = home.doctor();
    assert_eq!(doctor.code, 0);
    let told = doctor.told("kernel");
    let told: Vec<_> = told.lines().filter(|line| line.starts_with("warning")).collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn clients_are_listed_with_their_entry_for_us() {
    let home = Home::new();
    for program in ["claude", "codex", "gemini", "zeditor"] {
        home.script(&format!("bin/{program}"), "#!/bin/sh\n");
    }
    let told = |home: &Home| {
        let doctor = home.doctor();
        assert_eq!(doctor.code, 0);
        doctor.told("clients") + &doctor.told("agents")
    };
    let mut seen = vec![told(&home)];
    home.run(&["mcp", "install", "claude"]);
    home.run(&["mcp", "install", "zed", "--project"]);
    home.write(".codex/config.toml", "[mcp_servers.cellwright]\ncommand = \"/gone/cellwright\"\n");
    home.write(
        ".config/opencode/opencode.json",
        r#"{"mcp": {"cellwright": {"command": ["x"], "enabled": false}}}"#,
    );
    home.write(".gemini/settings.json", "{ oops");
    seen.push(told(&home));
    insta::assert_snapshot!(seen.join("\n"));
}

#[test]
fn jupyter_kernels_that_cannot_start_are_reported() {
    let mut home = Home::new();
    let spec = |name: &str, text: &str| home.write(&format!("kernels/kernels/{name}/kernel.json"), text);
    spec(
        "ends",
        r#"{"argv": ["python3", "-c", "import sys; sys.exit('no kernel here')"], "display_name": "Ends", "language": "x"}"#,
    );
    spec("gone", r#"{"argv": ["/gone/R"], "display_name": "R", "language": "R"}"#);
    spec("torn", "{");
    home.set("JUPYTER_PATH", home.path("kernels").to_str().unwrap());
    let told = |doctor: &Doctor| {
        let told = doctor.told("jupyter");
        let ours: Vec<_> =
            told.lines().filter(|line| line.contains("~/kernels") || line.contains("default")).collect();
        format!("{} {}", doctor.code, ours.join("\n"))
    };
    // One whose program exists is only called good when it has started.
    let mut seen = vec![told(&home.doctor()), told(&home.doctor_with(&[]))];
    home.set("CELLWRIGHT_KERNEL", "jupyter:missing");
    seen.push(told(&home.doctor()).lines().next().unwrap().to_owned());
    insta::assert_snapshot!(seen.join("\n"));
}

#[test]
fn a_gateway_is_looked_at_only_when_one_is_set() {
    let mut home = Home::new();
    assert_eq!(home.doctor().told("gateway"), "");
    let fix = "start it, or change `gateway.url`; it comes from CELLWRIGHT_GATEWAY_URL";
    let url = gateway_for("s3cret", 3);
    home.set("CELLWRIGHT_GATEWAY_URL", url.clone());
    let refused = "refuses us (403 Forbidden); it wants a token: set CELLWRIGHT_GATEWAY_TOKEN";
    assert_eq!(home.doctor().told("gateway"), format!("warning | {url}/ {refused} | {fix}\n"));
    home.set("CELLWRIGHT_GATEWAY_TOKEN", "s3cret");
    assert_eq!(home.doctor().told("gateway"), format!("good | {url}/ accepts us and has ir, python3 | -\n"));
    // It has answered as often as it was to: nobody listens any more.
    let doctor = home.doctor();
    assert!(doctor.told("gateway").starts_with(&format!("warning | {url}/ cannot be reached: ")));
    assert_eq!(doctor.code, 0);
    home.set("CELLWRIGHT_KERNEL", "gateway");
    assert_eq!(home.doctor().code, 1);
}

/// A gateway that answers so many requests, and knows whoever has the token.
fn gateway_for(token: &'static str, requests: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for _ in 0..requests {
            let (mut stream, _) = listener.accept().unwrap();
            let head: Vec<_> = BufReader::new(&stream)
                .lines()
                .map(|line| line.unwrap().to_lowercase())
                .take_while(|line| !line.is_empty())
                .collect();
            // After a refusal, check whether the server wants a password.
            let paths = ["get /api/kernelspecs http/1.1", "get /login http/1.1"];
            assert!(paths.contains(&head[0].as_str()), "{head:?}");
            let (status, body) = if head.contains(&format!("authorization: token {token}")) {
                ("200 OK", r#"{"default": "python3", "kernelspecs": {"python3": {}, "ir": {}}}"#)
            } else {
                ("403 Forbidden", "")
            };
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )
            .unwrap();
        }
    });
    url
}

#[test]
fn unusable_folders_and_leftovers_are_reported() {
    let home = Home::new();
    fs::create_dir_all(home.path("run/cellwright")).unwrap();
    fs::set_permissions(home.path("run/cellwright"), fs::Permissions::from_mode(0o777)).unwrap();
    drop(UnixListener::bind(home.path("run/cellwright/daemon.sock")).unwrap());
    home.write(".local/state/cellwright", "a file");
    fs::create_dir_all(home.path(".cache/cellwright/runner/older")).unwrap();
    fs::set_permissions(home.path(".cache/cellwright"), fs::Permissions::from_mode(0o700)).unwrap();
    let doctor = home.doctor();
    assert_eq!(doctor.code, 0);
    insta::assert_snapshot!(doctor.told("folders") + &doctor.told("leftovers"));
    fs::remove_dir_all(home.path(".cache")).unwrap();
    home.write(".cache", "a file");
    let doctor = home.doctor();
    assert_eq!(doctor.code, 1);
    assert!(
        doctor
            .told("folders")
            .contains("broken | cache: ~/.cache is not a folder | mv ~/.cache ~/.cache.old")
    );
}

/// A package without anything in it, for pip without a network.
fn wheel(folder: &Path, name: &str) -> String {
    let path = folder.join(format!("{name}-1.0-py3-none-any.whl"));
    let code = format!(
        "import sys, zipfile\n\
         with zipfile.ZipFile(sys.argv[1], 'w') as wheel:\n    \
         wheel.writestr('{name}.py', 'here = True')\n    \
         wheel.writestr('{name}-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0\\n')\n    \
         wheel.writestr('{name}-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n    \
         wheel.writestr('{name}-1.0.dist-info/RECORD', '')\n"
    );
    assert!(Command::new(test_python()).args(["-c", &code]).arg(&path).status().unwrap().success());
    path.to_str().unwrap().to_owned()
}

#[test]
fn setup_makes_an_environment_once_adds_packages_and_rebuilds_only_with_force() {
    let home = Home::new();
    let told = |arguments: &[&str]| {
        let (code, stdout, stderr) = home.run(&[&["setup", "python"], arguments].concat());
        (code, (stdout + &stderr).replace(home.folder.path().to_str().unwrap(), "~"))
    };
    let venv = "~/.local/share/cellwright/python-env";
    let python = home.path(".local/share/cellwright/python-env/bin/python");
    let (code, made) = told(&[]);
    assert_eq!(
        (code, made.starts_with(&format!("made {venv} by python -m venv: cpython 3."))),
        (0, true),
        "{made}"
    );
    assert_eq!(home.doctor().chosen(), python.to_str());

    let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::symlink_metadata(path).unwrap());
    let before = inode(&python);
    let (code, again) = told(&["--with", &wheel(home.folder.path(), "tiny_package")]);
    assert_eq!((code, again.starts_with(&format!("{venv} is there: cpython 3."))), (0, true), "{again}");
    assert_eq!(inode(&python), before, "an environment that works is left alone");
    let (code, stdout, _) = home.run(&["run", "-c", "import tiny_package; tiny_package.here"]);
    assert_eq!((code, stdout.as_str()), (0, "True\n"));

    let (code, failed) = told(&["--with", "./missing.whl"]);
    assert!(code == 1 && failed.starts_with("error: pip exited with code 1, saying: "), "{failed}");

    fs::remove_file(&python).unwrap();
    symlink("/gone/python", &python).unwrap();
    let (code, refused) = told(&[]);
    let expected = format!("error: {venv}: it does not work; `cellwright setup python --force` replaces it");
    assert!(code == 1 && refused.starts_with(&expected), "{refused}");
    assert_eq!(fs::read_link(&python).unwrap(), Path::new("/gone/python"));

    // uv, as far as it is asked for anything.
    let uv = format!(
        "#!/bin/sh\n[ \"$1 $2 $3 $4\" = 'venv --clear --seed --python' ] || exit 2\nexec {} -m venv --without-pip --clear \"$6\"\n",
        test_python().display()
    );
    home.script("bin/uv", &uv);
    let (code, anew) = told(&["--force"]);
    assert_eq!((code, anew.starts_with(&format!("replaced {venv} by uv: cpython 3."))), (0, true), "{anew}");
    let (code, ..) = home.run(&["run", "-c", "import tiny_package"]);
    assert_eq!(code, 1, "what was installed in it is gone, as was told");
}
