//! A notebook, two callers, a third program, and what each of them has seen.

mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use cellwright_editing::{DiskMemory, FileEditor, FileName, HistoryStore, ProcessMemory, ReadMemory};
use cellwright_notebook::{CellKind, Fingerprint, Notebook, NotebookCell};

pub(crate) enum MemoryKind {
    Process,
    Disk,
}

struct Caller {
    memory: Box<dyn ReadMemory>,
    /// The lines it was shown, or wrote itself.
    seen: BTreeSet<String>,
    /// The ids of cells of which it was shown some line, or wrote one.
    cells: BTreeSet<String>,
    /// The last text of all cells that it was shown, whatever happened since.
    text: Option<String>,
    /// The last JSON of the file that it was shown whole.
    json: Option<String>,
    /// The fingerprint that its last read gave it.
    fingerprint: Option<Fingerprint>,
    /// Files of which it was shown something, or which it left behind.
    files: BTreeSet<String>,
    /// The latest version of each cell that it was shown or made.
    latest: BTreeMap<String, Version>,
    /// The same, without those of which it was shown JSON but no line of the source.
    latest_source: BTreeMap<String, Version>,
    /// The version of each cell that its texts are based on.
    base: BTreeMap<String, Version>,
    /// The cell that it was shown with each number.
    numbers: BTreeMap<usize, String>,
    /// What the cells say of the text that it wrote in this step.
    written: Vec<Version>,
    /// Whether anybody else changed the file since it was shown all of it.
    others_changed: bool,
}

impl Caller {
    /// It was shown this version of a cell's source, or made it.
    fn knows(&mut self, id: String, version: Version) {
        self.latest.insert(id.clone(), version.clone());
        self.latest_source.insert(id, version);
    }
}

/// A type and a source.
type Version = (CellKind, String);

fn version(cell: &NotebookCell<'_>) -> Version {
    (cell.kind(), cell.source().into_owned())
}

fn id(cell: &NotebookCell<'_>) -> Option<String> {
    cell.id().map(std::borrow::Cow::into_owned)
}

/// What a step was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StepKind {
    Read,
    /// The third program saves.
    Foreign,
    /// The history becomes writable, or stops being so.
    History,
    /// A whole text.
    Write,
    Json,
    Replace,
    /// A replacement that shows the marker of a cell.
    Marker,
    Act,
    /// Which gives cells no source.
    Retype,
    Undo,
}

pub(crate) struct World {
    folder: tempfile::TempDir,
    history: HistoryStore,
    callers: [Caller; 2],
    random: Random,
    tokens: usize,
    /// Every version that cells had, for a person who goes back to one.
    versions: Vec<(String, Version)>,
    /// Whether the caller gave a fingerprint in this step.
    is_expected: bool,
    /// The numbers by which the caller named cells, or places for them, in this step.
    named: Vec<usize>,
    /// Whether the caller insisted in this step.
    is_forced: bool,
    steps: usize,
    /// In which step the third program wrote a line.
    foreign_lines: BTreeMap<String, usize>,
    /// In which step each change of the history was made.
    changes: BTreeMap<u64, usize>,
    log: String,
}

/// A small generator, so that a seed always means the same steps.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit.max(1) as u64).unwrap()
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

