//! Calls: order, ends, events, input, cancelling.

use std::time::Duration;

use cellwright_cell::{Exception, Output, OutputChange};
use cellwright_kernel::{Fate, Stdin, StopReason};
use cellwright_session::{
    CallEvent, CallUpdate, CellRequest, CellStatus, JobState, KernelAfter, KernelUse, NotRun, SessionError,
    SessionMode, Timeout, Turn, Turns,
};

use super::support::{Fixture, begin, notices, run, statuses, text};

#[tokio::test(start_paused = true)]
async fn cells_run_in_one_kernel_that_stays() {
    let fixture = Fixture::new();
    let first = fixture.run("a", &["print one", "print two"]).await;
    assert_eq!(text(&first), ["one\n", "two\n"]);
    assert!(first.succeeded());
    assert_eq!(first.kernel.usage, KernelUse::Fresh);
    assert_eq!(first.kernel.after, KernelAfter::Alive);
    assert_eq!(first.cells[1].execution_count, Some(2));
    let second = fixture.run("a", &["print three"]).await;
    assert_eq!(second.kernel.usage, KernelUse::Reused);
    assert_eq!(fixture.kernels.started(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_stops_at_the_first_error_and_names_the_cell() {
    let fixture = Fixture::new();
    let report = fixture.run("a", &["print one", "raise ValueError", "print never"]).await;
    let raised = Exception { name: "ValueError".into(), ..Exception::default() };
    assert_eq!(
        statuses(&report),
        [&CellStatus::Ok, &CellStatus::Error(raised), &CellStatus::NotRun(NotRun::AfterFailure)]
    );
    assert_eq!(report.failed().unwrap().index, 1);
    assert_eq!(text(&report)[1], "ValueError: \n");
    assert_eq!(fixture.kernels.log(0), ["execute print one", "execute raise ValueError"]);
    assert_eq!(fixture.run("a", &["print on"]).await.kernel.usage, KernelUse::Reused);
}

#[tokio::test(start_paused = true)]
async fn sessions_with_other_names_or_folders_have_other_kernels() {
    let fixture = Fixture::new();
    fixture.run("a", &["print"]).await;
    fixture.run("b", &["print"]).await;
    let elsewhere = tempfile::tempdir().unwrap();
    let mut call = fixture.call("a", &["print"]);
    call.cwd = elsewhere.path().into();
    run(&fixture.client, call.clone()).await.unwrap();
    assert_eq!(fixture.kernels.started(), 3);
    // Two ways to the same folder are one.
    std::os::unix::fs::symlink(elsewhere.path(), fixture.folder.path().join("link")).unwrap();
    call.cwd = fixture.folder.path().join("link");
    let report = run(&fixture.client, call).await.unwrap();
    assert_eq!(report.kernel.usage, KernelUse::Reused);
}

#[tokio::test(start_paused = true)]
async fn a_call_of_its_own_leaves_nothing() {
    let fixture = Fixture::new();
    let mut call = fixture.call("a", &["print one"]);
    call.mode = SessionMode::PerCall;
    let report = run(&fixture.client, call).await.unwrap();
    assert_eq!(
        (report.kernel.usage.clone(), report.kernel.after.clone()),
        (KernelUse::Fresh, KernelAfter::Ended)
    );
    assert_eq!(fixture.kernels.log(0), ["execute print one", "shutdown"]);
    assert!(fixture.names().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn events_come_in_order() {
    let fixture = Fixture::new();
    let mut running = fixture.client.call(fixture.call("a", &["print one", "show two"])).await.unwrap();
    let mut seen = Vec::new();
    while let CallUpdate::Event(event) = running.next().await {
        seen.push(match event {
            CallEvent::KernelStarted(about) => format!("kernel {about}"),
            CallEvent::CellStarted { cell } => format!("started {cell}"),
            CallEvent::Output { cell, change: OutputChange::Added(Output::Text { text, .. }) } => {
                format!("printed {cell} {text:?}")
            }
            CallEvent::Output { cell, .. } => format!("shown {cell}"),
            CallEvent::CellFinished(cell) => format!("finished {}", cell.index),
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(
        seen,
        [
            "kernel script",
            "started 0",
            "printed 0 \"one\\n\"",
            "finished 0",
            "started 1",
            "shown 1",
            "finished 1"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn k5_cancelling_a_call_that_waits_leaves_the_one_that_runs_alone() {
    let fixture = Fixture::new();
    let first = fixture.client.call(fixture.call("a", &["sleep 10", "print done"])).await.unwrap();
    let call = fixture.call("a", &["print never"]);
    let stop = call.stop.clone();
    let mut second = fixture.client.call(call).await.unwrap();
    assert!(matches!(second.next().await, CallUpdate::Event(CallEvent::Queued { behind: 1 })));
    stop.cancel();
    // It does not wait for the first to end.
    let report = tokio::time::timeout(Duration::from_secs(1), second.report()).await.unwrap();
    assert_eq!(statuses(&report), [&CellStatus::NotRun(NotRun::Stopped)]);
    assert!(first.report().await.succeeded());
    assert_eq!(fixture.kernels.log(0), ["execute sleep 10", "execute print done"]);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_call_stops_it() {
    let fixture = Fixture::new();
    drop(begin(&fixture.client, fixture.call("a", &["sleep 1000"])).await);
    assert!(fixture.run("a", &["print next"]).await.succeeded());
    assert_eq!(fixture.kernels.log(0), ["execute sleep 1000", "interrupt", "execute print next"]);
}

#[tokio::test(start_paused = true)]
async fn a_cell_without_a_timeout_of_its_own_has_thirty_seconds() {
    let fixture = Fixture::new();
    let report = fixture.run("a", &["sleep 31"]).await;
    let stopped =
        CellStatus::Stopped { reason: StopReason::TimedOut(Duration::from_secs(30)), kernel: Fate::Survived };
    assert_eq!(statuses(&report), [&stopped]);
    assert_eq!(report.cells[0].duration, Duration::from_secs(30));
    assert_eq!(report.kernel.after, KernelAfter::Alive);
}

#[tokio::test(start_paused = true)]
async fn k21_no_timeout_is_none_and_a_huge_one_does_not_overflow() {
    for timeout in [Timeout::Never, Timeout::After(Duration::MAX), Timeout::After(Duration::ZERO)] {
        let fixture = Fixture::new();
        let mut call = fixture.call("a", &[]);
        call.cells = vec![CellRequest { timeout, ..CellRequest::new("sleep 100000") }];
        assert!(run(&fixture.client, call).await.unwrap().succeeded(), "{timeout:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn input_is_answered_by_a_caller_that_can() {
    let fixture = Fixture::new();
    let mut call = fixture.call("a", &["ask name?"]);
    call.stdin = Stdin::Forwarded;
    let mut running = fixture.client.call(call).await.unwrap();
    let report = loop {
        match running.next().await {
            CallUpdate::Event(CallEvent::Input { request, .. }) => {
                assert_eq!(request.prompt, "name?");
                request.answer("Ada");
            }
            CallUpdate::Event(_) => {}
            CallUpdate::Finished(report) => break report,
        }
    };
    assert_eq!(text(&report), ["Ada\n"]);
}

#[tokio::test(start_paused = true)]
async fn a_cell_is_what_its_caller_says_when_its_turn_comes() {
    let fixture = Fixture::new();
    let mut call = fixture.call("a", &["print one", "print two", "print three", "print four"]);
    call.turns = Turns::Asked;
    let mut running = fixture.client.call(call).await.unwrap();
    let mut told = Vec::new();
    let report = loop {
        match running.next().await {
            CallUpdate::Event(CallEvent::Turn { cell: 0, request }) => request.answer(Turn::AsCalled),
            CallUpdate::Event(CallEvent::Turn { cell: 1, request }) => {
                request.answer(Turn::Instead("print new".into()));
            }
            CallUpdate::Event(CallEvent::Turn { cell: 2, request }) => request.answer(Turn::Withdrawn),
            CallUpdate::Event(CallEvent::Turn { request, .. }) => drop(request),
            CallUpdate::Event(CallEvent::CellFinished(report)) => told.push(report.index),
            CallUpdate::Event(_) => {}
            CallUpdate::Finished(report) => break report,
        }
    };
    let withdrawn = CellStatus::NotRun(NotRun::Withdrawn);
    assert_eq!(statuses(&report), [&CellStatus::Ok, &CellStatus::Ok, &withdrawn, &CellStatus::Ok]);
    assert_eq!(text(&report), ["one\n", "new\n", "", "four\n"]);
    assert_eq!((told, report.succeeded()), (vec![0, 1, 3], true));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_its_turn_can_be_stopped_and_left() {
    let fixture = Fixture::new();
    for stopped in [true, false] {
        let mut call = fixture.call("a", &["print one"]);
        call.turns = Turns::Asked;
        let mut running = fixture.client.call(call).await.unwrap();
        let request = loop {
            if let CallUpdate::Event(CallEvent::Turn { request, .. }) = running.next().await {
                break request;
            }
        };
        if stopped {
            running.stop();
            let report = running.report().await;
            assert_eq!(statuses(&report), [&CellStatus::NotRun(NotRun::Stopped)]);
            drop(request);
        } else {
            let job = running.detach();
            drop(request);
            let state = fixture.client.wait(job, Duration::from_secs(5)).await.unwrap();
            assert!(matches!(&state, JobState::Finished(report) if report.succeeded()), "{state:?}");
        }
    }
    assert_eq!(fixture.kernels.log(0), ["execute print one"]);
}

#[tokio::test(start_paused = true)]
async fn k7_input_nobody_can_give_is_refused_at_once_with_a_notice() {
    let fixture = Fixture::new();
    let report = fixture.run("a", &["ask name?"]).await;
    assert!(matches!(report.cells[0].status, CellStatus::Error(_)));
    assert_eq!(
        notices(&report),
        ["cell 1 asked for input, which this call cannot give; pass the value in the code"]
    );
}

#[tokio::test(start_paused = true)]
async fn output_after_a_cell_is_shown_with_the_next_reply() {
    let fixture = Fixture::new();
    fixture.run("a", &["later 5 from a thread"]).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let mut running = fixture.client.call(fixture.call("a", &["print now"])).await.unwrap();
    let CallUpdate::Event(CallEvent::LateBefore(late)) = running.next().await else {
        panic!("no late output")
    };
    assert_eq!(late.collected.text.text, "from a thread\n");
    let report = running.report().await;
    assert_eq!(report.late.as_ref().unwrap().text.text, "from a thread\n");
    assert_eq!(text(&report), ["now\n"]);
    assert!(fixture.run("a", &["print"]).await.late.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_does_not_read_holds_up_its_cell_and_nothing_else() {
    let fixture = Fixture::new();
    // More than every buffer on the way holds.
    let slow = fixture.client.call(fixture.call("a", &["flood 200", "print end"])).await.unwrap();
    assert_eq!(fixture.run("b", &["print other"]).await.cells.len(), 1);
    // It cannot end before someone reads.
    let interrupted = fixture.client.interrupt(&fixture.key("a")).await.unwrap();
    assert_ne!(interrupted, cellwright_session::InterruptResult::NothingRan);
    let report = slow.report().await;
    assert_eq!(report.cells.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_without_cells_or_without_a_folder_is_refused() {
    let fixture = Fixture::new();
    assert_eq!(run(&fixture.client, fixture.call("a", &[])).await.unwrap_err(), SessionError::NoCells);
    let mut call = fixture.call("a", &["print"]);
    call.cwd = fixture.folder.path().join("missing");
    let told = run(&fixture.client, call.clone()).await.unwrap_err().to_string();
    assert!(told.contains("missing` is not a folder to run in: No such file"), "{told}");
    call.cwd = fixture.folder.path().join("file");
    std::fs::write(&call.cwd, "").unwrap();
    let told = run(&fixture.client, call).await.unwrap_err().to_string();
    assert!(told.ends_with("it is a file"), "{told}");
}
