//! Cells that cannot start because of what runs in the background.

use std::time::Duration;

use cellwright_kernel::{Death, Exit, Fate, Graces, KernelCell, Outcome, StopReason};
use cellwright_testkit::{Door, end_of, holds_the_interpreter, patient_graces};

use super::support::{Fixture, Ran};

const SECOND: Duration = Duration::from_secs(1);

/// A task that does not let the loop go on once it was let in.
fn holds_the_loop(door: &Door) -> String {
    format!(
        "import asyncio, time\n\
         x = 1\n\
         async def hold(door={}):\n\
         \x20   door.setblocking(False)\n\
         \x20   await asyncio.get_running_loop().sock_recv(door, 1)\n\
         \x20   door.send(b'.')\n\
         \x20   time.sleep(600)\n\
         task = asyncio.create_task(hold())",
        door.knock()
    )
}

/// A kernel that something else holds since its first cell is over.
async fn held(code: impl FnOnce(&Door) -> String, graces: Graces) -> Fixture {
    let fixture = Fixture::start_with(|launch| launch.graces = graces).await;
    let door = Door::new();
    assert_eq!(fixture.run(&code(&door)).await.finished.outcome, Outcome::Completed);
    door.let_in().await;
    fixture
}

#[tokio::test]
async fn a_kernel_whose_interpreter_is_held_is_reported_and_given_up() {
    let graces = Graces { start: SECOND / 2, answer: 4 * SECOND, ..Graces::default() };
    let fixture = held(holds_the_interpreter, graces).await;
    let ran = fixture.run("x").await;
    let Outcome::Died(Death { exit: Exit::Lost(how), started: false }) = &ran.finished.outcome else {
        panic!("{ran:?}")
    };
    assert!(how.starts_with("the kernel did not answer for ") && how.ends_with(" and was ended"), "{how}");
    // Whether it is said to compute depends on how much of the processor it had.
    let told = format!("{ran:?}");
    let is_told = ["the kernel computes and does not answer", "the kernel does not answer"];
    assert!(is_told.iter().any(|words| told.contains(words)), "{told}");
    end_of(fixture.pid).await;
}

#[tokio::test]
async fn a_stop_ends_a_cell_whose_interpreter_is_held() {
    let graces = Graces { interrupt: SECOND / 4, ..Graces::default() };
    let fixture = held(holds_the_interpreter, graces).await;
    let ran = fixture.run_within("x", SECOND / 4).await;
    let reason = StopReason::TimedOut(SECOND / 4);
    assert_eq!(ran.finished.outcome, Outcome::Stopped { reason, kernel: Fate::Killed });
    assert!(format!("{ran:?}").contains("the cell had not begun"), "{ran:?}");
}

#[tokio::test]
async fn a_kernel_whose_loop_is_held_says_by_what_and_is_waited_for() {
    // It would be given up before it has come to answer, if a look at it showed nothing.
    let graces = Graces { start: 6 * SECOND, answer: 7 * SECOND, ..Graces::default() };
    let fixture = held(holds_the_loop, graces).await;
    let ran = fixture.run_within("x", 13 * SECOND).await;
    let reason = StopReason::TimedOut(13 * SECOND);
    // The stop ended the task, not the kernel.
    assert_eq!(ran.finished.outcome, Outcome::Stopped { reason, kernel: Fate::Survived });
    let told = "something else keeps the kernel busy (<cell 1>, line 7, in hold)";
    assert!(format!("{ran:?}").contains(told), "{ran:?}");
    assert_eq!(fixture.run("x, task.done()").await.result(), Some("(1, True)"));
}

#[tokio::test]
async fn a_stop_frees_a_kernel_whose_loop_is_held() {
    let fixture = held(holds_the_loop, patient_graces()).await;
    let execution = fixture.kernel.execute(KernelCell::new("x = 2")).await;
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
