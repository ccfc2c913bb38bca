//! What an agent should know of the notebook with its next prompt: what the person did since its last turn.
//!
//! Pure. [`NotebookMoment`] is the notebook now, [`KnownNotebook`] what an agent has been told of it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;

use agent_client_protocol_schema::v1::SessionId;
use cellwright_kernel::KernelVariable;

use crate::cell_record::shortened;

/// The most bytes of all of it. That is about 3,000 tokens.
const BUDGET: usize = 12 << 10;

/// The most bytes of one cell: of its source, and of what it showed.
const SOURCE: usize = 800;
const SHOWN: usize = 600;

/// The most variables, and the most lines of the outline.
const VARIABLES: usize = 40;
const OUTLINE: usize = 40;

/// The most characters of a line about a variable or a cell.
const LINE: usize = 100;

/// A notebook at a moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct NotebookMoment {
    /// The code cells that ran, oldest first.
    pub(crate) runs: Vec<CodeCellRun>,
    /// The sources of all cells that ran, prompts too.
    pub(crate) ran: HashSet<String>,
    /// The variables of the kernel. `None` if it does not run, or is busy.
    pub(crate) variables: Option<Vec<KernelVariable>>,
    /// The cells of the document. Empty if it is not known.
    pub(crate) cells: Vec<OutlineCell>,
    /// The id of the cell with the prompt.
    pub(crate) prompt: Option<String>,
}

/// A code cell that ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CodeCellRun {
    pub(crate) count: u32,
    pub(crate) source: String,
    /// What it showed, as text.
    pub(crate) shown: String,
}

/// A cell of the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutlineCell {
    pub(crate) id: String,
    /// `code`, `markdown`, `prompt` or `raw`.
    pub(crate) kind: &'static str,
    pub(crate) source: String,
}

/// What an agent has been told of a notebook, or saw in its turn.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownNotebook {
    /// The session that got the outline. Another one knows nothing.
    pub(crate) session: Option<SessionId>,
    /// The number of the last cell that ran by then.
    pub(crate) count: u32,
    variables: BTreeMap<String, String>,
    /// The sources by id.
    cells: HashMap<String, String>,
}

/// What goes with a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PromptContext {
    /// For the agent.
    pub(crate) text: String,
    /// For the person: what it holds, in a few words.
    pub(crate) summary: String,
    /// It says nothing of what the person did.
    pub(crate) is_outline_alone: bool,
}

impl KnownNotebook {
    /// What is known after this moment.
    pub(crate) fn at(session: Option<SessionId>, count: u32, now: &NotebookMoment) -> Self {
        let variables = now.variables.iter().flatten().map(|it| (it.name.clone(), described(it))).collect();
        let cells = now.cells.iter().map(|cell| (cell.id.clone(), cell.source.clone())).collect();
        Self { session, count, variables, cells }
    }

    /// What has changed since. `None` if nothing has.
    pub(crate) fn changes(&self, now: &NotebookMoment) -> Option<PromptContext> {
        let runs: Vec<&CodeCellRun> = now.runs.iter().filter(|run| run.count > self.count).collect();
        let (variables, gone) = self.variables(now);
        let (edited, deleted) = self.edits(now);
        let is_new = self.session.is_none();
        let outline = if is_new && now.cells.len() > 1 { outline(now) } else { String::new() };
        let mut sections = Vec::new();
        let mut summary = Vec::new();
        if !runs.is_empty() {
            summary.push(counted(runs.len(), "cell that ran", "cells that ran"));
            sections.push(run_cells(&runs));
        }
        if !variables.is_empty() || !gone.is_empty() {
            summary.push(counted(variables.len() + gone.len(), "variable", "variables"));
            sections.push(variable_list(&variables, &gone, self.variables.is_empty()));
        }
        if !edited.is_empty() || deleted > 0 {
            summary.push(counted(edited.len() + deleted, "edited cell", "edited cells"));
            sections.push(edited_cells(&edited, deleted));
        }
        let is_outline_alone = sections.is_empty();
        if !outline.is_empty() {
            summary.push("the outline".to_owned());
            sections.push(outline);
        }
        if sections.is_empty() {
            return None;
        }
        let title = if is_new {
            "The notebook that you are in (from the kernel, not typed by the person):"
        } else {
            "What the person did in the notebook since your last turn (from the kernel, not typed by the person):"
        };
        let text = fitting(title, &sections);
        Some(PromptContext { text, summary: summary.join(", "), is_outline_alone })
    }

