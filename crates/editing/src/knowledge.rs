//! What a caller knows of a file: which cell it means by which number, and which text it has seen.
//!
//! Knowledge grows by what was *shown*, not by what was asked for: a page that was cut off teaches only the lines on
//! it. It never grows by what others write, so it can be compared with the file as it is now.

use std::collections::{BTreeSet, HashSet};

use cellwright_notebook::{Cell, CellKind, Fingerprint, Notebook};
use serde::{Deserialize, Serialize};

use crate::coverage::{Coverage, LineSet};

/// How many sources are remembered that no number stands for any more, such as earlier versions of a cell.
const EARLIER_SOURCES: usize = 20_000;

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
    pub shown: LineSet,
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
    /// The file, if the caller was shown all of it and nothing else since.
    #[serde(with = "as_option")]
    pub(crate) whole: Option<Fingerprint>,
    /// The cell that the caller means by each number. `None` for a cell that was there, but was not shown.
    pub(crate) numbers: Vec<Option<KnownCell>>,
    /// The same when the caller last read or wrote all cells, if it has changed some of them or was shown parts of a later
    /// version since: a text of all cells is based on that.
    base: Option<Vec<Option<KnownCell>>>,
    /// Which cells it was shown whole since.
    shown_since: BTreeSet<usize>,
    /// Sources it has seen, or written itself, beside those above. The latest last.
    #[serde(with = "as_texts")]
    earlier: Vec<Fingerprint>,
    /// Ids of cells that it has seen, and that no number stands for any more.
    earlier_ids: BTreeSet<String>,
}

/// A cell as a caller knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownCell {
    pub(crate) id: Option<String>,
    #[serde(with = "as_text")]
    pub(crate) kind: CellKind,
    #[serde(with = "as_text")]
    pub(crate) source: Fingerprint,
    pub(crate) extent: Extent,
    pub(crate) number: NumberOrigin,
}

/// How much of a cell's source a caller has seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Extent {
    Whole,
    /// Lines of the view, counting the marker as line 0.
    Lines(LineSet),
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

impl KnownCell {
    fn of(cell: &Cell<'_>, extent: Extent, number: NumberOrigin) -> Self {
        Self {
            id: cell.id().map(std::borrow::Cow::into_owned),
            kind: cell.kind(),
            source: source_print(cell),
            extent,
            number,
        }
    }

    /// Whether `cell` has the same source and type.
    pub(crate) fn says_what(&self, cell: &Cell<'_>) -> bool {
        (self.kind, self.source) == (cell.kind(), source_print(cell))
    }

    /// Whether `cell` is this one, as far as can be told: by id, else by what it says.
    pub(crate) fn is(&self, cell: &Cell<'_>) -> bool {
        match (&self.id, cell.id()) {
            (Some(known), Some(id)) => *known == id,
            _ => self.says_what(cell),
        }
    }
}

/// The fingerprint of a cell's source.
pub(crate) fn source_print(cell: &Cell<'_>) -> Fingerprint {
    Fingerprint::of(cell.source().as_bytes())
}

impl NotebookKnowledge {
    /// Whether a source was shown to the caller whole, or written by it.
    pub(crate) fn seen_sources(&self) -> SeenSources {
        let all = self.numbers.iter().chain(self.base.iter().flatten());
        let numbered = all.flatten().filter(|cell| cell.extent == Extent::Whole);
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
        self.numbers.iter().all(|known| known.as_ref().is_some_and(|known| known.extent == Extent::Whole))
    }

    /// The cell the caller knows by this number.
    pub(crate) fn numbered(&self, number: usize) -> Option<&KnownCell> {
        self.numbers.get(number)?.as_ref()
    }

    /// What the caller knows of `cell` of the notebook as it is now: by id, else by its place.
    pub(crate) fn known_as(&self, cell: &Cell<'_>) -> Option<(usize, &KnownCell)> {
        let numbered =
            || self.numbers.iter().enumerate().filter_map(|(at, known)| Some((at, known.as_ref()?)));
        match cell.id() {
            Some(id) => numbered().find(|(_, known)| known.id.as_deref() == Some(&*id)),
            None => self.numbered(cell.index()).map(|known| (cell.index(), known)),
        }
    }

    /// Whether the caller has seen some version of a cell that it knows by no number any more.
    pub(crate) fn once_saw(&self, cell: &Cell<'_>) -> bool {
        cell.id().is_some_and(|id| self.earlier_ids.contains(&*id))
    }

