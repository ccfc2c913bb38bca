//! Children on a real system.

use std::io::{BufRead, BufReader};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use cellwright_process::{
    ChildCommand, ChildExit, ChildProcess, Signal, StderrTarget, StdinSource, StdoutTarget, StopGraces,
    group_memory,
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn shell(script: &str) -> ChildCommand {
    ChildCommand::new("/bin/sh", [("PATH", "/usr/bin:/bin")]).args(["-c", script])
}

/// A shell that prints a line when it is ready, and that line.
async fn ready(script: &str) -> (ChildProcess, String) {
    let mut child = shell(script).stdout(StdoutTarget::Piped).spawn().unwrap();
    let mut line = String::new();
    let stdout = child.stdout.as_mut().unwrap();
    while !line.ends_with('\n') {
        line.push(char::from(stdout.read_u8().await.unwrap()));
    }
    (child, line.trim().to_owned())
}

fn alive(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X'])))
}

/// Waits until the process has ended; the system ends a killed one when it comes to it.
#[track_caller]
fn ends(pid: u32) {
    let number = Pid::from_raw(pid.cast_signed()).unwrap();
    let process = match pidfd_open(number, PidfdFlags::empty()) {
        Ok(process) => process,
        Err(Errno::SRCH) => return, // and was reaped
        Err(error) => panic!("{error}"),
    };
    let limit = PollTimeout::try_from(SOON).unwrap();
    // Ends of other children interrupt it.
    let told = loop {
        match poll(&mut [PollFd::new(process.as_fd(), PollFlags::POLLIN)], limit) {
            Err(nix::errno::Errno::EINTR) => {}
            told => break told.unwrap(),
        }
    };
    assert_eq!(told, 1, "{pid} is still there");
}

const SOON: Duration = Duration::from_mins(1);
const NONE: Duration = Duration::ZERO;
const PATIENT: StopGraces = StopGraces { asked: NONE, interrupted: SOON, terminated: SOON };

#[tokio::test]
async fn an_exit_is_described_truthfully() {
    for (script, described) in [
        ("exit 0", "exited with code 0"),
        ("exit 3", "exited with code 3"),
        ("kill -9 $$", "was ended by SIGKILL"),
        ("kill -15 $$", "was ended by SIGTERM"),
        ("ulimit -c 0; kill -11 $$", "was ended by SIGSEGV (segmentation fault)"),
    ] {
        let exit = shell(script).spawn().unwrap().wait().await;
        assert_eq!(exit.to_string(), described, "{script}");
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let error = ChildCommand::new("/no/such/program", [("A", "b")]).spawn().unwrap_err();
    assert_eq!(error.to_string(), "could not start `/no/such/program`");
}

#[tokio::test]
async fn a_folder_that_is_gone_is_named_instead_of_the_program() {
    let error = shell("true").current_dir("/no/such/folder").spawn().unwrap_err();
    assert_eq!(error.to_string(), "could not start `/bin/sh`");
    assert_eq!(error.source.to_string(), "the folder it would run in is gone: /no/such/folder");
}

#[tokio::test]
async fn the_environment_is_what_was_given_and_nothing_else() {
    let mut child = ChildCommand::new("env", [("PATH", "/usr/bin:/bin"), ("ONLY", "this")])
        .stdout(StdoutTarget::Piped)
        .spawn()
        .unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).await.unwrap();
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["ONLY=this", "PATH=/usr/bin:/bin"]);
}

#[tokio::test]
async fn pipes_and_extra_descriptors_reach_the_child() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut child = shell("cat >&3; cat <&3")
        .stdin(StdinSource::Piped)
        .stdout(StdoutTarget::Piped)
        .descriptor(3, OwnedFd::from(theirs))
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"to the socket").await.unwrap();
    ours.set_nonblocking(true).unwrap();
    let mut ours = tokio::net::UnixStream::from_std(ours).unwrap();
    let mut heard = [0; 13];
    ours.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"to the socket");
    ours.write_all(b"to stdout").await.unwrap();
    ours.shutdown().await.unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "to stdout");
    assert_eq!(child.wait().await, ChildExit::Code(0));
}

#[tokio::test]
async fn the_tail_of_standard_error_is_kept_and_bounded() {
    let script =
        "i=0; while [ $i -lt 5000 ]; do echo line $i é >&2; i=$((i+1)); done; echo the end >&2; exit 1";
    let mut child = shell(script).stderr(StderrTarget::Tail(200)).spawn().unwrap();
    assert_eq!(child.wait().await, ChildExit::Code(1));
    let tail = child.stderr_tail();
    assert!(tail.ends_with("line 4999 é\nthe end\n"), "{tail}");
    assert!(tail.len() <= 200 && !tail.contains('\u{fffd}'), "{tail}");
}