    /// The variables that are new or changed, and the names of those that are gone.
    fn variables<'a>(&'a self, now: &'a NotebookMoment) -> (Vec<&'a KernelVariable>, Vec<&'a str>) {
        let Some(all) = &now.variables else { return (Vec::new(), Vec::new()) };
        let is_new = |it: &&KernelVariable| self.variables.get(&it.name) != Some(&described(it));
        let is_gone = |name: &&str| !all.iter().any(|it| it.name == *name);
        let gone = self.variables.keys().map(String::as_str).filter(is_gone).collect();
        (all.iter().filter(is_new).collect(), gone)
    }

    /// The cells that the person wrote since and did not run, with their places, and the number of those that are gone.
    fn edits<'a>(&self, now: &'a NotebookMoment) -> (Vec<(usize, &'a OutlineCell)>, usize) {
        if self.cells.is_empty() || now.cells.is_empty() {
            return (Vec::new(), 0);
        }
        let is_edited = |(_, cell): &(usize, &OutlineCell)| {
            self.cells.get(&cell.id) != Some(&cell.source)
                && now.prompt.as_ref() != Some(&cell.id)
                && !now.ran.contains(&cell.source)
                && !cell.source.trim().is_empty()
        };
        let edited = now.cells.iter().enumerate().filter(is_edited).collect();
        let deleted = self.cells.keys().filter(|id| !now.cells.iter().any(|cell| cell.id == **id)).count();
        (edited, deleted)
    }
}

/// As many sections as fit, with a note on the others.
fn fitting(title: &str, sections: &[String]) -> String {
    let mut text = title.to_owned();
    for section in sections {
        if text.len() + section.len() > BUDGET {
            text.push_str("\n\n[more was left out: ask for it, or read the notebook]");
            break;
        }
        text.push_str("\n\n");
        text.push_str(section);
    }
    text
}

fn counted(number: usize, one: &str, more: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {more}") }
}

/// The last cells that ran, as many as half of the budget holds.
fn run_cells(runs: &[&CodeCellRun]) -> String {
    let mut shown = Vec::new();
    let mut left = BUDGET / 2;
    for run in runs.iter().rev() {
        let mut cell = format!("In [{}]:\n{}", run.count, shortened(run.source.trim_end(), SOURCE));
        if !run.shown.trim().is_empty() {
            write!(cell, "\nIt showed:\n{}", shortened(run.shown.trim_end(), SHOWN))
                .expect("strings take everything");
        }
        let Some(rest) = left.checked_sub(cell.len()) else { break };
        left = rest;
        shown.push(cell);
    }
    shown.reverse();
    let missing = runs.len() - shown.len();
    let head = match missing {
        0 => "Code cells that ran:".to_owned(),
        missing => format!("Code cells that ran (the first {missing} are left out):"),
    };
    format!("{head}\n\n{}", shown.join("\n\n"))
}

fn variable_list(variables: &[&KernelVariable], gone: &[&str], all_are_new: bool) -> String {
    let mut lines = Vec::new();
    if !variables.is_empty() {
        lines.push(if all_are_new { "Variables:" } else { "Variables that are new or changed:" }.to_owned());
    }
    lines.extend(variables.iter().take(VARIABLES).map(|it| described(it)));
    if let Some(more @ 1..) = variables.len().checked_sub(VARIABLES) {
        lines.push(format!("… and {more} more"));
    }
    if !gone.is_empty() {
        lines.push(format!("Variables that are gone: {}", line(&gone.join(", "), SOURCE)));
    }
    lines.join("\n")
}

/// A variable in a line: its name, type, dimensions and the beginning of its value.
pub(crate) fn described(variable: &KernelVariable) -> String {
    let KernelVariable { name, kind, shape, size, preview } = variable;
    let dimensions = match (shape, size) {
        (Some(shape), _) => {
            let shape: Vec<String> = shape.iter().map(ToString::to_string).collect();
            format!(" ({})", shape.join(" x "))
        }
        (None, Some(size)) => format!(" of {size}"),
        (None, None) => String::new(),
    };
    line(&format!("{name}: {kind}{dimensions} = {preview}"), LINE)
}

fn edited_cells(edited: &[(usize, &OutlineCell)], deleted: usize) -> String {
    let mut parts = Vec::new();
    if !edited.is_empty() {
        parts.push("Cells that were written or edited and not run since:".to_owned());
    }
    parts.extend(
        edited.iter().map(|(at, cell)| {
            format!("#{at} [{}]\n{}", cell.kind, shortened(cell.source.trim_end(), SOURCE))
        }),
    );
    if deleted > 0 {
        parts.push(format!("{} deleted.", counted(deleted, "cell was", "cells were")));
    }
    parts.join("\n\n")
}

