//! `cellwright gateway` by many processes at once, and after accidents.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Resource, Rlimit};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A user of whom nothing is known but a Python. Ends their gateway when dropped.
struct User(TempDir);

impl User {
    fn new() -> Self {
        Self(tempfile::Builder::new().prefix("cw").tempdir().unwrap())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cellwright"));
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.0.path())
            .env("XDG_RUNTIME_DIR", self.0.path())
            .env("CELLWRIGHT_PYTHON", python())
            .current_dir(self.0.path())
            .stdin(Stdio::null());
        command
    }

    fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn answer(&self, arguments: &[&str]) -> Value {
        json_of(&self.command(arguments).output().unwrap())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join("cellwright/gateway").join(name)
    }
}

impl Drop for User {
    fn drop(&mut self) {
        drop(self.command(&["gateway", "stop"]).output()); // the test has failed before if that does not work
    }
}

fn python() -> PathBuf {
    let ours = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/bin/python");
    let python = std::env::var_os("CELLWRIGHT_TEST_PYTHON").map_or_else(ours, PathBuf::from);
    assert!(python.exists(), "{} is missing: run scripts/check.sh", python.display());
    python
}

fn json_of(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// When a process started, in ticks; a zombie is none.
fn start_time(pid: u64) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ").filter(|(_, fields)| !fields.starts_with('Z'))?;
    fields.split(' ').nth(19)?.parse().ok()
}

#[test]
fn twenty_processes_start_one_gateway_that_runs_cells_and_stops() {
    let user = User::new();
    assert_eq!(user.answer(&["gateway", "status", "--json"]), json!({"state": "stopped"}));
    let starting: Vec<_> = (0..20).map(|_| user.spawn(&["gateway", "start", "--json"])).collect();
    let told: Vec<_> =
        starting.into_iter().map(|child| json_of(&child.wait_with_output().unwrap())).collect();
    assert!(told.iter().all(|one| one == &told[0] && one["state"] == "running"), "{told:?}");

    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&user.file("gateway.json")), mode(&user.file(""))), (0o600, 0o700));

    let output =
        user.command(&["run", "--kernel", "gateway", "-c", "print('by a gateway')\n6 * 7"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "by a gateway\n42\n", "{output:?}");

    assert_eq!(user.answer(&["gateway", "stop", "--json"]), json!({"stopped": true}));
    assert!(start_time(told[0]["pid"].as_u64().unwrap()).is_none(), "the process is still there");
    assert_eq!(user.answer(&["gateway", "stop", "--json"]), json!({"stopped": false}));
}

#[test]
fn the_settings_show_neither_the_token_nor_the_password_of_a_gateway() {
    let user = User::new();
    for format in [&["config"][..], &["config", "--json"]] {
        let mut command = user.command(format);
        let output = command
            .env("CELLWRIGHT_GATEWAY_URL", "http://ada:s3cret@host/lab?token=s3cret")
            .output()
            .unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(shown.contains("\"http://host/lab\"") && !shown.contains("s3cret"), "{shown}");
    }
}

#[test]
fn a_shared_gateway_that_is_not_used_is_told() {
    let user = User::new();
    let output =
        user.command(&["gateway", "status"]).env("CELLWRIGHT_GATEWAY_URL", "http://host:1/?token=t").output();
    assert_eq!(
        String::from_utf8(output.unwrap().stdout).unwrap(),
        "it does not run\nit is not used: kernels run at http://host:1/, by `gateway.url` from CELLWRIGHT_GATEWAY_URL\n"
    );
}

