//! Several texts in one reply: short ones whole, long ones with equal shares of the room there is.

use std::borrow::Cow;

use cellwright_cell::Stream;
use cellwright_output::{CapturedText, Colours, OutputLimits, OutputSink, fair_share};

use crate::toolbox::ToolSettings;

/// The texts within what one reply shows, the notices that say what is missing not counted. What is left out of a text that was
/// whole goes to an artifact, as it does when a text is too long by itself.
pub(crate) fn shared<'a>(settings: &ToolSettings, texts: &[&'a CapturedText]) -> Vec<Cow<'a, CapturedText>> {
    let OutputLimits { head, tail, .. } = settings.limits;
    let budget = head.saturating_add(tail);
    // Each keeps within the budget by itself already; what it has more is its notice.
    let lengths: Vec<_> = texts.iter().map(|text| text.text.len().min(budget)).collect();
    let share = fair_share(&lengths, budget);
    let limits = OutputLimits { head: share * 2 / 5, tail: share - share * 2 / 5, ..settings.limits };
    let texts = texts.iter().zip(lengths);
    texts
        .map(|(text, length)| if length > share { cut(settings, text, limits) } else { Cow::Borrowed(*text) })
        .collect()
}

fn cut<'a>(settings: &ToolSettings, text: &'a CapturedText, limits: OutputLimits) -> Cow<'a, CapturedText> {
    let Some(truncation) = &text.truncation else {
        let mut sink = OutputSink::with_artifacts(limits, Colours::Dropped, &settings.artifacts);
        sink.write(Stream::Stdout, text.text.as_bytes());
        return Cow::Owned(sink.finish());
    };
    let stored = truncation.full.artifact().and_then(|id| settings.artifacts.open(id).ok());
    match stored.and_then(|artifact| artifact.ends(limits).ok()) {
        Some(ends) => Cow::Owned(ends),
        // What it shows cannot be had again, so it stays.
        None => Cow::Borrowed(text),
    }
}
