//! Sessions that outlive their client.

use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cellwright_kernel::{Question, Reply, Stdin};
use cellwright_session::daemon::{self, DaemonDoor, DaemonError, DaemonPlace, DaemonSpawn};
use cellwright_session::{
    Abandoned, CallEvent, CallReport, CallUpdate, CellStatus, FollowFrom, Force, JobState, Notice, Reset,
    SessionClient, SessionError, Turn, Turns,
};
use cellwright_testkit::{alive, end_of, eventually, python};
use nix::sys::signal::Signal;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixListener;

use super::bridge::Echo;
use super::following::read_to;
use super::support::{call, host_program, signal, until_printed};

fn place(folder: &Path) -> DaemonPlace {
    DaemonPlace::new(folder.join("run"))
}

fn spawn(folder: &Path, version: &str) -> DaemonSpawn {
    let host = format!("HOST_VERSION={version}");
    let arguments = [
        host.as_ref(),
        host_program().as_os_str(),
        "daemon".as_ref(),
        python().as_os_str(),
        folder.as_os_str(),
    ]
    .map(Into::into);
    DaemonSpawn { program: "/usr/bin/env".into(), arguments: arguments.into() }
}

fn door(folder: &Path, version: &'static str) -> DaemonDoor {
    DaemonDoor { place: place(folder), version, spawn: spawn(folder, version), settings: None }
}

async fn connect(folder: &TempDir) -> SessionClient {
    daemon::connect(&door(folder.path(), "1")).await.unwrap()
}

async fn run(client: &SessionClient, folder: &TempDir, code: &str) -> Arc<CallReport> {
    client.call(call(folder.path(), &[code])).await.unwrap().report().await
}

async fn text(client: &SessionClient, folder: &TempDir, code: &str) -> String {
    let report = run(client, folder, code).await;
    assert!(report.succeeded(), "{report:#?}");
    report.cells[0].output.text.text.clone()
}

#[tokio::test]
async fn a_session_survives_its_client_and_the_daemon_leaves_when_there_is_nothing_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let first = connect(&folder).await;
    assert_eq!(text(&first, &folder, "x = 41").await, "");
    drop(first);
    let second = connect(&folder).await;
    assert_eq!(text(&second, &folder, "x + 1").await, "42\n");
    let socket = place(folder.path()).socket();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&socket), mode(socket.parent().unwrap())), (0o600, 0o700));
    let listed = second.sessions().await.unwrap();
    assert_eq!((listed.len(), listed[0].holders), (1, 1));
    let variables = second.variables(&listed[0].key, 5).await.unwrap();
    assert_eq!((variables.total, variables.listed[0].preview.as_str()), (1, "41"));
    second.end(&listed[0].key, Force::No).await.unwrap();
    drop(second);
    eventually("the daemon's end", async || !socket.exists()).await;
}

#[tokio::test]
async fn what_an_agent_runs_can_be_watched_and_its_kernel_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (agent, person) = (connect(&folder).await, connect(&folder).await);
    text(&agent, &folder, "number = 41").await;
    let key = person.sessions().await.unwrap()[0].key.clone();
    let mut follower = person.follow(&key, FollowFrom::Beginning).await.unwrap();
    let seen = read_to(&mut follower, "Present").await;
    assert_eq!(seen[2..], ["cell number = 41", "ok", "call true", "Present"]);
    text(&agent, &folder, "print(number)").await;
    let seen = read_to(&mut follower, "call true").await;
    assert_eq!(seen, ["CallStarted", "cell print(number)", "prints 41", "ok", "call true"]);
    let asked = Question::Complete { code: "numb".into(), cursor: 4 };
    let Reply::Completions(found) = person.ask(&key, asked).await.unwrap() else { panic!() };
    assert_eq!(found.matches, ["number"]);
}

#[tokio::test]
async fn cells_call_the_tools_of_the_client_that_runs_them() {
    let folder = tempfile::tempdir().unwrap();
    let (with, without) = (connect(&folder).await, connect(&folder).await);
    // The kernel is started by a client that has none.
    let refused = run(&without, &folder, "tool.echo()").await;
    let told = &refused.cells[0].output.text.text;
    assert!(told.trim_end().ends_with("the client that runs this cell offers no tools"), "{told}");
    let thread = r"
import threading
go = threading.Event()
def late():
    go.wait()
    try:
        tool.echo()
    except Exception as error:
        print(error)
thread = threading.Thread(target=late)
thread.start()";
    let tools = "[tool.echo(n=n)['args'] for n in range(3)], tool.echo()['session'], len(tool.large())";
    let mut echo = call(folder.path(), &[thread, tools]);
    echo.tools = Some(Arc::new(Echo));
    let report = with.call(echo).await.unwrap().report().await;
    let expected = "([{'n': 0}, {'n': 1}, {'n': 2}], 'a', 5000000)\n";
    assert_eq!(report.cells[1].output.text.text, expected);
    // What goes on afterwards has the tools of whoever runs a cell then.
    let told = text(&without, &folder, "go.set(); thread.join()").await;
    assert!(told.trim_end().ends_with("the client that runs this cell offers no tools"), "{told}");
}

