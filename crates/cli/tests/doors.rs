//! Every door to a notebook decides alike: the command line, `cellwright tool`, MCP over stdio, and cells that call tools.
//!
//! `cases.rs` is the table: sequences of calls and of changes by others, each step with its verdict. Each sequence is played
//! at each door, and must end with the same file.

mod caller;
mod cases;
mod mcp;
mod names;
mod random;

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use self::cases::{CASES, Case, Step, Verdict};
use self::mcp::McpServer;

const BINARY: &str = env!("CARGO_BIN_EXE_cellwright");

/// A way to call tools.
enum Door {
    CommandLine,
    Tool,
    Mcp(McpServer),
    /// A cell calls the tools, in the kernel of an MCP server.
    Cell(McpServer),
}

impl Door {
    fn call(&mut self, folder: &TempDir, tool: &str, arguments: &Value) -> Answer {
        match self {
            Self::CommandLine => {
                let (line, stdin) = command_line(tool, arguments);
                run(folder, &line, &stdin)
            }
            Self::Tool => run(folder, &["tool".into(), tool.into(), arguments.to_string()], ""),
            Self::Mcp(server) => server.call(tool, arguments),
            Self::Cell(server) => {
                let code = format!(
                    "import json\ntry:\n    print('done', tool.{tool}(**json.loads({:?}))['text'])\nexcept Exception as e:\n    print('refused', e)",
                    arguments.to_string()
                );
                let Answer { is_error, text } = server.call("eval", &json!({ "code": code }));
                assert!(!is_error, "{text}");
                Answer { is_error: text.starts_with("refused"), text }
            }
        }
    }
}

/// What a call was answered.
struct Answer {
    is_error: bool,
    text: String,
}

/// One door, with files of its own.
struct Place {
    folder: TempDir,
    door: Door,
}

impl Place {
    fn all() -> [Self; 4] {
        let place = |door: fn(&TempDir) -> Door| {
            let folder = tempfile::tempdir().unwrap();
            let door = door(&folder);
            Self { folder, door }
        };
        [
            place(|_| Door::CommandLine),
            place(|_| Door::Tool),
            place(|folder| Door::Mcp(McpServer::start(folder.path()))),
            place(|folder| Door::Cell(McpServer::start(folder.path()))),
        ]
    }

    fn name(&self) -> &'static str {
        match self.door {
            Door::CommandLine => "command line",
            Door::Tool => "cellwright tool",
            Door::Mcp(_) => "MCP",
            Door::Cell(_) => "cell",
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Answer {
        self.door.call(&self.folder, tool, arguments)
    }

    /// Plays a sequence, and returns the notebook it ends with: type and source of each cell, and whether it has outputs.
    fn play(&mut self, number: usize, case: &Case) -> Vec<String> {
        // A file of its own, for what was read of another is remembered.
        let file = format!("{number}-{}", case.file);
        let path = self.folder.path().join(&file);
        let name = self.name();
        match case.start {
            [] => {}
            cells => fs::write(&path, notebook(cells)).unwrap(),
        }
        for (at, step) in case.steps.iter().enumerate() {
            let (tool, mut arguments, expected) = match step {
                Step::Others(cells) => {
                    fs::write(&path, notebook(cells)).unwrap();
                    continue;
                }
                Step::OthersText(text) => {
                    fs::write(&path, text).unwrap();
                    continue;
                }
                Step::Read(selector, expected) => {
                    ("read", json!({ "path": format!("{file}{selector}") }), expected)
                }
                Step::Write(content, expected) => ("write", json!({ "content": content }), expected),
                Step::Edit(old, new, expected) => ("edit", json!({ "old": old, "new": new }), expected),
                Step::Call(tool, arguments, expected) => {
                    (*tool, serde_json::from_str(arguments).expect("arguments are JSON"), expected)
                }
            };
            if arguments.get("path").is_none() {
                arguments["path"] = file.as_str().into();
            }
            let answer = self.call(tool, &arguments);
            let verdict = Verdict::of(answer.is_error, &answer.text);
            let step = format!("{name}: {}, step {at}: {tool} {arguments}", case.name);
            assert_eq!(verdict, *expected, "{step}\n{}", answer.text);
        }
        shown(&fs::read_to_string(&path).unwrap_or_default())
    }
}

fn run(folder: &TempDir, arguments: &[String], stdin: &str) -> Answer {
    let mut command = Command::new(BINARY);
    command.args(arguments).current_dir(folder.path());
    command.env("XDG_STATE_HOME", folder.path().join("state")).env("CELLWRIGHT_CALLER", "doors");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdin.take().unwrap().write_all(stdin.as_bytes())); // it may refuse before it reads
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    Answer { is_error: !output.status.success(), text }
}

