//! The language of cells: magic lines, then a prompt or code.
//!
//! Pure. [`parse`] says what a cell asks for. [`complete`] and [`inspect`] answer from a snapshot.
//! The kernel carries it out.

mod arguments;
mod commands;
mod completion;
mod reference;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use agent_client_protocol_schema::v1::McpServer;

use arguments::UsageError;
pub(crate) use commands::help;
#[cfg(test)]
pub(crate) use completion::FolderListing;
pub(crate) use completion::{CompletionContext, complete, inspect};
pub(crate) use reference::{PromptReference, references};

use crate::conversation::SessionScope;
use crate::permission;

/// What a cell asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ParsedCell {
    /// They come first, in this order.
    pub(crate) magics: Vec<MagicCommand>,
    pub(crate) body: CellBody,
}

/// What a cell asks for after its magics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CellBody {
    /// The agent gets it. Without the empty lines around it. May be empty.
    Prompt { target: PromptTarget, text: String },
    /// A kernel runs it.
    Code(CodeBody),
}

/// Code for a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodeBody {
    pub(crate) language: CodeLanguage,
    /// Where it begins in the cell, in bytes.
    pub(crate) start: usize,
    pub(crate) text: String,
}

/// Which kernel runs a code cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CodeLanguage {
    /// The one that the notebook uses, whatever its language.
    Companion,
    Python,
    /// An installed kernel, by its language or name.
    Named(String),
}

/// What a cell is that does not say so on its first line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum CellMode {
    #[default]
    Prompt,
    Code,
}

/// The session for a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PromptTarget {
    /// A session by name. `None` for the current one.
    pub(crate) session: Option<String>,
    /// Whether the cell ends at once, and its output follows.
    pub(crate) background: bool,
}

/// One magic line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MagicCommand {
    Help(String),
    /// Switch to another agent, or show the agents.
    Use(Option<String>),
    Mcp(McpMagic),
    /// Mode, rules and history of permissions.
    Permissions(PermissionsMagic),
    Session(SessionMagic),
    /// Set the agent's command line, or show it.
    Config(Option<Vec<String>>),
    Env(EnvMagic),
    Commands,
    /// Shows the pages with the notebook, or lets the agent into the page.
    Page(PageMagic),
    /// The kernel of code cells.
    Kernel(KernelMagic),
    /// Set the notebook that the agent's tools mean, or show it.
    Notebook(Option<PathBuf>),
    /// Set what a cell is that does not say so, or show it.
    Cells(Option<CellMode>),
    /// Turn the code that the agent ran in its last cell, or in this one, into code cells.
    Keep(Option<u32>),
    /// Set whether prompts take along what the person did, or show what they would.
    Context(Option<bool>),
    /// Set the mode of the agent, or show the modes.
    Mode(Option<String>),
    /// Set the model, or show the models.
    Model(Option<String>),
    /// Set an option of the session, or show them all.
    Options(Option<(String, String)>),
    /// Show this many lines of what the agent wrote to its standard error.
    Log(usize),
    /// Set how turns are shown, or show it.
    Render(Option<RenderMagic>),
    /// Sign in with a method, or show the methods.
    Login(Option<String>),
}

/// `%agent mcp …`
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum McpMagic {
    /// Offer a server to the agent.
    Add(McpServer),
    List,
    Remove(String),
    Clear,
    Enable(String),
    /// Keep it, but do not offer it.
    Disable(String),
}

/// `%agent permissions …`
#[derive(Debug, Clone)]
pub(crate) enum PermissionsMagic {
    Show,
    Mode(permission::ApprovalMode),
    List,
    Rule(permission::PermissionRule),
    /// Which rule would decide on this command.
    Test(String),
    Clear,
}

impl PartialEq for PermissionsMagic {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Mode(mine), Self::Mode(theirs)) => mine == theirs,
            (Self::Test(mine), Self::Test(theirs)) => mine == theirs,
            (Self::Rule(mine), Self::Rule(theirs)) => mine.to_string() == theirs.to_string(),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// `%agent session …`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionMagic {
    /// Start one and switch to it.
    New {
        name: Option<String>,
        /// The folder in which it works.
        cwd: Option<PathBuf>,
        agent: Option<String>,
    },
    Info,
    /// Restart the agent. The conversation continues if the agent supports it.
    Restart,
    /// Show those of this kernel and those the agent has stored.
    List(SessionScope),
    Use(String),
    /// Continue a stored one, and show its conversation.
    Load(String),
    /// Continue a stored one, or the last one of this folder.
    Resume(Option<String>),
    /// Show the last turn again.
    Last,
    /// Continue in a copy of the current one.
    Fork(Option<String>),
    /// End one, or the current one.
    Close(Option<String>),
    /// Make the agent delete a stored one.
    Delete(String),
}

