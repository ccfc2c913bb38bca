//! What becomes of cells and sessions when kernels die.

use std::time::Duration;

use cellwright_kernel::{Death, Fate, KernelStart, Launcher, StartError, StartedKernel};
use cellwright_session::{
    Call, CellRequest, CellStatus, Departure, KernelAfter, KernelReplacement, KernelUse, NotRun, Notice,
    Reset, Retry, SessionError, SessionSettings, Sessions, Timeout,
};
use futures_util::future::BoxFuture;

use super::support::{Doom, Fixture, begin, exited, notices, run, statuses, text};

#[tokio::test(start_paused = true)]
async fn k9_a_cell_that_died_half_way_is_not_run_again() {
    let fixture = Fixture::new();
    let report = fixture.run("a", &["print charged\ndie 3", "print never"]).await;
    let died = CellStatus::Died(Death { exit: exited(3), started: true });
    assert_eq!(report.cells[0].status, died);
    assert_eq!(text(&report), ["charged\n", ""]);
    assert_eq!(report.kernel.after, KernelAfter::Gone);
    assert_eq!(fixture.kernels.log(0), ["execute print charged\ndie 3"]);
    assert_eq!(fixture.kernels.started(), 1);
    let next = fixture.run("a", &["print next"]).await;
    assert_eq!(next.kernel.usage, KernelUse::Replaced(KernelReplacement::DiedEarlier(exited(3))));
    assert!(next.succeeded());
}

#[tokio::test(start_paused = true)]
async fn a_cell_that_died_is_run_again_once_when_that_is_asked_for() {
    let fixture = Fixture::with(|settings| settings.retry = Retry::Once);
    let report = fixture.run("a", &["print charged\ndie 3"]).await;
    assert_eq!(text(&report), ["charged\ncharged\n"]);
    assert_eq!(fixture.kernels.started(), 2);
    assert!(matches!(report.cells[0].status, CellStatus::Died(_)));
    assert_eq!(report.notices, [Notice::Replayed { cell: 0, exit: exited(3) }]);
}