#[tokio::test]
async fn stopping_reaches_the_whole_group() {
    let (mut child, grandchild) = ready("sleep 600 & echo $!; wait").await;
    let exit = child.stop(PATIENT).await;
    assert!(matches!(exit, ChildExit::Signal { number: 2, .. }), "{exit:?}");
    ends(grandchild.parse().unwrap());
}

#[tokio::test]
async fn stopping_goes_from_polite_to_firm() {
    let graces = StopGraces {
        asked: Duration::from_millis(1),
        interrupted: Duration::from_millis(50),
        terminated: Duration::from_millis(50),
    };
    let (mut child, _) = ready("trap '' INT; echo ready; while :; do sleep 0.01; done").await;
    assert!(matches!(child.stop(graces).await, ChildExit::Signal { number: 15, .. }));
    let (mut child, _) = ready("trap '' INT TERM; echo ready; while :; do sleep 0.01; done").await;
    assert!(matches!(child.stop(graces).await, ChildExit::Signal { number: 9, .. }));
    let (mut child, _) = ready("trap 'exit 7' INT; echo ready; while :; do sleep 0.01; done").await;
    assert_eq!(child.stop(PATIENT).await, ChildExit::Code(7));
}

#[tokio::test]
async fn a_stopped_process_can_be_ended() {
    let (mut child, _) = ready("echo ready; while :; do sleep 0.01; done").await;
    child.signal(Signal::SIGSTOP).unwrap();
    let graces = StopGraces { asked: NONE, interrupted: NONE, terminated: Duration::from_millis(50) };
    assert!(matches!(child.stop(graces).await, ChildExit::Signal { .. }));
}

#[tokio::test]
async fn dropping_a_child_kills_its_group_and_reaps_it() {
    let (child, grandchild) = ready("sleep 600 & echo $!; wait").await;
    let pid = child.id().to_string();
    drop(child);
    ends(grandchild.parse().unwrap());
    // Nothing tells others when a process is reaped.
    let deadline = Instant::now() + SOON;
    while Path::new("/proc").join(&pid).exists() {
        assert!(Instant::now() < deadline, "{pid} was not reaped");
        thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn a_descendant_that_left_the_group_ends_with_the_child() {
    for asked in [false, true] {
        let (mut child, strayed) = ready("setsid sh -c 'echo $$; exec sleep 600' & wait").await;
        if asked {
            child.look_for_strayed();
            child.signal(Signal::SIGINT).unwrap();
            child.wait().await;
        }
        drop(child);
        ends(strayed.parse().unwrap());
    }
}

#[tokio::test]
async fn what_is_left_of_a_group_ends_with_its_leader() {
    let (mut child, grandchild) = ready("sleep 600 & echo $!").await;
    assert_eq!(child.wait().await, ChildExit::Code(0));
    ends(grandchild.parse().unwrap());
    assert_eq!(child.wait().await, ChildExit::Code(0), "asked again, the same");
    child.signal(Signal::SIGKILL).unwrap();
}

#[tokio::test]
async fn waiting_can_be_cancelled_and_taken_up_again() {
    let (mut child, _) = ready("echo ready; exec sleep 600").await;
    tokio::select! {
        biased;
        exit = child.wait() => panic!("{exit}"),
        () = tokio::task::yield_now() => {}
    }
    child.signal(Signal::SIGKILL).unwrap();
    assert!(matches!(child.wait().await, ChildExit::Signal { number: 9, .. }));
}

#[tokio::test]
async fn memory_counts_the_group() {
    let (child, _) = ready("sleep 600 & echo ready; wait").await;
    let memory = group_memory(child.id()).unwrap();
    assert!((100_000..100_000_000).contains(&memory), "{memory}");
    assert_eq!(group_memory(u32::MAX), None);
}

// K6: orphans after the host's death.
#[test]
fn when_the_host_is_killed_its_children_and_theirs_end_also_in_a_session_of_their_own() {
    let mut host = process::Command::new(host()).stdout(process::Stdio::piped()).spawn().unwrap();
    let mut ids = String::new();
    BufReader::new(host.stdout.take().unwrap()).read_line(&mut ids).unwrap();
    let ids: Vec<u32> = ids.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    assert!(ids.len() == 5 && ids.iter().all(|&pid| alive(pid)), "{ids:?}");
    host.kill().unwrap();
    host.wait().unwrap();
    ids.into_iter().for_each(ends);
}

/// The example that cargo builds along with the tests.
fn host() -> PathBuf {
    let mut folder = env::current_exe().unwrap();
    folder.pop();
    folder.pop();
    folder.join("examples/host")
}