/// `%kernel …`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KernelMagic {
    Show,
    /// Run code cells in another kernel.
    Use {
        kernel: Option<String>,
        /// A session that lives outside of this kernel.
        session: Option<String>,
    },
    /// Start it afresh, without its variables.
    Restart,
    Variables,
}

/// `%agent env …`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EnvMagic {
    Show,
    Set(String, String),
    Unset(String),
}

/// What `%agent page` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageMagic {
    Show,
    /// Puts the bridge into the page in which the cell runs.
    Allow,
}

/// How turns are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RenderMagic {
    /// As the client supports it.
    Auto,
    /// Displays that are updated in place.
    Rich,
    Stream,
}

/// Why a cell cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MagicError {
    #[error(
        "there is no magic `{0}`; `%agent?` lists all magics, and `%%agent` before a text sends it unchanged"
    )]
    Unknown(String),
    #[error("`{line}`: {reason}\n{help}")]
    Usage {
        /// As it was written.
        line: String,
        reason: UsageError,
        help: String,
    },
}

/// What a cell asks for.
pub(crate) fn parse(cell: &str, mode: CellMode) -> Result<ParsedCell, MagicError> {
    let mut magics = Vec::new();
    let mut rest = cell;
    let mut mode = mode;
    let mut said = None;
    while !rest.is_empty() {
        let (line, later) = rest.split_once('\n').unwrap_or((rest, ""));
        let line = line.trim();
        if let Some(written) = line.strip_prefix("%%") {
            let magic = cell_magic(line, written, mode)?;
            rest = if magic.is_code { rest } else { later };
            said = Some(magic.kind);
            break;
        }
        let is_ours = match mode {
            CellMode::Prompt => is_magic(line),
            // All others are the kernel's.
            CellMode::Code => is_ours(line),
        };
        if !line.is_empty() && !is_ours {
            break;
        }
        if !line.is_empty() {
            let magic = line_magic(line)?;
            if let MagicCommand::Cells(Some(chosen)) = magic {
                mode = chosen;
            }
            magics.push(magic);
        }
        rest = later;
    }
    let kind = said.unwrap_or(match mode {
        CellMode::Prompt => BodyKind::Prompt(PromptTarget::default()),
        CellMode::Code => BodyKind::Code(CodeLanguage::Companion),
    });
    let body = match kind {
        BodyKind::Prompt(target) => CellBody::Prompt { target, text: without_empty_lines(rest).to_owned() },
        // Magics alone run no code.
        BodyKind::Code(_) if rest.trim().is_empty() => {
            CellBody::Prompt { target: PromptTarget::default(), text: String::new() }
        }
        BodyKind::Code(language) => {
            CellBody::Code(CodeBody { language, start: cell.len() - rest.len(), text: rest.to_owned() })
        }
    };
    Ok(ParsedCell { magics, body })
}

/// What follows the magics.
enum BodyKind {
    Prompt(PromptTarget),
    Code(CodeLanguage),
}

/// A line with two percent signs.
struct CellMagic {
    kind: BodyKind,
    /// The line is part of the code.
    is_code: bool,
}

/// Cell magics that a Python kernel knows, and that say by themselves that their cell is no prompt.
const PYTHON_MAGICS: [&str; 22] = [
    "!",
    "bash",
    "capture",
    "cython",
    "debug",
    "file",
    "html",
    "javascript",
    "js",
    "latex",
    "markdown",
    "perl",
    "prun",
    "pypy",
    "ruby",
    "script",
    "sh",
    "svg",
    "sx",
    "system",
    "time",
    "timeit",
];

/// Whether a line is a magic of this kernel, and none of the kernel that runs code.
fn is_ours(line: &str) -> bool {
    let words: Vec<_> = line.split_whitespace().collect();
    let first = words.first().map(|word| word.trim_end_matches('?'));
    first.is_some_and(|first| is_magic(first) && first != "?" && commands::full(&[first]).is_some())
}

/// `%word` and `?`. A percent sign before anything else is text.
fn is_magic(line: &str) -> bool {
    line == "?"
        || line.strip_prefix('%').is_some_and(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()))
}

