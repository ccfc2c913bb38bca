//! A process with sessions, for tests that need one of their own: to measure it, to starve it, or to leave it behind.
//!
//! `session_host ROLE PYTHON FOLDER`, where `FOLDER` holds the cache and everything else. Prints a line of facts at the end.

#![allow(clippy::print_stdout, reason = "facts for the test that started it")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

use cellwright_kernel::interpreter::PythonSearch;
use cellwright_kernel::{RunnerLaunch, StartRunner};
use cellwright_output::Artifacts;
use cellwright_session::bridge::OfCallers;
use cellwright_session::daemon::{self, DaemonPlace, ServeSettings};
use cellwright_session::{
    Call, CallReport, CallSettings, CellRequest, Notice, SessionClient, SessionSettings, Sessions, Timeout,
};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() {
    let mut arguments = env::args_os().skip(1);
    let mut next = || arguments.next().expect("session_host ROLE PYTHON FOLDER");
    let (role, python, folder) = (next(), PathBuf::from(next()), PathBuf::from(next()));
    let mut settings = settings(&python, &folder);
    match role.to_str() {
        Some("flood") => flood(settings, &folder).await,
        Some("many") => many(settings, &folder).await,
        Some("crowd") => {
            settings.limits.sessions = usize::MAX;
            crowd(settings, &folder).await;
        }
        Some("full") => full(settings, &folder).await,
        Some("daemon") => {
            daemon::leave_terminal();
            settings.limits.idle = Duration::from_secs(10);
            settings.limits.journal = 1 << 20;
            settings.tools = Some(Arc::new(OfCallers));
            let linger = Duration::from_millis(200);
            let version = env::var("HOST_VERSION").unwrap_or_else(|_| "1".into());
            let (place, stop) = (DaemonPlace::new(folder.join("run")), CancellationToken::new());
            let sessions = Sessions::new(settings);
            // These clients send no settings.
            let settings = Arc::new(|_: &CallSettings| unreachable!());
            let serve = ServeSettings { place, version, linger, stop, settings };
            let served = daemon::serve(serve, sessions, Box::new(|| println!("ready"))).await;
            served.expect("the daemon serves");
        }
        other => panic!("no such role: {other:?}"),
    }
}

fn settings(python: &Path, folder: &Path) -> SessionSettings {
    let variables = ["PATH", "HOME"].into_iter().filter_map(|name| Some((name.into(), env::var_os(name)?)));
    let search = PythonSearch {
        explicit: Some(python.into()),
        cwd: folder.into(),
        variables: variables.collect(),
        managed: None,
        trust: cellwright_ownership::FolderTrust::Everything,
    };
    let mut settings =
        SessionSettings::new(StartRunner { template: RunnerLaunch::new(search, folder.join("cache")) });
    settings.output.artifacts = Some(Artifacts::new(folder.join("artifacts")));
    settings
}

async fn run(client: &SessionClient, session: &str, folder: &Path, code: &str) -> Arc<CallReport> {
    let cell = CellRequest { timeout: Timeout::Never, ..CellRequest::new(code) };
    let session = session.parse().expect("a name");
    let running = client.call(Call::new(session, folder, vec![cell])).await.expect("there is room");
    running.report().await
}

/// 200 MB of text; prints what the artifact holds and the most memory this process took.
async fn flood(settings: SessionSettings, folder: &Path) {
    let artifacts = settings.output.artifacts.clone().expect("set above");
    let sessions = Sessions::new(settings);
    let code = "for i in range(2_000_000): print(f'{i:099d}')";
    let report = run(&sessions.client(), "a", folder, code).await;
    assert!(report.succeeded(), "{report:?}");
    let truncation = report.cells[0].output.text.truncation.as_ref().expect("it is long");
    let artifact = artifacts.open(truncation.full.artifact().expect("it is stored")).expect("it is there");
    println!("{} {} {}", artifact.path.display(), artifact.bytes, status("VmHWM"));
}

/// 10,000 cells; prints the memory this process took after the first thousand, and at the end.
async fn many(settings: SessionSettings, folder: &Path) {
    let sessions = Sessions::new(settings);
    let client = sessions.client();
    let mut early = 0;
    for count in 0..10_000 {
        let report = run(&client, "a", folder, &format!("x = {count}\nprint(x)\nx")).await;
        assert!(report.succeeded(), "{report:?}");
        if count == 1000 {
            early = status("VmRSS");
        }
    }
    println!("{early} {}", status("VmRSS"));
}

/// Sessions until there are no descriptors left; prints which ones had to go.
async fn crowd(settings: SessionSettings, folder: &Path) {
    let sessions = Sessions::new(settings);
    let client = sessions.client();
    for count in 0..100 {
        let report = run(&client, &format!("s{count}"), folder, "import os; os.getpid()").await;
        assert!(report.succeeded(), "{count}: {report:?}");
        let dropped = report.notices.iter().find_map(|notice| match notice {
            Notice::Dropped(dropped) => Some(dropped.len()),
            _ => None,
        });
        if let Some(dropped) = dropped {
            println!("{count} {dropped} {}", client.sessions().await.expect("we have them here").len());
            return;
        }
    }
    panic!("there were descriptors for 100 sessions");
}

/// 5 MB of text where `artifacts` is too small for it; prints the notice.
async fn full(settings: SessionSettings, folder: &Path) {
    let sessions = Sessions::new(settings);
    let client = sessions.client();
    let report = run(&client, "a", folder, "x = 1\nfor i in range(50_000): print(f'{i:099d}')").await;
    assert!(report.succeeded(), "{report:?}");
    let next = run(&client, "a", folder, "print(x)").await;
    assert_eq!(next.cells[0].output.text.text, "1\n");
    println!("{}", report.cells[0].output.text.truncation.as_ref().expect("it is long"));
}

/// A line of `/proc/self/status`, in kB.
fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find(|line| line.starts_with(name)).expect("it tells");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number of kB")
}
