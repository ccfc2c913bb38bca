//! What holds for every output, however it arrives and whatever the limits are.

use std::ops::RangeInclusive;

use cellwright_cell::Stream;
use cellwright_output::{Artifacts, CapturedText, Colours, OutputLimits, OutputSink};
use proptest::prelude::*;

use crate::printed::printed;

/// Some output many times over, so that the sink's batches and the artifact's buffer fill.
fn much_printed() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec((printed(), 1_usize..300), 1..4)
        .prop_map(|pieces| pieces.iter().flat_map(|(piece, times)| piece.repeat(*times)).collect())
}

fn limits() -> impl Strategy<Value = OutputLimits> {
    (0_usize..600, 0_usize..600, 1_usize..200).prop_map(|(head, tail, line)| OutputLimits {
        head,
        tail,
        line,
    })
}

fn colours() -> impl Strategy<Value = Colours> {
    prop_oneof![Just(Colours::Kept), Just(Colours::Dropped)]
}

fn captured(bytes: &[u8], limits: OutputLimits, colours: Colours) -> CapturedText {
    let mut sink = OutputSink::new(limits, colours);
    sink.write(Stream::Stdout, bytes);
    sink.finish()
}

/// Chunk lengths, used over and over.
fn chunks<'a>(mut bytes: &'a [u8], lengths: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    lengths.iter().cycle().map_while(move |length| {
        let (chunk, rest) = bytes.split_at((*length).min(bytes.len()));
        bytes = rest;
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// A column that the cursor does not get past in this line: by what it prints, a tab as eight, and by the numbers in its
/// escape sequences.
fn reach(line: &[u8]) -> usize {
    let printed = line.iter().map(|byte| if *byte == b'\t' { 8 } else { 1 }).sum();
    let numbers = line
        .split(|byte| !byte.is_ascii_digit())
        .filter_map(|digits| str::from_utf8(digits).ok()?.parse::<usize>().ok());
    numbers.fold(printed, usize::saturating_add)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn how_it_was_split_does_not_matter(
        bytes in prop_oneof![4 => printed(), 1 => much_printed()],
        lengths in prop::collection::vec(1_usize..40, 1..8),
        limits in limits(), colours in colours(),
    ) {
        let mut sink = OutputSink::new(limits, colours);
        for chunk in chunks(&bytes, &lengths) {
            sink.write(Stream::Stdout, chunk);
        }
        prop_assert_eq!(sink.finish(), captured(&bytes, limits, colours));
    }

    #[test]
    fn looking_at_it_meanwhile_does_not_matter(
        bytes in printed(), cut in any::<prop::sample::Index>(), limits in limits(),
    ) {
        let cut = cut.index(bytes.len() + 1);
        let mut sink = OutputSink::new(limits, Colours::Dropped);
        sink.write(Stream::Stdout, &bytes[..cut]);
        sink.snapshot();
        sink.write(Stream::Stdout, &bytes[cut..]);
        prop_assert_eq!(sink.finish(), captured(&bytes, limits, Colours::Dropped));
    }

    #[test]
    fn head_and_tail_are_the_beginning_and_the_end_and_the_numbers_add_up(
        bytes in much_printed(), limits in limits(), colours in colours(),
    ) {
        let CapturedText { text, truncation } = captured(&bytes, limits, colours);
        // The same output with every line shown, each cut at the same length.
        let line_cap = truncation.as_ref().map_or(limits.line, |truncation| truncation.line_cap);
        let whole = captured(&bytes, OutputLimits { line: line_cap, ..OutputLimits::NONE }, colours);
        let all_cut = whole.truncation.as_ref().map_or(0, |truncation| truncation.cut.bytes);
        let presented = match &whole.truncation {
            Some(truncation) => whole.text.strip_suffix(&format!("{truncation}\n")).unwrap(),
            None => &whole.text,
        };
        let Some(truncation) = truncation else {
            prop_assert_eq!(&text, presented);
            return Ok(());
        };
        let notice = format!("{truncation}\n");
        let (head, tail) = text.split_once(&notice).unwrap();
        prop_assert!(head.len() + tail.len() <= limits.head + limits.tail + 1);
        if truncation.omitted.lines == 0 {
            prop_assert_eq!(head.trim_end_matches('\n'), presented.trim_end_matches('\n'));
        } else {
            prop_assert!(head.len() <= limits.head);
            prop_assert!(presented.starts_with(head));
            // Before a notice at the end an unfinished last line was ended.
            prop_assert!(presented.ends_with(tail) || presented.trim_end_matches('\n').ends_with(tail));
        }
        let (total, head, tail, omitted) = (truncation.total, truncation.head, truncation.tail, truncation.omitted);
        prop_assert_eq!(total.lines, head.lines + omitted.lines + tail.lines);
        prop_assert_eq!(total.bytes, head.bytes + omitted.bytes + tail.bytes + truncation.cut.bytes);
        prop_assert_eq!(total.lines, presented.lines().count() as u64);
        if let Some(whole) = whole.truncation {
            prop_assert_eq!(total, whole.total);
            prop_assert!(truncation.cut.bytes <= all_cut);
        } else {
            prop_assert_eq!(total.bytes, presented.len() as u64);
        }
    }

    #[test]
    fn the_artifact_has_every_byte_and_the_omitted_lines_under_their_numbers(
        bytes in much_printed(), limits in limits(), length in 1_usize..5000,
    ) {
        let store = tempfile::tempdir().unwrap();
        let artifacts = Artifacts::new(store.path());
        let mut sink = OutputSink::with_artifacts(limits, Colours::Dropped, &artifacts);
        for chunk in bytes.chunks(length) {
            sink.write(Stream::Stdout, chunk);
        }
        let Some(truncation) = sink.finish().truncation else {
            prop_assert_eq!(artifacts.list().unwrap(), vec![]);
            return Ok(());
        };
        let artifact = artifacts.open(truncation.full.artifact().unwrap()).unwrap();
        prop_assert_eq!(artifact.content(u64::MAX).unwrap().unwrap(), bytes.clone());
        let omitted: RangeInclusive<u64> =
            truncation.head.lines + 1..=truncation.head.lines + truncation.omitted.lines;
        let page = artifact.lines(omitted, usize::MAX / 2).unwrap();
        prop_assert_eq!(page.lines, truncation.omitted.lines);
        let whole = captured(&bytes, OutputLimits::NONE, Colours::Dropped).text;
        prop_assert!(whole.contains(&page.text));
        // Past the cap the sink does not follow the cursor byte by byte.
        if bytes.split(|byte| *byte == b'\n').all(|line| reach(line) <= truncation.line_cap) {
            prop_assert_eq!(page.text.len() as u64, truncation.omitted.bytes);
        }
    }
}
