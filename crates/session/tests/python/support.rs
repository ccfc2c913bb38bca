//! Sessions in a folder of their own.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use cellwright_kernel::interpreter::PythonSearch;
use cellwright_kernel::{KernelChoice, RunnerLaunch, StartRunner};
use cellwright_output::Artifacts;
use cellwright_session::{
    Call, CallEvent, CallHandle, CallReport, CallUpdate, CellRequest, SessionClient, SessionKey,
    SessionSettings, Sessions,
};
use cellwright_testkit::{patient_graces, python};
use tempfile::TempDir;

/// Where the runner is unpacked in tests, once for all.
pub(crate) fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache")
}

pub(crate) struct Fixture {
    pub(crate) sessions: Sessions,
    pub(crate) client: SessionClient,
    pub(crate) folder: TempDir,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with(|_, _| {})
    }

    pub(crate) fn with(adjust: impl FnOnce(&mut SessionSettings, &Path)) -> Self {
        Self::launched(|_| {}, adjust)
    }

    pub(crate) fn launched(
        adjust_launch: impl FnOnce(&mut RunnerLaunch),
        adjust: impl FnOnce(&mut SessionSettings, &Path),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let variables =
            [("PATH".into(), env::var_os("PATH").unwrap()), ("HOME".into(), folder.path().into())];
        let search = PythonSearch {
            explicit: Some(python()),
            cwd: folder.path().into(),
            variables: variables.into(),
            managed: None,
            trust: cellwright_ownership::FolderTrust::Everything,
        };
        let mut template = RunnerLaunch { graces: patient_graces(), ..RunnerLaunch::new(search, cache()) };
        adjust_launch(&mut template);
        let mut settings = SessionSettings::new(StartRunner { template });
        settings.output.artifacts = Some(Artifacts::new(folder.path().join("artifacts")));
        adjust(&mut settings, folder.path());
        let sessions = Sessions::new(settings);
        Self { client: sessions.client(), sessions, folder }
    }

    pub(crate) fn call(&self, cells: &[&str]) -> Call {
        call(self.folder.path(), cells)
    }

    pub(crate) fn key(&self) -> SessionKey {
        let cwd = self.folder.path().canonicalize().unwrap();
        SessionKey { session: "a".parse().unwrap(), cwd, kernel: KernelChoice::default() }
    }

    /// Runs cells to their report.
    pub(crate) async fn run(&self, cells: &[&str]) -> Arc<CallReport> {
        self.client.call(self.call(cells)).await.unwrap().report().await
    }

    /// What a cell that must complete showed.
    pub(crate) async fn text(&self, code: &str) -> String {
        let report = self.run(&[code]).await;
        assert!(report.succeeded(), "{code}\n{report:#?}");
        report.cells[0].output.text.text.clone()
    }

    /// The process of the kernel.
    pub(crate) async fn pid(&self) -> u32 {
        self.text("import os; os.getpid()").await.trim().parse().unwrap()
    }
}

pub(crate) fn call(folder: &Path, cells: &[&str]) -> Call {
    let cells = cells.iter().map(|code| CellRequest::new(*code)).collect();
    Call::new("a".parse().unwrap(), folder, cells)
}

/// The report's notices as people read them.
pub(crate) fn notices(report: &CallReport) -> Vec<String> {
    report.notices.iter().map(ToString::to_string).collect()
}

/// Starts a call and returns once its first cell has printed.
pub(crate) async fn until_printed(client: &SessionClient, call: Call) -> CallHandle {
    let mut running = client.call(call).await.unwrap();
    loop {
        match running.next().await {
            CallUpdate::Event(CallEvent::Output { .. }) => return running,
            CallUpdate::Event(_) => {}
            CallUpdate::Finished(report) => panic!("it printed nothing: {report:#?}"),
        }
    }
}

pub(crate) fn signal(pid: u32, signal: nix::sys::signal::Signal) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid.try_into().unwrap()), signal).unwrap();
}

/// The example that cargo builds along with the tests.
pub(crate) fn host_program() -> PathBuf {
    let test = env::current_exe().unwrap();
    let host = test.parent().unwrap().parent().unwrap().join("examples/session_host");
    assert!(host.exists(), "{} is missing: build the examples", host.display());
    host
}

/// A process with sessions in `folder`.
pub(crate) fn host(role: &str, folder: &Path) -> Command {
    let mut command = Command::new(host_program());
    command.args([role.as_ref(), python().as_os_str(), folder.as_os_str()]);
    command
}

/// What such a process said at its end.
pub(crate) fn facts(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{stderr}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
