//! What a caller knows of a file: which cell it means by which number, and which text it has seen.
//!
//! Knowledge grows by what was *shown*, not by what was asked for: a page that was cut off teaches only the lines on
//! it. It never grows by what others write, so it can be compared with the file as it is now.

mod extent;
mod learning;
mod stored;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use cellwright_notebook::{CellKind, Fingerprint, NotebookCell};
use serde::{Deserialize, Serialize};

use self::stored::{as_option, as_text, as_texts, as_versions};
use crate::coverage::SeenLines;

pub(crate) use self::extent::{LineSource, SeenExtent};
pub(crate) use self::learning::OwnChange;

/// What a caller knows of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileKnowledge {
    /// The file is a notebook.
    Notebook(NotebookKnowledge),
    /// The file is plain text.
    Text(TextKnowledge),
}

/// What a caller knows of a plain text file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextKnowledge {
    /// The file it has seen.
    #[serde(with = "as_text")]
    pub fingerprint: Fingerprint,
    /// How many lines that file has.
    pub total_lines: usize,
    /// Those it was shown.
    pub shown: SeenLines,
}

impl TextKnowledge {
    /// Whether the caller has seen every line.
    pub fn is_whole(&self) -> bool {
        self.shown.covers(1..=self.total_lines)
    }
}

/// What a caller knows of a notebook.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NotebookKnowledge {
    /// The latest file that the caller was shown a part of, or left behind by its own change.
    #[serde(with = "as_option")]
    pub(crate) latest: Option<Fingerprint>,
    /// Earlier ones, the latest last: it may still have their fingerprints.
    #[serde(with = "as_texts")]
    earlier_files: Vec<Fingerprint>,
    /// The cell that the caller means by each number, in the latest version it knows. `None` for a cell that was there, but
    /// was not shown.
    pub(crate) numbers: Vec<Option<KnownCell>>,
    /// Cells that the caller was shown with numbers past the end of the latest file. Others may put cells there again.
    #[serde(default)]
    past_the_end: BTreeMap<usize, KnownCell>,
    /// `numbers` when the caller last read or wrote all cells, if it has changed some of them or was shown parts of a later
    /// version since: a text of all cells is based on that.
    base: Option<Vec<Option<KnownCell>>>,
    /// Which cells it was shown whole since.
    shown_since: BTreeSet<usize>,
    /// Sources it has seen, or written itself, beside those above. The latest last.
    #[serde(with = "as_texts")]
    earlier: Vec<Fingerprint>,
    /// The latest version that it has seen of cells that have no number any more, by id.
    #[serde(with = "as_versions")]
    earlier_cells: BTreeMap<String, Fingerprint>,
}

/// A cell as a caller knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownCell {
    pub(crate) id: Option<String>,
    #[serde(with = "as_text")]
    pub(crate) kind: CellKind,
    #[serde(with = "as_text")]
    pub(crate) source: Fingerprint,
    pub(crate) extent: SeenExtent,
    pub(crate) number: NumberOrigin,
    pub(crate) file: FileVersion,
    pub(crate) since_base: SinceBase,
}

/// Where a caller has the number of a cell from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NumberOrigin {
    /// A read showed the cell with this number.
    Read,
    /// The caller added the cell after all others. A text that was read before does not name it.
    Appended,
    /// The number changed since the caller last read the cell, so a text may mean another one by it.
    Shifted,
}

/// In which file a caller was shown a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FileVersion {
    /// In the latest one it knows of.
    Latest,
    /// In an earlier one. Its outputs and metadata may be others by now.
    Earlier,
}

/// Which side changed a cell, as far as the caller knows, since the caller last read or wrote all cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SinceBase {
    /// Nobody else.
    OnlyCaller,
    /// Others, or both.
    Others,
}

impl KnownCell {
    fn of(cell: &NotebookCell<'_>, extent: SeenExtent, number: NumberOrigin) -> Self {
        Self {
            id: cell.id().map(std::borrow::Cow::into_owned),
            kind: cell.kind(),
            source: source_print(cell),
            extent,
            number,
            file: FileVersion::Latest,
            since_base: SinceBase::OnlyCaller,
        }
    }

    /// Whether `cell` has the same source and type.
    pub(crate) fn says_what(&self, cell: &NotebookCell<'_>) -> bool {
        (self.kind, self.source) == (cell.kind(), source_print(cell))
    }

    /// Whether `cell` is this one, as far as is known: by id, or else by what it says.
    pub(crate) fn is(&self, cell: &NotebookCell<'_>) -> bool {
        match (&self.id, cell.id()) {
            (Some(known), Some(id)) => *known == id,
            _ => self.says_what(cell),
        }
    }
}