#[test]
fn a_starter_that_is_killed_and_a_number_that_another_process_has_got_do_no_harm() {
    let user = User::new();
    // Killed as soon as it has the lock.
    let mut killed = user.spawn(&["gateway", "start"]);
    while fs::read_to_string(user.file("gateway.lock")).unwrap_or_default().is_empty() {
        assert!(killed.try_wait().unwrap().is_none(), "it ended before it was killed");
        std::thread::yield_now();
    }
    killed.kill().unwrap();
    killed.wait().unwrap();

    // A gateway of the past whose number is this very process's now.
    let us = u64::from(std::process::id());
    let past = json!({"pid": us, "started": start_time(us).unwrap() - 1, "url": "http://127.0.0.1:9/", "token": "t", "python": "python"});
    fs::write(user.file("gateway.json"), past.to_string()).unwrap();
    assert_eq!(user.answer(&["gateway", "status", "--json"]), json!({"state": "stopped"}));
    let told = user.answer(&["gateway", "start", "--json"]);
    assert_eq!(told["state"], "running");

    // A gateway that was killed is replaced.
    let pid = told["pid"].as_i64().unwrap();
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(pid.try_into().unwrap()),
        nix::sys::signal::Signal::SIGKILL,
    )
    .unwrap();
    let again = user.answer(&["gateway", "start", "--json"]);
    assert_eq!(again["state"], "running");
    assert_ne!(again["pid"], told["pid"]);
}

#[test]
fn a_gateway_that_has_run_out_of_files_is_started_anew() {
    let user = User::new();
    // None left to answer with, and a few that do not suffice for a kernel.
    for spare in [0, 4] {
        let told = user.answer(&["gateway", "start", "--json"]);
        let pid = told["pid"].as_u64().unwrap();
        let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count() as u64;
        let limit = Rlimit { current: Some(open + spare), maximum: Some(open + spare) };
        let process = Pid::from_raw(pid.try_into().unwrap());
        rustix::process::prlimit(process, Resource::Nofile, limit).unwrap();
        let output = user.command(&["run", "--kernel", "gateway", "-c", "6 * 7"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "42\n", "{spare} files to spare: {output:?}");
        let again = user.answer(&["gateway", "status", "--json"]);
        assert_eq!(again["state"], "running");
        assert_ne!(again["pid"], told["pid"]);
    }
}

#[test]
fn a_certificate_of_ones_own_is_trusted_once_it_is_named() {
    let user = User::new();
    let (certificate, key) = (user.0.path().join("certificate.pem"), user.0.path().join("key.pem"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"])
        .args([Path::new("-keyout"), &key, Path::new("-out"), &certificate])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let server = SecureServer::start(&user, &certificate, &key);
    let run = |command: &mut Command| {
        command
            .env("CELLWRIGHT_GATEWAY_URL", format!("https://localhost:{}/?token=secret", server.port))
            .output()
            .unwrap()
    };
    let arguments = ["run", "--kernel", "gateway", "-c", "6 * 7"];
    let refused = run(&mut user.command(&arguments));
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(told.contains("no secure connection to https://localhost:"), "{told}");
    assert!(told.contains("a certificate of your own can be named in SSL_CERT_FILE"), "{told}");
    assert!(!refused.status.success() && !told.contains("secret"), "{told}");
    let trusted = run(user.command(&arguments).env("SSL_CERT_FILE", &certificate));
    assert_eq!(String::from_utf8_lossy(&trusted.stdout), "42\n", "{trusted:?}");
}

/// A Jupyter Server behind TLS. Ends when dropped.
struct SecureServer {
    process: Child,
    port: u16,
}

impl SecureServer {
    fn start(user: &User, certificate: &Path, key: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut process = Command::new(python())
            .args(["-m", "jupyter_server", "--ServerApp.allow_root=True", "--ServerApp.open_browser=False"])
            .args([format!("--ServerApp.port={port}"), "--IdentityProvider.token=secret".to_owned()])
            .arg(format!("--ServerApp.certfile={}", certificate.display()))
            .arg(format!("--ServerApp.keyfile={}", key.display()))
            .env("HOME", user.0.path())
            .current_dir(user.0.path())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(process.try_wait().unwrap().is_none(), "the server has ended");
            std::thread::yield_now();
        }
        Self { process, port }
    }
}

impl Drop for SecureServer {
    fn drop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(self.process.id().try_into().unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap(); // it ends its kernels then
        self.process.wait().unwrap();
    }
}
