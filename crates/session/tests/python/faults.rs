//! Faults: each ends in a truthful report and a session that works again.

use std::process::Command;
use std::time::Duration;

use cellwright_kernel::{Fate, StopReason};
use cellwright_session::{CellRequest, CellStatus, KernelReplacement, KernelUse, SessionError, Timeout};
use cellwright_testkit::{Door, alive, end_of, holds_the_interpreter};
use nix::sys::signal::Signal;

use super::support::{Fixture, facts, host, notices, signal, until_printed};

#[tokio::test]
async fn a_kernel_killed_between_calls_is_replaced_and_reported() {
    let fixture = Fixture::new();
    fixture.run(&["x = 1"]).await;
    let pid = fixture.pid().await;
    signal(pid, Signal::SIGKILL);
    // At once: whether it is noticed before the cell is sent or when it does not start.
    let report = fixture.run(&["'x' in globals()"]).await;
    assert_eq!(report.cells[0].output.text.text, "False\n", "{report:#?}");
    let KernelUse::Replaced(KernelReplacement::DiedIdle(exit) | KernelReplacement::Died(exit)) =
        &report.kernel.usage
    else {
        panic!("{report:#?}")
    };
    assert_eq!(exit.to_string(), "the kernel was ended by SIGKILL");
    let [told] = &notices(&report)[..] else { panic!("{:?}", notices(&report)) };
    assert!(
        told.starts_with("the kernel was ended by SIGKILL ") && told.ends_with("the variables are gone"),
        "{told}"
    );
}

#[tokio::test]
async fn a_kernel_killed_during_a_cell_is_reported_and_the_cell_not_run_again() {
    let fixture = Fixture::new();
    let code = "import time\nopen('count', 'a').write('x')\nprint('begun', flush=True)\ntime.sleep(60)";
    let pid = fixture.pid().await;
    let running = until_printed(&fixture.client, fixture.call(&[code, "never"])).await;
    signal(pid, Signal::SIGKILL);
    let report = running.report().await;
    let CellStatus::Died(death) = &report.cells[0].status else { panic!("{report:#?}") };
    assert_eq!(death.to_string(), "the kernel was ended by SIGKILL while the cell ran");
    assert_eq!(report.cells[0].output.text.text, "begun\n");
    assert_eq!(fixture.text("open('count').read()").await, "'x'\n");
}

#[tokio::test]
async fn k8_a_segfault_an_exit_and_an_exception_are_distinguished() {
    let fixture = Fixture::with(|settings, _| settings.limits.crashes = 10);
    let mut told = Vec::new();
    for code in ["import sys; sys.exit(3)", "import os; os._exit(3)", "import ctypes; ctypes.string_at(0)"] {
        let report = fixture.run(&[code]).await;
        told.push(match &report.cells[0].status {
            CellStatus::Error(exception) => exception.name.clone(),
            CellStatus::Died(death) => death.to_string().replace("; a core file was written", ""),
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(
        told,
        [
            "SystemExit",
            "the kernel exited with code 3 while the cell ran",
            "the kernel was ended by SIGSEGV (segmentation fault) while the cell ran"
        ]
    );
}

#[tokio::test]
async fn a_kernel_that_is_stopped_is_killed_after_the_timeout_and_replaced() {
    let fixture = Fixture::launched(
        |launch| {
            launch.graces.interrupt = Duration::from_millis(200);
            launch.graces.terminate = Duration::from_millis(200);
        },
        |_, _| {},
    );
    let pid = fixture.pid().await;
    signal(pid, Signal::SIGSTOP);
    let limit = Duration::from_millis(300);
    let mut call = fixture.call(&["1"]);
    call.cells[0].timeout = Timeout::After(limit);
    let report = fixture.client.call(call).await.unwrap().report().await;
    let reason = StopReason::TimedOut(limit);
    assert_eq!(report.cells[0].status, CellStatus::Stopped { reason, kernel: Fate::Killed });
    end_of(pid).await;
    assert_eq!(fixture.text("2").await, "2\n");
}

#[tokio::test]
async fn a_kernel_that_does_not_answer_is_replaced_and_reported() {
    let fixture = Fixture::launched(
        |launch| {
            launch.graces.start = Duration::from_secs(1);
            launch.graces.answer = Duration::from_secs(3);
        },
        |settings, _| settings.limits.crashes = 2,
    );
    let hang = async || {
        let door = Door::new();
        fixture.run(&[&holds_the_interpreter(&door)]).await;
        door.let_in().await;
    };
    hang().await;
    let report = fixture.run(&["'x' in globals()"]).await;
    assert_eq!(report.cells[0].output.text.text, "False\n", "{report:#?}");
    assert!(matches!(report.kernel.usage, KernelUse::Replaced(KernelReplacement::Died(_))), "{report:#?}");
    let told = notices(&report);
    let last = told.last().unwrap();
    assert!(last.starts_with("the kernel did not answer for "), "{told:?}");
    assert!(
        last.ends_with("and was ended before cell 1 began; it ran on a fresh one, the variables are gone"),
        "{told:?}"
    );
    // It counts as a crash.
    hang().await;
    let report = fixture.run(&["1"]).await;
    assert!(matches!(report.error, Some(SessionError::CrashBudget { crashes: 2, .. })), "{report:#?}");
}

#[tokio::test]
async fn a_stop_keeps_the_kernel_and_its_variables() {
    let fixture = Fixture::new();
    let mut call = fixture.call(&[]);
    let timeout = Timeout::Never;
    call.cells =
        vec![CellRequest { timeout, ..CellRequest::new("x = 7\nprint('on', flush=True)\nwhile True: pass") }];
    let running = until_printed(&fixture.client, call).await;
    running.stop();
    let report = running.report().await;
    let stopped = CellStatus::Stopped { reason: StopReason::Cancelled, kernel: Fate::Survived };
    assert_eq!(report.cells[0].status, stopped);
    assert_eq!(fixture.text("x").await, "7\n");
}

#[tokio::test]
async fn when_the_sessions_are_gone_so_are_the_kernels() {
    let fixture = Fixture::new();
    let pid = fixture.pid().await;
    fixture.sessions.shutdown().await;
    assert!(!alive(pid));
}

#[test]
fn a_full_disk_under_the_artifacts_is_reported_and_harms_nothing() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("artifacts")).unwrap();
    let mut command = Command::new("unshare");
    if !nix::unistd::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    let inner = host("full", folder.path());
    let script = "mount -t tmpfs -o size=1m tmpfs artifacts && exec \"$@\"";
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(inner.get_program()).args(inner.get_args());
    let told = facts(command.current_dir(folder.path()));
    assert!(told.starts_with("[… ") && told.contains("Only the first 1,0"), "{told}");
    assert!(told.contains("No space left on device"), "{told}");
}

#[test]
fn k23_without_descriptors_idle_sessions_make_room_with_a_notice() {
    let folder = tempfile::tempdir().unwrap();
    let inner = host("crowd", folder.path());
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 60 && exec \"$@\"", "sh"]).arg(inner.get_program()).args(inner.get_args());
    let told = facts(&mut command);
    let numbers: Vec<usize> = told.split(' ').map(|number| number.parse().unwrap()).collect();
    let [opened, dropped, left] = numbers[..] else { panic!("{told}") };
    // All that were idle: every one but the one that needed room.
    assert!(opened > 1, "{told}");
    assert_eq!((dropped, left), (opened, 1), "{told}");
}
