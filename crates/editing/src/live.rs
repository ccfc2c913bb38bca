//! Notebooks that are open in a page: the page has the notebook, and the file is what it saves now and then.
//!
//! A change of such a notebook goes to the page as steps on cells, each with the source that it is based on. The page
//! makes all steps or none.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use cellwright_notebook::{Notebook, NotebookCell, line_runs};
use serde::Serialize;
use serde_json::{Map, Value};

/// Knows which notebooks are open in pages.
pub trait LiveNotebooks: fmt::Debug + Send + Sync {
    /// Where the notebook of this file is at this moment. Blocks.
    fn find(&self, path: &Path) -> LiveHome;
}

/// Where a notebook is.
#[derive(Debug, Clone)]
pub enum LiveHome {
    /// In its file alone.
    File,
    /// In a page that takes changes.
    Page(Arc<dyn LivePage>),
    /// In a page that takes no changes, for this reason. Its file must not be written: the page would not see that, and
    /// saving it would ask the person which of the two sides to lose.
    OutOfReach(PageError),
}

/// A page with a notebook. All calls block.
pub trait LivePage: fmt::Debug + Send + Sync {
    /// The notebook as it is now.
    fn read(&self) -> Result<PageContent, PageError>;

    /// Makes all steps, or none. `read_at` is that of the content that they are based on.
    fn change(&self, read_at: f64, steps: &[PageStep]) -> Result<(), PageError>;

    /// Runs cells as if the person did, each only if it says what is expected, and waits for their end.
    fn run(&self, cells: &[PageCell]) -> Result<(), PageError>;
}

/// A notebook as a page has it.
#[derive(Debug, Clone)]
pub struct PageContent {
    /// Its JSON.
    pub json: Value,
    /// When it was read, by the page's clock.
    pub read_at: f64,
}

/// A cell of a page, with what it is expected to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageCell {
    /// Its id.
    pub id: String,
    /// Its source.
    pub source: String,
}

/// Why a page did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// A cell is not what the change is based on.
    #[error("cell {id} changed in the page, so nothing was done; read the notebook again")]
    Stale {
        /// The cell.
        id: String,
    },
    /// The person writes in the cell.
    #[error(
        "the person is typing in cell {id}, so nothing was done; put it into a new cell, or try again later"
    )]
    Typing {
        /// The cell.
        id: String,
    },
    /// The cell runs.
    #[error(
        "cell {id} is running, so nothing was done: its outputs would be under code that did not make them; wait for its end"
    )]
    Running {
        /// The cell.
        id: String,
    },
    /// The person locked the cell.
    #[error("cell {id} is locked (its metadata says that it cannot be edited or deleted)")]
    Locked {
        /// The cell.
        id: String,
    },
    /// The notebook cannot be changed.
    #[error("the notebook is open read-only in the page, so nothing was done")]
    ReadOnly,
    /// The person switched the bridge off.
    #[error(
        "the person has this notebook open and switched the agent off in it (the sign in the notebook's toolbar), so nothing was done"
    )]
    Left,
    /// A page has it, and there is no way into the page.
    #[error(
        "the notebook is open in a page that this kernel cannot reach, so nothing was written: the file would conflict with what the person sees"
    )]
    NoBridge,
    /// A page has it, and does not answer.
    #[error(
        "the page with this notebook does not answer (offline, or asleep), so nothing was written; try again later"
    )]
    Away,
    /// The page was asked and did not answer in time.
    #[error(
        "the page with this notebook stopped answering, and it is not known whether the change was made; read the notebook before you try again"
    )]
    Unanswered,
    /// A request was held up on its way to the page, which then refused it.
    #[error("the page with this notebook answers too slowly, so nothing was done; try again later")]
    Late,
    /// Two cells have one id, so that neither can be named.
    #[error("two cells of the open notebook have the id {id}, so nothing was done; save and reopen it")]
    RepeatedId {
        /// The id.
        id: String,
    },
    /// Anything else.
    #[error("the page with this notebook refused: {0}")]
    Failed(String),
}

impl PageError {
    /// Whether the same change may work in a moment.
    pub(crate) fn passes(&self) -> bool {
        matches!(self, Self::Typing { .. } | Self::Running { .. } | Self::Late)
    }
}

