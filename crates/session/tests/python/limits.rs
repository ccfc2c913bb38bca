//! What a host takes of the machine.

use std::io::{BufRead as _, BufReader};

use super::support::{facts, host};

#[test]
fn two_hundred_megabytes_of_text_take_little_memory_and_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let told = facts(&mut host("flood", folder.path()));
    let [artifact, bytes, peak] = told.split(' ').collect::<Vec<_>>()[..] else { panic!("{told}") };
    assert_eq!(bytes, "200000000");
    assert!(peak.parse::<u64>().unwrap() < 64 << 10, "the most it took was {peak} kB");
    let lines = BufReader::new(std::fs::File::open(artifact).unwrap()).lines();
    let mut count = 0;
    for line in lines {
        assert_eq!(line.unwrap().trim_start_matches('0').parse().unwrap_or(0), count);
        count += 1;
    }
    assert_eq!(count, 2_000_000);
}

#[test]
fn ten_thousand_cells_leave_the_host_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let told = facts(&mut host("many", folder.path()));
    let [early, late] = told.split(' ').map(|kb| kb.parse::<u64>().unwrap()).collect::<Vec<_>>()[..] else {
        panic!("{told}")
    };
    assert!(late < early + (5 << 10), "from {early} kB to {late} kB");
}
