//! Random steps by two callers at two doors, and by a third program, through the real binary.
//!
//! `editing`'s model test checks more laws, on the editor itself. This one checks that the doors pass everything on: each
//! sequence is played in two worlds, in which the callers come through different doors. The laws:
//!
//! - Both worlds give the same verdicts and end with the same file.
//! - What is gone from the file is in the undo store.
//! - A text of all cells takes away no source that its caller was not shown.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::cases::Verdict;
use super::mcp::McpServer;
use super::{Answer, Door, shown};

/// How many sequences there are, unless `CELLWRIGHT_MODEL_SEQUENCES` says otherwise.
const SEQUENCES: u64 = 40;
const STEPS: usize = 25;

#[test]
fn random_sequences_end_alike_at_all_doors_and_lose_no_text() {
    let asked = std::env::var("CELLWRIGHT_MODEL_SEQUENCES").ok().and_then(|asked| asked.parse().ok());
    let mut first = World::new(|_| Door::CommandLine, |folder| Door::Mcp(McpServer::start(folder)));
    let mut second = World::new(|folder| Door::Mcp(McpServer::start(folder)), |_| Door::Tool);
    for seed in 0..asked.unwrap_or(SEQUENCES) {
        first.begin(seed);
        second.begin(seed);
        for step in 0..STEPS {
            let (verdict, other) = (first.step(), second.step());
            let log =
                || format!("seed {seed}, step {step}\n{}\n--- the other world:\n{}", first.log, second.log);
            assert_eq!(verdict, other, "{}", log());
            assert_eq!(shown(&first.file()), shown(&second.file()), "{}", log());
        }
    }
}

struct RandomCaller {
    door: Door,
    /// Everything that it was shown, or gave.
    seen: BTreeSet<String>,
    /// The last text of all cells that it was shown.
    text: Option<String>,
}

struct World {
    folder: TempDir,
    callers: [RandomCaller; 2],
    /// The notebook of this sequence.
    name: String,
    random: u64,
    tokens: usize,
    log: String,
}

