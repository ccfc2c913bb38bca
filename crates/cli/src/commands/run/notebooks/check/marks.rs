//! What a cell says about its check: a comment or a tag.

use cellwright_notebook::NotebookCell;

/// What the marks of a cell mean.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CheckMarks {
    /// Whether its outputs are compared, if it says.
    pub(super) is_compared: Option<bool>,
    /// An exception is an output like any other.
    pub(super) may_raise: bool,
    /// It is not run.
    pub(super) is_skipped: bool,
}

impl CheckMarks {
    /// The marks of a cell. What a comment says overrides a tag.
    pub(super) fn of(cell: &NotebookCell<'_>) -> Self {
        let mut marks = Self::default();
        for tag in cell.tags() {
            if tag == "raises-exception" {
                marks.may_raise = true;
            } else if tag.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') {
                marks.add(&tag.to_ascii_uppercase().replace('-', "_"));
            }
        }
        for line in cell.source().lines() {
            if let Some(comment) = line.trim().strip_prefix('#') {
                marks.add(comment.trim_start_matches('#').trim());
            }
        }
        marks
    }

    fn add(&mut self, mark: &str) {
        match mark {
            "NBVAL_IGNORE_OUTPUT" | "PYTEST_VALIDATE_IGNORE_OUTPUT" => self.is_compared = Some(false),
            "NBVAL_CHECK_OUTPUT" => self.is_compared = Some(true),
            "NBVAL_RAISES_EXCEPTION" => self.may_raise = true,
            "NBVAL_SKIP" => self.is_skipped = true,
            _ => {}
        }
    }
}
