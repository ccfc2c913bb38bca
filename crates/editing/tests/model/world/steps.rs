//! What callers and the third program do.

use std::fmt::Write as _;
use std::fs;

use cellwright_editing::view::OutputView;
use cellwright_editing::{ChangeOptions, EditRefusal, EditReport, EditingError, NewContent, ReadRequest};
use cellwright_notebook::replace::{Matches, TextReplacement};
use cellwright_notebook::{
    Action, CellKind, CellRef, ChangeNote, NewCell, Notebook, OutputsAfterEdit, Selector,
};
use serde_json::json;

use super::{StepKind, World, id, lines, version};

impl World {
    /// Makes a random step; how it ended.
    pub(super) fn random_step(&mut self, who: usize) -> (StepKind, &'static str) {
        match self.random.below(100) {
            0..=27 => (StepKind::Read, self.read(who, None)),
            28..=42 => (StepKind::Foreign, self.foreign()),
            43..=44 => (StepKind::History, self.turn_history()),
            45..=60 => (StepKind::Write, self.write(who)),
            61..=64 => (StepKind::Write, self.write_unnamed(who)),
            65..=70 if self.callers[who].json.is_some() => (StepKind::Json, self.write_json(who)),
            65..=70 => (StepKind::Read, self.read(who, Some(":raw"))),
            71..=75 => (StepKind::Replace, self.replace(who)),
            76..=79 => (StepKind::Marker, self.replace_marker(who)),
            80..=93 => self.act(who),
            94..=97 => (StepKind::Undo, self.undo(who)),
            _ => (StepKind::Undo, self.undo_numbered(who)),
        }
    }