#[tokio::test]
async fn a_cell_is_what_its_client_says_when_its_turn_comes() {
    let folder = tempfile::tempdir().unwrap();
    let client = connect(&folder).await;
    let mut asked = call(folder.path(), &["'as called'", "1", "2"]);
    asked.turns = Turns::Asked;
    let mut running = client.call(asked).await.unwrap();
    let report = loop {
        match running.next().await {
            CallUpdate::Event(CallEvent::Turn { cell: 1, request }) => {
                request.answer(Turn::Instead("10".into()));
            }
            CallUpdate::Event(CallEvent::Turn { cell: 2, request }) => request.answer(Turn::Withdrawn),
            CallUpdate::Event(_) => {} // the first one's request is dropped here
            CallUpdate::Finished(report) => break report,
        }
    };
    let shown: Vec<_> = report.cells.iter().map(|cell| cell.output.text.text.as_str()).collect();
    assert_eq!((shown, report.succeeded()), (vec!["'as called'\n", "10\n", ""], true));
}

#[tokio::test]
async fn k25_clients_that_come_at_once_start_one_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let connecting = (0..8).map(|_| connect(&folder));
    let clients = futures_util::future::join_all(connecting).await;
    run(&clients[0], &folder, "x = 5").await;
    for client in &clients {
        assert_eq!(text(client, &folder, "x").await, "5\n");
    }
}

#[tokio::test]
async fn events_input_and_stopping_work_as_at_home() {
    let folder = tempfile::tempdir().unwrap();
    let client = connect(&folder).await;
    let mut asks = call(folder.path(), &["print('hi')\nname = input('who? ')\nprint(name)"]);
    asks.stdin = Stdin::Forwarded;
    let mut running = client.call(asks).await.unwrap();
    let mut events = Vec::new();
    let report = loop {
        match running.next().await {
            CallUpdate::Event(CallEvent::Input { request, .. }) => {
                events.push(request.prompt.clone());
                request.answer("Ada");
            }
            CallUpdate::Event(CallEvent::CellFinished(cell)) => {
                events.push(format!("finished {}", cell.index));
            }
            CallUpdate::Event(_) => {}
            CallUpdate::Finished(report) => break report,
        }
    };
    assert_eq!(events, ["who? ", "finished 0"]);
    assert!(report.cells[0].output.text.text.ends_with("Ada\n"), "{report:#?}");
    let running =
        until_printed(&client, call(folder.path(), &["print('on', flush=True)\nwhile True: pass"])).await;
    running.stop();
    assert!(matches!(running.report().await.cells[0].status, CellStatus::Stopped { .. }));
    let missing = client.call(call(&folder.path().join("missing"), &["1"])).await.unwrap_err();
    assert!(matches!(missing, SessionError::NoDirectory { .. }), "{missing:?}");
}

