//! Several texts in one reply: short ones whole, long ones with equal shares of the room there is.

use std::borrow::Cow;

use cellwright_cell::Stream;
use cellwright_output::{CapturedText, Colours, OutputLimits, OutputSink, fair_share};

use crate::toolbox::{CallContext, ToolSettings};

/// The texts within what one reply shows, the notices that say what is missing not counted. What is left out of a text that was
/// whole goes to an artifact, as it does when a text is too long by itself.
pub(crate) fn shared<'a>(
    settings: &ToolSettings,
    context: &CallContext,
    texts: &[&'a CapturedText],
) -> Vec<Cow<'a, CapturedText>> {
    let budget = settings.budget(context);
    // Each already keeps within the settings' budget. Only its notice comes on top.
    let most = settings.limits.head.saturating_add(settings.limits.tail);
    let lengths: Vec<_> = texts.iter().map(|text| text.text.len().min(most)).collect();
    let share = fair_share(&lengths, budget);
    let lines: Vec<_> = texts.iter().map(|text| text.text.lines().count()).collect();
    let line_share = fair_share(&lines, context.room.lines);
    texts
        .iter()
        .zip(lengths.iter().zip(&lines))
        .map(|(text, (length, lines))| {
            if *length <= share && *lines <= line_share {
                return Cow::Borrowed(*text);
            }
            let (head, tail) = if *lines > line_share {
                ends(&text.text, line_share, share)
            } else {
                (share * 2 / 5, share - share * 2 / 5)
            };
            cut(settings, text, OutputLimits { head, tail, ..settings.limits })
        })
        .collect()
}

/// How many bytes the first and the last lines of a text have, if there are at most so many lines and bytes.
fn ends(text: &str, lines: usize, bytes: usize) -> (usize, usize) {
    let first = lines * 2 / 5;
    let length = |lines: &mut dyn Iterator<Item = &str>| lines.map(str::len).sum::<usize>();
    let head = length(&mut text.split_inclusive('\n').take(first));
    let tail = length(&mut text.split_inclusive('\n').rev().take(lines - first));
    (head.min(bytes * 2 / 5), tail.min(bytes - bytes * 2 / 5))
}

fn cut<'a>(settings: &ToolSettings, text: &'a CapturedText, limits: OutputLimits) -> Cow<'a, CapturedText> {
    let Some(truncation) = &text.truncation else {
        let mut sink = OutputSink::with_artifacts(limits, Colours::Dropped, &settings.artifacts);
        sink.write(Stream::Stdout, text.text.as_bytes());
        return Cow::Owned(sink.finish());
    };
    let stored = truncation.full.artifact().and_then(|id| settings.artifacts.open(id).ok());
    match stored.and_then(|artifact| artifact.ends_of(limits, truncation.full.clone()).ok()) {
        Some(ends) => Cow::Owned(ends),
        // What it shows cannot be had again, so it stays.
        None => Cow::Borrowed(text),
    }
}