    /// Reads what is asked for, or anything.
    fn read(&mut self, who: usize, asked: Option<&str>) -> &'static str {
        let now = self.notebook();
        let total = now.len();
        let (mut search, mut budget) = (None, usize::MAX);
        let lines_from = |world: &mut Self| {
            let from = 1 + world.random.below(6);
            format!(":{from}-{}", from + world.random.below(6))
        };
        let selector = match self.random.below(9) {
            _ if asked.is_some() => asked.unwrap_or_default().to_owned(),
            0..=2 => String::new(),
            3 => format!("#{}", self.random.below(total.max(1))),
            4 => lines_from(self),
            5 => ":raw".to_owned(),
            6 => format!(":raw{}", lines_from(self)),
            7 => {
                let tokens: Vec<_> = now.cells().flat_map(|cell| lines(&cell.source())).collect();
                search = tokens.get(self.random.below(tokens.len())).cloned();
                String::new()
            }
            _ => {
                budget = 20 + self.random.below(120);
                String::new()
            }
        };
        let outputs = match self.random.below(4) {
            0 => OutputView::Text { budget: 15 + self.random.below(60) },
            1 => OutputView::Summary,
            _ => OutputView::None,
        };
        let reads = format!("{who} reads {selector:?} within {budget}, searching {search:?}");
        writeln!(self.log, "{reads}, outputs: {outputs:?}").unwrap();
        let parsed = Selector::parse(&selector).unwrap();
        let search = search.map(|search| regex::Regex::new(&search).unwrap());
        let request = ReadRequest { selector: &parsed, outputs, search: search.as_ref(), budget };
        let read = self.with_editor(who, |editor, file| editor.read(file, &request));
        let Ok(read) = read else { return "nothing there" };
        let shown = read.shown.text();
        let is_whole = without_outputs(&shown) == self.text() || shown == now.text();
        // A line at the end of a page may be cut.
        let complete = match &search {
            None if !shown.ends_with('\n') && !is_whole => shown.rsplit_once('\n').map_or("", |(a, _)| a),
            _ => shown.as_str(),
        };
        // Of JSON and of search results, which have something before each line, the tokens count.
        let seen: Vec<_> = if parsed.raw || search.is_some() {
            super::tokens(complete).into_iter().collect()
        } else {
            lines(complete)
        };
        let text = self.text();
        let shown_lines = ShownRange::of(&selector);
        let caller = &mut self.callers[who];
        caller.fingerprint = Some(read.fingerprint);
        caller.files.insert(now.text().to_owned());
        for cell in now.cells().filter(|cell| cell.id().is_some()) {
            let marker = format!("# %% [{}] cell:{}", cell.kind(), cell.index());
            let shows_marker =
                complete.lines().any(|line| line == marker || line.ends_with(&format!(": {marker}")));
            // Of JSON, any line of the cell counts as seeing that version of it, but shows no number.
            let shows_json = parsed.raw && shown_lines.overlaps(&now, cell.index());
            let shows_text = shows_marker || lines(&cell.source()).iter().any(|line| seen.contains(line));
            if shows_text {
                caller.knows(id(&cell).unwrap(), version(&cell));
            } else if shows_json {
                caller.latest.insert(id(&cell).unwrap(), version(&cell));
            }
            if shows_text && !parsed.raw {
                caller.numbers.insert(cell.index(), id(&cell).unwrap());
            }
        }
        if is_whole && search.is_none() {
            caller.others_changed = false;
            let versions = now.cells().filter_map(|cell| Some((id(&cell)?, version(&cell))));
            caller.base = versions.collect();
            let numbers = now.cells().filter_map(|cell| Some((cell.index(), id(&cell)?)));
            caller.numbers = numbers.collect();
            caller.text = Some(text);
            if parsed.raw {
                caller.json = Some(shown.clone());
            }
        }
        self.saw(who, seen);
        "read"
    }

    /// The history can no longer be written, or can again.
    fn turn_history(&mut self) -> &'static str {
        let (there, away) = (self.folder.path().join("history"), self.folder.path().join("history-away"));
        writeln!(self.log, "the history changes").unwrap();
        if there.is_file() {
            fs::remove_file(&there).unwrap();
            if away.exists() {
                fs::rename(away, there).unwrap();
            }
            return "history mended";
        }
        if there.exists() {
            fs::rename(&there, away).unwrap();
        }
        fs::write(there, "not a folder").unwrap();
        "history broken"
    }

    /// Another program changes the file and saves it, by a rename or in place.
    fn foreign(&mut self) -> &'static str {
        let notebook = self.notebook();
        let total = notebook.len();
        let cell = self.random.below(total);
        let action = match self.random.below(8) {
            0 => Action::Insert {
                at: Some(self.random.below(total + 1)),
                cells: vec![NewCell::new(CellKind::Code, self.source())],
            },
            1 if total > 1 => Action::Delete { cells: vec![CellRef::Index(cell)] },
            2 if total > 1 => {
                Action::Move { cells: vec![CellRef::Index(cell)], to: self.random.below(total) }
            }
            3 if total > 0 => {
                let kind = if self.random.chance(50) { CellKind::Markdown } else { CellKind::Code };
                Action::Retype { cells: vec![CellRef::Index(cell)], kind }
            }
            4 | 5 if total > 0 => return self.foreign_member(cell),
            6 if !self.versions.is_empty() => {
                // Back to an earlier version.
                let (id, (_, source)) = self.versions[self.random.below(self.versions.len())].clone();
                Action::Edit { cell: CellRef::Id(id), source }
            }
            _ if total > 0 => Action::Edit { cell: CellRef::Index(cell), source: self.source() },
            _ => return "nothing there",
        };
        writeln!(self.log, "another program does {action:?}").unwrap();
        let Ok(edited) = notebook.act(&action, OutputsAfterEdit::Clear) else { return "nothing there" };
        let changed = edited.notebook.unwrap_or(notebook);
        self.save_foreign(changed.text());
        "saved by others"
    }

    /// Another program adds an output or a tag.
    fn foreign_member(&mut self, cell: usize) -> &'static str {
        let mut notebook: serde_json::Value = serde_json::from_str(self.notebook().text()).unwrap();
        let token = self.token();
        let cell = &mut notebook["cells"][cell];
        if self.random.chance(50) && cell["cell_type"] == "code" {
            cell["outputs"] = json!([{"name": "stdout", "output_type": "stream", "text": token}]);
        } else {
            let tags = cell["metadata"]["tags"].as_array().cloned().unwrap_or_default();
            let tags: Vec<_> = tags.into_iter().chain([json!(token)]).collect();
            cell["metadata"]["tags"] = json!(tags);
        }
        writeln!(self.log, "another program adds {token}").unwrap();
        self.save_foreign(&serde_json::to_string_pretty(&notebook).unwrap());
        "saved by others"
    }

    fn save_foreign(&mut self, text: &str) {
        if self.random.chance(50) {
            let beside = self.folder.path().join("beside");
            fs::write(&beside, text).unwrap();
            fs::rename(beside, self.path()).unwrap();
        } else {
            fs::write(self.path(), text).unwrap();
        }
    }

    /// With the fingerprint of the caller's last read, or without one.
    fn options(&mut self, who: usize) -> ChangeOptions {
        let expect = self.callers[who].fingerprint.filter(|_| self.random.chance(25));
        self.is_expected = expect.is_some();
        ChangeOptions { expect, ..ChangeOptions::default() }
    }

    /// A text that the caller was shown once, with some cells changed.
    fn write(&mut self, who: usize) -> &'static str {
        // Numbers mean the file as it is when it is the one that the caller expects.
        let shown = self.callers[who].text.clone().filter(|_| !self.random.chance(10));
        let base = shown.unwrap_or_else(|| self.text());
        let mut cells = cellwright_notebook::text::parse(&base).unwrap();
        for _ in 0..=self.random.below(2) {
            let at = self.random.below(cells.len());
            match self.random.below(5) {
                0 if cells.len() > 1 => drop(cells.remove(at)),
                1 if !cells.is_empty() => cells[at].cell.source = self.source(),
                3 if !cells.is_empty() => {
                    let kind = &mut cells[at].cell.kind;
                    *kind = if *kind == CellKind::Code { CellKind::Markdown } else { CellKind::Code };
                }
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
            let (kind, source) = (cell.cell.kind, &cell.cell.source);
            match cell.origin {
                Some(origin) => writeln!(text, "# %% [{kind}] cell:{origin}\n{source}").unwrap(),
                None => writeln!(text, "# %% [{kind}]\n{source}").unwrap(),
            }
        }
        let options = self.options(who);
        writeln!(self.log, "{who} writes, expecting {:?}\n{text}", options.expect).unwrap();
        let content = NewContent::parse(&text).unwrap();
        let written = self.with_editor(who, |editor, file| editor.write(file, &content, &options));
        if written.is_ok() {
            self.saw(who, lines(&text));
            if self.is_expected {
                self.callers[who].numbers.clear();
            }
            self.callers[who].written =
                cells.into_iter().map(|cell| (cell.cell.kind, cell.cell.source)).collect();
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
            self.callers[who].numbers.clear();
        }
        verdict(&written)
    }

    fn write_json(&mut self, who: usize) -> &'static str {
        let Some(json) = self.callers[who].json.clone() else { return "not tried" };
        let Some(old) = super::tokens(&json).into_iter().next() else { return "not tried" };
        let new = self.token();
        let json = json.replace(&old, &new);
        let options = self.options(who);
        writeln!(self.log, "{who} writes JSON with {new} for {old}, expecting {:?}", options.expect).unwrap();
        let content = NewContent::parse(&json).unwrap();
        let written = self.with_editor(who, |editor, file| editor.write(file, &content, &options));
        if written.is_ok() {
            self.callers[who].json = Some(json);
            self.callers[who].numbers.clear();
            self.saw(who, vec![new]);
        }
        verdict(&written)
    }

    fn replace_marker(&mut self, who: usize) -> &'static str {
        let notebook = self.notebook();
        let number = self.random.below(notebook.len());
        if notebook.is_empty() {
            return "nothing there";
        }
        self.named.push(number);
        let old = format!("# %% [{}] cell:{number}", notebook.cell(number).kind());
        let new = if old.contains("[code]") { "# %% [markdown]" } else { "# %% [code]" };
        let new = format!("{new} cell:{number}");
        writeln!(self.log, "{who} replaces {old} by {new}").unwrap();
        let replacement = TextReplacement { old, new, matches: Matches::One };
        let edited = self.with_editor(who, |editor, file| {
            editor.replace_text(file, &[replacement], &ChangeOptions::default())
        });
        verdict(&edited)
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
        let replacement = TextReplacement { old, new: new.clone(), matches: Matches::One };
        let edited = self.with_editor(who, |editor, file| {
            editor.replace_text(file, &[replacement], &ChangeOptions::default())
        });
        if edited.is_ok() {
            self.saw(who, vec![new]);
        }
        verdict(&edited)
    }

    /// A cell by number or id, which may be past the end.
    fn random_cell(&mut self, notebook: &Notebook) -> CellRef {
        let at = self.random.below(notebook.len() + 1);
        let by_id = at < notebook.len() && self.random.chance(40);
        match by_id.then(|| id(&notebook.cell(at))).flatten() {
            Some(id) => CellRef::Id(id),
            None => CellRef::Index(at),
        }
    }

    fn random_cells(&mut self, notebook: &Notebook) -> Vec<CellRef> {
        let count = if self.random.chance(30) { 2 + self.random.below(2) } else { 1 };
        (0..count).map(|_| self.random_cell(notebook)).collect()
    }

    fn act(&mut self, who: usize) -> (StepKind, &'static str) {
        let notebook = self.notebook();
        let total = notebook.len();
        let source = self.source();
        let new = || vec![NewCell::new(CellKind::Code, source.clone())];
        let action = match self.random.below(8) {
            0 | 1 => Action::Edit { cell: self.random_cell(&notebook), source: source.clone() },
            2 => Action::Delete { cells: self.random_cells(&notebook) },
            3 => {
                let cells = self.random_cells(&notebook);
                Action::Move { cells, to: self.random.below(total.max(1)) }
            }
            4 => Action::Insert { at: Some(self.random.below(total + 1)), cells: new() },
            5 => Action::Insert { at: None, cells: new() },
            6 => {
                let kind = if self.random.chance(50) { CellKind::Markdown } else { CellKind::Code };
                Action::Retype { cells: self.random_cells(&notebook), kind }
            }
            _ => Action::Clear { cells: self.random.chance(50).then(|| self.random_cells(&notebook)) },
        };
        writeln!(self.log, "{who} does {action:?}").unwrap();
        let places = match &action {
            // The first place is always where the caller means it.
            Action::Insert { at: Some(at), .. } if *at > 0 => Some(*at),
            Action::Move { to, .. } => Some(*to),
            _ => None,
        };
        let numbers = action.named_cells().iter().filter_map(|cell| match cell {
            CellRef::Index(index) => Some(*index),
            CellRef::Id(_) => None,
        });
        self.named.extend(numbers.chain(places));
        let acted =
            self.with_editor(who, |editor, file| editor.act(file, &action, &ChangeOptions::default()));
        if acted.is_ok() && matches!(action, Action::Edit { .. } | Action::Insert { .. }) {
            self.saw(who, lines(&source));
        }
        let kind = if matches!(action, Action::Retype { .. }) { StepKind::Retype } else { StepKind::Act };
        (kind, verdict(&acted))
    }

    fn undo(&mut self, who: usize) -> &'static str {
        writeln!(self.log, "{who} undoes").unwrap();
        self.undo_with(who, None, &ChangeOptions::default())
    }

    /// Any change, also an undo, and sometimes although others changed its cells since.
    fn undo_numbered(&mut self, who: usize) -> &'static str {
        let changes: Vec<_> = self.with_editor(who, |editor, file| {
            editor.history(file).into_iter().map(|change| (change.number, change.to_string())).collect()
        });
        let Some((number, change)) = changes.get(self.random.below(changes.len())) else {
            return "nothing there";
        };
        let force = self.random.chance(30);
        self.is_forced = force;
        writeln!(self.log, "{who} undoes change {number}: {change}, force: {force}").unwrap();
        self.undo_with(who, Some(*number), &ChangeOptions { force, ..ChangeOptions::default() })
    }

    fn undo_with(&mut self, who: usize, number: Option<u64>, options: &ChangeOptions) -> &'static str {
        let is_kept = !self.folder.path().join("history").is_file();
        let undone = self.with_editor(who, |editor, file| editor.undo(file, number, options));
        match &undone {
            Ok(_) if is_kept => "undone",
            Ok(_) => panic!("an undo that cannot be stored was made\n{}", self.log),
            Err(EditingError::Undo { .. }) => "not undone",
            Err(EditingError::NotKept { .. }) => "not kept",
            Err(error) => panic!("{error:?}\n{}", self.log),
        }
    }
}

