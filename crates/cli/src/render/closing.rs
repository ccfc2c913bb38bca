//! The last words on a call: what kept it from its end.

use cellwright_cell::with_causes;
use cellwright_session::{CallReport, CellReport, CellStatus, KernelFate, NotRun};

use crate::exit::PythonExit;

/// Lines on what went wrong, beyond what the cells themselves have shown. `titles` names the cells, `kernel` is what becomes of
/// the kernel if nothing happened to it.
pub(super) fn lines(report: &CallReport, titles: &[Option<String>], kernel: KernelFate) -> Vec<String> {
    // A kernel's last words have lines.
    let mut lines: Vec<_> =
        report.error.iter().map(|error| format!("error: {}", with_causes(error))).collect();
    lines.extend(match report.failed() {
        Some(failed) if matches!(failed.status, CellStatus::Error(_)) && titles.len() == 1 => None, // its traceback says it all
        Some(failed) => {
            let name = |_| match (titles.len(), &failed.title) {
                (1, _) => "the cell".to_owned(),
                (_, None) => format!("cell {}", failed.index + 1),
                (_, Some(title)) => format!("cell {} ({title})", failed.index + 1),
            };
            failure(report, failed, name, kernel)
        }
        None => interruption(report),
    });
    lines
}

fn interruption(report: &CallReport) -> Option<String> {
    let unrun = report.cells.iter().filter(|cell| cell.status == CellStatus::NotRun(NotRun::Stopped));
    match unrun.count() {
        0 => None,
        count if count == report.cells.len() => Some("interrupted before the code ran".to_owned()),
        1 => Some("interrupted: 1 later cell was not run".to_owned()),
        count => Some(format!("interrupted: {count} later cells were not run")),
    }
}

/// How the cell ended that ended the call, and what became of those after it.
pub(super) fn failure(
    report: &CallReport,
    failed: &CellReport,
    name: impl Fn(usize) -> String,
    kernel: KernelFate,
) -> Option<String> {
    if kernel == KernelFate::Ends
        && let CellStatus::Error(exception) = &failed.status
        && PythonExit::of(exception).is_some()
    {
        return None;
    }
    let how = format!("{} {}", name(failed.index), failed.status.ending(report.kernel_fate(kernel)));
    let skipped =
        report.cells.iter().filter(|cell| cell.status == CellStatus::NotRun(NotRun::AfterFailure)).count();
    Some(match skipped {
        0 => how,
        1 => format!("{how}; 1 later cell was not run"),
        count => format!("{how}; {count} later cells were not run"),
    })
}
