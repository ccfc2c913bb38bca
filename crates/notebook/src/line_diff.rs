//! What changed between two texts, line by line.
//!
//! The one place that compares lines, and it compares numbers that stand for them: the algorithm is generic, and would be
//! compiled again for every kind of text and for every crate that called it.

use std::{
    collections::HashMap,
    ops::Range,
    time::{Duration, Instant},
};

use similar::{
    DiffOp, DiffTag,
    algorithms::{Capture, Compact, Replace, myers},
    group_diff_ops,
};

/// A run of lines that both texts have, or of lines of one that are now those of the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineRun {
    /// Which lines of the old text.
    pub old: Range<usize>,
    /// Which lines of the new text.
    pub new: Range<usize>,
    /// Whether they are the same lines.
    pub is_kept: bool,
}

/// All runs, in order. The same two texts give the same runs.
pub fn line_runs(old: &[&str], new: &[&str]) -> Vec<LineRun> {
    operations(old, new, None).iter().map(run).collect()
}

/// Runs that changed, with up to `context` kept lines around them, those that are near each other together. After `patience`
/// more lines than necessary may be said to have changed.
pub fn line_hunks(old: &[&str], new: &[&str], context: usize, patience: Duration) -> Vec<Vec<LineRun>> {
    let operations = operations(old, new, Some(Instant::now() + patience));
    group_diff_ops(operations, context).iter().map(|hunk| hunk.iter().map(run).collect()).collect()
}

fn run(operation: &DiffOp) -> LineRun {
    let (tag, old, new) = operation.as_tag_tuple();
    LineRun { old, new, is_kept: tag == DiffTag::Equal }
}

fn operations(old: &[&str], new: &[&str], deadline: Option<Instant>) -> Vec<DiffOp> {
    let mut numbers = HashMap::new();
    let mut number = |line| {
        let next = numbers.len();
        *numbers.entry(line).or_insert(next)
    };
    let old: &[usize] = &old.iter().map(|line| number(*line)).collect::<Vec<_>>();
    let new: &[usize] = &new.iter().map(|line| number(*line)).collect::<Vec<_>>();
    let mut hook = Compact::new(Replace::new(Capture::new()), old, new);
    match myers::diff_deadline(&mut hook, old, 0..old.len(), new, 0..new.len(), deadline) {
        Ok(()) => hook.into_inner().into_inner().into_ops(),
        Err(never) => match never {},
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(old: Range<usize>, new: Range<usize>, is_kept: bool) -> LineRun {
        LineRun { old, new, is_kept }
    }

    #[test]
    fn lines_are_kept_replaced_added_and_removed() {
        let runs = line_runs(&["a", "b", "c", "d"], &["a", "x", "c", "d", "e"]);
        let expected =
            [run(0..1, 0..1, true), run(1..2, 1..2, false), run(2..4, 2..4, true), run(4..4, 4..5, false)];
        assert_eq!(runs, expected);
        assert_eq!(line_runs(&[], &["a"]), [run(0..0, 0..1, false)]);
        assert_eq!(line_runs(&[], &[]), []);
    }

    #[test]
    fn hunks_have_a_few_lines_around_them() {
        let old: Vec<_> = (0..40).map(|n| n.to_string()).collect();
        let old: Vec<_> = old.iter().map(String::as_str).collect();
        let mut new = old.clone();
        new[10] = "x";
        new.remove(30);
        let hunks = line_hunks(&old, &new, 2, Duration::from_secs(10));
        let expected = [
            vec![run(8..10, 8..10, true), run(10..11, 10..11, false), run(11..13, 11..13, true)],
            vec![run(28..30, 28..30, true), run(30..31, 30..30, false), run(31..33, 30..32, true)],
        ];
        assert_eq!(hunks, expected);
    }
}