    /// Learns what was shown of the notebook as it is now, which is the file with this fingerprint.
    pub(crate) fn saw(&mut self, now: &Notebook, file: Fingerprint, coverage: &Coverage) {
        self.whole = None;
        if coverage.is_whole(now.len()) {
            self.whole = Some(file);
            self.retire_all();
            self.base = None;
            self.numbers = now
                .cells()
                .map(|cell| Some(KnownCell::of(&cell, Extent::Whole, NumberOrigin::Read)))
                .collect();
            return;
        }
        let is_later = self.numbers.len() != now.len()
            || coverage.cells().any(|shown| {
                self.numbered(shown.index).is_some_and(|known| !known.says_what(&now.cell(shown.index)))
            });
        if is_later {
            self.start_base();
        }
        let sources: HashSet<_> = now.cells().map(|cell| source_print(&cell)).collect();
        let is_other = |known: &KnownCell, cell: &Cell<'_>| match (&known.id, cell.id()) {
            (Some(known), Some(id)) => *known != id,
            // Without ids: a cell whose old source is gone was probably edited where it stands.
            _ => !known.says_what(cell) && sources.contains(&known.source),
        };
        let renumbered = coverage.cells().filter(|shown| shown.index < now.len()).any(|shown| {
            self.numbered(shown.index).is_some_and(|known| is_other(known, &now.cell(shown.index)))
        });
        if renumbered {
            self.numbers.iter_mut().flatten().for_each(|known| known.number = NumberOrigin::Shifted);
        }
        while self.numbers.len() > now.len() {
            let last = self.numbers.pop().flatten();
            self.retire(last);
        }
        self.numbers.resize(now.len(), None);
        for shown in coverage.cells().filter(|shown| shown.index < now.len()) {
            let cell = now.cell(shown.index);
            let before = self.numbers[shown.index].take();
            let mut extent = shown.extent();
            if let Some(known) = &before
                && known.says_what(&cell)
            {
                extent = extent.with(&known.extent, shown.lines);
            }
            if extent == Extent::Whole {
                self.shown_since.insert(shown.index);
            }
            self.numbers[shown.index] = Some(KnownCell::of(&cell, extent, NumberOrigin::Read));
            self.retire(before);
        }
        let is_now = |(known, cell): (&Option<KnownCell>, Cell<'_>)| {
            known.as_ref().is_some_and(|known| known.is(&cell) && known.says_what(&cell))
        };
        let shown_all = (0..now.len()).all(|index| self.shown_since.contains(&index));
        if self.base.is_some() && shown_all && self.numbers.iter().zip(now.cells()).all(is_now) {
            let base = self.base.take().unwrap_or_default();
            for known in base {
                self.retire(known);
            }
        }
    }

    /// Keeps in mind what a text of all cells is based on, before parts of a later version are known, too.
    fn start_base(&mut self) {
        if self.base.is_none() && self.knows_all() && !self.numbers.is_empty() {
            self.base = Some(self.numbers.clone());
            self.shown_since.clear();
        }
    }

    /// Learns from a change of some cells by the caller. `origins` says for each cell of `after` which of `before` it was,
    /// and `is_given` whether the caller gave its source. A text that was read before is still based on what was read.
    pub(crate) fn changed_cells(
        &mut self,
        before: &Notebook,
        after: &Notebook,
        origins: &[Option<usize>],
        is_given: impl Fn(usize) -> bool,
    ) {
        let change = OwnChange { before, after, origins };
        self.whole = None;
        self.start_base();
        if let Some(was) = &self.base {
            // Without an id, a cell is known by what it says.
            let is_new = |at: usize| is_given(at) && (origins[at].is_none() || after.cell(at).id().is_none());
            self.base = Some(change.renumbered(was, is_new));
        }
        // What moved has another number than it was shown with.
        self.shown_since.retain(|index| origins.get(*index) == Some(&Some(*index)));
        self.renumber(&change, is_given);
    }

    /// Learns from a text of all cells by the caller. `is_given` says which cells of `after` are as the text has them.
    pub(crate) fn wrote_text(
        &mut self,
        before: &Notebook,
        after: &Notebook,
        origins: &[Option<usize>],
        is_given: impl Fn(usize) -> bool,
    ) {
        self.whole = None;
        let base = self.base.take();
        if let Some(base) = base {
            let since = std::mem::replace(&mut self.numbers, base);
            for known in since {
                self.retire(known);
            }
        }
        self.renumber(&OwnChange { before, after, origins }, is_given);
    }

    fn renumber(&mut self, change: &OwnChange<'_>, is_given: impl Fn(usize) -> bool) {
        let was = std::mem::take(&mut self.numbers);
        self.numbers = change.renumbered(&was, &is_given);
        for known in was {
            self.retire(known);
        }
        for cell in change.after.cells().filter(|cell| is_given(cell.index())) {
            self.retire(Some(KnownCell::of(&cell, Extent::Whole, NumberOrigin::Shifted)));
        }
    }

    /// Learns that the caller wrote all of the notebook, by no numbers that it had.
    pub(crate) fn wrote_all(&mut self, after: &Notebook) {
        self.whole = None;
        self.retire_all();
        self.base = None;
        self.numbers = after
            .cells()
            .map(|cell| Some(KnownCell::of(&cell, Extent::Whole, NumberOrigin::Shifted)))
            .collect();
    }

    fn retire_all(&mut self) {
        let known = std::mem::take(&mut self.numbers);
        let base = self.base.take().unwrap_or_default();
        for known in known.into_iter().chain(base) {
            self.retire(known);
        }
    }

    /// Keeps in mind that a source was seen which no number may stand for any more.
    fn retire(&mut self, known: Option<KnownCell>) {
        let Some(KnownCell { id, source, extent, .. }) = known else { return };
        if self.earlier_ids.len() < EARLIER_SOURCES {
            self.earlier_ids.extend(id);
        }
        if extent != Extent::Whole {
            return;
        }
        if self.earlier.last() != Some(&source) {
            self.earlier.push(source);
        }
        if self.earlier.len() > 2 * EARLIER_SOURCES {
            let mut met = HashSet::new();
            let mut kept: Vec<_> =
                self.earlier.drain(..).rev().filter(|source| met.insert(*source)).collect();
            kept.truncate(EARLIER_SOURCES);
            kept.reverse();
            self.earlier = kept;
        }
    }

    /// Forgets sources that are remembered twice. To be called before the knowledge is stored.
    pub(crate) fn compact(&mut self) {
        let numbered = self.numbers.iter().flatten().filter(|cell| cell.extent == Extent::Whole);
        let mut met: HashSet<_> = numbered.map(|cell| cell.source).collect();
        let mut kept: Vec<_> = self.earlier.drain(..).rev().filter(|source| met.insert(*source)).collect();
        kept.truncate(EARLIER_SOURCES);
        kept.reverse();
        self.earlier = kept;
        for id in self.numbers.iter().flatten().filter_map(|cell| cell.id.as_ref()) {
            self.earlier_ids.remove(id);
        }
    }
}

