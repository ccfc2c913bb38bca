//! The sink through its public door: bytes in, text and numbers out.

use cellwright_cell::Stream;
use cellwright_output::{
    Artifacts, CapturedText, Colours, Extent, FullText, OutputLimits, OutputSink, Truncation,
};

fn shown(text: &str) -> String {
    let mut sink = OutputSink::new(OutputLimits::default(), Colours::Dropped);
    sink.write(Stream::Stdout, text.as_bytes());
    sink.finish().text
}

fn coloured(text: &str) -> String {
    let mut sink = OutputSink::new(OutputLimits::default(), Colours::Kept);
    sink.write(Stream::Stdout, text.as_bytes());
    sink.finish().text
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(shown(text), expected);
}

#[test]
fn plain_text_is_untouched() {
    for text in ["", "\n", "a", "a\n", "\n\na\n\n", "tab\there\n", "naïve £5 漢字 👩‍👩‍👧\u{a0}é\n"]
    {
        check(text, text);
    }
}

#[test]
fn k27_a_progress_bar_is_one_line() {
    check("\r  0%|    |\r 50%|##  |\r100%|####|\ndone\n", "100%|####|\ndone\n");
}

#[test]
fn a_carriage_return_overwrites_only_as_far_as_the_new_text_goes() {
    check("abcdef\rXY", "XYcdef");
    check("abc\r\ndef\r\n", "abc\ndef\n");
    check("漢字\rx", "x 字");
    check("ab\r漢", "漢");
    check("e\u{301}a\rx", "xa");
    check("a\tb\rxyz", "xyz");
    check("abc\r\u{301}", "\u{301}bc");
}

#[test]
fn backspaces_step_back() {
    check("abc\x08\x08X", "aXc");
    check("N\x08NA\x08AM\x08ME\x08E", "NAME");
    check("\x08\x08a", "a");
}

#[test]
fn erasures_and_cursor_moves_within_a_line() {
    check("working…\r\x1b[Kdone\n", "done\n");
    check("working…\x1b[2K\rdone\n", "done\n");
    check("abcdef\x1b[3D\x1b[K", "abc");
    check("abc\x1b[1K!", "   !");
    check("a\x1b[3Cb\x1b[1Gc", "c   b");
}

#[test]
fn k27_nested_progress_bars_stay_two_lines() {
    let refresh = |outer: u32, inner: u32| format!("\router {outer}\n\rinner {inner}\x1b[A");
    let text: String = (0..50).map(|step| refresh(step / 10, step % 10)).collect();
    check(&text, "outer 4\ninner 9");
    check("one\ntwo\nthree\x1b[2A\r\x1b[JONE\n", "ONE\n");
}

