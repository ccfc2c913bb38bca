//! The command of a call: its line, its environment and its folder, as agents name them.

use std::path::PathBuf;

use agent_client_protocol_schema::v1::ToolCall;
use serde_json::Value;

/// The fields in which agents put a command. If a call has several, we cannot know which one runs.
const LINES: [&str; 4] = ["command", "cmd", "script", "shell_command"];

const ENVIRONMENTS: [&str; 2] = ["env", "environment"];

const FOLDERS: [&str; 7] =
    ["cwd", "workdir", "working_directory", "workingDirectory", "directory", "dir_path", "dir"];

/// Flags of a shell that do not change what its script means.
const SHELL_FLAGS: [&str; 4] = ["--login", "--norc", "--noprofile", "--posix"];

/// The whole command line of a call, with the variables that are set for it.
pub(crate) fn command(call: &ToolCall) -> Option<String> {
    command_of(call.raw_input.as_ref()?)
}

/// The same for the input of a call.
pub(crate) fn command_of(input: &Value) -> Option<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in LINES.iter().filter_map(|field| line_of(input.get(field)?)) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let mut line = lines.join("\n");
    if line.is_empty() && !LINES.iter().any(|field| input.get(field).is_some_and(Value::is_string)) {
        return None;
    }
    if let Some(arguments) = input.get("args").and_then(words_of).filter(|words| !words.is_empty()) {
        line = format!("{line} {}", shell_words::join(arguments));
    }
    for (name, value) in variables(input).into_iter().rev() {
        line = format!("{name}={} {line}", shell_words::quote(&value));
    }
    Some(line)
}

fn line_of(value: &Value) -> Option<String> {
    match value {
        Value::String(line) => Some(line.clone()),
        list => words_of(list).map(shell_words::join),
    }
}

fn words_of(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::Array(words) => words.iter().map(Value::as_str).collect(),
        Value::String(words) => Some(vec![words]),
        _ => None,
    }
}

/// The variables that an agent sets for a command.
fn variables(input: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    let given = ENVIRONMENTS.iter().filter_map(|field| input.get(field));
    let listed = given.flat_map(|environment| match environment {
        Value::Object(variables) => {
            variables.iter().map(|(name, value)| (name.clone(), text(value))).collect::<Vec<_>>()
        }
        Value::Array(variables) => {
            let variable = |variable: &Value| match variable {
                Value::String(line) => {
                    let (name, value) = line.split_once('=').unwrap_or((line, ""));
                    (name.to_owned(), value.to_owned())
                }
                other => (text(&other["name"]), text(&other["value"])),
            };
            variables.iter().map(variable).collect()
        }
        Value::Null => Vec::new(),
        other => vec![("env".to_owned(), other.to_string())],
    });
    listed.collect()
}

/// Whether an agent sets variables for the command. They can change what it runs.
pub(crate) fn has_environment(call: &ToolCall) -> bool {
    call.raw_input.as_ref().is_some_and(|input| !variables(input).is_empty())
}

/// The folder in which a command would run, if the agent names one.
pub(crate) fn folder(call: &ToolCall) -> Option<PathBuf> {
    let input = call.raw_input.as_ref().filter(|input| command_of(input).is_some())?;
    FOLDERS.iter().find_map(|field| input.get(field)?.as_str()).map(PathBuf::from)
}

/// The line that runs in the end: `git status` of `/bin/bash -lc 'git status'`. Agents add the shell
/// when they run what they asked for.
pub(crate) fn essence(line: &str) -> String {
    let mut line = line.trim().to_owned();
    while let Some(script) = script(&line) {
        line = script;
    }
    line
}

fn script(line: &str) -> Option<String> {
    let words = shell_words::split(line).ok()?;
    let (program, rest) = words.split_first()?;
    let name =
        ["/bin/", "/usr/bin/"].iter().find_map(|folder| program.strip_prefix(folder)).unwrap_or(program);
    let (script, flags) = rest.split_last()?;
    let is_short = |flag: &str| {
        flag.strip_prefix('-')
            .is_some_and(|letters| !letters.is_empty() && letters.chars().all(|c| "lciexu".contains(c)))
    };
    let known = flags.iter().all(|flag| SHELL_FLAGS.contains(&flag.as_str()) || is_short(flag));
    let last_is_command = flags.last().is_some_and(|flag| is_short(flag) && flag.contains('c'));
    let is_shell = super::shell::SHELLS.contains(&name);
    (is_shell && known && last_is_command).then(|| script.trim().to_owned())
}
