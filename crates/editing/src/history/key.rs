//! Finding cells again in a notebook that others may have changed.

use std::collections::{BTreeMap, HashMap};

use cellwright_notebook::{CellJson, Fingerprint, Notebook, NotebookCell};
use serde::{Deserialize, Serialize};

/// How a cell is found: by its id, or else by its text and its number among cells with the same text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CellKey {
    id: Option<String>,
    said: String,
    pub(super) index: usize,
    /// How many cells of the notebook said the same, and how many of them stood before this one.
    twins: usize,
    twins_before: usize,
    /// What its neighbours said.
    neighbours: [Option<String>; 2],
}

impl CellKey {
    pub(super) fn has_id(&self) -> bool {
        self.id.is_some()
    }

    /// Whether a cell has the same source and type.
    pub(super) fn says_what(&self, cell: &NotebookCell<'_>) -> bool {
        said(cell) == self.said
    }
}

/// The cells of a notebook, by id and by what they say.
pub(super) struct CellFinder {
    ids: HashMap<String, Vec<usize>>,
    id_of: Vec<Option<String>>,
    said: Vec<String>,
    saying: HashMap<String, Vec<usize>>,
}

impl CellFinder {
    pub(super) fn of(notebook: &Notebook) -> Self {
        let id_of: Vec<_> =
            notebook.cells().map(|cell| cell.id().map(std::borrow::Cow::into_owned)).collect();
        let said: Vec<_> = notebook.cells().map(|cell| said(&cell)).collect();
        let (mut ids, mut saying) = (HashMap::<_, Vec<_>>::new(), HashMap::<_, Vec<_>>::new());
        for (at, id) in id_of.iter().enumerate() {
            if let Some(id) = id {
                ids.entry(id.clone()).or_default().push(at);
            }
            saying.entry(said[at].clone()).or_default().push(at);
        }
        Self { ids, id_of, said, saying }
    }

    /// What the cell at `index` is found by.
    pub(super) fn key(&self, index: usize) -> CellKey {
        let twins = &self.saying[&self.said[index]];
        CellKey {
            id: self.id_of[index].clone(),
            said: self.said[index].clone(),
            index,
            twins: twins.len(),
            twins_before: twins.partition_point(|twin| *twin < index),
            neighbours: self.neighbours(index),
        }
    }

    fn neighbours(&self, index: usize) -> [Option<String>; 2] {
        [index.checked_sub(1), Some(index + 1)].map(|at| self.said.get(at?).cloned())
    }

    /// Where the cell is. Without an id, only if there is no doubt which of those that say the same it is.
    pub(super) fn place(&self, key: &CellKey) -> Option<usize> {
        if let Some(id) = &key.id {
            return match self.ids.get(id).map(Vec::as_slice) {
                None | Some([]) => None,
                Some([place]) => Some(*place),
                Some(several) => several.iter().copied().find(|place| self.said[*place] == key.said),
            };
        }
        let saying = self.saying.get(&key.said)?;
        if saying.len() == key.twins {
            return saying.get(key.twins_before).copied();
        }
        let mut alike = saying.iter().filter(|place| self.neighbours(**place) == key.neighbours);
        alike.next().copied().filter(|_| alike.next().is_none())
    }

    /// Whether a cell has the id of this one.
    pub(super) fn has_id_of(&self, cell: &NotebookCell<'_>) -> bool {
        cell.id().is_some_and(|id| self.ids.contains_key(&*id))
    }

    /// The cells that say the same as this one, and have its id if it has one.
    pub(super) fn copies(&self, cell: &NotebookCell<'_>) -> Vec<usize> {
        let saying = self.saying.get(&said(cell)).map_or(&[][..], Vec::as_slice);
        let id = cell.id();
        let is_copy = |place: &usize| id.is_none() || self.id_of[*place].as_deref() == id.as_deref();
        saying.iter().copied().filter(is_copy).collect()
    }
}

/// The fingerprint of a cell's type and source.
fn said(cell: &NotebookCell<'_>) -> String {
    Fingerprint::of(format!("{} {}", cell.kind(), cell.source()).as_bytes()).to_string()
}

/// The fingerprint of the ids, types and sources of all cells.
pub(super) fn sources_print(notebook: &Notebook) -> String {
    let cells = notebook.cells().map(|cell| format!("{:?} {}\n", cell.id(), said(&cell)));
    Fingerprint::of(cells.collect::<String>().as_bytes()).to_string()
}

/// Fingerprints of the members of a cell's JSON, however it is laid out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemberPrints(BTreeMap<String, String>);

impl MemberPrints {
    pub(super) fn of(cell: &NotebookCell<'_>) -> Self {
        let json = CellJson::parse(cell.raw()).expect("a cell is the JSON of a cell");
        let print = |(key, value): (std::borrow::Cow<'_, str>, &str)| (key.into_owned(), print_of(value));
        Self(json.members().into_iter().map(print).collect())
    }

    /// The members that are not as they were in `then`.
    pub(super) fn changed_since<'a>(&'a self, then: &'a Self) -> impl Iterator<Item = &'a str> {
        let keys = self.0.keys().chain(then.0.keys().filter(|key| !self.0.contains_key(*key)));
        keys.filter(|key| self.0.get(*key) != then.0.get(*key)).map(String::as_str)
    }
}

fn print_of(value: &str) -> String {
    // What serde does not read, such as NaN, is compared as it is written.
    let parsed = serde_json::from_str::<serde_json::Value>(value).map(|value| value.to_string());
    Fingerprint::of(parsed.as_deref().unwrap_or(value).as_bytes()).to_string()
}
