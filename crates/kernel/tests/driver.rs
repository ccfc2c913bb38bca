//! The driver's promises, on a scripted kernel and a paused clock.

mod input;
mod starting;

use std::time::Duration;

use cellwright_cell::{Output, OutputChange};
use cellwright_kernel::{
    AskError, Background, CellStage, CellUpdate, Death, Event, Execution, Exit, Fate, FinishedCell, Graces,
    Kernel, KernelCell, Outcome, ProcessExit, StopReason,
};
use cellwright_testkit::{Log, ScriptedKernel};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const HOUR: Duration = Duration::from_hours(1);

fn start() -> (Kernel, Background, Log) {
    let (scripted, log) = ScriptedKernel::new();
    let (kernel, background) = Kernel::start(scripted, Graces::default(), None);
    (kernel, background, log)
}

/// Runs a cell to its end: what it printed, line by line, and how it ended.
async fn run(kernel: &Kernel, cell: KernelCell) -> (Vec<String>, FinishedCell) {
    let (events, finished) = kernel.execute(cell).await.collect().await;
    (lines(&events), finished)
}

fn lines(events: &[Event]) -> Vec<String> {
    let text: String = events
        .iter()
        .map(|event| match event {
            Event::Output(OutputChange::Added(Output::Text { text, .. })) => text.clone(),
            Event::Output(OutputChange::Added(Output::Error(exception))) => format!("<{}>\n", exception.name),
            Event::Status(CellStage::Started) => String::new(),
            Event::Status(CellStage::Stopping(reason)) => format!("<stopping {reason:?}>\n"),
            Event::Warning(warning) => format!("<{warning}>\n"),
            Event::Output(
                OutputChange::Added(Output::Display { .. } | Output::Result { .. })
                | OutputChange::Updated { .. }
                | OutputChange::Cleared { .. },
            )
            | Event::Comm(_)
            | Event::InputRequest(_) => "<other>\n".into(),
        })
        .collect();
    text.lines().map(Into::into).collect()
}

fn timed(code: &str, timeout: Duration) -> KernelCell {
    KernelCell { timeout: Some(timeout), ..KernelCell::new(code) }
}

fn completed(count: u64) -> FinishedCell {
    FinishedCell { outcome: Outcome::Completed, execution_count: Some(count) }
}

fn stopped(reason: StopReason, kernel: Fate) -> Outcome {
    Outcome::Stopped { reason, kernel }
}

fn exited(code: i32) -> Exit {
    Exit::Process(ProcessExit::Code(code))
}

