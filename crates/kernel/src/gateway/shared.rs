//! One gateway on this machine for all processes of a user.
//!
//! The first process that needs it starts it, and it outlives that process. `gateway.json` says where it is. A process
//! that finds it working uses it; one that does not takes the lock, looks again, and starts another.
//!
//! Few users need it. It is kept because one of the founding documents asks for it, and because kernels on it outlive
//! every process of ours without a daemon.

mod process;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use cellwright_jupyter::JupyterEnvironment;
use cellwright_ownership::{PrivateFolderError, private_folder};
use cellwright_process::{ChildCommand, Signal, StderrTarget};
use tokio::time::{Instant, sleep, timeout};

use super::address::Address;
use super::listener::started;
use super::lock::{GatewayLock, LockError};
use crate::environment::{EnvVars, VariableRules};
use crate::interpreter::{Candidate, PythonSearch};
use crate::token::random_token;
use process::GatewayInfo;

const READY: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(50);
/// How often a start is tried whose port another took.
const STARTS: u32 = 3;
const TERMINATED: Duration = Duration::from_secs(5);
const KILLED: Duration = Duration::from_secs(5);
const ANSWERS: Duration = Duration::from_secs(10);

/// Kernels that nobody is connected to end after an hour: their owners cannot come back for them.
const OPTIONS: [&str; 4] = [
    "--ZMQChannelsWebsocketConnection.limit_rate=False",
    "--RemoteMappingKernelManager.cull_idle_timeout=3600",
    "--KernelGatewayApp.ip=127.0.0.1",
    "--KernelGatewayApp.port_retries=0",
];

/// How long the path of Jupyter's runtime folder may be if `kernel-UUID-ipc-5` in it is to be a socket.
const DEEPEST_SOCKETS: usize = 100 - "/kernel-01234567-89ab-cdef-0123-456789abcdef-ipc-5".len();

/// Leaves our session, so that closing a terminal does not end it, and runs the gateway.
const RUN: &str = "import os, runpy, sys; os.setsid(); sys.argv[0] = 'kernel_gateway'; \
                   runpy.run_module('kernel_gateway', run_name='__main__', alter_sys=True)";

/// Says with its exit code whether a gateway can run.
const CAN_RUN: &str = "import sys\nfrom importlib.util import find_spec\n\
                       sys.exit(not (find_spec('kernel_gateway') and find_spec('ipykernel')))";

/// The gateway that a user's processes on this machine share.
#[derive(Clone, Debug)]
pub struct SharedGateway {
    /// The folder for its files, for the user alone.
    pub folder: PathBuf,
    /// Which Python runs it: the first that can.
    pub search: PythonSearch,
    /// Which variables of our environment it, and its kernels, may see.
    pub rules: VariableRules,
}

/// What is known of the shared gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayStatus {
    /// There is none.
    Stopped,
    /// It runs and is well.
    Running {
        /// Its process.
        pid: u32,
        /// Where it listens.
        url: String,
        /// What runs it.
        python: PathBuf,
    },
    /// Its process is there and does not answer.
    Unwell {
        /// Its process.
        pid: u32,
        /// What it, or the system, answers.
        why: String,
    },
}

/// The shared gateway could not be started, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum SharedError {
    /// No Python can run it.
    #[error("no Python here can run a gateway; {}", advice.as_ref().map_or_else(|| "install Python first".to_owned(), |python| format!("run `{} -m pip install jupyter_kernel_gateway ipykernel`", python.display())))]
    NoPython {
        /// The first Python there is.
        advice: Option<PathBuf>,
    },
    /// Its folder or one of its files cannot be used.
    #[error("could not use `{}`", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Its folder is not the user's alone.
    #[error("the gateway's folder cannot be used")]
    Folder(#[from] PrivateFolderError),
    /// Another process does not let go of the lock.
    #[error("process {holder} is starting or stopping the gateway and does not end; the lock is `{}`", path.display())]
    Locked {
        /// Its process.
        holder: String,
        /// The lock.
        path: PathBuf,
    },
    /// It ended, or did not get ready.
    #[error("the gateway did not start: {why}{}", if log.is_empty() { String::new() } else { format!("; it said: {log}") })]
    NotStarted {
        /// What happened.
        why: String,
        /// The end of what it said.
        log: String,
    },
    /// Its process cannot be ended.
    #[error("the gateway, process {pid}, does not end")]
    DoesNotEnd {
        /// The process.
        pid: u32,
    },
}

impl SharedGateway {
    /// The gateway's address. Starts a gateway unless a healthy one runs. Processes that ask at the same time get the same one.
    pub async fn address(&self) -> Result<Address, SharedError> {
        self.prepare()?;
        // Most calls need no lock.
        if let Some(info) = self.read()
            && info.is_well().await.is_ok()
        {
            return Ok(info.address());
        }
        let _lock = self.lock().await?;
        if let Some(info) = self.read() {
            if info.is_alive() && info.is_well_at_last().await.is_ok() {
                return Ok(info.address());
            }
            self.end(&info).await?;
        }
        let info = self.start().await?;
        self.write(&info)?;
        Ok(info.address())
    }