#[test]
fn other_controls_and_sequences_vanish() {
    check("a\x07b\x00c\x7fd\u{85}e", "abcde");
    check("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "alink");
    check("\x1b[?25l\x1b[1;31mred\x1b[0m\x1b[?25h\x1b(B", "red");
    check("\x1b_Gf=100;AAAA\x1b\\a\x1bPq#0\x1b\\b", "ab");
}

#[test]
fn o6_an_unfinished_sequence_swallows_no_more_than_its_line() {
    check("a\x1b]never ends\nb\n", "a\nb\n");
    check("a\x1b[31\nb", "a\nb");
    check("a\x1b[é", "aé");
}

#[test]
fn clearing_the_screen_loses_nothing() {
    check("a\n\x1b[H\x1b[2Jb\n", "a\nb\n");
}

#[test]
fn colours_are_set_and_reset_within_each_line() {
    assert_eq!(coloured("\x1b[31mred\nstill\x1b[0m\n"), "\x1b[0;31mred\x1b[0m\n\x1b[0;31mstill\x1b[0m\n");
    assert_eq!(
        coloured("\x1b[1;38;5;200ma\x1b[22mb\x1b[39m c"),
        "\x1b[0;1;38;5;200ma\x1b[0;38;5;200mb\x1b[0m c"
    );
    assert_eq!(coloured("\x1b[38:2::1:2:3ma\x1b[m"), "\x1b[0;38;2;1;2;3ma\x1b[0m");
    assert_eq!(coloured("\x1b[92mup\ndown\x1b[A\rX\n"), "\x1b[0;92mXp\x1b[0m\n\x1b[0;92mdown\x1b[0m");
}

#[test]
fn o3_a_character_split_between_chunks_is_whole_and_a_broken_one_is_replaced() {
    let mut sink = OutputSink::new(OutputLimits::default(), Colours::Dropped);
    sink.write(Stream::Stdout, b"\xe2\x82");
    sink.write(Stream::Stderr, b"!");
    sink.write(Stream::Stdout, b"\xac\xf0\x9f");
    assert_eq!(sink.snapshot().text, "!€");
    assert_eq!(sink.finish().text, "!€\u{fffd}");
}

#[test]
fn o3_a_long_line_is_cut_between_graphemes() {
    let family = "👩‍👩‍👧";
    let mut sink = OutputSink::new(OutputLimits { head: 500, tail: 500, line: 20 }, Colours::Dropped);
    sink.write(Stream::Stdout, format!("{family}{family}\n").as_bytes());
    insta::assert_snapshot!(sink.finish().text, @r"
    👩‍👩‍👧…[+18 bytes]
    [1 shown line cut at 20 bytes, 18 bytes missing. The full output was not kept]
    ");
}

#[test]
fn blocks_stand_on_lines_of_their_own() {
    let mut sink = OutputSink::new(OutputLimits::default(), Colours::Dropped);
    sink.write_block("first");
    sink.write(Stream::Stdout, b"printed");
    sink.write_block("a\nb\n");
    sink.write(Stream::Stdout, b"bar\nlower\x1b[A");
    sink.write_block("c");
    assert_eq!(sink.finish().text, "first\nprinted\na\nb\nbar\nlower\nc\n");
}

#[test]
fn blocks_are_not_caught_in_what_a_stream_left_unfinished() {
    let mut sink = OutputSink::new(OutputLimits::default(), Colours::Kept);
    sink.write(Stream::Stdout, b"\x1b[31mred\x1b]unfinished");
    sink.write_block("block");
    assert_eq!(sink.finish().text, "\x1b[0;31mred\x1b[0m\nblock\n");
    let mut sink = OutputSink::new(OutputLimits::default(), Colours::Dropped);
    sink.write(Stream::Stderr, b"\x1b");
    sink.write_block("[31m");
    assert_eq!(sink.finish().text, "\n[31m\n");
}

#[test]
fn k27_what_is_cleared_is_forgotten_also_in_the_artifact() {
    let store = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(store.path());
    let mut sink = OutputSink::with_artifacts(OutputLimits::default(), Colours::Dropped, &artifacts);
    sink.write(Stream::Stdout, &b"old\n".repeat(100_000));
    assert!(sink.snapshot().text.starts_with("old\n"));
    sink.clear();
    sink.write(Stream::Stdout, b"new");
    assert_eq!(sink.snapshot().text, "new");
    sink.clear();
    assert_eq!(sink.finish(), CapturedText { text: String::new(), truncation: None });
    assert_eq!(artifacts.list().unwrap(), []);
}

#[test]
fn o2_the_notice_names_what_is_missing_and_the_artifact_has_all_of_it() {
    let store = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(store.path());
    let mut sink = OutputSink::with_artifacts(
        OutputLimits { head: 200, tail: 300, line: 20 },
        Colours::Dropped,
        &artifacts,
    );
    let lines: Vec<String> = (2..=855).map(|line| format!("\x1b[32mline {line}\x1b[0m\n")).collect();
    let printed = format!("first line\n{}{}", lines.concat(), "z".repeat(1000));
    sink.write(Stream::Stdout, printed.as_bytes());
    let CapturedText { text, truncation } = sink.finish();
    let truncation = truncation.unwrap();
    let id = truncation.full.artifact().unwrap().clone();
    let notice = truncation.to_string();
    insta::assert_snapshot!(notice.replace(id.as_str(), "k3v9x2mq"), @"[… 800 of 856 lines omitted: lines 26-825, 7,126 of 8,591 bytes. 1 shown line cut at 20 bytes, 980 bytes missing. Full output: artifact://k3v9x2mq]");
    assert!(text.contains(&format!("\nline 25\n{notice}\nline 826\n")));
    assert!(text.ends_with(&format!("\nline 855\n{}…[+980 bytes]", "z".repeat(20))));
    assert_eq!(
        truncation,
        Truncation {
            total: Extent { lines: 856, bytes: 8591 },
            head: Extent { lines: 25, bytes: 195 },
            omitted: Extent { lines: 800, bytes: 7126 },
            tail: Extent { lines: 31, bytes: 290 },
            cut: Extent { lines: 1, bytes: 980 },
            line_cap: 20,
            full: FullText::Artifact(id.clone()),
        }
    );
    let artifact = artifacts.open(&id).unwrap();
    assert_eq!(artifact.content(u64::MAX).unwrap().unwrap(), printed.as_bytes());
    // The numbers in the notice are those of the artifact.
    let page = artifact.lines(3..=4, 1000).unwrap();
    assert_eq!((page.text.as_str(), page.first, page.lines, page.next), ("line 3\nline 4\n", 3, 2, Some(5)));
}

#[test]
fn o5_an_artifact_that_cannot_be_created_is_reported() {
    let store = tempfile::tempdir().unwrap();
    let file = store.path().join("file");
    std::fs::write(&file, "").unwrap();
    let artifacts = Artifacts::new(file.join("artifacts"));
    let mut sink =
        OutputSink::with_artifacts(OutputLimits { head: 4, tail: 4, line: 4 }, Colours::Dropped, &artifacts);
    sink.write(Stream::Stdout, b"1\n2\n3\n4\n5\n6\n");
    let text = sink.finish().text.replace(store.path().to_str().unwrap(), "STORE");
    insta::assert_snapshot!(text, @r"
    1
    2
    [… 2 of 6 lines omitted: lines 3-4, 4 of 12 bytes. The full output could not be kept: could not create directory `STORE/file/artifacts`: Not a directory (os error 20)]
    5
    6
    ");
}

#[test]
fn o6_a_million_empty_lines() {
    let mut sink = OutputSink::new(OutputLimits::default(), Colours::Dropped);
    for _ in 0..1_000_000 {
        sink.write(Stream::Stdout, b"\n");
    }
    let truncation = sink.finish().truncation.unwrap();
    assert_eq!(truncation.total, Extent { lines: 1_000_000, bytes: 1_000_000 });
    assert_eq!(truncation.head.lines, 20 * 1024);
    assert_eq!(truncation.tail.lines, 30 * 1024);
}

#[test]
fn k29_programs_get_the_whole_text() {
    let text = format!("{}\n", "x".repeat(100_000)).repeat(20);
    let mut sink = OutputSink::new(OutputLimits::NONE, Colours::Dropped);
    sink.write(Stream::Stdout, text.as_bytes());
    assert!(sink.finish() == CapturedText { text, truncation: None });
}

#[test]
fn everything_shown_leaves_no_artifact() {
    let store = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(store.path());
    let mut sink = OutputSink::with_artifacts(OutputLimits::default(), Colours::Dropped, &artifacts);
    for step in 0..100_000 {
        sink.write(Stream::Stderr, format!("\r{step} of 100000").as_bytes());
    }
    assert_eq!(sink.finish(), CapturedText { text: "99999 of 100000".into(), truncation: None });
    assert_eq!(artifacts.list().unwrap(), []);
}

#[test]
fn what_the_sender_cut_is_not_called_the_full_output() {
    let folder = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(folder.path());
    let limits = OutputLimits { head: 40, tail: 40, line: 80 };
    let mut sink = OutputSink::with_artifacts(limits, Colours::Dropped, &artifacts);
    sink.write(Stream::Stdout, "line\n".repeat(100).as_bytes());
    sink.mark_incomplete("it has 9 characters");
    let captured = sink.finish();
    let truncation = captured.truncation.unwrap();
    let id = truncation.full.artifact().unwrap().clone();
    assert!(matches!(&truncation.full, FullText::Incomplete { .. }));
    let told = format!("What there is of it: {id}; it has 9 characters]");
    assert!(captured.text.contains(&told), "{}", captured.text);
    assert!(truncation.summary().ends_with(&told[..told.len() - 1]), "{}", truncation.summary());
}