/// A line for each cell.
fn outline(now: &NotebookMoment) -> String {
    let lines = now.cells.iter().enumerate().take(OUTLINE).map(|(at, cell)| {
        let first = cell.source.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let here = if now.prompt.as_ref() == Some(&cell.id) { "  <- this prompt" } else { "" };
        format!("{}{here}", line(&format!("#{at} [{}] {first}", cell.kind), LINE))
    });
    let mut lines: Vec<String> = lines.collect();
    if let Some(more @ 1..) = now.cells.len().checked_sub(OUTLINE) {
        lines.push(format!("… and {more} more cells"));
    }
    format!("Outline:\n{}", lines.join("\n"))
}

/// A text in one line of at most so many characters.
fn line(text: &str, most: usize) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str, preview: &str) -> KernelVariable {
        let (name, preview) = (name.to_owned(), preview.to_owned());
        KernelVariable { name, kind: "int".to_owned(), shape: None, size: None, preview }
    }

    fn cell(id: &str, kind: &'static str, source: &str) -> OutlineCell {
        OutlineCell { id: id.to_owned(), kind, source: source.to_owned() }
    }

    fn moment() -> NotebookMoment {
        let run = |count, source: &str, shown: &str| CodeCellRun {
            count,
            source: source.to_owned(),
            shown: shown.to_owned(),
        };
        let table = KernelVariable {
            kind: "DataFrame".to_owned(),
            shape: Some(vec![3, 2]),
            ..variable("df", "   a  b\n0  1  2")
        };
        NotebookMoment {
            runs: vec![
                run(1, "%%python\nx = 41", ""),
                run(2, "%%python\ny", "NameError: name 'y' is not defined\n"),
            ],
            ran: HashSet::from(["%%python\nx = 41".to_owned(), "%%python\ny".to_owned(), "why?".to_owned()]),
            variables: Some(vec![table, variable("x", "41")]),
            cells: vec![
                cell("a", "markdown", "# Title\ntext"),
                cell("b", "code", "%%python\nx = 41"),
                cell("c", "prompt", "why?"),
            ],
            prompt: Some("c".to_owned()),
        }
    }

    #[test]
    fn a_session_that_knows_nothing_gets_all() {
        let context = KnownNotebook::default().changes(&moment()).expect("there is something");
        assert_eq!(context.summary, "2 cells that ran, 2 variables, the outline");
        let expected = "The notebook that you are in (from the kernel, not typed by the person):\n\n\
            Code cells that ran:\n\nIn [1]:\n%%python\nx = 41\n\n\
            In [2]:\n%%python\ny\nIt showed:\nNameError: name 'y' is not defined\n\n\
            Variables:\ndf: DataFrame (3 x 2) = a b 0 1 2\nx: int = 41\n\n\
            Outline:\n#0 [markdown] # Title\n#1 [code] %%python\n#2 [prompt] why?  <- this prompt";
        assert_eq!(context.text, expected);
    }

    #[test]
    fn later_it_gets_what_changed_and_nothing_twice() {
        let mut now = moment();
        let known = KnownNotebook::at(Some(SessionId::new("s")), 2, &now);
        assert_eq!(known.changes(&now), None);
        now.cells[0].source = "# Another title".to_owned();
        now.cells.remove(1);
        now.cells.push(cell("d", "code", "%%python\nnot_run()"));
        now.variables = Some(vec![variable("x", "42")]);
        let context = known.changes(&now).expect("there is something");
        assert_eq!(context.summary, "2 variables, 3 edited cells");
        let expected = "What the person did in the notebook since your last turn (from the kernel, not typed by the person):\n\n\
            Variables that are new or changed:\nx: int = 42\nVariables that are gone: df\n\n\
            Cells that were written or edited and not run since:\n\n#0 [markdown]\n# Another title\n\n\
            #2 [code]\n%%python\nnot_run()\n\n1 cell was deleted.";
        assert_eq!(context.text, expected);
    }

    #[test]
    fn it_stays_within_its_budget_and_keeps_the_newest() {
        let run = |count| CodeCellRun { count, source: "x".repeat(5000), shown: "y".repeat(5000) };
        let many = (0..300).map(|n| variable(&format!("name_{n}"), &"z".repeat(400))).collect();
        let cells = (0..400).map(|n| cell(&format!("{n}"), "code", &"w".repeat(300))).collect();
        let now = NotebookMoment {
            runs: (1..100).map(run).collect(),
            variables: Some(many),
            cells,
            ..NotebookMoment::default()
        };
        let text = KnownNotebook::default().changes(&now).expect("there is something").text;
        assert!(text.len() <= BUDGET + 100, "{}", text.len());
        assert!(
            text.contains("In [99]:") && !text.contains("In [1]:") && text.contains("are left out"),
            "{text}"
        );
        assert!(text.contains("… and 260 more"), "{text}");
    }
}
