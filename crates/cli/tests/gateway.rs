//! `cellwright gateway` by many processes at once, and after accidents.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use cellwright_testkit::servers::free_port;
use cellwright_testkit::{eventually_blocking, python};
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
fn a_python_that_cannot_run_a_gateway_is_named_with_what_to_install() {
    let user = User::new();
    // A Python that finds none of its packages.
    let bare = user.0.path().join("python");
    fs::write(&bare, format!("#!/bin/sh\nexec '{}' -S \"$@\"\n", python().display())).unwrap();
    fs::set_permissions(&bare, fs::Permissions::from_mode(0o755)).unwrap();
    let output = user.command(&["gateway", "start"]).env("CELLWRIGHT_PYTHON", &bare).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("-m pip install jupyter_kernel_gateway ipykernel"), "{told}");
    assert!(!user.file("gateway.json").exists());
}

#[test]
fn a_shared_gateway_that_is_not_used_is_reported() {
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
    eventually_blocking("the lock", || {
        assert!(killed.try_wait().unwrap().is_none(), "it ended before it was killed");
        !fs::read_to_string(user.file("gateway.lock")).unwrap_or_default().is_empty()
    });
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
    let server = RunningServer::secure(&user, "localhost");
    let run = |command: &mut Command| {
        command
            .env("CELLWRIGHT_GATEWAY_URL", format!("https://localhost:{}/?token=secret", server.port))
            .output()
            .unwrap()
    };
    let refused = run(&mut user.command(&RUN));
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(told.contains("no secure connection to https://localhost:"), "{told}");
    assert!(told.contains("a certificate of your own can be named in SSL_CERT_FILE"), "{told}");
    assert!(!refused.status.success() && !told.contains("secret"), "{told}");
    let trusted = run(user.command(&RUN).env("SSL_CERT_FILE", user.certificate()));
    assert_eq!(String::from_utf8_lossy(&trusted.stdout), "42\n", "{trusted:?}");
}

#[test]
fn requests_and_websockets_go_through_the_proxy_of_the_environment() {
    let user = User::new();
    let server = RunningServer::plain(&user);
    let proxy = HttpProxy::to(server.port);
    let run = |host: &str, variables: &[(&str, &str)]| {
        let url = format!("http://{host}:{}/?token=secret", server.port);
        let mut command = user.command(&RUN);
        command.env("CELLWRIGHT_GATEWAY_URL", url).envs(variables.iter().copied()).output().unwrap()
    };
    let proxied = run("jupyter.example", &[("HTTP_PROXY", &proxy.url("ada:pass"))]);
    assert_eq!(String::from_utf8_lossy(&proxied.stdout), "42\n", "{proxied:?}");
    let asked = proxy.asked();
    let kernelspecs = format!("GET http://jupyter.example:{}/api/kernelspecs HTTP/1.1", server.port);
    let tunnel = format!("CONNECT jupyter.example:{} HTTP/1.1", server.port);
    assert!(asked.contains(&kernelspecs) && asked.contains(&tunnel), "{asked:?}");

    let refused = run("jupyter.example", &[("http_proxy", &proxy.url("ada:wrong"))]);
    let told = String::from_utf8_lossy(&refused.stderr);
    let expected =
        format!("through the proxy {}/: it answered 407 Proxy Authentication Required", proxy.url(""));
    assert!(told.contains(&expected) && !told.contains("wrong"), "{told}");

    let socks = run("jupyter.example", &[("ALL_PROXY", "socks5://127.0.0.1:9")]);
    let told = String::from_utf8_lossy(&socks.stderr);
    assert!(told.contains("only HTTP proxies can be used, not SOCKS"), "{told}");

    // Nobody runs this one. To connect to 0.0.0.0 leads to this machine, and is not known to.
    let nobody = ("ALL_PROXY", "http://127.0.0.1:9");
    let refused = run("0.0.0.0", &[nobody]);
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(told.contains("cannot be reached through the proxy http://127.0.0.1:9/"), "{told}");
    for (host, exempt) in [("0.0.0.0", "elsewhere, 0.0.0.0/8"), ("127.0.0.1", "")] {
        let direct = run(host, &[nobody, ("no_proxy", exempt)]);
        assert_eq!(String::from_utf8_lossy(&direct.stdout), "42\n", "{host}: {direct:?}");
    }
}