/// One step of a change. The JSON is what the page understands.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum PageStep {
    /// Removes a cell.
    Remove {
        /// Its id.
        id: String,
        /// Its source.
        expect: String,
    },
    /// Adds a cell.
    Insert {
        /// The cell before it.
        after: Option<String>,
        /// Its JSON.
        cell: Value,
    },
    /// Moves a cell.
    Move {
        /// Its id.
        id: String,
        /// The cell before its new place.
        after: Option<String>,
    },
    /// Puts another cell in the place of one, with its id.
    Replace {
        /// Its id.
        id: String,
        /// Its source.
        expect: String,
        /// The JSON of the new one.
        cell: Value,
    },
    /// Changes the source of a cell.
    Edit {
        /// Its id.
        id: String,
        /// Its source.
        expect: String,
        /// Ranges in UTF-16 units with their new texts, in order.
        edits: Vec<(usize, usize, String)>,
    },
    /// Gives a cell other outputs.
    Outputs {
        /// Its id.
        id: String,
        /// The JSON of its outputs.
        outputs: Value,
        /// Its execution count.
        count: Value,
    },
    /// Changes the metadata of the notebook.
    Metadata {
        /// All of it.
        metadata: Value,
    },
}

/// The steps that make one notebook out of another.
pub(crate) fn steps(before: &Notebook, after: &Notebook) -> Result<Vec<PageStep>, PageError> {
    let old = by_id(before)?;
    by_id(after)?;
    let kept: HashSet<String> =
        after.cells().map(|cell| id_of(&cell)).filter(|id| old.contains_key(id)).collect();
    let mut steps = Vec::new();
    for cell in before.cells() {
        let id = id_of(&cell);
        if !kept.contains(&id) {
            steps.push(PageStep::Remove { id, expect: cell.source().into_owned() });
        }
    }
    let staying =
        staying(&after.cells().filter_map(|cell| old.get(&id_of(&cell)).copied()).collect::<Vec<_>>());
    let mut last = None;
    for cell in after.cells() {
        let id = id_of(&cell);
        match old.get(&id) {
            None => steps.push(PageStep::Insert { after: last.clone(), cell: json(&cell) }),
            Some(at) if !staying.contains(at) => {
                steps.push(PageStep::Move { id: id.clone(), after: last.clone() });
            }
            Some(_) => {}
        }
        last = Some(id);
    }
    for cell in after.cells() {
        if let Some(at) = old.get(&id_of(&cell)) {
            cell_steps(&before.cell(*at), &cell, &mut steps);
        }
    }
    let metadata = |notebook: &Notebook| -> Value {
        let whole: Value = serde_json::from_str(notebook.text()).unwrap_or_default();
        whole.get("metadata").cloned().unwrap_or_default()
    };
    let (was, is) = (metadata(before), metadata(after));
    if was != is {
        steps.push(PageStep::Metadata { metadata: is });
    }
    Ok(steps)
}

fn cell_steps(before: &NotebookCell<'_>, after: &NotebookCell<'_>, steps: &mut Vec<PageStep>) {
    if before.raw() == after.raw() {
        return;
    }
    let (id, was, is) = (id_of(after), json(before), json(after));
    let (source_before, source_after) = (before.source(), after.source());
    let results = ["outputs", "execution_count"];
    let rest = |cell: &Value| -> Map<String, Value> {
        let members = cell.as_object().cloned().unwrap_or_default();
        members.into_iter().filter(|(key, _)| key != "source" && !results.contains(&&**key)).collect()
    };
    if rest(&was) != rest(&is) {
        steps.push(PageStep::Replace { id, expect: source_before.into_owned(), cell: is });
        return;
    }
    if results.iter().any(|key| was.get(key) != is.get(key)) {
        let of = |key: &str| is.get(key).cloned().unwrap_or_default();
        let (outputs, count) = (of("outputs"), of("execution_count"));
        steps.push(PageStep::Outputs { id: id.clone(), outputs, count });
    }
    if source_before != source_after {
        let edits = line_edits(&source_before, &source_after);
        steps.push(PageStep::Edit { id, expect: source_before.into_owned(), edits });
    }
}

