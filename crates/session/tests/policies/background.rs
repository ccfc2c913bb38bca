//! Calls that go on in the background.

use std::time::Duration;

use cellwright_session::{
    Abandoned, CallEvent, CallUpdate, CellStatus, Departure, Force, JobState, JobStop, NotRun, QueuePlace,
    SessionError,
};

use super::support::{Fixture, begin, statuses, text};

const MOMENT: Duration = Duration::ZERO;

#[tokio::test(start_paused = true)]
async fn a_detached_call_can_be_followed_to_its_end_and_loses_nothing() {
    let fixture = Fixture::new();
    let call = fixture.call("a", &["print one", "sleep 10\nprint two", "print three"]);
    let job = fixture.client.call(call).await.unwrap().detach();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let JobState::Running(so_far) = fixture.client.wait(job, MOMENT).await.unwrap() else { panic!("over") };
    assert_eq!(statuses(&so_far), [&CellStatus::Ok, &CellStatus::Running, &CellStatus::Waiting]);
    assert_eq!(text(&so_far), ["one\n", "", ""]);
    let JobState::Finished(report) = fixture.client.wait(job, Duration::from_mins(1)).await.unwrap() else {
        panic!("not over")
    };
    assert_eq!(text(&report), ["one\n", "two\n", "three\n"]);
    // It can be asked for again.
    assert!(matches!(fixture.client.job(job).await.unwrap(), JobState::Finished(_)));
    let listed = fixture.client.jobs().await.unwrap();
    assert_eq!((listed[0].id, listed[0].title.as_str(), listed[0].finished), (job, "print one", Some(true)));
    fixture.client.forget_job(job).await.unwrap();
    assert_eq!(fixture.client.job(job).await.unwrap_err(), SessionError::NoJob(job));
}

#[tokio::test(start_paused = true)]
async fn a_background_call_that_waits_can_be_stopped_without_touching_the_one_that_runs() {
    let fixture = Fixture::new();
    let first = begin(&fixture.client, fixture.call("a", &["sleep 20"])).await.detach();
    let second = fixture.client.call(fixture.call("a", &["print"])).await.unwrap().detach();
    let JobState::Waiting { report: waits, place } = fixture.client.wait(second, MOMENT).await.unwrap()
    else {
        panic!("it does not wait")
    };
    // It names what it waits for.
    assert_eq!(place, QueuePlace { before: 1, running: Some(first) });
    let listed = fixture.client.jobs().await.unwrap();
    assert_eq!(listed.iter().map(|job| job.is_waiting).collect::<Vec<_>>(), [false, true]);
    assert_eq!(statuses(&waits), [&CellStatus::Waiting]);
    assert_eq!(fixture.client.stop_job(second).await.unwrap(), JobStop::Withdrawn);
    let JobState::Finished(stopped) = fixture.client.wait(second, Duration::from_secs(1)).await.unwrap()
    else {
        panic!("it still waits")
    };
    assert_eq!(statuses(&stopped), [&CellStatus::NotRun(NotRun::Stopped)]);
    let JobState::Finished(report) = fixture.client.wait(first, Duration::from_mins(1)).await.unwrap() else {
        panic!("not over")
    };
    assert!(report.succeeded());
}

#[tokio::test(start_paused = true)]
async fn a_call_can_be_detached_after_it_was_watched_for_a_while() {
    let fixture = Fixture::new();
    let call = fixture.call("a", &["print one\nflood 100\nprint\nprint two"]);
    let mut running = fixture.client.call(call).await.unwrap();
    while !matches!(running.next().await, CallUpdate::Event(CallEvent::Output { .. })) {}
    let job = running.detach();
    let JobState::Finished(report) = fixture.client.wait(job, Duration::from_mins(1)).await.unwrap() else {
        panic!("not over")
    };
    let shown = text(&report)[0];
    assert!(shown.starts_with("one\n") && shown.contains("two\n"), "{shown}");
    assert!(report.succeeded());
}

#[tokio::test(start_paused = true)]
async fn reports_nobody_asked_for_are_kept_up_to_a_limit_and_seen_ones_go_first() {
    let fixture = Fixture::with(|settings| settings.limits.jobs = 2);
    let mut jobs = Vec::new();
    for _ in 0..3 {
        let job = fixture.client.call(fixture.call("a", &["print"])).await.unwrap().detach();
        // Let it end without asking for its report.
        tokio::time::sleep(Duration::from_secs(1)).await;
        if jobs.len() == 1 {
            fixture.client.job(job).await.unwrap();
        }
        jobs.push(job);
    }
    let last = fixture.client.call(fixture.call("a", &["sleep 5"])).await.unwrap().detach();
    let kept: Vec<_> = fixture.client.jobs().await.unwrap().iter().map(|job| job.id).collect();
    assert_eq!(kept, [jobs[0], jobs[2], last]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_to_go_on_does_so_when_it_is_dropped_and_is_gone_once_read() {
    let fixture = Fixture::new();
    let mut call = fixture.call("a", &["sleep 5\nprint done"]);
    call.abandoned = Abandoned::GoOn;
    let running = fixture.client.call(call.clone()).await.unwrap();
    let job = running.job();
    drop(running);
    let JobState::Finished(report) = fixture.client.wait(job, Duration::from_mins(1)).await.unwrap() else {
        panic!("not over")
    };
    assert_eq!(text(&report), ["done\n"]);
    fixture.client.forget_job(job).await.unwrap();
    fixture.client.call(call).await.unwrap().report().await;
    assert!(fixture.client.jobs().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_runs_in_the_background_ends_with_its_session() {
    let fixture = Fixture::new();
    let job = fixture.client.call(fixture.call("a", &["print one\nsleep 20"])).await.unwrap().detach();
    tokio::time::sleep(Duration::from_secs(1)).await;
    fixture.client.end(&fixture.key("a"), Force::No).await.unwrap();
    let JobState::Finished(report) = fixture.client.wait(job, Duration::from_mins(1)).await.unwrap() else {
        panic!("not over")
    };
    // What it printed is still there.
    assert_eq!(text(&report), ["one\nKeyboardInterrupt: \n"]);
    assert_eq!(report.error, Some(SessionError::Ended(Departure::ShutDown)));
}