fn without_empty_lines(text: &str) -> &str {
    let text = text.trim_end();
    let first = text.find(|c: char| !c.is_whitespace()).unwrap_or(0);
    // The indent of the first line is part of the prompt.
    &text[text[..first].rfind('\n').map_or(0, |at| at + 1)..]
}

/// A line that says what the rest of its cell is.
fn cell_magic(line: &str, written: &str, mode: CellMode) -> Result<CellMagic, MagicError> {
    let name = written.split_whitespace().next().unwrap_or_default();
    let code = |language, is_code| Ok(CellMagic { kind: BodyKind::Code(language), is_code });
    let plain = |language| match written.split_whitespace().nth(1) {
        Some(word) => Err(usage(line, &["kernel"], UsageError::Unexpected(word.to_owned()))),
        None => code(language, false),
    };
    match name {
        "agent" | "prompt" => {
            Ok(CellMagic { kind: BodyKind::Prompt(prompt_target(line, written)?), is_code: false })
        }
        "run" => plain(CodeLanguage::Companion),
        "python" | "python3" | "py" | "ipython" => plain(CodeLanguage::Python),
        _ if mode == CellMode::Code => code(CodeLanguage::Companion, true),
        "writefile" => code(CodeLanguage::Python, true),
        name if PYTHON_MAGICS.contains(&name) => code(CodeLanguage::Python, true),
        // The kernels that are installed are not known here.
        name if name.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            plain(CodeLanguage::Named(name.to_owned()))
        }
        _ => Err(MagicError::Unknown(line.to_owned())),
    }
}

/// `%%agent [NAME] [--background]`
fn prompt_target(line: &str, written: &str) -> Result<PromptTarget, MagicError> {
    let words = split(line, written)?;
    let mut target = PromptTarget::default();
    for word in &words[1..] {
        match word.as_str() {
            "--background" | "-b" => target.background = true,
            option if option.starts_with('-') => {
                return Err(usage(line, &["%agent"], UsageError::NoSuchOption(option.to_owned())));
            }
            name if target.session.is_none() => target.session = Some(name.to_owned()),
            more => {
                return Err(usage(line, &["%agent"], UsageError::SecondSession(more.to_owned())));
            }
        }
    }
    Ok(target)
}

fn line_magic(line: &str) -> Result<MagicCommand, MagicError> {
    if line == "?" {
        return Ok(MagicCommand::Help(help(&[])));
    }
    if let Some(asked) = line.strip_suffix('?') {
        let words: Vec<_> = asked.split_whitespace().collect();
        let topic = commands::full(&words).ok_or_else(|| MagicError::Unknown(asked.to_owned()))?;
        return Ok(MagicCommand::Help(help(&topic.iter().map(String::as_str).collect::<Vec<_>>())));
    }
    if let Some(command) = tested_command(line) {
        return Ok(MagicCommand::Permissions(PermissionsMagic::Test(command.to_owned())));
    }
    // `#3` is a cell here and not a comment.
    let is_keep = line.starts_with("%keep");
    let written =
        if is_keep { line.split_whitespace().map(str::to_owned).collect() } else { split(line, line)? };
    let words: Vec<_> = written.iter().map(String::as_str).collect();
    let words = commands::full(&words).ok_or_else(|| MagicError::Unknown(written[0].clone()))?;
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    arguments::magic(&words).map_err(|reason| usage(line, &words, reason))
}

/// The command of `%permissions test`, as it is written: its quotes and operators count.
fn tested_command(line: &str) -> Option<&str> {
    let after = |text: &'_ str, word: &str| {
        let rest = text.trim_start().strip_prefix(word)?;
        rest.starts_with(char::is_whitespace).then(|| text.len() - rest.len())
    };
    let line = line.trim_start().trim_start_matches('%');
    let line = after(line, "agent").map_or(line, |at| &line[at..]);
    let line = &line[after(line, "permissions")?..];
    let line = &line[after(line, "test")?..];
    Some(line.trim()).filter(|command| !command.is_empty())
}

fn split(line: &str, written: &str) -> Result<Vec<String>, MagicError> {
    shell_words::split(written).map_err(|_| usage(line, &[], UsageError::OpenQuote))
}

fn usage(line: &str, words: &[&str], reason: UsageError) -> MagicError {
    MagicError::Usage { line: line.to_owned(), reason, help: help(words) }
}