    /// What is known of it. Starts nothing.
    pub async fn status(&self) -> GatewayStatus {
        let Some(info) = self.read().filter(GatewayInfo::is_alive) else { return GatewayStatus::Stopped };
        match info.is_well().await {
            Ok(()) => GatewayStatus::Running { pid: info.pid, url: info.url, python: info.python },
            Err(error) => GatewayStatus::Unwell { pid: info.pid, why: error.to_string() },
        }
    }

    /// Ends it and its kernels; whether there was one.
    pub async fn stop(&self) -> Result<bool, SharedError> {
        self.prepare()?;
        let _lock = self.lock().await?;
        match self.read() {
            Some(info) => {
                let there = info.is_the_gateway().await;
                self.end(&info).await?;
                Ok(there)
            }
            None => Ok(false),
        }
    }

    /// How much the gateway has said so far, to ask later what it has said since.
    pub fn logged(&self) -> u64 {
        fs::metadata(self.file("gateway.log")).map_or(0, |log| log.len())
    }

    /// Whether the gateway has run out of files since; its answers do not show it.
    pub fn ran_out_of_files_since(&self, logged: u64) -> bool {
        let said = || {
            let mut log = File::open(self.file("gateway.log"))?;
            log.seek(io::SeekFrom::Start(logged))?;
            let mut said = Vec::new();
            log.read_to_end(&mut said)?;
            io::Result::Ok(said)
        };
        memchr::memmem::find(&said().unwrap_or_default(), b"Too many open files").is_some()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn failed(&self, name: &str) -> impl Fn(io::Error) -> SharedError {
        let path = self.file(name);
        move |source| SharedError::Io { path: path.clone(), source }
    }

    /// A folder that only the user can enter: what is in it decides where our code goes.
    fn prepare(&self) -> Result<(), SharedError> {
        Ok(private_folder(&self.folder)?)
    }

    async fn lock(&self) -> Result<GatewayLock, SharedError> {
        let path = self.file("gateway.lock");
        GatewayLock::take(&path).await.map_err(|error| match error {
            LockError::Io(source) => SharedError::Io { path, source },
            LockError::Held(holder) => SharedError::Locked { holder, path },
        })
    }

    /// What `gateway.json` says; one that cannot be read, or leads nowhere, says nothing.
    fn read(&self) -> Option<GatewayInfo> {
        let info: GatewayInfo = serde_json::from_slice(&fs::read(self.file("gateway.json")).ok()?).ok()?;
        Address::new(&info.url, None).is_ok().then_some(info)
    }

    fn write(&self, info: &GatewayInfo) -> Result<(), SharedError> {
        let write = || {
            let mut file = tempfile::NamedTempFile::new_in(&self.folder)?; // 0600 from the start
            serde_json::to_writer_pretty(&mut file, info)?;
            file.persist(self.file("gateway.json")).map_err(|error| error.error)
        };
        write().map(drop).map_err(self.failed("gateway.json"))
    }

    async fn end(&self, info: &GatewayInfo) -> Result<(), SharedError> {
        if info.is_the_gateway().await {
            self.end_process(info).await?;
        }
        match fs::remove_file(self.file("gateway.json")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed("gateway.json")(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Ends the process, up to its end or until its number is another's.
    async fn end_process(&self, info: &GatewayInfo) -> Result<(), SharedError> {
        for (signal, grace) in [(Signal::SIGTERM, TERMINATED), (Signal::SIGKILL, KILLED)] {
            if !info.is_alive() {
                return Ok(());
            }
            info.signal(signal);
            let deadline = Instant::now() + grace;
            while info.is_alive() && Instant::now() < deadline {
                sleep(LOOK).await;
            }
        }
        if info.is_alive() { Err(SharedError::DoesNotEnd { pid: info.pid }) } else { Ok(()) }
    }

    async fn start(&self) -> Result<GatewayInfo, SharedError> {
        let candidate = self.python().await?;
        let mut attempt = 1;
        loop {
            match self.try_start(&candidate).await {
                Err(SharedError::NotStarted { log, .. }) if attempt < STARTS && log.contains("in use") => {
                    attempt += 1;
                }
                decided => return decided,
            }
        }
    }

    /// Starts the gateway, which is to outlive us, so not among the children that end with us.
    async fn try_start(&self, candidate: &Candidate) -> Result<GatewayInfo, SharedError> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        let port = port.map_err(|error| not_started(&error.to_string()))?.port();
        let token = random_token();
        let log = File::options()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o600)
            .open(self.file("gateway.log"));
        let log = log.map_err(self.failed("gateway.log"))?;
        let variables = candidate.environment(self.rules.pass(&self.search.variables));
        let names: Vec<_> = variables.keys().filter_map(|name| name.to_str()).collect();
        let names = names.join(",");
        let child = std::process::Command::new(&candidate.python)
            .args(["-c", RUN])
            .args(OPTIONS)
            .args(link(&variables))
            .arg(format!("--KernelGatewayApp.port={port}"))
            .env_clear()
            .envs(variables)
            // Not among the arguments, which everyone can see.
            .env("KG_AUTH_TOKEN", &token)
            .env("KG_ENV_PROCESS_WHITELIST", names)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        let mut child = child.map_err(|error| not_started(&error.to_string()))?;
        let info = GatewayInfo {
            pid: child.id(),
            started: started(child.id()),
            url: format!("http://127.0.0.1:{port}/"),
            token,
            python: candidate.python.clone(),
        };
        let deadline = Instant::now() + READY;
        loop {
            if let Ok(Some(status)) = child.try_wait() {
                let why = format!("its process ended ({status})");
                return Err(SharedError::NotStarted { why, log: self.last_words() });
            }
            match info.is_well().await {
                Ok(()) => break,
                Err(error) if Instant::now() > deadline => {
                    info.signal(Signal::SIGKILL);
                    drop(child.wait()); // killed
                    return Err(SharedError::NotStarted { why: error.to_string(), log: self.last_words() });
                }
                Err(_) => sleep(LOOK).await,
            }
        }
        // Reaped when it ends, should we live that long.
        std::thread::spawn(move || child.wait());
        Ok(info)
    }

    /// The first Python that has what a gateway needs.
    async fn python(&self) -> Result<Candidate, SharedError> {
        let mut first = None;
        for lead in self.search.leads() {
            let Some(Ok(candidate)) = lead.candidate(&self.search).await else { continue };
            let variables = candidate.environment(self.rules.pass(&self.search.variables));
            let question = ChildCommand::new(&candidate.python, variables)
                .args(["-c", CAN_RUN])
                .stderr(StderrTarget::Null);
            if let Ok(mut child) = question.current_dir(&self.folder).spawn()
                && timeout(ANSWERS, child.wait()).await.is_ok_and(cellwright_process::ChildExit::success)
            {
                return Ok(candidate);
            }
            first.get_or_insert(candidate.python);
        }
        Err(SharedError::NoPython { advice: first })
    }

    fn last_words(&self) -> String {
        let said = fs::read_to_string(self.file("gateway.log")).unwrap_or_default();
        let lines: Vec<_> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(5)..].join("\n")
    }
}

/// How the gateway speaks with its kernels. Every user of the machine could listen at their ports; where Jupyter puts
/// sockets in too deep a folder there is no other way.
fn link(variables: &EnvVars) -> Option<&'static str> {
    let variable = |name: &str| variables.get(OsStr::new(name)).cloned();
    let folder = JupyterEnvironment::new(&variable, Vec::new()).runtime_dir();
    (folder.as_os_str().len() <= DEEPEST_SOCKETS).then_some("--KernelManager.transport=ipc")
}

