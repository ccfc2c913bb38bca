//! Comms over ZeroMQ where the suite does not reach: many, large, unwanted.

use std::time::Duration;

use bytes::Bytes;
use cellwright_kernel::{CellUpdate, Comms, Event, KernelCell, Outcome};
use cellwright_testkit::alone;
use tokio::time::timeout;

use super::Place;

/// 300 messages of 1 MB each.
const FLOOD: &str = "from comm import create_comm
comm = create_comm('flood')
for _ in range(300): comm.send({}, buffers=[bytes(1_000_000)])
comm.close()";

/// More than this would mean that it was kept. A socket's queue takes up to 64 MiB.
const LITTLE: u64 = 120 << 20;

#[tokio::test]
async fn comms_that_nobody_asked_for_hold_up_nothing_and_are_not_kept() {
    if !alone() {
        return;
    }
    let place = Place::new();
    let launched = place.launch("python3").start().await.unwrap();
    let before = peak_memory();
    // Nobody reads what it says, and yet it ends: nothing of it waits for a reader.
    let execution = launched.kernel.execute(KernelCell::new(FLOOD)).await;
    timeout(Duration::from_mins(1), launched.kernel.ping()).await.unwrap().unwrap();
    let (events, finished) = execution.collect().await;
    assert_eq!(finished.outcome, Outcome::Completed);
    assert!(events.iter().all(|event| !matches!(event, Event::Comm(_))), "{events:?}");
    let more = peak_memory() - before;
    assert!(more < LITTLE, "{more} bytes");
}

#[tokio::test]
async fn comms_that_are_asked_for_come_whole_at_their_readers_pace() {
    if !alone() {
        return;
    }
    let place = Place::new();
    let launched = place.launch("python3").start().await.unwrap();
    launched.kernel.pass_comms(Comms::Forwarded).await;
    let before = peak_memory();
    let mut execution = launched.kernel.execute(KernelCell::new(FLOOD)).await;
    let mut bytes = 0;
    let finished = loop {
        match execution.next().await {
            CellUpdate::Event(Event::Comm(message)) => {
                bytes += message.buffers.iter().map(Bytes::len).sum::<usize>();
            }
            CellUpdate::Event(_) => {}
            CellUpdate::Finished(finished) => break finished,
        }
        tokio::task::yield_now().await; // a reader that is slower than the kernel
    };
    assert_eq!((finished.outcome, bytes), (Outcome::Completed, 300_000_000));
    let more = peak_memory() - before;
    assert!(more < LITTLE, "{more} bytes");
}

/// The most memory this process has had.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}
