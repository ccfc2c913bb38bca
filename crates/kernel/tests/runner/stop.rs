//! Cells that are stopped, and what is left of the kernel.

use std::time::Duration;

use cellwright_kernel::{CellStage, CellUpdate, Event, Fate, Graces, KernelCell, Outcome, StopReason};
use cellwright_testkit::{Door, end_of};

use super::support::{Fixture, Ran, knock_when_held_up, until_printed, until_started};

/// Starts `code`, waits until it has printed `go`, stops it, and expects the kernel and its state to
/// be there.
async fn stops_and_survives(code: &str) {
    let fixture = Fixture::start().await;
    fixture.run("state = 'kept'").await;
    for _ in 0..3 {
        let mut execution = fixture.kernel.execute(KernelCell::new(code)).await;
        until_printed(&mut execution, "go").await;
        execution.stop();
        let ran = Ran::of(execution).await;
        assert_eq!(
            ran.finished.outcome,
            Outcome::Stopped { reason: StopReason::Cancelled, kernel: Fate::Survived },
            "{code}\n{ran:?}"
        );
    }
    assert_eq!(fixture.run("state").await.result(), Some("'kept'"));
}

#[tokio::test]
async fn a_busy_loop_and_a_sleep_can_be_stopped() {
    stops_and_survives("print('go', flush=True)\nwhile True: pass").await;
    stops_and_survives("import time\nprint('go', flush=True)\ntime.sleep(600)").await;
}

#[tokio::test]
async fn k4_an_interrupt_during_await_keeps_the_kernel_and_its_loop() {
    stops_and_survives("import asyncio\nprint('go', flush=True)\nawait asyncio.sleep(600)").await;
    let fixture = Fixture::start().await;
    let mut execution = fixture
        .kernel
        .execute(KernelCell::new("import asyncio\nprint('go')\nawait asyncio.sleep(600)"))
        .await;
    until_printed(&mut execution, "go").await;
    execution.stop();
    execution.collect().await;
    assert_eq!(fixture.run("await asyncio.sleep(0, 'again')").await.result(), Some("'again'"));
}

#[tokio::test]
async fn k6_an_interrupt_reaches_the_children_of_a_cell() {
    stops_and_survives("import subprocess\nprint('go', flush=True)\nsubprocess.run(['sleep', '600'])").await;
    let fixture = Fixture::start().await;
    let door = Door::new();
    let code = format!(
        "import subprocess\nchild = subprocess.Popen(['sleep', '600'])\nprint(child.pid, flush=True)\n\
         {}.close()\nchild.wait()",
        door.knock()
    );
    let execution = fixture.kernel.execute(KernelCell::new(code)).await;
    door.knocked().await;
    execution.stop();
    let ran = Ran::of(execution).await;
    assert_eq!(
        ran.finished.outcome,
        Outcome::Stopped { reason: StopReason::Cancelled, kernel: Fate::Survived }
    );
    let child = ran.stdout().trim().parse().unwrap();
    end_of(child).await;
}

#[tokio::test]
async fn numpy_at_work_can_be_stopped() {
    let work = "import numpy as np\na = np.random.rand(300, 300)\nprint('go', flush=True)";
    stops_and_survives(&format!("{work}\nwhile True: a = np.linalg.inv(a @ a.T + np.eye(300))")).await;
    // An interrupt is heeded when C code has come to its end.
    stops_and_survives(&format!("{work}\nfor _ in range(100): np.sort(np.random.rand(10_000_000))")).await;
}

#[tokio::test]
async fn k6_a_shell_command_can_be_stopped() {
    stops_and_survives("print('go', flush=True)\n!sleep 600").await;
}

#[tokio::test]
async fn k21_a_timeout_is_kept_and_none_or_ages_are_no_limit() {
    let fixture = Fixture::start().await;
    for timeout in [Duration::ZERO, Duration::MAX] {
        let ran = fixture.run_within("import time; time.sleep(0.01); 5", timeout).await;
        assert_eq!(ran.result(), Some("5"), "{timeout:?}");
    }
    let limit = Duration::from_millis(300);
    let ran = fixture.run_within("import time\nwhile True: print('.'); time.sleep(0.01)", limit).await;
    assert_eq!(
        ran.finished.outcome,
        Outcome::Stopped { reason: StopReason::TimedOut(limit), kernel: Fate::Survived }
    );
}

#[tokio::test]
async fn k22_code_that_ignores_interrupts_costs_the_kernel_and_the_outcome_says_so() {
    let graces = Graces { interrupt: Duration::from_millis(200), ..Graces::default() };
    let fixture = Fixture::start_with(|launch| launch.graces = graces).await;
    let code = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('deaf')\nwhile True: time.sleep(1)";
    let mut execution = fixture.kernel.execute(KernelCell::new(code)).await;
    until_printed(&mut execution, "deaf").await;
    execution.stop();
    let (_, finished) = execution.collect().await;
    assert_eq!(finished.outcome, Outcome::Stopped { reason: StopReason::Cancelled, kernel: Fate::Killed });
    assert!(fixture.kernel.exit().is_some());
}

