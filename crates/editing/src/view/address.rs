//! What to read to see a line of a view again.

use super::NotebookView;

/// Where the lines of an output are in a view, counting from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OutputLines {
    pub(super) cell: usize,
    pub(super) output: usize,
    /// The line that describes it.
    pub(super) first: usize,
    /// The first line of its text.
    pub(super) text: usize,
    /// The line after it.
    pub(super) end: usize,
}

impl NotebookView {
    /// The address of a line: `#5:2` in the source of cell 5, whose marker is line 1; `#5.0:12` in its output 0, as it is
    /// read alone. `None` in views that show no outputs, whose lines are addresses themselves.
    pub fn address_of(&self, line: usize) -> Option<String> {
        if self.outputs.is_empty() {
            return None;
        }
        let at = self.outputs.partition_point(|output| output.end <= line);
        if let Some(output) = self.outputs.get(at).filter(|output| output.first <= line) {
            let name = format!("#{}.{}", output.cell, output.output);
            return Some(if line < output.text {
                name
            } else {
                format!("{name}:{}", line - output.text + 1)
            });
        }
        let at = self.cells.partition_point(|cell| *cell.lines.start() <= line);
        let cell = self.cells.get(at.checked_sub(1)?)?;
        Some(if cell.lines.contains(&line) {
            format!("#{}:{}", cell.index, line - cell.lines.start() + 1)
        } else {
            // An attachment, which is shown below the outputs.
            format!("#{}", cell.index)
        })
    }
}
