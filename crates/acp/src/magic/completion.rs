//! Completion and inspection of the word at the cursor.
//!
//! Positions are in code points, as Jupyter counts them.

use super::commands::{self, ArgumentKind, COMMANDS, OWN, SHORT, help};
use super::is_magic;
use crate::permission::RUN;
use crate::tool_kind::TOOL_KINDS;

/// Lists a folder.
pub(crate) type FolderListing = dyn Fn(&str) -> Vec<String>;

/// A snapshot of all names. Each pair is a name and a description.
#[derive(Default)]
pub(crate) struct CompletionContext<'a> {
    pub(crate) agents: Vec<(String, String)>,
    pub(crate) sessions: Vec<(String, String)>,
    /// Sessions the agent has stored, by id.
    pub(crate) stored_sessions: Vec<(String, String)>,
    pub(crate) modes: Vec<(String, String)>,
    pub(crate) models: Vec<(String, String)>,
    pub(crate) options: Vec<(String, String)>,
    pub(crate) servers: Vec<(String, String)>,
    /// Slash commands, without the slash.
    pub(crate) commands: Vec<(String, String)>,
    /// Cells that ran, by count, with their source.
    pub(crate) cells: Vec<(u32, String)>,
    /// The variables of the kernel of code cells.
    pub(crate) variables: Vec<(String, String)>,
    /// Lists a folder of the workspace (`""`, `src/`). Names of folders end in a slash.
    pub(crate) files: Option<&'a FolderListing>,
}

/// The candidates, and the word that they replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompletionResult {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) candidates: Vec<CompletionCandidate>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompletionCandidate {
    pub(crate) text: String,
    /// What kind of thing it is: `magic`, `argument`, `command`, `path`, `cell`, `variable`.
    pub(crate) kind: &'static str,
    /// A description in one line. May be empty.
    pub(crate) about: String,
}

/// The candidates at the cursor.
pub(crate) fn complete(code: &str, cursor: usize, known: &CompletionContext<'_>) -> CompletionResult {
    let place = CursorContext::at(code, cursor);
    let candidates = match place.kind {
        CursorKind::Magic => magics(&place, known),
        CursorKind::Prompt { first } => in_prompt(place.word, first, known),
    };
    let end = code[..place.cursor].chars().count();
    let start = end - place.word.chars().count();
    CompletionResult { start, end, candidates }
}

/// A description of the thing at the cursor.
pub(crate) fn inspect(code: &str, cursor: usize, known: &CompletionContext<'_>) -> Option<String> {
    let end = byte(code, cursor);
    let end = code[end..].find(char::is_whitespace).map_or(code.len(), |at| end + at);
    let place = CursorContext::at(code, code[..end].chars().count());
    let about = |pairs: &[(String, String)], name: &str| {
        pairs.iter().find(|(known, _)| known == name).map(|(name, about)| format!("{name}: {about}"))
    };
    match (place.kind, place.word.chars().next()) {
        (CursorKind::Magic, _) => {
            let words: Vec<_> =
                place.line.split_whitespace().map(|word| word.trim_end_matches('?')).collect();
            let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
            if words.first().is_some_and(|word| word.starts_with("%%")) || place.line.trim() == "?" {
                return Some(help(&[]));
            }
            Some(help(&commands::full(&words)?.iter().map(String::as_str).collect::<Vec<_>>()))
        }
        (CursorKind::Prompt { first: true }, Some('/')) => about(&known.commands, &place.word[1..]),
        (CursorKind::Prompt { .. }, Some('#')) => {
            let count: u32 = place.word[1..].parse().ok()?;
            known.cells.iter().find(|(known, _)| *known == count).map(|(_, source)| source.clone())
        }
        (CursorKind::Prompt { .. }, Some('$')) => {
            known.variables.iter().find(|(name, _)| *name == place.word[1..]).map(|(_, about)| about.clone())
        }
        (CursorKind::Prompt { .. }, _) => None,
    }
}

/// The word before the cursor, and its context.
struct CursorContext<'a> {
    cursor: usize,
    /// The line up to the cursor.
    line: &'a str,
    word: &'a str,
    kind: CursorKind,
}

#[derive(Clone, Copy)]
enum CursorKind {
    Magic,
    Prompt { first: bool },
}

impl<'a> CursorContext<'a> {
    fn at(code: &'a str, cursor: usize) -> Self {
        let cursor = byte(code, cursor);
        let before = &code[..cursor];
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let (above, line) = before.split_at(start);
        let word = &line[line
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + line[at..].chars().next().map_or(1, char::len_utf8))..];
        let only_magics = above.lines().map(str::trim).all(|line| line.is_empty() || is_magic(line));
        let begun = line.trim_start();
        let kind = if only_magics && (begun.starts_with('%') || begun == "?") {
            CursorKind::Magic
        } else {
            let heads = above.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('%'));
            CursorKind::Prompt { first: heads && begun.len() == word.len() }
        };
        Self { cursor, line, word, kind }
    }
}

