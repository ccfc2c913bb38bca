//! The commands in a command line, for rules.

use agent_client_protocol_schema::v1::ToolCall;

/// Characters after which a shell may begin another command. Quoted ones count, too: a `deny` rule
/// should see too much rather than too little.
const OPERATORS: [char; 10] = [';', '&', '|', '(', ')', '{', '}', '`', '\n', '\r'];

/// Words that may stand before a command.
const BEFORE: [&str; 16] = [
    "!", "builtin", "command", "do", "elif", "else", "env", "eval", "exec", "if", "nohup", "sudo", "then",
    "time", "while", "xargs",
];

/// Programs that run the text after `-c`.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "fish"];

/// The command line of a call, from where agents put it.
pub(crate) fn command(call: &ToolCall) -> Option<String> {
    let input = call.raw_input.as_ref()?;
    let value = input.get("command").or_else(|| input.get("cmd"))?;
    match value.as_array() {
        Some(words) => {
            let words: Option<Vec<_>> = words.iter().map(serde_json::Value::as_str).collect();
            Some(shell_words::join(words?))
        }
        None => value.as_str().map(str::to_owned),
    }
}

/// The commands that a line would run, as far as they can be seen without running it: the whole
/// line, each of its parts, these parts without quotes, program folder and variables, and the
/// scripts for other shells.
pub(super) fn commands_in(line: &str) -> Vec<String> {
    let line = line.trim();
    let mut commands = vec![line.to_owned()];
    see(line, &mut commands);
    for part in line.split(OPERATORS).map(str::trim).filter(|part| !part.is_empty() && *part != line) {
        commands.push(part.to_owned());
        see(part, &mut commands);
    }
    commands
}

fn see(part: &str, commands: &mut Vec<String>) {
    // Unbalanced quotes mean a fragment. The full line was already checked.
    let Ok(words) = shell_words::split(part) else { return };
    let mut words = words.as_slice();
    while let [first, rest @ ..] = words {
        let program = first.rsplit('/').next().unwrap_or(first);
        commands.push(
            std::iter::once(program).chain(rest.iter().map(String::as_str)).collect::<Vec<_>>().join(" "),
        );
        if let Some(script) = script(program, rest) {
            commands.extend(commands_in(script));
        }
        if !BEFORE.contains(&program) && !is_assignment(first) {
            return;
        }
        words = rest;
    }
}

/// The script for a shell: the word after `-c`, `-lc` and the like.
fn script<'a>(program: &str, arguments: &'a [String]) -> Option<&'a str> {
    let shell = SHELLS.contains(&program);
    let flag = arguments.iter().position(|word| word.starts_with('-') && word.ends_with('c'))?;
    arguments.get(flag + 1).filter(|_| shell).map(String::as_str)
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}
