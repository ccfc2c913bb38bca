//! Marker lines, and lines that look like them.
//!
//! `# %% [code] cell:3` starts a cell. A line that *looks* like a marker (`#%%`, `# %% [Code]`, a marker with a
//! trailing space) is never one and never silently text either: inside a cell such a line is
//! written with one `%` more, so that a near miss by a person or model can be recognised and refused.

use std::ops::Range;

use crate::cell::CellKind;

/// How every marker starts. Sources never show it at the start of a line.
pub(crate) const SHOWN: &str = "# %% [";

/// What a line of marked text is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MarkedLine<'a> {
    /// Starts a cell.
    Marker { kind: CellKind, cell: Option<usize> },
    /// A line of a cell's source that was written with one `%` more; this is the line without it.
    Escaped { before: &'a str, after: &'a str },
    /// Looks like a marker but is not one.
    NearMiss(MarkerMiss),
    /// A line of a cell's source.
    Text,
}

/// Why a line is not the marker it looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MarkerMiss {
    /// It was printed by a view that shows outputs.
    Output,
    /// It ends in a carriage return.
    CarriageReturn,
    /// Anything else.
    Other,
}

/// The marker line of a cell, without its line end.
pub(crate) fn marker(kind: CellKind, cell: usize) -> String {
    format!("# %% [{kind}] cell:{cell}")
}

/// Classifies one line of marked text (without its `\n`).
pub(crate) fn classify(line: &str) -> MarkedLine<'_> {
    let Some(percents) = percent_run(line) else {
        return MarkedLine::Text;
    };
    if percents.len() > 2 {
        return MarkedLine::Escaped { before: &line[..percents.start], after: &line[percents.start + 1..] };
    }
    match exact(line) {
        Some((kind, cell)) => MarkedLine::Marker { kind, cell },
        None if line.starts_with("# %% [output") || line.starts_with("# %% [attachment") => {
            MarkedLine::NearMiss(MarkerMiss::Output)
        }
        None if line.strip_suffix('\r').is_some_and(|line| exact(line).is_some()) => {
            MarkedLine::NearMiss(MarkerMiss::CarriageReturn)
        }
        None => MarkedLine::NearMiss(MarkerMiss::Other),
    }
}

/// Where the marker lines of a text are, without their line ends.
pub(crate) fn lines(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    memchr::memmem::find_iter(bytes, SHOWN)
        .filter(|at| *at == 0 || bytes[at - 1] == b'\n')
        .map(|at| at..memchr::memchr(b'\n', &bytes[at..]).map_or(text.len(), |length| at + length))
        .filter(|line| matches!(classify(&text[line.clone()]), MarkedLine::Marker { .. }))
        .collect()
}

/// The cell that a marker line names.
pub(crate) fn cell_in(line: &str) -> Option<usize> {
    match classify(line) {
        MarkedLine::Marker { cell, .. } => cell,
        MarkedLine::Escaped { .. } | MarkedLine::NearMiss(_) | MarkedLine::Text => None,
    }
}

/// Where a source line must gain a `%` to survive as text.
pub(crate) fn escape_at(line: &str) -> Option<usize> {
    percent_run(line).map(|percents| percents.start)
}

/// The run of two or more `%` of a line that looks like a marker: a comment that starts with the run, which is
/// followed by white space, a bracket or nothing. (`# %%time` is a commented magic, and plain text.)
fn percent_run(line: &str) -> Option<Range<usize>> {
    let blank = [' ', '\t'];
    let comment = line.trim_start_matches(blank).strip_prefix('#')?.trim_start_matches(blank);
    let after = comment.trim_start_matches('%');
    let start = line.len() - comment.len();
    let run = start..line.len() - after.len();
    let looks_like_one = after.chars().next().is_none_or(|next| next.is_whitespace() || next == '[');
    (run.len() >= 2 && looks_like_one).then_some(run)
}

/// `# %% [kind]` or `# %% [kind] cell:N`, to the letter.
fn exact(line: &str) -> Option<(CellKind, Option<usize>)> {
    let (kind, rest) = line.strip_prefix(SHOWN)?.split_once(']')?;
    let kind = kind.parse().ok()?;
    if rest.is_empty() {
        return Some((kind, None));
    }
    let digits = rest.strip_prefix(" cell:")?;
    let number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    number.then(|| digits.parse().ok()).flatten().map(|cell| (kind, Some(cell)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_form_is_a_marker() {
        let marker = |kind, cell| MarkedLine::Marker { kind, cell };
        assert_eq!(classify("# %% [code] cell:12"), marker(CellKind::Code, Some(12)));
        assert_eq!(classify("# %% [raw]"), marker(CellKind::Raw, None));
        for miss in [
            "#%%",
            "# %%",
            "#%% [code]",
            "# %% [Code]",
            "# %% [code] ",
            " # %% [code]",
            "#  %% [code]",
            "# %%[code]",
            "# %% [code] cell:",
            "# %% [code] cell:x",
            "# %% [code] cell:+1",
            "# %% title",
            "# %%\t[code]",
            "# %% [sql]",
            "# %% [code] cell:99999999999999999999999",
        ] {
            assert_eq!(classify(miss), MarkedLine::NearMiss(MarkerMiss::Other), "{miss:?}");
        }
        assert_eq!(classify("# %% [code]\r"), MarkedLine::NearMiss(MarkerMiss::CarriageReturn));
        assert_eq!(classify("# %% [output 0] stream"), MarkedLine::NearMiss(MarkerMiss::Output));
        assert_eq!(classify("# %% [attachment a.png] image/png"), MarkedLine::NearMiss(MarkerMiss::Output));
        for text in ["", "x", "# %%time", "## %% [code]", "# % [code]", "%% [code]", "x # %% [code]"] {
            assert_eq!(classify(text), MarkedLine::Text, "{text:?}");
        }
    }
}