/// The fingerprint of a cell's source.
pub(crate) fn source_print(cell: &NotebookCell<'_>) -> Fingerprint {
    Fingerprint::of(cell.source().as_bytes())
}

/// The fingerprint of a type and a source.
fn version_print(kind: CellKind, source: Fingerprint) -> Fingerprint {
    Fingerprint::of(format!("{kind} {source}").as_bytes())
}

impl NotebookKnowledge {
    /// Whether a source was shown to the caller whole, or written by it.
    pub(crate) fn seen_sources(&self) -> SeenSources {
        let all = self.numbers.iter().chain(self.base.iter().flatten());
        let numbered = all.flatten().filter(|cell| cell.extent == SeenExtent::Whole);
        SeenSources(numbered.map(|cell| cell.source).chain(self.earlier.iter().copied()).collect())
    }

    /// The cells that a text means by its numbers.
    pub(crate) fn text_numbers(&self) -> &[Option<KnownCell>] {
        self.base.as_deref().unwrap_or(&self.numbers)
    }

    /// Whether the caller was shown another cell with this number since it knew all of them.
    pub(crate) fn is_ambiguous(&self, number: usize) -> bool {
        let then = self.base.as_ref().and_then(|base| base.get(number)?.as_ref());
        match (then, self.numbered(number)) {
            (Some(then), Some(since)) => match (&then.id, &since.id) {
                (Some(then), Some(since)) => then != since,
                _ => (then.kind, then.source) != (since.kind, since.source),
            },
            _ => false,
        }
    }

    fn knows_all(&self) -> bool {
        self.numbers.iter().all(|known| known.as_ref().is_some_and(|known| known.extent == SeenExtent::Whole))
    }

    /// Whether the caller has seen every source of this file, and nobody else changed anything else in it since.
    pub(crate) fn has_seen_file(&self, file: Fingerprint) -> bool {
        let is_latest = |known: &KnownCell| known.file == FileVersion::Latest;
        self.latest == Some(file) && self.knows_all() && self.numbers.iter().flatten().all(is_latest)
    }

    /// The file that the caller was shown all of, if that is all it knows.
    pub(crate) fn whole(&self) -> Option<Fingerprint> {
        let is_read = |known: &KnownCell| known.number == NumberOrigin::Read;
        let is_read = self.base.is_none() && self.numbers.iter().flatten().all(is_read);
        self.latest.filter(|file| is_read && self.has_seen_file(*file))
    }

    /// Whether the caller has this fingerprint from a read or a change of its own, as far as is remembered.
    pub(crate) fn was_given(&self, file: Fingerprint) -> bool {
        self.latest == Some(file) || self.earlier_files.contains(&file)
    }

    /// The cell the caller knows by this number.
    pub(crate) fn numbered(&self, number: usize) -> Option<&KnownCell> {
        self.numbers.get(number)?.as_ref()
    }

    /// The cell that the caller was shown last with this number, also if there was none with it since.
    pub(crate) fn last_numbered(&self, number: usize) -> Option<&KnownCell> {
        self.numbered(number).or_else(|| self.past_the_end.get(&number))
    }

    /// What the caller knows of `cell` of the notebook as it is now: by id, or else by its place.
    pub(crate) fn known_as(&self, cell: &NotebookCell<'_>) -> Option<(usize, &KnownCell)> {
        let numbered =
            || self.numbers.iter().enumerate().filter_map(|(at, known)| Some((at, known.as_ref()?)));
        match cell.id() {
            Some(id) => numbered().find(|(_, known)| known.id.as_deref() == Some(&*id)),
            None => self.numbered(cell.index()).map(|known| (cell.index(), known)),
        }
    }

    /// Whether a cell that the caller knows by no number any more is in the latest version that it has seen. `None` for a
    /// cell that it has not seen.
    pub(crate) fn is_as_once_seen(&self, cell: &NotebookCell<'_>) -> Option<bool> {
        let version = self.earlier_cells.get(&*cell.id()?)?;
        Some(*version == version_print(cell.kind(), source_print(cell)))
    }
}

/// The sources a caller has seen.
pub(crate) struct SeenSources(HashSet<Fingerprint>);

impl SeenSources {
    /// Nothing, for a caller that knows nothing.
    pub(crate) fn of(knowledge: Option<&NotebookKnowledge>) -> Self {
        knowledge.map_or_else(|| Self(HashSet::new()), NotebookKnowledge::seen_sources)
    }

    pub(crate) fn has(&self, cell: &NotebookCell<'_>) -> bool {
        self.0.contains(&source_print(cell))
    }
}
