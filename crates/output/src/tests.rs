//! What only the inside can see: memory held, a disk that is full, and the reference parser.

#[path = "../tests/printed.rs"]
mod printed;

use std::fs::{self, File};

use cellwright_cell::Stream;
use proptest::prelude::*;

use crate::{
    Artifacts, Colours, Extent, FullText, OutputLimits, OutputSink, artifacts::ArtifactDraft, screen::Screen,
    spill::Spill,
};
use printed::printed;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_sink_never_holds_more_than_its_limit(
        pieces in prop::collection::vec((printed(), 1_usize..200), 1..8),
        head in 0_usize..4000, tail in 0_usize..4000, line in 1_usize..2000, kept in any::<bool>(),
    ) {
        let store = tempfile::tempdir().unwrap();
        let colours = if kept { Colours::Kept } else { Colours::Dropped };
        let artifacts = Artifacts::new(store.path());
        let mut sink = OutputSink::with_artifacts(OutputLimits { head, tail, line }, colours, &artifacts);
        for (piece, times) in pieces {
            for _ in 0..times {
                sink.write(Stream::Stdout, &piece);
            }
            prop_assert!(sink.held_bytes() <= most_held(head, tail, line), "{} held", sink.held_bytes());
        }
    }
}

/// The shown lines, as much again before old ones are thrown out, the screen, the buffer of the artifact.
/// Growing buffers double; notes about cut lines outweigh the lines when the cap is tiny.
fn most_held(head: usize, tail: usize, line: usize) -> usize {
    let lines = head + 2 * (head + tail) + 64 * 1024 + 2 * 50 * (2 * line + 256);
    let cells = 64 * (line + 128);
    4 * (lines + cells + 64 * 1024)
}

#[test]
fn o6_one_line_of_200_megabytes_costs_no_memory() {
    let limits = OutputLimits::default();
    let mut sink = OutputSink::new(limits, Colours::Dropped);
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..200 {
        sink.write(Stream::Stdout, &chunk);
    }
    assert!(sink.held_bytes() < most_held(limits.head, limits.tail, limits.line));
    let captured = sink.finish();
    assert_eq!(captured.text.lines().next().unwrap(), format!("{}…[+209,714,432 bytes]", "x".repeat(768)));
    assert_eq!(captured.truncation.unwrap().total, Extent { lines: 1, bytes: 200 << 20 });
}

#[test]
fn o5_a_full_disk_is_reported_and_the_capture_continues() {
    let spill =
        Spill::with_draft(ArtifactDraft::onto(File::options().write(true).open("/dev/full").unwrap()));
    let mut sink =
        OutputSink::with_spill(OutputLimits { head: 8, tail: 12, line: 8 }, Colours::Dropped, spill);
    for line in 0..100_000 {
        sink.write(Stream::Stdout, format!("{line}\n").as_bytes());
    }
    let captured = sink.finish();
    insta::assert_snapshot!(captured.text, @r"
    0
    1
    2
    3
    [… 99,994 of 100,000 lines omitted: lines 5-99998, 588,870 of 588,890 bytes. The full output could not be kept: No space left on device (os error 28)]
    99998
    99999
    ");
    let FullText::Lost { reason } = captured.truncation.unwrap().full else { panic!("nothing was kept") };
    assert_eq!(reason, "No space left on device (os error 28)");
}

#[test]
fn o5_a_disk_that_fills_up_leaves_the_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("full");
    fs::write(&path, [b'x'; 1234]).unwrap();
    // What was written stays; a descriptor for reading takes no more.
    let spill = Spill::with_draft(ArtifactDraft::onto(File::open(&path).unwrap()));
    let mut sink =
        OutputSink::with_spill(OutputLimits { head: 2, tail: 2, line: 1 }, Colours::Dropped, spill);
    sink.write(Stream::Stdout, b"1\n2\n3\n");
    let truncation = sink.finish().truncation.unwrap();
    let id = truncation.full.artifact().unwrap().as_str();
    insta::assert_snapshot!(truncation.to_string().replace(id, "k3v9x2mq"), @"[… 1 of 3 lines omitted: line 2, 2 of 6 bytes. Only the first 1,234 bytes are in artifact://k3v9x2mq: Bad file descriptor (os error 9)]");
}

/// Collects what `vte` would print of a text in which no cursor moves.
#[derive(Default)]
struct Printed(String);

impl vte::Perform for Printed {
    fn print(&mut self, ch: char) {
        self.0.push(ch);
    }

    fn execute(&mut self, byte: u8) {
        if matches!(byte, b'\n' | b'\t') {
            self.0.push(char::from(byte));
        }
    }
}

proptest! {
    #[test]
    fn escape_sequences_end_where_vte_ends_them(
        pieces in prop::collection::vec(prop_oneof![
            4 => "[a-zA-Z0-9;:?\\[\\]\\\\()m ]{0,6}",
            3 => "\x1b\\[[0-9;:?]{0,6}[hlmnqrst]",
            2 => "\x1b\\][0-9a-z;]{0,8}(\x07|\x1b\\\\)",
            2 => "\x1b[PX^_][0-9a-z;]{0,8}\x1b\\\\",
            1 => "\x1b[()#][0-9A-B]",
            1 => "\x1b[=>78c]",
            1 => Just("\n".to_owned()),
        ], 0..20)
    ) {
        let text = pieces.concat();
        let mut expected = Printed::default();
        vte::Parser::new().advance(&mut expected, text.as_bytes());
        let mut sink = OutputSink::new(OutputLimits::NONE, Colours::Dropped);
        sink.write(Stream::Stdout, text.as_bytes());
        prop_assert_eq!(sink.finish().text, expected.0);
    }
}

#[test]
fn a_screen_without_text_shows_nothing() {
    let mut kept = crate::kept::KeptLines::new(10, 10);
    Screen::new(Colours::Kept, 10).show_rest(&mut kept);
    assert_eq!(kept.finish().0.as_str(), "");
}