#[tokio::test]
async fn a_call_goes_on_or_stops_without_its_client_as_it_was_asked() {
    let folder = tempfile::tempdir().unwrap();
    let client = connect(&folder).await;
    let code = "import time\nprint('begun', flush=True)\nwhile not __import__('os').path.exists('go'): time.sleep(0.01)\nprint('done')";
    let mut goes_on = call(folder.path(), &[code]);
    goes_on.abandoned = Abandoned::GoOn;
    let running = until_printed(&client, goes_on).await;
    let job = running.job();
    drop(running);
    drop(client);
    let client = connect(&folder).await;
    std::fs::write(folder.path().join("go"), "").unwrap();
    let JobState::Finished(report) = client.wait(job, Duration::from_mins(1)).await.unwrap() else {
        panic!("it goes on")
    };
    assert_eq!(report.cells[0].output.text.text, "begun\ndone\n");
    let stops = call(folder.path(), &["print('begun', flush=True)\ntime.sleep(600)"]);
    drop(until_printed(&client, stops).await);
    assert_eq!(text(&client, &folder, "'free again'").await, "'free again'\n");
    let detached = call(folder.path(), &["print('begun', flush=True)\ntime.sleep(0.1)\nprint('done')"]);
    let job = until_printed(&client, detached).await.detach();
    let JobState::Finished(report) = client.wait(job, Duration::from_mins(1)).await.unwrap() else {
        panic!("it goes on")
    };
    assert_eq!(report.cells[0].output.text.text, "begun\ndone\n");
    assert_eq!(client.jobs().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_daemon_of_another_version_makes_way_only_when_it_has_nothing_to_lose() {
    let folder = tempfile::tempdir().unwrap();
    let newer = door(folder.path(), "2");
    let old = connect(&folder).await;
    let pid: u32 = text(&old, &folder, "import os; os.getppid()").await.trim().parse().unwrap();
    let Err(refused) = daemon::connect(&newer).await else { panic!("it took over") };
    assert!(
        matches!(refused, DaemonError::OtherVersion { ref theirs, pid: told, .. } if theirs == "1" && told == pid),
        "{refused:?}"
    );
    let key = old.sessions().await.unwrap().remove(0).key;
    old.end(&key, Force::No).await.unwrap();
    let new = daemon::connect(&newer).await.unwrap();
    assert_eq!(text(&new, &folder, "'new'").await, "'new'\n");
    assert!(!alive(pid));
    // The old client cannot go back, and says why.
    let refused = old.sessions().await.unwrap_err().to_string();
    assert!(refused.contains("a session daemon of version 2 still has sessions"), "{refused}");
}

#[tokio::test]
async fn a_daemon_of_another_version_that_is_just_leaving_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path());
    std::fs::DirBuilder::new().mode(0o700).create(folder.path().join("run")).unwrap();
    let leaving = UnixListener::bind(place.socket()).unwrap();
    let socket = place.socket();
    let welcomes = tokio::spawn(async move {
        let (mut client, _) = leaving.accept().await.unwrap();
        let hello = client.read_u32().await.unwrap();
        client.read_exact(&mut vec![0; hello as usize]).await.unwrap();
        let welcome = br#"{"version":"1","pid":1}"#;
        client.write_u32(welcome.len().try_into().unwrap()).await.unwrap();
        client.write_all(welcome).await.unwrap();
        std::fs::remove_file(socket).unwrap();
    });
    let client = daemon::connect(&door(folder.path(), "2")).await.unwrap();
    welcomes.await.unwrap();
    assert_eq!(text(&client, &folder, "'new'").await, "'new'\n");
}

#[tokio::test]
async fn a_daemon_that_dies_under_a_call_is_reported_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let client = connect(&folder).await;
    let code = "import os, time\nprint(os.getpid(), os.getppid(), flush=True)\ntime.sleep(600)";
    let mut running = client.call(call(folder.path(), &["x = 1", code, "3"])).await.unwrap();
    let pids = loop {
        match running.next().await {
            CallUpdate::Event(CallEvent::Output { change, .. }) => {
                let cellwright_cell::OutputChange::Added(cellwright_cell::Output::Text { text, .. }) = change
                else {
                    continue;
                };
                break text;
            }
            CallUpdate::Event(_) => {}
            CallUpdate::Finished(report) => panic!("{report:#?}"),
        }
    };
    let pids: Vec<u32> = pids.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    signal(pids[1], Signal::SIGKILL);
    let report = running.report().await;
    assert_eq!(report.cells[0].status, CellStatus::Ok);
    assert!(matches!(report.cells[1].status, CellStatus::Died(_)), "{report:#?}");
    assert!(matches!(report.error, Some(SessionError::Daemon(_))), "{report:#?}");
    end_of(pids[0]).await;
    // The same client finds the next daemon, and is told.
    let report = run(&client, &folder, "'x' in globals()").await;
    assert_eq!(report.cells[0].output.text.text, "False\n");
    assert_eq!(report.notices, [Notice::DaemonReplaced]);
    assert_eq!(run(&client, &folder, "1").await.notices, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k20_a_client_that_has_left_keeps_nobody_from_a_reset_and_one_that_has_not_does() {
    let folder = tempfile::tempdir().unwrap();
    let stays = connect(&folder).await;
    let reset = || {
        let mut call = call(folder.path(), &["'x' in globals()"]);
        call.cells[0].reset = Reset::Yes;
        call
    };
    for round in 0..10 {
        let leaves = connect(&folder).await;
        assert_eq!(text(&leaves, &folder, "x = 1").await, "");
        let report = stays.call(reset()).await.unwrap().report().await;
        assert!(matches!(report.error, Some(SessionError::Held { others: 1 })), "{round} {report:#?}");
        let refused = stays.restart(&report.key, Force::No).await.unwrap_err();
        assert!(matches!(refused, SessionError::Held { others: 1 }), "{round} {refused:?}");
        drop(leaves);
        let report = stays.call(reset()).await.unwrap().report().await;
        assert!(report.succeeded(), "{round} {report:#?}");
    }
}