fn byte(code: &str, cursor: usize) -> usize {
    code.char_indices().nth(cursor).map_or(code.len(), |(at, _)| at)
}

fn magics(place: &CursorContext<'_>, known: &CompletionContext<'_>) -> Vec<CompletionCandidate> {
    let words: Vec<_> = place.line.split_whitespace().collect();
    let before = if place.word.is_empty() { &words[..] } else { &words[..words.len() - 1] };
    let Some(first) = before.first() else {
        let names = ["agent"].into_iter().chain(SHORT).chain(OWN.map(|(name, _)| name));
        let names = names.map(|name| (format!("%{name}"), String::new()));
        let cells = [
            ("%%agent", "send the cell to a session"),
            ("%%prompt", "the cell is a prompt"),
            ("%%python", "run the cell in Python"),
            ("%%run", "run the cell in the kernel of this notebook"),
            ("%%bash", "run the cell in a shell"),
        ];
        let cells = cells.map(|(name, about)| (name.to_owned(), about.to_owned()));
        return matching(place.word, "magic", names.chain(cells));
    };
    if first.starts_with("%%") && !matches!(*first, "%%agent" | "%%prompt") {
        return Vec::new();
    }
    if first.starts_with("%%") {
        let background = ("--background".to_owned(), "continue while the agent works".to_owned());
        return matching(place.word, "argument", known.sessions.iter().cloned().chain([background]));
    }
    let Some(path) = commands::full(before) else { return Vec::new() };
    let path: Vec<_> = path.iter().map(String::as_str).collect();
    let begins = COMMANDS.iter().filter(|command| command.words.starts_with(&path));
    let mut next: Vec<(String, String)> = Vec::new();
    for command in begins.clone().filter(|command| command.words.len() > path.len()) {
        let word = command.words[path.len()];
        let leaf = command.words.len() == path.len() + 1;
        if next.iter().all(|(known, _)| known != word) {
            next.push((word.to_owned(), if leaf { command.about.to_owned() } else { String::new() }));
        }
    }
    for command in begins.filter(|command| command.words.len() == path.len()) {
        next.extend(arguments(command.takes, known));
    }
    matching(place.word, "argument", next)
}

fn arguments(takes: ArgumentKind, known: &CompletionContext<'_>) -> Vec<(String, String)> {
    let plain = |words: &[&str]| words.iter().map(|word| ((*word).to_owned(), String::new())).collect();
    match takes {
        ArgumentKind::Nothing => Vec::new(),
        ArgumentKind::Agent => known.agents.clone(),
        ArgumentKind::Session => known.sessions.clone(),
        ArgumentKind::StoredSession => known.stored_sessions.clone(),
        ArgumentKind::Mode => known.modes.clone(),
        ArgumentKind::Model => known.models.clone(),
        ArgumentKind::Option => known.options.clone(),
        ArgumentKind::Server => known.servers.clone(),
        ArgumentKind::ToolKind => {
            let kinds = TOOL_KINDS.iter().map(|(name, _)| *name);
            plain(&kinds.chain([RUN, "*"]).collect::<Vec<_>>())
        }
        ArgumentKind::Words(words) => plain(words),
    }
}

fn in_prompt(word: &str, first: bool, known: &CompletionContext<'_>) -> Vec<CompletionCandidate> {
    match word.chars().next() {
        Some('/') if first => {
            let commands = known.commands.iter().map(|(name, about)| (format!("/{name}"), about.clone()));
            matching(word, "command", commands)
        }
        Some('@') => {
            let path = &word[1..];
            let folder = &path[..path.rfind('/').map_or(0, |at| at + 1)];
            let names = known.files.map(|files| files(folder)).unwrap_or_default();
            // Hidden files are offered only after a dot.
            let hidden = path[folder.len()..].starts_with('.');
            let shown = names.into_iter().filter(|name| hidden || !name.starts_with('.'));
            let shown = shown.map(|name| {
                let path = format!("{folder}{name}");
                let quote = if path.contains(char::is_whitespace) { "\"" } else { "" };
                (format!("@{quote}{path}{quote}"), String::new())
            });
            matching(word, "path", shown)
        }
        Some('#') => {
            let line = |source: &str| source.trim().lines().next().unwrap_or_default().to_owned();
            let cells = known.cells.iter().rev().map(|(count, source)| (format!("#{count}"), line(source)));
            matching(word, "cell", cells)
        }
        Some('$') => {
            let variables = known.variables.iter().map(|(name, about)| (format!("${name}"), about.clone()));
            matching(word, "variable", variables)
        }
        _ => Vec::new(),
    }
}

fn matching(
    word: &str,
    kind: &'static str,
    candidates: impl IntoIterator<Item = (String, String)>,
) -> Vec<CompletionCandidate> {
    let plain = |text: &str| text.replace('"', "").to_lowercase();
    let fits = |text: &str| plain(text).starts_with(&plain(word));
    let fitting = candidates.into_iter().filter(|(text, _)| fits(text));
    fitting.map(|(text, about)| CompletionCandidate { text, kind, about }).collect()
}