impl World {
    fn new(first: impl Fn(&Path) -> Door, second: impl Fn(&Path) -> Door) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let caller = |door| RandomCaller { door, seen: BTreeSet::new(), text: None };
        let callers = [caller(first(folder.path())), caller(second(folder.path()))];
        Self { folder, callers, name: String::new(), random: 1, tokens: 0, log: String::new() }
    }

    /// A notebook of its own, for what was read of another is remembered.
    fn begin(&mut self, seed: u64) {
        self.name = format!("{seed}.ipynb");
        self.random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        self.log.clear();
        for caller in &mut self.callers {
            caller.seen.clear();
            caller.text = None;
        }
        let cells: Vec<_> = (0..3).map(|at| code(&format!("c{at}"), &self.source())).collect();
        self.save(&json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}));
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random % limit.max(1) as u64).unwrap()
    }

    fn token(&mut self, kind: &str) -> String {
        self.tokens += 1;
        format!("{kind}{:05}", self.tokens)
    }

    /// One or two lines, each a name that occurs once.
    fn source(&mut self) -> String {
        let lines: Vec<_> = (0..=self.below(2)).map(|_| self.token("line")).collect();
        lines.join("\n")
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    fn file(&self) -> String {
        fs::read_to_string(self.path()).unwrap()
    }

    fn save(&mut self, notebook: &Value) {
        let text = serde_json::to_string_pretty(notebook).unwrap();
        if self.below(2) == 0 {
            fs::write(self.path(), text).unwrap();
        } else {
            let beside = self.folder.path().join("beside");
            fs::write(&beside, text).unwrap();
            fs::rename(beside, self.path()).unwrap();
        }
    }

    /// Makes a random step and checks the laws.
    fn step(&mut self) -> Verdict {
        let who = self.below(2);
        let before = self.file();
        let notebook: Value = serde_json::from_str(&before).unwrap();
        let (tool, arguments) = match self.below(20) {
            0..=2 => {
                self.others(notebook);
                return Verdict::Done;
            }
            3..=8 => ("read", self.read(&notebook)),
            9..=12 => ("write", self.write(who)),
            13..=14 => ("edit", self.edit(who, &before)),
            15..=18 => ("notebook", self.action(&notebook)),
            _ => ("notebook", json!({ "action": "undo" })),
        };
        let answer = self.call(who, tool, &arguments);
        let after = self.file();
        let gone: BTreeSet<_> = tokens(&before).difference(&tokens(&after)).cloned().collect();
        let kept = tokens(&self.undo_store());
        assert!(
            gone.is_subset(&kept),
            "{gone:?} are neither in the file nor in the undo store\n{}",
            self.log
        );
        let caller = &mut self.callers[who];
        if tool == "write" {
            let unseen: Vec<_> =
                gone.iter().filter(|line| line.starts_with("line") && !caller.seen.contains(*line)).collect();
            assert!(unseen.is_empty(), "{unseen:?} were not shown to the caller\n{}", self.log);
        }
        if !answer.is_error {
            caller.seen.extend(tokens(&arguments.to_string()));
        }
        caller.seen.extend(tokens(&answer.text));
        if tool == "read"
            && arguments["path"] == self.name.as_str()
            && arguments.as_object().unwrap().len() == 1
        {
            caller.text = Some(answer.text.trim_end().to_owned() + "\n");
        }
        Verdict::of(answer.is_error, &answer.text)
    }

    fn call(&mut self, who: usize, tool: &str, arguments: &Value) -> Answer {
        let mut arguments = arguments.clone();
        if arguments.get("path").is_none() {
            arguments["path"] = self.name.as_str().into();
        }
        let answer = self.callers[who].door.call(&self.folder, tool, &arguments);
        writeln!(self.log, "{who}: {tool} {arguments}\n{}\n", answer.text).unwrap();
        answer
    }

    /// All that is stored of the notebook.
    fn undo_store(&self) -> String {
        let mut stored = String::new();
        let folders = fs::read_dir(self.folder.path().join("state/cellwright/history"));
        let is_ours = |folder: &fs::DirEntry| {
            fs::read_to_string(folder.path().join("path")).unwrap().ends_with(&format!("/{}", self.name))
        };
        for folder in folders.into_iter().flatten().flatten().filter(is_ours) {
            for entry in fs::read_dir(folder.path()).unwrap() {
                stored.push_str(&fs::read_to_string(entry.unwrap().path()).unwrap());
            }
        }
        stored
    }

    /// Another program saves the notebook.
    fn others(&mut self, mut notebook: Value) {
        let source = self.source();
        let output = self.token("shown");
        let cells = notebook["cells"].as_array_mut().unwrap();
        let count = cells.len();
        let (what, at, to) = (self.below(5), self.below(count), self.below(count));
        match what {
            0 => cells.insert(at, code(&format!("p{}", self.tokens), &source)),
            1 if count > 1 => drop(cells.remove(at)),
            2 if count > 1 => {
                let cell = cells.remove(at);
                cells.insert(to, cell);
            }
            3 if count > 0 && cells[at]["cell_type"] == "code" => {
                cells[at]["outputs"] = json!([{"name": "stdout", "output_type": "stream", "text": output}]);
            }
            _ if count > 0 => cells[at]["source"] = json!(source),
            _ => {}
        }
        self.save(&notebook);
        writeln!(self.log, "others save\n{}\n", shown(&self.file()).join("\n")).unwrap();
    }

    fn read(&mut self, notebook: &Value) -> Value {
        let cell = self.below(notebook["cells"].as_array().unwrap().len());
        let (line, count) = (1 + self.below(5), 1 + self.below(4));
        let (choice, name) = (self.below(8), &self.name);
        match choice {
            0..=2 => json!({ "path": name }),
            3 => json!({ "path": format!("{name}#{cell}") }),
            4 => json!({ "path": format!("{name}:{line}+{count}") }),
            5 => json!({ "path": format!("{name}:raw") }),
            6 => json!({ "path": name, "outputs": "text" }),
            _ => json!({ "path": name, "search": "line.*[02468]$" }),
        }
    }

    /// The text that the caller was shown last, with a cell changed, added or left out; or one that names no cells.
    fn write(&mut self, who: usize) -> Value {
        let (new, choice) = (self.source(), self.below(5));
        let shown = self.callers[who].text.clone().unwrap_or_else(|| "# %% [code] cell:0\nx\n".to_owned());
        let mut cells: Vec<_> = shown.split("# %% [").skip(1).map(|cell| format!("# %% [{cell}")).collect();
        let at = self.below(cells.len());
        match choice {
            0 => cells = vec![format!("# %% [code]\n{new}\n")],
            1 => cells.insert(at, format!("# %% [markdown]\n{new}\n")),
            2 if cells.len() > 1 => drop(cells.remove(at)),
            _ if !cells.is_empty() => {
                let marker = cells[at].lines().next().unwrap_or_default().to_owned();
                cells[at] = format!("{marker}\n{new}\n");
            }
            _ => {}
        }
        json!({ "content": cells.concat() })
    }

    /// A line of the file by another one, if the caller has seen it.
    fn edit(&mut self, who: usize, file: &str) -> Value {
        let lines: Vec<_> = tokens(file).into_iter().filter(|token| token.starts_with("line")).collect();
        let (at, new) = (self.below(lines.len()), self.token("line"));
        let old = lines.get(at).filter(|line| self.callers[who].seen.contains(*line));
        json!({ "old": old.map_or("nowhere", String::as_str), "new": new })
    }

    fn action(&mut self, notebook: &Value) -> Value {
        let cells = notebook["cells"].as_array().unwrap();
        let (at, to, source) = (self.below(cells.len()), self.below(cells.len()), self.source());
        let by_id = self.below(3) == 0;
        let cell = match cells.get(at) {
            Some(cell) if by_id => format!("id:{}", cell["id"].as_str().unwrap()),
            _ => at.to_string(),
        };
        match self.below(7) {
            0 | 1 => json!({ "action": "edit", "cell": cell, "source": source }),
            2 => json!({ "action": "delete", "cell": cell }),
            3 => json!({ "action": "move", "cell": cell, "at": to }),
            4 => json!({ "action": "insert", "at": to, "source": source }),
            5 => json!({ "action": "retype", "cell": cell, "type": "markdown" }),
            _ => json!({ "action": "insert", "source": source }),
        }
    }
}

fn code(id: &str, source: &str) -> Value {
    json!({
        "cell_type": "code", "execution_count": null, "id": id, "metadata": {}, "outputs": [], "source": source,
    })
}

/// The names that stand for lines of sources and of outputs.
fn tokens(text: &str) -> BTreeSet<String> {
    let starts = ["line", "shown"].iter().flat_map(|kind| text.match_indices(kind));
    let token = |(at, kind): (usize, &str)| text.get(at..at + kind.len() + 5);
    let is_token = |token: &&str| token.bytes().rev().take(5).all(|byte| byte.is_ascii_digit());
    starts.filter_map(token).filter(is_token).map(str::to_owned).collect()
}
