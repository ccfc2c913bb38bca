//! Pages: what fits, what was shown whole, and how to go on.

use cellwright_editing::page::{self, TextPage};
use cellwright_notebook::select::LineRange::{FromTo, Last, Within};
use cellwright_notebook::select::{LineRange, Selector};
use proptest::prelude::*;

fn page(text: &str, ranges: &[LineRange], budget: usize) -> TextPage {
    page::lines("a.txt", text, ranges, budget).unwrap()
}

#[track_caller]
fn check(page: &TextPage, text: &str, whole: &[(usize, usize)], notes: &[&str]) {
    assert_eq!(page.text(), text);
    let lines: Vec<_> = page.whole_lines().into_iter().map(|lines| (*lines.start(), *lines.end())).collect();
    assert_eq!(lines, whole);
    assert_eq!(page.notes, notes);
}

#[test]
fn a_page_that_holds_everything_says_nothing() {
    check(&page("1\n2\n", &[], 100), "1\n2\n", &[(1, 2)], &[]);
    check(&page("", &[], 100), "", &[], &[]);
    check(&page("1\n2\n3\n", &[FromTo(2, None)], 100), "2\n3\n", &[(2, 3)], &["[lines 2-3 of 3]"]);
}

#[test]
fn a_page_that_is_cut_vouches_for_whole_lines_only() {
    let text = "one\ntwo\nthree\nfour\n";
    check(&page(text, &[], 10), "one\ntwo\n", &[(1, 2)], &["[lines 1-2 of 4; go on with a.txt:3-]"]);
    check(
        &page(text, &[FromTo(1, Some(3))], 10),
        "one\ntwo\n",
        &[(1, 2)],
        &["[lines 1-2 of 4; go on with a.txt:3]"],
    );
    let several = page(text, &[FromTo(1, Some(2)), FromTo(4, None), FromTo(3, Some(3))], 14);
    check(&several, "[line 1]\none\ntwo\n[line 4]\nfour\n", &[(1, 2), (4, 4)], &["[go on with a.txt:3]"]);
}

#[test]
fn a_line_longer_than_the_page_is_read_to_its_end_with_true_numbers() {
    let text = format!("short\n{}\nlast\n", "é".repeat(15));
    let first = page(&text, &[FromTo(2, None)], 20);
    check(
        &first,
        &"é".repeat(10),
        &[],
        &["[line 2 is cut: bytes 1-20 of 30 are shown; go on with a.txt:2@21]"],
    );
    let rest = page(&text, &[Within { line: 2, byte: 21 }], 20);
    check(&rest, "ééééé\n", &[], &["[the end of line 2 of 3; go on with a.txt:3-]"]);
    let end = page("aaaa", &[Within { line: 1, byte: 3 }], 20);
    check(&end, "aa", &[], &["[the end of line 1, the last]"]);
}

#[test]
fn search_finds_text_far_inside_a_long_line_and_shows_it() {
    let text = format!("x\n{}needle{}\nneedle\n", "a".repeat(400_000), "b".repeat(1000));
    let found = page::search("a.txt", &text, &[], &page::pattern("need+le").unwrap()).unwrap();
    let shown = found.text();
    let lines: Vec<_> = shown.lines().collect();
    assert!(lines[0].starts_with("2@399873: …aaa") && lines[0].contains("needle"), "{}", lines[0]);
    assert_eq!(lines[1], "3: needle");
    assert_eq!(found.whole_lines(), [3..=3]);
    let from = Selector::parse(":2@399873").unwrap().lines;
    assert_eq!(page(&text, &from, 200).parts[0].text.find("needle"), Some(128));
}

#[test]
fn search_keeps_to_its_lines_and_says_how_to_go_on() {
    let text = "hit\n".repeat(page::HITS + 5);
    let pattern = page::pattern("hit").unwrap();
    let found = page::search("a.txt", &text, &[], &pattern).unwrap();
    assert_eq!(found.notes, ["[the first 200 matches; search on with a.txt:201-]"]);
    let found = page::search("a.txt", &text, &[Last(3)], &pattern).unwrap();
    assert_eq!(found.text(), "203: hit\n204: hit\n205: hit\n");
    assert_eq!(page::search("a.txt", "", &[], &pattern).unwrap().text(), "no line matches");
    assert_eq!(
        page::pattern("a(").unwrap_err().to_string(),
        r"`search` is not a regular expression: a(; to find it literally, use a\("
    );
}

proptest! {
    /// Following the notes shows every byte once, in order, whatever the budget; and the lines that count as seen
    /// are those that were shown whole on one page.
    #[test]
    fn following_the_notes_reads_the_whole_text(
        lines in prop::collection::vec("[a-zé☕]{0,30}", 0..12),
        ended: bool,
        budget in 0usize..60,
    ) {
        let mut text = lines.join("\n");
        if ended && !text.is_empty() {
            text.push('\n');
        }
        let (mut ranges, mut read) = (Vec::new(), String::new());
        for _ in 0..1000 {
            let shown = page(&text, &ranges, budget);
            read.extend(shown.parts.iter().map(|part| part.text.as_str()));
            let all: Vec<_> = text.split_inclusive('\n').collect();
            let whole: String = shown.whole_lines().into_iter().flatten().map(|line| all[line - 1]).collect();
            let uncut: String = shown.parts.iter().filter(|p| p.cut.is_none()).map(|p| p.text.as_str()).collect();
            prop_assert_eq!(whole, uncut);
            prop_assert!(shown.parts.iter().map(|part| part.text.len()).sum::<usize>() <= budget.max(4) + 1);
            let next = shown.notes.iter().find_map(|note| note.split_once("go on with a.txt")).map(|(_, to)| to);
            let Some(next) = next.and_then(|to| to.strip_suffix(']')) else { break };
            ranges = Selector::parse(next).unwrap().lines;
        }
        prop_assert_eq!(read, text);
    }
}
