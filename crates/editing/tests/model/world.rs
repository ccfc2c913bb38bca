//! A notebook, two callers, a third program, and what each of them has seen.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use cellwright_editing::view::OutputView;
use cellwright_editing::{
    ChangeOptions, DiskMemory, EditReport, EditingError, Editor, FileName, HistoryStore, NewContent,
    ProcessMemory, ReadMemory, ReadRequest, Refusal,
};
use cellwright_notebook::replace::{Matches, Replacement};
use cellwright_notebook::{Action, CellKind, CellRef, NewCell, Note, Notebook, Outputs, Selector};

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
}

pub(crate) struct World {
    folder: tempfile::TempDir,
    history: HistoryStore,
    callers: [Caller; 2],
    random: Random,
    tokens: usize,
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
            Caller { memory, seen: BTreeSet::new(), cells: BTreeSet::new(), text: None }
        });
        let mut world = Self {
            history: HistoryStore::new(folder.path().join("history")),
            folder,
            callers,
            random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678_9abc_def1) | 1),
            tokens: 0,
            log: String::new(),
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
        let choice = self.random.below(100);
        let before = self.notebook();
        let knew = (self.callers[who].seen.clone(), self.callers[who].cells.clone());
        let verdict = match choice {
            0..=29 => self.read(who),
            30..=44 => self.foreign(),
            45..=64 => self.write(who),
            65..=69 => self.write_unnamed(who),
            70..=77 => self.replace(who),
            78..=94 => self.act(who),
            _ => self.undo(who),
        };
        writeln!(self.log, "  -> {verdict}\n{}", self.text()).unwrap();
        let after = self.notebook();
        if (45..).contains(&choice) {
            self.check_losses(&knew, &before, &after, verdict, (45..70).contains(&choice));
        }
        self.check_undo_store(&before, &after, choice);
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

    /// What is gone from the file can be had back.
    fn check_undo_store(&self, before: &Notebook, after: &Notebook, choice: usize) {
        if (30..=44).contains(&choice) {
            return; // the third program knows no undo
        }
        let left: BTreeSet<_> = after.cells().flat_map(|cell| lines(&cell.source())).collect();
        let mut stored = String::new();
        for folder in fs::read_dir(self.folder.path().join("history")).into_iter().flatten().flatten() {
            for entry in fs::read_dir(folder.path()).into_iter().flatten().flatten() {
                stored.push_str(&fs::read_to_string(entry.path()).unwrap());
            }
        }
        for line in before.cells().flat_map(|cell| lines(&cell.source())) {
            assert!(
                left.contains(&line) || stored.contains(&line),
                "{line} is neither in the file nor in the undo store\n{}",
                self.log
            );
        }
    }

    fn with_editor<T>(&self, who: usize, work: impl FnOnce(&Editor<'_>, &FileName) -> T) -> T {
        let editor = Editor::new(&*self.callers[who].memory, Some(&self.history));
        work(&editor, &FileName { path: self.path(), named: "nb.ipynb".to_owned() })
    }

    fn read(&mut self, who: usize) -> &'static str {
        let total = self.notebook().len();
        let (selector, budget) = match self.random.below(6) {
            0..=2 => (String::new(), usize::MAX),
            3 => (format!("#{}", self.random.below(total.max(1))), usize::MAX),
            4 => {
                let from = 1 + self.random.below(6);
                (format!(":{from}-{}", from + self.random.below(6)), usize::MAX)
            }
            _ => (String::new(), 20 + self.random.below(120)),
        };
        writeln!(self.log, "{who} reads {selector:?} within {budget}").unwrap();
        let selector_parsed = Selector::parse(&selector).unwrap();
        let request =
            ReadRequest { selector: &selector_parsed, outputs: OutputView::None, search: None, budget };
        let read = self.with_editor(who, |editor, file| editor.read(file, &request));
        let Ok(read) = read else { return "nothing there" };
        let shown = read.shown.text();
        let is_whole = shown == self.text();
        // A line at the end of a page may be cut.
        let complete = if shown.ends_with('\n') {
            shown.as_str()
        } else {
            shown.rsplit_once('\n').map_or("", |(a, _)| a)
        };
        self.saw(who, lines(complete));
        if is_whole {
            self.callers[who].text = Some(shown);
        }
        "read"
    }

    /// Another program changes the file and saves it, by a rename or in place.
    fn foreign(&mut self) -> &'static str {
        let notebook = self.notebook();
        let total = notebook.len();
        let action = match self.random.below(4) {
            0 => Action::Insert {
                at: Some(self.random.below(total + 1)),
                cells: vec![NewCell::new(CellKind::Code, self.source())],
            },
            1 if total > 1 => Action::Delete { cells: vec![CellRef::Index(self.random.below(total))] },
            2 if total > 1 => Action::Move {
                cells: vec![CellRef::Index(self.random.below(total))],
                to: self.random.below(total),
            },
            _ if total > 0 => {
                Action::Edit { cell: CellRef::Index(self.random.below(total)), source: self.source() }
            }
            _ => return "nothing there",
        };
        writeln!(self.log, "another program does {action:?}").unwrap();
        let changed = notebook.act(&action, Outputs::Clear).unwrap().notebook.unwrap_or(notebook);
        if self.random.chance(50) {
            let beside = self.folder.path().join("beside");
            fs::write(&beside, changed.text()).unwrap();
            fs::rename(beside, self.path()).unwrap();
        } else {
            fs::write(self.path(), changed.text()).unwrap();
        }
        "saved by others"
    }

    /// A text that the caller was shown once, with some cells changed.
    fn write(&mut self, who: usize) -> &'static str {
        let shown = self.callers[who].text.clone().filter(|_| !self.random.chance(10));
        let base = shown.unwrap_or_else(|| self.text());
        let mut cells = cellwright_notebook::text::parse(&base).unwrap();
        for _ in 0..=self.random.below(2) {
            let at = self.random.below(cells.len());
            match self.random.below(4) {
                0 if cells.len() > 1 => drop(cells.remove(at)),
                1 if !cells.is_empty() => cells[at].cell.source = self.source(),
                2 if cells.len() > 1 => {
                    let cell = cells.remove(at);
                    cells.insert(self.random.below(cells.len() + 1), cell);
                }
                _ => {
                    let new = NewCell::new(CellKind::Code, self.source());
                    let cell = cellwright_notebook::text::TextCell { cell: new, origin: None, line: 1 };
                    cells.insert(at, cell);
                }
            }
        }
        let mut text = String::new();
        for cell in &cells {
            match cell.origin {
                Some(origin) => writeln!(text, "# %% [code] cell:{origin}\n{}", cell.cell.source).unwrap(),
                None => writeln!(text, "# %% [code]\n{}", cell.cell.source).unwrap(),
            }
        }
        writeln!(self.log, "{who} writes\n{text}").unwrap();
        let content = NewContent::parse(&text).unwrap();
        let written =
            self.with_editor(who, |editor, file| editor.write(file, &content, &ChangeOptions::default()));
        if written.is_ok() {
            self.saw(who, lines(&text));
        }
        verdict(&written)
    }

    fn write_unnamed(&mut self, who: usize) -> &'static str {
        let (first, second) = (self.source(), self.source());
        let text = format!("# %% [code]\n{first}\n# %% [code]\n{second}\n");
        writeln!(self.log, "{who} writes anew\n{text}").unwrap();
        let content = NewContent::parse(&text).unwrap();
        let written =
            self.with_editor(who, |editor, file| editor.write(file, &content, &ChangeOptions::default()));
        if written.is_ok() {
            self.saw(who, lines(&text));
        }
        verdict(&written)
    }

    fn replace(&mut self, who: usize) -> &'static str {
        let notebook = self.notebook();
        let all: Vec<_> = notebook.cells().flat_map(|cell| lines(&cell.source())).collect();
        if all.is_empty() {
            return "nothing there";
        }
        let old = all[self.random.below(all.len())].clone();
        // An exact text is given by those who know it.
        if !self.callers[who].seen.contains(&old) {
            return "not tried";
        }
        let new = self.token();
        writeln!(self.log, "{who} replaces {old} by {new}").unwrap();
        let replacement = Replacement { old, new: new.clone(), matches: Matches::One };
        let edited = self.with_editor(who, |editor, file| {
            editor.replace_text(file, &[replacement], &ChangeOptions::default())
        });
        if edited.is_ok() {
            self.saw(who, vec![new]);
        }
        verdict(&edited)
    }

    fn act(&mut self, who: usize) -> &'static str {
        let notebook = self.notebook();
        let total = notebook.len();
        let at = self.random.below(total + 1);
        let cell = match (at < total, self.random.chance(40)) {
            (true, true) => {
                notebook.cell(at).id().map_or(CellRef::Index(at), |id| CellRef::Id(id.into_owned()))
            }
            _ => CellRef::Index(at),
        };
        let source = self.source();
        let action = match self.random.below(5) {
            0 => Action::Edit { cell, source: source.clone() },
            1 => Action::Delete { cells: vec![cell] },
            2 => Action::Move { cells: vec![cell], to: self.random.below(total.max(1)) },
            3 => Action::Insert { at: Some(at), cells: vec![NewCell::new(CellKind::Code, source.clone())] },
            _ => Action::Insert { at: None, cells: vec![NewCell::new(CellKind::Code, source.clone())] },
        };
        writeln!(self.log, "{who} does {action:?}").unwrap();
        let acted =
            self.with_editor(who, |editor, file| editor.act(file, &action, &ChangeOptions::default()));
        if acted.is_ok() && !matches!(action, Action::Delete { .. } | Action::Move { .. }) {
            self.saw(who, lines(&source));
        }
        verdict(&acted)
    }

    fn undo(&mut self, who: usize) -> &'static str {
        writeln!(self.log, "{who} undoes").unwrap();
        let undone = self.with_editor(who, |editor, file| editor.undo(file, None, &ChangeOptions::default()));
        match &undone {
            Ok(_) => "undone",
            Err(EditingError::Undo { .. }) => "not undone",
            Err(error) => panic!("{error:?}\n{}", self.log),
        }
    }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().filter(|line| line.starts_with("token")).map(str::to_owned).collect()
}

fn verdict(changed: &Result<EditReport, EditingError>) -> &'static str {
    match changed {
        Ok(report) if report.report.notes.iter().any(|note| matches!(note, Note::Merged { .. })) => "merged",
        Ok(_) => "done",
        Err(EditingError::Refused { source, .. }) => match source {
            Refusal::Stale { .. } => "stale",
            Refusal::NeverRead => "never read",
            Refusal::PartlyRead { .. } => "partly read",
            Refusal::CellMoved { .. } => "cell moved",
        },
        Err(EditingError::NoSuchCell { .. } | EditingError::Edit { .. }) => "not possible",
        Err(EditingError::Replace { .. }) => "no match",
        Err(error) => panic!("{error:?}"),
    }
}