async fn until_started(execution: &mut Execution) {
    match execution.next().await {
        CellUpdate::Event(Event::Status(CellStage::Started)) => {}
        other => panic!("expected the start, not {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn cells_run_one_after_the_other_in_order() {
    let (kernel, _background, _) = start();
    let first = kernel.execute(KernelCell::new("sleep 5\nprint one")).await;
    let second = kernel.execute(KernelCell::new("print two")).await;
    let (events, finished) = second.collect().await;
    assert_eq!((lines(&events), finished), (vec!["two".into()], completed(2)));
    let (events, finished) = first.collect().await;
    assert_eq!((lines(&events), finished), (vec!["one".into()], completed(1)));
}

#[tokio::test(start_paused = true)]
async fn an_exception_is_shown_and_is_the_outcome() {
    let (kernel, _background, _) = start();
    let (said, finished) = run(&kernel, KernelCell::new("print a\nraise ValueError\nprint b")).await;
    assert_eq!(said, ["a", "<ValueError>"]);
    match finished.outcome {
        Outcome::Raised(exception) => assert_eq!(exception.name, "ValueError"),
        other => panic!("{other:?}"),
    }
}

// K26: reply before idle, idle before reply, one of them missing.
#[tokio::test(start_paused = true)]
async fn a_cell_is_over_when_reply_and_idle_came_and_a_missing_one_is_not_waited_for_long() {
    let (kernel, _background, _) = start();
    assert_eq!(run(&kernel, KernelCell::new("idle first\nprint a")).await.1, completed(1));
    let before = Instant::now();
    assert_eq!(run(&kernel, KernelCell::new("no idle\nprint b")).await.1, completed(2));
    assert_eq!(before.elapsed(), Graces::default().settle);
    let (_, finished) = run(&kernel, KernelCell::new("no reply\nprint c")).await;
    assert_eq!(finished, FinishedCell { outcome: Outcome::Unknown, execution_count: None });
    let raised = run(&kernel, KernelCell::new("no reply\nraise ValueError")).await.1;
    assert!(matches!(raised.outcome, Outcome::Raised(exception) if exception.name == "ValueError"));
    assert_eq!(run(&kernel, KernelCell::new("print d")).await, (vec!["d".into()], completed(5)));
}

#[tokio::test(start_paused = true)]
async fn output_that_comes_long_after_the_reply_is_still_the_cells() {
    let (kernel, mut background, log) = start();
    let code = format!("reply\n{}print end", "print a\nsleep 4\n".repeat(10));
    let before = Instant::now();
    let (said, finished) = run(&kernel, timed(&code, Duration::from_secs(10))).await;
    assert_eq!((said.len(), said.last().unwrap().as_str(), finished), (11, "end", completed(1)));
    assert_eq!(before.elapsed(), Duration::from_secs(40));
    assert_eq!(log.entries().len(), 1, "what it did was done within its time: {:?}", log.entries());

    // Nor is it silence when nobody reads what has come.
    let execution = kernel.execute(KernelCell::new("reply\nflood 100\nprint end")).await;
    tokio::time::sleep(HOUR).await;
    let (events, finished) = execution.collect().await;
    assert_eq!(lines(&events).concat().len(), 100 * 65536 + "end".len());
    assert_eq!((finished, background.try_next().is_none()), (completed(2), true));
}

#[tokio::test(start_paused = true)]
async fn a_cell_without_an_end_warns_that_output_may_be_missing() {
    let (kernel, _background, _) = start();
    let (said, finished) = run(&kernel, KernelCell::new("print a\nno idle")).await;
    let warning = "<the kernel did not report the end of the cell's output: some of it may be missing>";
    assert_eq!((said, finished), (vec!["a".into(), warning.into()], completed(1)));
}

#[tokio::test(start_paused = true)]
async fn a_stop_after_the_reply_neither_interrupts_nor_ends_the_kernel() {
    let (kernel, _background, log) = start();
    let mut execution = kernel.execute(KernelCell::new("reply\nprint a\nsleep 4\nprint b\nsleep 4")).await;
    until_started(&mut execution).await;
    while !matches!(execution.next().await, CellUpdate::Event(Event::Output(_))) {}
    execution.stop();
    let (events, finished) = execution.collect().await;
    assert_eq!((lines(&events)[1..].concat(), finished), ("b".into(), completed(1)));
    assert_eq!(log.entries().len(), 1, "{:?}", log.entries());
}

#[tokio::test(start_paused = true)]
async fn a_hung_cell_times_out_and_the_kernel_survives() {
    let (kernel, _background, log) = start();
    let limit = Duration::from_secs(30);
    let before = Instant::now();
    let (said, finished) = run(&kernel, timed("print a\nsleep 3600", limit)).await;
    assert_eq!(before.elapsed(), limit);
    assert_eq!(said, ["a", "<stopping TimedOut(30s)>", "<KeyboardInterrupt>"]);
    assert_eq!(finished.outcome, stopped(StopReason::TimedOut(limit), Fate::Survived));
    assert_eq!(log.entries()[1..], ["interrupt"]);
    assert_eq!(run(&kernel, KernelCell::new("print b")).await.0, ["b"]);
}

// K21: the budget is wall-clock, whether the cell is chatty or quiet.
#[tokio::test(start_paused = true)]
async fn printing_does_not_extend_a_timeout() {
    let (kernel, _background, _) = start();
    let chatty = "print x\nsleep 0.9\n".repeat(100);
    let before = Instant::now();
    let (_, finished) = run(&kernel, timed(&chatty, Duration::from_secs(10))).await;
    assert_eq!(before.elapsed(), Duration::from_secs(10));
    assert_eq!(finished.outcome, stopped(StopReason::TimedOut(Duration::from_secs(10)), Fate::Survived));
}

// K21
#[tokio::test(start_paused = true)]
async fn a_timeout_of_zero_or_of_ages_never_fires() {
    let (kernel, _background, _) = start();
    for timeout in
        [Duration::ZERO, Duration::MAX, Duration::from_secs(u64::MAX), Duration::from_secs(1 << 40)]
    {
        let (_, finished) = run(&kernel, timed("sleep 100000", timeout)).await;
        assert_eq!(finished.outcome, Outcome::Completed, "{timeout:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cell_that_ignores_interrupts_costs_the_kernel_and_the_outcome_says_so() {
    let (kernel, _background, log) = start();
    let graces = Graces::default();
    let limit = Duration::from_secs(3);
    let before = Instant::now();
    let (_, finished) = run(&kernel, timed("deaf\nsleep 3600", limit)).await;
    assert_eq!(finished.outcome, stopped(StopReason::TimedOut(limit), Fate::Killed));
    assert_eq!(before.elapsed(), limit + graces.interrupt);
    assert_eq!(log.entries()[1..], ["interrupt", "interrupt", "terminate"]);

    let (kernel, _background, log) = start();
    let before = Instant::now();
    let (_, finished) = run(&kernel, timed("stubborn\nsleep 3600", limit)).await;
    assert_eq!(finished.outcome, stopped(StopReason::TimedOut(limit), Fate::Killed));
    assert_eq!(before.elapsed(), limit + graces.interrupt + graces.terminate);
    assert_eq!(log.entries()[1..], ["interrupt", "interrupt", "terminate", "kill"]);
}

// As those of Deno and xeus-python do.
#[tokio::test(start_paused = true)]
async fn a_kernel_that_ends_when_it_is_interrupted_was_not_killed() {
    let (kernel, _background, log) = start();
    let limit = Duration::from_secs(3);
    let (_, finished) = run(&kernel, timed("fragile\nsleep 3600", limit)).await;
    assert_eq!(finished.outcome, stopped(StopReason::TimedOut(limit), Fate::Ended));
    assert_eq!(log.entries()[1..], ["interrupt"]);
}

#[tokio::test(start_paused = true)]
async fn a_kernel_that_cannot_even_be_killed_is_given_up() {
    let (kernel, _background, _) = start();
    let (_, finished) = run(&kernel, timed("immortal\nsleep 360000", Duration::from_secs(1))).await;
    assert_eq!(finished.outcome, stopped(StopReason::TimedOut(Duration::from_secs(1)), Fate::Killed));
    assert_eq!(kernel.ended().await, Exit::Lost("the kernel was killed and does not end".into()));
}

// K22
#[tokio::test(start_paused = true)]
async fn an_interrupt_that_fails_says_so_and_is_not_waited_for() {
    let (kernel, _background, log) = start();
    let before = Instant::now();
    let (said, finished) = run(&kernel, timed("broken\nsleep 3600", Duration::from_secs(1))).await;
    assert_eq!(before.elapsed(), Duration::from_secs(1));
    assert!(said.contains(&"<could not interrupt the kernel: it is broken>".into()), "{said:?}");
    assert_eq!(finished.outcome, stopped(StopReason::TimedOut(Duration::from_secs(1)), Fate::Killed));
    assert_eq!(log.entries()[1..], ["interrupt", "terminate"]);

    let (kernel, _background, _) = start();
    let mut execution = kernel.execute(KernelCell::new("broken\nprint x\nsleep 3600")).await;
    until_started(&mut execution).await;
    assert!(matches!(execution.next().await, CellUpdate::Event(Event::Output(_))));
    assert_eq!(
        kernel.interrupt().await.unwrap_err().to_string(),
        "could not interrupt the kernel: it is broken"
    );
}

#[tokio::test(start_paused = true)]
async fn code_that_swallows_the_interrupt_of_its_time_limit_has_timed_out() {
    let (kernel, _background, _) = start();
    let limit = Duration::from_secs(1);
    let (said, finished) = run(&kernel, timed("deaf\nsleep 3\nprint end", limit)).await;
    assert_eq!(finished.outcome, stopped(StopReason::TimedOut(limit), Fate::Survived));
    assert_eq!(said[1..], ["end", "<the interrupt did not end the cell: it ran to its end>"]);
}

#[tokio::test(start_paused = true)]
async fn a_queued_cell_that_is_stopped_and_runs_anyway_is_not_reported_as_completed() {
    let (kernel, _background, _) = start();
    let execution = kernel.execute(KernelCell::new("not started\nsleep 2\nprint end")).await;
    tokio::time::sleep(Duration::from_secs(1)).await; // it has been sent
    execution.stop();
    let (events, finished) = execution.collect().await;
    assert_eq!(finished.outcome, stopped(StopReason::Cancelled, Fate::Survived));
    assert_eq!(lines(&events)[1..], ["end", "<the interrupt did not end the cell: it ran to its end>"]);
}

#[tokio::test(start_paused = true)]
async fn an_error_of_its_own_in_answer_to_an_interrupt_is_a_stop() {
    let (kernel, _background, _) = start();
    let (said, finished) = run(&kernel, timed("tough\nsleep 3600", Duration::from_secs(1))).await;
    assert_eq!(said[1..], ["<ValueError>"]);
    assert_eq!(finished.outcome, stopped(StopReason::TimedOut(Duration::from_secs(1)), Fate::Survived));
}

#[tokio::test(start_paused = true)]
async fn a_stop_before_the_start_waits_for_it_because_kernels_ignore_interrupts_between_cells() {
    let (kernel, _background, log) = start();
    let execution = kernel.execute(KernelCell::new("not started\nsleep 3600")).await;
    kernel.ping().await.unwrap(); // by now the cell has been sent
    execution.stop();
    let (_, finished) = execution.collect().await;
    assert_eq!(finished.outcome, stopped(StopReason::Cancelled, Fate::Killed));
    assert_eq!(log.entries()[1..], ["make way", "terminate"]);
}

#[tokio::test(start_paused = true)]
async fn dropping_an_execution_stops_its_cell() {
    let (kernel, _background, log) = start();
    let mut execution = kernel.execute(KernelCell::new("sleep 3600")).await;
    until_started(&mut execution).await;
    drop(execution);
    assert_eq!(run(&kernel, KernelCell::new("print b")).await.0, ["b"]);
    assert_eq!(log.entries(), ["execute sleep 3600", "interrupt", "execute print b"]);
}

#[tokio::test(start_paused = true)]
async fn cancelling_the_callers_token_stops_the_cell_and_not_the_other_way_round() {
    let (kernel, _background, _) = start();
    let call = CancellationToken::new();
    let mut execution =
        kernel.execute(KernelCell { stop: call.clone(), ..KernelCell::new("sleep 3600") }).await;
    until_started(&mut execution).await;
    call.cancel();
    let (_, finished) = execution.collect().await;
    assert_eq!(finished.outcome, stopped(StopReason::Cancelled, Fate::Survived));

    let call = CancellationToken::new();
    drop(kernel.execute(KernelCell { stop: call.clone(), ..KernelCell::new("sleep 3600") }).await);
    kernel.ping().await.unwrap();
    assert!(!call.is_cancelled());
}

// K5
#[tokio::test(start_paused = true)]
async fn cancelling_a_queued_cell_leaves_the_running_one_alone() {
    let (kernel, _background, log) = start();
    let running = kernel.execute(KernelCell::new("sleep 60\nprint done")).await;
    let queued = kernel.execute(KernelCell::new("print never")).await;
    queued.stop();
    let before = Instant::now();
    let (events, finished) = queued.collect().await;
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert!(events.is_empty());
    assert_eq!(finished.outcome, stopped(StopReason::Cancelled, Fate::Survived));
    let (events, finished) = running.collect().await;
    assert_eq!((lines(&events), finished), (vec!["done".into()], completed(1)));
    assert_eq!(log.entries(), ["execute sleep 60\nprint done"]);
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_from_the_handle_stops_the_cell_without_consequences() {
    let (kernel, _background, log) = start();
    let mut execution = kernel.execute(KernelCell::new("sleep 3600")).await;
    until_started(&mut execution).await;
    kernel.interrupt().await.unwrap();
    let (_, finished) = execution.collect().await;
    assert_eq!(finished.outcome, stopped(StopReason::Interrupted, Fate::Survived));

    kernel.interrupt().await.unwrap();
    assert_eq!(log.entries()[1..], ["interrupt"], "between cells there is nothing to interrupt");

    let mut deaf = kernel.execute(KernelCell::new("deaf\nsleep 3600\nprint end")).await;
    until_started(&mut deaf).await;
    kernel.interrupt().await.unwrap();
    let (events, finished) = deaf.collect().await;
    assert_eq!((lines(&events), finished.outcome), (vec!["end".into()], Outcome::Completed));
}

#[tokio::test(start_paused = true)]
async fn a_kernel_death_reports_whether_the_cell_had_started() {
    for (code, started) in [("print a\ndie 3", true), ("not started\ndie 3", false)] {
        let (kernel, mut background, _) = start();
        let queued_after = {
            let (_, finished) = run(&kernel, KernelCell::new(code)).await;
            let death = Death { exit: exited(3), started };
            assert_eq!(finished.outcome, Outcome::Died(death.clone()));
            assert_eq!(death.to_string().contains("before the cell started"), !started);
            run(&kernel, KernelCell::new("print b")).await.1.outcome
        };
        assert_eq!(queued_after, Outcome::Died(Death { exit: exited(3), started: false }));
        assert_eq!(kernel.exit(), Some(exited(3)));
        assert_eq!(background.next().await.unwrap_err(), exited(3));
        assert!(matches!(kernel.ping().await, Err(AskError::Died(exit)) if exit == exited(3)));
    }
}

#[tokio::test(start_paused = true)]
async fn death_between_cells_is_noticed_without_asking() {
    let (scripted, _log) = ScriptedKernel::new();
    let (kernel, _background) = Kernel::start(scripted, Graces::default(), None);
    let detached = kernel.execute(KernelCell::new("sleep 60\ndie 9")).await;
    detached.detach();
    assert_eq!(kernel.exit(), None);
    assert_eq!(kernel.ended().await, exited(9));
}

// K2
#[tokio::test(start_paused = true)]
async fn what_a_thread_prints_after_its_cell_belongs_to_the_session() {
    let (kernel, mut background, _) = start();
    assert_eq!(run(&kernel, KernelCell::new("later 5 from the thread\nprint a")).await.0, ["a"]);
    assert!(background.try_next().is_none());
    assert_eq!(run(&kernel, KernelCell::new("sleep 10\nprint b")).await.0, ["b"]);
    assert_eq!(lines(&[background.try_next().unwrap()]), ["from the thread"]);
}

#[tokio::test(start_paused = true)]
async fn a_detached_cell_runs_on_and_its_output_is_kept() {
    let (kernel, mut background, _) = start();
    let mut execution = kernel.execute(KernelCell::new("print a\nsleep 5\nprint b")).await;
    until_started(&mut execution).await;
    execution.detach();
    assert_eq!(run(&kernel, KernelCell::new("print c")).await, (vec!["c".into()], completed(2)));
    let mut kept = Vec::new();
    kept.extend(std::iter::from_fn(|| background.try_next()));
    assert_eq!(lines(&kept), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_stopped_reading_holds_up_the_cell_and_loses_nothing() {
    let (kernel, _background, _) = start();
    let execution = kernel.execute(KernelCell::new("flood 400\nprint end")).await;
    // 25 MiB are waiting; the driver takes about one and then waits as well.
    tokio::time::sleep(HOUR).await;
    let (events, finished) = execution.collect().await;
    let text = lines(&events).concat();
    assert_eq!(text.len(), 400 * 65536 + "end".len());
    assert_eq!(finished.outcome, Outcome::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_stopped_reading_does_not_delay_a_stop() {
    let (kernel, _background, log) = start();
    let cell = timed("flood 400\nsleep 3600", Duration::from_secs(10));
    let execution = kernel.execute(cell).await;
    tokio::time::sleep(HOUR).await;
    // The flood is more than is taken in while stopping, so the interrupt's effect was not seen in
    // time and the kernel was ended; its last words are all there.
    assert!(kernel.exit().is_some());
    let (events, finished) = execution.collect().await;
    assert_eq!(lines(&events).concat().matches('x').count(), 400 * 65536);
    assert_eq!(finished.outcome, stopped(StopReason::TimedOut(Duration::from_secs(10)), Fate::Killed));
    assert_eq!(log.entries()[1..], ["interrupt", "interrupt", "terminate", "kill"]);
}

#[tokio::test(start_paused = true)]
async fn shutdown_asks_then_terminates_then_kills() {
    let graces = Graces::default();
    for (cell, steps, exit) in [
        ("print a", vec!["shutdown"], exited(0)),
        (
            "stubborn",
            vec!["shutdown", "terminate", "kill"],
            Exit::Process(ProcessExit::Signal { number: 9, core_dumped: false, out_of_memory: false }),
        ),
    ] {
        let (kernel, _background, log) = start();
        run(&kernel, KernelCell::new(cell)).await;
        let before = Instant::now();
        assert_eq!(kernel.shutdown().await, exit);
        assert_eq!(log.entries()[1..], steps);
        let expected = if steps.len() == 1 { Duration::ZERO } else { graces.shutdown + graces.terminate };
        assert_eq!(before.elapsed(), expected);
        assert_eq!(kernel.shutdown().await, exit, "again is fine");
    }
}

#[tokio::test(start_paused = true)]
async fn shutdown_stops_what_runs_and_does_not_run_what_waits() {
    let (kernel, _background, log) = start();
    let mut running = kernel.execute(KernelCell::new("deaf\nsleep 3600")).await;
    let waiting = kernel.execute(KernelCell::new("print never")).await;
    until_started(&mut running).await;
    kernel.shutdown().await;
    for execution in [running, waiting] {
        let (_, finished) = execution.collect().await;
        assert_eq!(finished.outcome, stopped(StopReason::Shutdown, Fate::Killed));
    }
    assert!(!log.entries().iter().any(|entry| entry.contains("never")));
}

#[tokio::test(start_paused = true)]
async fn dropping_the_kernel_ends_everything() {
    let (kernel, mut background, _) = start();
    let mut running = kernel.execute(KernelCell::new("sleep 3600")).await;
    let waiting = kernel.execute(KernelCell::new("print never")).await;
    until_started(&mut running).await;
    drop(kernel);
    for execution in [running, waiting] {
        let (_, finished) = execution.collect().await;
        assert_eq!(finished.outcome, stopped(StopReason::Shutdown, Fate::Killed));
    }
    assert!(background.next().await.is_err());
}