/// A change that a caller made.
struct OwnChange<'a> {
    before: &'a Notebook,
    after: &'a Notebook,
    origins: &'a [Option<usize>],
}

impl OwnChange<'_> {
    /// The numbers that cells have after it, as far as the caller can know.
    fn renumbered(
        &self,
        was: &[Option<KnownCell>],
        is_known: impl Fn(usize) -> bool,
    ) -> Vec<Option<KnownCell>> {
        let Self { before, after, origins } = self;
        let is_current = was.iter().enumerate().all(|(at, known)| match known {
            Some(known) => at < before.len() && known.is(&before.cell(at)),
            None => true,
        });
        // Numbers that were wrong already stay as the caller knows them, so that they are noticed.
        if !is_current {
            return was.to_vec();
        }
        let mut numbers = vec![None; after.len()];
        for (at, origin) in origins.iter().enumerate() {
            let known = origin.and_then(|origin| was.get(origin).cloned().flatten());
            let number = match (origin, &known) {
                (Some(origin), Some(known)) if *origin == at => known.number,
                (Some(origin), None) if *origin == at => NumberOrigin::Read,
                (None, _) if at >= before.len() => NumberOrigin::Appended,
                _ => NumberOrigin::Shifted,
            };
            if is_known(at) {
                numbers[at] = Some(KnownCell::of(&after.cell(at), Extent::Whole, number));
            } else if let Some(known) = known {
                // As the caller knows it: others may have changed what it says.
                numbers[at] = Some(KnownCell { number, ..known });
            }
        }
        numbers
    }
}

impl Extent {
    /// What was seen of a cell with this many lines, together with what was seen before.
    fn with(self, before: &Self, lines: usize) -> Self {
        match (self, before) {
            (Self::Whole, _) | (_, Self::Whole) => Self::Whole,
            (Self::Lines(mut seen), Self::Lines(before)) => {
                seen.extend(before);
                if seen.covers(0..=lines) { Self::Whole } else { Self::Lines(seen) }
            }
        }
    }
}

/// The sources a caller has seen.
pub(crate) struct SeenSources(HashSet<Fingerprint>);

impl SeenSources {
    /// Nothing, for a caller who knows nothing.
    pub(crate) fn of(knowledge: Option<&NotebookKnowledge>) -> Self {
        knowledge.map_or_else(|| Self(HashSet::new()), NotebookKnowledge::seen_sources)
    }

    pub(crate) fn has(&self, cell: &Cell<'_>) -> bool {
        self.0.contains(&source_print(cell))
    }
}

/// Values that are stored as the text they print as.
mod as_text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize as _, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(value: &impl Display, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    pub(super) fn deserialize<'de, T, D>(from: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

mod as_option {
    use cellwright_notebook::Fingerprint;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer, de};

    #[expect(clippy::ref_option, reason = "serde asks for this signature")]
    pub(super) fn serialize<S: Serializer>(value: &Option<Fingerprint>, to: S) -> Result<S::Ok, S::Error> {
        value.map(|value| value.to_string()).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Fingerprint>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| text.parse().map_err(de::Error::custom)).transpose()
    }
}

mod as_texts {
    use cellwright_notebook::Fingerprint;
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(values: &[Fingerprint], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(values.iter().map(ToString::to_string))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Fingerprint>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        texts.iter().map(|text| text.parse().map_err(de::Error::custom)).collect()
    }
}