impl World {
    pub(crate) fn new(seed: u64, kinds: [MemoryKind; 2]) -> Self {
        let place = std::path::Path::new("/dev/shm");
        let folder = if place.is_dir() { tempfile::tempdir_in(place) } else { tempfile::tempdir() }.unwrap();
        let mut name = 0;
        let callers = kinds.map(|kind| {
            name += 1;
            let memory: Box<dyn ReadMemory> = match kind {
                MemoryKind::Process => Box::new(ProcessMemory::default()),
                MemoryKind::Disk => {
                    Box::new(DiskMemory::of_caller(&folder.path().join("reads"), &name.to_string()))
                }
            };
            Caller {
                memory,
                seen: BTreeSet::new(),
                cells: BTreeSet::new(),
                text: None,
                json: None,
                fingerprint: None,
                files: BTreeSet::new(),
                latest: BTreeMap::new(),
                latest_source: BTreeMap::new(),
                base: BTreeMap::new(),
                numbers: BTreeMap::new(),
                written: Vec::new(),
                others_changed: false,
            }
        });
        let mut world = Self {
            history: HistoryStore::new(folder.path().join("history")),
            folder,
            callers,
            random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678_9abc_def1) | 1),
            tokens: 0,
            versions: Vec::new(),
            is_expected: false,
            named: Vec::new(),
            is_forced: false,
            steps: 0,
            foreign_lines: BTreeMap::new(),
            changes: BTreeMap::new(),
            log: format!("seed {seed}\n"),
        };
        let cells: Vec<_> = (0..2 + world.random.below(5)).map(|_| world.source()).collect();
        let has_ids = !seed.is_multiple_of(3);
        let text = cells.iter().enumerate().map(|(at, source)| {
            let mut cell = serde_json::json!({
                "cell_type": "code", "metadata": {}, "execution_count": null, "outputs": [], "source": source,
            });
            if has_ids {
                cell["id"] = format!("cell{at}").into();
            }
            cell
        });
        let whole = serde_json::json!({
            "cells": text.collect::<Vec<_>>(), "metadata": {}, "nbformat": 4,
            "nbformat_minor": if has_ids { 5 } else { 4 },
        });
        fs::write(world.path(), serde_json::to_string_pretty(&whole).unwrap()).unwrap();
        world
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("nb.ipynb")
    }

    pub(crate) fn log(&self) -> &str {
        &self.log
    }

    pub(crate) fn text(&self) -> String {
        self.notebook().to_marked_text()
    }

    fn notebook(&self) -> Notebook {
        Notebook::parse(fs::read(self.path()).unwrap()).expect("the file is always a notebook")
    }

    /// A source that nothing else has: one to three lines, each a token.
    fn source(&mut self) -> String {
        let lines: Vec<_> = (0..=self.random.below(3)).map(|_| self.token()).collect();
        lines.join("\n")
    }

    fn token(&mut self) -> String {
        self.tokens += 1;
        format!("token{:05}", self.tokens)
    }

    /// The caller has seen these lines, where they are now.
    fn saw(&mut self, who: usize, seen: Vec<String>) {
        for cell in self.notebook().cells() {
            if lines(&cell.source()).iter().any(|line| seen.contains(line)) {
                self.callers[who].cells.extend(cell.id().map(std::borrow::Cow::into_owned));
            }
        }
        self.callers[who].seen.extend(seen);
    }

    /// Makes a random step, checks the laws, and says how it ended.
    pub(crate) fn step(&mut self) -> &'static str {
        let who = self.random.below(2);
        let before = self.notebook();
        let knew = (self.callers[who].seen.clone(), self.callers[who].cells.clone());
        self.is_expected = false;
        self.named.clear();
        self.is_forced = false;
        self.steps += 1;
        let (kind, verdict) = self.random_step(who);
        writeln!(self.log, "  -> {verdict}\n{}", self.text()).unwrap();
        let after = self.notebook();
        let is_change = !matches!(kind, StepKind::Read | StepKind::Foreign | StepKind::History);
        if is_change {
            let is_text = matches!(kind, StepKind::Write | StepKind::Json);
            self.check_losses(&knew, &before, &after, verdict, is_text);
            self.check_undo_store(&before, &after);
            self.check_versions(who, kind, &before, &after, verdict);
            self.check_blame(who, kind, verdict);
        }
        self.check_ids(&after);
        self.check_later_lines(kind, &before, &after);
        self.learn(who, kind, &before, &after);
        verdict
    }

    /// What a change by a caller took away must have been seen by it. Only an action may name a cell that the caller
    /// never saw at all; without ids, nobody can say which cell that is.
    fn check_losses(
        &self,
        (seen, cells): &(BTreeSet<String>, BTreeSet<String>),
        before: &Notebook,
        after: &Notebook,
        verdict: &str,
        is_text: bool,
    ) {
        if verdict == "undone" {
            return; // undoing takes away what the undone change wrote, and is undone in turn
        }
        let left: BTreeSet<_> = after.cells().flat_map(|cell| lines(&cell.source())).collect();
        for cell in before.cells() {
            let known = is_text || cell.id().is_some_and(|id| cells.contains(&*id));
            for line in lines(&cell.source()) {
                let gone = !left.contains(&line);
                assert!(
                    !gone || !known || seen.contains(&line),
                    "a caller took away {line:?}, which it had not seen\n{}",
                    self.log
                );
            }
        }
    }

    /// What is gone from the file can be had back: sources, outputs and tags. If the history cannot be written, nothing
    /// is gone.
    fn check_undo_store(&self, before: &Notebook, after: &Notebook) {
        let left = tokens(after.text());
        let mut stored = String::new();
        for folder in fs::read_dir(self.folder.path().join("history")).into_iter().flatten().flatten() {
            for entry in fs::read_dir(folder.path()).into_iter().flatten().flatten() {
                stored.push_str(&fs::read_to_string(entry.path()).unwrap());
            }
        }
        let stored = tokens(&stored);
        for token in tokens(before.text()) {
            assert!(
                left.contains(&token) || stored.contains(&token),
                "{token} is neither in the file nor in the undo store\n{}",
                self.log
            );
        }
    }

    /// A cell that goes, or becomes another, is as the caller last saw or made it, or as its text is based on. A file that
    /// is replaced as a whole is one that the caller knows. A number names the cell that the caller was shown with it.
    fn check_versions(&self, who: usize, kind: StepKind, before: &Notebook, after: &Notebook, verdict: &str) {
        let caller = &self.callers[who];
        if kind == StepKind::Undo || before.text() == after.text() {
            if kind == StepKind::Undo && !self.is_forced {
                self.check_undone(before, after);
            }
            return;
        }
        if kind == StepKind::Json {
            assert!(
                caller.files.contains(before.text()),
                "JSON over a file not seen: {verdict}\n{}",
                self.log
            );
        }
        // A fingerprint that the caller gave names the file, whatever it saw since.
        if self.is_expected {
            return;
        }
        let is_here = |cell: &NotebookCell<'_>| {
            after.cells().any(|now| id(&now) == id(cell) && version(&now) == version(cell))
        };
        for cell in before.cells().filter(|cell| cell.id().is_some() && !is_here(cell)) {
            let (cell_id, now) = (id(&cell).unwrap(), version(&cell));
            let Some(latest) = caller.latest.get(&cell_id) else { continue };
            let is_base = kind == StepKind::Write && caller.base.get(&cell_id) == Some(&now);
            // Both may have given it the same type.
            let keeps_type =
                after.cells().any(|after| after.id() == cell.id() && after.kind() == cell.kind());
            let base = caller.base.get(&cell_id).filter(|_| kind == StepKind::Write);
            let is_retyped = [Some(latest), base].into_iter().flatten().any(|known| known.1 == now.1);
            let is_agreed = kind == StepKind::Write && keeps_type && is_retyped;
            // Lines of JSON can show the type and not the source.
            let is_source = caller.latest_source.get(&cell_id) == Some(&now);
            assert!(
                *latest == now || is_source || is_base || is_agreed,
                "{kind:?} took away {now:?}, the caller knows {latest:?}\n{}",
                self.log
            );
        }
        for number in self.named.iter().filter(|number| **number < before.len()) {
            if let Some(shown) = caller.numbers.get(number) {
                let cell = before.cell(*number);
                // Of a cell that is gone, one that says the same is as good.
                let is_twin = before.cells().all(|cell| id(&cell).as_ref() != Some(shown))
                    && caller.latest.get(shown) == Some(&version(&cell));
                let meant = id(&cell);
                assert!(is_twin || meant.as_ref() == Some(shown), "another cell {number}\n{}", self.log);
            }
        }
    }

    /// Undoing takes no tag from a cell that stays, unless the caller insists: that gives the cell back as it was.
    fn check_undone(&self, before: &Notebook, after: &Notebook) {
        for cell in after.cells().filter(|cell| cell.id().is_some()) {
            let was = before.cells().find(|was| was.id() == cell.id());
            for tag in was.iter().flat_map(NotebookCell::tags) {
                assert!(cell.tags().contains(&tag), "undo took {tag} away\n{}", self.log);
            }
        }
    }

    /// Undoing a change takes no line that the third program wrote after it.
    fn check_later_lines(&mut self, kind: StepKind, before: &Notebook, after: &Notebook) {
        let all = |notebook: &Notebook| -> BTreeSet<String> {
            notebook.cells().flat_map(|cell| lines(&cell.source())).collect()
        };
        let (was, is) = (all(before), all(after));
        if kind == StepKind::Foreign {
            self.foreign_lines.extend(is.difference(&was).map(|line| (line.clone(), self.steps)));
        }
        let history =
            self.with_editor(0, |editor, file| editor.history(file).into_iter().collect::<Vec<_>>());
        let undone = history.first().filter(|latest| !self.changes.contains_key(&latest.number));
        if let (StepKind::Undo, false, Some(undone)) = (kind, self.is_forced, undone.and_then(|it| it.undoes))
        {
            for line in was.difference(&is) {
                let is_later = self.foreign_lines.get(line) > self.changes.get(&undone);
                assert!(!is_later, "undo of {undone} took {line}, which came after it\n{}", self.log);
            }
        }
        for change in history {
            self.changes.entry(change.number).or_insert(self.steps);
        }
    }

    /// What only the caller changed is never reported as changed by others.
    fn check_blame(&self, who: usize, kind: StepKind, verdict: &str) {
        if self.callers[who].others_changed {
            return;
        }
        assert_ne!(verdict, "merged", "nobody else changed anything\n{}", self.log);
        if matches!(kind, StepKind::Replace | StepKind::Act | StepKind::Retype | StepKind::Marker) {
            assert_ne!(verdict, "stale", "nobody else changed anything\n{}", self.log);
        }
    }

    fn check_ids(&self, now: &Notebook) {
        let ids: Vec<_> = now.cells().filter_map(|cell| id(&cell)).collect();
        let unique: BTreeSet<_> = ids.iter().collect();
        assert_eq!(ids.len(), unique.len(), "an id is there twice\n{}", self.log);
    }

    /// Keeps in mind what the file was, and what the caller made of it.
    fn learn(&mut self, who: usize, kind: StepKind, before: &Notebook, after: &Notebook) {
        for cell in after.cells().filter(|cell| cell.id().is_some()) {
            let entry = (id(&cell).unwrap(), version(&cell));
            if !self.versions.contains(&entry) {
                self.versions.push(entry);
            }
        }
        let is_changed = before.text() != after.text();
        for (at, caller) in self.callers.iter_mut().enumerate() {
            caller.others_changed |= is_changed && (kind == StepKind::Foreign || at != who);
        }
        let caller = &mut self.callers[who];
        let written = std::mem::take(&mut caller.written);
        for cell in after.cells().filter(|cell| cell.id().is_some() && written.contains(&version(cell))) {
            caller.knows(id(&cell).unwrap(), version(&cell));
            caller.base.insert(id(&cell).unwrap(), version(&cell));
        }
        if kind == StepKind::Foreign || !is_changed {
            return;
        }
        caller.files.insert(after.text().to_owned());
        // Which number the caller means after it moved cells itself is for the editor to say.
        if !before.cells().map(|cell| id(&cell)).eq(after.cells().map(|cell| id(&cell))) {
            caller.numbers.clear();
        }
        for cell in after.cells().filter(|cell| cell.id().is_some()) {
            let (cell_id, now) = (id(&cell).unwrap(), version(&cell));
            let was = before.cells().find(|was| was.id() == cell.id()).map(|was| version(&was));
            if was.as_ref() == Some(&now) {
                continue;
            }
            let knew = caller.latest.get(&cell_id).is_some_and(|latest| Some(latest) == was.as_ref());
            let gave =
                !matches!(kind, StepKind::Undo | StepKind::Replace | StepKind::Marker | StepKind::Retype);
            // The caller asked for it, and the report names it.
            let brought_back = kind == StepKind::Undo
                && was.is_none()
                && lines(&cell.source()).iter().all(|line| caller.seen.contains(line));
            if knew || gave || brought_back {
                caller.knows(cell_id.clone(), now.clone());
            }
            if matches!(kind, StepKind::Write | StepKind::Json) {
                caller.base.insert(cell_id, now);
            }
        }
    }

    fn with_editor<T>(&self, who: usize, work: impl FnOnce(&FileEditor<'_>, &FileName) -> T) -> T {
        let editor = FileEditor::new(&*self.callers[who].memory, Some(&self.history));
        work(&editor, &FileName { path: self.path(), named: "nb.ipynb".to_owned() })
    }
}

/// Every token of a text: of sources, outputs and tags.
fn tokens(text: &str) -> BTreeSet<String> {
    text.match_indices("token").filter_map(|(at, _)| text.get(at..at + 10)).map(str::to_owned).collect()
}

fn lines(text: &str) -> Vec<String> {
    text.lines().filter(|line| line.starts_with("token")).map(str::to_owned).collect()
}