#[tokio::test(start_paused = true)]
async fn a_cell_that_cannot_be_run_again_keeps_what_it_printed() {
    let fixture = Fixture::with(|settings| {
        settings.retry = Retry::Once;
        settings.limits.crashes = 1;
    });
    let report = fixture.run("a", &["print charged\ndie 3", "print never"]).await;
    assert_eq!(text(&report), ["charged\n", ""]);
    let died = CellStatus::Died(Death { exit: exited(3), started: true });
    assert_eq!(statuses(&report), [&died, &CellStatus::NotRun(NotRun::AfterFailure)]);
    assert!(matches!(report.error, Some(SessionError::CrashBudget { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_cell_that_never_began_runs_on_a_fresh_kernel() {
    let fixture = Fixture::new();
    fixture.kernels.doom_next(Doom::AtCell(2));
    let report = fixture.run("a", &["print one", "print two"]).await;
    assert!(report.succeeded());
    assert_eq!(text(&report), ["one\n", "two\n"]);
    assert_eq!(fixture.kernels.log(0), ["execute print one"]);
    assert_eq!(fixture.kernels.log(1), ["execute print two"]);
    assert_eq!(report.kernel.usage, KernelUse::Replaced(KernelReplacement::Died(exited(7))));
    assert_eq!(
        notices(&report),
        ["the kernel exited with code 7 before cell 2 began; it ran on a fresh one, the variables are gone"]
    );
}

/// A way to start kernels that has a bug.
struct Buggy;

impl Launcher for Buggy {
    fn start(&self, _start: KernelStart) -> BoxFuture<'_, Result<StartedKernel, StartError>> {
        Box::pin(async { panic!("foo is no address") })
    }
}

#[tokio::test]
async fn a_start_that_panics_is_an_error_and_the_session_continues() {
    let client = Sessions::new(SessionSettings::new(Buggy)).client();
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let call = Call::new("a".parse().unwrap(), folder.path(), vec![CellRequest::new("print")]);
        let report = run(&client, call).await.unwrap();
        assert_eq!(statuses(&report), [&CellStatus::NotRun(NotRun::Error)]);
        assert_eq!(
            report.error.as_ref().unwrap().to_string(),
            "no kernel could be started: this is a bug in Cellwright (foo is no address); please report it"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_cell_that_no_kernel_begins_is_given_up() {
    let fixture = Fixture::new();
    for _ in 0..5 {
        fixture.kernels.doom_next(Doom::AtCell(1));
    }
    let report = fixture.run("a", &["print"]).await;
    let (crashes, within) = (3, Duration::from_mins(10));
    let budget = SessionError::CrashBudget { crashes, within, last: exited(7).to_string() };
    assert_eq!(report.error, Some(budget));
    assert_eq!(statuses(&report), [&CellStatus::NotRun(NotRun::Error)]);
    assert_eq!(fixture.kernels.started(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_kernel_that_died_between_calls_is_replaced_and_reported() {
    let fixture = Fixture::new();
    fixture.kernels.doom_next(Doom::After(Duration::from_secs(5)));
    fixture.run("a", &["print"]).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let report = fixture.run("a", &["print"]).await;
    assert_eq!(report.kernel.usage, KernelUse::Replaced(KernelReplacement::DiedIdle(exited(7))));
    assert_eq!(
        notices(&report),
        ["the kernel exited with code 7 while no cell ran; a fresh one was started, the variables are gone"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_kernel_that_keeps_dying_is_given_up_until_reset() {
    let fixture = Fixture::new();
    for _ in 0..3 {
        assert!(matches!(fixture.run("a", &["die 1"]).await.cells[0].status, CellStatus::Died(_)));
    }
    let refused = fixture.run("a", &["print"]).await;
    assert_eq!(
        refused.error.as_ref().unwrap().to_string(),
        "the kernel died 3 times within 10 min, the last time because the kernel exited with code 1; \
         change what ends it, then reset the session to go on"
    );
    let mut call = fixture.call("a", &[]);
    call.cells = vec![CellRequest { reset: Reset::Yes, ..CellRequest::new("print") }];
    assert!(run(&fixture.client, call).await.unwrap().succeeded());
}

#[tokio::test(start_paused = true)]
async fn crashes_of_long_ago_do_not_count() {
    let fixture = Fixture::new();
    for _ in 0..3 {
        fixture.run("a", &["die 1"]).await;
    }
    tokio::time::sleep(Duration::from_mins(11)).await;
    assert!(fixture.run("a", &["print"]).await.succeeded());
}

#[tokio::test(start_paused = true)]
async fn k22_a_stop_that_had_to_kill_says_that_variables_are_gone() {
    let fixture = Fixture::new();
    let mut call = fixture.call("a", &[]);
    let timeout = Timeout::After(Duration::from_secs(1));
    call.cells = vec![CellRequest { timeout, ..CellRequest::new("deaf\nsleep 100") }];
    let report = run(&fixture.client, call).await.unwrap();
    let CellStatus::Stopped { kernel, .. } = report.cells[0].status else { panic!("{report:?}") };
    assert_eq!((kernel, report.kernel.after.clone()), (Fate::Killed, KernelAfter::Gone));
    let next = fixture.run("a", &["print"]).await;
    assert!(matches!(next.kernel.usage, KernelUse::Replaced(KernelReplacement::DiedEarlier(_))));
    // A kernel we killed did not crash.
    assert!(next.succeeded());
}

#[tokio::test(start_paused = true)]
async fn a_kernel_that_cannot_be_started_is_an_error_and_the_next_call_tries_again() {
    let fixture = Fixture::new();
    fixture.kernels.fail_next(StartError::Other("there is no Python".into()));
    let report = fixture.run("a", &["print"]).await;
    assert_eq!(report.error.as_ref().unwrap().to_string(), "no kernel could be started: there is no Python");
    assert!(fixture.run("a", &["print"]).await.succeeded());
}

#[tokio::test(start_paused = true)]
async fn k23_when_the_system_has_no_room_idle_sessions_end_with_a_notice() {
    let fixture = Fixture::new();
    fixture.run("idle", &["print"]).await;
    let busy = begin(&fixture.client, fixture.call("busy", &["sleep 5"])).await;
    let full = || StartError::Exhausted(Box::new(StartError::Other("too many open files".into())));
    fixture.kernels.fail_next(full());
    let report = fixture.run("new", &["print"]).await;
    assert!(report.succeeded(), "{report:?}");
    assert_eq!(report.notices, [Notice::Dropped(vec![fixture.key("idle")])]);
    assert_eq!(fixture.kernels.log(0), ["execute print", "shutdown"]);
    assert!(busy.report().await.succeeded());
    let back = fixture.run("idle", &["print"]).await;
    assert_eq!(back.notices, [Notice::Departed(Departure::Exhausted)]);
    // Once: a system that stays full is told as it is.
    fixture.kernels.fail_next(full());
    fixture.kernels.fail_next(full());
    let report = fixture.run("another", &["print"]).await;
    let told = report.error.as_ref().unwrap().to_string();
    assert_eq!(told, "the system has no room for another kernel: too many open files");
    assert_eq!(statuses(&report).len(), 1);
}