fn not_started(why: &str) -> SharedError {
    SharedError::NotStarted { why: why.to_owned(), log: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(folder: &std::path::Path) -> SharedGateway {
        let variables = std::collections::HashMap::new();
        let search = PythonSearch {
            explicit: None,
            cwd: folder.to_owned(),
            variables,
            managed: None,
            trust: cellwright_ownership::FolderTrust::Everything,
        };
        SharedGateway { folder: folder.to_owned(), search, rules: VariableRules::default() }
    }

    #[tokio::test]
    async fn stopping_a_gateway_whose_start_is_not_noted_leaves_an_unrelated_process_alone() {
        let folder = tempfile::Builder::new().permissions(private()).tempdir().unwrap();
        let shared = shared(folder.path());
        let mut unrelated = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let pid = unrelated.id();
        let noted = format!(
            r#"{{"pid": {pid}, "started": null, "url": "http://127.0.0.1:9", "token": "t", "python": "p"}}"#
        );
        fs::write(shared.file("gateway.json"), noted).unwrap();
        assert!(!shared.stop().await.unwrap());
        assert!(unrelated.try_wait().unwrap().is_none(), "it was ended");
        assert!(!shared.file("gateway.json").exists());
        unrelated.kill().unwrap();
        unrelated.wait().unwrap();
    }

    fn private() -> fs::Permissions {
        std::os::unix::fs::PermissionsExt::from_mode(0o700)
    }

    #[tokio::test]
    async fn a_damaged_gateway_file_is_as_good_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let shared = shared(folder.path());
        let pid = std::process::id();
        let with = |url: &str| {
            format!(
                r#"{{"pid": {pid}, "started": {:?}, "url": "{url}", "token": "t", "python": "p"}}"#,
                started(pid).unwrap()
            )
        };
        for damaged in ["", "{", "[]", &with("foo"), &with(""), &with("http://"), &with("file:///etc")] {
            fs::write(shared.file("gateway.json"), damaged).unwrap();
            assert_eq!(shared.status().await, GatewayStatus::Stopped, "{damaged}");
        }
    }
}
