//! Cells that can not start because of what runs in the background.

use std::time::Duration;

use cellwright_kernel::{Cell, Death, Exit, Fate, Graces, Outcome, StopReason};

use crate::support::{Fixture, Ran, alive, eventually};

const SECOND: Duration = Duration::from_secs(1);

/// A thread in which C code holds the interpreter, for ages, as soon as the cell is over.
const HOLDS_THE_INTERPRETER: &str = "\
import re, threading
x = 1
thread = threading.Timer(0.2, lambda: re.match(r'(a+)+$', 'a' * 60 + 'b'))
thread.daemon = True
thread.start()";

/// A task that does not let the loop go on.
const HOLDS_THE_LOOP: &str = "\
import asyncio, time
x = 1
async def hold():
    await asyncio.sleep(0.1)
    print('held', flush=True)
    time.sleep(600)
task = asyncio.create_task(hold())";

async fn held(code: &str, graces: Graces) -> Fixture {
    let fixture = Fixture::start_with(|launch| launch.graces = graces).await;
    assert_eq!(fixture.run(code).await.finished.outcome, Outcome::Completed);
    tokio::time::sleep(SECOND).await; // nothing tells when the interpreter is held
    fixture
}

#[tokio::test]
async fn a_kernel_whose_interpreter_is_held_is_told_of_and_given_up() {
    let graces = Graces { start: SECOND / 4, answer: SECOND / 2, ..Graces::default() };
    let fixture = held(HOLDS_THE_INTERPRETER, graces).await;
    let ran = fixture.run("x").await;
    let Outcome::Died(Death { exit: Exit::Lost(how), started: false }) = &ran.finished.outcome else {
        panic!("{ran:?}")
    };
    assert!(how.starts_with("the kernel did not answer for ") && how.ends_with(" and was ended"), "{how}");
    assert!(format!("{ran:?}").contains("the kernel computes and does not answer"), "{ran:?}");
    eventually("its end", || !alive(fixture.pid)).await;
}

#[tokio::test]
async fn a_stop_ends_a_cell_whose_interpreter_is_held() {
    let graces = Graces { interrupt: SECOND / 4, ..Graces::default() };
    let fixture = held(HOLDS_THE_INTERPRETER, graces).await;
    let ran = fixture.run_within("x", SECOND / 4).await;
    let reason = StopReason::TimedOut(SECOND / 4);
    assert_eq!(ran.finished.outcome, Outcome::Stopped { reason, kernel: Fate::Killed });
    assert!(format!("{ran:?}").contains("the cell had not begun"), "{ran:?}");
}

#[tokio::test]
async fn a_kernel_whose_loop_is_held_says_by_what_and_is_waited_for() {
    // It would be given up before it has come to answer, if a look at it showed nothing.
    let graces = Graces { start: 6 * SECOND, answer: 7 * SECOND, ..Graces::default() };
    let fixture = held(HOLDS_THE_LOOP, graces).await;
    let ran = fixture.run_within("x", 13 * SECOND).await;
    let reason = StopReason::TimedOut(13 * SECOND);
    // The stop ended the task, not the kernel.
    assert_eq!(ran.finished.outcome, Outcome::Stopped { reason, kernel: Fate::Survived });
    let told = "something else keeps the kernel busy (<cell 1>, line 6, in hold)";
    assert!(format!("{ran:?}").contains(told), "{ran:?}");
    assert_eq!(fixture.run("x, task.done()").await.result(), Some("(1, True)"));
}

#[tokio::test]
async fn a_stop_frees_a_kernel_whose_loop_is_held() {
    let fixture = held(HOLDS_THE_LOOP, Graces { interrupt: 2 * SECOND, ..Graces::default() }).await;
    let execution = fixture.kernel.execute(Cell::new("x = 2")).await;
    fixture.kernel.interrupt().await.unwrap(); // by now it has been sent
    execution.stop();
    let ran = Ran::of(execution).await;
    assert_eq!(
        ran.finished.outcome,
        Outcome::Stopped { reason: StopReason::Cancelled, kernel: Fate::Survived },
        "{ran:?}"
    );
    assert_eq!(fixture.run("x").await.result(), Some("1"));
}
