//! Who holds sessions, and which ones go.

use std::sync::Arc;
use std::time::Duration;

use cellwright_kernel::StartError;
use cellwright_session::{
    Call, CallReport, CellRequest, CellStatus, Departure, Force, KernelReplacement, KernelUse, NotRun,
    Notice, Reset, ResetPolicy, SessionError,
};

use super::support::{Fixture, begin, run, statuses};

fn resetting(reset: Reset, code: &str) -> Vec<CellRequest> {
    vec![CellRequest { reset, ..CellRequest::new(code) }]
}

#[tokio::test(start_paused = true)]
async fn k16_a_session_is_not_evicted_while_its_owner_thinks() {
    let fixture = Fixture::new();
    fixture.run("a", &["print"]).await;
    tokio::time::sleep(Duration::from_hours(5)).await;
    assert_eq!(fixture.names().await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_session_nobody_holds_is_evicted_after_five_idle_minutes() {
    let fixture = Fixture::new();
    let other = fixture.sessions.client();
    run(&other, fixture.call("a", &["print"])).await.unwrap();
    tokio::time::sleep(Duration::from_mins(10)).await;
    drop(other);
    tokio::time::sleep(Duration::from_secs(299)).await;
    assert_eq!(fixture.names().await, ["a"]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(fixture.names().await.is_empty());
    assert_eq!(fixture.kernels.log(0), ["execute print", "shutdown"]);
    let report = fixture.run("a", &["print again"]).await;
    assert_eq!(report.notices, [Notice::Departed(Departure::Idle(Duration::from_mins(5)))]);
    assert_eq!(
        report.notices[0].to_string(),
        "the session's earlier kernel is gone with its variables: it was idle for 5 min, and nobody used it"
    );
}

#[tokio::test(start_paused = true)]
async fn a_busy_session_nobody_holds_is_not_evicted() {
    let fixture = Fixture::new();
    let other = fixture.sessions.client();
    let mut call = fixture.call("a", &[]);
    call.cells =
        vec![CellRequest { timeout: cellwright_session::Timeout::Never, ..CellRequest::new("sleep 3600") }];
    let running = other.call(call).await.unwrap();
    drop(other);
    assert!(running.report().await.succeeded());
}

#[tokio::test(start_paused = true)]
async fn a_fifth_session_takes_the_place_of_the_oldest_idle_one() {
    let fixture = Fixture::new();
    for name in ["a", "b", "c", "d"] {
        fixture.run(name, &["print"]).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let busy = fixture.client.call(fixture.call("a", &["sleep 10"])).await.unwrap();
    fixture.run("e", &["print"]).await;
    assert_eq!(fixture.names().await, ["a", "c", "d", "e"]);
    busy.report().await;
    let report = fixture.run("b", &["print"]).await;
    // The call that ends a session says so, and so does the next call of that session.
    let ended = vec![fixture.key("c")];
    let gone = Notice::Departed(Departure::MadeRoom { limit: 4 });
    assert_eq!(report.notices, [gone, Notice::MadeRoom { ended, limit: 4 }]);
}

#[tokio::test(start_paused = true)]
async fn sessions_whose_kernel_never_started_do_not_push_out_a_live_one() {
    let fixture = Fixture::new();
    for name in ["a", "b", "c", "d"] {
        fixture.run(name, &["print"]).await;
    }
    for name in ["js", "node", "deno", "typescript", "ruby"] {
        fixture.kernels.fail_next(StartError::Other("no kernel of that name".into()));
        let report = fixture.run(name, &["print"]).await;
        assert!(matches!(report.error, Some(SessionError::NotStarted(_))), "{report:?}");
        // It is not listed either.
        assert_eq!(fixture.names().await, ["a", "b", "c", "d"]);
    }
    assert_eq!(fixture.kernels.started(), 4);
    let report = fixture.run("a", &["print"]).await;
    assert_eq!((&report.kernel.usage, report.notices.len()), (&KernelUse::Reused, 0));
}

#[tokio::test(start_paused = true)]
async fn of_idle_sessions_one_that_nobody_holds_goes_first() {
    let fixture = Fixture::new();
    fixture.run("a", &["print"]).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let other = fixture.sessions.client();
    for name in ["b", "c", "d"] {
        run(&other, fixture.call(name, &["print"])).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    drop(other);
    fixture.run("e", &["print"]).await;
    assert_eq!(fixture.names().await, ["a", "c", "d", "e"]);
}

#[tokio::test(start_paused = true)]
async fn a_client_with_many_sessions_makes_room_among_its_own() {
    let fixture = Fixture::with(|settings| settings.limits.per_client = 2);
    let other = fixture.sessions.client();
    run(&other, fixture.call("theirs", &["print"])).await.unwrap();
    for name in ["a", "b", "c"] {
        tokio::time::sleep(Duration::from_secs(1)).await;
        fixture.run(name, &["print"]).await;
    }
    assert_eq!(fixture.names().await, ["b", "c", "theirs"]);
    let _b = fixture.client.call(fixture.call("b", &["sleep 10"])).await.unwrap();
    let _c = fixture.client.call(fixture.call("c", &["sleep 10"])).await.unwrap();
    let refused = fixture.client.call(fixture.call("d", &["print"])).await.unwrap_err();
    let busy = vec![fixture.key("b"), fixture.key("c")];
    assert_eq!(refused, SessionError::AllBusy { limit: 2, busy });
}

#[tokio::test(start_paused = true)]
async fn when_all_are_busy_a_new_session_is_refused_with_their_names() {
    let fixture = Fixture::with(|settings| settings.limits.sessions = 2);
    let a = fixture.client.call(fixture.call("a", &["sleep 10"])).await.unwrap();
    let _b = fixture.client.call(fixture.call("b", &["sleep 20"])).await.unwrap();
    let refused = fixture.client.call(fixture.call("c", &["print"])).await.unwrap_err();
    let busy = vec![fixture.key("a"), fixture.key("b")];
    assert_eq!(refused, SessionError::AllBusy { limit: 2, busy });
    // As soon as one's caller knows that it is done, there is room.
    a.report().await;
    assert!(fixture.run("c", &["print"]).await.succeeded());
}

#[tokio::test(start_paused = true)]
async fn more_calls_than_the_queue_holds_are_refused() {
    let fixture = Fixture::with(|settings| settings.limits.queue = 1);
    let first = fixture.client.call(fixture.call("a", &["sleep 10"])).await.unwrap();
    let second = fixture.client.call(fixture.call("a", &["print"])).await.unwrap();
    let third = fixture.client.call(fixture.call("a", &["print"])).await;
    assert_eq!(third.unwrap_err(), SessionError::QueueFull { key: fixture.key("a"), waiting: 1 });
    assert!(first.report().await.succeeded() && second.report().await.succeeded());
}

#[tokio::test(start_paused = true)]
async fn a_reset_gives_a_fresh_kernel() {
    let fixture = Fixture::new();
    fixture.run("a", &["print"]).await;
    let mut call = fixture.call("a", &[]);
    call.cells = resetting(Reset::Yes, "print fresh");
    let report = run(&fixture.client, call).await.unwrap();
    assert_eq!(report.kernel.usage, KernelUse::Replaced(KernelReplacement::Reset));
    assert_eq!(fixture.kernels.log(0), ["execute print", "shutdown"]);
    assert_eq!(fixture.kernels.log(1), ["execute print fresh"]);
}

#[tokio::test(start_paused = true)]
async fn k20_a_reset_does_not_wipe_what_others_hold_unless_forced() {
    let fixture = Fixture::new();
    let other = fixture.sessions.client();
    run(&other, fixture.call("a", &["print theirs"])).await.unwrap();
    let mut call = fixture.call("a", &[]);
    call.cells = resetting(Reset::Yes, "print mine");
    let report = run(&fixture.client, call.clone()).await.unwrap();
    assert_eq!(statuses(&report), [&CellStatus::NotRun(NotRun::Error)]);
    assert_eq!(report.error, Some(SessionError::Held { others: 1 }));
    assert_eq!(fixture.kernels.started(), 1);
    assert_eq!(
        fixture.client.restart(&fixture.key("a"), Force::No).await,
        Err(SessionError::Held { others: 1 })
    );
    assert_eq!(fixture.client.end(&fixture.key("a"), Force::No).await, Err(SessionError::Held { others: 1 }));
    call.cells[0].reset = Reset::Force;
    assert!(run(&fixture.client, call.clone()).await.unwrap().succeeded());
    assert_eq!(fixture.kernels.started(), 2);
    drop(other);
    call.cells[0].reset = Reset::Yes;
    assert!(run(&fixture.client, call).await.unwrap().succeeded());
}

/// Asks twice for a reset while a cell runs. Returns the call and the report of the second.
async fn two_resets(fixture: &Fixture) -> (Call, Arc<CallReport>) {
    fixture.run("a", &["print"]).await;
    let busy = fixture.client.call(fixture.call("a", &["sleep 5"])).await.unwrap();
    let mut call = fixture.call("a", &[]);
    call.cells = resetting(Reset::Yes, "print");
    let first = fixture.client.call(call.clone()).await.unwrap();
    let second = fixture.client.call(call.clone()).await.unwrap();
    busy.report().await;
    assert_eq!(first.report().await.kernel.usage, KernelUse::Replaced(KernelReplacement::Reset));
    (call, second.report().await)
}

#[tokio::test(start_paused = true)]
async fn a_reset_is_refused_while_another_is_in_progress() {
    let fixture = Fixture::new();
    let (call, refused) = two_resets(&fixture).await;
    assert_eq!(refused.error, Some(SessionError::ResetInProgress));
    assert_eq!(statuses(&refused), [&CellStatus::NotRun(NotRun::Error)]);
    // One that comes later is another.
    assert!(run(&fixture.client, call).await.unwrap().succeeded());
    assert_eq!(fixture.kernels.started(), 3);
}

#[tokio::test(start_paused = true)]
async fn resets_asked_for_at_the_same_time_are_one_if_so_set() {
    let fixture = Fixture::with(|settings| settings.resets = ResetPolicy::Join);
    let (call, joined) = two_resets(&fixture).await;
    assert_eq!(joined.kernel.usage, KernelUse::Reused);
    assert_eq!(joined.notices, [Notice::ResetJoined { cell: 0 }]);
    // One that comes later is another.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        run(&fixture.client, call).await.unwrap().kernel.usage,
        KernelUse::Replaced(KernelReplacement::Reset)
    );
    assert_eq!(fixture.kernels.started(), 3);
}

#[tokio::test(start_paused = true)]
async fn k20_calls_that_wait_do_not_revive_a_session_that_was_ended() {
    let fixture = Fixture::new();
    let running = begin(&fixture.client, fixture.call("a", &["sleep 20", "print never"])).await;
    let waiting = fixture.client.call(fixture.call("a", &["print never"])).await.unwrap();
    fixture.client.end(&fixture.key("a"), Force::No).await.unwrap();
    let ended = Some(SessionError::Ended(Departure::ShutDown));
    let running = running.report().await;
    assert_eq!(running.error, ended);
    assert!(running.cells.iter().all(|cell| cell.status != CellStatus::Ok), "{running:?}");
    let waiting = waiting.report().await;
    assert_eq!(statuses(&waiting), [&CellStatus::NotRun(NotRun::Error)]);
    assert_eq!(waiting.error, ended);
    assert_eq!(fixture.kernels.started(), 1);
    assert!(fixture.names().await.is_empty());
    assert_eq!(
        fixture.client.end(&fixture.key("a"), Force::No).await,
        Err(SessionError::NoSession(fixture.key("a")))
    );
}

#[tokio::test(start_paused = true)]
async fn a_restart_stops_the_cell_and_several_are_one() {
    let fixture = Fixture::new();
    fixture.run("a", &["print"]).await;
    let running = begin(&fixture.client, fixture.call("a", &["sleep 20"])).await;
    let key = fixture.key("a");
    let (first, second) =
        tokio::join!(fixture.client.restart(&key, Force::No), fixture.client.restart(&key, Force::No));
    assert_eq!((first, second), (Ok(()), Ok(())));
    let stopped = running.report().await;
    assert!(matches!(stopped.cells[0].status, CellStatus::Stopped { .. }), "{stopped:#?}");
    assert!(stopped.notices.contains(&Notice::Restarted));
    assert_eq!(
        fixture.run("a", &["print"]).await.kernel.usage,
        KernelUse::Replaced(KernelReplacement::Reset)
    );
    assert_eq!(fixture.kernels.started(), 2);
}

#[tokio::test(start_paused = true)]
async fn when_everyone_has_left_every_kernel_is_ended() {
    let Fixture { sessions, client, kernels, folder } = Fixture::new();
    let call = Call::new("a".parse().unwrap(), folder.path(), vec![CellRequest::new("print")]);
    run(&client, call).await.unwrap();
    sessions.shutdown().await;
    assert_eq!(kernels.log(0), ["execute print", "shutdown"]);
    let call = Call::new("a".parse().unwrap(), folder.path(), vec![CellRequest::new("print")]);
    assert_eq!(run(&client, call).await.unwrap_err(), SessionError::Ended(Departure::ShutDown));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_does_not_read_does_not_keep_a_session_from_ending() {
    let fixture = Fixture::new();
    let stalled = begin(&fixture.client, fixture.call("a", &["flood 200\nsleep 100"])).await;
    fixture.sessions.shutdown().await;
    let report = stalled.report().await;
    assert!(matches!(report.cells[0].status, CellStatus::Stopped { .. }), "{report:#?}");
    // All of it, though nobody saw it coming: 200 pieces of 64 KiB and how it ended.
    let printed = report.cells[0].output.text.truncation.as_ref().unwrap().total.bytes;
    assert!(printed > 200 << 16, "{printed}");
}
