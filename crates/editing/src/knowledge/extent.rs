//! How much of a cell a caller has seen.

use cellwright_notebook::text::print_one;
use cellwright_notebook::{NotebookCell, line_runs};
use serde::{Deserialize, Serialize};

use crate::coverage::{SeenLines, ShownCell};
use crate::view::ViewForm;

/// How much of a cell's source a caller has seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SeenExtent {
    Whole,
    Lines {
        /// Lines of the marked text, counting the marker as line 0.
        marked: SeenLines,
        /// Lines of the cell's JSON, counting from 0.
        raw: SeenLines,
    },
}

/// Where the lines come from that a change gives a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineSource {
    /// The caller gave them.
    Caller,
    /// The history did. The caller may never have seen them.
    History,
}

impl SeenExtent {
    /// What a read showed of a cell.
    pub(crate) fn of(shown: &ShownCell) -> Self {
        let nothing = SeenLines::default;
        match shown.form {
            _ if shown.lines_seen.covers(0..=shown.last_line) => Self::Whole,
            ViewForm::Marked => Self::Lines { marked: shown.lines_seen.clone(), raw: nothing() },
            ViewForm::Raw => Self::Lines { marked: nothing(), raw: shown.lines_seen.clone() },
        }
    }

    /// What a read showed, together with what was seen before of a cell with the same source. Lines of the JSON only
    /// add up while the file is the same: outputs that came since move them.
    pub(crate) fn with(self, before: &Self, shown: &ShownCell, is_same_file: bool) -> Self {
        let (Self::Lines { mut marked, mut raw }, Self::Lines { marked: marked_before, raw: raw_before }) =
            (self, before)
        else {
            return Self::Whole;
        };
        marked.extend(marked_before);
        if is_same_file {
            raw.extend(raw_before);
        }
        let seen = match shown.form {
            ViewForm::Marked => &marked,
            ViewForm::Raw => &raw,
        };
        if seen.covers(0..=shown.last_line) { Self::Whole } else { Self::Lines { marked, raw } }
    }

    /// What the caller has seen of a cell after its own change of it.
    pub(crate) fn after_change(
        &self,
        before: &NotebookCell<'_>,
        after: &NotebookCell<'_>,
        new_lines: LineSource,
    ) -> Self {
        let printed = |cell: &NotebookCell<'_>| print_one(0, cell.kind(), &cell.source());
        let (before, after) = (printed(before), printed(after));
        let (old, new): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
        let all;
        let seen = match self {
            Self::Whole => {
                all = SeenLines::from(0..=old.len());
                &all
            }
            Self::Lines { marked, .. } => marked,
        };
        let mut marked = SeenLines::default();
        for run in line_runs(&old, &new) {
            if run.is_kept {
                marked.extend(&seen.moved(run.old, run.new.start));
            } else if new_lines == LineSource::Caller && (run.old.is_empty() || seen.covers_range(&run.old)) {
                marked.add_range(run.new);
            }
        }
        if marked.covers(0..=new.len().saturating_sub(1)) {
            return Self::Whole;
        }
        Self::Lines { marked, raw: SeenLines::default() }
    }
}
