//! Cells that ask for input.

use std::time::Duration;

use cellwright_kernel::{CellUpdate, Event, Fate, KernelCell, Outcome, Stdin, StopReason};
use tokio::time::Instant;

use super::{HOUR, run, start, stopped, timed, until_started};

#[tokio::test(start_paused = true)]
async fn input_is_answered_refused_or_refused_by_silence() {
    let (kernel, _background, log) = start();
    let asking = || KernelCell { stdin: Stdin::Forwarded, ..KernelCell::new("ask name? ") };
    for (answer, noted) in [
        (Some(Ok("Ada")), r#"input Line("Ada")"#),
        (Some(Err("no")), r#"input Refusal("no")"#),
        (None, r#"input Refusal("nobody answers")"#),
    ] {
        let mut execution = kernel.execute(asking()).await;
        until_started(&mut execution).await;
        let CellUpdate::Event(Event::InputRequest(request)) = execution.next().await else {
            panic!("no request")
        };
        assert_eq!((request.prompt.as_str(), request.password), ("name? ", false));
        match answer {
            Some(Ok(line)) => request.answer(line),
            Some(Err(why)) => request.refuse(why),
            None => drop(request),
        }
        let (_, finished) = execution.collect().await;
        assert_eq!(finished.outcome == Outcome::Completed, answer == Some(Ok("Ada")));
        assert_eq!(log.entries().last().unwrap(), noted);
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_a_person_takes_to_answer_is_not_the_cells_time() {
    let (kernel, _background, _) = start();
    let limit = Duration::from_secs(9);
    let slow = KernelCell { stdin: Stdin::Person, ..timed("sleep 5\nask x\nsleep 5", limit) };
    let mut execution = kernel.execute(slow).await;
    until_started(&mut execution).await;
    let CellUpdate::Event(Event::InputRequest(request)) = execution.next().await else {
        panic!("no request")
    };
    tokio::time::sleep(HOUR).await;
    request.answer("Ada");
    let before = Instant::now();
    let (_, finished) = execution.collect().await;
    assert_eq!(finished.outcome, stopped(StopReason::TimedOut(limit), Fate::Survived));
    // Four seconds were left when it asked.
    assert_eq!(before.elapsed(), Duration::from_secs(4));
}

#[tokio::test(start_paused = true)]
async fn a_cell_that_waits_for_input_can_be_stopped() {
    let (kernel, _background, _) = start();
    let nine = Duration::from_secs(9);
    for (stdin, reason) in
        [(Stdin::Forwarded, StopReason::TimedOut(nine)), (Stdin::Person, StopReason::Cancelled)]
    {
        let mut execution = kernel.execute(KernelCell { stdin, ..timed("ask x", nine) }).await;
        until_started(&mut execution).await;
        let CellUpdate::Event(Event::InputRequest(request)) = execution.next().await else {
            panic!("no request")
        };
        if stdin == Stdin::Person {
            execution.stop();
        }
        let (_, finished) = execution.collect().await;
        assert_eq!(finished.outcome, stopped(reason, Fate::Survived));
        request.answer("too late");
        assert_eq!(run(&kernel, KernelCell::new("print b")).await.0, ["b"]);
    }
}
