//! The table of magics, for help, completion and suggestions.

use super::arguments::UsageError;

/// A magic: the words after `%agent`.
pub(super) struct MagicEntry {
    pub(super) words: &'static [&'static str],
    /// The arguments, as help shows them.
    pub(super) arguments: &'static str,
    pub(super) about: &'static str,
    /// What completion offers as the first argument.
    pub(super) takes: ArgumentKind,
}

/// What completion offers as an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArgumentKind {
    Nothing,
    Agent,
    Session,
    StoredSession,
    Mode,
    Model,
    Option,
    Server,
    ToolKind,
    Words(&'static [&'static str]),
}

const fn row(
    words: &'static [&'static str],
    arguments: &'static str,
    takes: ArgumentKind,
    about: &'static str,
) -> MagicEntry {
    MagicEntry { words, arguments, about, takes }
}

/// Every magic.
pub(super) const COMMANDS: &[MagicEntry] = &[
    row(
        &["kernel"],
        "[NAME] [--session NAME]",
        ArgumentKind::Words(&["restart", "variables", "--session"]),
        "show the kernel that runs code, or use another: a language, a kernelspec, `gateway:NAME` or `existing:FILE`",
    ),
    row(&["kernel", "restart"], "", ArgumentKind::Nothing, "start that kernel afresh, without its variables"),
    row(&["kernel", "variables"], "", ArgumentKind::Nothing, "show its variables"),
    row(
        &["cells"],
        "[code|prompt]",
        ArgumentKind::Words(&["code", "prompt"]),
        "show or set what a cell is that does not say so: code, or a prompt",
    ),
    row(&["use"], "[NAME]", ArgumentKind::Agent, "show the agents, or switch to another"),
    row(
        &["session", "new"],
        "[NAME] [--cwd FOLDER] [--agent NAME]",
        ArgumentKind::Nothing,
        "start a session and switch to it",
    ),
    row(&["session", "use"], "NAME", ArgumentKind::Session, "switch to another session of this kernel"),
    row(&["session", "info"], "", ArgumentKind::Nothing, "show the current session"),
    row(
        &["session", "list"],
        "[--all]",
        ArgumentKind::Words(&["--all"]),
        "show the sessions of this kernel and those the agent has stored for this folder, or all",
    ),
    row(
        &["session", "load"],
        "ID",
        ArgumentKind::StoredSession,
        "continue a stored session and show its conversation",
    ),
    row(
        &["session", "resume"],
        "[ID]",
        ArgumentKind::StoredSession,
        "continue a stored session, or the last one of this folder",
    ),
    row(&["session", "last"], "", ArgumentKind::Nothing, "show the last turn again, as after a page reload"),
    row(&["session", "fork"], "[NAME]", ArgumentKind::Nothing, "continue in a copy of the current session"),
    row(
        &["session", "restart"],
        "",
        ArgumentKind::Nothing,
        "restart the agent; the conversation continues if the agent supports it",
    ),
    row(&["session", "close"], "[NAME]", ArgumentKind::Session, "end a session, or the current one"),
    row(&["session", "delete"], "ID", ArgumentKind::StoredSession, "make the agent delete a stored session"),
    row(
        &["permissions"],
        "[ask|auto|deny]",
        ArgumentKind::Words(&["ask", "auto", "deny"]),
        "show or set what happens when the agent asks",
    ),
    row(&["permissions", "list"], "", ArgumentKind::Nothing, "show what was asked, and who decided"),
    row(
        &["permissions", "allow"],
        "KIND [PATTERN]",
        ArgumentKind::ToolKind,
        "allow without asking, as in `allow edit src/**`",
    ),
    row(
        &["permissions", "deny"],
        "KIND [PATTERN]",
        ArgumentKind::ToolKind,
        "refuse without asking; beats any allow",
    ),
    row(
        &["permissions", "test"],
        "COMMAND",
        ArgumentKind::Nothing,
        "show which rule would decide on a command, without running it",
    ),
    row(&["permissions", "clear"], "", ArgumentKind::Nothing, "forget all rules"),
    row(
        &["mcp", "add"],
        "NAME [--env K=V] COMMAND [ARGS...]",
        ArgumentKind::Nothing,
        "offer a server that a command starts; the conversation continues",
    ),
    row(
        &["mcp", "add"],
        "NAME [--sse] [--header 'K: V'] URL",
        ArgumentKind::Nothing,
        "offer a server at an address",
    ),
    row(
        &["mcp", "list"],
        "",
        ArgumentKind::Nothing,
        "show the servers, also those in the agent's own settings",
    ),
    row(&["mcp", "remove"], "NAME", ArgumentKind::Server, "forget a server"),
    row(&["mcp", "clear"], "", ArgumentKind::Nothing, "forget all servers added here"),
    row(&["mcp", "enable"], "NAME", ArgumentKind::Server, "offer a server again"),
    row(&["mcp", "disable"], "NAME", ArgumentKind::Server, "keep a server, but do not offer it"),
    row(
        &["notebook"],
        "[PATH]",
        ArgumentKind::Nothing,
        "show or set the notebook that the agent's tools mean where they name none",
    ),
    row(&["commands"], "", ArgumentKind::Nothing, "show the agent's slash commands"),
    row(
        &["page"],
        "[allow]",
        ArgumentKind::Words(&["allow"]),
        "show the pages with this notebook; `allow` lets the agent change it in this page until it is loaded again",
    ),
    row(&["mode"], "[NAME]", ArgumentKind::Mode, "show the agent's modes, or switch to another"),
    row(&["model"], "[NAME]", ArgumentKind::Model, "show the agent's models, or switch to another"),
    row(&["options"], "[NAME VALUE]", ArgumentKind::Option, "show the options of the session, or set one"),
    row(
        &["config"],
        "[COMMAND [ARGS...]]",
        ArgumentKind::Nothing,
        "show the command that starts the agent, or set another",
    ),
    row(
        &["env"],
        "[NAME=VALUE | unset NAME]",
        ArgumentKind::Words(&["unset"]),
        "show or set variables for the agent",
    ),
    row(
        &["context"],
        "[on|off]",
        ArgumentKind::Words(&["on", "off"]),
        "show what the next prompt takes along of what you did since the last turn, or switch that",
    ),
    row(
        &["keep"],
        "[N]",
        ArgumentKind::Nothing,
        "turn the code that the agent ran in its last cell, or in In[N], into code cells",
    ),
    row(&["login"], "[METHOD]", ArgumentKind::Nothing, "show how to sign in, or sign in"),
    row(&["log"], "[LINES]", ArgumentKind::Nothing, "show what the agent wrote to its standard error"),
    row(
        &["render"],
        "[auto|rich|stream]",
        ArgumentKind::Words(&["auto", "rich", "stream"]),
        "show or set how turns are shown",
    ),
];

