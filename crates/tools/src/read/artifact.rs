//! Stored outputs: `artifact://ID`.

use cellwright_editing::page;
use cellwright_notebook::Selector;
use cellwright_notebook::select::LineRange;
use cellwright_output::{Artifact, ArtifactId, Image, OutputLimits};
use serde_json::json;

use crate::reply::{ReplyPart, ToolFailure, ToolReply};
use crate::toolbox::ToolSettings;

/// What an artifact's address begins with.
pub(super) const ARTIFACT: &str = "artifact://";

/// Largest stored image that is looked at.
const LARGEST_IMAGE: u64 = 64 * 1024 * 1024;

pub(super) fn artifact(
    settings: &ToolSettings,
    path: &str,
    search: Option<&str>,
    budget: usize,
) -> Result<ToolReply, ToolFailure> {
    // The scheme has a colon of its own, so the selector is looked for behind it.
    let (id, selector) = Selector::split(&path[ARTIFACT.len()..]);
    let artifact = settings.artifacts.open(&id.parse::<ArtifactId>()?)?;
    let structured = json!({ "artifact": artifact.id.to_string(), "kind": artifact.kind.to_string(), "bytes": artifact.bytes });
    if !artifact.kind.is_text() {
        let image = artifact.content(LARGEST_IMAGE)?.and_then(Image::new);
        let image = image.ok_or_else(|| {
            ToolFailure::new(format!(
                "{} is neither text nor an image; it is at {}",
                artifact.id,
                artifact.path.display()
            ))
        })?;
        return Ok(ToolReply {
            content: vec![settings.bounded(&image)],
            structured: Some(structured),
            is_error: false,
        });
    }
    let ranges = match &selector.lines[..] {
        [] => vec![LineRange::FromTo(1, None)],
        ranges => ranges.to_vec(),
    };
    if let Some(search) = search {
        let pattern = page::pattern(search)?;
        let (mut hits, mut next, mut long_lines) = (Vec::new(), None, 0);
        for range in ranges {
            let wanted = match range {
                LineRange::FromTo(from, to) => from as u64..=to.map_or(u64::MAX, |to| to as u64),
                LineRange::Within { line, .. } => line as u64..=line as u64,
                LineRange::Last(count) => {
                    (line_count(&artifact)? + 1).saturating_sub(count as u64)..=u64::MAX
                }
            };
            let found = artifact.search(wanted, page::HITS - hits.len(), |line| pattern.is_match(line))?;
            hits.extend(found.hits.into_iter().map(|hit| (to_number(hit.line), 0, hit.text)));
            long_lines += found.long_lines;
            next = found.next;
            if next.is_some() {
                break;
            }
        }
        let found = page::found(&artifact.id.to_string(), hits.into_iter(), next.map(to_number), &pattern);
        let mut reply = ToolReply::text(found.text());
        found.notes.into_iter().for_each(|note| reply.note(note));
        if long_lines > 0 {
            reply.note(format!(
                "[{long_lines} lines are so long that only their first mebibyte was searched]"
            ));
        }
        return Ok(reply.with(structured));
    }
    let mut reply = ToolReply::default();
    for range in ranges {
        match range {
            LineRange::FromTo(from, to) => {
                let page = artifact.lines(from as u64..=to.map_or(u64::MAX, |to| to as u64), budget)?;
                if page.lines == 0 {
                    return Err(ToolFailure::new(format!("{} has no line {from}", artifact.id)));
                }
                reply.content.push(ReplyPart::Text(page.text));
                let asked_for_more = to.is_none_or(|to| page.next.is_some_and(|next| next <= to as u64));
                if let Some(next) = page.next.filter(|_| asked_for_more) {
                    reply.note(format!(
                        "[lines {}-{}; go on with {}:{next}-]",
                        page.first,
                        next - 1,
                        artifact.id
                    ));
                }
            }
            LineRange::Within { line, byte } => {
                let page = artifact.lines(line as u64..=line as u64, usize::MAX)?;
                let rest = page.text.get(page.text.floor_char_boundary(byte - 1)..).unwrap_or_default();
                let shown = &rest[..rest.floor_char_boundary(budget)];
                reply.content.push(ReplyPart::Text(shown.to_owned()));
                if shown.len() < rest.len() {
                    let next = byte + shown.len();
                    reply.note(format!("[go on with {}:{line}@{next}]", artifact.id));
                }
            }
            LineRange::Last(count) => {
                let limits = OutputLimits { head: 0, tail: budget, line: budget };
                let captured = artifact.ends(limits)?;
                let tail = captured.text.lines().rev().take(count).collect::<Vec<_>>();
                reply
                    .content
                    .push(ReplyPart::Text(tail.into_iter().rev().collect::<Vec<_>>().join("\n") + "\n"));
            }
        }
    }
    Ok(reply.with(structured))
}

fn line_count(artifact: &Artifact) -> Result<u64, ToolFailure> {
    let captured = artifact.ends(OutputLimits::default())?;
    let shown = captured.text.lines().count() as u64;
    Ok(captured.truncation.map_or(shown, |truncation| truncation.total.lines))
}

fn to_number(line: u64) -> usize {
    usize::try_from(line).unwrap_or(usize::MAX)
}