/// The changed lines, so that a cursor in any other line stays where it is.
fn line_edits(before: &str, after: &str) -> Vec<(usize, usize, String)> {
    let (old, new): (Vec<_>, Vec<_>) =
        (before.split_inclusive('\n').collect(), after.split_inclusive('\n').collect());
    let mut at = 0;
    let mut edits = Vec::new();
    for run in line_runs(&old, &new) {
        let length: usize = old[run.old.clone()].iter().map(|line| line.encode_utf16().count()).sum();
        if !run.is_kept {
            edits.push((at, at + length, new[run.new.clone()].concat()));
        }
        at += length;
    }
    edits
}

/// Of places in the order that they come in, most that are in order already: those cells stay, and the others move.
fn staying(places: &[usize]) -> HashSet<usize> {
    // The ends of the best runs by length, and what comes before each place in its run.
    let (mut ends, mut before) = (Vec::<usize>::new(), HashMap::new());
    for place in places {
        let length = ends.partition_point(|end| end < place);
        if let Some(last) = length.checked_sub(1) {
            before.insert(*place, ends[last]);
        }
        if length == ends.len() { ends.push(*place) } else { ends[length] = *place }
    }
    std::iter::successors(ends.last().copied(), |place| before.get(place).copied()).collect()
}

fn by_id(notebook: &Notebook) -> Result<HashMap<String, usize>, PageError> {
    let mut places = HashMap::new();
    for cell in notebook.cells() {
        let id = id_of(&cell);
        if places.insert(id.clone(), cell.index()).is_some() {
            return Err(PageError::RepeatedId { id });
        }
    }
    Ok(places)
}

/// The id of a cell. A page gives every cell one.
fn id_of(cell: &NotebookCell<'_>) -> String {
    cell.id().map(Cow::into_owned).unwrap_or_default()
}

/// A cell for the page, with texts in one piece.
fn json(cell: &NotebookCell<'_>) -> Value {
    let mut json: Value = serde_json::from_str(cell.raw()).unwrap_or_default();
    json["source"] = cell.source().into();
    json
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn notebook(cells: &[(&str, &str)]) -> Notebook {
        let cells: Vec<_> = cells
            .iter()
            .map(|(id, source)| {
                json!({"cell_type": "code", "id": id, "source": source, "metadata": {}, "outputs": [], "execution_count": null})
            })
            .collect();
        let whole = json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
        Notebook::parse(whole.to_string().into_bytes()).unwrap()
    }

    fn made(before: &[(&str, &str)], after: &[(&str, &str)]) -> Value {
        serde_json::to_value(steps(&notebook(before), &notebook(after)).unwrap()).unwrap()
    }

    #[test]
    fn an_edit_names_only_the_lines_that_change() {
        assert_eq!(
            made(&[("a", "x = 1\n🎉\ny = 2\nz")], &[("a", "x = 1\n🎉\ny = 3\nz")]),
            json!([{"op": "edit", "id": "a", "expect": "x = 1\n🎉\ny = 2\nz", "edits": [[9, 15, "y = 3\n"]]}])
        );
    }

    #[test]
    fn a_cell_that_moves_is_the_only_one_that_is_moved() {
        let (a, b, c) = (("a", "1"), ("b", "2"), ("c", "3"));
        assert_eq!(made(&[a, b, c], &[c, a, b]), json!([{"op": "move", "id": "c", "after": null}]));
        assert_eq!(made(&[a, b, c], &[b, c, a]), json!([{"op": "move", "id": "a", "after": "c"}]));
    }

    #[test]
    fn cells_come_and_go_by_their_ids() {
        let steps = made(&[("a", "1"), ("b", "2")], &[("a", "1"), ("n", "new")]);
        assert_eq!(steps[0], json!({"op": "remove", "id": "b", "expect": "2"}));
        assert_eq!((&steps[1]["op"], &steps[1]["after"]), (&json!("insert"), &json!("a")));
        assert_eq!(steps[1]["cell"]["source"], "new");
        assert_eq!(steps.as_array().unwrap().len(), 2);
    }

    #[test]
    fn cells_with_one_id_are_not_confused() {
        let twice = notebook(&[("a", "1"), ("a", "2")]);
        assert_eq!(steps(&twice, &twice), Err(PageError::RepeatedId { id: "a".into() }));
    }
}