/// A view without the outputs that it shows below cells.
fn without_outputs(shown: &str) -> String {
    let mut is_output = false;
    let lines = shown.split_inclusive('\n').filter(|line| {
        if line.starts_with("# %% [") {
            is_output = line.starts_with("# %% [output");
        }
        !is_output
    });
    lines.collect()
}

/// The lines that a selector asks for.
struct ShownRange(usize, usize);

impl ShownRange {
    fn of(selector: &str) -> Self {
        let lines = selector.rsplit_once(':').and_then(|(_, lines)| lines.split_once('-'));
        lines.map_or(Self(1, usize::MAX), |(from, to)| Self(from.parse().unwrap(), to.parse().unwrap()))
    }

    /// Whether one of them is a line of this cell's JSON.
    fn overlaps(&self, notebook: &Notebook, cell: usize) -> bool {
        let line = |at: usize| notebook.text()[..at].matches('\n').count() + 1;
        let at = notebook.position(cell);
        self.0 <= line(at.end) && line(at.start) <= self.1
    }
}

fn verdict(changed: &Result<EditReport, EditingError>) -> &'static str {
    match changed {
        Ok(report) if report.report.notes.iter().any(|note| matches!(note, ChangeNote::Merged { .. })) => {
            "merged"
        }
        Ok(_) => "done",
        Err(EditingError::Refused { source, .. }) => match source {
            EditRefusal::Stale { .. } => "stale",
            EditRefusal::NeverRead => "never read",
            EditRefusal::PartlyRead { .. } => "partly read",
            EditRefusal::CellMoved { .. } => "cell moved",
        },
        Err(EditingError::NoSuchCell { .. } | EditingError::Edit { .. }) => "not possible",
        Err(EditingError::Replace { .. }) => "no match",
        Err(EditingError::NotKept { .. }) => "not kept",
        Err(EditingError::Unexpected { .. }) => "unexpected",
        Err(error) => panic!("{error:?}"),
    }
}