/// A call of a tool as a command, and what goes to its stdin.
fn command_line(tool: &str, arguments: &Value) -> (Vec<String>, String) {
    let word = |key: &str| match &arguments[key] {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let path = word("path").unwrap();
    let mut line: Vec<String> = Vec::new();
    let mut stdin = String::new();
    match (tool, word("action").as_deref()) {
        ("read", _) => {
            line.extend(["read".into(), path]);
            line.extend(word("outputs").map(|outputs| format!("--outputs={outputs}")));
            line.extend(word("search").map(|search| format!("--search={search}")));
        }
        ("write", _) => {
            line.extend(["write".into(), path]);
            stdin = word("content").unwrap();
        }
        ("edit", _) => {
            line.extend(["edit".into(), path]);
            line.extend(word("old").map(|old| format!("--old={old}")));
            line.extend(word("new").map(|new| format!("--new={new}")));
            line.extend(word("all").map(|_| "--all".into()));
        }
        ("notebook", Some("run")) => {
            line.extend(["run".into(), path]);
            line.extend(word("cell").map(|cells| format!("--cells={cells}")));
        }
        ("notebook", Some(action)) => {
            line.extend(["notebook".into(), action.into(), path]);
            line.extend(word("cell"));
            line.extend(word("source").map(|source| format!("--source={source}")));
            match action {
                "insert" => {
                    line.extend(word("at").map(|at| format!("--at={at}")));
                    line.extend(word("type").map(|kind| format!("--type={kind}")));
                }
                "move" => line.extend(word("at")),
                _ => line.extend(word("type")),
            }
            line.extend(word("change"));
        }
        (other, _) => panic!("{other} has no command"),
    }
    line.extend(word("force").map(|_| "--force".into()));
    line.extend(word("expect").map(|expect| format!("--expect={expect}")));
    (line, stdin)
}

/// A notebook of these cells, each a text `id: source`. Those whose source looks like code have an output.
fn notebook(cells: &[&str]) -> String {
    let cells = cells.iter().map(|cell| {
        let (id, source) = cell.split_once(": ").unwrap_or((cell, cell));
        let output = json!([{"name": "stdout", "output_type": "stream", "text": ["old\n"]}]);
        if source.starts_with('#') {
            json!({"cell_type": "markdown", "id": id, "metadata": {}, "source": source})
        } else {
            json!({
                "cell_type": "code", "execution_count": 1, "id": id, "metadata": {}, "outputs": output,
                "source": source,
            })
        }
    });
    let cells: Vec<_> = cells.collect();
    let whole = json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    serde_json::to_string_pretty(&whole).unwrap()
}

/// What a file holds, without what is different each time: new ids, and when cells ran.
fn shown(file: &str) -> Vec<String> {
    let notebook = serde_json::from_str::<Value>(file).unwrap_or_default();
    let Some(cells) = notebook["cells"].as_array() else { return vec![file.to_owned()] };
    let cell = |cell: &Value| {
        let source = match &cell["source"] {
            Value::Array(lines) => lines.iter().map(|line| line.as_str().unwrap()).collect(),
            source => source.as_str().unwrap().to_owned(),
        };
        let id = cell["id"].as_str().filter(|id| id.len() < 8).unwrap_or("new");
        let outputs = &cell["outputs"];
        format!("{id} {} {source:?} {outputs}", cell["cell_type"].as_str().unwrap())
    };
    cells.iter().map(cell).collect()
}

#[test]
fn every_door_gives_the_same_verdict_and_the_same_file() {
    assert!(CASES.len() >= 25, "{} sequences", CASES.len());
    let mut places = Place::all();
    for (number, case) in CASES.iter().enumerate() {
        let mut ends = places.iter_mut().map(|place| (place.name(), place.play(number, case)));
        let (_, first) = ends.next().expect("there are doors");
        for (name, end) in ends {
            assert_eq!(end, first, "{name}: {}", case.name);
        }
    }
}
