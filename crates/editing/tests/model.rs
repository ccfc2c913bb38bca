//! Two callers and a third program at one notebook, for thousands of random steps.
//!
//! Every line of every source is a token that occurs once, so the test can tell by itself which lines a caller was shown:
//! it looks at the text that was returned, not at what the editor remembers. The laws:
//!
//! - A line that a change takes away was shown to the caller who made it, or the caller never saw its cell.
//! - A cell that a change takes away is in the version that its caller last saw or made, or that its text is based on.
//! - A number means the cell that its caller was last shown with it: for cells, and for places to put cells at.
//! - A line, an output or a tag that is gone from the file is in the undo store. While that cannot be written, nothing goes.
//! - What others changed in other cells stays. Undoing keeps the tags that others added, and makes no second cell.
//! - What only the caller changed is not reported as changed by others.
//! - A caller with a memory in the process and one with a memory on disk get the same verdicts.

mod world;

use world::{MemoryKind, World};

/// How many sequences there are, unless `CELLWRIGHT_MODEL_SEQUENCES` says otherwise.
const SEQUENCES: u64 = 300;
const STEPS: usize = 40;

#[test]
fn no_text_that_a_caller_did_not_see_is_lost_and_both_doors_decide_alike() {
    let asked = std::env::var("CELLWRIGHT_MODEL_SEQUENCES").ok().and_then(|asked| asked.parse().ok());
    for seed in 0..asked.unwrap_or(SEQUENCES) {
        let mut first = World::new(seed, [MemoryKind::Process, MemoryKind::Disk]);
        // Two callers with a memory on disk share a folder, and must not share what they know.
        let other = if seed % 2 == 0 { MemoryKind::Process } else { MemoryKind::Disk };
        let mut second = World::new(seed, [MemoryKind::Disk, other]);
        for step in 0..STEPS {
            let verdict = first.step();
            assert_eq!(verdict, second.step(), "seed {seed}, step {step}: the doors differ\n{}", first.log());
            assert_eq!(first.text(), second.text(), "seed {seed}, step {step}\n{}", first.log());
        }
    }
}

#[test]
fn most_kinds_of_verdicts_occur_in_the_model() {
    let mut verdicts = std::collections::BTreeMap::new();
    for seed in 0..60 {
        let mut world = World::new(seed, [MemoryKind::Process, MemoryKind::Process]);
        for _ in 0..STEPS {
            *verdicts.entry(world.step()).or_insert(0) += 1;
        }
    }
    for wanted in [
        "done",
        "merged",
        "stale",
        "never read",
        "partly read",
        "cell moved",
        "undone",
        "not undone",
        "not kept",
        "unexpected",
    ] {
        assert!(verdicts.get(wanted).is_some_and(|count| *count >= 5), "{wanted} is too rare: {verdicts:?}");
    }
}