/// Magics that work without `%agent` before them.
pub(super) const SHORT: [&str; 3] = ["mcp", "session", "permissions"];

/// Magics that are written without `%agent`, with the first of their words after it.
pub(super) const OWN: [(&str, &str); 5] = [
    ("kernel", "kernel"),
    ("mode", "cells"),
    ("notebook", "notebook"),
    ("context", "context"),
    ("keep", "keep"),
];

/// The magic as people write it, without its arguments.
pub(super) fn written(words: &[&str]) -> String {
    match OWN.iter().find(|(_, first)| words.first() == Some(first)) {
        Some((name, _)) => [&[*name], &words[1..]].concat().join(" "),
        None => format!("agent {}", words.join(" ")),
    }
}

/// The words of a magic line as if it began with `%agent`. `None` if there is no such magic. The
/// older kernel also wrote `%mcp_add` for `%agent mcp add`.
pub(super) fn full(words: &[&str]) -> Option<Vec<String>> {
    let first = words.first()?.strip_prefix('%')?;
    let mut full: Vec<String> = first.split('_').map(str::to_owned).collect();
    if full[0] == "agent" {
        full.remove(0);
    } else if let Some((_, first)) = OWN.iter().find(|(name, _)| *name == full[0]) {
        (*first).clone_into(&mut full[0]);
    } else if !SHORT.contains(&full[0].as_str()) {
        return None;
    }
    full.extend(words[1..].iter().map(|word| (*word).to_owned()));
    Some(full)
}

/// The error for a word that the magic does not have, with the words it has.
pub(super) fn no_such(magic: &'static str, above: &[&str], word: &str) -> UsageError {
    let known = COMMANDS.iter().filter(|command| command.words.starts_with(above));
    let mut known: Vec<_> = known.filter_map(|command| command.words.get(above.len())).copied().collect();
    known.dedup();
    UsageError::NoSuchWord { magic, word: word.to_owned(), known: known.join(", ") }
}

/// Help for the magics that begin with these words after `%agent`, or for all if there are none.
pub(crate) fn help(words: &[&str]) -> String {
    let begins = |command: &&MagicEntry, topic: &[&str]| command.words.starts_with(topic);
    // The words after the name of a magic are its arguments.
    let topic = (0..=words.len()).rev().map(|end| &words[..end]);
    let topic = topic.into_iter().find(|topic| COMMANDS.iter().any(|command| begins(&command, topic)));
    let topic = topic.unwrap_or_default();
    let rows: Vec<_> = COMMANDS
        .iter()
        .filter(|command| begins(command, topic))
        .map(|command| {
            let usage = format!("%{} {}", written(command.words), command.arguments);
            (usage.trim_end().to_owned(), command.about)
        })
        .collect();
    let width =
        rows.iter().map(|(usage, _)| usage.chars().count()).filter(|width| *width < 44).max().unwrap_or(0);
    let mut text = Vec::new();
    if topic.is_empty() {
        text.push(
            "A cell is a prompt to the agent, or code after %%python, %%run, %%bash or %%LANGUAGE. Lines that begin with % \
             come first and are commands to the kernel:\n"
                .to_owned(),
        );
    }
    for (usage, about) in rows {
        if usage.chars().count() > width {
            text.push(format!("  {usage}\n  {:width$}  {about}\n", ""));
        } else {
            text.push(format!("  {usage:width$}  {about}\n"));
        }
    }
    if topic.is_empty() {
        text.push(
            "\n%mcp, %session and %permissions are short for %agent mcp, %agent session and %agent permissions.\n\
             %%agent NAME [--background] on the first line sends the rest of the cell to that session.\n\
             After `%mode code` a cell is code, and %%prompt on the first line makes it a prompt.\n\
             In a prompt, /NAME is a command of the agent, @PATH a file, #N the cell In[N], $NAME a variable. %agent mcp? explains mcp.\n"
                .to_owned(),
        );
    }
    text.concat()
}
