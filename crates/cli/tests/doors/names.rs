//! Names are the same at every door: a tool or a notebook action that one of them forgets fails here.

use std::collections::BTreeSet;
use std::path::Path;

use cellwright_editing::ACTION_NAMES;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::mcp::McpServer;
use super::run;

#[test]
fn notebook_actions_are_named_alike_by_command_line_schema_and_docs() {
    let folder = tempfile::tempdir().unwrap();
    let actions = BTreeSet::from(ACTION_NAMES.map(str::to_owned));
    assert_eq!(actions, subcommands(&folder, "notebook"), "cellwright notebook --help");
    let schema = tools(&folder).into_iter().find(|tool| tool["name"] == "notebook").unwrap();
    let mut in_schema = strings(&schema["schema"]["properties"]["action"]["enum"]);
    assert!(in_schema.remove("run"), "which is a command of its own on the command line");
    assert_eq!(actions, in_schema, "the schema of the tool");
    let page = page("notebooks.md");
    let shown = page.lines().filter_map(|line| line.strip_prefix("cellwright notebook "));
    assert_eq!(actions, shown.map(first_word).collect(), "docs/notebooks.md");
}

#[test]
fn tools_are_named_alike_by_command_line_mcp_and_docs() {
    let folder = tempfile::tempdir().unwrap();
    let names = |tools: &[Value]| -> BTreeSet<String> {
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let tools = names(&tools(&folder));
    let listed = McpServer::start(folder.path()).request("tools/list", &json!({}));
    assert_eq!(tools, names(listed["result"]["tools"].as_array().unwrap()), "tools/list");
    let page = page("mcp.md");
    let rows = page.split("## The tools").nth(1).unwrap().split("\n## ").next().unwrap().lines();
    let rows = rows.filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    assert_eq!(tools, rows.map(str::to_owned).collect(), "docs/mcp.md");
}

/// The tools as `cellwright tool` lists them.
fn tools(folder: &TempDir) -> Vec<Value> {
    let answer = run(folder, &["tool".into(), "--json".into()], "");
    serde_json::from_str(&answer.text).unwrap_or_else(|_| panic!("{}", answer.text))
}

fn subcommands(folder: &TempDir, command: &str) -> BTreeSet<String> {
    let help = run(folder, &[command.into(), "--help".into()], "").text;
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    commands.lines().map(first_word).filter(|name| name != "help").collect()
}

fn first_word(line: &str) -> String {
    line.split_whitespace().next().unwrap_or_default().to_owned()
}

fn strings(array: &Value) -> BTreeSet<String> {
    array.as_array().unwrap().iter().map(|value| value.as_str().unwrap().to_owned()).collect()
}

fn page(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)).unwrap()
}
