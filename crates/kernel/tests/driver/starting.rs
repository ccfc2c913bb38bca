//! Cells that were sent and do not start.

use std::time::Duration;

use cellwright_kernel::{Death, Exit, Fate, Graces, KernelCell, Outcome, StopReason};
use tokio::time::Instant;

use super::{completed, lines, run, start, stopped, timed};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_kernel_that_answers_nothing_is_reported_and_given_up() {
    let Graces { start: look, answer, .. } = Graces::default();
    for (does, patience, told) in [
        ("hang", answer, "for 10 seconds the kernel does not answer; after 15 seconds it is replaced"),
        (
            "compute",
            4 * answer,
            "for 10 seconds the kernel computes and does not answer: C code in one of its threads may let nothing else \
             run; after 60 seconds it is replaced",
        ),
    ] {
        let (kernel, mut background, log) = start();
        let before = Instant::now();
        let (said, finished) = run(&kernel, KernelCell::new(format!("not started\n{does}"))).await;
        assert_eq!((before.elapsed(), look * 2), (patience, 10 * SECOND));
        assert_eq!(said, [format!("<the cell has not begun: {told}>")]);
        let seconds = patience.as_secs();
        let exit = Exit::Lost(format!("the kernel did not answer for {seconds} seconds and was ended"));
        assert_eq!(finished.outcome, Outcome::Died(Death { exit: exit.clone(), started: false }));
        assert_eq!(background.next().await.unwrap_err(), exit);
        assert_eq!(log.entries().len(), 1, "it ends with its transport: {:?}", log.entries());
    }
}

#[tokio::test(start_paused = true)]
async fn a_kernel_that_says_that_it_is_busy_is_waited_for() {
    let (kernel, _background, _) = start();
    let code = format!("not started\n{}print a", "busy <cell 1>, line 2, in f\nsleep 12\n".repeat(20));
    let before = Instant::now();
    let (said, finished) = run(&kernel, KernelCell::new(code)).await;
    let told = "<the cell has not begun: something else keeps the kernel busy (<cell 1>, line 2, in f)>";
    assert_eq!((said, finished), (vec![told.into(), "a".into()], completed(1)));
    assert_eq!(before.elapsed(), 240 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_kernel_of_which_nothing_is_known_is_waited_for() {
    let (kernel, _background, _) = start();
    let (said, finished) = run(&kernel, KernelCell::new("not started\nsleep 3600\nprint a")).await;
    assert_eq!((said, finished), (vec!["a".into()], completed(1)));
}

#[tokio::test(start_paused = true)]
async fn a_stop_of_a_cell_that_never_started_ends_within_its_grace_and_says_so() {
    let Graces { interrupt, .. } = Graces::default();
    let (kernel, _background, log) = start();
    let before = Instant::now();
    let (said, finished) = run(&kernel, timed("not started\nhang", 12 * SECOND)).await;
    assert_eq!(before.elapsed(), 12 * SECOND + interrupt);
    assert_eq!(said[1..], ["<stopping TimedOut(12s)>", "<the cell had not begun>"]);
    assert_eq!(finished.outcome, stopped(StopReason::TimedOut(12 * SECOND), Fate::Killed));
    assert_eq!(log.entries()[1..], ["make way", "terminate"]);

    let (kernel, _background, _) = start();
    let execution = kernel.execute(KernelCell::new("not started\ncompute")).await;
    tokio::time::sleep(14 * SECOND).await;
    execution.stop();
    let before = Instant::now();
    let (events, finished) = execution.collect().await;
    assert_eq!(before.elapsed(), interrupt);
    assert_eq!(lines(&events).last().unwrap(), "<the cell had not begun>");
    assert_eq!(finished.outcome, stopped(StopReason::Cancelled, Fate::Killed));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_did_not_run_itself_blames_no_kernel_for_it() {
    let Graces { answer, .. } = Graces::default();
    let (kernel, _background, _) = start();
    let execution = kernel.execute(KernelCell::new("not started\nhang")).await;
    tokio::time::sleep(12 * SECOND).await;
    // As when it was stopped, or the machine slept.
    tokio::time::advance(60 * SECOND).await;
    let before = Instant::now();
    let (_, finished) = execution.collect().await;
    assert_eq!(before.elapsed(), answer, "the silence counts from here on");
    assert!(matches!(finished.outcome, Outcome::Died(Death { started: false, .. })), "{finished:?}");
}