#[tokio::test]
async fn k22_a_second_interrupt_reaches_code_that_swallowed_the_first() {
    let graces = Graces { interrupt: Duration::from_secs(6), ..Graces::default() };
    let fixture = Fixture::start_with(|launch| launch.graces = graces).await;
    // Short naps: an interrupt just before a long one would be noticed at its end, with the second.
    let code = "import time\ntry:\n\
        \x20   print('go', flush=True)\n\
        \x20   while True: time.sleep(0.01)\n\
        except KeyboardInterrupt:\n\
        \x20   while True: time.sleep(0.01)";
    let mut execution = fixture.kernel.execute(KernelCell::new(code)).await;
    until_printed(&mut execution, "go").await;
    execution.stop();
    let (_, finished) = execution.collect().await;
    assert_eq!(finished.outcome, Outcome::Stopped { reason: StopReason::Cancelled, kernel: Fate::Survived });
}

#[tokio::test]
async fn a_stopped_process_is_ended_within_its_graces() {
    let brief = Duration::from_millis(100);
    let graces = Graces { interrupt: brief, terminate: brief, ..Graces::default() };
    let fixture = Fixture::start_with(|launch| launch.graces = graces).await;
    // Deaf first, so that an interrupt before the process is stopped changes nothing.
    let code = "import os, signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('go', flush=True)\n\
        os.kill(os.getpid(), signal.SIGSTOP)\nwhile True: pass";
    let mut execution = fixture.kernel.execute(KernelCell::new(code)).await;
    until_printed(&mut execution, "go").await;
    execution.stop();
    let (_, finished) = execution.collect().await;
    assert_eq!(finished.outcome, Outcome::Stopped { reason: StopReason::Cancelled, kernel: Fate::Killed });
}

#[tokio::test]
async fn k30_an_interrupt_at_any_moment_tears_no_frame_and_kills_no_kernel() {
    let fixture = Fixture::start().await;
    fixture.run("state = 'kept'").await;
    // A cell that writes frames all the time, stopped at a different moment each time, and interrupts
    // between cells.
    for round in 0..100 {
        let mut execution = fixture.kernel.execute(KernelCell::new("while True: display('x' * 5000)")).await;
        until_started(&mut execution).await;
        for _ in 0..round % 10 {
            execution.next().await;
        }
        execution.stop();
        let ran = Ran::of(execution).await;
        assert_eq!(
            ran.finished.outcome,
            Outcome::Stopped { reason: StopReason::Cancelled, kernel: Fate::Survived },
            "round {round}"
        );
        assert!(
            !ran.events.iter().any(|event| matches!(event, Event::Warning(_))),
            "round {round}: {:?}",
            ran.events
        );
        interrupt_from_outside(fixture.pid);
    }
    assert_eq!(fixture.run("state").await.result(), Some("'kept'"));
}

#[tokio::test]
async fn a_stop_right_after_the_start_is_heeded() {
    let fixture = Fixture::start().await;
    for round in 0..50 {
        let mut execution =
            fixture.kernel.execute(KernelCell::new("import time\nwhile True: time.sleep(1)")).await;
        if round % 2 == 0 {
            until_started(&mut execution).await;
        }
        execution.stop();
        let (_, finished) = execution.collect().await;
        assert_eq!(
            finished.outcome,
            Outcome::Stopped { reason: StopReason::Cancelled, kernel: Fate::Survived },
            "round {round}"
        );
    }
}

#[tokio::test]
async fn a_flood_that_nobody_reads_can_be_stopped() {
    let fixture = Fixture::start().await;
    let door = Door::new();
    let code = knock_when_held_up(&door) + "while True: print('x' * 1000)";
    let mut execution = fixture.kernel.execute(KernelCell::new(code)).await;
    until_printed(&mut execution, "x").await;
    door.knocked().await;
    execution.stop();
    // Not read on purpose: the stop has to come about by itself.
    fixture.kernel.ping().await.unwrap();
    let mut stopping = false;
    let finished = loop {
        match execution.next().await {
            CellUpdate::Event(Event::Status(CellStage::Stopping(_))) => stopping = true,
            CellUpdate::Event(_) => {}
            CellUpdate::Finished(finished) => break finished,
        }
    };
    assert!(stopping);
    assert_eq!(finished.outcome, Outcome::Stopped { reason: StopReason::Cancelled, kernel: Fate::Survived });
}

/// SIGINT from outside, as a terminal would send it.
fn interrupt_from_outside(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process_group(pid, rustix::process::Signal::INT).unwrap();
}

#[tokio::test]
async fn a_kernel_that_was_stopped_while_idle_goes_on() {
    let start = Duration::from_millis(100);
    let fixture = Fixture::start_with(|launch| launch.graces.start = start).await;
    assert_eq!(fixture.stdout("x = 1; print(x)").await, "1\n");
    let stop = format!("kill -STOP {}", fixture.pid);
    assert!(std::process::Command::new("/bin/sh").args(["-c", &stop]).status().unwrap().success());
    let ran = fixture.run("print(x + 1)").await;
    assert_eq!((&ran.finished.outcome, ran.stdout().as_str()), (&Outcome::Completed, "2\n"));
    assert!(format!("{ran:?}").contains("it was continued"), "{ran:?}");
}
