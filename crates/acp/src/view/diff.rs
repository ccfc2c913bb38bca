//! A change to a file, as lines added and removed.

use std::fmt::Write as _;
use std::time::Duration;

use agent_client_protocol_schema::v1::Diff;
use cellwright_notebook::line_hunks;

use super::html::{PRE, escape};

/// The most lines of one diff that are shown.
const SHOWN: usize = 1_000;
/// Lines shown around those that changed.
const CONTEXT: usize = 3;
/// After this time, a rougher diff is good enough.
const PATIENCE: Duration = Duration::from_millis(300);

/// A diff ready to be shown.
#[derive(Debug)]
pub(crate) struct LineDiff {
    path: String,
    is_new: bool,
    added: usize,
    removed: usize,
    /// `None` is a gap between hunks.
    lines: Vec<Option<(LineFate, String)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineFate {
    Kept,
    Added,
    Removed,
}

impl LineDiff {
    pub(crate) fn of(diff: &Diff) -> Self {
        let old = diff.old_text.as_deref().unwrap_or_default();
        let old: Vec<_> = old.split_inclusive('\n').collect();
        let new: Vec<_> = diff.new_text.split_inclusive('\n').collect();
        let (mut added, mut removed, mut lines) = (0, 0, Vec::new());
        let shown = |fate, line: &&str| Some((fate, line.strip_suffix('\n').unwrap_or(line).to_owned()));
        for (n, hunk) in line_hunks(&old, &new, CONTEXT, PATIENCE).into_iter().enumerate() {
            if n > 0 {
                lines.push(None);
            }
            for run in hunk {
                let (old, new) = (&old[run.old], &new[run.new]);
                if run.is_kept {
                    lines.extend(new.iter().map(|line| shown(LineFate::Kept, line)));
                    continue;
                }
                removed += old.len();
                added += new.len();
                lines.extend(old.iter().map(|line| shown(LineFate::Removed, line)));
                lines.extend(new.iter().map(|line| shown(LineFate::Added, line)));
            }
        }
        let path = diff.path.display().to_string();
        Self { path, is_new: diff.old_text.is_none(), added, removed, lines }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The file, and how many lines are added and removed.
    pub(crate) fn heading(&self) -> String {
        let new = if self.is_new { " (new file)" } else { "" };
        format!("{}{new} +{} \u{2212}{}", self.path, self.added, self.removed)
    }

    fn hidden(&self) -> Option<String> {
        let hidden = self.lines.len().saturating_sub(SHOWN);
        (hidden > 0).then(|| format!("… {hidden} more lines of this diff are not shown"))
    }

    fn shown(&self) -> impl Iterator<Item = Option<(&'static str, LineFate, &str)>> {
        self.lines.iter().take(SHOWN).map(|line| {
            line.as_ref().map(|(fate, text)| {
                let sign = match fate {
                    LineFate::Added => "+",
                    LineFate::Removed => "-",
                    LineFate::Kept => " ",
                };
                (sign, *fate, text.as_str())
            })
        })
    }

    pub(super) fn html(&self) -> String {
        let mut out = format!(
            "<div style=\"font-size:12px;margin-top:4px\"><code>{}</code></div><pre style=\"{PRE};padding:4px 0\">",
            escape(&self.heading())
        );
        for line in self.shown() {
            let (sign, colour, text) = match line {
                Some((sign, LineFate::Added, text)) => (sign, "background:rgba(46,160,67,.18);", text),
                Some((sign, LineFate::Removed, text)) => (sign, "background:rgba(248,81,73,.18);", text),
                Some((sign, LineFate::Kept, text)) => (sign, "", text),
                None => ("", "opacity:.5;", "⋯"),
            };
            write!(out, "<span style=\"display:block;{colour}padding:0 8px\">{sign} {}</span>", escape(text))
                .expect("strings take everything");
        }
        out.push_str("</pre>");
        if let Some(hidden) = self.hidden() {
            write!(out, "<div style=\"opacity:.75\">{hidden}</div>").expect("strings take everything");
        }
        out
    }

    pub(crate) fn plain(&self) -> String {
        let mut out = self.heading();
        for line in self.shown() {
            let (sign, text) = line.map_or((" ", "…"), |(sign, _, text)| (sign, text));
            write!(out, "\n{sign} {text}").expect("strings take everything");
        }
        out.extend(self.hidden().map(|hidden| format!("\n{hidden}")));
        out
    }
}