#[test]
fn a_secure_server_is_reached_through_a_tunnel_alone() {
    let user = User::new();
    let server = RunningServer::secure(&user, "jupyter.example");
    let proxy = HttpProxy::to(server.port);
    let run = user
        .command(&RUN)
        .env("CELLWRIGHT_GATEWAY_URL", "https://jupyter.example/?token=secret")
        .env("HTTPS_PROXY", proxy.url("ada:pass"))
        .env("SSL_CERT_FILE", user.certificate())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&run.stdout), "42\n", "{run:?}");
    let asked = proxy.asked();
    assert!(asked.iter().all(|asked| asked == "CONNECT jupyter.example:443 HTTP/1.1"), "{asked:?}");
}

const RUN: [&str; 5] = ["run", "--kernel", "gateway", "-c", "6 * 7"];

impl User {
    fn certificate(&self) -> PathBuf {
        self.0.path().join("certificate.pem")
    }
}

/// A Jupyter Server. Ends when dropped.
struct RunningServer {
    process: Child,
    port: u16,
}

impl RunningServer {
    fn plain(user: &User) -> Self {
        Self::start(user, &[])
    }

    /// Behind TLS, with the user's certificate for that name.
    fn secure(user: &User, name: &str) -> Self {
        let (certificate, key) = (user.certificate(), user.0.path().join("key.pem"));
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
            .args(["-subj", "/CN=jupyter", "-addext", &format!("subjectAltName=DNS:{name}")])
            .args(["-addext", "basicConstraints=critical,CA:FALSE"])
            .args([Path::new("-keyout"), &key, Path::new("-out"), &certificate])
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        let files = [("certfile", certificate), ("keyfile", key)];
        Self::start(user, &files.map(|(option, file)| format!("--ServerApp.{option}={}", file.display())))
    }

    fn start(user: &User, options: &[String]) -> Self {
        let port = free_port();
        let mut process = Command::new(python())
            .args(["-m", "jupyter_server", "--ServerApp.allow_root=True", "--ServerApp.open_browser=False"])
            .args([format!("--ServerApp.port={port}"), "--ServerApp.port_retries=0".to_owned()])
            .arg("--IdentityProvider.token=secret")
            // Under names that are not this machine's too.
            .arg("--ServerApp.allow_remote_access=True")
            .args(options)
            .env("HOME", user.0.path())
            .current_dir(user.0.path())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        eventually_blocking("the server", || {
            assert!(process.try_wait().unwrap().is_none(), "the server has ended");
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Self { process, port }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(self.process.id().try_into().unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap(); // it ends its kernels then
        self.process.wait().unwrap();
    }
}

/// An HTTP proxy for `ada:pass`, which knows every name for one port of this machine. Runs until the test ends.
struct HttpProxy {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl HttpProxy {
    fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Self { port: listener.local_addr().unwrap().port(), asked: Arc::default() };
        let asked = Arc::clone(&proxy.asked);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let asked = Arc::clone(&asked);
                std::thread::spawn(move || serve(client.unwrap(), server, &asked));
            }
        });
        proxy
    }

    fn url(&self, user: &str) -> String {
        let user = if user.is_empty() { String::new() } else { format!("{user}@") };
        format!("http://{user}127.0.0.1:{}", self.port)
    }

    /// The first lines of what it was asked for.
    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(mut client: TcpStream, server: u16, asked: &Mutex<Vec<String>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let (first, headers) = head.split_once("\r\n").unwrap();
    asked.lock().unwrap().push(first.to_owned());
    // ada:pass
    if !headers.to_lowercase().contains("proxy-authorization: basic ywrhonbhc3m=\r\n") {
        let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";
        return client.write_all(refusal.as_bytes()).unwrap();
    }
    let mut server = TcpStream::connect(("127.0.0.1", server)).unwrap();
    if first.starts_with("CONNECT ") {
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap();
    } else {
        let (method, url) = first.split_once(" http://").unwrap();
        let (_, path) = url.split_once('/').unwrap();
        write!(server, "{method} /{path}\r\n{headers}").unwrap();
    }
    let (mut from_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    std::thread::spawn(move || {
        drop(std::io::copy(&mut from_client, &mut to_server)); // either side may break off
        drop(to_server.shutdown(Shutdown::Write));
    });
    drop(std::io::copy(&mut server, &mut client));
    drop(client.shutdown(Shutdown::Write));
}
